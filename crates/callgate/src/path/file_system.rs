//! The narrow interface to the file system for decisions.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;

use crate::live::{self, ChangingRoot};

/// What exists at a path, without following symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEntry {
    /// Nothing.
    Missing,
    /// A symlink and its target.
    Link(PathBuf),
    /// A directory.
    Directory,
    /// A file, device, socket …
    Other,
    /// It cannot be read, and why.
    Unreadable(String),
}

/// What a name in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A symlink.
    Link,
    /// A file, device, socket …
    Other,
}

/// Why the names in a directory are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnseenDirectory {
    /// There are too many.
    TooLarge,
    /// It cannot be read.
    Unreadable,
}

/// What tells whether a file was changed. Times are seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Its length.
    pub size: u64,
    /// The last change of the contents.
    pub modified: (i64, i64),
    /// The last change of the file.
    pub changed: (i64, i64),
    /// Its number in the file system.
    pub inode: u64,
}

/// The largest file of which a file system that cannot read parts reads one.
const LARGEST_WHOLE: usize = 16 << 20;

/// Access to the file system. Decisions use nothing else, so tests can replace it.
pub trait FileSystem: Send + Sync {
    /// What exists at an absolute path whose parents are not symlinks.
    fn look(&self, path: &Path) -> PathEntry;

    /// The names in a directory; `None` if it cannot be read or has more than `limit`.
    fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>>;

    /// The names in a directory and what they are, if there are no more than `limit`. Nothing is in what is not a directory.
    fn entries(&self, directory: &Path, limit: usize) -> Result<Vec<(OsString, EntryKind)>, UnseenDirectory> {
        let Some(names) = self.names(directory, limit) else {
            return match self.look(directory) {
                PathEntry::Missing | PathEntry::Other => Ok(Vec::new()),
                PathEntry::Directory | PathEntry::Link(_) => Err(UnseenDirectory::TooLarge),
                PathEntry::Unreadable(_) => Err(UnseenDirectory::Unreadable),
            };
        };
        let kind = |name: &OsString| match self.look(&directory.join(name)) {
            PathEntry::Directory => EntryKind::Directory,
            PathEntry::Link(_) => EntryKind::Link,
            PathEntry::Missing | PathEntry::Other | PathEntry::Unreadable(_) => EntryKind::Other,
        };
        Ok(names.into_iter().map(|name| (name.clone(), kind(&name))).collect())
    }

    /// The contents of a regular file of at most `limit` bytes; `None` if it does not exist. Only used for files that decide
    /// what a call does: configuration, scripts that an approval covers, and archives and patches that name other files.
    fn read(&self, path: &Path, limit: usize) -> std::io::Result<Option<Vec<u8>>>;

    /// At most `length` bytes of a regular file, from `offset` on; `None` if it does not exist. Less comes only at its end.
    fn read_part(&self, path: &Path, offset: u64, length: usize) -> std::io::Result<Option<Vec<u8>>> {
        let contents = self.read(path, LARGEST_WHOLE)?;
        let part = |all: Vec<u8>| usize::try_from(offset).ok().and_then(|start| all.get(start..).map(<[u8]>::to_vec));
        Ok(contents.map(|all| {
            let mut part = part(all).unwrap_or_default();
            part.truncate(length);
            part
        }))
    }

    /// The stamp of a regular file at a path whose parents are not symlinks; `None` if it is not one, or not known.
    fn stamp(&self, _path: &Path) -> Option<FileStamp> {
        None
    }

    /// Whether another user may place a symlink or file at this path, so that a write goes elsewhere. By default, that is
    /// true for names in the well-known shared directories.
    fn is_shared(&self, path: &Path) -> bool {
        in_well_known_directory(path)
    }

    /// The directories that contained calls may change right now: what is seen there may be different a moment later.
    fn changing(&self) -> Vec<ChangingRoot> {
        Vec::new()
    }
}

/// A file system without files, the same on every machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EmptyFileSystem;

impl FileSystem for EmptyFileSystem {
    fn look(&self, _path: &Path) -> PathEntry {
        PathEntry::Missing
    }

