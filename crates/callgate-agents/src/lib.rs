//! Agents.

pub mod install;
