//! Looks into the trees that a call touches as a whole: every name there that a rule protects, and every symlink that leads
//! elsewhere, becomes an effect of its own.

mod expendable;
mod ignored;
mod members;
mod selection;
#[cfg(test)]
mod tests;
pub(super) mod walk;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{
    Action, Effect, Mark, MemberSource, Members, Names, PathTarget, Selection, Target, TreeNames,
};
use callgate_model::place::{Contents, Place, Rest, Zone};

use super::recoverable;
use crate::path::boundary::{ResolvedBoundary, UnresolvedPaths};
use crate::path::file_system::{CachedFileSystem, EntryKind, FileSystem, PathEntry, UnseenDirectory};
use crate::path::pattern::DeepPattern;
use crate::path::resolve::{ResolveError, resolve};
use walk::{TreeEntry, TreeWalker};

/// The maximum number of effects that are added to a call. A tree with more may contain anything.
const MAXIMUM_FOUND: usize = 1_000;
/// Of a directory with more names, nothing is known to be missing.
const MAXIMUM_NEIGHBOURS: usize = 10_000;

/// Whether a rule that asks or denies is about an action on a path, as named and as resolved.
pub(crate) type Restricts<'a> = &'a dyn Fn(Action, &Path, &Path) -> bool;

/// Whether a call touches a tree, so that somebody must look into it.
pub(super) fn has_trees(description: &Description) -> bool {
    description.effects().any(|placed| tree_of(placed).is_some())
}

/// Adds an effect for everything that matters in the trees of a call. Every path must have its place.
pub(super) fn examine(
    description: &mut Description,
    unresolved: &mut UnresolvedPaths,
    boundary: &ResolvedBoundary,
    restricts: Restricts<'_>,
    file_system: &dyn FileSystem,
) {
    let cached = CachedFileSystem::new(file_system);
    let mut trees = Trees {
        boundary,
        restricts,
        file_system: &cached,
        walker: TreeWalker::new(&cached),
        protected: HashMap::new(),
        left: MAXIMUM_FOUND,
        earlier: Changes::default(),
        written: description.parts.iter().enumerate().flat_map(|(index, part)| writes(index, part)).collect(),
        part: 0,
        runs_known_programs: false,
    };
    for (part_index, part) in description.parts.iter_mut().enumerate() {
        let mut found = FoundEffects::default();
        trees.part = part_index;
        trees.runs_known_programs = recoverable::runs_known_programs(part);
        if part.elsewhere.is_none() {
            for placed in &mut part.effects {
                trees.meet(placed, &mut found);
            }
        }
        part.effects.iter().for_each(|placed| trees.earlier.add(placed));
        for (placed, failure) in found.effects {
            let index = part.effects.len();
            part.effects.push(placed);
            unresolved.extend(failure.map(|failure| ((part_index, index), failure)));
        }
    }
}

/// The tree of an effect that must be looked into.
fn tree_of(placed: &PlacedEffect) -> Option<(&PathTarget, &Place)> {
    let (Target::Path(target), Some(place)) = (&placed.effect.target, &placed.place) else { return None };
    let touches = matches!(placed.effect.action, Action::Read | Action::Write | Action::Delete);
    let marks = &placed.effect.marks;
    let here = !marks.contains(&Mark::Elsewhere) && !marks.contains(&Mark::OwnFiles);
    let inside = match &target.below {
        // What it puts there may matter anywhere.
        TreeNames::Members(_) | TreeNames::Copied(_) => !matches!(place.zone, Zone::Unresolved(_)),
        TreeNames::Existing(_) | TreeNames::Any(_) => place.zone == Zone::Root,
    };
    (touches && here && target.is_open() && inside).then_some((target, place))
}

/// Effects that were found in trees, each once.
#[derive(Default)]
struct FoundEffects {
    effects: Vec<(PlacedEffect, Option<ResolveError>)>,
    seen: HashSet<(Action, PathBuf)>,
}

/// What earlier commands of the call may have changed by the time a later one runs.
#[derive(Default)]
struct Changes {
    paths: Vec<(PathBuf, bool)>,
    /// The paths that redirections wrote.
    files: Vec<PathBuf>,
    anything: bool,
}

