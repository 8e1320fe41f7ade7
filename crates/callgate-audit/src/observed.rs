//! Entries about calls that callgate sees without running them: hooks after a tool and at the beginning and end of a session.

use callgate::call::{Call, Origin, Tool};
use callgate::describe::Registry;
use callgate::event::RunReport;
use callgate::fence::HeldBack;
use callgate_model::decision::OutcomeKind;
use callgate_model::refusal::RefusalKind;
use serde_json::Value;

use crate::entry::{
    Approval, EntryBody, Finished, RanWithoutVerdict, Record, Refused, SecurityViolation, SessionEnded, SessionStarted,
};
use crate::error::AuditError;
use crate::log::Receipt;
use crate::sink::AuditSink;

/// What a hook knows of how a tool ended.
#[derive(Debug, Clone, Default)]
pub struct ObservedEnd {
    /// Whether the tool succeeded, if that is known.
    pub success: Option<bool>,
    /// How long it took, in milliseconds.
    pub milliseconds: Option<u64>,
    /// Exit code, digest of the result, kind of the error.
    pub report: RunReport,
}

/// What a hook knows of the answer to a question that was left to the agent's own prompt.
#[derive(Debug, Clone)]
pub struct ObservedAnswer<'a> {
    /// The id of the question.
    pub approval: &'a str,
    /// Yes, no, or that nobody was asked.
    pub outcome: OutcomeKind,
    /// Who answered.
    pub by: &'a str,
    /// How the answer is known.
    pub reason: &'a str,
}

