//! Refusals: why a call may not run, for people and for programs.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The stable kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// The call is invalid.
    Validation,
    /// The boundary, a rule or an approver denied it.
    Permission,
    /// Something required is missing.
    NotFound,
    /// A sandbox is required and not available.
    SandboxDenied,
    /// Nobody answered in time.
    Timeout,
    /// An approval is required, and nobody can be asked.
    HumanRequired,
    /// The approver stopped the whole run.
    Cancelled,
    /// An internal error of the gate.
    Unknown,
}

impl RefusalKind {
    /// The name in events and output.
    pub fn as_str(self) -> &'static str {
        match self {
            RefusalKind::Validation => "validation",
            RefusalKind::Permission => "permission",
            RefusalKind::NotFound => "not_found",
            RefusalKind::SandboxDenied => "sandbox_denied",
            RefusalKind::Timeout => "timeout",
            RefusalKind::HumanRequired => "human_required",
            RefusalKind::Cancelled => "cancelled",
            RefusalKind::Unknown => "unknown",
        }
    }
}

impl fmt::Display for RefusalKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Why a call may not run. Redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[error("{kind}: {reason}")]
pub struct Refusal {
    /// The stable kind.
    pub kind: RefusalKind,
    /// The reason.
    pub reason: String,
    /// What the agent can do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl Refusal {
    /// Creates a refusal without hint and rule.
    pub fn new(kind: RefusalKind, reason: impl Into<String>) -> Self {
        Refusal { kind, reason: reason.into(), hint: None, rule: None }
    }

    /// Adds what the agent can do instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the rule that decided.
    #[must_use]
    pub fn rule(mut self, rule: Option<String>) -> Self {
        self.rule = rule;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_that_others_rely_on() {
        let kinds = [
            (RefusalKind::Validation, "validation"),
            (RefusalKind::Permission, "permission"),
            (RefusalKind::NotFound, "not_found"),
            (RefusalKind::SandboxDenied, "sandbox_denied"),
            (RefusalKind::Timeout, "timeout"),
            (RefusalKind::HumanRequired, "human_required"),
            (RefusalKind::Cancelled, "cancelled"),
            (RefusalKind::Unknown, "unknown"),
        ];
        for (kind, name) in kinds {
            assert_eq!(kind.as_str(), name);
            assert_eq!(serde_json::to_value(kind).ok(), Some(name.into()));
        }
    }
}
