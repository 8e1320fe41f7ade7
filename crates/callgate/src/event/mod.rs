//! Events: every step of a call, redacted, for logs and progress displays.
//!
//! A `Recorder` emits the events of one call to all sinks. Each call is requested, gated, allowed or denied, and started and
//! finished if it runs; where an approval is needed, it is requested and decided in between.

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
pub use report::{ResultDigest, RunReport};

use crate::approvals::OutcomeKind;

/// What happened. The serialized names are stable.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A call arrived.
    Requested {
        /// Its redacted arguments.
        input: Redacted,
    },
    /// The call was assessed.
    Gated {
        /// The decision of boundary and policy.
        decision: Decision,
        /// The rule that decided.
        rule: Option<String>,
        /// Why.
        reason: String,
        /// The risk.
        risk: Risk,
        /// What the call would do, in words.
        effects: Vec<String>,
        /// Further details for logs.
        assessed: Box<AssessedCall>,
    },
    /// An approver is asked.
    ApprovalRequested {
        /// Why.
        reason: String,
        /// The approval's id, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval: Option<String>,
        /// The time limit for an answer, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
        /// The key by which an answer is remembered, if it can be.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// What the approver sees of the input.
        #[serde(skip_serializing_if = "Option::is_none")]
        request: Option<Redacted>,
    },
    /// The approval was decided, or nobody answered.
    ApprovalDecided(ApprovalDecided),
    /// It may run.
    Allowed {
        /// Whether it may only run inside the sandbox.
        contained: bool,
    },
    /// It will run in another process, which has to present a permit that was issued for it.
    PermitIssued {
        /// How long the permit is good for, in milliseconds.
        expires_in: u64,
    },
    /// It may not run.
    Denied {
        /// Why.
        refusal: Refusal,
    },
    /// It starts.
    Started {
        /// What the sandbox enforces, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        sandbox: Option<String>,
    },
    /// It finished.
    Finished {
        /// Whether it succeeded.
        success: bool,
        /// How long it took.
        milliseconds: u64,
        /// What the caller reported about the run.
        #[serde(flatten)]
        report: RunReport,
    },
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApprovalDecided {
    /// The answer, or that there was none.
    pub outcome: OutcomeKind,
    /// Who or what decided: an approver, `session`, `automatic`, `grant 7`, `mode`.
    pub by: String,
    /// The approval's id, if somebody was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Where the answer comes from.
    pub source: AnswerSource,
    /// The reason given.
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
    /// An earlier answer was used; nobody was asked.
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
            EventKind::PermitIssued { .. } => "permit_issued",
            EventKind::Denied { .. } => "denied",
            EventKind::Started { .. } => "started",
            EventKind::Finished { .. } => "finished",
        }
    }
}

/// The details of an assessment that a log keeps, so that it can be searched and replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssessedCall {
    /// The file and line of the rule.
    pub rule_place: Option<String>,
    /// The version of the policy.
    pub policy: Option<String>,
    /// The classification of the call: category, risk level and so on.
    pub classification: Redacted,
    /// The redacted description: its parts with their words and effects.
    pub description: Redacted,
    /// The claims about the tool.
    pub claims: Redacted,
}

/// One step of a call.
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

/// An event could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot record the event: {0}")]
pub struct EventError(pub String);

/// Receives events. An error before a call runs stops the call, because unrecorded calls must not run.
pub trait EventSink: Send + Sync {
    /// Records one event.
    fn emit(&self, event: &Event) -> Result<(), EventError>;
}

/// An id that is unique among the calls of all processes.
pub(crate) fn new_call_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |duration| duration.as_nanos());
    format!("{nanoseconds:x}-{:x}-{count:x}", std::process::id())
}
