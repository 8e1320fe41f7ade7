//! What a check found.

use std::fmt;

use serde::Serialize;

/// How many findings are kept; all are counted.
const KEPT: usize = 1_000;

/// The whole result, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Everything is there and as it was written.
    #[default]
    Intact,
    /// A crash left traces; nothing indicates tampering.
    CrashTraces,
    /// The log was changed.
    Tampered,
}

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The last line was not finished.
    TornLine,
    /// Entries follow the last seal: a writer was killed, or the entries were added.
    Unsealed,
    /// Entries were written and not yet on the disk when the machine stopped.
    LostInPowerFailure,
    /// Half of the head was not finished.
    TornHead,
    /// A redaction is announced but the entry is still present.
    RedactionUnfinished,
    /// An entry is not as it was written.
    Changed,
    /// Entries are missing.
    Removed,
    /// An entry is there that does not belong.
    Inserted,
    /// An entry is in the wrong place or present twice.
    Reordered,
    /// The end was cut off.
    Truncated,
    /// A segment is missing.
    SegmentMissing,
    /// A segment's beginning does not fit the log.
    SegmentWrong,
    /// The head was changed.
    HeadChanged,
    /// The head is missing.
    HeadMissing,
    /// A checkpoint or tombstone is not signed by the key it should be.
    BadSignature,
    /// A tombstone that no entry announces.
    TombstoneUnannounced,
    /// The log does not fit a checkpoint that was kept elsewhere.
    CheckpointMismatch,
    /// A checkpoint that was kept elsewhere is not valid itself.
    ForeignCheckpoint,
}

impl FindingKind {
    /// How bad it is.
    pub fn status(self) -> Status {
        match self {
            FindingKind::TornLine
            | FindingKind::Unsealed
            | FindingKind::LostInPowerFailure
            | FindingKind::TornHead
            | FindingKind::RedactionUnfinished => Status::CrashTraces,
            _ => Status::Tampered,
        }
    }
}

/// Where something was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LogPosition {
    /// The number of the segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<u64>,
    /// The line in the segment, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The byte in the (plain) segment at which that line starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The number of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl LogPosition {
    pub(super) fn segment(number: u64) -> Self {
        LogPosition { segment: Some(number), ..LogPosition::default() }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (word, number) in [("segment", self.segment), ("line", self.line), ("entry", self.seq)] {
            if let Some(number) = number {
                write!(formatter, "{separator}{word} {number}")?;
                separator = ", ";
            }
        }
        if separator.is_empty() {
            formatter.write_str("the log")?;
        }
        Ok(())
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogFinding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// Where.
    pub place: LogPosition,
    /// What, in words.
    pub what: String,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The log's id.
    pub log: Option<String>,
    /// How many entries there are.
    pub entries: u64,
    /// How many segments.
    pub segments: u64,
    /// How many checkpoints with a valid signature.
    pub checkpoints: u64,
    /// The number of the last of these.
    pub last_checkpoint: Option<u64>,
    /// How many checkpoints kept elsewhere were found to fit.
    pub outside_checkpoints: u64,
    /// How many entries were redacted.
    pub tombstones: u64,
    /// The last entry's number.
    pub last: u64,
    /// Whether the seal of the head was checked; that needs the secret key.
    pub head_checked: bool,
    /// The whole result.
    pub status: Status,
    /// What was found, the first thousand.
    pub findings: Vec<LogFinding>,
    /// How many were found.
    pub found: u64,
}

impl VerifyReport {
    /// Whether everything is there and as it was written.
    pub fn is_intact(&self) -> bool {
        self.status == Status::Intact
    }

    pub(super) fn find(&mut self, kind: FindingKind, place: LogPosition, what: impl Into<String>) {
        self.found = self.found.saturating_add(1);
        self.status = self.status.max(kind.status());
        if self.findings.len() < KEPT {
            self.findings.push(LogFinding { kind, place, what: what.into() });
        }
    }
}
