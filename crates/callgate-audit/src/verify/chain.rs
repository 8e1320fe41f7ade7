//! Following the chain through the lines of all segments.

use std::collections::BTreeMap;

use super::report::{FindingKind, LogPosition, VerifyReport};
use crate::checkpoint::{SignedCheckpoint, tombstone_holds};
use crate::entry::{EntryBody, LogEntry};
use crate::hash::Hash;
use crate::head::{Head, Point};
use crate::line::{Link, is_torn_start};

/// The previous entry: its number and its actual or expected hash.
#[derive(Debug, Clone, Copy)]
struct Before {
    seq: u64,
    /// `None` after something that could not be read.
    hash: Option<Hash>,
    place: LogPosition,
}

pub(super) struct ChainCheck<'a> {
    public_keys: Vec<String>,
    external: BTreeMap<u64, Vec<&'a SignedCheckpoint>>,
    head: Option<Head>,
    before: Before,
    /// An entry whose predecessor does not fit: whether that one or this one was changed shows with the next line.
    doubt: Option<LogPosition>,
    segment: u64,
    line: u64,
    first_in_segment: bool,
    log: Option<String>,
    tombstones: BTreeMap<u64, (Hash, LogPosition)>,
    announced: BTreeMap<u64, Vec<Hash>>,
    /// Whether the points of the head were met, with the right hash.
    met_written: Option<bool>,
    met_durable: Option<bool>,
}

impl<'a> ChainCheck<'a> {
    pub(super) fn new(
        public_keys: Vec<String>,
        external: BTreeMap<u64, Vec<&'a SignedCheckpoint>>,
        head: Option<Head>,
    ) -> Self {
        ChainCheck {
            public_keys,
            external,
            head,
            before: Before { seq: 0, hash: Some(Hash::NONE), place: LogPosition::default() },
            doubt: None,
            segment: 0,
            line: 0,
            first_in_segment: true,
            log: None,
            tombstones: BTreeMap::new(),
            announced: BTreeMap::new(),
            met_written: None,
            met_durable: None,
        }
    }

    pub(super) fn begin_segment(&mut self, number: u64) {
        self.segment = number;
        self.line = 0;
        self.first_in_segment = true;
    }

    fn place(&self, offset: u64, seq: Option<u64>) -> LogPosition {
        LogPosition { segment: Some(self.segment), line: Some(self.line), offset: Some(offset), seq }
    }

    /// Records something that is not a line of a log.
    pub(super) fn unreadable(&mut self, what: &str, offset: u64, report: &mut VerifyReport) {
        self.line = self.line.saturating_add(1);
        self.first_in_segment = false;
        let seq = self.before.seq.saturating_add(1);
        let place = self.place(offset, Some(seq));
        report.find(FindingKind::Changed, place, what);
        self.doubt = None;
        self.before = Before { seq, hash: None, place };
    }

    /// The file ends in the middle of a line.
    pub(super) fn torn(&mut self, bytes: &[u8], offset: u64, report: &mut VerifyReport) {
        self.line = self.line.saturating_add(1);
        let due = self.before.seq.saturating_add(1);
        let place = self.place(offset, Some(due));
        let sealed = self.head.as_ref().is_some_and(|head| head.written.seq >= due);
        let fits = self.before.hash.is_some_and(|hash| is_torn_start(bytes, due, &hash));
        if fits && !sealed {
            report.find(FindingKind::TornLine, place, "the last line was not finished, as by a crash");
        } else if !sealed {
            report.find(FindingKind::Inserted, place, "something follows the last entry that no writer leaves");
        }
        // `compare_end` reports a sealed entry that is incomplete
    }

