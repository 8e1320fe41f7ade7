//! Looks into repositories for the files that git commands show, take and change.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use callgate_model::description::{GitTask, GitUse, Part, PlacedEffect};
use callgate_model::effect::{Action, CodeOrigin, Effect, Mark, Names, PathTarget, Selection, Target, TreeNames};

use super::changed::{Changer, Outcome};
use super::pathspec::Pathspecs;
use super::shown::Look;
use crate::git::index::{self, IndexEntry};
use crate::git::{self, FoundRepository, WorkTree};
use crate::observe::repository;
use crate::observe::repository::objects::Unread;
use crate::observe::repository::revisions::Repository;
use crate::observe::trees::Restricts;
use crate::observe::trees::walk::TreeWalker;
use crate::path::file_system::{FileSystem, PathEntry};

/// A longer index (about 300,000 files) is not read.
const LONGEST_INDEX: usize = 32 << 20;
/// The most effects that one command adds to a call.
const MAXIMUM_FOUND: usize = 1_000;

/// Settings with which git does something else to files than what is read here.
const OTHER_FILES: &[&str] = &[
    "core.attributesfile",
    "core.ignorestat",
    "core.sparsecheckout",
    "core.protecthfs",
    "core.protectntfs",
    "merge.directoryrenames",
    "branch.*.mergeoptions",
    "submodule.recurse",
];

/// What the other commands of a call may change, before or after: a loop or a function runs a command again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Others {
    #[default]
    Nothing,
    /// Files, and what is in the index and in HEAD: names that are there now, or that were taken from the work tree and judged.
    Known,
    /// Anything.
    Anything,
}

/// Looks for the files of git commands in one call.
pub(super) struct Files<'a> {
    file_system: &'a dyn FileSystem,
    restricts: Restricts<'a>,
    /// What each command of the call may change.
    levels: Vec<Others>,
    /// The highest of them, and its place; and the highest of the others.
    highest: (usize, Others),
    second: Others,
    /// What commands write: the place of the command, the path, and whether with everything below.
    written: Vec<(usize, PathBuf, bool)>,
    /// The first and the last command that write into a git directory.
    touching: HashMap<PathBuf, Option<(usize, usize)>>,
}

/// Subcommands after which the index, HEAD and the objects have no names that they did not have, or that were not judged.
const KEEP_NAMES: &[&str] = &["add", "stage", "commit", "tag", "branch", "config", "mv", "rm"];

impl<'a> Files<'a> {
    pub(super) fn new(file_system: &'a dyn FileSystem, restricts: Restricts<'a>, parts: &[Part]) -> Self {
        let touching = HashMap::new();
        let (levels, highest) = (Vec::new(), (0, Others::Nothing));
        let mut files =
            Files { file_system, restricts, levels, highest, second: Others::Nothing, written: Vec::new(), touching };
        for (place, part) in parts.iter().enumerate().filter(|(_, part)| part.elsewhere.is_none()) {
            let level = files.level(place, part);
            if level > files.highest.1 {
                files.second = files.highest.1;
                files.highest = (place, level);
            } else {
                files.second = files.second.max(level);
            }
            files.levels.push(level);
        }
        files
    }

    /// What a command may change.
    fn level(&mut self, place: usize, part: &Part) -> Others {
        let mut level = Others::Nothing;
        let words: Vec<Option<&str>> = part.words.iter().map(|word| word.known()).collect();
        let subcommand = match git::invocation(&words) {
            git::Invocation::Git(start) => start.subcommand.and_then(|place| words.get(place).copied().flatten()),
            git::Invocation::Other | git::Invocation::Unknown => None,
        };
        let only_names = |git: &GitUse| git.task == GitTask::Switches && git.operands.is_empty();
        let keeps = subcommand.is_some_and(|name| KEEP_NAMES.contains(&name)) || part.git.iter().any(only_names);
        let is_git = git::looks(part);
        let connects = |placed: &PlacedEffect| matches!(placed.effect.action, Action::Connect | Action::Send);
        if is_git && part.effects.iter().any(connects) {
            level = Others::Anything;
        }
        for placed in part.effects.iter().filter(|placed| placed.effect.may_change_names()) {
            let effect = &placed.effect;
            let is_own = is_git && !effect.marks.contains(&Mark::Redirection);
            level = level.max(match &effect.target {
                Target::Program(program) if is_own && program.name == git::CONFIGURATION => Others::Nothing,
                _ if is_own && keeps => Others::Known,
                Target::Path(PathTarget { names: Names::Exact(path), tree, .. }) if !is_own => {
                    self.written.push((place, PathBuf::from(path), *tree));
                    Others::Known
                }
                _ => Others::Anything,
            });
        }
        level
    }

