//! What the file system and the repositories say about a call: the one step with I/O on the way to a decision.

mod git;
mod python_modules;

use std::path::Path;
use std::sync::Arc;

use callgate_model::description::Description;
use callgate_shell::ShellState;

use crate::describe::Described;
pub use crate::describe::git::GitRun;
use crate::path::boundary::{ResolvedBoundary, UnresolvedPaths};
use crate::path::file_system::{Entry, FileSystem};
use crate::path::resolve::resolve;

/// A described call with everything that had to be looked at.
#[derive(Debug)]
pub(crate) struct Observation {
    /// What the call would do: every path at its place, and a doubt for everything that may run unseen.
    pub description: Description,
    /// The state in which the call leaves a shell that the caller keeps.
    pub shell: Option<Box<ShellState>>,
    /// The boundary that the places were found by.
    pub boundary: Arc<ResolvedBoundary>,
    /// The paths that could not be resolved.
    pub unresolved: UnresolvedPaths,
}

/// Looks at everything that the description calls for.
pub(crate) fn observe(
    described: Described,
    boundary: Arc<ResolvedBoundary>,
    run: GitRun,
    file_system: &dyn FileSystem,
) -> Observation {
    let Described { mut description, mut shell } = described;
    git::examine(&mut description, run, file_system);
    python_modules::examine(&mut description, file_system);
    if let Some(shell) = &mut shell {
        shell.settle_directory(|directory| can_enter(file_system, Path::new(directory)));
    }
    let unresolved = boundary.place_effects(&mut description, file_system);
    Observation { description, shell, boundary, unresolved }
}

/// Whether a shell can change to a directory: whoever finds its `.` may search it.
fn can_enter(file_system: &dyn FileSystem, directory: &Path) -> bool {
    resolve(file_system, directory).is_ok_and(|resolved| file_system.look(&resolved.join(".")) == Entry::Directory)
}
