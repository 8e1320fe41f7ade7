//! Writing: several threads and processes append to one log without mixing or losing a line.
//!
//! Whoever wants to append puts its entries into a queue. If nobody writes, it writes what all of them have queued, under the
//! lock that processes share, and syncs once for all; meanwhile the next group forms: group commit. An error means that
//! the entries may not be there, and the call they are about must not run.

mod courier;
mod redact;
mod state;
pub(crate) mod tail;

#[cfg(test)]
mod brief_tests;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use crate::entry::{Body, DeliveryFailed, Record, Time};
use crate::error::{At, AuditError};
use crate::key::{Key, private_directory};
use crate::line::Tail;
use crate::segment;
use crate::settings::Settings;
use callgate::policy::SyncMode;

use courier::Courier;
use state::{Context, State, Stay};

/// Where the entries of one `append` stand in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the first one.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
}

/// An audit log that is open for writing.
///
/// ```
/// use callgate_audit::entry::{Body, Record, Started};
/// use callgate_audit::{Log, Settings, verify};
///
/// let directory = tempfile::tempdir()?;
/// let settings = Settings::at(directory.path().join("audit"));
/// let log = Log::open(settings.clone())?;
/// log.append(&Record::new(Body::Started(Started { tool: "Bash".into(), sandbox: None })).call("c-1"))?;
/// assert!(verify::verify(&verify::Options::of(&settings))?.is_intact());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Log {
    inner: Arc<Inner>,
    courier: Option<Courier>,
    /// Ends the thread that syncs at intervals.
    _flusher: Option<mpsc::Sender<()>>,
}

#[derive(Debug)]
struct Inner {
    context: Context,
    queue: Mutex<Queue>,
    /// Told whenever a group was written.
    written: Condvar,
    /// What is known of the log; nothing until a brief writer has something to write.
    state: Mutex<Option<State>>,
}

/// What waits to be written by whoever writes next.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Somebody is writing a group; the next one forms meanwhile.
    writing: bool,
    /// How many wait for their turn. Waking nobody costs as much as waking somebody.
    sleeping: usize,
}

/// Entries that wait to be written, and where the answer goes.
#[derive(Debug)]
struct Waiting {
    tails: Vec<Tail>,
    answer: Arc<OnceLock<Result<Receipt, String>>>,
}

impl Log {
    /// Opens the log, or begins it where there is none yet.
    pub fn open(settings: Settings) -> Result<Self, AuditError> {
        Self::begin(settings, None, Stay::Long)
    }

