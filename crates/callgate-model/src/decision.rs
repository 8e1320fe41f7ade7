//! What is decided about a call, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a policy says, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run inside the sandbox.
    Contain,
    /// Somebody must be asked.
    Ask,
    /// It may not run.
    Deny,
}

impl Decision {
    /// The name, as in policies and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Contain => "contain",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A decision with its rule and reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ruling {
    /// What is decided.
    pub decision: Decision,
    /// The rule's name; `None` if the default decided.
    pub rule: Option<String>,
    /// Where the rule stands: `callgate.yaml:12`.
    pub place: Option<String>,
    /// Why, in words.
    pub reason: String,
}

/// The ruling on one effect of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectRuling {
    /// The number of the part.
    pub part: usize,
    /// The number of the effect within the part.
    pub effect: usize,
    /// What is decided about it.
    pub ruling: Ruling,
}

/// What an approver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// Yes, this once.
    Approved,
    /// Yes, and the same again in this session.
    ApprovedForSession,
    /// No.
    Denied,
    /// No, and stop the whole run.
    Abort,
}

impl ApprovalDecision {
    /// Whether the call may run.
    pub fn is_yes(self) -> bool {
        matches!(self, ApprovalDecision::Approved | ApprovalDecision::ApprovedForSession)
    }

    /// The name, as in policies and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            ApprovalDecision::Approved => "approved",
            ApprovalDecision::ApprovedForSession => "approved_for_session",
            ApprovalDecision::Denied => "denied",
            ApprovalDecision::Abort => "abort",
        }
    }
}

impl fmt::Display for ApprovalDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
