//! From the gate's events to entries: what is logged is logged before the tool starts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callgate::approvals::OutcomeKind;
use callgate::call::Origin;
use callgate::event::{Event, EventError, EventKind, EventSink};
use callgate::policy::Decision;
use callgate::redact::Redactor;
use serde_json::Value;

use crate::entry::{
    Approval, ApprovalRequested, Body, Finished, Outcome, Record, Refused, SecurityViolation, Started, ToolAttempt,
};
use crate::log::Log;

/// How many calls may be under way before the oldest is forgotten (its entries so far are written).
const MAXIMUM_CALLS: usize = 10_000;

/// Writes the gate's events to a log. An event that cannot be written is an error, and the gate refuses the call.
///
/// ```
/// use callgate::gate::Gate;
/// use callgate::policy::Policy;
/// use callgate_audit::{AuditSink, Log, Settings};
///
/// let directory = tempfile::tempdir()?;
/// let log = Log::open(Settings::at(directory.path().join("audit")))?;
/// let gate = Gate::builder().policy(Policy::bundled("standard")?).events(AuditSink::new(log)).build();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AuditSink {
    log: Arc<Log>,
    redactor: Redactor,
    calls: Mutex<HashMap<String, UnderWay>>,
}

/// What is remembered of a call between its events.
#[derive(Debug)]
struct UnderWay {
    since: u64,
    /// Until the attempt is written.
    input: Option<Value>,
    asked: Option<u64>,
}

impl AuditSink {
    /// Writes to this log.
    pub fn new(log: impl Into<Arc<Log>>) -> Self {
        AuditSink { log: log.into(), redactor: Redactor::default(), calls: Mutex::default() }
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn bodies(&self, event: &Event) -> Vec<Body> {
        let tool = self.redactor.text(&event.tool.to_string());
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::Requested { input } => {
                if calls.len() >= MAXIMUM_CALLS
                    && let Some(oldest) = calls.iter().min_by_key(|(_, call)| call.since).map(|(id, _)| id.clone())
                {
                    calls.remove(&oldest);
                }
                let input = Some(input.as_value().clone());
                calls.insert(event.call.clone(), UnderWay { since: event.time, input, asked: None });
                Vec::new()
            }
            EventKind::Gated { decision, rule, reason, risk, judged, .. } => {
                let input = calls.get_mut(&event.call).and_then(|call| call.input.take()).unwrap_or_default();
                let attempt = ToolAttempt {
                    input,
                    decision: *decision,
                    rule: rule.clone(),
                    rule_place: judged.rule_place.clone(),
                    reason: reason.clone(),
                    policy: judged.policy.clone(),
                    classification: Some(judged.classification.as_value().clone()),
                    description: judged.description.as_value().clone(),
                    claims: judged.claims.as_value().clone(),
                    ..self.attempt(&tool, &event.origin)
                };
                let mut bodies = vec![Body::ToolAttempt(Box::new(attempt))];
                if *decision == Decision::Deny {
                    // what the rule says of the risk counts before what the effects suggest
                    let said = judged.classification.as_value().get("risk_level").and_then(Value::as_str);
                    bodies.push(Body::SecurityViolation(SecurityViolation {
                        tool,
                        reason: reason.clone(),
                        risk_level: said.unwrap_or(risk.as_str()).to_owned(),
                        rule: rule.clone(),
                    }));
                }
                bodies
            }
            EventKind::ApprovalRequested { .. } => {
                if let Some(call) = calls.get_mut(&event.call) {
                    call.asked = Some(event.time);
                }
                vec![Body::ApprovalRequested(ApprovalRequested { tool, approval: None, asked: None, timeout_ms: None })]
            }
            EventKind::ApprovalDecided { outcome, by } => {
                let asked = calls.get(&event.call).and_then(|call| call.asked);
                let outcome = logged(*outcome);
                vec![Body::Approval(Approval {
                    tool,
                    approved: matches!(outcome, Outcome::Approved | Outcome::ApprovedForSession),
                    outcome,
                    // an earlier answer of this session counted, and nobody was asked
                    cached: by == "session",
                    approval: None,
                    by: Some(self.redactor.text(by)),
                    took_ms: asked.map(|asked| event.time.saturating_sub(asked)),
                    reason: None,
                })]
            }
            EventKind::Allowed { .. } => {
                calls.remove(&event.call);
                Vec::new()
            }
            EventKind::Denied { refusal } => {
                let unjudged = calls.remove(&event.call).and_then(|call| call.input);
                let reason = self.redactor.text(&refusal.reason);
                // refused before it could be judged: the attempt is told all the same
                let attempt = unjudged.map(|input| {
                    let attempt = ToolAttempt {
                        input,
                        rule: refusal.rule.clone(),
                        reason: reason.clone(),
                        ..self.attempt(&tool, &event.origin)
                    };
                    Body::ToolAttempt(Box::new(attempt))
                });
                let refused =
                    Body::Refused(Refused { tool, refusal: refusal.kind.as_str().to_owned(), reason: reason.clone() });
                attempt.into_iter().chain([refused]).collect()
            }
            EventKind::Started => vec![Body::Started(Started { tool, sandbox: None })],
            EventKind::Finished { success, milliseconds } => vec![Body::Finished(Finished {
                tool,
                success: Some(*success),
                exit: None,
                duration_ms: Some(*milliseconds),
                result: None,
                error: None,
            })],
        }
    }

