//! Walks directory trees once, up to a limit for the whole call.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_model::effect::Selection;

use crate::git::{FoundRepository, index};
use crate::observe::repository;

use super::ignored::IgnoredNames;
use super::selection::NameFilter;
use crate::path::file_system::{EntryKind, FileSystem, UnseenDirectory};

/// The maximum number of names that are looked at for one call. A tree with more may contain anything, on every machine.
pub(crate) const MAXIMUM_ENTRIES: usize = 20_000;

/// The largest index of a repository that is read.
const MAXIMUM_INDEX: usize = 16 << 20;

/// A name below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    /// The path, relative to the directory.
    pub path: PathBuf,
    pub kind: EntryKind,
}

type Walked = Result<Arc<[TreeEntry]>, UnseenDirectory>;

/// Walks trees for one call.
pub(crate) struct TreeWalker<'a> {
    file_system: &'a dyn FileSystem,
    left: usize,
    walked: HashMap<(PathBuf, Selection), Walked>,
}

impl<'a> TreeWalker<'a> {
    pub(crate) fn new(file_system: &'a dyn FileSystem) -> Self {
        TreeWalker { file_system, left: MAXIMUM_ENTRIES, walked: HashMap::new() }
    }

    /// The names below a resolved directory that a program visits. Symlinks are not followed.
    pub(crate) fn walk(&mut self, directory: &Path, selection: &Selection) -> Walked {
        let key = (directory.to_path_buf(), selection.clone());
        if let Some(known) = self.walked.get(&key) {
            return known.clone();
        }
        let filter = NameFilter::new(selection);
        let tracked = if selection.tracked { self.tracked(directory, &filter) } else { None };
        let walked = tracked.unwrap_or_else(|| self.read(directory, &filter, selection));
        if walked == Err(UnseenDirectory::TooLarge) {
            self.left = 0;
        }
        self.walked.insert(key, walked.clone());
        walked
    }

    fn read(&mut self, directory: &Path, filter: &NameFilter, selection: &Selection) -> Walked {
        let mut entries = Vec::new();
        let ignored = selection.skips_ignored.then(|| IgnoredNames::around(directory, self.file_system)).flatten();
        let mut waiting = vec![(PathBuf::new(), ignored)];
        while let Some((relative, ignored)) = waiting.pop() {
            let path = directory.join(&relative);
            let names = self.file_system.entries(&path, self.left)?;
            self.left = self.left.saturating_sub(names.len());
            let ignored = ignored.and_then(|ignored| ignored.inside(&path, &names, self.file_system));
            for (name, kind) in names {
                let wanted = match kind {
                    EntryKind::Directory => filter.enters(&name),
                    // It may lead to a directory.
                    EntryKind::Link if selection.follows => filter.enters(&name) || filter.visits(&name),
                    EntryKind::Link | EntryKind::Other => filter.visits(&name),
                };
                let is_ignored = |ignored: &IgnoredNames| {
                    let is_directory = kind == EntryKind::Directory;
                    name.to_str().is_some_and(|name| !filter.names(name) && ignored.contain(name, is_directory))
                };
                if !wanted || ignored.as_ref().is_some_and(is_ignored) {
                    continue;
                }
                let path = relative.join(name);
                if kind == EntryKind::Directory {
                    waiting.push((path.clone(), ignored.as_ref().map(IgnoredNames::below)));
                }
                entries.push(TreeEntry { path, kind });
            }
        }
        Ok(entries.into())
    }

    /// The names that git tracks below a directory; `None` if they are not known.
    fn tracked(&mut self, directory: &Path, filter: &NameFilter) -> Option<Walked> {
        let FoundRepository::Certain(tree) = repository::find(directory, self.file_system) else { return None };
        let inside = directory.strip_prefix(&tree.root).ok()?;
        let bytes = self.file_system.read(&tree.folder.join("index"), MAXIMUM_INDEX).ok()?;
        let Some(bytes) = bytes else { return Some(Ok(Vec::new().into())) };
        let mut found = Vec::new();
        for entry in index::entries(&bytes)? {
            let Ok(path) = Path::new(&entry.path).strip_prefix(inside) else { continue };
            let Some(left) = self.left.checked_sub(1) else { return Some(Err(UnseenDirectory::TooLarge)) };
            self.left = left;
            if path.file_name().is_none_or(|name| filter.visits(name)) {
                let kind = if entry.is_link() { EntryKind::Link } else { EntryKind::Other };
                found.push(TreeEntry { path: path.to_owned(), kind });
            }
        }
        Some(Ok(found.into()))
    }
}
