//! Taking an entry out on purpose: a signed tombstone in its place, and an entry that says so.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use callgate_model::clock::Timestamp;

use super::{Log, rewrite_lock};
use crate::checkpoint::TombstoneStatement;
use crate::entry::{EntryBody, LogEntry, Record, Redaction};
use crate::error::{AtPath, AuditError};
use crate::hash::Hash;
use crate::line::{EncodedRecord, Link};
use crate::segment::{self, NextLine, SegmentFile, SegmentLines, sync_directory, write_whole};

impl Log {
    /// Replaces the entry with this number by a tombstone that keeps the chain whole and says who took it out and why.
    ///
    /// The announcement is written before the entry is replaced, so that a crash in between does not look like tampering. Entries about
    /// the log itself cannot be redacted.
    pub fn redact(&self, seq: u64, by: &str, reason: &str) -> Result<(), AuditError> {
        let directory = self.settings().directory.as_path();
        if self.begins_current_segment_before(seq)? {
            self.rotate()?;
        }
        let lock = rewrite_lock(directory)?;
        lock.lock().at("lock", directory)?;
        let (file, line) = find(directory, seq)?;
        let entry: LogEntry = serde_json::from_slice(&line)?;
        if entry.record.body.is_housekeeping() {
            return Err(AuditError::NotFound(format!("an entry {seq} that is about a call")));
        }
        let log = self.id()?;
        let time = Timestamp::now_precise();
        let statement =
            TombstoneStatement { log: &log, seq, prev: entry.prev, time, original: Hash::of(&line), reason, by };
        let tombstone = statement.sign(&self.inner.context.key)?;
        let mut record = entry.record;
        record.body = EntryBody::Tombstone(tombstone);
        let mut replacement = Vec::new();
        let hash = EncodedRecord::of(&record)?.write_to(&mut replacement, seq, &entry.prev, &time.precise());
        let announcement = Redaction { entry: seq, tombstone: hash, reason: reason.to_owned(), by: by.to_owned() };
        self.append(&Record::new(EntryBody::Redaction(announcement)))?;
        self.sync()?;
        replace(&file, seq, &replacement)?;
        sync_directory(directory)
    }

    /// Whether an entry is in the current segment.
    fn begins_current_segment_before(&self, seq: u64) -> Result<bool, AuditError> {
        let number = self.inner.with_writer(|writer| Ok(writer.segment_number()))?;
        let file = SegmentFile::plain(&self.settings().directory, number);
        let mut lines = SegmentLines::open(&file, 0, None)?;
        Ok(match lines.next().at("read", &file.path)? {
            NextLine::Line(line) => Link::parse(line).is_some_and(|link| link.seq <= seq),
            _ => false,
        })
    }
}

fn find(directory: &std::path::Path, seq: u64) -> Result<(SegmentFile, Vec<u8>), AuditError> {
    for file in segment::list(directory)? {
        let mut lines = SegmentLines::open(&file, 0, None)?;
        while let NextLine::Line(line) = lines.next().at("read", &file.path)? {
            match Link::parse(line) {
                Some(link) if link.seq == seq => {
                    let line = line.to_vec();
                    return Ok((file, line));
                }
                _ => {}
            }
        }
    }
    Err(AuditError::NotFound(format!("entry {seq}")))
}

/// Writes a segment anew with one line replaced.
fn replace(file: &SegmentFile, seq: u64, replacement: &[u8]) -> Result<(), AuditError> {
    let made = file.path.with_extension("new");
    let mut lines = SegmentLines::open(file, 0, None)?;
    let mut copy = |writer: &mut dyn Write| -> std::io::Result<()> {
        loop {
            match lines.next()? {
                NextLine::Line(line) if Link::parse(line).is_some_and(|link| link.seq == seq) => {
                    writer.write_all(replacement)?;
                }
                NextLine::Line(line) => {
                    writer.write_all(line)?;
                    writer.write_all(b"\n")?;
                }
                NextLine::End => return Ok(()),
                NextLine::Torn(_) | NextLine::TooLong => {
                    return Err(std::io::Error::other("the segment is damaged; see `callgate audit verify`"));
                }
            }
        }
    };
    write_whole(&made, &file.path, |writer| {
        if file.compressed {
            let mut encoder = GzEncoder::new(writer, Compression::default());
            copy(&mut encoder)?;
            encoder.finish().map(|_| ())
        } else {
            copy(writer)
        }
    })
}
