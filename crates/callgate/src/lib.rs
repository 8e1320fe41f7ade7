//! The gate in front of every tool call an AI agent makes.

pub mod call;
pub mod describe;
pub mod path;
pub mod policy;
