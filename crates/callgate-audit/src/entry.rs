//! The entries of the log. `docs/audit-log.md` describes the schema.

use callgate::call::Origin;
pub use callgate::event::ResultDigest;
use callgate::fence::HeldBack;
use callgate::policy::Decision;
use callgate::redact::Redactor;
use callgate_model::clock::Timestamp;
use callgate_model::decision::OutcomeKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::Hash;

/// The version of the schema.
pub const VERSION: u32 = 1;

/// One entry as it is read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The version of the schema.
    pub v: u32,
    /// Its number: one more than that of the entry before, from 1.
    pub seq: u64,
    /// The hash of the entry before.
    pub prev: Hash,
    /// When it was written: ISO 8601, UTC.
    #[serde(with = "callgate_model::clock::rfc3339")]
    pub time: Timestamp,
    /// What it says.
    #[serde(flatten)]
    pub record: Record,
    /// Which of its texts were cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<Truncated>,
}

/// A text that was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// A JSON pointer into the entry.
    pub at: String,
    /// How many characters it had.
    pub characters: u64,
    /// The SHA-256 of the whole text (of its redacted form).
    pub sha256: Hash,
}

/// A body and the call it belongs to, before it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What happened.
    #[serde(flatten)]
    pub body: EntryBody,
    /// The call it belongs to: one id through all entries of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The shell that runs commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

impl Record {
    /// A record about no call in particular.
    pub fn new(body: EntryBody) -> Self {
        Record { body, call: None, session: None, agent: None, chat: None, scope: None, shell: None }
    }

    /// A record about a call or session from there.
    pub fn from_origin(body: EntryBody, origin: &Origin, redactor: &Redactor) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(|text| redactor.text(text));
        Record {
            body,
            call: None,
            session: text(&origin.session),
            agent: text(&origin.agent),
            chat: text(&origin.chat),
            scope: text(&origin.scope),
            shell: text(&origin.shell),
        }
    }

    /// About this call.
    #[must_use]
    pub fn call(mut self, call: impl Into<String>) -> Self {
        self.call = Some(call.into());
        self
    }

    /// In this session.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }
}

/// Defines the kinds of entries: what an entry says, by the name of its kind.
macro_rules! entry_body {
    ($($(#[$about:meta])* $name:literal $variant:ident($body:ty),)*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum EntryBody {
            $($(#[$about])* #[serde(rename = $name)] $variant($body),)*
        }

        impl EntryBody {
            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(EntryBody::$variant(_) => $name,)*
                }
            }
        }
    };
}

entry_body! {
    /// A call was judged.
    "tool_attempt" ToolAttempt(Box<ToolAttempt>),
    /// An approver was asked.
    "approval_requested" ApprovalRequested(ApprovalRequested),
    /// An answer, or that there was none.
    "approval" Approval(Approval),
    /// A call broke a rule or left the boundary.
    "security_violation" SecurityViolation(SecurityViolation),
    /// A call was refused in the end.
    "refused" Refused(Refused),
    /// A one-time permit was issued, with which the call runs contained.
    "permit_issued" PermitIssued(PermitIssued),
    /// The tool was started.
    "started" Started(Started),
    /// The tool has ended.
    "finished" Finished(Finished),
    /// A tool ran without a verdict.
    "ran_without_verdict" RanWithoutVerdict(RanWithoutVerdict),
    /// An agent's session began, with the gate in front of it.
    "session_started" SessionStarted(SessionStarted),
    /// It ended.
    "session_ended" SessionEnded(SessionEnded),
    /// A signed statement of how far the log goes.
    "checkpoint" Checkpoint(Checkpoint),
    /// Replaces an entry that was redacted on purpose.
    "tombstone" Tombstone(Tombstone),
    /// Announces a redaction and the hash of its tombstone.
    "redaction" Redaction(Redaction),
    /// A segment of the log begins.
    "segment" Segment(SegmentStart),
    /// A writer repaired what another one left unfinished.
    "recovered" Recovered(Recovered),
    /// A checkpoint could not be sent.
    "delivery_failed" DeliveryFailed(DeliveryFailed),
}

impl EntryBody {
    /// The tool it is about.
    pub fn tool(&self) -> Option<&str> {
        match self {
            EntryBody::ToolAttempt(attempt) => Some(&attempt.tool),
            EntryBody::ApprovalRequested(ApprovalRequested { tool, .. })
            | EntryBody::Approval(Approval { tool, .. })
            | EntryBody::SecurityViolation(SecurityViolation { tool, .. })
            | EntryBody::Refused(Refused { tool, .. })
            | EntryBody::PermitIssued(PermitIssued { tool, .. })
            | EntryBody::Started(Started { tool, .. })
            | EntryBody::Finished(Finished { tool, .. })
            | EntryBody::RanWithoutVerdict(RanWithoutVerdict { tool, .. }) => Some(tool),
            _ => None,
        }
    }

    /// Whether it is about the log itself and not about a call or a session.
    pub fn is_housekeeping(&self) -> bool {
        matches!(
            self,
            EntryBody::Checkpoint(_)
                | EntryBody::Tombstone(_)
                | EntryBody::Redaction(_)
                | EntryBody::Segment(_)
                | EntryBody::Recovered(_)
                | EntryBody::DeliveryFailed(_)
        )
    }
}

/// A judged call: what it would do and what the policy decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolAttempt {
    /// The tool, with its server (`mcp__server__tool`).
    pub tool: String,
    /// Its input, redacted.
    pub input: Value,
    /// What the policy says.
    pub decision: Decision,
    /// The rule that decided; none if the default did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file and line of that rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_place: Option<String>,
    /// Why, in words.
    pub reason: String,
    /// The version of the policy: a digest of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Category, risk level and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<Value>,
    /// What the call would do, redacted: category, parts with their words and effects, coverage.
    pub description: Value,
    /// What the registration of the tool claims about it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub claims: Value,
    /// The call's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The project the agent works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Somebody was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    /// The tool.
    pub tool: String,
    /// The approval's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// How long an answer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Reads and writes an outcome as the log names it: `failed` where events say `unanswerable`, else the same names.
pub(crate) mod outcome {
    use callgate_model::decision::OutcomeKind;
    use serde::de::value::{Error, StrDeserializer};
    use serde::{Deserialize, Deserializer, Serializer};

    const FAILED: &str = "failed";

    pub(crate) fn name(outcome: OutcomeKind) -> &'static str {
        match outcome {
            OutcomeKind::Unanswerable => FAILED,
            other => other.as_str(),
        }
    }

    pub(crate) fn serialize<S: Serializer>(outcome: &OutcomeKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name(*outcome))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OutcomeKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == FAILED {
            return Ok(OutcomeKind::Unanswerable);
        }
        OutcomeKind::deserialize(StrDeserializer::<Error>::new(&name)).map_err(serde::de::Error::custom)
    }
}

