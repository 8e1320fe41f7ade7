//! Finds the files that a git command changes in the work tree.
//!
//! git itself refuses to overwrite changes that are not committed, and untracked files, as long as no option says otherwise: the
//! tables ask for this reading only then. What it overwrites without a word are ignored files, files that it was told not to look
//! at, and what links lead to, so all of these are looked for here.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use callgate_model::description::{GitTask, GitUse};
use callgate_model::word::Word;

use super::shown::stash;
use crate::git::index::IndexEntry;
use crate::observe::repository::commits::Change;
use crate::observe::repository::objects::{Mode, ObjectId, ObjectKind, Unread, Version};
use crate::observe::repository::revisions::Repository;
use crate::path::file_system::{FileSystem, PathEntry};

/// A longer file of attributes is not read, and so not trusted.
const LONGEST_ATTRIBUTES: usize = 64 << 10;

const UNUSUAL: Unread = "callgate does not read commands of this form";
const NOT_A_COMMIT: Unread = "it is not a commit";

/// A path that git writes or removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    Removed,
}

/// What is known of a repository in which a command changes files.
pub(super) struct Changer<'a, 'r> {
    pub file_system: &'a dyn FileSystem,
    pub repository: &'r mut Repository<'a>,
    pub index: &'r [IndexEntry],
}

impl Changer<'_, '_> {
    /// The paths that a command writes and removes, relative to the root of the work tree.
    pub(super) fn outcomes(&mut self, git: &GitUse) -> Result<BTreeMap<String, Outcome>, Unread> {
        let changes = match git.task {
            GitTask::Switches => self.switch(git)?,
            GitTask::Merges => self.merge(git)?,
            GitTask::Picks => self.repeat(git, Direction::Forward)?,
            GitTask::Reverts => self.repeat(git, Direction::Back)?,
            GitTask::Rebases => self.rebase(git)?,
            GitTask::Unstashes => self.unstash(git)?,
            _ => return Err(UNUSUAL),
        };
        self.check(git.task, &changes)?;
        let outcome =
            |change: Change| (change.path, if change.new.is_some() { Outcome::Written } else { Outcome::Removed });
        let mut outcomes = BTreeMap::new();
        for (path, outcome) in changes.into_iter().map(outcome) {
            // A file that one step removes and another one writes is there at the end.
            let known = outcomes.entry(path).or_insert(outcome);
            if outcome == Outcome::Written {
                *known = outcome;
            }
        }
        Ok(outcomes)
    }

