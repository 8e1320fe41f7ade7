//! Turns the gate's events into entries, and writes them before the tool starts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callgate::call::Origin;
use callgate::event::{AnswerSource, Event, EventError, EventKind, EventSink};
use callgate::policy::Decision;
use callgate::redact::Redactor;
use callgate_model::clock::Timestamp;
use serde_json::Value;

use crate::entry::{
    Approval, ApprovalRequested, EntryBody, PermitIssued, Record, Refused, SecurityViolation, Started, ToolAttempt,
};
use crate::log::Log;

/// How many calls may be under way before the oldest is forgotten (its entries so far are written).
const MAXIMUM_CALLS: usize = 10_000;

/// Writes the gate's events to a log. An event that cannot be written is an error, and the gate refuses the call.
///
/// ```
/// use callgate::gate::Gate;
/// use callgate::policy::Policy;
/// use callgate_audit::{AuditSink, Log, LogSettings};
///
/// let directory = tempfile::tempdir()?;
/// let log = Log::open(LogSettings::at(directory.path().join("audit")))?;
/// let gate = Gate::builder().policy(Policy::bundled("standard")?).events(AuditSink::new(log)).build();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AuditSink {
    log: Arc<Log>,
    pub(crate) redactor: Redactor,
    calls: Mutex<HashMap<String, UnderWay>>,
}

/// State of a call between its events.
#[derive(Debug)]
struct UnderWay {
    since: Timestamp,
    /// Until the attempt is written.
    input: Option<Value>,
    asked: Option<Timestamp>,
}

impl AuditSink {
    /// Writes to this log.
    pub fn new(log: impl Into<Arc<Log>>) -> Self {
        AuditSink { log: log.into(), redactor: Redactor::default(), calls: Mutex::default() }
    }

