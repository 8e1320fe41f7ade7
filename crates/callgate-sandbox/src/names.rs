//! Protected names: what something outside runs by itself.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use callgate_model::fence::Globs;
use callgate_policy::PathList;

/// Compares paths with the names that are protected.
#[derive(Debug)]
pub struct Names {
    globs: Globs,
    /// Compiled when something is written for the first time: many calls write nothing.
    patterns: OnceCell<PathList>,
    /// Files and directories that are protected, too.
    paths: Vec<PathBuf>,
    git: bool,
}

impl Names {
    /// The names that globs and paths protect. `git` says that repositories may be changed as far as the list lets them.
    pub fn new(globs: Globs, paths: &[PathBuf], git: bool) -> Self {
        Names { globs, patterns: OnceCell::new(), paths: paths.to_vec(), git }
    }

    fn patterns(&self) -> &PathList {
        self.patterns.get_or_init(|| PathList::new(self.globs.iter(), None))
    }

    /// Whether a path is protected.
    pub fn covers(&self, path: &Path) -> bool {
        (!self.git && is_in_repository(path))
            || self.paths.iter().any(|protected| path.starts_with(protected))
            || self.patterns().matches(path)
    }

    /// Whether a protected path lies below this one, so that moving this one would take its protection away.
    pub fn leads_to(&self, path: &Path) -> bool {
        self.paths.iter().any(|protected| protected.starts_with(path))
    }

    /// Whether something protected by its name may lie below a path because of the name that the path itself has.
    pub fn holds(&self, path: &Path) -> bool {
        self.patterns().holds(path) || path.file_name().is_some_and(|name| self.is_component(name))
    }

    /// Whether names below a path are left alone although the list means them elsewhere.
    pub fn is_exempt(&self, path: &Path) -> bool {
        self.patterns().is_exempt(path)
    }

    fn is_component(&self, name: &OsStr) -> bool {
        name.eq_ignore_ascii_case(".git") || self.patterns().is_component(name.as_bytes())
    }
}

/// Whether a path lies in a directory called `.git`, or is one. git outside follows links there when it writes.
pub fn is_in_repository(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}
