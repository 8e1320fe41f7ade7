//! What a tool call gives back.

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

use callgate::{Refusal, RefusalKind};

/// The stable kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input does not fit the tool.
    Validation,
    /// The policy, the boundary or an approver said no.
    Permission,
    /// A file, a program, a session or a tool is missing.
    NotFound,
    /// The call needs a sandbox that is not available.
    SandboxDenied,
    /// Time ran out.
    Timeout,
    /// A person is needed, and none can be asked.
    HumanRequired,
    /// Somebody stopped it.
    Cancelled,
    /// The program ended with another exit code than 0.
    ExitCode,
    /// Anything else.
    Unknown,
}

impl ErrorKind {
    /// The name in results and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Validation => "validation",
            ErrorKind::Permission => "permission",
            ErrorKind::NotFound => "not_found",
            ErrorKind::SandboxDenied => "sandbox_denied",
            ErrorKind::Timeout => "timeout",
            ErrorKind::HumanRequired => "human_required",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::ExitCode => "exit_code",
            ErrorKind::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<RefusalKind> for ErrorKind {
    fn from(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::Validation => ErrorKind::Validation,
            RefusalKind::Permission => ErrorKind::Permission,
            RefusalKind::NotFound => ErrorKind::NotFound,
            RefusalKind::SandboxDenied => ErrorKind::SandboxDenied,
            RefusalKind::Timeout => ErrorKind::Timeout,
            RefusalKind::HumanRequired => ErrorKind::HumanRequired,
            RefusalKind::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Unknown,
        }
    }
}

/// The result of a tool call. Bounded, and without known secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// Whether it did what it was asked to do.
    pub ok: bool,
    /// What it printed, or what it has to say.
    pub stdout: String,
    /// What it printed as errors, or what went wrong.
    pub stderr: String,
    /// The exit code; `None` while a program runs, and if it was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether something was left out.
    pub truncated: bool,
    /// The result as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// After how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What a contained program wanted and did not get, for the log.
    #[serde(skip)]
    pub(crate) held_back: Vec<callgate::fence::HeldBack>,
}

impl ToolResult {
    /// A success with text.
    pub fn text(stdout: impl Into<String>) -> Self {
        ToolResult { ok: true, stdout: stdout.into(), exit_code: Some(0), ..ToolResult::default() }
    }

    /// Adds the result as data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Says whether something was left out.
    #[must_use]
    pub fn truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// The result as the text that a model reads.
    pub fn content(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| {
            json!({"ok": false, "error_kind": "unknown", "stderr": error.to_string()}).to_string()
        })
    }
}

/// Why a tool failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// The kind.
    pub kind: ErrorKind,
    /// What went wrong and what to do, for the model.
    pub message: String,
    /// More about it, as data.
    pub data: Option<Value>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl ToolError {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ToolError { kind, message: message.into(), data: None, retryable: false }
    }

    /// An error in the input.
    pub fn validation(message: impl Into<String>) -> Self {
        ToolError::new(ErrorKind::Validation, message)
    }

    /// Adds data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Says that the same call may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

impl From<ToolError> for ToolResult {
    fn from(error: ToolError) -> Self {
        ToolResult {
            stderr: error.message,
            data: error.data,
            error_kind: Some(error.kind),
            retryable: error.retryable,
            ..ToolResult::default()
        }
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        let message = match &refusal.hint {
            Some(hint) => format!("{}; {hint}", refusal.reason),
            None => refusal.reason.clone(),
        };
        ToolError::new(refusal.kind.into(), message)
    }
}

/// An error of the operating system at a path.
pub(crate) fn io_error(what: &str, path: &std::path::Path, error: &std::io::Error) -> ToolError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        std::io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        _ => ErrorKind::Unknown,
    };
    ToolError::new(kind, format!("cannot {what} {}: {error}", path.display()))
}