    /// One line.
    pub(super) fn line(&mut self, line: &[u8], offset: u64, report: &mut VerifyReport) {
        self.line = self.line.saturating_add(1);
        let Some(link) = Link::parse(line) else {
            self.line = self.line.saturating_sub(1);
            self.unreadable("the line is not an entry", offset, report);
            return;
        };
        let hash = Hash::of(line);
        let place = self.place(offset, Some(link.seq));
        report.entries = report.entries.saturating_add(1);
        let due = self.before.seq.saturating_add(1);
        let fits = self.before.hash.is_none_or(|before| before == link.prev);
        if let Some(doubtful) = self.doubt.take() {
            // The doubtful entry is itself intact if this one fits it: then the one before it was changed.
            let changed = if link.seq == due && fits { self.before_doubt(doubtful) } else { doubtful };
            report.find(FindingKind::Changed, changed, "the entry was changed");
            if changed == doubtful {
                self.before.hash = None;
            }
        }
        let fits = self.before.hash.is_none_or(|before| before == link.prev);
        if link.seq < due {
            let what = if self.before.hash == Some(link.prev) {
                "an entry repeats an earlier number"
            } else {
                "an entry is in the wrong place or present twice"
            };
            report.find(FindingKind::Reordered, place, what);
            return;
        }
        if link.seq > due {
            let last = link.seq.saturating_sub(1);
            let what = if due == last {
                format!("entry {due} is missing")
            } else {
                format!("entries {due} to {last} are missing")
            };
            report.find(FindingKind::Removed, place, what);
        } else if !fits {
            self.doubt = Some(place);
        }
        let known = self.special(line, &link, hash, place, report);
        self.first_in_segment = false;
        self.compare_points(link.seq, known);
        self.compare_outside(link, place, report);
        self.before = Before { seq: link.seq, hash: Some(known), place };
        report.last = link.seq;
    }

    /// Where the entry before a doubtful one stands: a line earlier in the same segment, or at the end of the one before.
    fn before_doubt(&self, doubtful: LogPosition) -> LogPosition {
        LogPosition {
            segment: doubtful.segment,
            line: doubtful.line.map(|line| line.saturating_sub(1)),
            offset: None,
            seq: doubtful.seq.map(|seq| seq.saturating_sub(1)),
        }
    }

    /// Looks closer at entries about the log itself; returns the hash that the next entry names.
    fn special(
        &mut self,
        line: &[u8],
        link: &Link<'_>,
        hash: Hash,
        place: LogPosition,
        report: &mut VerifyReport,
    ) -> Hash {
        let is_special = matches!(link.kind, "checkpoint" | "tombstone" | "redaction" | "segment");
        if self.first_in_segment && link.kind != "segment" {
            report.find(FindingKind::SegmentWrong, place, "the segment has no segment entry at its start");
        }
        if !is_special {
            return hash;
        }
        let Ok(entry) = serde_json::from_slice::<LogEntry>(line) else {
            report.find(FindingKind::Changed, place, format!("the {} entry is malformed", link.kind));
            return hash;
        };
        match &entry.record.body {
            EntryBody::Segment(segment) => {
                if !self.first_in_segment || segment.segment != self.segment {
                    report.find(FindingKind::SegmentWrong, place, "the segment entry names another segment");
                }
                self.same_log(&segment.log, place, report);
                if self.public_keys.is_empty() {
                    self.public_keys.push(segment.key.clone());
                }
            }
            EntryBody::Checkpoint(checkpoint) => {
                self.same_log(&checkpoint.log, place, report);
                let holds = SignedCheckpoint::of_entry(&entry).is_some_and(|signed| signed.holds());
                if holds && self.public_keys.contains(&checkpoint.key) {
                    report.checkpoints = report.checkpoints.saturating_add(1);
                    report.last_checkpoint = Some(entry.seq);
                } else {
                    report.find(FindingKind::BadSignature, place, "the checkpoint is not signed by the log's key");
                }
            }
            EntryBody::Tombstone(tombstone) => {
                self.same_log(&tombstone.log, place, report);
                if tombstone_holds(&entry, tombstone) && self.public_keys.contains(&tombstone.key) {
                    report.tombstones = report.tombstones.saturating_add(1);
                    self.tombstones.insert(entry.seq, (hash, place));
                    return tombstone.original;
                }
                report.find(FindingKind::BadSignature, place, "the tombstone is not signed by the log's key");
            }
            EntryBody::Redaction(redaction) => {
                self.announced.entry(redaction.entry).or_default().push(redaction.tombstone);
            }
            _ => {}
        }
        hash
    }

