//! Where paths really lie.

pub mod boundary;
pub(crate) mod braces;
mod expand;
pub mod file_system;
mod pattern;
pub mod resolve;
mod roots;
mod settled;

pub use callgate_model::place::{Place, Rest, Zone};
