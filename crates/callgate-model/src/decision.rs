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
    /// Whether a deny or the boundary may apply, and the call does not say enough to know: then only a person can answer, and
    /// nothing that was answered in advance does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub doubt: bool,
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

/// Who can answer a question with yes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerable {
    /// Whoever decides in advance: a mode, approval rules, a grant, an earlier answer.
    #[default]
    InAdvance,
    /// Who means this very request: a person, an earlier answer to it, or a grant. The call leaves the boundary.
    ForThisRequest,
    /// A person, now. A deny or the boundary may apply, and the call does not say enough to know.
    ByAPerson,
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
        OutcomeKind::of(self).as_str()
    }
}

impl fmt::Display for ApprovalDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The outcome of an approval question in one word, as events, messages and the audit log name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// Yes, this once.
    Approved,
    /// Yes, and the same again in this session.
    ApprovedForSession,
    /// No.
    Denied,
    /// No, and stop the whole run.
    Abort,
    /// Nobody answered in time.
    TimedOut,
    /// It was taken back before anybody answered.
    Cancelled,
    /// There was nobody to ask, or the answer made no sense.
    Unanswerable,
}

impl OutcomeKind {
    const fn of(decision: ApprovalDecision) -> Self {
        match decision {
            ApprovalDecision::Approved => OutcomeKind::Approved,
            ApprovalDecision::ApprovedForSession => OutcomeKind::ApprovedForSession,
            ApprovalDecision::Denied => OutcomeKind::Denied,
            ApprovalDecision::Abort => OutcomeKind::Abort,
        }
    }

    /// Whether the call may run.
    pub fn is_yes(self) -> bool {
        matches!(self, OutcomeKind::Approved | OutcomeKind::ApprovedForSession)
    }

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            OutcomeKind::Approved => "approved",
            OutcomeKind::ApprovedForSession => "approved_for_session",
            OutcomeKind::Denied => "denied",
            OutcomeKind::Abort => "abort",
            OutcomeKind::TimedOut => "timed_out",
            OutcomeKind::Cancelled => "cancelled",
            OutcomeKind::Unanswerable => "unanswerable",
        }
    }
}

impl From<ApprovalDecision> for OutcomeKind {
    fn from(decision: ApprovalDecision) -> Self {
        OutcomeKind::of(decision)
    }
}