impl Changes {
    fn add(&mut self, placed: &PlacedEffect) {
        if !placed.effect.may_change_names() {
            return;
        }
        match &placed.place {
            Some(place) if recoverable::is_redirection(placed) && recoverable::is_plain(place) => {
                self.files.push(place.resolved.clone());
            }
            Some(place) if !matches!(place.zone, Zone::Unresolved(_)) => {
                self.paths.push((place.resolved.clone(), place.tree || place.rest != Rest::Nothing));
            }
            _ => self.anything = true,
        }
    }

    /// Whether there is any change, so that a pattern was not replaced by the names that it matches.
    fn is_any(&self) -> bool {
        self.anything || !self.paths.is_empty() || !self.files.is_empty()
    }

    /// Whether the contents of a file or directory may be different by then.
    fn may_touch(&self, path: &Path) -> bool {
        let touches =
            |(changed, tree): &(PathBuf, bool)| changed.starts_with(path) || *tree && path.starts_with(changed);
        self.anything || self.paths.iter().any(touches) || self.files.iter().any(|file| file.starts_with(path))
    }

    /// Whether nothing but redirections made what is at a path, so that it is a plain file.
    fn only_files(&self, path: &Path) -> bool {
        let touches = |(changed, _): &(PathBuf, bool)| changed.starts_with(path) || path.starts_with(changed);
        !self.anything && !self.paths.iter().any(touches) && self.files.iter().any(|file| file == path)
    }
}

struct Trees<'a> {
    boundary: &'a ResolvedBoundary,
    restricts: Restricts<'a>,
    file_system: &'a dyn FileSystem,
    walker: TreeWalker<'a>,
    /// What was found in a directory, so that it is searched once however often a call names it.
    protected: HashMap<(PathBuf, Selection, Action), Arc<[TreeEntry]>>,
    /// How many more effects are added.
    left: usize,
    earlier: Changes,
    /// What each command of the call writes: one that stands behind another may run before it, in a loop or in the background.
    written: Vec<WrittenPath>,
    /// The command that is looked at, and whether nothing but programs of the system runs in it.
    part: usize,
    runs_known_programs: bool,
}

/// A path that a command writes.
struct WrittenPath {
    /// The number of the command.
    part: usize,
    path: PathBuf,
    is_redirection: bool,
}

/// The paths that a command writes. One that runs code of the project needs no detour to write anything.
fn writes(part: usize, command: &Part) -> impl Iterator<Item = WrittenPath> {
    let runs_code =
        command.effects.iter().any(|placed| placed.effect.action == Action::Run && placed.effect.may_change_names());
    let written = command.effects.iter().filter(move |placed| placed.effect.action == Action::Write && !runs_code);
    written.filter_map(move |placed| {
        let path = placed.place.as_ref()?.resolved.clone();
        Some(WrittenPath { part, path, is_redirection: recoverable::is_redirection(placed) })
    })
}

/// Why the names in a tree are not known.
type Unseen = String;