    /// The same, and what it writes beside what the gate has redacted is redacted by this one: give it the gate's, if that
    /// knows secrets of yours.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    pub(crate) fn redacted(&self, text: Option<&str>) -> Option<String> {
        text.map(|text| self.redactor.text(text))
    }

    fn bodies(&self, event: &Event) -> Vec<EntryBody> {
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
            EventKind::Gated { decision, rule, reason, risk, assessed, .. } => {
                let input = calls.get_mut(&event.call).and_then(|call| call.input.take()).unwrap_or_default();
                let attempt = ToolAttempt {
                    input,
                    decision: *decision,
                    rule: rule.clone(),
                    rule_place: assessed.rule_place.clone(),
                    reason: reason.clone(),
                    policy: assessed.policy.clone(),
                    classification: Some(assessed.classification.as_value().clone()),
                    description: assessed.description.as_value().clone(),
                    claims: assessed.claims.as_value().clone(),
                    ..self.attempt(&tool, &event.origin)
                };
                let mut bodies = vec![EntryBody::ToolAttempt(Box::new(attempt))];
                if *decision == Decision::Deny {
                    // the risk that the rule states overrides the risk of the effects
                    let said = assessed.classification.as_value().get("risk_level").and_then(Value::as_str);
                    bodies.push(EntryBody::SecurityViolation(SecurityViolation {
                        tool,
                        reason: reason.clone(),
                        risk_level: said.unwrap_or(risk.as_str()).to_owned(),
                        rule: rule.clone(),
                    }));
                }
                bodies
            }
            EventKind::ApprovalRequested { approval, timeout, .. } => {
                if let Some(call) = calls.get_mut(&event.call) {
                    call.asked = Some(event.time);
                }
                vec![EntryBody::ApprovalRequested(ApprovalRequested {
                    tool,
                    approval: approval.clone(),
                    timeout_ms: *timeout,
                })]
            }
            EventKind::ApprovalDecided(decided) => {
                let asked = calls.get(&event.call).and_then(|call| call.asked);
                vec![EntryBody::Approval(Approval {
                    tool,
                    approved: decided.outcome.is_yes(),
                    outcome: decided.outcome,
                    cached: decided.source == AnswerSource::Earlier,
                    approval: decided.approval.clone(),
                    by: Some(self.redactor.text(&decided.by)),
                    took_ms: asked.map(|asked| u64::try_from(asked.until(event.time).as_millis()).unwrap_or(u64::MAX)),
                    reason: self.redacted(decided.reason.as_deref()),
                })]
            }
            EventKind::Allowed { .. } => {
                calls.remove(&event.call);
                Vec::new()
            }
            EventKind::PermitIssued { expires_in } => {
                vec![EntryBody::PermitIssued(PermitIssued { tool, expires_in_ms: *expires_in })]
            }
            EventKind::Denied { refusal } => {
                let unjudged = calls.remove(&event.call).and_then(|call| call.input);
                let reason = self.redactor.text(&refusal.reason);
                // refused before it was judged: the attempt is recorded all the same
                let attempt = unjudged.map(|input| {
                    let attempt = ToolAttempt {
                        input,
                        rule: refusal.rule.clone(),
                        reason: reason.clone(),
                        ..self.attempt(&tool, &event.origin)
                    };
                    EntryBody::ToolAttempt(Box::new(attempt))
                });
                let refused = EntryBody::Refused(Refused {
                    tool,
                    refusal: refusal.kind.as_str().to_owned(),
                    reason: reason.clone(),
                });
                attempt.into_iter().chain([refused]).collect()
            }
            EventKind::Started { sandbox } => {
                vec![EntryBody::Started(Started { tool, sandbox: self.redacted(sandbox.as_deref()) })]
            }
            EventKind::Finished { success, milliseconds, report } => {
                vec![EntryBody::Finished(self.end_of(tool, Some(*success), Some(*milliseconds), report))]
            }
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
        let records: Vec<Record> = self
            .bodies(event)
            .into_iter()
            .map(|body| Record::from_origin(body, &event.origin, &self.redactor).call(&event.call))
            .collect();
        if records.is_empty() {
            return Ok(());
        }
        self.log.append_all(&records).map(|_| ()).map_err(|error| EventError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use callgate::Gate;
    use callgate::call::Call;
    use callgate::policy::Policy;
    use serde_json::json;

    use super::*;
    use crate::settings::LogSettings;
    use callgate::policy::SyncMode;

    fn gate(settings: &LogSettings) -> Gate {
        let log = Log::open(settings.clone()).unwrap();
        let policy = Policy::from_yaml("version: 1\ndefault: allow\n", "all").unwrap();
        Gate::builder().policy(policy).events(AuditSink::new(log)).build()
    }

    fn settings(directory: &tempfile::TempDir) -> LogSettings {
        LogSettings::at(directory.path().join("audit")).sync(SyncMode::Os)
    }

    #[test]
    fn what_cannot_be_logged_does_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let gate = gate(&settings);
        let call = || Call::new("Bash", json!({"command": "ls"})).directory("/tmp");
        let Ok(permit) = gate.check(call()) else { panic!("allowed so far") };
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
        let Err(refusal) = gate.check(call()) else { panic!("the attempt cannot be logged") };
        assert!(refusal.reason.contains("cannot record the event"), "{refusal}");
    }

    #[test]
    fn the_attempt_is_in_the_log_before_the_tool_starts() {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let gate = gate(&settings);
        let Ok(permit) = gate.check(Call::new("Bash", json!({"command": "ls"})).directory("/tmp")) else { panic!() };
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
        assert!(gate.check(Call::new("Read", json!({"file_path": "x"}))).is_err());
        let entries: Vec<_> =
            crate::read::Entries::open(&settings.directory).unwrap().map(|line| line.unwrap().entry.record).collect();
        let EntryBody::ToolAttempt(attempt) = &entries[1].body else { panic!("{entries:?}") };
        assert_eq!((attempt.decision, &attempt.input), (Decision::Deny, &json!({"file_path": "x"})));
        assert_eq!(entries[2].body.kind(), "refused");
        assert_eq!(entries[1].call, entries[2].call);
    }

    fn records(settings: &LogSettings) -> Vec<Record> {
        let entries = crate::read::Entries::open(&settings.directory).unwrap();
        entries.map(|line| line.unwrap().entry.record).collect()
    }

    #[test]
    fn how_a_call_ended_is_told_by_whoever_ran_it() {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let permit = gate(&settings).check(Call::new("Bash", json!({"command": "ls"})).directory("/tmp"));
        let failed = permit.unwrap().run_with(None, |_, report| {
            report.exit(2);
            report.result(b"ls: no such file");
            report.error("exit");
            Err::<(), ()>(())
        });
        assert!(failed.is_err());
        let Some(EntryBody::Finished(finished)) = records(&settings).pop().map(|record| record.body) else { panic!() };
        assert_eq!((finished.success, finished.exit, finished.error.as_deref()), (Some(false), Some(2), Some("exit")));
        let expected = callgate::event::ResultDigest::of(b"ls: no such file");
        assert_eq!(finished.result, Some(expected));
        assert!(finished.duration_ms.is_some());
    }

    #[test]
    fn what_holds_a_call_is_told_when_it_starts() {
        struct Cage;
        impl callgate::permit::Sandbox for Cage {
            fn enforces(&self) -> String {
                "no network".to_owned()
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let permit = gate(&settings).check(Call::new("Bash", json!({"command": "ls"})).directory("/tmp"));
        permit.unwrap().run_with(Some(&Cage), |_, _| Ok::<(), ()>(())).unwrap();
        let started = records(&settings).into_iter().find_map(|record| match record.body {
            EntryBody::Started(started) => started.sandbox,
            _ => None,
        });
        assert_eq!(started.as_deref(), Some("no network"));
    }

    #[test]
    fn an_approval_carries_its_id_who_answered_and_how_long_it_took_and_an_earlier_answer_is_cached() {
        use callgate::approvals::{Answer, ApprovalDecision, Approvals, Approver, AskError, Question};
        struct Person;
        impl Approver for Person {
            fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
                Ok(Answer::new(ApprovalDecision::ApprovedForSession)
                    .by("ada")
                    .because("go on, token ghp_012345678901234567890123456789012345"))
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory);
        let store = Arc::new(callgate::store::MemoryStore::new());
        let policy = Policy::from_yaml("version: 1\ndefault: ask\n", "asks").unwrap();
        let gate = Gate::builder()
            .policy(policy)
            .approvals(Approvals::new(store, Arc::new(Person)))
            .events(AuditSink::new(Log::open(settings.clone()).unwrap()))
            .build();
        for _ in 0..2 {
            let call = Call::new("Bash", json!({"command": "ls"})).session("s").directory("/tmp");
            gate.check(call).unwrap().run(|_| Ok::<(), ()>(())).unwrap();
        }
        let records = records(&settings);
        let asked = records.iter().find_map(|record| match &record.body {
            EntryBody::ApprovalRequested(asked) => Some(asked),
            _ => None,
        });
        let asked = asked.unwrap();
        assert!(asked.approval.as_deref().is_some_and(|id| id.len() == 16) && asked.timeout_ms.is_some());
        let approvals: Vec<&Approval> = records
            .iter()
            .filter_map(|record| match &record.body {
                EntryBody::Approval(approval) => Some(approval),
                _ => None,
            })
            .collect();
        let [first, second] = approvals.as_slice() else { panic!("{approvals:?}") };
        assert_eq!((first.approved, first.cached, first.by.as_deref()), (true, false, Some("ada")));
        assert_eq!(first.approval, asked.approval);
        assert!(first.took_ms.is_some());
        assert_eq!(first.reason.as_deref(), Some("go on, token [redacted: GitHub token]"));
        assert_eq!((second.approved, second.cached, second.approval.as_deref()), (true, true, None));
        assert_eq!(second.took_ms, None);

        let lines = crate::read::Entries::open(&settings.directory).unwrap().map(|line| line.unwrap().entry);
        let steps: Vec<_> = lines.filter_map(|entry| crate::read::timeline(&entry)).collect();
        use crate::read::StepName::*;
        let names: Vec<_> = steps.iter().map(|step| step.step).collect();
        let whole = [ToolCallRequested, ApprovalRequested, ApprovalDecided, ToolCallStarted, ToolCallFinished];
        assert_eq!(names[..5], whole);
        assert_eq!(names[5..], [ToolCallRequested, ApprovalDecided, ToolCallStarted, ToolCallFinished]);
        assert!(steps[..5].iter().all(|step| step.call == steps[0].call), "one id through all entries of a call");
    }
}
