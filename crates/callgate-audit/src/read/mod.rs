//! Reading: entries in order, forwards, and as they come.

mod filter;
mod stats;
mod timeline;

#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::entry::LogEntry;
use crate::error::{AtPath, AuditError};
use crate::line::Link;
use crate::segment::{self, NextLine, SegmentFile, SegmentLines, plain_path};

pub use filter::{EntryFilter, RecordedEffect, effects_of};
pub use stats::{Counted, Day, LogStats};
pub use timeline::{StepName, TimelineStep, timeline};

/// One entry with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// What it says.
    pub entry: LogEntry,
    /// The line in the log.
    pub line: String,
}

/// All entries of a log, in order. A line that cannot be understood (of a later version, or changed) is left out here;
/// `verify` reports what is wrong with a log.
#[derive(Debug)]
pub struct Entries {
    waiting: std::vec::IntoIter<SegmentFile>,
    current: Option<SegmentLines>,
    /// How many lines could not be understood.
    pub skipped: u64,
}

impl Entries {
    /// Those of the log in a directory.
    pub fn open(directory: &Path) -> Result<Self, AuditError> {
        let files = segment::list(directory)?;
        Ok(Entries { waiting: files.into_iter(), current: None, skipped: 0 })
    }

    /// The next line, as it stands in the log, if it is whole.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, AuditError> {
        loop {
            if self.current.is_none() {
                let Some(file) = self.waiting.next() else { return Ok(None) };
                self.current = Some(SegmentLines::open(&file, 0, None)?);
            }
            let Some(lines) = &mut self.current else { return Ok(None) };
            match lines.next() {
                Ok(NextLine::Line(line)) => return Ok(Some(line.to_vec())),
                Ok(NextLine::TooLong) => self.skipped = self.skipped.saturating_add(1),
                Ok(NextLine::Torn(_) | NextLine::End) => self.current = None,
                Err(_) => {
                    self.skipped = self.skipped.saturating_add(1);
                    self.current = None;
                }
            }
        }
    }
}

fn parse(line: &[u8]) -> Option<LogLine> {
    let entry = serde_json::from_slice(line).ok()?;
    Some(LogLine { entry, line: String::from_utf8_lossy(line).into_owned() })
}

impl Iterator for Entries {
    type Item = Result<LogLine, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_line() {
                Ok(Some(line)) => match parse(&line) {
                    Some(read) => return Some(Ok(read)),
                    None => self.skipped = self.skipped.saturating_add(1),
                },
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// All entries of one call, in order.
pub fn call(directory: &Path, call: &str) -> Result<Vec<LogLine>, AuditError> {
    let found: Vec<LogLine> = Entries::open(directory)?
        .filter(|read| !matches!(read, Ok(read) if read.entry.record.call.as_deref() != Some(call)))
        .collect::<Result<_, _>>()?;
    if found.is_empty() { Err(AuditError::NotFound(format!("call {call}"))) } else { Ok(found) }
}

/// The number of the last whole entry; 0 if there is none.
pub fn last_number(directory: &Path) -> Result<u64, AuditError> {
    let Some(file) = segment::list(directory)?.pop() else { return Ok(0) };
    let mut lines = SegmentLines::open(&file, 0, None)?;
    let mut last = 0;
    while let Ok(NextLine::Line(line)) = lines.next() {
        last = Link::parse(line).map_or(last, |link| link.seq);
    }
    Ok(last)
}

/// Follows a log as it grows, from its end on.
#[derive(Debug)]
pub struct Follow {
    directory: PathBuf,
    segment: u64,
    offset: u64,
}

impl Follow {
    /// From the present end of the log.
    pub fn from_end(directory: &Path) -> Result<Self, AuditError> {
        let last = segment::list(directory)?.into_iter().rfind(|file| !file.compressed);
        let last = last.ok_or_else(|| AuditError::NotFound(format!("a log in {}", directory.display())))?;
        // The last line may still be in the making: begin after the last whole one.
        let mut lines = SegmentLines::open(&last, 0, None)?;
        let mut offset = 0;
        while let Ok(NextLine::Line(_) | NextLine::TooLong) = lines.next() {
            offset = lines.offset;
        }
        Ok(Follow { directory: directory.to_owned(), segment: last.number, offset })
    }

    /// The entries added since the last call.
    pub fn poll(&mut self) -> Result<Vec<LogLine>, AuditError> {
        let mut found = Vec::new();
        loop {
            let next = self.segment.saturating_add(1);
            let has_next =
                plain_path(&self.directory, next).exists() || segment::compressed_path(&self.directory, next).exists();
            // The end of a segment is final once there is a next one, so that is looked for first.
            self.read_rest(&mut found)?;
            if !has_next {
                return Ok(found);
            }
            self.segment = next;
            self.offset = 0;
        }
    }

    fn read_rest(&mut self, found: &mut Vec<LogLine>) -> Result<(), AuditError> {
        let file = SegmentFile::plain(&self.directory, self.segment);
        let mut lines = SegmentLines::open(&file, self.offset, None)?;
        while let NextLine::Line(line) = lines.next().at("read", &file.path)? {
            // a segment's first line that is not whole yet is not counted either
            if Link::parse(line).is_some() {
                found.extend(parse(line));
            }
            self.offset = lines.offset;
        }
        Ok(())
    }

    /// How often it is worth asking.
    pub const PAUSE: Duration = Duration::from_millis(200);
}
