//! Decisions and rulings.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A decision about a call, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run inside the sandbox.
    Contain,
    /// Somebody must be asked.
    Ask,
    /// It may not run.
    #[default]
    Deny,
}

impl Decision {
    /// The name in policies and output.
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
    /// The decision.
    pub decision: Decision,
    /// The rule's name; `None` if the default decided.
    pub rule: Option<String>,
    /// The file and line of the rule: `callgate.yaml:12`.
    pub place: Option<String>,
    /// The reason.
    pub reason: String,
}

/// The ruling on one effect of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectRuling {
    /// The index of the part.
    pub part: usize,
    /// The index of the effect in the part.
    pub effect: usize,
    /// The ruling.
    pub ruling: Ruling,
}

/// The decision of an approver.
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

    /// The name in policies and output.
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
