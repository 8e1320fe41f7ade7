//! Where paths really lie.

pub mod boundary;
mod expand;
pub mod file_system;
mod pattern;
pub mod resolve;
mod settled;

pub use callgate_model::place::{Place, Rest, Zone};
