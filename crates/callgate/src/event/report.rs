//! What whoever ran a call says of it: the exit code, and the result by size and digest.

use callgate_model::digest::sha256_hex;
use serde::{Deserialize, Serialize};

/// What whoever ran a call says of it, beside whether it went well and how long it took. Contents never stand here.
///
/// ```
/// use callgate::event::Report;
///
/// let mut report = Report::default();
/// report.exit(1);
/// report.result(b"no such file");
/// assert_eq!(report.exit, Some(1));
/// assert_eq!(report.result.map(|result| result.bytes), Some(12));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The program's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultDigest>,
    /// The stable kind of the error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A result by size and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultDigest {
    /// How many bytes.
    pub bytes: u64,
    /// Their SHA-256, hexadecimal.
    pub sha256: String,
}

impl ResultDigest {
    /// Of these bytes.
    pub fn of(result: &[u8]) -> Self {
        ResultDigest { bytes: result.len() as u64, sha256: sha256_hex(result) }
    }
}

impl Report {
    /// The program ended with this code.
    pub fn exit(&mut self, code: impl Into<i64>) {
        self.exit = Some(code.into());
    }

    /// It gave this result; its size and digest are kept.
    pub fn result(&mut self, result: &[u8]) {
        self.result = Some(ResultDigest::of(result));
    }

    /// It failed in this way: a short stable word, such as `timeout`.
    pub fn error(&mut self, kind: impl Into<String>) {
        self.error = Some(kind.into());
    }
}
