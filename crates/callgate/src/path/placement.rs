//! Finds the place of every path of a call, and judges it by the boundary.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use callgate_model::decision::{Decision, EffectRuling, Ruling};
use callgate_model::description::{Description, Part};
use callgate_model::effect::{Action, CodeOrigin, Effect, Mark, Names, PathTarget, Target, TreeNames};
use callgate_model::lexical::fold;
use callgate_model::show::brief;
use callgate_shell::programs::Programs;
use callgate_shell::programs::table::ProgramTrait;

use super::boundary::{BoundaryArea, HostDirectories, Outside, ProgramDirectory, RULE, Roots};
use super::expand::expand_patterns;
use super::file_system::{CachedFileSystem, FileSystem};
use super::pattern::Pattern;
use super::resolve::{ResolveError, has_parent, resolve};
use super::{Contents, Place, Rest, Zone};

/// A boundary whose directories are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedBoundary {
    pub(super) roots: Vec<BoundaryArea>,
    /// Where programs are found, in order.
    pub(super) programs: Vec<ProgramDirectory>,
    /// The user's home, as named and resolved.
    pub(super) home: Vec<PathBuf>,
    pub(super) readable: ReadableAreas,
    pub(super) outside: Outside,
    pub(super) list_outside: Option<Decision>,
    /// Home and workspace: a tree that contains one of them is always outside.
    pub(super) whole: Vec<PathBuf>,
}

/// The directories of a boundary, resolved, whether they exist or not.
pub(crate) struct FenceAreas {
    pub roots: Vec<PathBuf>,
    pub readable: Vec<PathBuf>,
    /// Taken out of the others.
    pub excluded: Vec<PathBuf>,
}

/// The read-only directories. They are resolved on first use, because the list is long and most calls stay within the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadableAreas {
    roots: Roots,
    workspace: Option<PathBuf>,
    host: HostDirectories,
    resolved: OnceLock<Vec<BoundaryArea>>,
}

impl ReadableAreas {
    pub fn new(roots: Roots, workspace: Option<&Path>, host: &HostDirectories) -> Self {
        ReadableAreas { roots, workspace: workspace.map(Path::to_owned), host: host.clone(), resolved: OnceLock::new() }
    }

    fn areas(&self, file_system: &dyn FileSystem) -> &[BoundaryArea] {
        self.resolved.get_or_init(|| areas(&self.roots, self.workspace.as_deref(), &self.host, file_system))
    }
}

/// Resolves directories. Directories that cannot be resolved are left out.
pub(super) fn areas(
    roots: &Roots,
    workspace: Option<&Path>,
    host: &HostDirectories,
    file_system: &dyn FileSystem,
) -> Vec<BoundaryArea> {
    let file_system = CachedFileSystem::new(file_system);
    roots
        .iter()
        .flat_map(|root| root.directories(workspace, host))
        .filter_map(|(path, excluded)| BoundaryArea::of(&path, excluded, &file_system))
        .collect()
}

/// The place of a path, and the error if it could not be resolved.
struct PlacedPath {
    place: Place,
    failure: Option<ResolveError>,
}

/// The trees whose files a program reads and writes in place, so that it makes no new names there. Programs of the project and
/// those that connect may do more.
fn updated_trees(part: &Part) -> Vec<PathTarget> {
    let plain = |effect: &Effect| match (effect.action, &effect.target) {
        (Action::List | Action::Read | Action::Write, _) => true,
        (Action::Run, Target::Program(program)) => program.origin == CodeOrigin::Known,
        _ => false,
    };
    if !part.effects.iter().all(|placed| plain(&placed.effect)) {
        return Vec::new();
    }
    let read = part.effects.iter().filter(|placed| placed.effect.action == Action::Read);
    let trees = read.filter_map(|placed| match &placed.effect.target {
        Target::Path(target) if target.tree => Some(target.clone()),
        _ => None,
    });
    trees.filter(|target| matches!(target.below, TreeNames::Existing(_))).collect()
}

/// The path effects that could not be resolved, by `(part, effect)`.
pub type UnresolvedPaths = BTreeMap<(usize, usize), ResolveError>;

