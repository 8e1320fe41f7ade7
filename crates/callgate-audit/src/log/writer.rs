//! Writes to the log files. What one process knows of the log is checked under the lock before every write.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::checkpoint::SignedCheckpoint;
use crate::entry::{EntryBody, Record, Recovered, SegmentStart};
use crate::error::{AtPath, AuditError};
use crate::hash::Hash;
use crate::head::{Head, HeadFile, HeadState, Point};
use crate::key::{AuditKey, random};
use crate::line::EncodedRecord;
use crate::segment::{self, SegmentFile, plain_path, sync_directory};
use crate::settings::LogSettings;
use callgate::policy::SyncMode;
use callgate_model::clock::Timestamp;
use callgate_model::digest::hex;

use super::tail::{self, Remainder};
use super::{FollowUp, Receipt, Waiting};

/// What does not change while a log is open.
#[derive(Debug)]
pub(super) struct LogContext {
    pub settings: LogSettings,
    pub key: AuditKey,
    pub boot: Option<Arc<str>>,
    pub lifetime: WriterLifetime,
}

/// How long the process means to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterLifetime {
    /// As long as it likes.
    Long,
    /// An entry or two.
    Brief,
}

/// After this time a short-lived writer signs a checkpoint even if none is delivered.
const BRIEF_CHECKPOINT_AGE: Duration = Duration::from_secs(60 * 60);

impl LogContext {
    /// With the first entry after this time a checkpoint is due.
    fn checkpoint_age(&self) -> Duration {
        match self.lifetime {
            WriterLifetime::Brief if self.settings.deliveries.is_empty() => {
                self.settings.checkpoint_age.max(BRIEF_CHECKPOINT_AGE)
            }
            WriterLifetime::Brief | WriterLifetime::Long => self.settings.checkpoint_age,
        }
    }
}

#[derive(Debug)]
pub(super) struct LogWriter {
    lock: Arc<LockFile>,
    head_file: HeadFile,
    head: Head,
    segment: OpenSegment,
    last_sync: Instant,
    dirty: bool,
    /// How far a segment is known to be on the disk, until the head says so.
    synced: Option<(u64, Point)>,
    /// The lock taken by `open`, until the first write or `unlocked`. While it is held, no other process writes.
    held: Option<HeldLock>,
}

/// The lock file that writers of all processes share.
#[derive(Debug)]
struct LockFile {
    file: File,
    path: PathBuf,
}

/// The lock, held until dropped.
#[derive(Debug)]
struct HeldLock(Arc<LockFile>);

impl HeldLock {
    fn take(lock: &Arc<LockFile>) -> Result<Self, AuditError> {
        lock.file.lock().at("lock", &lock.path)?;
        Ok(HeldLock(Arc::clone(lock)))
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // closing the file would unlock it as well
        let _ = self.0.file.unlock();
    }
}

/// The segment that is written to, with its path at hand for errors.
#[derive(Debug)]
struct OpenSegment {
    file: File,
    path: PathBuf,
}

impl OpenSegment {
    fn open(directory: &Path, number: u64) -> Result<Self, AuditError> {
        let path = plain_path(directory, number);
        let file = OpenOptions::new().append(true).open(&path).at("open", &path)?;
        Ok(OpenSegment { file, path })
    }

    fn sync(&self) -> Result<(), AuditError> {
        self.file.sync_data().at("sync", &self.path)
    }
}

/// Lines that are about to be written.
struct NewLines {
    buffer: Vec<u8>,
    end: Point,
    time: Timestamp,
    time_text: String,
}

impl NewLines {
    fn after(point: Point) -> Self {
        Self::at(point, Timestamp::now_precise())
    }

    fn at(point: Point, time: Timestamp) -> Self {
        NewLines { buffer: Vec::with_capacity(1024), end: point, time, time_text: time.precise() }
    }

    fn push_recovered(&mut self, recovered: Option<Recovered>) -> Result<(), AuditError> {
        if let Some(recovered) = recovered {
            self.push(&EncodedRecord::of(&Record::new(EntryBody::Recovered(recovered)))?);
        }
        Ok(())
    }

    fn push(&mut self, tail: &EncodedRecord) {
        let before = self.buffer.len();
        let seq = self.end.seq.saturating_add(1);
        let hash = tail.write_to(&mut self.buffer, seq, &self.end.hash, &self.time_text);
        let grown = self.buffer.len().saturating_sub(before) as u64;
        self.end = Point { length: self.end.length.saturating_add(grown), seq, hash };
    }
}