    fn names(&self, _directory: &Path, _limit: usize) -> Option<Vec<OsString>> {
        None
    }

    fn read(&self, _path: &Path, _limit: usize) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// Looks at each path once, for resolving many paths with common parents.
pub(crate) struct CachedFileSystem<'a> {
    file_system: &'a dyn FileSystem,
    /// By the text of the path: the paths come from one walk, which writes each of them in one way only.
    seen: Mutex<HashMap<OsString, PathEntry>>,
}

impl<'a> CachedFileSystem<'a> {
    pub(crate) fn new(file_system: &'a dyn FileSystem) -> Self {
        CachedFileSystem { file_system, seen: Mutex::default() }
    }
}

impl FileSystem for CachedFileSystem<'_> {
    fn look(&self, path: &Path) -> PathEntry {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = seen.get(path.as_os_str()) {
            return entry.clone();
        }
        let entry = self.file_system.look(path);
        seen.insert(path.as_os_str().to_owned(), entry.clone());
        entry
    }

    fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>> {
        self.file_system.names(directory, limit)
    }

    fn entries(&self, directory: &Path, limit: usize) -> Result<Vec<(OsString, EntryKind)>, UnseenDirectory> {
        self.file_system.entries(directory, limit)
    }

    fn read(&self, path: &Path, limit: usize) -> std::io::Result<Option<Vec<u8>>> {
        self.file_system.read(path, limit)
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> std::io::Result<Option<Vec<u8>>> {
        self.file_system.read_part(path, offset, length)
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        self.file_system.stamp(path)
    }

    fn is_shared(&self, path: &Path) -> bool {
        self.file_system.is_shared(path)
    }
}

/// Directories that every user may write to.
const EVERYBODYS: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp"];

fn in_well_known_directory(path: &Path) -> bool {
    path.parent().is_some_and(|parent| EVERYBODYS.iter().any(|directory| parent == Path::new(directory)))
}

/// Whether a kernel setting is a number above zero.
fn is_switched_on(setting: &str) -> bool {
    std::fs::read_to_string(setting).is_ok_and(|text| text.trim().parse::<u32>().is_ok_and(|value| value > 0))
}

/// Opens a regular file; `None` if there is none.
fn open_regular(path: &Path) -> std::io::Result<Option<File>> {
    // A pipe or a device must not block the gate.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(nonblocking).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(Some(file))
}

