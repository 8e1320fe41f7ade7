//! Finds where paths really lead, and judges them by the project boundary.
//!
//! A [`boundary`] lists the directories that calls may touch. For each call, patterns of commands are expanded (`expand.rs`,
//! `pattern.rs`), every path is [resolved](resolve) against the [file system](file_system), and `placement.rs` finds its zone
//! and decides what must not pass without a question.

pub mod boundary;
mod expand;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the only module that accesses the file system")]
pub mod file_system;
pub(crate) mod pattern;
mod placement;
pub mod resolve;
pub(crate) mod watched;

pub use callgate_model::place::{Contents, Place, Rest, Zone};