impl Trees<'_> {
    /// Looks into the tree of an effect, and notes what is known about its names.
    fn meet(&mut self, placed: &mut PlacedEffect, found: &mut FoundEffects) {
        let Some((target, place)) = tree_of(placed) else { return };
        let (target, place) = (target.clone(), place.clone());
        if placed.effect.action == Action::Delete
            && target.tree
            && matches!(&target.below, TreeNames::Existing(selection) if !selection.follows)
            && self.runs_known_programs
            && recoverable::is_plain(&place)
            && self.is_expendable(&place.resolved)
        {
            placed.effect.marks.push(Mark::Expendable);
            placed.effect.marks.sort();
        }
        let met = match &target.below {
            TreeNames::Existing(selection) => {
                let is_made = matches!(place.rest, Rest::Glob(_)) && self.earlier.is_any();
                let contents = if is_made { Contents::Made } else { Contents::Existing };
                self.existing(&placed.effect, &target, &place, selection, found).map(|()| contents)
            }
            TreeNames::Any(why) => Err(why.clone()),
            TreeNames::Members(members) => {
                self.members(&placed.effect, &place, members, found).map(|()| Contents::Given)
            }
            TreeNames::Copied(source) => self.copied(&placed.effect, &place, source, found).map(|()| Contents::Given),
        };
        let contents = met.unwrap_or_else(|why| {
            if let Target::Path(target) = &mut placed.effect.target {
                target.below = TreeNames::Any(why);
            }
            Contents::Any
        });
        if let Some(place) = &mut placed.place {
            place.contents = contents;
        }
    }

    /// Names that exist below a directory.
    fn existing(
        &mut self,
        effect: &Effect,
        target: &PathTarget,
        place: &Place,
        selection: &Selection,
        found: &mut FoundEffects,
    ) -> Result<(), Unseen> {
        // What a program is given as a path of its own, it opens, links too.
        let opens_links = selection.follows || !target.tree;
        let pattern = match &place.rest {
            Rest::Glob(pattern) => Some(DeepPattern::new(pattern)),
            Rest::Nothing | Rest::Anything => None,
        };
        let fits = |entry: &TreeEntry| {
            let ancestors = || entry.path.ancestors().take_while(|path| !path.as_os_str().is_empty());
            pattern.as_ref().is_none_or(|pattern| {
                pattern.may_match(&entry.path) || target.tree && ancestors().any(|path| pattern.may_match(path))
            })
        };
        for entry in self.protected_in(place, selection, effect.action)?.iter().filter(|entry| fits(entry)) {
            self.add(effect, PathTarget::new(exact(&place.named.join(&entry.path)), false), found)?;
        }
        if !opens_links {
            return Ok(());
        }
        let links: Vec<PathBuf> = self
            .walk(&place.resolved, selection)?
            .iter()
            .filter(|entry| entry.kind == EntryKind::Link && fits(entry))
            .map(|entry| entry.path.clone())
            .collect();
        for link in links {
            self.linked(effect, place, &link, selection, found)?;
        }
        Ok(())
    }

    /// A symlink in a tree that is followed.
    fn linked(
        &mut self,
        effect: &Effect,
        place: &Place,
        link: &Path,
        selection: &Selection,
        found: &mut FoundEffects,
    ) -> Result<(), Unseen> {
        let named = place.named.join(link);
        let leads = resolve(self.file_system, &place.resolved.join(link));
        if let Ok(leads) = &leads {
            // What lies in the same tree has been met there.
            if leads.starts_with(&place.resolved) && !(self.restricts)(effect.action, leads, leads) {
                return Ok(());
            }
            let inner = Place { named: named.clone(), resolved: leads.clone(), ..place.clone() };
            let is_inside = self.boundary.is_in_root(leads, self.file_system);
            if is_inside && !(self.restricts)(effect.action, &named, leads) {
                // Its own links lead no further than one more step: links to links are resolved already.
                let below = Selection { follows: false, ..selection.clone() };
                for entry in self.protected_in(&inner, &below, effect.action)?.iter() {
                    self.add(effect, PathTarget::new(exact(&named.join(&entry.path)), false), found)?;
                }
                let nested = self.walk(leads, &below)?;
                let astray = |entry: &&TreeEntry| {
                    entry.kind == EntryKind::Link
                        && resolve(self.file_system, &leads.join(&entry.path))
                            .map_or(true, |end| !end.starts_with(leads) && !end.starts_with(&place.resolved))
                };
                return match nested.iter().find(astray) {
                    Some(entry) => Err(format!("{} is a symlink that leads on", named.join(&entry.path).display())),
                    None => Ok(()),
                };
            }
        }
        let is_directory = leads.is_ok_and(|leads| self.file_system.look(&leads) == PathEntry::Directory);
        self.add(effect, PathTarget::new(exact(&named), is_directory), found)
    }

    /// The names that archives and patches put below a directory.
    fn members(
        &mut self,
        effect: &Effect,
        place: &Place,
        members: &Members,
        found: &mut FoundEffects,
    ) -> Result<(), Unseen> {
        for source in &members.sources {
            let names = match source {
                MemberSource::Text(text) => members::of_patch(text, members.strip)?,
                MemberSource::Archive(path) | MemberSource::Patch(path) => {
                    let path = Path::new(path);
                    let file =
                        resolve(self.file_system, path).map_err(|error| format!("{}: {error}", path.display()))?;
                    if self.earlier.may_touch(&file) || self.is_written_by_others(|path| file.starts_with(path)) {
                        return Err(format!("this call may change {} before it is unpacked", path.display()));
                    }
                    // A program that finds no input writes nothing.
                    if members.sources.len() == 1 && self.is_missing(&file) {
                        return Ok(());
                    }
                    let names = match source {
                        MemberSource::Archive(_) => members::of_archive(self.file_system, &file, members.strip),
                        _ => members::of_patch_file(self.file_system, &file, members.strip),
                    };
                    names.map_err(|why| format!("{}: {why}", path.display()))?
                }
            };
            for name in names {
                self.given(effect, place, &name, found)?;
            }
        }
        Ok(())
    }

    /// Whether another command of the call, wherever it stands, writes a path that this is about.
    fn is_written_by_others(&self, is_about: impl Fn(&Path) -> bool) -> bool {
        self.written.iter().any(|write| write.part != self.part && is_about(&write.path))
    }

    /// Whether a program that is given this name certainly finds no file: programs add suffixes (`unzip a` opens `a.zip`), and some
    /// read a name as a pattern.
    fn is_missing(&self, file: &Path) -> bool {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(OsStr::to_str)) else {
            return false;
        };
        let name = name.to_lowercase();
        let begins = |other: &OsStr| other.to_string_lossy().to_lowercase().starts_with(&name);
        let begins_here = |path: &Path| path.parent() == Some(folder) && path.file_name().is_some_and(begins);
        let names_nothing = match self.file_system.look(folder) {
            PathEntry::Missing => true,
            PathEntry::Directory => {
                let names = self.file_system.names(folder, MAXIMUM_NEIGHBOURS);
                names.is_some_and(|names| !names.iter().any(|other| begins(other)))
            }
            PathEntry::Link(_) | PathEntry::Other | PathEntry::Unreadable(_) => false,
        };
        names_nothing && !name.contains(['*', '?', '[', '\\', ':']) && !self.is_written_by_others(begins_here)
    }

    /// The names that a source has, put below a directory.
    fn copied(
        &mut self,
        effect: &Effect,
        place: &Place,
        source: &PathTarget,
        found: &mut FoundEffects,
    ) -> Result<(), Unseen> {
        let PlacedSource { directory, rest } = self.source(source)?;
        if rest == Rest::Nothing && self.is_made_here(&directory) {
            let name = directory.file_name().map(PathBuf::from).unwrap_or_default();
            return self.given(effect, place, &name, found);
        }
        if self.earlier.may_touch(&directory) {
            return Err(format!("this call may change {} before it is copied", directory.display()));
        }
        let selection = match &source.below {
            TreeNames::Existing(selection) => selection.clone(),
            _ => Selection::default(),
        };
        let base = directory.file_name().map(PathBuf::from).unwrap_or_default();
        // The source itself takes the name of the destination, or lies in it.
        if !base.as_os_str().is_empty() && rest == Rest::Nothing {
            self.given(effect, place, &base, found)?;
        }
        if rest == Rest::Nothing && !source.tree {
            return Ok(());
        }
        let pattern = match &rest {
            Rest::Glob(pattern) => Some(DeepPattern::new(pattern)),
            Rest::Nothing | Rest::Anything => None,
        };
        // A name that is asked for is as good as there.
        for name in selection.only.iter().filter(|name| !name.contains(['*', '?', '[', '/'])) {
            self.given(effect, place, Path::new(name), found)?;
        }
        for entry in self.walk(&directory, &selection)?.iter() {
            let below = entry.path.as_path();
            if rest == Rest::Nothing {
                self.given(effect, place, below, found)?;
                self.given(effect, place, &base.join(below), found)?;
                continue;
            }
            // One of the names, and what is below it: each part of the path may be the name that was given.
            let names: Vec<_> = below.components().collect();
            for at in 0..names.len() {
                let (head, last) = (names.get(..=at).unwrap_or_default(), at.saturating_add(1) == names.len());
                let is_name =
                    pattern.as_ref().is_none_or(|pattern| pattern.may_match(&head.iter().collect::<PathBuf>()));
                if !is_name || !source.tree && !last {
                    continue;
                }
                // A directory that takes the name of the destination leaves its own name behind.
                for from in at..names.len().min(at.saturating_add(2)) {
                    let tail: PathBuf = names.get(from..).unwrap_or_default().iter().collect();
                    self.given(effect, place, &tail, found)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a path is a plain file that redirections of the call make.
    fn is_made_here(&self, path: &Path) -> bool {
        self.file_system.look(path) == PathEntry::Missing
            && self.earlier.only_files(path)
            && !self
                .written
                .iter()
                .any(|write| !write.is_redirection && path.starts_with(&write.path) && write.part != self.part)
    }

    /// The directory that a source is or lies in.
    fn source(&self, source: &PathTarget) -> Result<PlacedSource, Unseen> {
        let place = self.boundary.placed(source, Action::Read, self.file_system).0;
        match place.zone {
            Zone::Unresolved(why) => Err(format!("what is copied is not known: {why}")),
            _ => Ok(PlacedSource { directory: place.resolved, rest: place.rest }),
        }
    }

    /// A name that is put below a directory, if it matters.
    fn given(&mut self, effect: &Effect, place: &Place, name: &Path, found: &mut FoundEffects) -> Result<(), Unseen> {
        let named = place.named.join(name);
        let leads = resolve(self.file_system, &place.resolved.join(name));
        let matters = leads.as_ref().map_or(true, |leads| {
            !leads.starts_with(&place.resolved) || (self.restricts)(effect.action, &named, leads)
        });
        if matters { self.add(effect, PathTarget::new(exact(&named), false), found) } else { Ok(()) }
    }

    /// The names below a directory that a rule protects.
    fn protected_in(
        &mut self,
        place: &Place,
        selection: &Selection,
        action: Action,
    ) -> Result<Arc<[TreeEntry]>, Unseen> {
        let key = (place.named.clone(), selection.clone(), action);
        if let Some(known) = self.protected.get(&key) {
            return Ok(Arc::clone(known));
        }
        let entries = self.walk(&place.resolved, selection)?;
        let (mut named, mut resolved) = (place.named.clone(), place.resolved.clone());
        let is_link = named != resolved;
        let mut restricts = |entry: &TreeEntry| {
            named.push(&entry.path);
            let restricted = if is_link {
                resolved.push(&entry.path);
                (self.restricts)(action, &named, &resolved)
            } else {
                (self.restricts)(action, &named, &named)
            };
            named.clone_from(&place.named);
            if is_link {
                resolved.clone_from(&place.resolved);
            }
            restricted
        };
        let protected: Arc<[TreeEntry]> = entries
            .iter()
            // The contents of a directory are the files in it.
            .filter(|entry| action != Action::Read || entry.kind != EntryKind::Directory)
            .filter(|entry| restricts(entry))
            .cloned()
            .collect();
        self.protected.insert(key, Arc::clone(&protected));
        Ok(protected)
    }

    fn walk(&mut self, directory: &Path, selection: &Selection) -> Result<Arc<[TreeEntry]>, Unseen> {
        self.walker.walk(directory, selection).map_err(|unseen| match unseen {
            UnseenDirectory::TooLarge => {
                "more files than callgate looks at; name smaller directories, or leave the large ones out".to_owned()
            }
            UnseenDirectory::Unreadable => "a directory in it cannot be read".to_owned(),
        })
    }

    /// Adds an effect on something in the tree of `effect`.
    fn add(&mut self, effect: &Effect, target: PathTarget, found: &mut FoundEffects) -> Result<(), Unseen> {
        let (mut place, failure) = self.boundary.placed(&target, effect.action, self.file_system);
        if !found.seen.insert((effect.action, place.named.clone())) {
            return Ok(());
        }
        self.left = self.left.checked_sub(1).ok_or("too many of them matter to the policy")?;
        place.contents = Contents::Existing;
        let target = Target::Path(target);
        let effect = Effect { target, ..effect.clone() }.marked(Mark::Inside);
        found.effects.push((PlacedEffect { effect, place: Some(place) }, failure));
        Ok(())
    }
}

/// Where the names of a source are.
struct PlacedSource {
    directory: PathBuf,
    rest: Rest,
}

fn exact(path: &Path) -> Names {
    match path.to_str() {
        Some(text) => Names::Exact(text.to_owned()),
        None => Names::Unknown("its name is not valid UTF-8".to_owned()),
    }
}