    fn attempt(&self, tool: &str, origin: &Origin) -> ToolAttempt {
        let text = |path: &std::path::PathBuf| self.redactor.text(&path.to_string_lossy());
        ToolAttempt {
            tool: tool.to_owned(),
            input: Value::Null,
            decision: Decision::Deny,
            rule: None,
            rule_place: None,
            reason: String::new(),
            policy: None,
            classification: None,
            description: Value::Null,
            claims: Value::Null,
            directory: origin.directory.as_ref().map(text),
            workspace: origin.workspace.as_ref().map(text),
        }
    }
}

impl EventSink for AuditSink {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        let text = |text: &Option<String>| text.as_deref().map(|text| self.redactor.text(text));
        let records: Vec<Record> = self
            .bodies(event)
            .into_iter()
            .map(|body| Record {
                body,
                call: Some(event.call.clone()),
                session: text(&event.origin.session),
                agent: text(&event.origin.agent),
                chat: text(&event.origin.chat),
                scope: text(&event.origin.scope),
            })
            .collect();
        if records.is_empty() {
            return Ok(());
        }
        self.log.append_all(&records).map(|_| ()).map_err(|error| EventError(error.to_string()))
    }
}

fn logged(outcome: OutcomeKind) -> Outcome {
    match outcome {
        OutcomeKind::Approved => Outcome::Approved,
        OutcomeKind::ApprovedForSession => Outcome::ApprovedForSession,
        OutcomeKind::Denied => Outcome::Denied,
        OutcomeKind::Abort => Outcome::Abort,
        OutcomeKind::TimedOut => Outcome::TimedOut,
        OutcomeKind::Cancelled => Outcome::Cancelled,
        OutcomeKind::Unanswerable => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use callgate::call::Call;
    use callgate::gate::{Gate, Verdict};
    use callgate::policy::Policy;
    use serde_json::json;

    use super::*;
    use crate::settings::{Settings, Sync};

    fn gate(settings: &Settings) -> Gate {
        let log = Log::open(settings.clone()).unwrap();
        let policy = Policy::from_yaml("version: 1\ndefault: allow\n", "all").unwrap();
        Gate::builder().policy(policy).events(AuditSink::new(log)).build()
    }

    fn settings(directory: &tempfile::TempDir) -> Settings {
        Settings::at(directory.path().join("audit")).sync(Sync::Os)
    }

    #[test]
    fn what_cannot_be_logged_does_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let gate = gate(&settings);
        let call = || Call::new("Bash", json!({"command": "ls"})).directory("/tmp");
        let Verdict::Permitted(permit) = gate.check(call()) else { panic!("allowed so far") };
        // somebody adds to the log: nothing is written to it any more
        let path = settings.directory.join("audit-000001.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}garbage\n")).unwrap();
        let mut ran = false;
        let result = permit.run(|_| {
            ran = true;
            Ok::<(), ()>(())
        });
        assert!(result.is_err() && !ran, "a start that cannot be logged does not happen");
        let Verdict::Refused(refusal) = gate.check(call()) else { panic!("the attempt cannot be logged") };
        assert!(refusal.reason.contains("could not be recorded"), "{refusal}");
    }

    #[test]
    fn the_attempt_is_in_the_log_before_the_tool_starts() {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let gate = gate(&settings);
        let Verdict::Permitted(permit) = gate.check(Call::new("Bash", json!({"command": "ls"})).directory("/tmp"))
        else {
            panic!()
        };
        let kinds = || -> Vec<&str> {
            let entries = crate::read::Entries::open(&settings.directory).unwrap();
            entries.map(|line| line.unwrap().entry.record.body.kind()).collect()
        };
        assert_eq!(kinds(), ["segment", "tool_attempt"]);
        permit
            .run(|_| {
                assert_eq!(kinds(), ["segment", "tool_attempt", "started"]);
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(kinds().last(), Some(&"finished"));
    }

    #[test]
    fn a_call_that_is_refused_before_it_is_judged_is_an_attempt_too() {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let log = Log::open(settings.clone()).unwrap();
        // a gate without a policy judges nothing
        let gate = Gate::builder().events(AuditSink::new(log)).build();
        assert!(!gate.check(Call::new("Read", json!({"file_path": "x"}))).is_permitted());
        let entries: Vec<_> =
            crate::read::Entries::open(&settings.directory).unwrap().map(|line| line.unwrap().entry.record).collect();
        let Body::ToolAttempt(attempt) = &entries[1].body else { panic!("{entries:?}") };
        assert_eq!((attempt.decision, &attempt.input), (Decision::Deny, &json!({"file_path": "x"})));
        assert_eq!(entries[2].body.kind(), "refused");
        assert_eq!(entries[1].call, entries[2].call);
    }
}
