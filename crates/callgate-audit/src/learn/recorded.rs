//! A recorded call, and how a policy judges it today.

use std::path::PathBuf;

use callgate::SandboxSupport;
use callgate::assess::{Assessment, Assessor, MIXED_RULE};
use callgate_model::call::{Call, Origin, Tool};
use callgate_model::claims::Claims;
use callgate_model::decision::Decision;
use callgate_model::description::Description;
use callgate_model::effect::{Action, Coverage, Mark};
use callgate_model::refusal::Refusal;

use crate::entry::{EntryBody, LogEntry};
use crate::line::CUT;

/// A call as the log has it: enough to be judged again.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// The number of its entry.
    pub seq: u64,
    /// The call, with its redacted input.
    pub call: Call,
    /// What it would do, as analyzed then.
    pub description: Description,
    /// The claims about its tool.
    pub claims: Claims,
    /// The decision then.
    pub decision: Decision,
    /// By which rule.
    pub rule: Option<String>,
    /// In one line.
    pub shown: String,
    /// Whether nothing of it was redacted or truncated, so that judging it again is exact.
    pub exact: bool,
}

impl RecordedCall {
    /// The call that an entry is about; `None` if it is about none, or its description was left out for its size.
    pub fn of(entry: &LogEntry) -> Option<Self> {
        let EntryBody::ToolAttempt(attempt) = &entry.record.body else { return None };
        let description: Description = serde_json::from_value(attempt.description.clone()).ok()?;
        let record = &entry.record;
        let origin = Origin {
            agent: record.agent.clone(),
            session: record.session.clone(),
            chat: record.chat.clone(),
            scope: record.scope.clone(),
            directory: attempt.directory.as_ref().map(PathBuf::from),
            workspace: attempt.workspace.as_ref().map(PathBuf::from),
            shell: record.shell.clone(),
        };
        let text = attempt.description.to_string();
        Some(RecordedCall {
            seq: entry.seq,
            call: Call::new(Tool::parse(&attempt.tool), attempt.input.clone()).origin(origin),
            description,
            claims: serde_json::from_value(attempt.claims.clone()).unwrap_or_default(),
            decision: attempt.decision,
            rule: attempt.rule.clone(),
            shown: format!("{}: {}", attempt.tool, crate::export::summary(entry)),
            exact: entry.truncated.is_empty() && !text.contains("[redacted: ") && !text.contains(CUT),
        })
    }

    /// Assesses the call again: its effects as they were recorded, files, boundary and policy as they are now. A decision that only a
    /// sandbox makes possible says that there was one.
    pub fn assess(&self, assessor: &Assessor) -> Result<Assessment, Refusal> {
        let contained = self.decision == Decision::Contain || self.rule.as_deref() == Some(MIXED_RULE);
        let sandbox = if contained { SandboxSupport::Available } else { SandboxSupport::Missing };
        assessor.reassess(&self.call, self.description.clone().into(), &self.claims, sandbox)
    }

    /// Whether a rule may be proposed for it: everything is known of it, and nothing of it is secret or privileged.
    pub fn is_plain(&self) -> bool {
        let effects = || self.description.parts.iter().flat_map(|part| &part.effects).map(|placed| &placed.effect);
        self.exact
            && self.description.coverage == Coverage::Complete
            && !self.call.input.to_string().contains("[redacted: ")
            && effects().all(|effect| !matches!(effect.action, Action::Privilege | Action::Opaque))
            && effects().all(|effect| {
                !effect
                    .marks
                    .iter()
                    .any(|mark| matches!(mark, Mark::Credentials | Mark::Destructive | Mark::Environment))
            })
    }
}

/// The decision on a call and the rule that made it. A call that cannot be assessed is denied.
pub(super) fn decided(assessed: Result<Assessment, Refusal>) -> (Decision, Option<String>) {
    match assessed {
        Ok(assessment) => (assessment.ruling().decision, assessment.ruling().rule.clone()),
        Err(refusal) => (Decision::Deny, refusal.rule),
    }
}