    /// Opens the log for a process that writes an entry or two and ends, such as a hook.
    ///
    /// What it writes is as safe as what [`Log::open`] writes (the same `sync`, `always` unless said otherwise), but it starts
    /// no threads and signs nothing unless a segment is full: checkpoints are due after the usual number of entries, and
    /// after the usual time only where they are sent elsewhere, else after an hour. `cargo bench -p callgate-audit --bench
    /// brief` prints what it costs.
    ///
    /// ```
    /// use callgate::call::Call;
    /// use callgate::gate::Gate;
    /// use callgate::policy::Policy;
    /// use callgate_audit::{AuditSink, Log, Settings};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let log = Log::open_briefly(Settings::at(directory.path().join("audit")))?;
    /// let gate = Gate::builder().policy(Policy::bundled("standard")?).events(AuditSink::new(log)).build();
    /// // one write for the attempt with its decision; an error of the log is a refusal
    /// let verdict = gate.check(Call::new("Bash", serde_json::json!({"command": "ls"})).directory("/tmp"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_briefly(settings: Settings) -> Result<Self, AuditError> {
        Self::begin(settings, None, Stay::Brief)
    }

    fn begin(settings: Settings, follows: Option<String>, stay: Stay) -> Result<Self, AuditError> {
        private_directory(&settings.directory)?;
        let key = Key::open_or_create(&settings.key)?;
        let context = Context { boot: settings.boot(), key, settings, stay };
        let state = match stay {
            Stay::Long => Some(State::open(&context, follows)?.unlocked()),
            // opened with the first entry, under the lock that is needed then anyway
            Stay::Brief => None,
        };
        let (deliveries, sync) = (context.settings.deliveries.clone(), context.settings.sync);
        let inner =
            Arc::new(Inner { context, queue: Mutex::default(), written: Condvar::new(), state: Mutex::new(state) });
        let (courier, flusher) = match (stay, sync) {
            (Stay::Brief, _) => (None, None),
            (Stay::Long, SyncMode::Interval(every)) => (Courier::start(&deliveries), Some(flush_every(&inner, every))),
            (Stay::Long, SyncMode::Always | SyncMode::Os) => (Courier::start(&deliveries), None),
        };
        Ok(Log { inner, courier, _flusher: flusher })
    }

    /// Moves a log that was found damaged aside and begins a new one that names it. Returns where the old one lies now.
    pub fn set_aside(settings: Settings) -> Result<(Self, PathBuf), AuditError> {
        let stamp = Time::now().milliseconds();
        let aside = settings.directory.with_extension(format!("set-aside-{stamp}"));
        fs::rename(&settings.directory, &aside).at("move", &settings.directory)?;
        let name = aside.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok((Self::begin(settings, name, Stay::Long)?, aside))
    }

    /// The log's id: the same in all its segments.
    pub fn id(&self) -> Result<String, AuditError> {
        self.inner.with_state(|state| Ok(state.log_id().to_owned()))
    }

    /// The public key that checkpoints are signed with, hexadecimal.
    pub fn public_key(&self) -> String {
        self.inner.context.key.public()
    }

    /// Where and how the log is kept.
    pub fn settings(&self) -> &Settings {
        &self.inner.context.settings
    }

    /// Appends one entry. When this returns, it is as safe as the settings say.
    pub fn append(&self, record: &Record) -> Result<Receipt, AuditError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends several entries that stand together: all of them, or none.
    pub fn append_all(&self, records: &[Record]) -> Result<Receipt, AuditError> {
        let tails = records.iter().map(Tail::of).collect::<Result<Vec<_>, _>>()?;
        let (receipt, after) = self.inner.append(tails)?;
        if let Some(after) = after {
            self.follow_up(after);
        }
        Ok(receipt)
    }

    /// Writes a signed checkpoint now, sends it where checkpoints go, and hands it out.
    pub fn checkpoint(&self) -> Result<crate::checkpoint::SignedCheckpoint, AuditError> {
        let (checkpoint, after) = self.inner.with_state(|state| state.checkpoint_now(&self.inner.context))?;
        self.follow_up(after);
        Ok(checkpoint)
    }

    /// Closes the current segment and begins the next one.
    pub fn rotate(&self) -> Result<(), AuditError> {
        let after = self.inner.with_state(|state| state.rotate_now(&self.inner.context))?;
        self.follow_up(after);
        Ok(())
    }

    /// Forces everything onto the disk.
    pub fn sync(&self) -> Result<(), AuditError> {
        self.inner.with_state(|state| state.sync_now(&self.inner.context))
    }

    /// Compresses closed segments. Safe at any time and from any process; another one that is at it is not disturbed.
    pub fn maintain(&self) -> Result<(), AuditError> {
        let current = self.inner.with_state(|state| Ok(state.segment_number()))?;
        compress_below(&self.inner.context.settings.directory, current)
    }

    /// What has time until the entries are written: sending checkpoints, compressing.
    fn follow_up(&self, after: After) {
        let mut failures = Vec::new();
        for checkpoint in after.checkpoints {
            for delivery in &self.inner.context.settings.deliveries {
                let failure = match &self.courier {
                    Some(courier) if !delivery.is_quick() => courier.send(delivery, &checkpoint),
                    // a process that ends at once has nobody to leave it to
                    _ => delivery.deliver(&checkpoint),
                };
                let failure = failure.err();
                if let Some(reason) = failure {
                    failures.push(courier::failed(delivery.as_ref(), &checkpoint, reason));
                }
            }
        }
        failures.extend(self.courier.iter().flat_map(Courier::failures));
        self.note(failures);
        // A process that ends at once leaves compressing to one that stays.
        let compress = self.settings().compress && self.inner.context.stay == Stay::Long;
        if let Some(segment) = after.closed.filter(|_| compress) {
            let directory = self.settings().directory.clone();
            // Not waited for: what a process that ends leaves half done, the next one does anew.
            let _ = std::thread::Builder::new()
                .name("callgate-audit-compress".to_owned())
                .spawn(move || compress_below(&directory, segment.saturating_add(1)));
        }
    }

    /// Writes that checkpoints were not delivered. If even that fails, the next call that is logged will fail as well.
    fn note(&self, failures: Vec<DeliveryFailed>) {
        let tails: Vec<Tail> = failures
            .into_iter()
            .filter_map(|failed| Tail::of(&Record::new(Body::DeliveryFailed(failed))).ok())
            .collect();
        if !tails.is_empty() {
            let _ = self.inner.append(tails);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(courier) = self.courier.take() {
            let failures = courier.finish(Duration::from_secs(5));
            self.note(failures);
        }
        if let Ok(mut state) = self.inner.state()
            && let Some(state) = state.as_mut()
        {
            // what is not noted is only thought to be less safe than it is
            let _ = state.note_synced(&self.inner.context);
        }
    }
}

