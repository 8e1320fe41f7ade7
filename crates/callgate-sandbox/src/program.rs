//! The program of a call: found and opened before the call is judged, and started by that descriptor.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, Stat};

use crate::denied::Denied;

/// A program that is held by a descriptor.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    file: Arc<OwnedFd>,
    state: State,
    is_script: bool,
}

/// What tells a file apart from another one, and from itself with other contents: device, inode, size, and when it was last written.
type State = (u64, u64, i64, i64, u64);

fn state(stat: &Stat) -> State {
    (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
}

impl Program {
    /// The program that a name means: as named, or found in the directories of `PATH`.
    pub fn find(name: &OsStr, directory: &Path, programs: &[PathBuf]) -> Result<Self, Denied> {
        let denied = |code: i32, why: &str| Denied {
            program: Some(code),
            ..Denied::new(format!("{}: {why}", Path::new(name).display()))
        };
        let path = if name.as_bytes().contains(&b'/') {
            Some(directory.join(name)).filter(|path| path.exists()).ok_or("no such file or directory")
        } else {
            let runs = |path: &PathBuf| {
                path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
            };
            programs.iter().map(|directory| directory.join(name)).find(runs).ok_or("command not found")
        };
        let path = path.map_err(|why| denied(127, why))?;
        Self::open(path).map_err(|error| denied(126, &error.to_string()))
    }

    fn open(path: PathBuf) -> io::Result<Self> {
        let file = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let mut start = [0_u8; 2];
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        // What can be run but not read is no script: its interpreter could not read it either.
        let is_script = is_file
            && std::fs::File::open(again).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"#!";
        Ok(Program { path, file: Arc::new(file), state: state(&stat), is_script })
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode.
    pub fn identity(&self) -> (u64, u64) {
        (self.state.0, self.state.1)
    }

    /// Whether an interpreter runs it, which opens it once more by its path.
    pub fn is_script(&self) -> bool {
        self.is_script
    }

    /// Fails if another file lies at its path by now, or if it was changed.
    pub fn check(&self) -> Result<(), Denied> {
        let is_same = |stat: Result<Stat, rustix::io::Errno>| stat.is_ok_and(|stat| state(&stat) == self.state);
        if is_same(rustix::fs::stat(&self.path)) && is_same(rustix::fs::fstat(&*self.file)) {
            return Ok(());
        }
        Err(Denied::new(format!("{} was replaced or changed after it was judged", self.path.display()))
            .hint("run the command again, so that what is there now is judged"))
    }

    /// What to start: the file that is held, and for a script its path.
    pub fn to_start(&self) -> PathBuf {
        if self.is_script {
            self.path.clone()
        } else {
            PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
        }
    }
}

/// The directories of `PATH` in an environment.
pub fn directories(environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let path = environment.iter().find(|(name, _)| name == "PATH");
    path.map(|(_, path)| std::env::split_paths(path).collect()).unwrap_or_default()
}
