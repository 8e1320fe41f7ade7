//! What comes back: an answer, or that there was none.

use std::fmt;

pub use callgate_model::decision::{Answerable, ApprovalDecision, OutcomeKind};
use serde::{Deserialize, Serialize};

/// An approver's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Yes or no.
    pub decision: ApprovalDecision,
    /// The reason; it reaches the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Which of the question's proposals is remembered for the session instead of the exact request, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<usize>,
    /// Which of the question's proposals shall become a rule, from 0. Whoever asked writes it once this yes is recorded; an answer that came
    /// from outside as JSON cannot say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<usize>,
}

impl Answer {
    /// A bare decision.
    pub fn new(decision: ApprovalDecision) -> Self {
        Answer { decision, reason: None, by: None, proposal: None, always: None }
    }

    /// With a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets who answered.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.by = Some(who.into());
        self
    }
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// It was answered.
    Answered(Answer),
    /// Nobody answered in time, which is a refusal.
    TimedOut,
    /// It was cancelled before anybody answered.
    Cancelled,
    /// No approver was available, or the answer was invalid.
    Unanswerable(String),
}

impl ApprovalOutcome {
    /// Whether the call may run.
    pub fn is_yes(&self) -> bool {
        matches!(self, ApprovalOutcome::Answered(answer) if answer.decision.is_yes())
    }
}

impl From<ApprovalDecision> for ApprovalOutcome {
    fn from(decision: ApprovalDecision) -> Self {
        ApprovalOutcome::Answered(Answer::new(decision))
    }
}

impl fmt::Display for ApprovalOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind().as_str())
    }
}

impl ApprovalOutcome {
    /// The outcome without the answer's text.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            ApprovalOutcome::Answered(answer) => answer.decision.into(),
            ApprovalOutcome::TimedOut => OutcomeKind::TimedOut,
            ApprovalOutcome::Cancelled => OutcomeKind::Cancelled,
            ApprovalOutcome::Unanswerable(_) => OutcomeKind::Unanswerable,
        }
    }
}
