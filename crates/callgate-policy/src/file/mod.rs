//! A policy file as it was written: read from YAML, every value with its place, every mistake reported at once.

pub(crate) mod approval_rules;
pub(crate) mod audit;
mod containment;
pub(crate) mod decode;
pub(crate) mod keys;
#[cfg(feature = "legacy")]
mod legacy;
pub(crate) mod mistake;
pub(crate) mod model;
pub(crate) mod schema;
pub(crate) mod yaml;