/// An answer, or that there was none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The tool.
    pub tool: String,
    /// Whether the call may go on.
    pub approved: bool,
    /// The exact outcome of the question.
    #[serde(with = "outcome")]
    pub outcome: OutcomeKind,
    /// Whether an earlier answer was reused without asking.
    #[serde(default)]
    pub cached: bool,
    /// The approval's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Who or what answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How long the answer took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The reason given with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A call broke a rule or left the boundary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecurityViolation {
    /// The tool.
    pub tool: String,
    /// What was wrong.
    pub reason: String,
    /// `low`, `medium`, `high`, `critical`.
    pub risk_level: String,
    /// The rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// A call was refused in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// The tool.
    pub tool: String,
    /// The stable kind of the refusal.
    pub refusal: String,
    /// Why, in words.
    pub reason: String,
}

/// A one-time permit was issued for a call, which runs contained in another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermitIssued {
    /// The tool.
    pub tool: String,
    /// How long the permit is good for.
    pub expires_in_ms: u64,
}

/// The tool was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The tool.
    pub tool: String,
    /// What held it, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// The tool has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The tool.
    pub tool: String,
    /// Whether it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The program's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The result by size and digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultDigest>,
    /// The stable kind of the error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a contained call wanted and did not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<HeldBack>,
}

/// A tool that ran without a verdict: a hook was lost, or an agent ignored it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RanWithoutVerdict {
    /// The tool.
    pub tool: String,
    /// Its input as far as it is known, redacted.
    #[serde(default)]
    pub input: Value,
    /// How it was noticed.
    pub reason: String,
}

/// An agent's session began behind the gate: a receipt that the hooks are active, not only installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// What began it, as the agent says: `startup`, `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The version of the policy that applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The session's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The program that wrote this.
    pub writer: String,
}

/// An agent's session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// Why, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A signed statement of how far the log goes: everything up to `prev`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The log's id.
    pub log: String,
    /// The public key, hexadecimal.
    pub key: String,
    /// Ed25519 over the statement (see `docs/audit-log.md`), hexadecimal.
    pub signature: String,
}

/// Replaces an entry that was redacted on purpose. It keeps the entry's number and predecessor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The log's id.
    pub log: String,
    /// The hash of the entry that stood here; the next entry's `prev`.
    pub original: Hash,
    /// The reason for the redaction.
    pub reason: String,
    /// The person who redacted it.
    pub by: String,
    /// The public key, hexadecimal.
    pub key: String,
    /// Ed25519 over the statement, hexadecimal.
    pub signature: String,
}

/// An entry was redacted on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// The number of the entry.
    pub entry: u64,
    /// The hash of the tombstone line.
    pub tombstone: Hash,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
}

/// A segment of the log begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentStart {
    /// The log's id, the same in all its segments.
    pub log: String,
    /// The segment's number, from 1.
    pub segment: u64,
    /// The public key that checkpoints are signed with, hexadecimal.
    pub key: String,
    /// Which program writes.
    pub writer: String,
    /// The log that was set aside before this one, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
}

/// A writer repaired what another one left unfinished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// How many entries were whole but not sealed.
    #[serde(default)]
    pub adopted: u64,
    /// How many bytes of a torn line were cut away.
    #[serde(default)]
    pub cut_bytes: u64,
    /// The SHA-256 of these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_sha256: Option<Hash>,
    /// How many entries were written and did not survive a crash of the machine.
    #[serde(default)]
    pub lost: u64,
}

/// A checkpoint could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryFailed {
    /// The number of the checkpoint.
    pub checkpoint: u64,
    /// Where it should have gone.
    pub to: String,
    /// What went wrong.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_outcomes_in_the_log_are_stable() {
        use OutcomeKind::*;
        let all = [Approved, ApprovedForSession, Denied, Abort, TimedOut, Cancelled, Unanswerable];
        let names = ["approved", "approved_for_session", "denied", "abort", "timed_out", "cancelled", "failed"];
        for (outcome, name) in all.into_iter().zip(names) {
            let text =
                format!(r#"{{"tool":"Bash","approved":{},"outcome":"{name}","cached":false}}"#, outcome.is_yes());
            let approval: Approval = serde_json::from_str(&text).unwrap();
            assert_eq!((approval.outcome, serde_json::to_string(&approval).unwrap()), (outcome, text));
        }
        assert!(serde_json::from_str::<Approval>(r#"{"tool":"","approved":true,"outcome":"perhaps"}"#).is_err());
    }
}