impl LogWriter {
    pub(super) fn open(context: &LogContext, follows: Option<String>) -> Result<Self, AuditError> {
        let settings = &context.settings;
        let directory = settings.directory.as_path();
        let path = settings.lock_path();
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).at("open", &path)?;
        let held = HeldLock::take(&Arc::new(LockFile { file, path }))?;
        let Some(mut head_file) = HeadFile::open(directory)? else {
            return Self::create(context, held, follows);
        };
        let head = match head_file.changed(&context.key)? {
            Some(found) => accept(context, found)?,
            // nothing is known yet, so the file always differs
            None => return Err(damaged(context, "its head is empty")),
        };
        let segment = OpenSegment::open(directory, head.segment)?;
        Ok(LogWriter::new(held, head_file, head, segment))
    }

    fn new(held: HeldLock, head_file: HeadFile, head: Head, segment: OpenSegment) -> Self {
        LogWriter {
            lock: Arc::clone(&held.0),
            head_file,
            head,
            segment,
            last_sync: Instant::now(),
            dirty: false,
            synced: None,
            held: Some(held),
        }
    }

    /// Gives the lock from opening back.
    pub(super) fn unlocked(mut self) -> Self {
        self.held = None;
        self
    }

    /// Begins a new log.
    fn create(context: &LogContext, held: HeldLock, follows: Option<String>) -> Result<Self, AuditError> {
        let directory = context.settings.directory.as_path();
        // Without a head, only the files of a process killed in this function may exist.
        let files = segment::list(directory)?;
        let begun = match files.as_slice() {
            [] => true,
            [only] if only.number == 1 && !only.compressed => {
                let text = std::fs::read(&only.path).at("read", &only.path)?;
                text.len() < 4096 && text.iter().filter(|byte| **byte == b'\n').count() <= 1
            }
            _ => false,
        };
        if !begun {
            return Err(damaged(context, "its head is missing"));
        }
        let log: Arc<str> = hex(&random::<16>(directory)?).into();
        let start = Point { length: 0, seq: 0, hash: Hash::NONE };
        let (segment, end) = begin_segment(context, &log, 1, start, follows)?;
        let now = Timestamp::now();
        let head = Head {
            log,
            generation: 1,
            segment: 1,
            written: end,
            durable: end,
            begun: now,
            checkpoint: 0,
            checkpoint_time: now,
            boot: context.boot.clone(),
        };
        let head_file = HeadFile::create(directory, &head, &context.key)?;
        sync_directory(directory)?;
        Ok(LogWriter::new(held, head_file, head, segment))
    }

    pub(super) fn log_id(&self) -> &str {
        &self.head.log
    }

    pub(super) fn segment_number(&self) -> u64 {
        self.head.segment
    }

    /// Writes a group of entries and makes them as safe as the settings say.
    pub(super) fn write(
        &mut self,
        context: &LogContext,
        group: &[Waiting],
    ) -> Result<(Vec<Receipt>, FollowUp), AuditError> {
        let held = match self.held.take() {
            // opened a moment ago: the head is as it was read
            Some(held) => held,
            None => self.take_lock(context)?,
        };
        let mut after = FollowUp::default();
        let mut recovered = self.catch_up(context)?;
        let mut time = Timestamp::now_precise();
        if self.is_full(context, time) {
            after = self.rotate(context, recovered.take())?;
            time = Timestamp::now_precise();
        }
        let mut lines = NewLines::at(self.head.written, time);
        lines.push_recovered(recovered)?;
        let mut receipts = Vec::with_capacity(group.len());
        for waiting in group {
            let first = lines.end.seq.saturating_add(1);
            for tail in &waiting.tails {
                lines.push(tail);
            }
            receipts.push(Receipt { first, last: lines.end.seq });
        }
        let mut next = self.head.clone();
        let due = lines.end.seq.saturating_sub(next.checkpoint) >= context.settings.checkpoint_entries
            || next.checkpoint_time.until(lines.time) >= context.checkpoint_age();
        if due {
            after.checkpoints.push(add_checkpoint(context, &mut lines, &mut next)?);
        }
        self.commit(context, &lines, next)?;
        drop(held);
        let now = match context.settings.sync {
            // A delivered checkpoint must not be lost here.
            _ if due => true,
            SyncMode::Always => true,
            SyncMode::Interval(every) => self.last_sync.elapsed() >= every,
            SyncMode::Os => false,
        };
        if now {
            self.force()?;
        }
        if context.lifetime == WriterLifetime::Brief {
            // there may be no next write
            self.note_synced(context)?;
        }
        Ok((receipts, after))
    }

    pub(super) fn checkpoint_now(&mut self, context: &LogContext) -> Result<(SignedCheckpoint, FollowUp), AuditError> {
        let held = self.take_lock(context)?;
        let recovered = self.catch_up(context)?;
        let mut lines = NewLines::after(self.head.written);
        lines.push_recovered(recovered)?;
        let mut next = self.head.clone();
        let checkpoint = add_checkpoint(context, &mut lines, &mut next)?;
        self.commit(context, &lines, next)?;
        drop(held);
        self.sync_now(context)?;
        Ok((checkpoint.clone(), FollowUp { checkpoints: vec![checkpoint], closed: None }))
    }

    pub(super) fn rotate_now(&mut self, context: &LogContext) -> Result<FollowUp, AuditError> {
        let _held = self.take_lock(context)?;
        let recovered = self.catch_up(context)?;
        self.rotate(context, recovered)
    }

    /// Syncs written entries to disk and records that in the head.
    pub(super) fn sync_now(&mut self, context: &LogContext) -> Result<(), AuditError> {
        self.force()?;
        self.note_synced(context)
    }

    /// Forces what was written onto the disk. The next write, or the end of this one, notes it in the head: until then a power
    /// failure is only thought to have been able to take more than it could.
    fn force(&mut self) -> Result<(), AuditError> {
        let (segment, point) = (self.head.segment, self.head.written);
        self.segment.sync()?;
        self.last_sync = Instant::now();
        self.dirty = false;
        self.synced = Some((segment, point));
        Ok(())
    }

    /// Records in the head which entries are on disk.
    pub(super) fn note_synced(&mut self, context: &LogContext) -> Result<(), AuditError> {
        if self.synced.is_none() {
            return Ok(());
        }
        let _held = self.take_lock(context)?;
        let mut next = self.head.clone();
        if self.take_synced(&mut next) {
            self.head_file.write(&mut next, &context.key)?;
            self.head = next;
        }
        Ok(())
    }

    /// Updates a head with the entries known to be on disk; returns whether it changed.
    fn take_synced(&mut self, head: &mut Head) -> bool {
        match self.synced.take() {
            Some((segment, point)) if segment == head.segment && head.durable.seq < point.seq => {
                head.durable = point;
                true
            }
            _ => false,
        }
    }

    pub(super) fn sync_if_dirty(&mut self, context: &LogContext) -> Result<(), AuditError> {
        if self.dirty { self.sync_now(context) } else { Ok(()) }
    }

    fn take_lock(&mut self, context: &LogContext) -> Result<HeldLock, AuditError> {
        let held = HeldLock::take(&self.lock)?;
        self.refresh(context)?;
        Ok(held)
    }

    /// Reads what other processes have written since.
    fn refresh(&mut self, context: &LogContext) -> Result<(), AuditError> {
        let Some(found) = self.head_file.changed(&context.key)? else { return Ok(()) };
        let head = accept(context, found)?;
        if head.log != self.head.log {
            return Err(damaged(context, "another log replaced it"));
        }
        if head.segment != self.head.segment {
            self.segment = OpenSegment::open(&context.settings.directory, head.segment)?;
        }
        self.head = head;
        Ok(())
    }

    /// Reconciles a refreshed head with the segment: adopts what a killed writer left and rejects anything else.
    fn catch_up(&mut self, context: &LogContext) -> Result<Option<Recovered>, AuditError> {
        let current = SegmentFile::plain(&context.settings.directory, self.head.segment);
        let OpenSegment { file, path } = &mut self.segment;
        // cheaper than asking for all metadata, and where a file is appended to does not depend on it
        let length = file.seek(SeekFrom::End(0)).at("read", path)?;
        let same_boot = self.head.same_boot(context.boot.as_deref());
        let Head { written, durable, .. } = self.head;
        if same_boot && length == written.length {
            return Ok(None);
        }
        let from = if same_boot { written } else { durable };
        if length < from.length {
            return Err(damaged(context, "it was truncated"));
        }
        let found = tail::follow(&current, from, length, written)?;
        if found.matches == Some(false) {
            return Err(damaged(context, "its last entries were changed"));
        }
        let (cut_bytes, cut_sha256) = match found.rest {
            Remainder::Nothing => (0, None),
            Remainder::Foreign { .. } if same_boot => {
                return Err(damaged(context, "unexpected bytes follow its last entry"));
            }
            Remainder::Torn { bytes, sha256 } | Remainder::Foreign { bytes, sha256 } => (bytes, Some(sha256)),
        };
        if cut_bytes > 0 {
            file.set_len(found.reached.length).at("write", path)?;
        }
        self.head.written = found.reached;
        if !same_boot {
            self.head.durable = from;
            self.head.boot = context.boot.clone();
        }
        let recovered = Recovered {
            adopted: found.reached.seq.saturating_sub(written.seq),
            cut_bytes,
            cut_sha256,
            lost: written.seq.saturating_sub(found.reached.seq),
        };
        let nothing = recovered.adopted == 0 && recovered.lost == 0 && recovered.cut_bytes == 0;
        Ok((!nothing).then_some(recovered))
    }

    /// Appends lines to the segment and updates the head. Removes a partial write.
    fn commit(&mut self, context: &LogContext, lines: &NewLines, mut next: Head) -> Result<(), AuditError> {
        let before = self.head.written.length;
        let OpenSegment { file, path } = &mut self.segment;
        if let Err(error) = file.write_all(&lines.buffer) {
            // If this fails too, the next writer finds a torn line and cuts it.
            let _ = file.set_len(before);
            self.head_file.forget();
            return Err(error).at("write", path);
        }
        self.dirty = true;
        self.take_synced(&mut next);
        next.written = lines.end;
        next.boot = context.boot.clone();
        if let Err(error) = self.head_file.write(&mut next, &context.key) {
            self.head_file.forget();
            return Err(error);
        }
        self.head = next;
        Ok(())
    }

    fn is_full(&self, context: &LogContext, now: Timestamp) -> bool {
        self.head.written.length >= context.settings.segment_bytes
            || self.head.begun.until(now) >= context.settings.segment_age
    }

    /// Ends the segment with a checkpoint and begins the next one. The caller holds the lock.
    fn rotate(&mut self, context: &LogContext, recovered: Option<Recovered>) -> Result<FollowUp, AuditError> {
        let mut lines = NewLines::after(self.head.written);
        lines.push_recovered(recovered)?;
        let mut next = self.head.clone();
        let checkpoint = add_checkpoint(context, &mut lines, &mut next)?;
        self.commit(context, &lines, next)?;
        self.segment.sync()?;

        let number = self.head.segment.saturating_add(1);
        let start = Point { length: 0, ..self.head.written };
        let (segment, end) = begin_segment(context, &self.head.log, number, start, None)?;
        let mut next = self.head.clone();
        next.segment = number;
        next.written = end;
        next.durable = end;
        next.begun = Timestamp::now();
        self.head_file.write(&mut next, &context.key)?;
        let closed = self.head.segment;
        self.head = next;
        self.segment = segment;
        Ok(FollowUp { checkpoints: vec![checkpoint], closed: Some(closed) })
    }
}

