//! Whether `callgate approvals watch` is running.
//!
//! A watcher holds a lock, which the system releases however the watcher ends.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

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

/// Whether a watcher is registered.
pub fn somebody_watches() -> bool {
    let file = path().and_then(|path| File::open(path).ok());
    file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}