    fn same_log(&mut self, log: &str, place: LogPosition, report: &mut VerifyReport) {
        let expected = self.head.as_ref().map(|head| &*head.log).or(self.log.as_deref());
        if expected.is_some_and(|expected| expected != log) {
            report.find(FindingKind::SegmentWrong, place, "the entry belongs to another log");
        }
        if self.log.is_none() {
            self.log = Some(log.to_owned());
            report.log = Some(log.to_owned());
        }
    }

    fn compare_points(&mut self, seq: u64, hash: Hash) {
        let Some(Head { written, durable, .. }) = &self.head else { return };
        if seq == written.seq {
            self.met_written = Some(hash == written.hash);
        }
        if seq == durable.seq {
            self.met_durable = Some(hash == durable.hash);
        }
    }

    fn compare_outside(&mut self, link: Link<'_>, place: LogPosition, report: &mut VerifyReport) {
        for checkpoint in self.external.remove(&link.seq).unwrap_or_default() {
            let ours = self.public_keys.contains(&checkpoint.key);
            if ours && checkpoint.prev == link.prev && self.log.as_ref() == Some(&checkpoint.log) {
                report.outside_checkpoints = report.outside_checkpoints.saturating_add(1);
            } else {
                let what = "the log does not match an external checkpoint";
                report.find(FindingKind::CheckpointMismatch, place, what);
            }
        }
    }

    /// Compares the end with the head and reports what is still open.
    pub(super) fn finish(mut self, report: &mut VerifyReport, boot: Option<&str>) {
        let before = self.before;
        if let Some(doubtful) = self.doubt.take() {
            // The last entry has no successor to vouch for it, but the head may.
            let vouched = self.met_written == Some(true) && report.last == before.seq;
            let changed = if vouched { self.before_doubt(doubtful) } else { doubtful };
            report.find(FindingKind::Changed, changed, "the entry was changed");
        }
        if let Some(head) = self.head.take() {
            self.compare_end(&head, before, report, boot);
        }
        for checkpoint in self.external.values().flatten() {
            let what = format!("entry {} is missing, but an external checkpoint names it", checkpoint.seq);
            report.find(FindingKind::CheckpointMismatch, before.place, what);
        }
        for (seq, (hash, place)) in &self.tombstones {
            if !self.announced.get(seq).is_some_and(|announced| announced.contains(hash)) {
                report.find(FindingKind::TombstoneUnannounced, *place, "no entry announces this tombstone");
            }
        }
        for seq in self.announced.keys().filter(|seq| !self.tombstones.contains_key(seq)) {
            let place = LogPosition { seq: Some(*seq), ..LogPosition::default() };
            report.find(
                FindingKind::RedactionUnfinished,
                place,
                "the entry should have been redacted but is still present",
            );
        }
    }

    fn compare_end(&self, head: &Head, before: Before, report: &mut VerifyReport, boot: Option<&str>) {
        let Head { written, durable, .. } = head;
        let last = before.seq;
        let cut = |point: &Point| format!("the log ends with entry {last}, but entry {} was written", point.seq);
        if last < durable.seq {
            report.find(FindingKind::Truncated, before.place, cut(durable));
        } else if last < written.seq {
            if head.same_boot(boot) {
                report.find(FindingKind::Truncated, before.place, cut(written));
            } else {
                let lost = written.seq.saturating_sub(last);
                let what = format!("{lost} entries were not yet on disk when the machine stopped");
                report.find(FindingKind::LostInPowerFailure, before.place, what);
            }
        } else if last > written.seq {
            let what = format!("{} entries follow the last seal, as after a crash", last.saturating_sub(written.seq));
            report.find(FindingKind::Unsealed, before.place, what);
        }
        for (met, point) in [(self.met_written, written), (self.met_durable, durable)] {
            if met == Some(false) {
                let place = LogPosition { seq: Some(point.seq), ..LogPosition::default() };
                report.find(FindingKind::Changed, place, "the entry differs from the sealed one");
            }
        }
    }
}
