//! The life of calls as a timeline of stable names.

use callgate_model::clock::Timestamp;
use serde::Serialize;

use crate::entry::{EntryBody, LogEntry};

/// The steps of a call, in the order in which they follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepName {
    /// The call arrived and was judged.
    ToolCallRequested,
    /// An approver was asked.
    ApprovalRequested,
    /// An approver answered, the question timed out, or an earlier answer was reused.
    ApprovalDecided,
    /// The tool was started.
    ToolCallStarted,
    /// The tool has ended, was refused, or ran without having been judged.
    ToolCallFinished,
}

/// One step of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineStep {
    /// Which.
    pub step: StepName,
    /// Of which call.
    pub call: Option<String>,
    /// When.
    #[serde(with = "callgate_model::clock::rfc3339")]
    pub time: Timestamp,
    /// The number of its entry.
    pub seq: u64,
    /// How an approval was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
}

/// The step that an entry is, if it is one.
pub fn timeline(entry: &LogEntry) -> Option<TimelineStep> {
    let mut decision = None;
    let step = match &entry.record.body {
        EntryBody::ToolAttempt(_) => StepName::ToolCallRequested,
        EntryBody::ApprovalRequested(_) => StepName::ApprovalRequested,
        EntryBody::Approval(approval) => {
            decision = Some(crate::entry::outcome::name(approval.outcome));
            StepName::ApprovalDecided
        }
        EntryBody::Started(_) => StepName::ToolCallStarted,
        EntryBody::Finished(_) | EntryBody::Refused(_) | EntryBody::RanWithoutVerdict(_) => StepName::ToolCallFinished,
        _ => return None,
    };
    Some(TimelineStep { step, call: entry.record.call.clone(), time: entry.time, seq: entry.seq, decision })
}
