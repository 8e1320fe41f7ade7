//! The boundary: the directories that calls may touch, and what happens outside.

use std::path::{Component, Path, PathBuf};

use callgate_shell::effect::{Action, Mark, Names, PathTarget, Target};
use serde::{Deserialize, Serialize};

use super::braces;
use super::file_system::FileSystem;
use super::pattern::Pattern;
use super::resolve::{ResolveError, fold, has_parent, resolve};
use super::{Place, Rest, Zone};
use crate::call::Origin;
use crate::describe::Description;
use crate::policy::{BoundaryPath, BoundarySettings, Decision, Ruling};
use crate::show::brief;

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
        let areas = |roots: &[Root]| {
            roots
                .iter()
                .flat_map(|root| root.directories(origin, surroundings))
                .filter_map(|(path, excluded)| Area::of(&path, excluded, file_system))
                .collect()
        };
        let resolved = |path: Option<&PathBuf>| path.and_then(|path| resolve(file_system, path).ok());
        Settled {
            roots: areas(&self.roots),
            readable: areas(&self.readable),
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
struct Area {
    named: PathBuf,
    resolved: PathBuf,
    /// Taken out of the areas before it.
    excluded: bool,
}

impl Area {
    fn of(path: &Path, excluded: bool, file_system: &dyn FileSystem) -> Option<Self> {
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

/// A boundary whose directories are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    roots: Vec<Area>,
    readable: Vec<Area>,
    outside: Outside,
    list_outside: ListOutside,
    /// Home and workspace: a tree that contains one of them is never inside.
    whole: Vec<PathBuf>,
}

/// What the boundary says of one effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundaryRuling {
    /// In which part.
    pub part: usize,
    /// Which effect of it.
    pub effect: usize,
    /// What it says.
    pub ruling: Ruling,
}

/// A place, and why it is none if it could not be resolved.
struct Placed {
    place: Place,
    failure: Option<ResolveError>,
}

impl Settled {
    /// Finds the place of every path effect, and says what must not pass silently.
    pub fn apply(&self, description: &mut Description, file_system: &dyn FileSystem) -> Vec<BoundaryRuling> {
        let mut rulings = Vec::new();
        for (part_index, part) in description.parts.iter_mut().enumerate() {
            let elsewhere = part.elsewhere.is_some();
            for (effect_index, placed) in part.effects.iter_mut().enumerate() {
                let Target::Path(target) = &placed.effect.target else {
                    continue;
                };
                // another machine's paths are no matter of this boundary; the policy sees that they are not ours
                if elsewhere || placed.effect.marks.contains(&Mark::Elsewhere) {
                    let why = ResolveError::Ambiguous("it lies on another machine or in a container");
                    placed.place = Some(unresolved(target, why).place);
                    continue;
                }
                let Placed { place, failure } = self.place(target, placed.effect.action, file_system);
                if let Some((decision, reason)) = self.judge(placed.effect.action, &place, failure.as_ref()) {
                    rulings.push(BoundaryRuling {
                        part: part_index,
                        effect: effect_index,
                        ruling: Ruling { decision, rule: Some(RULE.to_owned()), place: None, reason },
                    });
                }
                placed.place = Some(place);
            }
        }
        rulings
    }

    fn place(&self, target: &PathTarget, action: Action, file_system: &dyn FileSystem) -> Placed {
        let (raw, rest, pattern) = match &target.names {
            Names::Exact(path) => (PathBuf::from(path), Rest::Nothing, None),
            Names::Below(path) => (PathBuf::from(path), Rest::Anything, None),
            Names::Unknown(_) => {
                return unresolved(target, ResolveError::Ambiguous("its name is not known"));
            }
            Names::Glob(text) => {
                let pattern = Pattern::parse(text);
                let rest = if pattern.rest.is_empty() { Rest::Nothing } else { Rest::Glob(pattern.rest.join("/")) };
                (pattern.fixed.clone(), rest, Some(pattern))
            }
        };
        if let Some(zone) = stream_of_the_process(&raw) {
            return Placed {
                place: Place { named: raw.clone(), resolved: raw, rest, tree: target.tree, zone, traversal: false },
                failure: None,
            };
        }
        let resolved = match resolve(file_system, &raw) {
            Ok(resolved) => resolved,
            Err(error) => return self.failed(target, &raw, rest, error),
        };
        if let Some(pattern) = &pattern {
            let checked = if pattern.may_go_up() {
                Err(ResolveError::Ambiguous("the pattern can match `..`"))
            } else {
                let zone = self.zone(&resolved, false);
                let inside = |path: &Path| zone == Zone::Outside || self.zone(path, false) == zone;
                pattern.check_links(file_system, &resolved, action != Action::List, &inside)
            };
            if let Err(error) = checked {
                return self.failed(target, &raw, rest, error);
            }
        }
        let deep = target.tree || rest != Rest::Nothing;
        let zone = self.zone(&resolved, deep);
        let traversal = zone != Zone::Root && !is_within(&self.roots, &resolved) && self.starts_inside(&raw);
        Placed { place: Place { named: fold(&raw), resolved, rest, tree: target.tree, zone, traversal }, failure: None }
    }

    fn failed(&self, target: &PathTarget, raw: &Path, rest: Rest, error: ResolveError) -> Placed {
        let mut placed = unresolved(target, error);
        placed.place.named = fold(raw);
        placed.place.resolved = fold(raw);
        placed.place.rest = rest;
        placed.place.traversal = placed
            .failure
            .as_ref()
            .is_some_and(|failure| !failure.is_refused() && has_parent(raw) && self.starts_inside(raw));
        placed
    }

    /// Whether a path, as it is named, is in a root at its end or before a `..` takes it out.
    fn starts_inside(&self, raw: &Path) -> bool {
        let inside = |path: &Path| {
            self.roots.iter().any(|root| path.starts_with(&root.named) || path.starts_with(&root.resolved))
        };
        let mut folded = PathBuf::new();
        for component in raw.components() {
            if component == Component::ParentDir && inside(&folded) {
                return true;
            }
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    folded.pop();
                }
                _ => folded.push(component),
            }
        }
        inside(&folded)
    }

    fn zone(&self, resolved: &Path, deep: bool) -> Zone {
        let contains = |inner: &PathBuf| deep && inner != resolved && inner.starts_with(resolved);
        if is_within(&self.roots, resolved) {
            if self.whole.iter().any(contains) {
                return Zone::Outside;
            }
            return Zone::Root;
        }
        if is_within(&self.readable, resolved) {
            let around_a_root = self.roots.iter().any(|root| contains(&root.resolved))
                || self.readable.iter().any(|area| area.excluded && contains(&area.resolved));
            if around_a_root || self.whole.iter().any(contains) {
                return Zone::Outside;
            }
            return Zone::Readable;
        }
        Zone::Outside
    }

    /// What the boundary has to say of an effect at a place; `None` if nothing.
    fn judge(&self, action: Action, place: &Place, failure: Option<&ResolveError>) -> Option<(Decision, String)> {
        let named = brief(&place.named.to_string_lossy());
        let outside = match self.outside {
            Outside::Deny => Decision::Deny,
            Outside::Ask => Decision::Ask,
        };
        let lists = action == Action::List;
        let ruling = match &place.zone {
            Zone::Root => None,
            Zone::Unresolved(why) => {
                let refused = failure.is_some_and(ResolveError::is_refused);
                let shown = if named.is_empty() { "a path".to_owned() } else { format!("`{named}`") };
                let decision = if refused { Decision::Deny } else { Decision::Ask };
                Some((decision, format!("{shown} cannot be resolved: {why}")))
            }
            Zone::Readable if lists || action == Action::Read => None,
            Zone::Readable => Some((outside, format!("`{named}` may only be read"))),
            Zone::Outside => {
                let decision = match self.list_outside {
                    _ if !lists => Some(outside),
                    ListOutside::AsOutside => Some(outside),
                    ListOutside::Silent => None,
                    ListOutside::Ask => Some(Decision::Ask),
                    ListOutside::Deny => Some(Decision::Deny),
                };
                decision.map(|decision| (decision, format!("`{named}` lies outside the boundary")))
            }
        };
        if !place.traversal || matches!(place.zone, Zone::Unresolved(_)) {
            return ruling;
        }
        let decision = ruling.map_or(Decision::Ask, |(decision, _)| decision.max(Decision::Ask));
        let resolved = brief(&place.resolved.to_string_lossy());
        let reason = if resolved == named {
            format!("`{named}` is reached by `..` from inside the boundary and lies outside")
        } else {
            format!("`{named}` leads out of the boundary to `{resolved}`")
        };
        Some((decision, reason))
    }
}

/// The last area that holds the path decides.
fn is_within(areas: &[Area], path: &Path) -> bool {
    areas.iter().rev().find(|area| path.starts_with(&area.resolved)).is_some_and(|area| !area.excluded)
}

fn unresolved(target: &PathTarget, error: ResolveError) -> Placed {
    Placed {
        place: Place {
            named: PathBuf::new(),
            resolved: PathBuf::new(),
            rest: Rest::Anything,
            tree: target.tree,
            zone: Zone::Unresolved(error.to_string()),
            traversal: false,
        },
        failure: Some(error),
    }
}

/// What a process has open anyway, and devices without contents: they lie nowhere.
fn stream_of_the_process(path: &Path) -> Option<Zone> {
    match path.to_str()? {
        "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/fd/0" | "/dev/fd/1" | "/dev/fd/2" => {
            Some(Zone::Root)
        }
        "/dev/zero" | "/dev/full" | "/dev/random" | "/dev/urandom" => Some(Zone::Readable),
        _ => None,
    }
}

#[cfg(test)]
#[path = "boundary_tests.rs"]
mod tests;