    /// What the other commands of the call may change of a repository.
    fn others(&mut self, place: usize, tree: &WorkTree) -> Others {
        let folders = [&tree.folder, &tree.common];
        let touches = |(_, path, below): &&(usize, PathBuf, bool)| {
            folders.iter().any(|folder| path.starts_with(folder) || *below && folder.starts_with(path))
        };
        let written = &self.written;
        let touching = self.touching.entry(tree.folder.clone()).or_insert_with(|| {
            let mut places = written.iter().filter(touches).map(|(place, _, _)| *place);
            let first = places.next()?;
            Some((first, places.next_back().unwrap_or(first)))
        });
        match touching {
            Some((first, last)) if *first != place || *last != place => Others::Anything,
            _ if self.highest.0 == place => self.second,
            _ => self.highest.1,
        }
    }

    /// Adds an effect for each file that matters among those that a command shows or takes.
    pub(super) fn shows(
        &mut self,
        place: usize,
        git: &GitUse,
        directory: &Path,
        walker: &mut TreeWalker<'_>,
        found: &mut Vec<PlacedEffect>,
    ) {
        match repository::find(directory, self.file_system) {
            FoundRepository::Missing if git.task == GitTask::ShowsChanges => {
                // Outside of a repository it compares any two files or directories.
                for path in git.operands.iter().filter_map(|word| word.known()) {
                    let target = PathTarget::new(exact(&directory.join(path)), true);
                    found.push(Effect::new(Action::Read, Target::Path(target), because(git)).into());
                }
            }
            FoundRepository::Missing => {}
            FoundRepository::Unclear => {
                found.push(anything(directory, git, "it is not certain which repository git uses").into());
            }
            FoundRepository::Certain(tree) if git.task == GitTask::TakesFiles => {
                self.takes(git, &tree, directory, walker, found);
            }
            FoundRepository::Certain(tree) => {
                let names = match self.others(place, &tree) {
                    Others::Anything => Err("another command of this call may change what is shown"),
                    others => self.shown(git, &tree, directory, others),
                };
                match names {
                    Ok(names) if names.len() <= MAXIMUM_FOUND => {
                        for name in names {
                            let target = PathTarget::new(exact(&tree.root.join(name)), false);
                            let effect = Effect::new(Action::Read, Target::Path(target), because(git));
                            found.push(effect.marked(Mark::Inside).into());
                        }
                    }
                    Ok(_) => found.push(anything(&tree.root, git, "too many of them matter to the policy").into()),
                    Err(why) => found.push(anything(&tree.root, git, why).into()),
                }
            }
        }
    }

    fn shown(&self, git: &GitUse, tree: &WorkTree, directory: &Path, others: Others) -> Result<Vec<String>, Unread> {
        let (index, written) = self.index(tree)?;
        let mut repository = self.open(tree)?;
        // Commits touch the same files again and again.
        let known: RefCell<HashMap<String, bool>> = RefCell::default();
        let matters = |name: &str| {
            if let Some(known) = known.borrow().get(name) {
                return *known;
            }
            let path = tree.root.join(name);
            let matters = (self.restricts)(Action::Read, &path, &path);
            known.borrow_mut().insert(name.to_owned(), matters);
            matters
        };
        let directory = inside(directory, &tree.root)?;
        let look = &mut Look {
            file_system: self.file_system,
            repository: &mut repository,
            index: &index,
            written,
            matters: &matters,
            directory: &directory,
            changed: others != Others::Nothing,
        };
        look.names(git)
    }

