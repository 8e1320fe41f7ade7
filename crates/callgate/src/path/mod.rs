//! Where paths really lie.

pub mod boundary;
mod expand;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the one place that looks at the file system")]
pub mod file_system;
mod pattern;
pub mod resolve;
mod settled;

pub use callgate_model::place::{Place, Rest, Zone};