impl ResolvedBoundary {
    /// Finds the place of every path effect.
    pub fn place_effects(&self, description: &mut Description, file_system: &dyn FileSystem) -> UnresolvedPaths {
        expand_patterns(description, file_system);
        let mut unresolved_paths = UnresolvedPaths::new();
        let mut disturbed: Vec<PathBuf> = Vec::new();
        for (part_index, part) in description.parts.iter_mut().enumerate() {
            let disturbed_before = disturbed.len();
            let makes_links = Programs::bundled().has_trait(&part.words, ProgramTrait::Links);
            let elsewhere = part.elsewhere.is_some();
            let updated = updated_trees(part);
            for (effect_index, placed) in part.effects.iter_mut().enumerate() {
                let Target::Path(target) = &placed.effect.target else {
                    continue;
                };
                // the boundary does not apply to other machines; the policy sees that the path is elsewhere
                if elsewhere || placed.effect.marks.contains(&Mark::Elsewhere) {
                    let why = ResolveError::Ambiguous("it is on another machine or in a container");
                    placed.place = Some(unresolved(target, why).place);
                    continue;
                }
                // A tree is copied with its links.
                let brings_links = matches!(&target.below, TreeNames::Copied(source) if source.tree);
                let action = placed.effect.action;
                let PlacedPath { mut place, mut failure } = self.place(target, action, file_system);
                let mut earlier = disturbed.iter().take(disturbed_before);
                // Names that only the program finds out may be links that are made by then.
                let finds = matches!(target.names, Names::Below(_))
                    || matches!(&target.below, TreeNames::Existing(selection) if selection.follows);
                let is_disturbed = earlier.any(|directory| {
                    place.resolved.starts_with(directory) || finds && directory.starts_with(&place.resolved)
                });
                if action != Action::List && failure.is_none() && is_disturbed {
                    let doubt = ResolveError::Ambiguous("an earlier command of this call may create a symlink there");
                    place.zone = Zone::Unresolved(doubt.to_string());
                    failure = Some(doubt);
                }
                if action == Action::Write && failure.is_none() && is_shared(&place, file_system) {
                    placed.effect.marks.push(Mark::Shared);
                    placed.effect.marks.sort();
                    placed.effect.marks.dedup();
                }
                let makes_names = place.tree && !updated.contains(target);
                if action == Action::Write && (makes_names || makes_links || brings_links) {
                    disturbed.push(place.resolved.clone());
                }
                unresolved_paths.extend(failure.map(|failure| ((part_index, effect_index), failure)));
                placed.place = Some(place);
            }
        }
        unresolved_paths
    }

    /// The boundary's rulings on effects that it does not let pass, in the order of the effects. Pure.
    pub fn rulings(&self, description: &Description, unresolved: &UnresolvedPaths) -> Vec<EffectRuling> {
        let mut rulings = Vec::new();
        for (part, effects) in description.parts.iter().enumerate() {
            for (effect, placed) in effects.effects.iter().enumerate() {
                let Some(place) = &placed.place else { continue };
                let marks = &placed.effect.marks;
                let action = placed.effect.action;
                // a program that reads its own configuration does so as part of running
                let own = marks.contains(&Mark::OwnFiles) && matches!(action, Action::List | Action::Read);
                if own || effects.elsewhere.is_some() || marks.contains(&Mark::Elsewhere) {
                    continue;
                }
                if let Some((decision, reason)) = self.judge(action, place, unresolved.get(&(part, effect))) {
                    let doubt = matches!(place.zone, Zone::Unresolved(_));
                    let ruling = Ruling { decision, rule: Some(RULE.to_owned()), place: None, reason, doubt };
                    rulings.push(EffectRuling { part, effect, ruling });
                }
            }
        }
        rulings
    }

