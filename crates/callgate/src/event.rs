//! One step in the life of a call, as whoever keeps a log or shows progress sees it. Redacted content only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use thiserror::Error;

use crate::approvals::OutcomeKind;
use crate::call::{Origin, Tool};
use crate::policy::Decision;
use crate::redact::Redacted;
use crate::refusal::Refusal;
use crate::risk::Risk;

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
        judged: Box<Judged>,
    },
    /// Somebody is asked.
    ApprovalRequested {
        /// Why.
        reason: String,
    },
    /// Somebody answered, or did not.
    ApprovalDecided {
        /// What became of the question.
        outcome: OutcomeKind,
        /// Who or what decided: an approver, `session`, `automatic`, `grant 7`, `mode`.
        by: String,
    },
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
    Started,
    /// It is done.
    Finished {
        /// Whether it went well.
        success: bool,
        /// How long it took.
        milliseconds: u64,
    },
}

impl EventKind {
    /// The stable name.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Requested { .. } => "requested",
            EventKind::Gated { .. } => "gated",
            EventKind::ApprovalRequested { .. } => "approval_requested",
            EventKind::ApprovalDecided { .. } => "approval_decided",
            EventKind::Allowed { .. } => "allowed",
            EventKind::Denied { .. } => "denied",
            EventKind::Started => "started",
            EventKind::Finished { .. } => "finished",
        }
    }
}

/// What a log keeps of a judgement, so that it can be looked up and made again later.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
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
    /// Milliseconds since 1970.
    pub time: u64,
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

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// An id that no other call of this or another process has.
pub(crate) fn new_call_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |duration| duration.as_nanos());
    format!("{nanoseconds:x}-{:x}-{count:x}", std::process::id())
}
