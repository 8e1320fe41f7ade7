//! What those tell the log who see calls without running them: hooks after a tool, at the beginning and at the end of a session.

use std::sync::Arc;

use callgate::call::{Call, Origin, Tool};
use callgate::describe::Registry;
use callgate::event::RunReport;
use callgate::redact::Redactor;
use serde_json::Value;

use crate::entry::{Body, Finished, RanWithoutVerdict, Record, SessionEnded, SessionStarted};
use crate::error::AuditError;
use crate::log::{Log, Receipt};

/// What is known of how a tool ended that somebody else ran.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Whether it did what it should, if that is known.
    pub success: Option<bool>,
    /// How long it took, in milliseconds.
    pub milliseconds: Option<u64>,
    /// Exit code, digest of the result, kind of the error.
    pub report: RunReport,
}

/// Writes what a hook sees. Everything is redacted on the way.
///
/// ```
/// use callgate::call::Call;
/// use callgate_audit::{Ended, Log, Settings, Witness, read::Entries};
///
/// let directory = tempfile::tempdir()?;
/// let settings = Settings::at(directory.path().join("audit"));
/// let witness = Witness::new(Log::open_briefly(settings.clone())?);
/// let call = Call::new("Bash", serde_json::json!({"command": "ls"})).agent("claude").session("s-1");
/// witness.session_started(&call.origin, Some("startup"), None)?;
/// // a call that the gate judged under the id c-1 has ended; another one was never judged
/// witness.finished("c-1", &call.tool, &call.origin, Ended { success: Some(true), ..Ended::default() })?;
/// witness.ran_without_verdict(&call, None, "the hook before the tool was not called")?;
/// witness.session_ended(&call.origin, Some("logout"))?;
/// let kinds: Vec<_> = Entries::open(&settings.directory)?
///     .map(|line| line.map(|line| line.entry.record.body.kind()))
///     .collect::<Result<_, _>>()?;
/// assert_eq!(kinds, ["segment", "session_started", "finished", "ran_without_verdict", "session_ended", "checkpoint"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Witness {
    log: Arc<Log>,
    redactor: Redactor,
}

impl Witness {
    /// Writes to this log.
    pub fn new(log: impl Into<Arc<Log>>) -> Self {
        Witness { log: log.into(), redactor: Redactor::default() }
    }

    /// The same with this redactor.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// An agent's session has begun, and the gate stands in front of it. `policy` is the version of the policy that applies.
    pub fn session_started(
        &self,
        origin: &Origin,
        source: Option<&str>,
        policy: Option<&str>,
    ) -> Result<Receipt, AuditError> {
        let directory = origin.directory.as_ref().or(origin.workspace.as_ref());
        let body = SessionStarted {
            source: source.map(|source| self.redactor.text(source)),
            policy: policy.map(str::to_owned),
            directory: directory.map(|directory| self.redactor.text(&directory.to_string_lossy())),
            writer: crate::WRITER.to_owned(),
        };
        self.append(Body::SessionStarted(body), origin, None)
    }

    /// It has ended. A signed checkpoint follows: short-lived writers sign rarely by themselves.
    pub fn session_ended(&self, origin: &Origin, reason: Option<&str>) -> Result<Receipt, AuditError> {
        let body = SessionEnded { reason: reason.map(|reason| self.redactor.text(reason)) };
        let receipt = self.append(Body::SessionEnded(body), origin, None)?;
        self.log.checkpoint()?;
        Ok(receipt)
    }

    /// A call that the gate let pass under this id has ended.
    pub fn finished(&self, call: &str, tool: &Tool, origin: &Origin, ended: Ended) -> Result<Receipt, AuditError> {
        let Ended { success, milliseconds, report } = ended;
        let body = Finished {
            tool: self.redactor.text(&tool.to_string()),
            success,
            exit: report.exit,
            duration_ms: milliseconds,
            result: report.result,
            error: report.error.as_deref().map(|error| self.redactor.text(error)),
        };
        self.append(Body::Finished(body), origin, Some(call))
    }

    /// A tool ran, and there is no verdict for it: a hook was lost, or the agent did not wait. `id` is the agent's own name for the
    /// call, if it has one.
    pub fn ran_without_verdict(&self, call: &Call, id: Option<&str>, reason: &str) -> Result<Receipt, AuditError> {
        // What cannot be looked through is not shown; that it ran is told all the same.
        let measured = callgate::json::measure(&call.input).ok();
        let input = measured
            .and_then(|()| Registry::default().for_event(call, &self.redactor).ok())
            .map_or(Value::Null, |redacted| redacted.as_value().clone());
        let body = RanWithoutVerdict {
            tool: self.redactor.text(&call.tool.to_string()),
            input,
            reason: self.redactor.text(reason),
        };
        self.append(Body::RanWithoutVerdict(body), &call.origin, id)
    }

    fn append(&self, body: Body, origin: &Origin, call: Option<&str>) -> Result<Receipt, AuditError> {
        let record = Record::from_origin(body, origin, &self.redactor);
        self.log.append(&match call {
            Some(call) => record.call(self.redactor.text(call)),
            None => record,
        })
    }
}
