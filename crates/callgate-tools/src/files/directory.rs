//! Reads directories by descriptor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

/// What a name in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink, wherever it leads.
    Symlink,
    /// Anything else.
    Other,
}

impl EntryKind {
    /// The name in results.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::File => "file",
            EntryKind::Directory => "dir",
            EntryKind::Symlink => "symlink",
            EntryKind::Other => "other",
        }
    }
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

impl Entry {
    /// Whether the name begins with a dot.
    pub fn is_hidden(&self) -> bool {
        self.name.as_bytes().starts_with(b".")
    }
}

/// The names in a directory, as far as they can be read, without `.` and `..`.
pub fn entries(directory: impl AsFd) -> io::Result<Vec<Entry>> {
    let readable =
        rustix::fs::openat(&directory, ".", OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let mut found = Vec::new();
    for entry in Dir::new(readable)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // some file systems do not tell
            FileType::Unknown => rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |data| FileType::from_raw_mode(data.st_mode)),
            kind => kind,
        };
        let kind = match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Other,
        };
        found.push(Entry { name: name.to_owned(), kind });
    }
    Ok(found)
}