/// What is to be done once entries are written.
#[derive(Debug, Default)]
struct After {
    checkpoints: Vec<crate::checkpoint::SignedCheckpoint>,
    closed: Option<u64>,
}

impl Inner {
    fn state(&self) -> Result<MutexGuard<'_, Option<State>>, AuditError> {
        self.state.lock().map_err(|_| AuditError::Poisoned)
    }

    /// Does something with the log, which is opened if it was not yet.
    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> Result<T, AuditError>) -> Result<T, AuditError> {
        let mut state = self.state()?;
        match state.as_mut() {
            Some(state) => work(state),
            None => work(state.insert(State::open(&self.context, None)?.unlocked())),
        }
    }

    /// Writes a group. A log that is opened for it stays locked from the first look to the last byte.
    fn write(&self, group: &[Waiting]) -> Result<(Vec<Receipt>, After), AuditError> {
        let mut state = self.state()?;
        match state.as_mut() {
            Some(state) => state.write(&self.context, group),
            None => state.insert(State::open(&self.context, None)?).write(&self.context, group),
        }
    }

    fn append(&self, tails: Vec<Tail>) -> Result<(Receipt, Option<After>), AuditError> {
        let answer = Arc::new(OnceLock::new());
        let mut queue = self.queue.lock().map_err(|_| AuditError::Poisoned)?;
        queue.waiting.push(Waiting { tails, answer: Arc::clone(&answer) });
        let group = loop {
            // Whoever wrote last may have written these entries with its own.
            if let Some(written) = answer.get() {
                return written.clone().map(|receipt| (receipt, None)).map_err(AuditError::Together);
            }
            if !queue.writing {
                queue.writing = true;
                break std::mem::take(&mut queue.waiting);
            }
            queue.sleeping = queue.sleeping.saturating_add(1);
            queue = self.written.wait(queue).map_err(|_| AuditError::Poisoned)?;
            queue.sleeping = queue.sleeping.saturating_sub(1);
        };
        drop(queue);
        let turn = Turn { inner: self, group };
        let (receipts, after) = self.write(&turn.group).inspect_err(|error| {
            for waiting in &turn.group {
                let _ = waiting.answer.set(Err(error.to_string()));
            }
        })?;
        for (waiting, receipt) in turn.group.iter().zip(receipts) {
            let _ = waiting.answer.set(Ok(receipt));
        }
        match answer.get() {
            Some(Ok(receipt)) => Ok((*receipt, Some(after))),
            _ => Err(AuditError::Poisoned),
        }
    }
}

/// The turn of one writer. However it ends, everybody in its group gets an answer and the next one may write.
struct Turn<'a> {
    inner: &'a Inner,
    group: Vec<Waiting>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        for waiting in &self.group {
            // does nothing where there is an answer
            let _ = waiting.answer.set(Err(AuditError::Poisoned.to_string()));
        }
        let sleeping = self.inner.queue.lock().map(|mut queue| {
            queue.writing = false;
            queue.sleeping
        });
        if !matches!(sleeping, Ok(0)) {
            self.inner.written.notify_all();
        }
    }
}

/// Syncs at intervals until the sender goes away.
fn flush_every(inner: &Arc<Inner>, every: Duration) -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    let inner = Arc::downgrade(inner);
    // Without the thread, entries are still synced by the next `append` after the interval.
    let _ = std::thread::Builder::new().name("callgate-audit-sync".to_owned()).spawn(move || {
        while receiver.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let Some(inner) = inner.upgrade() else { return };
            if let Ok(mut state) = inner.state.lock()
                && let Some(state) = state.as_mut()
            {
                // A failed sync is noticed by the next append, which syncs itself.
                let _ = state.sync_if_dirty(&inner.context);
            }
        }
    });
    sender
}

/// Compresses all plain segments below a number, unless somebody else is at it.
fn compress_below(directory: &Path, number: u64) -> Result<(), AuditError> {
    let lock = rewrite_lock(directory)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error).at("lock", directory),
    }
    for file in segment::list(directory)? {
        if file.number < number && !file.compressed {
            segment::compress(directory, file.number)?;
        }
    }
    Ok(())
}

/// The lock of those who rewrite closed segments.
fn rewrite_lock(directory: &Path) -> Result<File, AuditError> {
    let path = directory.join("rewrite.lock");
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).at("open", &path)
}
