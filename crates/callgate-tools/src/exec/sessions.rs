//! Programs that stay: each with a terminal of its own, which later calls write to and read from.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::Winsize;

use super::child::{Program, Started, Streams};
use super::tail::Tail;
use crate::helper::Report;
use crate::result::{ErrorKind, ToolError};

/// How many sessions there may be at once.
const MAXIMUM: usize = 256;
/// A session that nobody has written to or read from for so long ends.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How much output is kept for the next call that reads it.
const KEPT: usize = 262_144;

/// What a program printed since the last call.
pub(crate) struct SessionOutput {
    pub text: String,
    pub truncated: bool,
    /// How it ended, if it has.
    pub ended: Option<Report>,
}

struct Printed {
    tail: Tail,
    /// The terminal is closed: everything that used it has ended.
    closed: bool,
}

struct Session {
    started: Started,
    terminal: OwnedFd,
    printed: Arc<(Mutex<Printed>, Condvar)>,
    used: Instant,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.started.end();
    }
}

/// The sessions of a toolbox. They end with it.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<u64, Arc<Mutex<Option<Session>>>>>,
    last: AtomicU64,
}

impl Sessions {
    /// Whether there is a session.
    pub fn has(&self, id: u64) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// Starts a program in a terminal.
    pub fn start(&self, program: Program) -> Result<u64, ToolError> {
        self.forget_idle();
        let failed =
            |error: std::io::Error| ToolError::new(ErrorKind::Unknown, format!("cannot open a terminal: {error}"));
        if self.open.lock().unwrap_or_else(PoisonError::into_inner).len() >= MAXIMUM {
            return Err(ToolError::validation(format!("there are {MAXIMUM} sessions already; end one of them first")));
        }
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .map_err(|error| failed(error.into()))?;
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).map_err(|error| failed(error.into()))?;
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&terminal, size).map_err(|error| failed(error.into()))?;
        let name = ptsname(&terminal, Vec::new()).map_err(|error| failed(error.into()))?;
        let name = PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes()));
        let reading = terminal.try_clone().map_err(failed)?;
        let started = program.start(Streams::Terminal(name))?;
        let printed = Arc::new((Mutex::new(Printed { tail: Tail::new(KEPT), closed: false }), Condvar::new()));
        let kept = Arc::clone(&printed);
        std::thread::spawn(move || read_all(reading, &kept));
        let id = self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let session = Session { started, terminal, printed, used: Instant::now() };
        let session = Arc::new(Mutex::new(Some(session)));
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, session);
        Ok(id)
    }

    /// Types text, waits for a while or until the program has ended, and returns what it printed.
    pub fn exchange(&self, id: u64, typed: &str, wait: Duration, limit: usize) -> Result<SessionOutput, ToolError> {
        let session = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&id).map(Arc::clone);
        let missing =
            || ToolError::new(ErrorKind::NotFound, "session not found").data(serde_json::json!({"session_id": id}));
        let session = session.ok_or_else(missing)?;
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        let open = session.as_mut().ok_or_else(missing)?;
        open.used = Instant::now();
        let deadline = Instant::now().checked_add(wait).unwrap_or_else(Instant::now);
        let unread = type_into(&open.terminal, typed.as_bytes(), deadline)?;
        let (lock, changed) = &*open.printed;
        let mut printed = lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !open.started.has_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // a terminal is closed a moment before its program has ended
            let step = left.min(Duration::from_millis(if printed.closed { 2 } else { 20 }));
            printed = changed.wait_timeout(printed, step).unwrap_or_else(PoisonError::into_inner).0;
        }
        let ended = open.started.has_ended();
        if ended {
            // the last of what it printed
            while !printed.closed {
                printed = changed.wait(printed).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let output = printed.tail.take(limit);
        drop(printed);
        let report = if ended {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            session.take().map(|mut session| session.started.report())
        } else {
            None
        };
        if unread > 0 && report.is_none() {
            let message = format!("the program did not read the last {unread} bytes; send them again later");
            return Err(ToolError::new(ErrorKind::Timeout, message)
                .data(serde_json::json!({"session_id": id}))
                .retryable());
        }
        Ok(SessionOutput { text: output.text(), truncated: output.cut, ended: report })
    }

    /// Ends a session.
    pub fn end(&self, id: u64) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Ends the sessions that nobody uses.
    fn forget_idle(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |session: &Arc<Mutex<Option<Session>>>| {
            session
                .try_lock()
                .is_ok_and(|session| session.as_ref().is_some_and(|session| session.used.elapsed() > IDLE))
        };
        open.retain(|_, session| !idle(session));
    }
}

fn read_all(terminal: OwnedFd, kept: &(Mutex<Printed>, Condvar)) {
    let mut terminal = File::from(terminal);
    let mut buffer = vec![0_u8; 16_384];
    let (lock, changed) = kept;
    // When the last one closes the terminal, reading fails.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        let mut printed = lock.lock().unwrap_or_else(PoisonError::into_inner);
        printed.tail.push(buffer.get(..length).unwrap_or_default());
        changed.notify_all();
    }
    lock.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
    changed.notify_all();
}

/// Types text into a terminal. Says how many bytes the program's side did not take in time.
fn type_into(terminal: &OwnedFd, mut typed: &[u8], deadline: Instant) -> Result<usize, ToolError> {
    let failed =
        |error: std::io::Error| ToolError::new(ErrorKind::Unknown, format!("cannot write to the terminal: {error}"));
    // a program that reads is given a moment even if the caller does not wait
    let deadline = deadline.max(Instant::now().checked_add(Duration::from_millis(50)).unwrap_or(deadline));
    while !typed.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut ready = [PollFd::from_borrowed_fd(terminal.as_fd(), PollFlags::OUT)];
        let timeout = Timespec::try_from(left).ok();
        rustix::event::poll(&mut ready, timeout.as_ref()).map_err(|error| failed(error.into()))?;
        if !ready.iter().any(|ready| ready.revents().contains(PollFlags::OUT)) {
            return Ok(typed.len());
        }
        // small pieces, so that writing does not wait
        let piece = typed.get(..typed.len().min(256)).unwrap_or_default();
        let length = rustix::io::write(terminal, piece).map_err(|error| failed(error.into()))?;
        typed = typed.get(length..).unwrap_or_default();
    }
    Ok(0)
}
