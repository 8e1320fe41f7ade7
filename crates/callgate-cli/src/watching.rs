//! Whether `callgate approvals watch` is running.
//!
//! A watcher holds a lock, which the system releases however the watcher ends.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use callgate::approvals::{Answer, Approver, AskError, Question};
use callgate::clock::Timestamp;

use crate::notify::Notifier;

fn path() -> Option<PathBuf> {
    callgate::policy::directories::state().map(|state| state.join("watching"))
}

/// Registers a watcher for as long as the result lives.
pub fn begin() -> std::io::Result<Option<File>> {
    let Some(path) = path() else { return Ok(None) };
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.lock_shared()?;
    Ok(Some(file))
}

/// Waits for whoever watches, and lets the user know.
pub struct Watched(pub Notifier);

impl Approver for Watched {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        if !somebody_watches() {
            return Err(AskError::Unavailable("`callgate approvals watch` is not running".into()));
        }
        self.0.notify(question);
        loop {
            if !open() {
                return Err(AskError::Closed);
            }
            let left = Timestamp::now().until(question.deadline);
            if left.is_zero() {
                return Err(AskError::TimedOut);
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

/// Whether a watcher is registered.
pub fn somebody_watches() -> bool {
    let file = path().and_then(|path| File::open(path).ok());
    file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}
