//! The errors of an import.

use callgate::policy::PolicyError;
use thiserror::Error;

/// Why nothing was imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file cannot be read. It may deny something, so it is not skipped.
    #[error("cannot import {path}: {why}")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// No file has any rules.
    #[error("{agent} has no permission rules in {files}")]
    Nothing {
        /// The agent.
        agent: &'static str,
        /// The files that were read.
        files: String,
    },
    /// The translated policy is invalid: a bug in callgate.
    #[error("the imported policy is invalid: {0}")]
    Policy(Box<PolicyError>),
}

impl From<PolicyError> for ImportError {
    fn from(error: PolicyError) -> Self {
        ImportError::Policy(Box::new(error))
    }
}
