//! A file system that notices whether something was looked at where contained calls that run may change it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::file_system::{EntryKind, FileStamp, FileSystem, PathEntry, UnseenDirectory};
use crate::live::ChangingRoot;

/// How far what was observed proves anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing that was looked at changes by a contained call.
    #[default]
    Yes,
    /// Files may change, but every path leads where it led.
    Paths,
    /// Files may change, and paths may lead elsewhere.
    No,
}

/// Passes everything on and notices what is looked at below the roots of contained calls.
pub(crate) struct WatchedFileSystem<'a> {
    file_system: &'a dyn FileSystem,
    roots: Vec<ChangingRoot>,
    seen: AtomicBool,
    seen_links: AtomicBool,
}

impl<'a> WatchedFileSystem<'a> {
    /// Watches these directories, which are resolved, and `aliases`: other names of directories with what they lead to.
    pub(crate) fn new(
        file_system: &'a dyn FileSystem,
        mut roots: Vec<ChangingRoot>,
        aliases: impl IntoIterator<Item = (PathBuf, PathBuf)>,
    ) -> Self {
        for (alias, resolved) in aliases {
            let above = roots.iter().filter(|root| resolved.starts_with(&root.path));
            if let Some(links) = above.map(|root| root.links).max() {
                roots.push(ChangingRoot { path: alias, links });
            }
        }
        WatchedFileSystem { file_system, roots, seen: AtomicBool::default(), seen_links: AtomicBool::default() }
    }

    /// What the looks so far prove.
    pub(crate) fn settled(&self) -> Settled {
        match (self.seen_links.load(Ordering::Relaxed), self.seen.load(Ordering::Relaxed)) {
            (true, _) => Settled::No,
            (false, true) => Settled::Paths,
            (false, false) => Settled::Yes,
        }
    }

    /// What lies in a root may change. The root itself stays where it is: nobody inside can move it.
    fn notice(&self, path: &Path) {
        for root in self.roots.iter().filter(|root| path.starts_with(&root.path) && path != root.path) {
            self.seen.store(true, Ordering::Relaxed);
            self.seen_links.fetch_or(root.links, Ordering::Relaxed);
        }
    }

    fn notice_contents(&self, directory: &Path) {
        self.notice(&directory.join("contents"));
    }
}

impl FileSystem for WatchedFileSystem<'_> {
    fn look(&self, path: &Path) -> PathEntry {
        self.notice(path);
        self.file_system.look(path)
    }

    fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>> {
        self.notice_contents(directory);
        self.file_system.names(directory, limit)
    }

    fn entries(&self, directory: &Path, limit: usize) -> Result<Vec<(OsString, EntryKind)>, UnseenDirectory> {
        self.notice_contents(directory);
        self.file_system.entries(directory, limit)
    }

    fn read(&self, path: &Path, limit: usize) -> std::io::Result<Option<Vec<u8>>> {
        self.notice(path);
        self.file_system.read(path, limit)
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> std::io::Result<Option<Vec<u8>>> {
        self.notice(path);
        self.file_system.read_part(path, offset, length)
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        self.notice(path);
        self.file_system.stamp(path)
    }

    fn is_shared(&self, path: &Path) -> bool {
        self.notice(path);
        self.file_system.is_shared(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::file_system::fake::Fake;

    #[test]
    fn looks_below_a_root_are_noticed() {
        let fake = Fake::new().file("/w/a").file("/x/b");
        let root = |path: &str, links| ChangingRoot { path: path.into(), links };
        let watched = |roots| WatchedFileSystem::new(&fake, roots, [("/alias".into(), "/w/sub".into())]);
        for (path, expected) in [
            ("/w", Settled::Yes),
            ("/wide", Settled::Yes),
            ("/x/b", Settled::Yes),
            ("/w/a", Settled::Paths),
            ("/alias/a", Settled::Paths),
        ] {
            let watched = watched(vec![root("/w", false)]);
            watched.look(Path::new(path));
            assert_eq!(watched.settled(), expected, "{path}");
        }
        let listed = watched(vec![root("/w", false), root("/x", true)]);
        listed.names(Path::new("/w"), 10);
        assert_eq!(listed.settled(), Settled::Paths, "the names in a root may change");
        listed.stamp(Path::new("/x/b"));
        assert_eq!(listed.settled(), Settled::No);
    }
}
