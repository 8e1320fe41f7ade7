//! Checking a log: is everything there, and is it as it was written?
//!
//! One pass, one line in memory at a time. It distinguishes traces of a crash from tampering: a torn last line begins like the
//! expected line, unsealed entries follow the head, and entries lost in a power failure were never known to be on disk.

mod chain;
mod report;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use crate::checkpoint::SignedCheckpoint;
use crate::error::{AtPath, AuditError};
use crate::head::{self, Head, HeadFile, HeadState};
use crate::key::AuditKey;
use crate::segment::{self, NextLine, SegmentFile, SegmentLines};
use crate::settings::LogSettings;

use chain::ChainCheck;
pub use report::{FindingKind, LogFinding, LogPosition, Status, VerifyReport};

/// What to verify, and against what.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The log's directory.
    pub directory: PathBuf,
    /// The secret key; with it the seal of the head is checked too.
    pub key: Option<PathBuf>,
    /// Public keys (hexadecimal) that may have signed. Empty: the secret key's, or else the one the log itself names.
    pub public_keys: Vec<String>,
    /// Checkpoints that were kept elsewhere.
    pub checkpoints: Vec<SignedCheckpoint>,
    /// The id of the current boot.
    pub(crate) boot: Option<std::sync::Arc<str>>,
}

impl VerifyOptions {
    /// The log of these settings, with its key if there is one.
    pub fn of(settings: &LogSettings) -> Self {
        VerifyOptions {
            directory: settings.directory.clone(),
            key: settings.key.exists().then(|| settings.key.clone()),
            boot: settings.boot(),
            ..VerifyOptions::default()
        }
    }

    /// Adds the checkpoints of a file (one JSON object a line).
    pub fn with_checkpoints(mut self, file: &std::path::Path) -> Result<Self, AuditError> {
        let text = fs::read_to_string(file).at("read", file)?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.checkpoints.push(serde_json::from_str(line)?);
        }
        Ok(self)
    }
}

/// Checks a log. An error means that it could not be read; what is wrong with it is in the report.
pub fn verify(options: &VerifyOptions) -> Result<VerifyReport, AuditError> {
    verify_with(options, &mut |_| {})
}

/// The same; `progress` is told how many bytes of the log's files were dealt with.
pub fn verify_with(options: &VerifyOptions, progress: &mut dyn FnMut(u64)) -> Result<VerifyReport, AuditError> {
    let key = options.key.as_deref().map(AuditKey::open).transpose()?;
    let (files, head, lengths) = snapshot(options, key.as_ref())?;
    let mut report = VerifyReport { head_checked: key.is_some(), ..VerifyReport::default() };
    let mut public_keys = options.public_keys.clone();
    if let (true, Some(key)) = (public_keys.is_empty(), &key) {
        public_keys.push(key.public());
    }
    let mut external: BTreeMap<u64, Vec<&SignedCheckpoint>> = BTreeMap::new();
    for checkpoint in &options.checkpoints {
        if checkpoint.holds() {
            external.entry(checkpoint.seq).or_default().push(checkpoint);
        } else {
            report.find(
                FindingKind::ForeignCheckpoint,
                LogPosition::default(),
                "an external checkpoint has no valid signature",
            );
        }
    }
    let head = check_head(options, head, &mut report);
    let mut chain = ChainCheck::new(public_keys, external, head.clone());
    let mut number = 1_u64;
    let mut done = 0_u64;
    for (file, length) in files.iter().zip(lengths) {
        if let Some(head) = &head
            && file.number > head.segment
        {
            check_unfinished(file, head, &mut report)?;
            break;
        }
        if file.number != number {
            let what = format!("segments {number} to {} are missing", file.number.saturating_sub(1));
            report.find(FindingKind::SegmentMissing, LogPosition::segment(file.number), what);
        }
        number = file.number.saturating_add(1);
        let last = head.as_ref().map_or(files.last() == Some(file), |head| head.segment == file.number);
        read_segment(file, length, last, &mut chain, &mut report)?;
        done = done.saturating_add(fs::metadata(&file.path).map_or(0, |metadata| metadata.len()));
        progress(done);
    }
    if let Some(head) = &head
        && number <= head.segment
    {
        let what = format!("segments {number} to {} are missing", head.segment);
        report.find(FindingKind::SegmentMissing, LogPosition::segment(number), what);
    }
    chain.finish(&mut report, options.boot.as_deref());
    Ok(report)
}

