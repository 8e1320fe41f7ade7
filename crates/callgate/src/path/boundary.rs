//! The project boundary: the directories that calls may touch, and what happens outside.

use std::path::{Path, PathBuf};

use callgate_model::call::Origin;
use callgate_model::decision::Decision;
use callgate_model::lexical::fold;
use callgate_policy::{BoundarySettings, directories};
pub use callgate_policy::{HostDirectories, PLANS, RelativeTo, Root, Roots, TEMPORARY};
use serde::{Deserialize, Serialize};

use super::file_system::FileSystem;
use super::resolve::resolve;

use super::placement::{ReadableAreas, areas, is_within};
pub use super::placement::{ResolvedBoundary, UnresolvedPaths};

/// The name of the boundary in rulings.
pub const RULE: &str = "boundary";

/// The directories that calls may touch, as configured. [`Boundary::resolve`] prepares it for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// May be read and written.
    pub roots: Roots,
    /// May only be read.
    pub readable: Roots,
    /// What happens elsewhere.
    pub outside: Outside,
    /// What happens when names are listed elsewhere; the same as to anything else there if `None`.
    pub list_outside: Option<Decision>,
}

/// What happens to paths outside the boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Denied.
    #[default]
    Deny,
    /// Asked about.
    Ask,
}

/// The home and temporary directories of this process, and where it finds programs.
#[allow(clippy::disallowed_methods, reason = "an input of the assessment, read when a gate is built")]
pub(crate) fn host_directories() -> HostDirectories {
    let mut temporary = vec![PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    let own = directories::temporary();
    if own.is_absolute() && !temporary.contains(&own) {
        temporary.push(own);
    }
    let programs = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    HostDirectories { home: directories::home().filter(|home| home.is_absolute()), temporary, programs }
}

impl Default for Boundary {
    /// The workspace, the temporary directories and the agents' plan folders; everything else is denied.
    fn default() -> Self {
        Boundary { roots: Vec::from([".", TEMPORARY, PLANS].map(Root::of_call)).into(), ..Boundary::none() }
    }
}

impl From<&BoundarySettings> for Boundary {
    /// The boundary of a policy, with defaults for what it does not set.
    fn from(settings: &BoundarySettings) -> Self {
        let default = Boundary::default();
        Boundary {
            roots: settings.roots.clone().unwrap_or(default.roots),
            readable: settings.readable.clone().unwrap_or(default.readable),
            outside: match settings.outside {
                Some(Decision::Ask) => Outside::Ask,
                _ => Outside::Deny,
            },
            list_outside: settings.list_outside,
        }
    }
}

impl Boundary {
    /// No directory at all.
    pub fn none() -> Self {
        Boundary { roots: Roots::default(), readable: Roots::default(), outside: Outside::Deny, list_outside: None }
    }

    /// Resolves the directories for calls of one origin. A directory that cannot be resolved is left out.
    pub fn resolve(&self, origin: &Origin, host: &HostDirectories, file_system: &dyn FileSystem) -> ResolvedBoundary {
        let resolved = |path: Option<&Path>| path.and_then(|path| resolve(file_system, path).ok());
        let roots = areas(&self.roots, origin.project(), host, file_system);
        let programs = host.programs.iter().map(|directory| ProgramDirectory {
            writable: !directory.is_absolute()
                || resolve(file_system, directory).map_or(true, |resolved| is_within(&roots, &resolved)),
            path: directory.clone(),
        });
        ResolvedBoundary {
            programs: programs.collect(),
            roots,
            readable: ReadableAreas::new(self.readable.clone(), origin.project(), host),
            outside: self.outside,
            list_outside: self.list_outside,
            home: host.home.iter().cloned().chain(resolved(host.home.as_deref())).collect(),
            whole: [resolved(host.home.as_deref()), resolved(origin.project())].into_iter().flatten().collect(),
        }
    }
}

/// A directory in which programs are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramDirectory {
    /// As the host names it.
    pub path: PathBuf,
    /// Calls may write to it, so that a program in it may be anything.
    pub writable: bool,
}

/// A directory of a boundary: as configured and resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundaryArea {
    pub named: PathBuf,
    pub resolved: PathBuf,
    /// Whether it is excluded from the areas before it.
    pub excluded: bool,
}

impl BoundaryArea {
    pub(super) fn of(path: &Path, excluded: bool, file_system: &dyn FileSystem) -> Option<Self> {
        let named = fold(path);
        let resolved = match resolve(file_system, path) {
            Ok(resolved) => resolved,
            // an excluded directory stays excluded by its name
            Err(_) if excluded => named.clone(),
            Err(_) => return None,
        };
        Some(BoundaryArea { named, resolved, excluded })
    }
}
