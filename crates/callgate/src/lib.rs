//! The gate in front of every tool call an AI agent makes.

pub mod call;
pub mod describe;
pub mod json;
pub mod path;
pub mod policy;
pub mod redact;
pub mod risk;
pub mod show;