    fn place(&self, target: &PathTarget, action: Action, file_system: &dyn FileSystem) -> PlacedPath {
        let (raw, rest, pattern) = match &target.names {
            Names::Exact(path) => (PathBuf::from(path), Rest::Nothing, None),
            Names::Below(path) => (PathBuf::from(path), Rest::Anything, None),
            Names::Unknown(_) => {
                return unresolved(target, ResolveError::Ambiguous("its name is unknown before it runs"));
            }
            Names::Glob(text) => {
                let pattern = Pattern::parse(text);
                let rest = if pattern.rest.is_empty() { Rest::Nothing } else { Rest::Glob(pattern.rest.join("/")) };
                (pattern.fixed.clone(), rest, Some(pattern))
            }
        };
        if let Some(zone) = stream_of_the_process(&raw) {
            return PlacedPath {
                place: Place {
                    named: raw.clone(),
                    resolved: raw,
                    rest,
                    tree: target.tree,
                    zone,
                    traversal: false,
                    contents: Contents::Existing,
                },
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
                let zone = self.zone(&resolved, false, file_system);
                let inside = |path: &Path| zone == Zone::Outside || self.zone(path, false, file_system) == zone;
                pattern.check_links(file_system, &resolved, action != Action::List, &inside)
            };
            if let Err(error) = checked {
                return self.failed(target, &raw, rest, error);
            }
        }
        let deep = target.tree || rest != Rest::Nothing;
        let zone = self.zone(&resolved, deep, file_system);
        let traversal = zone != Zone::Root && !is_within(&self.roots, &resolved) && self.starts_inside(&raw);
        PlacedPath {
            place: Place {
                named: fold(&raw),
                resolved,
                rest,
                tree: target.tree,
                zone,
                traversal,
                contents: Contents::Existing,
            },
            failure: None,
        }
    }