/// The machine's own file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn changing(&self) -> Vec<ChangingRoot> {
        live::changing_roots()
    }

    fn look(&self, path: &Path) -> PathEntry {
        let metadata = match std::fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => PathEntry::Missing,
                    kind => PathEntry::Unreadable(kind.to_string()),
                };
            }
        };
        if metadata.is_symlink() {
            match std::fs::read_link(path) {
                Ok(target) => PathEntry::Link(target),
                Err(error) => PathEntry::Unreadable(error.kind().to_string()),
            }
        } else if metadata.is_dir() {
            PathEntry::Directory
        } else {
            PathEntry::Other
        }
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(FileStamp {
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        })
    }

    fn is_shared(&self, path: &Path) -> bool {
        if !in_well_known_directory(path) {
            return false;
        }
        let directory = path.parent().and_then(|parent| std::fs::metadata(parent).ok());
        // The owner of `/proc/self` is the user of this process.
        let (Some(directory), Ok(me)) = (directory, std::fs::metadata("/proc/self")) else {
            return true;
        };
        const EVERYBODY_WRITES: u32 = 0o002;
        const STICKY: u32 = 0o1000;
        if directory.mode() & EVERYBODY_WRITES == 0 {
            return false;
        }
        let ours = match std::fs::symlink_metadata(path) {
            Ok(entry) => entry.uid() == me.uid(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        // With these settings, the kernel does not follow what another user places there later.
        let kept = directory.mode() & STICKY != 0
            && is_switched_on("/proc/sys/fs/protected_symlinks")
            && is_switched_on("/proc/sys/fs/protected_regular");
        !(ours && kept)
    }

    fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).ok()? {
            if names.len() >= limit {
                return None;
            }
            names.push(entry.ok()?.file_name());
        }
        names.sort_unstable();
        Some(names)
    }

    fn entries(&self, directory: &Path, limit: usize) -> Result<Vec<(OsString, EntryKind)>, UnseenDirectory> {
        const UNREADABLE: UnseenDirectory = UnseenDirectory::Unreadable;
        let mut entries = Vec::new();
        let read = match std::fs::read_dir(directory) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(entries),
            Err(_) => return Err(UNREADABLE),
        };
        for entry in read {
            if entries.len() >= limit {
                return Err(UnseenDirectory::TooLarge);
            }
            let entry = entry.map_err(|_| UNREADABLE)?;
            // The directory says what its entries are, so that there is no need to look at each of them.
            let kind = match entry.file_type().map_err(|_| UNREADABLE)? {
                kind if kind.is_dir() => EntryKind::Directory,
                kind if kind.is_symlink() => EntryKind::Link,
                _ => EntryKind::Other,
            };
            entries.push((entry.file_name(), kind));
        }
        Ok(entries)
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> std::io::Result<Option<Vec<u8>>> {
        let Some(mut file) = open_regular(path)? else { return Ok(None) };
        file.seek(SeekFrom::Start(offset))?;
        let mut part = Vec::new();
        file.take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut part)?;
        Ok(Some(part))
    }

    fn read(&self, path: &Path, limit: usize) -> std::io::Result<Option<Vec<u8>>> {
        let Some(file) = open_regular(path)? else { return Ok(None) };
        let mut contents = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        file.take(most).read_to_end(&mut contents)?;
        if contents.len() > limit {
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, "the file is too large"));
        }
        Ok(Some(contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_a_device_makes_nobody_wait() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), directory.path()] {
            assert!(RealFileSystem.read(path, 100).is_err(), "{}", path.display());
        }
        assert_eq!(RealFileSystem.read(&directory.path().join("missing"), 100).unwrap(), None);
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A file system that is a table.

    use std::collections::BTreeMap;

    use super::*;

    /// Paths and what stands there; parents that are not listed are directories.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Fake(BTreeMap<PathBuf, PathEntry>, BTreeMap<PathBuf, String>);

    impl Fake {
        pub(crate) fn new() -> Self {
            Fake::default()
        }

        fn with(mut self, path: &str, entry: PathEntry) -> Self {
            for parent in Path::new(path).ancestors().skip(1) {
                self.0.entry(parent.to_path_buf()).or_insert(PathEntry::Directory);
            }
            self.0.insert(path.into(), entry);
            self
        }

        pub(crate) fn directory(self, path: &str) -> Self {
            self.with(path, PathEntry::Directory)
        }

        pub(crate) fn file(self, path: &str) -> Self {
            self.with(path, PathEntry::Other)
        }

        /// A file with this text in it.
        pub(crate) fn contents(mut self, path: &str, text: &str) -> Self {
            self.1.insert(path.into(), text.to_owned());
            self.file(path)
        }

        pub(crate) fn link(self, path: &str, target: &str) -> Self {
            self.with(path, PathEntry::Link(target.into()))
        }

        pub(crate) fn unreadable(self, path: &str) -> Self {
            self.with(path, PathEntry::Unreadable("permission denied".into()))
        }
    }

    impl FileSystem for Fake {
        fn read(&self, path: &Path, _limit: usize) -> std::io::Result<Option<Vec<u8>>> {
            Ok(self.1.get(path).map(|text| text.clone().into_bytes()))
        }

        fn look(&self, path: &Path) -> PathEntry {
            self.0.get(path).cloned().unwrap_or(PathEntry::Missing)
        }

        fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>> {
            let names: Vec<_> = self
                .0
                .keys()
                .filter(|path| path.parent() == Some(directory))
                .filter_map(|path| path.file_name().map(Into::into))
                .collect();
            (names.len() <= limit && self.look(directory) == PathEntry::Directory).then_some(names)
        }
    }
}
