//! The second step: looks at the file system and at git repositories. No other step on the way to a decision does I/O.
//!
//! [`observe`] examines the repositories that git runs in, the directories that Python imports modules from, the files that
//! programs load from the project and the directory of a persistent shell, finds the place of every path, and looks into the
//! trees that the call touches as a whole.

mod dashed_names;
mod found_programs;
mod git;
mod loaded_files;
mod manifests;
mod mentioned_files;
mod package_programs;
mod python_modules;
mod recoverable;
mod repository;
mod settings_keys;
mod trees;

use std::cell::LazyCell;
use std::path::Path;
use std::sync::Arc;

use callgate_model::call::Origin;
use callgate_model::description::Description;
use callgate_shell::ShellState;

use crate::describe::Described;
pub use crate::git::GitRun;
use crate::path::boundary::{ResolvedBoundary, UnresolvedPaths};
use crate::path::file_system::{FileSystem, PathEntry};
use crate::path::resolve::resolve;
use crate::path::watched::{Settled, WatchedFileSystem};
use crate::policy::Policy;

/// A described call with everything that was observed.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    /// What the call would do: every path with its place, and a doubt for everything that may run unseen.
    pub description: Description,
    /// The state of the caller's persistent shell after the call.
    pub shell: Option<Box<ShellState>>,
    /// The boundary that the places refer to.
    pub boundary: Arc<ResolvedBoundary>,
    /// The paths that could not be resolved.
    pub unresolved: UnresolvedPaths,
    /// Whether contained calls that run may have changed what was observed.
    pub settled: Settled,
}

/// Observes everything that the description depends on. While contained calls run, it is noticed whether something was looked at that
/// they may change.
pub(crate) fn observe(
    described: Described,
    boundary: Arc<ResolvedBoundary>,
    run: GitRun,
    policy: Option<(&Policy, &Origin)>,
    file_system: &dyn FileSystem,
) -> Observation {
    let changing = file_system.changing();
    if changing.is_empty() {
        return look(described, boundary, run, policy, file_system);
    }
    let named = policy.into_iter().flat_map(|(_, origin)| [origin.project(), origin.working_directory()]).flatten();
    let aliases = named.filter_map(|path| Some((path.to_owned(), resolve(file_system, path).ok()?)));
    let watched = WatchedFileSystem::new(file_system, changing, aliases);
    let observation = look(described, boundary, run, policy, &watched);
    Observation { settled: watched.settled(), ..observation }
}

fn look(
    described: Described,
    boundary: Arc<ResolvedBoundary>,
    run: GitRun,
    policy: Option<(&Policy, &Origin)>,
    file_system: &dyn FileSystem,
) -> Observation {
    let Described { mut description, mut shell } = described;
    // Made only when a name is compared: it goes through all rules.
    let restricts = LazyCell::new(|| policy.map(|(policy, origin)| policy.restricts(origin)));
    let restricts = |action, named: &Path, resolved: &Path| {
        restricts.as_ref().is_some_and(|restricts| restricts(action, named, resolved))
    };
    git::examine(&mut description, run, &boundary, &restricts, file_system);
    python_modules::examine(&mut description, file_system);
    found_programs::examine(&mut description, &boundary, file_system);
    dashed_names::examine(&mut description, file_system);
    mentioned_files::examine(&mut description, &boundary, &restricts, file_system);
    loaded_files::examine(&mut description, &boundary, file_system);
    package_programs::examine(&mut description, file_system);
    if let Some(shell) = &mut shell {
        shell.settle_directory(|directory| can_enter(file_system, Path::new(directory)));
    }
    let mut unresolved = boundary.place_effects(&mut description, file_system);
    recoverable::examine(&mut description, file_system);
    manifests::examine(&mut description, file_system);
    if policy.is_some() && trees::has_trees(&description) {
        trees::examine(&mut description, &mut unresolved, &boundary, &restricts, file_system);
    }
    Observation { description, shell, boundary, unresolved, settled: Settled::Yes }
}

/// Whether a shell can change to a directory: then its `.` can be found.
fn can_enter(file_system: &dyn FileSystem, directory: &Path) -> bool {
    resolve(file_system, directory).is_ok_and(|resolved| file_system.look(&resolved.join(".")) == PathEntry::Directory)
}
