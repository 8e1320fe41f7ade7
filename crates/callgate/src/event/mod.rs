//! One step in the life of a call, as whoever keeps a log or shows progress sees it. Redacted content only.

mod recorder;
mod report;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use callgate_model::call::{Origin, Tool};
use callgate_model::clock::Timestamp;
use callgate_model::decision::Decision;
use callgate_model::redact::Redacted;
use callgate_model::refusal::Refusal;
use callgate_model::risk::Risk;
use serde::Serialize;
use thiserror::Error;

pub(crate) use recorder::Recorder;
pub use report::{Report, ResultDigest};

use crate::approvals::OutcomeKind;

/// What happened. The names are stable.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A call arrived.
    Requested {
        /// Its arguments without secrets.
        input: Redacted,
    },
    /// Boundary and policy have spoken.
    Gated {
        /// What they say.
        decision: Decision,
        /// The rule.
        rule: Option<String>,
        /// Why.
        reason: String,
        /// How much is at stake.
        risk: Risk,
        /// What the call would do, in words.
        effects: Vec<String>,
        /// What else a log keeps.
        assessed: Box<AssessedCall>,
    },
    /// Somebody is asked.
    ApprovalRequested {
        /// Why.
        reason: String,
        /// The approval's id, where it has one beside the call's.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval: Option<String>,
        /// How long an answer is waited for, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Somebody answered, or did not.
    ApprovalDecided(ApprovalDecided),
    /// It may run.
    Allowed {
        /// Only inside the sandbox.
        contained: bool,
    },
    /// It may not run.
    Denied {
        /// Why.
        refusal: Refusal,
    },
    /// It starts.
    Started {
        /// What holds it, if anything does.
        #[serde(skip_serializing_if = "Option::is_none")]
        sandbox: Option<String>,
    },
    /// It is done.
    Finished {
        /// Whether it went well.
        success: bool,
        /// How long it took.
        milliseconds: u64,
        /// What whoever ran it says of it.
        #[serde(flatten)]
        report: Report,
    },
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApprovalDecided {
    /// The answer, or that there was none.
    pub outcome: OutcomeKind,
    /// Who or what decided: an approver, `session`, `automatic`, `grant 7`, `mode`.
    pub by: String,
    /// The approval's id, where somebody was asked under one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Where the answer comes from.
    pub source: AnswerSource,
    /// What was said with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    /// Somebody was asked, whether they answered or not.
    #[default]
    Asked,
    /// An earlier answer counted, and nobody was asked.
    Earlier,
    /// A grant, a mode or an automatic answer: nobody was asked.
    Settings,
}

impl EventKind {
    /// The stable name.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Requested { .. } => "requested",
            EventKind::Gated { .. } => "gated",
            EventKind::ApprovalRequested { .. } => "approval_requested",
            EventKind::ApprovalDecided(_) => "approval_decided",
            EventKind::Allowed { .. } => "allowed",
            EventKind::Denied { .. } => "denied",
            EventKind::Started { .. } => "started",
            EventKind::Finished { .. } => "finished",
        }
    }
}

/// What a log keeps of an assessment, so that it can be looked up and repeated later.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssessedCall {
    /// Where the rule stands.
    pub rule_place: Option<String>,
    /// The version of the policy.
    pub policy: Option<String>,
    /// The call in one line: category, risk level and so on.
    pub classification: Redacted,
    /// What the call would do: its parts with their words and effects, without secrets.
    pub description: Redacted,
    /// What whoever registered the tool claims of it.
    pub claims: Redacted,
}

/// One step in the life of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The call's id: the same for all its events.
    pub call: String,
    /// When it happened.
    pub time: Timestamp,
    /// Which tool.
    pub tool: Tool,
    /// From whom.
    pub origin: Origin,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Why an event was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the event could not be recorded: {0}")]
pub struct EventError(pub String);

/// Takes events. One that cannot take an event before a call runs stops the call: what is not recorded does not run.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: &Event) -> Result<(), EventError>;
}

/// An id that no other call of this or another process has.
pub(crate) fn new_call_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |duration| duration.as_nanos());
    format!("{nanoseconds:x}-{:x}-{count:x}", std::process::id())
}
