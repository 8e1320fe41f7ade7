//! Names that the `.gitignore` files of a repository leave out for certain, for programs that heed them.

use std::ffi::OsString;
use std::path::Path;

use crate::path::file_system::{EntryKind, FileSystem, PathEntry};
use crate::path::pattern::may_match;

/// The largest file that is read.
const MAXIMUM_FILE: usize = 64 << 10;
/// Files that take names back in, or could.
const OVERRIDES: [&str; 2] = [".ignore", ".rgignore"];

/// The patterns that apply in a directory. Only plain ones count: names with `*` and `?`, for one directory or all below it.
#[derive(Debug, Clone, Default)]
pub(super) struct IgnoredNames {
    anywhere: Vec<IgnoredName>,
    here: Vec<IgnoredName>,
}

#[derive(Debug, Clone)]
struct IgnoredName {
    glob: String,
    only_directories: bool,
}

impl IgnoredNames {
    /// The patterns from the directories above one; `None` if nothing is ignored for certain, because it is in no repository or
    /// because a file there may take names back in.
    pub(super) fn around(directory: &Path, file_system: &dyn FileSystem) -> Option<Self> {
        let exists = |path: &Path| file_system.look(path) != PathEntry::Missing;
        if !directory.ancestors().any(|above| exists(&above.join(".git"))) {
            return None;
        }
        let above: Vec<&Path> = directory.ancestors().skip(1).collect();
        let overridden = above.iter().any(|above| OVERRIDES.iter().any(|name| exists(&above.join(name))));
        if overridden {
            return None;
        }
        // A pattern above could be about this directory alone, so only those for all directories matter.
        let mut ignored = IgnoredNames::default();
        let inside = directory.ancestors().take_while(|inside| !exists(&inside.join(".git"))).count();
        for above in above.into_iter().take(inside) {
            ignored.read(above, file_system)?;
        }
        Some(ignored.below())
    }

    /// The same for a directory with these names in it.
    pub(super) fn inside(
        mut self,
        directory: &Path,
        names: &[(OsString, EntryKind)],
        file_system: &dyn FileSystem,
    ) -> Option<Self> {
        if names.iter().any(|(name, _)| OVERRIDES.iter().any(|other| name == other)) {
            return None;
        }
        if names.iter().any(|(name, _)| name == ".gitignore") {
            self.read(directory, file_system)?;
        }
        Some(self)
    }

    /// What applies in the directories below.
    pub(super) fn below(&self) -> Self {
        IgnoredNames { anywhere: self.anywhere.clone(), here: Vec::new() }
    }

    fn read(&mut self, directory: &Path, file_system: &dyn FileSystem) -> Option<()> {
        let bytes = file_system.read(&directory.join(".gitignore"), MAXIMUM_FILE).ok()?.unwrap_or_default();
        let text = String::from_utf8(bytes).ok()?;
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('!') {
                return None;
            }
            let body = line.strip_suffix('/').unwrap_or(line);
            let only_directories = body.len() != line.len();
            let (anchored, glob) = match (body.strip_prefix("**/"), body.strip_prefix('/')) {
                (Some(glob), _) => (false, glob),
                (None, Some(glob)) => (true, glob),
                (None, None) => (false, body),
            };
            let plain = |byte: u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'?' | b'.' | b'_' | b'-' | b'+' | b'@')
            };
            if glob.is_empty() || !glob.bytes().all(plain) {
                continue;
            }
            let name = IgnoredName { glob: glob.to_owned(), only_directories };
            if anchored { self.here.push(name) } else { self.anywhere.push(name) }
        }
        Some(())
    }

    /// Whether a name in the directory is ignored.
    pub(super) fn contain(&self, name: &str, is_directory: bool) -> bool {
        let fits =
            |ignored: &IgnoredName| (is_directory || !ignored.only_directories) && may_match(&ignored.glob, name);
        self.anywhere.iter().chain(&self.here).any(fits)
    }
}