/// What hooks record. Everything is redacted.
///
/// ```
/// use callgate::call::Call;
/// use callgate_audit::{AuditSink, Log, ObservedEnd, LogSettings, read::Entries};
///
/// let directory = tempfile::tempdir()?;
/// let settings = LogSettings::at(directory.path().join("audit"));
/// let sink = AuditSink::new(Log::open_briefly(settings.clone())?);
/// let call = Call::new("Bash", serde_json::json!({"command": "ls"})).agent("claude").session("s-1");
/// sink.session_started(&call.origin, Some("startup"), None)?;
/// // a call that the gate judged under the id c-1 has ended; another one was never judged
/// sink.finished("c-1", &call.tool, &call.origin, ObservedEnd { success: Some(true), ..ObservedEnd::default() })?;
/// sink.ran_without_verdict(&call, None, "the hook before the tool was not called")?;
/// sink.session_ended(&call.origin, Some("logout"))?;
/// let kinds: Vec<_> = Entries::open(&settings.directory)?
///     .map(|line| line.map(|line| line.entry.record.body.kind()))
///     .collect::<Result<_, _>>()?;
/// assert_eq!(kinds, ["segment", "session_started", "finished", "ran_without_verdict", "session_ended", "checkpoint"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AuditSink {
    /// Records that an agent's session began with the gate in front of it. `policy` is the version of the policy that applies.
    pub fn session_started(
        &self,
        origin: &Origin,
        source: Option<&str>,
        policy: Option<&str>,
    ) -> Result<Receipt, AuditError> {
        let directory = origin.directory.as_ref().or(origin.workspace.as_ref());
        let body = SessionStarted {
            source: self.redacted(source),
            policy: policy.map(str::to_owned),
            directory: directory.map(|directory| self.redactor.text(&directory.to_string_lossy())),
            writer: crate::WRITER.to_owned(),
        };
        self.append(EntryBody::SessionStarted(body), origin, None)
    }

    /// Records that the session ended, and signs a checkpoint: short-lived writers rarely sign one otherwise.
    pub fn session_ended(&self, origin: &Origin, reason: Option<&str>) -> Result<Receipt, AuditError> {
        let body = SessionEnded { reason: self.redacted(reason) };
        let receipt = self.append(EntryBody::SessionEnded(body), origin, None)?;
        self.log().checkpoint()?;
        Ok(receipt)
    }

    /// Records the end of a call that the gate allowed under this id.
    pub fn finished(&self, call: &str, tool: &Tool, origin: &Origin, end: ObservedEnd) -> Result<Receipt, AuditError> {
        let tool = self.redactor.text(&tool.to_string());
        let body = self.end_of(tool, end.success, end.milliseconds, &end.report);
        self.append(EntryBody::Finished(body), origin, Some(call))
    }

    /// Records the answer to a question that was left to the agent's own prompt, about the call with this id. When it was given
    /// is not known. A no is also the end of the call.
    pub fn answered(
        &self,
        call: &str,
        tool: &str,
        origin: &Origin,
        answer: &ObservedAnswer<'_>,
    ) -> Result<Receipt, AuditError> {
        let tool = self.redactor.text(tool);
        let body = Approval {
            tool: tool.clone(),
            approved: answer.outcome.is_yes(),
            outcome: answer.outcome,
            cached: false,
            approval: Some(answer.approval.to_owned()),
            by: self.redacted(Some(answer.by)),
            took_ms: None,
            reason: self.redacted(Some(answer.reason)),
        };
        let receipt = self.append(EntryBody::Approval(body), origin, Some(call))?;
        if answer.outcome != OutcomeKind::Denied {
            return Ok(receipt);
        }
        let refusal = RefusalKind::Permission.as_str().to_owned();
        let body = Refused { tool, refusal, reason: self.redactor.text(answer.reason) };
        self.append(EntryBody::Refused(body), origin, Some(call))
    }

    /// Records a tool that ran without a verdict: a hook was lost, or the agent did not wait. `id` is the agent's own name for
    /// the call, if it has one.
    pub fn ran_without_verdict(&self, call: &Call, id: Option<&str>, reason: &str) -> Result<Receipt, AuditError> {
        // An input that cannot be redacted is left out; the entry is written all the same.
        let measured = callgate::json::measure(&call.input).ok();
        let input = measured
            .and_then(|()| Registry::default().for_event(call, &self.redactor).ok())
            .map_or(Value::Null, |redacted| redacted.as_value().clone());
        let body = RanWithoutVerdict {
            tool: self.redactor.text(&call.tool.to_string()),
            input,
            reason: self.redactor.text(reason),
        };
        self.append(EntryBody::RanWithoutVerdict(body), &call.origin, id)
    }

    /// Records an attempt to run a call other than as it was permitted, and that it was refused.
    pub fn refused_permit(
        &self,
        id: Option<&str>,
        tool: &Tool,
        origin: &Origin,
        reason: &str,
    ) -> Result<(), AuditError> {
        let (tool, reason) = (self.redactor.text(&tool.to_string()), self.redactor.text(reason));
        self.violation(id, tool.clone(), origin, reason.clone())?;
        let refusal = RefusalKind::Permission.as_str().to_owned();
        self.append(EntryBody::Refused(Refused { tool, refusal, reason }), origin, id).map(drop)
    }

    /// Records that a tool has ended whose permit nobody presented: it ran as something else than what was permitted.
    pub fn unspent_permit(&self, id: Option<&str>, call: &Call) -> Result<Receipt, AuditError> {
        let reason =
            "the tool ended, and nobody used its permit: another command ran, or callgate was kept from running it";
        self.violation(id, self.redactor.text(&call.tool.to_string()), &call.origin, reason.to_owned())?;
        self.ran_without_verdict(call, id, reason)
    }

    fn violation(&self, id: Option<&str>, tool: String, origin: &Origin, reason: String) -> Result<(), AuditError> {
        let violation = SecurityViolation { tool, reason, risk_level: "high".to_owned(), rule: None };
        self.append(EntryBody::SecurityViolation(violation), origin, id).map(drop)
    }

    pub(crate) fn end_of(
        &self,
        tool: String,
        success: Option<bool>,
        duration_ms: Option<u64>,
        report: &RunReport,
    ) -> Finished {
        let error = self.redacted(report.error.as_deref());
        let held_back =
            report.held_back.iter().map(|held| HeldBack { target: self.redactor.text(&held.target), ..held.clone() });
        let (held_back, result) = (held_back.collect(), report.result.clone());
        Finished { tool, success, exit: report.exit, duration_ms, result, error, held_back }
    }

    fn append(&self, body: EntryBody, origin: &Origin, call: Option<&str>) -> Result<Receipt, AuditError> {
        let record = Record::from_origin(body, origin, &self.redactor);
        self.log().append(&Record { call: self.redacted(call), ..record })
    }
}
