//! The events of tool calls, under the names that agents' timelines use.
//!
//! A call is requested; if somebody must be asked, an approval is requested and decided; it starts if it may; it is finished in any case:
//! `tool_call_requested`, `approval_requested`, `approval_decided`, `tool_call_started`, `tool_call_finished`, always in this order. Tools that talk
//! to a person add `human_request`, `human_response` and `plan_updated` between the last two.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use callgate::approvals::OutcomeKind;
use callgate::clock::Timestamp;
use callgate::event::{AnswerSource, Event, EventError, EventKind, EventSink};
use serde::Serialize;
use serde_json::{Value, json};

/// How many events a subscriber may leave unread. One that falls behind further is dropped, so that nobody waits for it.
const UNREAD: usize = 10_000;

/// One step of a tool call, redacted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineEvent {
    /// What happened: `tool_call_requested`, `approval_requested` …
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// When.
    #[serde(with = "callgate_model::clock::rfc3339")]
    pub timestamp: Timestamp,
    /// The run of the agent that the call belongs to.
    pub run_id: String,
    /// What is known of it.
    pub payload: Value,
}

/// Takes events. It says whether it wants more.
type Listener = Box<dyn FnMut(&TimelineEvent) -> bool + Send>;

/// Sends events to everybody who listens.
pub(crate) struct Timeline {
    run: String,
    listeners: Mutex<Vec<Listener>>,
}

impl Timeline {
    pub fn new(run: String) -> Self {
        Timeline { run, listeners: Mutex::default() }
    }

    /// Adds somebody who listens, until it wants no more.
    pub fn listen(&self, listener: Listener) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// The events from now on.
    pub fn subscribe(&self) -> Receiver<TimelineEvent> {
        let (sender, receiver) = sync_channel(UNREAD);
        self.listen(Box::new(move |event| sender.try_send(event.clone()).is_ok()));
        receiver
    }

    pub fn emit(&self, kind: &'static str, payload: Value) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.is_empty() {
            return;
        }
        let event = TimelineEvent { kind, timestamp: Timestamp::now_precise(), run_id: self.run.clone(), payload };
        listeners.retain_mut(|listener| listener(&event));
    }
}

/// Translates the gate's events of one call.
pub(crate) struct CallEvents {
    pub timeline: Arc<Timeline>,
    /// The id that the model gave the call.
    pub call: String,
    /// The key of the question that was put.
    pub key: Mutex<Option<String>>,
}

impl CallEvents {
    pub fn new(timeline: Arc<Timeline>, call: String) -> Self {
        CallEvents { timeline, call, key: Mutex::default() }
    }
}

impl EventSink for CallEvents {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        let tool = event.tool.to_string();
        match &event.kind {
            EventKind::Requested { input } => self.timeline.emit(
                "tool_call_requested",
                json!({"call_id": self.call, "tool": tool, "name": tool, "arguments": input}),
            ),
            EventKind::ApprovalRequested { reason, key, request, .. } => {
                *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key.clone();
                self.timeline.emit(
                    "approval_requested",
                    json!({"call_id": self.call, "approval_key": key, "tool": tool, "summary": reason, "request": request}),
                );
            }
            EventKind::ApprovalDecided(decided) => {
                let key = self.key.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let reason = match (decided.source, decided.outcome) {
                    (AnswerSource::Earlier, _) => "cached",
                    (_, OutcomeKind::TimedOut) => "timeout",
                    (_, OutcomeKind::Unanswerable) => "no_provider",
                    _ => "provider",
                };
                let payload = json!({
                    "call_id": self.call, "approval_key": key, "decision": decided.outcome, "reason": reason, "by": decided.by,
                });
                self.timeline.emit("approval_decided", payload);
            }
            EventKind::Started { sandbox } => {
                self.timeline.emit("tool_call_started", json!({"call_id": self.call, "tool": tool, "sandbox": sandbox}))
            }
            // The dispatcher says how it ended, together with the result.
            _ => {}
        }
        Ok(())
    }
}
