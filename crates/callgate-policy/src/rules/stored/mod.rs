//! Compiled policies that lie in files, so that a process that judges one call need not compile thousands of rules.

mod flat;
mod image;
mod list;

pub(crate) use flat::{Flat, flat_struct};
pub(crate) use image::{Image, Section, Writer};
pub(crate) use list::List;