fn damaged(context: &LogContext, what: &str) -> AuditError {
    AuditError::Damaged { directory: context.settings.directory.clone(), what: what.to_owned() }
}

/// A head that may be built upon.
fn accept(context: &LogContext, found: HeadState) -> Result<Head, AuditError> {
    match found {
        HeadState::Whole(head) => Ok(head),
        // A power failure may tear one slot; nothing else does.
        HeadState::Half(head) if !head.same_boot(context.boot.as_deref()) => Ok(head),
        HeadState::Half(_) | HeadState::Broken => Err(damaged(context, "its head was changed")),
        HeadState::Absent => Err(damaged(context, "its head is missing")),
    }
}

/// Makes the file of a segment with its first entry, on the disk. The head does not know of it yet, so whatever a killed
/// writer left under that name was never acknowledged.
fn begin_segment(
    context: &LogContext,
    log: &str,
    number: u64,
    start: Point,
    follows: Option<String>,
) -> Result<(OpenSegment, Point), AuditError> {
    let directory = context.settings.directory.as_path();
    let path = plain_path(directory, number);
    let body = SegmentStart {
        log: log.to_owned(),
        segment: number,
        key: context.key.public(),
        writer: crate::WRITER.to_owned(),
        follows,
    };
    let mut lines = NewLines::after(start);
    lines.push(&EncodedRecord::of(&Record::new(EntryBody::Segment(body)))?);
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).at("create", &path)?;
    file.set_len(0).at("write", &path)?;
    file.write_all(&lines.buffer).at("write", &path)?;
    file.sync_data().at("sync", &path)?;
    sync_directory(directory)?;
    Ok((OpenSegment { file, path }, lines.end))
}

fn add_checkpoint(context: &LogContext, lines: &mut NewLines, head: &mut Head) -> Result<SignedCheckpoint, AuditError> {
    let seq = lines.end.seq.saturating_add(1);
    let checkpoint = SignedCheckpoint::sign(&context.key, &head.log, seq, lines.end.hash, lines.time)?;
    lines.push(&EncodedRecord::of(&Record::new(checkpoint.body()))?);
    head.checkpoint = seq;
    head.checkpoint_time = lines.time;
    Ok(checkpoint)
}
