//! The gate in front of every tool call an AI agent makes.

pub mod approvals;
pub mod call;
pub mod clock;
pub mod describe;
pub mod grant;
pub mod json;
pub mod key;
pub mod monitor;
pub mod path;
pub mod policy;
pub mod redact;
pub mod show;
pub mod store;