    /// The one operand; `None` if there is none.
    fn operand<'g>(&self, git: &'g GitUse) -> Result<Option<&'g str>, Unread> {
        match git.operands.as_slice() {
            [] => Ok(None),
            [Word::Known(word)] if git.before_dashes.is_none_or(|before| before == 1) => Ok(Some(word)),
            _ => Err(UNUSUAL),
        }
    }

    /// The commit that a word names; `None` if it names nothing, so that git does nothing.
    fn commit(&mut self, word: &str) -> Result<Option<ObjectId>, Unread> {
        let Some(id) = self.repository.resolve(word)? else { return Ok(None) };
        let id = self.repository.peel(id)?;
        match self.repository.objects.find(&id)?.map(|object| object.kind) {
            Some(ObjectKind::Commit) => Ok(Some(id)),
            _ => Err(NOT_A_COMMIT),
        }
    }

    fn head_tree(&mut self) -> Result<Option<ObjectId>, Unread> {
        match self.repository.head()? {
            Some(head) => Ok(Some(self.repository.tree(head)?)),
            None => Ok(None),
        }
    }

    fn between(&mut self, old: Option<ObjectId>, new: Option<ObjectId>) -> Result<Vec<Change>, Unread> {
        self.repository.objects.differences(old, new, &|_| true)
    }

    fn switch(&mut self, git: &GitUse) -> Result<Vec<Change>, Unread> {
        let Some(word) = self.operand(git)? else { return Ok(Vec::new()) };
        if word.contains([':', '*', '?', '[', '\\']) {
            return Err(UNUSUAL);
        }
        // `a...b` is the commit in which both began.
        if word.contains("..") {
            return Err(UNUSUAL);
        }
        let targets = match self.commit(word)? {
            Some(target) => vec![target],
            None => {
                let path = word.trim_end_matches('/');
                let below = |entry: &IndexEntry| {
                    entry.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                let is_there = self.file_system.look(&self.repository.root.join(path)) != PathEntry::Missing;
                if is_there || path.starts_with(['.', '/']) || self.index.iter().any(below) {
                    return Err("it may be a file, whose changes would be lost");
                }
                self.repository.remote_branches(word)?
            }
        };
        let old = self.head_tree()?;
        let mut changes = Vec::new();
        for target in targets {
            let new = self.repository.tree(target)?;
            changes.extend(self.between(old, Some(new))?);
        }
        Ok(changes)
    }

    fn merge(&mut self, git: &GitUse) -> Result<Vec<Change>, Unread> {
        let word = self.operand(git)?.ok_or(UNUSUAL)?;
        // It may list more than one commit.
        if word == "FETCH_HEAD" {
            return Err(UNUSUAL);
        }
        let Some(theirs) = self.commit(word)? else { return Ok(Vec::new()) };
        let ours = self.repository.head()?.ok_or(UNUSUAL)?;
        if self.repository.is_ancestor(theirs, ours)? {
            return Ok(Vec::new());
        }
        let [base] = self.repository.merge_bases(ours, theirs)?[..] else {
            return Err("the two histories have no common ancestor, or more than one");
        };
        self.three_way(Some(base), ours, Some(theirs))
    }

    /// The commit of a cherry-pick or a revert.
    fn repeat(&mut self, git: &GitUse, direction: Direction) -> Result<Vec<Change>, Unread> {
        let word = self.operand(git)?.ok_or(UNUSUAL)?;
        if word.contains("..") || word.starts_with('^') {
            return Err(UNUSUAL);
        }
        let Some(commit) = self.commit(word)? else { return Ok(Vec::new()) };
        let ours = self.repository.head()?.ok_or(UNUSUAL)?;
        let parent = match self.repository.parents(&commit)?[..] {
            [] => None,
            [parent] => Some(parent),
            _ => return Err("it is a merge"),
        };
        match direction {
            Direction::Forward => self.three_way(parent, ours, Some(commit)),
            Direction::Back => self.three_way(Some(commit), ours, parent),
        }
    }

    /// What a merge of `theirs` into `ours` changes, where both began with `base`: names that differ between `base` and `theirs`, as long
    /// as nothing was renamed in between.
    fn three_way(
        &mut self,
        base: Option<ObjectId>,
        ours: ObjectId,
        theirs: Option<ObjectId>,
    ) -> Result<Vec<Change>, Unread> {
        let mut tree = |commit: Option<ObjectId>| commit.map(|commit| self.repository.tree(commit)).transpose();
        let (base, ours, theirs) = (tree(base)?, tree(Some(ours))?, tree(theirs)?);
        self.three_way_of_trees(base, ours, theirs)
    }

    fn three_way_of_trees(
        &mut self,
        base: Option<ObjectId>,
        ours: Option<ObjectId>,
        theirs: Option<ObjectId>,
    ) -> Result<Vec<Change>, Unread> {
        const RENAMED: Unread = "files or directories may have been renamed, and git would follow them";
        let mut changes = self.between(base, theirs)?;
        if ours == base {
            return Ok(changes);
        }
        let added_by_us = self.between(base, ours)?;
        let added_by_us = added_by_us.iter().filter(|change| change.old.is_none());
        let added_by_us: HashSet<String> =
            added_by_us.flat_map(|change| directories(&change.path).map(str::to_owned)).collect();
        for change in &changes {
            let here = self.at(ours, &change.path)?;
            if change.old.is_some() && here.is_none_or(|version| version.mode == Mode::Directory) {
                return Err(RENAMED);
            }
            for directory in directories(&change.path) {
                let in_base = self.is_directory(base, directory)?;
                if in_base && !self.is_directory(ours, directory)? {
                    return Err(RENAMED);
                }
                if in_base && added_by_us.contains(directory) && !self.is_directory(theirs, directory)? {
                    return Err(RENAMED);
                }
            }
        }
        // What both sides changed alike stays as it is.
        for change in &mut changes {
            change.old = self.at(ours, &change.path)?;
        }
        changes.retain(|change| change.old != change.new);
        Ok(changes)
    }

    fn at(&mut self, tree: Option<ObjectId>, path: &str) -> Result<Option<Version>, Unread> {
        match tree {
            Some(tree) => self.repository.objects.at_path(tree, path),
            None => Ok(None),
        }
    }

    fn is_directory(&mut self, tree: Option<ObjectId>, path: &str) -> Result<bool, Unread> {
        Ok(self.at(tree, path)?.is_some_and(|version| version.mode == Mode::Directory))
    }

    fn rebase(&mut self, git: &GitUse) -> Result<Vec<Change>, Unread> {
        let word = self.operand(git)?.ok_or(UNUSUAL)?;
        let Some(onto) = self.commit(word)? else { return Ok(Vec::new()) };
        let ours = self.repository.head()?.ok_or(UNUSUAL)?;
        if onto == ours {
            return Ok(Vec::new());
        }
        // The branch forgets its commits; the log of HEAD remembers them.
        if !self.repository.keeps_log() {
            return Err("the repository keeps no log of HEAD, so the old commits would be lost");
        }
        let shallow = self.repository.shallow.clone();
        let theirs: HashSet<ObjectId> =
            self.repository.objects.ancestors(&[onto], None, &shallow)?.into_iter().map(|(id, _)| id).collect();
        let mut commits = self.repository.objects.ancestors(&[ours], None, &shallow)?;
        let is_up_to_date = commits.iter().any(|(id, _)| *id == onto);
        commits.retain(|(id, _)| !theirs.contains(id));
        if commits.iter().any(|(_, commit)| commit.parents.len() != 1) {
            return Err("there are merges among the commits");
        }
        if is_up_to_date {
            return Ok(Vec::new());
        }
        let (old, new) = (self.repository.tree(ours)?, self.repository.tree(onto)?);
        let mut changes = self.between(Some(old), Some(new))?;
        // From the oldest on: each is repeated on what is there by then.
        let mut made: HashSet<String> = HashSet::new();
        for (_, commit) in commits.iter().rev() {
            let Some(parent) = commit.parents.first() else { return Err(UNUSUAL) };
            let base = self.repository.tree(*parent)?;
            let steps = self.between(Some(base), Some(commit.tree))?;
            for step in &steps {
                let is_there = made.contains(&step.path) || self.at(Some(new), &step.path)?.is_some();
                let mut vanishes = step.old.is_some() && !is_there;
                for directory in directories(&step.path) {
                    let in_base = self.is_directory(Some(base), directory)?;
                    let here = made.contains(directory) || self.is_directory(Some(new), directory)?;
                    vanishes |= in_base && (!here || !self.is_directory(Some(commit.tree), directory)?);
                }
                if vanishes {
                    return Err("files or directories may have been renamed, and git would follow them");
                }
                made.extend(directories(&step.path).chain([step.path.as_str()]).map(str::to_owned));
            }
            changes.extend(steps);
        }
        Ok(changes)
    }

    fn unstash(&mut self, git: &GitUse) -> Result<Vec<Change>, Unread> {
        if git.operands.len() > 1 {
            return Err(UNUSUAL);
        }
        let Some(stash) = stash(self.repository, git)? else { return Ok(Vec::new()) };
        // It is merged into what is in the index, and git looks for files that are not there any more under other names.
        let tracked: HashSet<&str> =
            self.index.iter().flat_map(|entry| directories(&entry.path).chain([entry.path.as_str()])).collect();
        let adds = stash.changes.iter().any(|change| change.old.is_none());
        for change in &stash.changes {
            let mut vanished = change.old.is_some() && !tracked.contains(change.path.as_str());
            for directory in directories(&change.path) {
                let in_base = self.is_directory(Some(stash.base), directory)?;
                let removed = in_base && adds && !self.is_directory(Some(stash.tree), directory)?;
                vanished |= removed || in_base && !tracked.contains(directory);
            }
            if vanished {
                return Err("files or directories may have been renamed, and git would follow them");
            }
        }
        Ok(stash.changes.into_iter().chain(stash.untracked).collect())
    }

    /// Finds what makes the changes more than plain files with these names, or loses something.
    fn check(&mut self, task: GitTask, changes: &[Change]) -> Result<(), Unread> {
        let by_path: BTreeMap<&str, &IndexEntry> =
            self.index.iter().map(|entry| (entry.path.as_str(), entry)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        for change in changes {
            for version in [change.old, change.new].into_iter().flatten() {
                match version.mode {
                    Mode::Submodule => return Err("a submodule changes"),
                    Mode::Link if change.new.is_some() => return Err("a symlink changes"),
                    Mode::Directory | Mode::Link | Mode::File | Mode::Executable => {}
                }
            }
            let name = change.path.rsplit('/').next().unwrap_or_default();
            if name.eq_ignore_ascii_case(".gitmodules") {
                return Err("the list of submodules changes");
            }
            if name.eq_ignore_ascii_case(".gitattributes")
                && let Some(version) = change.new
            {
                let text = self.repository.objects.read(&version.id, ObjectKind::Blob)?;
                plain_attributes(&text, task)?;
            }
            let entry = by_path.get(change.path.as_str());
            if entry.is_some_and(|entry| entry.is_special) {
                return Err("git does not look whether a file that it overwrites was changed");
            }
            self.way_is_free(&change.path, entry.is_some())?;
        }
        self.attributes(task)
    }

    /// Whether nothing is lost that git does not have: it overwrites what is ignored.
    fn way_is_free(&self, path: &str, tracked: bool) -> Result<(), Unread> {
        let root = self.repository.root.clone();
        for above in directories(path) {
            match self.file_system.look(&root.join(above)) {
                PathEntry::Directory => {}
                PathEntry::Missing => return Ok(()),
                _ => return Err("a file or symlink is where git makes a directory"),
            }
        }
        match self.file_system.look(&root.join(path)) {
            PathEntry::Missing => Ok(()),
            PathEntry::Other if tracked => Ok(()),
            _ => Err("an untracked file is in the way, which git may overwrite"),
        }
    }

    /// Whether the attributes of files name no filters; for merges, no merge drivers either.
    fn attributes(&self, task: GitTask) -> Result<(), Unread> {
        let is_attributes = |entry: &&IndexEntry| entry.path.rsplit('/').next() == Some(".gitattributes");
        let tracked = self.index.iter().filter(is_attributes).map(|entry| self.repository.root.join(&entry.path));
        let own = [self.repository.root.join(".gitattributes"), self.repository.common.join("info/attributes")];
        for file in tracked.chain(own) {
            self.attributes_in(&file, task)?;
        }
        Ok(())
    }

    fn attributes_in(&self, file: &Path, task: GitTask) -> Result<(), Unread> {
        match self.file_system.read(file, LONGEST_ATTRIBUTES) {
            Ok(Some(text)) => plain_attributes(&text, task),
            Ok(None) => Ok(()),
            Err(_) => Err("the attributes of files cannot be read"),
        }
    }
}

enum Direction {
    Forward,
    Back,
}

/// Whether attributes name nothing that runs a program.
fn plain_attributes(text: &[u8], task: GitTask) -> Result<(), Unread> {
    let text = String::from_utf8_lossy(text);
    if text.contains("filter") || text.contains("[attr]") {
        return Err("attributes of files name a filter");
    }
    if task != GitTask::Switches && text.contains("merge") {
        return Err("attributes of files say how they are merged");
    }
    Ok(())
}

/// The directories in which a path lies, outermost first.
fn directories(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(end, _)| path.get(..end))
}