type Snapshot = (Vec<SegmentFile>, HeadState, Vec<Option<u64>>);

/// The files, the head and how long the current segment was, all at one moment.
fn snapshot(options: &VerifyOptions, key: Option<&AuditKey>) -> Result<Snapshot, AuditError> {
    let directory = options.directory.as_path();
    // A copy on read-only media has no lock, and no process writes to it.
    let lock = File::open(directory.join("lock")).ok().filter(|lock| lock.lock_shared().is_ok());
    let files = segment::list(directory)?;
    let path = HeadFile::path_in(directory);
    let head = match fs::read(&path) {
        Ok(bytes) => head::read(&bytes, key),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => HeadState::Absent,
        Err(error) => return Err(error).at("read", &path),
    };
    let lengths = files
        .iter()
        .map(|file| {
            let length = || fs::metadata(&file.path).ok().map(|metadata| metadata.len());
            if file.compressed { None } else { length() }
        })
        .collect();
    drop(lock);
    Ok((files, head, lengths))
}

fn check_head(options: &VerifyOptions, state: HeadState, report: &mut VerifyReport) -> Option<Head> {
    match state {
        HeadState::Whole(head) => Some(head),
        HeadState::Half(head) if !head.same_boot(options.boot.as_deref()) => {
            report.find(
                FindingKind::TornHead,
                LogPosition::default(),
                "half of the head was torn, as by a power failure",
            );
            Some(head)
        }
        HeadState::Half(head) => {
            report.find(FindingKind::HeadChanged, LogPosition::default(), "half of the head was changed");
            Some(head)
        }
        HeadState::Broken => {
            report.find(
                FindingKind::HeadChanged,
                LogPosition::default(),
                "the head was changed, or sealed with another key",
            );
            None
        }
        HeadState::Absent => {
            report.find(
                FindingKind::HeadMissing,
                LogPosition::default(),
                "the head is missing, so the end of the log is unknown",
            );
            None
        }
    }
}

/// Checks a segment beyond the head, which a writer leaves if it is killed while it begins one.
fn check_unfinished(file: &SegmentFile, head: &Head, report: &mut VerifyReport) -> Result<(), AuditError> {
    let text = fs::read(&file.path).at("read", &file.path)?;
    let short = text.len() < 4096 && text.iter().filter(|byte| **byte == b'\n').count() <= 1;
    if file.number == head.segment.saturating_add(1) && short && !file.compressed {
        report.find(FindingKind::Unsealed, LogPosition::segment(file.number), "a segment was begun but not used");
    } else {
        report.find(FindingKind::Inserted, LogPosition::segment(file.number), "the head does not know this segment");
    }
    Ok(())
}

fn read_segment(
    file: &SegmentFile,
    length: Option<u64>,
    last: bool,
    chain: &mut ChainCheck<'_>,
    report: &mut VerifyReport,
) -> Result<(), AuditError> {
    report.segments = report.segments.saturating_add(1);
    chain.begin_segment(file.number);
    let mut lines = SegmentLines::open(file, 0, length)?;
    loop {
        let start = lines.offset;
        match lines.next() {
            Ok(NextLine::Line(line)) => chain.line(line, start, report),
            Ok(NextLine::End) => break,
            Ok(NextLine::TooLong) => chain.unreadable("a line that is too long", start, report),
            Ok(NextLine::Torn(bytes)) if last => {
                chain.torn(bytes, start, report);
                break;
            }
            Ok(NextLine::Torn(_)) => {
                chain.unreadable("a closed segment ends in the middle of a line", start, report);
                break;
            }
            // what cannot be decompressed was changed
            Err(error) if file.compressed => {
                chain.unreadable(&format!("the segment cannot be decompressed: {error}"), start, report);
                break;
            }
            Err(error) => return Err(error).at("read", &file.path),
        }
    }
    Ok(())
}
