//! Installing.

pub mod file;
pub mod json;
pub mod toml;