    fn failed(&self, target: &PathTarget, raw: &Path, rest: Rest, error: ResolveError) -> PlacedPath {
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

    /// Whether a path, as named, is in a root at its end or before a `..` leaves it.
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

    fn zone(&self, resolved: &Path, deep: bool, file_system: &dyn FileSystem) -> Zone {
        let contains = |inner: &PathBuf| deep && inner != resolved && inner.starts_with(resolved);
        if is_within(&self.roots, resolved) {
            if self.whole.iter().any(contains) {
                return Zone::Outside;
            }
            return Zone::Root;
        }
        let readable = self.readable.areas(file_system);
        if is_within(readable, resolved) {
            let around_a_root = self.roots.iter().any(|root| contains(&root.resolved))
                || readable.iter().any(|area| area.excluded && contains(&area.resolved));
            if around_a_root || self.whole.iter().any(contains) {
                return Zone::Outside;
            }
            return Zone::Readable;
        }
        Zone::Outside
    }

    /// Whether this directory, by its name or resolved, is one that calls may write to as a whole.
    pub fn is_root(&self, directory: &Path) -> bool {
        self.roots.iter().any(|root| !root.excluded && (root.named == directory || root.resolved == directory))
    }

    /// Where programs are found, in order.
    pub(crate) fn program_directories(&self) -> &[ProgramDirectory] {
        &self.programs
    }

    /// The same, if calls may write to one of them.
    pub(crate) fn doubtful_programs(&self) -> Option<&[ProgramDirectory]> {
        self.programs.iter().any(|directory| directory.writable).then_some(self.programs.as_slice())
    }

    /// All directories, resolved.
    pub(crate) fn fence_areas(&self, file_system: &dyn FileSystem) -> FenceAreas {
        let readable = self.readable.areas(file_system);
        let included = |areas: &[BoundaryArea]| {
            areas.iter().filter(|area| !area.excluded).map(|area| area.resolved.clone()).collect()
        };
        let excluded = self.roots.iter().chain(readable).filter(|area| area.excluded);
        FenceAreas {
            roots: included(&self.roots),
            readable: included(readable),
            excluded: excluded.map(|area| area.resolved.clone()).collect(),
        }
    }

    /// Whether this directory, by its name or resolved, is the user's home.
    pub fn is_home(&self, directory: &Path) -> bool {
        self.home.iter().any(|home| home == directory)
    }

    /// The place of a path, and the error if it could not be resolved.
    pub(crate) fn placed(
        &self,
        target: &PathTarget,
        action: Action,
        file_system: &dyn FileSystem,
    ) -> (Place, Option<ResolveError>) {
        let PlacedPath { place, failure } = self.place(target, action, file_system);
        (place, failure)
    }

    /// Whether a resolved path may be read and written.
    pub(crate) fn is_in_root(&self, resolved: &Path, file_system: &dyn FileSystem) -> bool {
        self.zone(resolved, false, file_system) == Zone::Root
    }

    /// Whether a resolved path may be read.
    pub(crate) fn is_readable(&self, resolved: &Path, file_system: &dyn FileSystem) -> bool {
        matches!(self.zone(resolved, false, file_system), Zone::Root | Zone::Readable)
    }

    /// The root that contains a path, whether the path exists or not.
    pub fn root_around(&self, path: &Path, file_system: &dyn FileSystem) -> Option<PathBuf> {
        let resolved = resolve(file_system, path).unwrap_or_else(|_| fold(path));
        let inside = self.zone(&resolved, false, file_system) == Zone::Root;
        let around = |area: &&BoundaryArea| !area.excluded && resolved.starts_with(&area.resolved);
        self.roots.iter().filter(|_| inside).find(around).map(|area| area.resolved.clone())
    }

    /// What the boundary decides about an effect at a place; `None` if it lets it pass.
    fn judge(&self, action: Action, place: &Place, failure: Option<&ResolveError>) -> Option<(Decision, String)> {
        let named = brief(&place.named.to_string_lossy());
        let outside = match self.outside {
            Outside::Deny => Decision::Deny,
            Outside::Ask => Decision::Ask,
        };
        let lists = action == Action::List;
        let decision = if lists { self.list_outside.unwrap_or(outside) } else { outside };
        let is_silent = decision < Decision::Ask;
        let ruling = match &place.zone {
            Zone::Root => None,
            // Where names may be listed anywhere, it does not matter which.
            Zone::Unresolved(_) if is_silent && matches!(failure, Some(ResolveError::Ambiguous(_))) => None,
            Zone::Unresolved(why) => {
                let refused = failure.is_some_and(ResolveError::is_refused);
                let shown = if named.is_empty() { "the path".to_owned() } else { format!("`{named}`") };
                let decision = if refused { Decision::Deny } else { Decision::Ask };
                Some((decision, format!("{shown} cannot be resolved: {why}")))
            }
            Zone::Readable if lists || action == Action::Read => None,
            Zone::Readable => Some((outside, format!("`{named}` is read-only"))),
            Zone::Outside if is_silent => None,
            Zone::Outside => Some((decision, format!("`{named}` is outside the project boundary"))),
        };
        if !place.traversal || matches!(place.zone, Zone::Unresolved(_)) {
            return ruling;
        }
        let decision = ruling.map_or(Decision::Ask, |(decision, _)| decision.max(Decision::Ask));
        let resolved = brief(&place.resolved.to_string_lossy());
        let reason = if resolved == named {
            format!("`..` leads out of the project boundary to `{named}`")
        } else {
            format!("`{named}` leads to `{resolved}`, outside the project boundary")
        };
        Some((decision, reason))
    }
}

/// Whether another user may own a name that is written: the path itself, or names in a directory that is written as a whole.
fn is_shared(place: &Place, file_system: &dyn FileSystem) -> bool {
    let inside = place.tree || place.rest != Rest::Nothing;
    let named = place.rest == Rest::Nothing && file_system.is_shared(&place.resolved);
    named || inside && file_system.is_shared(&place.resolved.join("any"))
}

/// Whether the areas contain the path. The last area around it decides.
pub(super) fn is_within(areas: &[BoundaryArea], path: &Path) -> bool {
    areas.iter().rev().find(|area| path.starts_with(&area.resolved)).is_some_and(|area| !area.excluded)
}

fn unresolved(target: &PathTarget, error: ResolveError) -> PlacedPath {
    PlacedPath {
        place: Place {
            named: PathBuf::new(),
            resolved: PathBuf::new(),
            rest: Rest::Anything,
            tree: target.tree,
            zone: Zone::Unresolved(error.to_string()),
            traversal: false,
            contents: Contents::Existing,
        },
        failure: Some(error),
    }
}

/// The zone of a process's own streams and of devices without contents, which lie in no directory.
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
#[path = "placement_tests.rs"]
mod tests;
