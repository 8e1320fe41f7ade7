//! Finds the repository that git uses in a directory, what its index says about files, and what its objects are.

pub(super) mod commits;
#[cfg(test)]
mod object_tests;
pub(super) mod objects;
pub(super) mod revisions;

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::git::index::IndexEntry;
use crate::git::{self, FoundRepository};
use crate::path::file_system::{FileStamp, FileSystem, PathEntry};

/// Finds the repository that git uses in a resolved directory.
pub(super) fn find(directory: &Path, file_system: &dyn FileSystem) -> FoundRepository {
    git::find(directory, &|path, limit| read(path, limit, file_system))
}

/// Reads a file; a directory and a link that leads nowhere are errors, since both are there.
pub(super) fn read(path: &Path, limit: usize, file_system: &dyn FileSystem) -> io::Result<Option<Vec<u8>>> {
    match file_system.read(path, limit) {
        Ok(Some(text)) => Ok(Some(text)),
        _ if file_system.look(&path.join(".")) == PathEntry::Directory => Err(ErrorKind::IsADirectory.into()),
        Ok(None) if matches!(file_system.look(path), PathEntry::Link(_)) => Err(io::Error::other("a link to nothing")),
        other => other,
    }
}

/// Whether a file still is what git saw. `written` is when the index was written: what changed then, or later, may have changed
/// again without another time.
pub(super) fn is_unchanged(entry: &IndexEntry, stamp: &FileStamp, written: (i64, i64)) -> bool {
    let same = |time: (i64, i64), known: (u32, u32)| time == (i64::from(known.0), i64::from(known.1));
    entry.is_file()
        && !entry.is_special
        && same(stamp.modified, entry.modified)
        && same(stamp.changed, entry.changed)
        && u64::from(entry.size) == stamp.size
        && stamp.inode & u64::from(u32::MAX) == u64::from(entry.inode)
        && stamp.modified < written
}
