//! Why the log cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of the log. A gate that cannot record an attempt refuses the call.
#[derive(Debug, Error)]
pub enum AuditError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The log is not as its last seal says. Nothing is appended until a person has looked.
    #[error("the audit log in {} is damaged: {what}; run `callgate audit verify`", .directory.display())]
    Damaged {
        /// The log.
        directory: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The key cannot be used.
    #[error("cannot use the audit key {}: {what}", .path.display())]
    Key {
        /// The key file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// No directory for the log is known.
    #[error("cannot determine the log directory: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoPlace,
    /// An entry cannot be turned into JSON.
    #[error("cannot encode the entry as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// Nothing with that number or name is in the log.
    #[error("{0} is not in the log")]
    NotFound(String),
    /// The same write failed for another caller whose entries went with it.
    #[error("{0}")]
    Together(String),
    /// A writer panicked; its state cannot be trusted.
    #[error("the audit writer stopped unexpectedly")]
    Poisoned,
}

impl AuditError {
    /// A short stable name.
    pub fn kind(&self) -> &'static str {
        match self {
            AuditError::Io { .. } | AuditError::Together(_) => "io",
            AuditError::Damaged { .. } => "damaged",
            AuditError::Key { .. } => "key",
            AuditError::NoPlace => "no_place",
            AuditError::Encode(_) => "encode",
            AuditError::NotFound(_) => "not_found",
            AuditError::Poisoned => "poisoned",
        }
    }
}

/// Adds the action and the path to an I/O error.
pub(crate) trait AtPath<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, AuditError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, AuditError> {
        self.map_err(|source| AuditError::Io { action, path: path.to_owned(), source })
    }
}
