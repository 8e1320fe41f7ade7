//! Compiled policies that lie in files, so that a process that judges one call need not compile thousands of rules.

mod flat;
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "pages of a stored policy are read when a call needs them"
)]
mod image;
mod list;

pub(crate) use flat::{Flat, flat_struct};
pub(crate) use image::{Image, Section, Writer};
pub(crate) use list::List;
