//! Contained calls that run now.
//!
//! Each of them keeps a locked file in the state directory, which no contained call sees. The lock goes away with the process that
//! holds it, so a file without one was left by a process that was killed. The directory is there only while there are such files: to
//! find out that nothing runs costs one failed look.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callgate_model::clock::Timestamp;
use callgate_policy::directories;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// The version of the files' form.
const VERSION: u32 = 1;
/// The longest file that is read.
const LONGEST: u64 = 1 << 20;
/// How often a directory that others remove is made again.
const ATTEMPTS: usize = 100;
/// How old a file must be that nobody has locked and that does not have its name yet.
const ABANDONED: Duration = Duration::from_secs(10);

/// A contained call that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRun {
    /// The version of this form.
    pub version: u32,
    /// The name in `callgate ps`: the number of the process that supervises it.
    pub id: String,
    /// The id in the audit log.
    pub call: String,
    /// The command, without secrets.
    pub command: String,
    /// Where it runs.
    pub directory: PathBuf,
    /// The project it belongs to.
    pub workspace: Option<PathBuf>,
    /// The directories that it may change.
    pub roots: Vec<PathBuf>,
    /// Whether it may make and move symlinks in them.
    pub links: bool,
    /// When it started.
    pub since: Timestamp,
    /// Whether it lives on after the command that started it.
    pub background: bool,
    /// The process whose end ends it: its number and when it started.
    pub owner: Option<(u32, u64)>,
}

impl Default for LiveRun {
    fn default() -> Self {
        LiveRun {
            version: VERSION,
            id: String::new(),
            call: String::new(),
            command: String::new(),
            directory: PathBuf::new(),
            workspace: None,
            roots: Vec::new(),
            links: true,
            since: Timestamp::now(),
            background: false,
            owner: None,
        }
    }
}

/// Directories that a contained call may change right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangingRoot {
    /// The directory.
    pub path: PathBuf,
    /// Whether links in it may change, and so where a path leads.
    pub links: bool,
}

/// Shows that a contained call runs, until it is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
    _locked: File,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Somebody who looked for what was left may have been faster.
        let _ = std::fs::remove_file(&self.path);
        if let Some(directory) = self.path.parent() {
            // fails while others run
            let _ = std::fs::remove_dir(directory);
        }
    }
}

fn directory() -> Option<PathBuf> {
    Some(directories::state()?.join("live"))
}

/// A name that no other run of this user has now.
pub fn new_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    match COUNTER.fetch_add(1, Ordering::Relaxed) {
        0 => std::process::id().to_string(),
        more => format!("{}-{more}", std::process::id()),
    }
}

/// Shows that a contained call runs. Call it before the call is started, and drop the result after everything has ended.
pub fn register(run: &LiveRun) -> io::Result<Registration> {
    let directory = directory().ok_or_else(|| io::Error::other("there is no home directory"))?;
    register_in(&directory, run)
}

fn register_in(directory: &Path, run: &LiveRun) -> io::Result<Registration> {
    let text = serde_json::to_vec(run)?;
    let (path, new) = (directory.join(&run.id), directory.join(format!(".{}", run.id)));
    let mut last = io::Error::from(ErrorKind::NotFound);
    for _ in 0..ATTEMPTS {
        let attempt = || -> io::Result<File> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            flock(&file, FlockOperation::LockExclusive)?;
            file.write_all(&text)?;
            // It gets its name when it is complete and locked.
            std::fs::rename(&new, &path)?;
            Ok(file)
        };
        match attempt() {
            Ok(locked) => return Ok(Registration { path, _locked: locked }),
            // Who ends removes the directory if it is empty, which may happen between these steps. While it is made, it may be there
            // for one look and gone for the next.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The contained calls that run. Removes what killed processes have left.
pub fn all() -> io::Result<Vec<LiveRun>> {
    directory().map_or_else(|| Ok(Vec::new()), |directory| all_in(&directory))
}

fn all_in(directory: &Path) -> io::Result<Vec<LiveRun>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let unfinished = entry.file_name().as_encoded_bytes().starts_with(b".");
        if let Some(file) = locked(&entry.path(), unfinished)?
            && !unfinished
        {
            let mut text = Vec::new();
            file.take(LONGEST).read_to_end(&mut text)?;
            all.push(serde_json::from_slice(&text)?);
        }
    }
    if all.is_empty() {
        // fails if somebody else starts meanwhile
        let _ = std::fs::remove_dir(directory);
    }
    Ok(all)
}

/// The file, if a process has locked it. Removes it otherwise.
fn locked(path: &Path, unfinished: bool) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Some(file)),
        Err(error) => return Err(error.into()),
        Ok(()) => {}
    }
    // One that is being made is not locked for a moment.
    let data = file.metadata()?;
    let age = data.modified()?.elapsed().unwrap_or_default();
    // A run that has just ended may have made room for another one of its name.
    let is_there = path.symlink_metadata().is_ok_and(|now| (now.dev(), now.ino()) == (data.dev(), data.ino()));
    if is_there && (!unfinished || age > ABANDONED) {
        // Somebody else may have been faster.
        let _ = std::fs::remove_file(path);
    }
    Ok(None)
}

/// The directories that contained calls may change right now. If that cannot be found out, everything may.
pub fn changing_roots() -> Vec<ChangingRoot> {
    let Some(directory) = directory() else { return Vec::new() };
    match all_in(&directory) {
        Ok(all) => {
            let roots = |run: LiveRun| run.roots.into_iter().map(move |path| ChangingRoot { path, links: run.links });
            all.into_iter().flat_map(roots).collect()
        }
        Err(_) => vec![ChangingRoot { path: "/".into(), links: true }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str) -> LiveRun {
        LiveRun { id: id.into(), roots: vec!["/w".into()], ..LiveRun::default() }
    }

    #[test]
    fn a_run_is_seen_while_it_lives_and_leaves_nothing() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("live");
        assert_eq!(all_in(&directory).unwrap(), []);
        let (one, other) = (run("1"), run("2"));
        let first = register_in(&directory, &one).unwrap();
        let second = register_in(&directory, &other).unwrap();
        assert_eq!(all_in(&directory).unwrap().len(), 2);
        drop(first);
        assert_eq!(all_in(&directory).unwrap(), [other]);
        drop(second);
        assert!(!directory.exists());
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("live");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("7"), serde_json::to_vec(&run("7")).unwrap()).unwrap();
        std::fs::write(directory.join(".8"), "half").unwrap();
        assert_eq!(all_in(&directory).unwrap(), []);
        assert!(!directory.join("7").exists() && directory.join(".8").exists(), "one that is being made stays");
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        File::open(directory.join(".8")).unwrap().set_modified(old).unwrap();
        assert_eq!(all_in(&directory).unwrap(), []);
        assert!(!directory.exists());
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("live");
        let file = register_in(&directory, &run("7")).unwrap();
        std::fs::write(directory.join("7"), "{").unwrap();
        assert!(all_in(&directory).is_err());
        drop(file);
    }

    #[test]
    fn many_that_start_and_end_at_once_do_not_disturb_each_other() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("live");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let directory = &directory;
                scope.spawn(move || {
                    for round in 0..100 {
                        // as real ones, no two have the same name
                        let run = run(&format!("{thread}-{round}"));
                        let kept = register_in(directory, &run).unwrap();
                        assert!(all_in(directory).unwrap().contains(&run));
                        drop(kept);
                    }
                });
            }
        });
        assert!(!directory.exists());
    }
}