    /// Files that are new to git: what is tracked already is judged when it is shown.
    fn takes(
        &mut self,
        git: &GitUse,
        tree: &WorkTree,
        directory: &Path,
        walker: &mut TreeWalker<'_>,
        found: &mut Vec<PlacedEffect>,
    ) {
        let has = |name: &str| git.options.iter().any(|option| option == name);
        if git.operands.is_empty() && !has("-A") && !has("--all") && !has("--pathspec-from-file") {
            return;
        }
        let taken = self.index(tree).and_then(|(index, _)| {
            let from_file = has("--pathspec-from-file");
            let specs = match inside(directory, &tree.root) {
                Ok(directory) if !from_file => Pathspecs::new(&git.operands, &directory, &tree.root),
                _ => Pathspecs::all(),
            };
            // A file that is named itself is an effect already.
            if specs.single().is_some_and(|path| self.file_system.look(&tree.root.join(path)) == PathEntry::Other) {
                return Ok(Vec::new());
            }
            let except_directories = vec![".git".to_owned()];
            let selection = Selection { skips_ignored: true, except_directories, ..Selection::default() };
            let start = match specs.single() {
                Some(path) => tree.root.join(path),
                None => tree.root.clone(),
            };
            let entries = walker.walk(&start, &selection).map_err(|_| "the work tree is too large to look at")?;
            let tracked: HashSet<&str> = index.iter().map(|entry| entry.path.as_str()).collect();
            let mut names = Vec::new();
            for entry in entries.iter() {
                let path = start.join(&entry.path);
                let Ok(name) = path.strip_prefix(&tree.root) else { continue };
                let name = name.to_str().ok_or("a name is not valid UTF-8")?;
                if !tracked.contains(name) && specs.mean(name) && (self.restricts)(Action::Read, &path, &path) {
                    names.push(path);
                }
            }
            Ok(names)
        });
        match taken {
            Ok(names) if names.len() <= MAXIMUM_FOUND => {
                for path in names {
                    let target = PathTarget::new(exact(&path), false);
                    let effect = Effect::new(Action::Read, Target::Path(target), because(git));
                    found.push(effect.marked(Mark::Inside).into());
                }
            }
            // What is taken is judged when it is shown, which must not be in this call.
            Ok(_) | Err(_) if self.levels.len() < 2 => {}
            Ok(_) => found.push(anything(&tree.root, git, "too many of them matter to the policy").into()),
            Err(why) => found.push(anything(&tree.root, git, why).into()),
        }
    }

    /// Replaces what a table says about a command that changes files by the files that it changes. No hook and no setting of the
    /// repository may run anything.
    pub(super) fn changes(&mut self, place: usize, git: &GitUse, directory: &Path, found: &mut Vec<PlacedEffect>) {
        let is_hooks = |effect: &Effect| match &effect.target {
            Target::Program(program) => program.name == HOOKS && program.origin == CodeOrigin::Project,
            _ => false,
        };
        let FoundRepository::Certain(tree) = repository::find(directory, self.file_system) else { return };
        let effects = match self.others(place, &tree) {
            Others::Nothing => self.changed(git, &tree),
            _ => Err("another command of this call changes files"),
        };
        match effects {
            Ok(effects) => {
                let stated = |effect: &Effect| match &effect.target {
                    Target::Path(target) => {
                        matches!(effect.action, Action::Write | Action::Delete)
                            && Some(&target.names) == directory_of(git).as_ref()
                    }
                    _ => is_hooks(effect),
                };
                found.retain(|placed| !stated(&placed.effect));
                let index = Target::Path(PathTarget::new(exact(&tree.root), false));
                found.push(Effect::new(Action::Write, index, because(git)).into());
                found.extend(effects.into_iter().map(Into::into));
            }
            Err(why) => {
                if let Some(placed) = found.iter_mut().find(|placed| is_hooks(&placed.effect)) {
                    let command = &git.command;
                    placed.effect = Effect::opaque(format!("it is not known which files {command} changes: {why}"));
                }
            }
        }
    }

