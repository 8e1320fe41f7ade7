//! The caller's report about a run: exit code, and size and digest of the result.

use callgate_model::digest::sha256_hex;
use callgate_model::fence::HeldBack;
use serde::{Deserialize, Serialize};

/// The caller's report about a run. It never contains contents.
///
/// ```
/// use callgate::event::RunReport;
///
/// let mut report = RunReport::default();
/// report.exit(1);
/// report.result(b"no such file");
/// assert_eq!(report.exit, Some(1));
/// assert_eq!(report.result.map(|result| result.bytes), Some(12));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// The program's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    /// Size and digest of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultDigest>,
    /// The stable kind of the error, if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a contained call wanted and did not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<HeldBack>,
}

/// Size and digest of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultDigest {
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 digest in hexadecimal.
    pub sha256: String,
}

impl ResultDigest {
    /// The digest of `result`.
    pub fn of(result: &[u8]) -> Self {
        ResultDigest { bytes: result.len() as u64, sha256: sha256_hex(result) }
    }
}

impl RunReport {
    /// Sets the exit code.
    pub fn exit(&mut self, code: impl Into<i64>) {
        self.exit = Some(code.into());
    }

    /// Sets size and digest of the result.
    pub fn result(&mut self, result: &[u8]) {
        self.result = Some(ResultDigest::of(result));
    }

    /// Sets the kind of error: a short stable word, such as `timeout`.
    pub fn error(&mut self, kind: impl Into<String>) {
        self.error = Some(kind.into());
    }
}
