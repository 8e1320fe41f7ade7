//! Why a call cannot be contained.

use callgate_model::refusal::{Refusal, RefusalKind};

/// Why a call cannot be contained. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Denied {
    /// The reason.
    pub reason: String,
    /// What helps.
    pub hint: Option<String>,
    /// The program does not exist or cannot be started: the exit code that a shell would give.
    pub program: Option<i32>,
}

impl Denied {
    /// A reason without more.
    pub fn new(reason: impl Into<String>) -> Self {
        Denied { reason: reason.into(), hint: None, program: None }
    }

    /// Adds what helps.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let refusal = Refusal::new(RefusalKind::SandboxDenied, denied.reason);
        match denied.hint {
            Some(hint) => refusal.hint(hint),
            None => refusal,
        }
    }
}