    fn changed(&self, git: &GitUse, tree: &WorkTree) -> Result<Vec<Effect>, Unread> {
        let (index, _) = self.index(tree)?;
        let mut repository = self.open(tree)?;
        let settings = self.settings(tree)?;
        let is_off = |value: &str| ["false", "no", "off", "0"].iter().any(|off| value.eq_ignore_ascii_case(off));
        let matters = |(name, value): &(String, String)| match name.as_str() {
            "core.logallrefupdates" => is_off(value),
            name => OTHER_FILES.contains(&name) && !is_off(value),
        };
        if settings.iter().any(matters) {
            return Err("a setting of the repository changes what git does to files");
        }
        let mut changer = Changer { file_system: self.file_system, repository: &mut repository, index: &index };
        let outcomes = changer.outcomes(git)?;
        let mut effects = Vec::new();
        let mut removes = false;
        let is_alone = self.levels.len() < 2;
        let is_repository = |name: &String| {
            let last = name.rsplit('/').next().unwrap_or_default();
            ["HEAD", "commondir"].iter().any(|file| last.eq_ignore_ascii_case(file))
        };
        if !is_alone && outcomes.keys().any(is_repository) {
            return Err("a repository may come with it, which other commands of this call use");
        }
        for (name, outcome) in &outcomes {
            let path = tree.root.join(name);
            let action = match outcome {
                Outcome::Written => Action::Write,
                Outcome::Removed => Action::Delete,
            };
            // Other commands of the call find what is written; one removal stands for all that no rule is about.
            let first_removal = *outcome == Outcome::Removed && !removes;
            removes |= first_removal;
            if !is_alone || first_removal || (self.restricts)(action, &path, &path) {
                let effect = Effect::new(action, Target::Path(PathTarget::new(exact(&path), false)), because(git));
                let effect = effect.marked(Mark::Inside);
                effects.push(if action == Action::Delete { effect.marked(Mark::Recoverable) } else { effect });
            }
            if effects.len() > MAXIMUM_FOUND {
                return Err("too many of them matter to the policy, or to other commands of this call");
            }
        }
        Ok(effects)
    }

    fn index(&self, tree: &WorkTree) -> Result<(Vec<IndexEntry>, (i64, i64)), Unread> {
        const UNREADABLE: Unread = "the index of the repository cannot be read";
        let path = tree.folder.join("index");
        match self.file_system.read(&path, LONGEST_INDEX) {
            Ok(None) => Ok((Vec::new(), (0, 0))),
            Ok(Some(bytes)) => {
                let written = self.file_system.stamp(&path).map_or((0, 0), |stamp| stamp.modified);
                Ok((index::entries(&bytes).ok_or(UNREADABLE)?, written))
            }
            Err(_) => Err(UNREADABLE),
        }
    }

    fn settings(&self, tree: &WorkTree) -> Result<Vec<(String, String)>, Unread> {
        let read = |path: &Path, limit: usize| repository::read(path, limit, self.file_system);
        git::settings_of(tree, &read).ok_or("the settings of the repository cannot be read")
    }

    fn open(&self, tree: &WorkTree) -> Result<Repository<'a>, Unread> {
        let is_other = |(name, value): &(String, String)| match name.as_str() {
            "extensions.objectformat" => !value.eq_ignore_ascii_case("sha1"),
            "extensions.refstorage" => value != "files",
            "extensions.worktreeconfig" => false,
            name => name.starts_with("extensions."),
        };
        if self.settings(tree)?.iter().any(is_other) {
            return Err("the repository has a format that callgate does not read");
        }
        Repository::open(self.file_system, &tree.root, tree.folder.clone(), tree.common.clone())
    }
}

/// The program tables' name for hooks of the repository.
const HOOKS: &str = "git-hooks";

fn directory_of(git: &GitUse) -> Option<Names> {
    git.directory.clone().map(Names::Exact)
}

fn because(git: &GitUse) -> String {
    let verb = match git.task {
        GitTask::TakesFiles => "takes it",
        task if task.looks() => "shows it",
        _ => "changes it",
    };
    format!("{}: {verb}", git.command)
}

/// Any file of a repository is shown.
fn anything(root: &Path, git: &GitUse, why: &str) -> Effect {
    let below = TreeNames::Any(why.to_owned());
    Effect::new(Action::Read, Target::Path(PathTarget { names: exact(root), tree: true, below }), because(git))
}

/// A directory relative to the root of the work tree.
fn inside(directory: &Path, root: &Path) -> Result<String, Unread> {
    let inside: PathBuf = directory.strip_prefix(root).map_err(|_| "the directory is not in the work tree")?.to_owned();
    inside.into_os_string().into_string().map_err(|_| "a name is not valid UTF-8")
}

fn exact(path: &Path) -> Names {
    match path.to_str() {
        Some(text) => Names::Exact(text.to_owned()),
        None => Names::Unknown("its name is not valid UTF-8".to_owned()),
    }
}
