//! The boundary: the directories that calls may touch, and what happens outside.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::braces;
use super::file_system::{FileSystem, Remembering};
use super::resolve::{fold, resolve};
pub use super::settled::{BoundaryRuling, Settled};
use super::settled::{Readable, areas};
use crate::call::Origin;
use crate::policy::{BoundaryPath, BoundarySettings, Decision};

/// The name under which the boundary rules.
pub const RULE: &str = "boundary";

/// Which directories calls may touch, as somebody wrote it down. [`Boundary::settle`] makes it ready for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// May be read and written.
    pub roots: Vec<Root>,
    /// May only be read.
    pub readable: Vec<Root>,
    /// What happens elsewhere.
    pub outside: Outside,
    /// What happens when only names are listed elsewhere.
    pub list_outside: ListOutside,
}

/// One directory (or file) of a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Absolute, starting with `~`, or relative; or one of the machine's own sets, [`TEMPORARY`] and [`PLANS`].
    ///
    /// Braces stand for several, a trailing `/**` means the same as none, and `!` in front takes out again what an earlier
    /// one took in. Other patterns are no directory and are left out.
    pub path: String,
    /// What a relative path is relative to.
    pub relative_to: RelativeTo,
}

/// What the relative paths of a boundary are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelativeTo {
    /// The call's workspace, or its working directory if there is none.
    Call,
    /// A directory, such as that of the policy file.
    Directory(PathBuf),
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

/// What the machine is like: the directories that only the host knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The directories for temporary files.
    pub temporary: Vec<PathBuf>,
}

impl Surroundings {
    /// As this process finds them.
    pub fn of_this_process() -> Self {
        Surroundings {
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            temporary: [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()]
                .into_iter()
                .filter(|directory| directory.is_absolute())
                .collect(),
        }
    }
}

/// Stands for the machine's directories for temporary files.
pub const TEMPORARY: &str = "@temporary";
/// Stands for the folders in which coding agents keep their own plans.
pub const PLANS: &str = "@plans";

/// Where coding agents keep their own plans.
const PLAN_FOLDERS: [&str; 2] = ["~/.claude/plans", "~/.cursor/plans"];

impl Default for Boundary {
    /// The workspace, the directory for temporary files and the agents' plan folders; everything else is refused.
    fn default() -> Self {
        Boundary { roots: [".", TEMPORARY, PLANS].map(Root::of_call).into(), ..Boundary::none() }
    }
}

impl Root {
    /// A path that, if relative, is relative to the call's workspace.
    pub fn of_call(path: impl Into<String>) -> Self {
        Root { path: path.into(), relative_to: RelativeTo::Call }
    }

    /// A path that, if relative, is relative to a directory.
    pub fn of_directory(path: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Root { path: path.into(), relative_to: RelativeTo::Directory(directory.into()) }
    }

    /// The directories it stands for, as far as they are known; `true` for those taken out.
    fn directories(&self, origin: &Origin, surroundings: &Surroundings) -> Vec<(PathBuf, bool)> {
        let (text, excluded) = match self.path.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (self.path.as_str(), false),
        };
        let directories: Vec<PathBuf> = match text {
            TEMPORARY => surroundings.temporary.clone(),
            PLANS => PLAN_FOLDERS.iter().filter_map(|folder| self.absolute(folder, origin, surroundings)).collect(),
            text => braces::expand(text)
                .unwrap_or_default()
                .iter()
                .filter_map(|text| self.absolute(text, origin, surroundings))
                .collect(),
        };
        directories.into_iter().map(|path| (path, excluded)).collect()
    }

    fn absolute(&self, text: &str, origin: &Origin, surroundings: &Surroundings) -> Option<PathBuf> {
        let text = match text.strip_suffix("/**") {
            Some("") => "/",
            Some(front) => front,
            None => text,
        };
        if text == "~" {
            return surroundings.home.clone();
        }
        if let Some(rest) = text.strip_prefix("~/") {
            return Some(surroundings.home.as_ref()?.join(rest));
        }
        // `~other` is somebody whose home is not known here
        if text.is_empty() || text.starts_with('~') || text.contains(['*', '?', '[']) {
            return None;
        }
        let base = match &self.relative_to {
            RelativeTo::Directory(directory) => Some(directory),
            RelativeTo::Call => workspace_of(origin),
        };
        match base {
            Some(base) => Some(base.join(text)),
            None => Path::new(text).is_absolute().then(|| text.into()),
        }
    }
}

fn workspace_of(origin: &Origin) -> Option<&PathBuf> {
    origin.workspace.as_ref().or(origin.directory.as_ref())
}

impl From<&BoundarySettings> for Boundary {
    /// What a policy says; where it says nothing, the default.
    fn from(settings: &BoundarySettings) -> Self {
        let roots = |paths: &Vec<BoundaryPath>| -> Vec<Root> {
            paths
                .iter()
                .map(|path| Root {
                    path: path.pattern.clone(),
                    relative_to: path.relative_to.clone().map_or(RelativeTo::Call, RelativeTo::Directory),
                })
                .collect()
        };
        let default = Boundary::default();
        Boundary {
            roots: settings.roots.as_ref().map_or(default.roots, roots),
            readable: settings.readable.as_ref().map_or(default.readable, roots),
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
            roots: Vec::new(),
            readable: Vec::new(),
            outside: Outside::Deny,
            list_outside: ListOutside::AsOutside,
        }
    }

    /// Resolves the directories for calls of one origin. A directory that cannot be resolved is left out.
    pub fn settle(&self, origin: &Origin, surroundings: &Surroundings, file_system: &dyn FileSystem) -> Settled {
        let named = |roots: &[Root]| -> Vec<(PathBuf, bool)> {
            roots.iter().flat_map(|root| root.directories(origin, surroundings)).collect()
        };
        let resolved = |path: Option<&PathBuf>| path.and_then(|path| resolve(file_system, path).ok());
        Settled {
            roots: areas(&named(&self.roots), &Remembering::new(file_system)),
            readable: Readable::new(named(&self.readable)),
            outside: self.outside,
            list_outside: self.list_outside,
            whole: [resolved(surroundings.home.as_ref()), resolved(workspace_of(origin))]
                .into_iter()
                .flatten()
                .collect(),
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
