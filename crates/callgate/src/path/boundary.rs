//! The boundary: the directories that calls may touch, and what happens outside.

use std::path::{Path, PathBuf};

use callgate_model::call::Origin;
use callgate_model::decision::Decision;
use callgate_model::lexical::fold;
use callgate_policy::BoundarySettings;
pub use callgate_policy::{HostDirectories, PLANS, RelativeTo, Root, Roots, TEMPORARY};
use serde::{Deserialize, Serialize};

use super::file_system::FileSystem;
use super::resolve::resolve;

use super::settled::{Readable, areas};
pub use super::settled::{ResolvedBoundary, UnresolvedPaths};

/// The name under which the boundary rules.
pub const RULE: &str = "boundary";

/// Which directories calls may touch, as somebody wrote it down. [`Boundary::resolve`] makes it ready for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// May be read and written.
    pub roots: Roots,
    /// May only be read.
    pub readable: Roots,
    /// What happens elsewhere.
    pub outside: Outside,
    /// What happens when only names are listed elsewhere.
    pub list_outside: ListOutside,
}

/// What happens to paths outside the boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Refused.
    #[default]
    Deny,
    /// Asked about.
    Ask,
}

/// What happens when names outside the boundary are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListOutside {
    /// The same as to anything else outside.
    #[default]
    AsOutside,
    /// Nothing: names and metadata may be seen.
    Silent,
    /// Asked about.
    Ask,
    /// Refused.
    Deny,
}

/// The directories of the host as this process finds them.
#[allow(clippy::disallowed_methods, reason = "an input of the assessment, read when a gate is built")]
pub(crate) fn host_directories() -> HostDirectories {
    let mut temporary = vec![PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    let own = std::env::temp_dir();
    if own.is_absolute() && !temporary.contains(&own) {
        temporary.push(own);
    }
    HostDirectories { home: std::env::home_dir().filter(|home| home.is_absolute()), temporary }
}

impl Default for Boundary {
    /// The workspace, the directory for temporary files and the agents' plan folders; everything else is refused.
    fn default() -> Self {
        Boundary { roots: Vec::from([".", TEMPORARY, PLANS].map(Root::of_call)).into(), ..Boundary::none() }
    }
}

fn workspace_of(origin: &Origin) -> Option<&Path> {
    origin.workspace.as_deref().or(origin.directory.as_deref())
}

impl From<&BoundarySettings> for Boundary {
    /// What a policy says; where it says nothing, the default.
    fn from(settings: &BoundarySettings) -> Self {
        let default = Boundary::default();
        Boundary {
            roots: settings.roots.clone().unwrap_or(default.roots),
            readable: settings.readable.clone().unwrap_or(default.readable),
            outside: match settings.outside {
                Some(Decision::Ask) => Outside::Ask,
                _ => Outside::Deny,
            },
            list_outside: match settings.list_outside {
                None => ListOutside::AsOutside,
                Some(Decision::Allow | Decision::Contain) => ListOutside::Silent,
                Some(Decision::Ask) => ListOutside::Ask,
                Some(Decision::Deny) => ListOutside::Deny,
            },
        }
    }
}

impl Boundary {
    /// No directory at all.
    pub fn none() -> Self {
        Boundary {
            roots: Roots::default(),
            readable: Roots::default(),
            outside: Outside::Deny,
            list_outside: ListOutside::AsOutside,
        }
    }

    /// Resolves the directories for calls of one origin. A directory that cannot be resolved is left out.
    pub fn resolve(&self, origin: &Origin, host: &HostDirectories, file_system: &dyn FileSystem) -> ResolvedBoundary {
        let resolved = |path: Option<&Path>| path.and_then(|path| resolve(file_system, path).ok());
        ResolvedBoundary {
            roots: areas(&self.roots, workspace_of(origin), host, file_system),
            readable: Readable::new(self.readable.clone(), workspace_of(origin), host),
            outside: self.outside,
            list_outside: self.list_outside,
            whole: [resolved(host.home.as_deref()), resolved(workspace_of(origin))].into_iter().flatten().collect(),
        }
    }
}

/// A directory under the name it was given and where it really lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Area {
    pub named: PathBuf,
    pub resolved: PathBuf,
    /// Taken out of the areas before it.
    pub excluded: bool,
}

impl Area {
    pub(super) fn of(path: &Path, excluded: bool, file_system: &dyn FileSystem) -> Option<Self> {
        let named = fold(path);
        let resolved = match resolve(file_system, path) {
            Ok(resolved) => resolved,
            // what was to be taken out stays out by its name
            Err(_) if excluded => named.clone(),
            Err(_) => return None,
        };
        Some(Area { named, resolved, excluded })
    }
}
