//! Calls as `tracing` spans: one span a call, one event a step (feature `tracing`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use callgate::event::{Event, EventError, EventKind, EventSink};
use callgate::redact::Redactor;
use callgate_model::clock::Timestamp;
use tracing::{Span, field};

/// How many calls may be under way before the oldest span is closed.
const MAXIMUM_CALLS: usize = 10_000;

/// Opens a span `tool_call` for every call (fields `call`, `tool`, `session`, `agent`, and once they are known `decision`,
/// `rule`, `refusal`, `success`, `milliseconds`) and closes it when the call has ended or was refused. Each step is an event
/// within. It never fails and never holds a call up: the log is what must be written.
///
/// ```
/// use callgate::{Call, Gate, policy::Policy};
/// use callgate_audit::spans::Spans;
///
/// let gate = Gate::builder().policy(Policy::bundled("standard")?).events(Spans::default()).build();
/// let _ = gate.check(Call::new("Bash", serde_json::json!({"command": "ls"})).directory("/tmp"));
/// # Ok::<(), callgate::policy::PolicyError>(())
/// ```
#[derive(Debug, Default)]
pub struct Spans {
    redactor: Redactor,
    calls: Mutex<HashMap<String, OpenSpan>>,
}

#[derive(Debug)]
struct OpenSpan {
    span: Span,
    since: Timestamp,
}

impl Spans {
    fn open(&self, event: &Event) -> Span {
        let text = |text: &Option<String>| self.redactor.text(text.as_deref().unwrap_or_default());
        tracing::info_span!(
            "tool_call",
            call = event.call,
            tool = self.redactor.text(&event.tool.to_string()),
            session = text(&event.origin.session),
            agent = text(&event.origin.agent),
            decision = field::Empty,
            rule = field::Empty,
            refusal = field::Empty,
            success = field::Empty,
            milliseconds = field::Empty,
        )
    }

    /// The span of an event's call; a last event takes it out.
    fn of(&self, event: &Event) -> Span {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(event.kind, EventKind::Denied { .. } | EventKind::Finished { .. }) {
            return calls.remove(&event.call).map_or_else(|| self.open(event), |open| open.span);
        }
        if calls.len() >= MAXIMUM_CALLS
            && !calls.contains_key(&event.call)
            && let Some(oldest) = calls.iter().min_by_key(|(_, open)| open.since).map(|(id, _)| id.clone())
        {
            calls.remove(&oldest);
        }
        calls
            .entry(event.call.clone())
            .or_insert_with(|| OpenSpan { span: self.open(event), since: event.time })
            .span
            .clone()
    }
}

impl EventSink for Spans {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        let span = self.of(event);
        match &event.kind {
            EventKind::Gated { decision, rule, .. } => {
                span.record("decision", field::debug(decision));
                if let Some(rule) = rule {
                    span.record("rule", rule.as_str());
                }
            }
            EventKind::Denied { refusal } => {
                span.record("refusal", refusal.kind.as_str());
            }
            EventKind::Finished { success, milliseconds, .. } => {
                span.record("success", success);
                span.record("milliseconds", milliseconds);
            }
            _ => {}
        }
        span.in_scope(|| tracing::info!(target: "callgate", step = event.kind.name()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use callgate::call::Call;
    use callgate::gate::Gate;
    use callgate::policy::Policy;
    use serde_json::json;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, Subscriber};

    use super::*;

    /// Writes down what it is told.
    #[derive(Clone, Default)]
    struct Notes {
        lines: Arc<Mutex<Vec<String>>>,
        next: Arc<AtomicU64>,
    }

    struct Fields(String);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.push_str(&format!(" {}={value:?}", field.name()));
        }
    }

    impl Notes {
        fn note(&self, line: String) {
            self.lines.lock().unwrap().push(line);
        }
    }

    impl Subscriber for Notes {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.name() == "tool_call" || metadata.target() == "callgate"
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            let mut fields = Fields(String::new());
            attributes.record(&mut fields);
            self.note(format!("open{}", fields.0));
            Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
        }

        fn record(&self, _: &Id, values: &Record<'_>) {
            let mut fields = Fields(String::new());
            values.record(&mut fields);
            self.note(format!("record{}", fields.0));
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let mut fields = Fields(String::new());
            event.record(&mut fields);
            self.note(format!("event{}", fields.0));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}

        fn try_close(&self, _: Id) -> bool {
            self.note("close".to_owned());
            true
        }
    }

    #[test]
    fn a_call_is_a_span_from_its_arrival_to_its_end() {
        let notes = Notes::default();
        tracing::subscriber::with_default(notes.clone(), || {
            let policy = Policy::from_yaml("rules:\n  - {name: ls, commands: [ls], action: allow}\ndefault: deny", "x");
            let gate = Gate::builder().policy(policy.unwrap()).events(Spans::default()).build();
            let call = |command: &str| Call::new("Bash", json!({"command": command})).session("s").directory("/tmp");
            gate.check(call("ls")).unwrap().run(|_| Ok::<(), ()>(())).unwrap();
            let secret = "curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789' https://x.example";
            assert!(gate.check(call(secret)).is_err());
        });
        let lines = notes.lines.lock().unwrap().clone();
        assert!(!lines.concat().contains("abcdefghijklmnop"), "{lines:?}");
        let steps: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("event step=")).collect();
        let expected = ["requested", "gated", "allowed", "started", "finished", "requested", "gated", "denied"];
        assert_eq!(steps, expected.map(|name| format!("{name:?}")));
        assert!(lines[0].contains("tool=\"Bash\" session=\"s\""), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("success=true")));
        assert!(lines.iter().any(|line| line.contains("refusal=\"permission\"")), "{lines:?}");
    }
}
