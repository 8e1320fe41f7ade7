//! Finds the names of the files whose contents a git command shows.

use std::collections::{HashMap, HashSet};

use callgate_model::description::{GitTask, GitUse};
use callgate_model::word::Word;

use super::pathspec::Pathspecs;
use crate::git::index::IndexEntry;
use crate::observe::repository;
use crate::observe::repository::commits::Change;
use crate::observe::repository::objects::{Mode, ObjectId, ObjectKind, Unread};
use crate::observe::repository::revisions::Repository;
use crate::path::file_system::FileSystem;

/// Whether a name in the work tree matters to the policy.
pub(super) type Matters<'a> = &'a dyn Fn(&str) -> bool;

/// What is known when a command of the call runs.
pub(super) struct Look<'a, 'r> {
    pub file_system: &'a dyn FileSystem,
    pub repository: &'r mut Repository<'a>,
    pub index: &'r [IndexEntry],
    /// When the index was written.
    pub written: (i64, i64),
    pub matters: Matters<'r>,
    /// Where the command stands, relative to the root of the work tree.
    pub directory: &'r str,
    /// Earlier commands of the call may have changed files, the index and HEAD.
    pub changed: bool,
}

/// What the operands of a command are.
struct Operands {
    /// The versions that are compared or shown; `None` is a version without files.
    revisions: Vec<Revision>,
    paths: Pathspecs,
    /// Files that a revision names itself: `HEAD:a`.
    files: Vec<String>,
    /// Directories of revisions, and where they are: `HEAD:src`.
    directories: Vec<(ObjectId, String)>,
}

enum Revision {
    One(ObjectId),
    /// What the second has and the first has not.
    Range(ObjectId, ObjectId),
    /// What the second has and a common ancestor has not, or what one of them has.
    Symmetric(ObjectId, ObjectId),
    /// Without what this has.
    Without(ObjectId),
}

/// What a revision with a path names.
enum NamedFile {
    /// It is no such revision.
    OtherForm,
    /// There is no such revision.
    Missing,
    File(String),
    /// A directory and its path.
    Directory(ObjectId, String),
}

const UNKNOWN: Unread = "a word of the command is not known";

impl Look<'_, '_> {
    /// The names that matter among those whose contents the command shows.
    pub(super) fn names(&mut self, git: &GitUse) -> Result<Vec<String>, Unread> {
        let operands = self.operands(git)?;
        let mut operands = operands;
        let has = |name: &str| git.options.iter().any(|option| option == name);
        if has("--merge-base") {
            operands.revisions = self.with_merge_bases(operands.revisions)?;
        }
        if has("--recurse-submodules") && !operands.revisions.is_empty() {
            return Err("what submodules had is not read");
        }
        let mut names = operands.files.clone();
        names.retain(|name| (self.matters)(name));
        match git.task {
            GitTask::ShowsFiles => self.files(&operands, &mut names)?,
            GitTask::ShowsObjects => self.objects(&operands, &mut names)?,
            GitTask::ShowsStash => self.stash(git, &mut names)?,
            GitTask::ShowsCommits => self.commits(git, &operands, &mut names)?,
            GitTask::ShowsStaged => {
                let tree = match operands.revisions.as_slice() {
                    [] => self.head_tree()?,
                    [Revision::One(id)] => Some(self.repository.tree(*id)?),
                    _ => return Err("callgate does not read comparisons of this form"),
                };
                self.staged(tree, &operands.paths, &mut names)?;
            }
            _ => self.changes(git, &operands, &mut names)?,
        }
        if matches!(git.task, GitTask::ShowsChanges | GitTask::ShowsStaged | GitTask::ShowsFiles) {
            for (tree, path) in &operands.directories {
                let files = self.repository.objects.differences(None, Some(*tree), &|_| true)?;
                let below = |file: Change| match path.as_str() {
                    "" => file.path,
                    path => format!("{path}/{}", file.path),
                };
                names.extend(files.into_iter().map(below).filter(|name| (self.matters)(name)));
            }
        }
        if self.changed {
            let head = self.head_tree()?;
            self.tree(head, &operands.paths, &mut names)?;
            names.extend(self.tracked(&operands.paths).map(|entry| entry.path.clone()));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// `--merge-base`: what is compared is where a revision and HEAD, or the other revision, began.
    fn with_merge_bases(&mut self, revisions: Vec<Revision>) -> Result<Vec<Revision>, Unread> {
        let head = self.repository.head()?.ok_or(UNKNOWN)?;
        let (one, other) = match revisions.as_slice() {
            [Revision::One(one)] => (*one, head),
            [Revision::One(one), Revision::One(other)] => (*one, *other),
            _ => return Err("callgate does not read comparisons of this form"),
        };
        let [base] = self.repository.merge_bases(one, other)?[..] else {
            return Err("the two histories have no common ancestor, or more than one");
        };
        let second = (revisions.len() > 1).then_some(Revision::One(other));
        Ok([Revision::One(base)].into_iter().chain(second).collect())
    }

    fn head_tree(&mut self) -> Result<Option<ObjectId>, Unread> {
        match self.repository.head()? {
            Some(head) => Ok(Some(self.repository.tree(head)?)),
            None => Ok(None),
        }
    }

    /// Tells revisions and paths apart, as git does: what names no revision is a path, and so is everything behind it.
    fn operands(&mut self, git: &GitUse) -> Result<Operands, Unread> {
        let mut words = git.operands.iter().enumerate().skip(usize::from(takes_pattern(git)));
        let takes_revisions = !["status", "commit", "add", "stage"].iter().any(|name| git.command.ends_with(name));
        let dashes = if takes_revisions { git.before_dashes.unwrap_or(usize::MAX) } else { 0 };
        let paths = Pathspecs::default();
        let mut operands = Operands { revisions: Vec::new(), paths, files: Vec::new(), directories: Vec::new() };
        let mut paths: Vec<&Word> = Vec::new();
        for (place, word) in words.by_ref() {
            let text = match word {
                Word::Known(text) if place < dashes => text.as_str(),
                // The output of a command, of which only its form is known, looks the same as names of files.
                Word::Glob(_) if place < dashes => {
                    return Err("a word that is not certain may be a revision; write -- in front of files");
                }
                Word::Known(_) | Word::Glob(_) | Word::Below { .. } => {
                    paths.push(word);
                    break;
                }
                _ => return Err(UNKNOWN),
            };
            if self.revision(text, &mut operands)? || takes_only_objects(git) {
                continue;
            }
            paths.push(word);
            break;
        }
        paths.extend(words.map(|(_, word)| word));
        if paths.iter().any(|word| matches!(word, Word::Partly { .. } | Word::Unknown { .. })) {
            return Err(UNKNOWN);
        }
        let has = |names: &[&str]| git.options.iter().any(|option| names.contains(&option.as_str()));
        // Options of git itself that change what a pathspec means, and names in a file.
        let unusual = has(&["--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs"])
            || has(&["--pathspec-from-file"])
            // Then they only say which commits are shown, and not which files of these.
            || has(&["--full-diff"]);
        operands.paths =
            if unusual { Pathspecs::all() } else { Pathspecs::new(paths, self.directory, &self.repository.root) };
        Ok(operands)
    }

    /// Reads a word as a revision. Returns whether it is one.
    fn revision(&mut self, text: &str, operands: &mut Operands) -> Result<bool, Unread> {
        if text.starts_with(":(") || text.starts_with(":!") || text.starts_with(":^") {
            return Ok(false);
        }
        let head = |side: &str| if side.is_empty() { "HEAD".to_owned() } else { side.to_owned() };
        match self.named_in(text)? {
            NamedFile::OtherForm => {}
            NamedFile::Missing => return Ok(false),
            NamedFile::File(file) => {
                operands.files.push(file);
                return Ok(true);
            }
            NamedFile::Directory(tree, path) => {
                operands.directories.push((tree, path));
                return Ok(true);
            }
        }
        for (dots, symmetric) in [("...", true), ("..", false)] {
            // `..` alone, or in front of a slash, is a directory.
            let Some((from, to)) = text.split_once(dots).filter(|(_, to)| !to.starts_with('/')) else { continue };
            if from.is_empty() && to.is_empty() {
                return Ok(false);
            }
            let (from, to) = (self.repository.resolve(&head(from))?, self.repository.resolve(&head(to))?);
            let (Some(from), Some(to)) = (from, to) else { return Ok(false) };
            let (from, to) = (self.repository.peel(from)?, self.repository.peel(to)?);
            operands.revisions.push(if symmetric { Revision::Symmetric(from, to) } else { Revision::Range(from, to) });
            return Ok(true);
        }
        if let Some(without) = text.strip_prefix('^') {
            let Some(id) = self.repository.resolve(without)? else { return Ok(false) };
            operands.revisions.push(Revision::Without(self.repository.peel(id)?));
            return Ok(true);
        }
        for (suffix, itself) in [("^@", false), ("^!", true), ("^-", true)] {
            let Some(commit) = text.strip_suffix(suffix) else { continue };
            let Some(id) = self.repository.resolve(commit)? else { return Ok(false) };
            let id = self.repository.peel(id)?;
            let parents = self.repository.parents(&id)?;
            operands.revisions.extend(itself.then_some(Revision::One(id)));
            operands.revisions.extend(parents.into_iter().map(if itself { Revision::Without } else { Revision::One }));
            return Ok(true);
        }
        if text.chars().any(|letter| "*?[\\ ".contains(letter)) && !text.contains("@{") {
            return Ok(false);
        }
        let Some(id) = self.repository.resolve(text)? else { return Ok(false) };
        operands.revisions.push(Revision::One(self.repository.peel(id)?));
        Ok(true)
    }

    /// What `HEAD:a`, `:a` and `:0:a` name, relative to the root of the work tree.
    fn named_in(&mut self, text: &str) -> Result<NamedFile, Unread> {
        let Some((revision, file)) = text.split_once(':').filter(|(front, _)| !front.contains("^{/")) else {
            return Ok(NamedFile::OtherForm);
        };
        if revision.is_empty() && file.starts_with('/') {
            return Err("callgate does not search for commits by their messages");
        }
        let is_stage = |text: &str| matches!(text, "0" | "1" | "2" | "3");
        let (tree, file) = match file.split_once(':') {
            Some((stage, file)) if revision.is_empty() && is_stage(stage) => (None, file),
            _ if revision.is_empty() => (None, file),
            _ => match self.repository.resolve(revision)? {
                Some(id) => (Some(self.repository.tree(id)?), file),
                None => return Ok(NamedFile::Missing),
            },
        };
        let relative = file.starts_with("./") || file.starts_with("../");
        let mut parts: Vec<&str> = if relative { self.directory.split('/').collect() } else { Vec::new() };
        for part in file.split('/') {
            match part {
                ".." => {
                    parts.pop();
                }
                "" | "." => {}
                part => parts.push(part),
            }
        }
        parts.retain(|part| !part.is_empty());
        let path = parts.join("/");
        let Some(tree) = tree else { return Ok(NamedFile::File(path)) };
        if path.is_empty() {
            return Ok(NamedFile::Directory(tree, path));
        }
        Ok(match self.repository.objects.at_path(tree, &path)? {
            Some(version) if version.mode == Mode::Directory => NamedFile::Directory(version.id, path),
            _ => NamedFile::File(path),
        })
    }

    /// Tracked names that matter.
    fn tracked<'s>(&'s self, paths: &'s Pathspecs) -> impl Iterator<Item = &'s IndexEntry> {
        self.index.iter().filter(|entry| paths.mean(&entry.path) && (self.matters)(&entry.path))
    }

    /// How the work tree differs from the index.
    fn unstaged(&self, paths: &Pathspecs, names: &mut Vec<String>) {
        let changed = |entry: &&IndexEntry| {
            let stamp = self.file_system.stamp(&self.repository.root.join(&entry.path));
            !stamp.is_some_and(|stamp| repository::is_unchanged(entry, &stamp, self.written))
        };
        names.extend(self.tracked(paths).filter(changed).map(|entry| entry.path.clone()));
    }

    /// How the index differs from a tree.
    fn staged(&mut self, tree: Option<ObjectId>, paths: &Pathspecs, names: &mut Vec<String>) -> Result<(), Unread> {
        let mut index: HashMap<&str, &IndexEntry> = HashMap::new();
        let mut differ: Vec<&str> = Vec::new();
        for entry in self.index.iter().filter(|entry| paths.mean(&entry.path)) {
            // In a conflict, there are several entries.
            if entry.is_special || index.insert(&entry.path, entry).is_some() {
                differ.push(&entry.path);
            }
        }
        let in_tree = self.repository.objects.differences(None, tree, &|directory| paths.reach(directory))?;
        for file in in_tree.iter().filter(|file| paths.mean(&file.path)) {
            let entry = index.remove(file.path.as_str());
            let is_same = |entry: &IndexEntry| file.new.is_some_and(|version| version.id[..] == entry.object[..]);
            if !entry.is_some_and(is_same) {
                differ.push(&file.path);
            }
        }
        differ.extend(index.into_keys());
        names.extend(differ.into_iter().filter(|name| (self.matters)(name)).map(str::to_owned));
        Ok(())
    }

    /// All names of a tree that matter.
    fn tree(&mut self, tree: Option<ObjectId>, paths: &Pathspecs, names: &mut Vec<String>) -> Result<(), Unread> {
        let Some(tree) = tree else { return Ok(()) };
        self.differences(None, Some(tree), paths, names)
    }

    fn differences(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        paths: &Pathspecs,
        names: &mut Vec<String>,
    ) -> Result<(), Unread> {
        let changes = self.repository.objects.differences(old, new, &|directory| paths.reach(directory))?;
        names.extend(
            changes.into_iter().map(|change| change.path).filter(|path| paths.mean(path) && (self.matters)(path)),
        );
        Ok(())
    }

    fn changes(&mut self, git: &GitUse, operands: &Operands, names: &mut Vec<String>) -> Result<(), Unread> {
        let paths = &operands.paths;
        match operands.revisions.as_slice() {
            [] if git.command.ends_with("diff-index") => {}
            [] => self.unstaged(paths, names),
            [Revision::One(id)] if git.command.ends_with("diff-tree") => {
                self.commit(*id, Merged::FromAny, paths, names)?
            }
            [Revision::One(id)] => {
                if !self.is_file(*id, names)? {
                    let tree = self.repository.tree(*id)?;
                    self.staged(Some(tree), paths, names)?;
                    self.unstaged(paths, names);
                }
            }
            [Revision::Symmetric(from, to)] => {
                let new = self.repository.tree(*to)?;
                for base in self.repository.merge_bases(*from, *to)? {
                    let old = self.repository.tree(base)?;
                    self.differences(Some(old), Some(new), paths, names)?;
                }
            }
            revisions => {
                let mut trees = Vec::new();
                for revision in revisions {
                    let ids = match revision {
                        Revision::One(id) | Revision::Without(id) => vec![*id],
                        Revision::Range(from, to) | Revision::Symmetric(from, to) => vec![*from, *to],
                    };
                    for id in ids {
                        if !self.is_file(id, names)? {
                            trees.push(self.repository.tree(id)?);
                        }
                    }
                }
                if let Some((first, others)) = trees.split_first() {
                    for other in others {
                        self.differences(Some(*first), Some(*other), paths, names)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether an object is a file. Then its name is what the index calls it.
    fn is_file(&mut self, id: ObjectId, names: &mut Vec<String>) -> Result<bool, Unread> {
        if self.repository.objects.find(&id)?.is_none_or(|object| object.kind != ObjectKind::Blob) {
            return Ok(false);
        }
        let mut called = self.index.iter().filter(|entry| entry.object[..] == id[..]).peekable();
        if called.peek().is_none() {
            return Err("it is not known which file this object is");
        }
        names.extend(called.map(|entry| entry.path.clone()).filter(|path| (self.matters)(path)));
        Ok(true)
    }

    fn objects(&mut self, operands: &Operands, names: &mut Vec<String>) -> Result<(), Unread> {
        for revision in &operands.revisions {
            if let Revision::One(id) = revision {
                self.is_file(*id, names)?;
            }
        }
        Ok(())
    }

    fn files(&mut self, operands: &Operands, names: &mut Vec<String>) -> Result<(), Unread> {
        if operands.revisions.is_empty() {
            names.extend(self.tracked(&operands.paths).map(|entry| entry.path.clone()));
        }
        for revision in &operands.revisions {
            let Revision::One(id) = revision else { return Err("callgate does not read revisions of this form") };
            if !self.is_file(*id, names)? {
                let tree = self.repository.tree(*id)?;
                self.tree(Some(tree), &operands.paths, names)?;
            }
        }
        Ok(())
    }

    fn stash(&mut self, git: &GitUse, names: &mut Vec<String>) -> Result<(), Unread> {
        let Some(stash) = stash(self.repository, git)? else { return Ok(()) };
        let paths = stash.changes.into_iter().chain(stash.untracked).map(|change| change.path);
        names.extend(paths.filter(|path| (self.matters)(path)));
        Ok(())
    }

    fn commits(&mut self, git: &GitUse, operands: &Operands, names: &mut Vec<String>) -> Result<(), Unread> {
        let paths = &operands.paths;
        let has = |names: &str| git.options.iter().any(|option| names.split(' ').any(|name| name == option));
        // Both go through a log of references.
        let logs = git.command.contains(" stash ") || git.command.contains(" reflog");
        if logs || has("--reflog -g --walk-reflogs --bisect --alternate-refs --indexed-objects --merge --glob --stdin")
        {
            return Err("callgate does not read which commits it shows");
        }
        let (mut tips, mut without) = (Vec::new(), Vec::new());
        for revision in &operands.revisions {
            match revision {
                Revision::One(id) if self.is_file(*id, names)? => {}
                Revision::One(id) => tips.push(*id),
                Revision::Without(id) => without.push(*id),
                Revision::Range(from, to) => {
                    without.push(*from);
                    tips.push(*to);
                }
                Revision::Symmetric(from, to) => tips.extend([*from, *to]),
            }
        }
        // What is left out with one of these is shown after all, and a stream of history begins with whole trees.
        if has("--not --boundary") || git.command.ends_with("fast-export") {
            tips.append(&mut without);
        }
        let head = self.repository.head()?;
        // A single revision is where its patches begin.
        let is_one = matches!(operands.revisions.as_slice(), [Revision::One(_)]);
        if git.command.ends_with("format-patch") && is_one && git.limit.is_none() && !has("--root") {
            without = std::mem::take(&mut tips);
        }
        if has("--all --branches --tags --remotes") {
            tips.extend(self.repository.all_references()?);
            tips.extend(head);
        }
        if operands.revisions.is_empty() || tips.is_empty() && !without.is_empty() {
            tips.extend(head);
        }
        // What is not a commit has no history.
        let mut commits = Vec::new();
        for tip in tips {
            let tip = self.repository.peel(tip)?;
            match self.repository.objects.find(&tip)?.map(|object| object.kind) {
                Some(ObjectKind::Commit) => commits.push(tip),
                Some(ObjectKind::Tree) => {}
                _ => return Err("callgate does not read which commits it shows"),
            }
        }
        // `git show` goes on to parents only if it is told how far, or where to stop.
        let walks = !git.command.ends_with(" show")
            || git.limit.is_some()
            || !without.is_empty()
            || has("--do-walk -n --max-count")
            || operands.revisions.iter().any(|revision| matches!(revision, Revision::Symmetric(..)));
        let steps = if !walks {
            Some(1)
        } else {
            let skips_none = git.options.iter().all(|option| is_plain_option(option)) && !paths.are_given();
            git.limit.filter(|_| skips_none)
        };
        let shallow = self.repository.shallow.clone();
        let left_out: HashSet<ObjectId> = match without.as_slice() {
            [] => HashSet::new(),
            _ => self.repository.objects.ancestors(&without, None, &shallow)?.into_iter().map(|(id, _)| id).collect(),
        };
        let merged = if has("-m -c --diff-merges --first-parent --remerge-diff --dd") {
            Merged::FromAny
        } else {
            Merged::FromAll
        };
        commits.retain(|id| !left_out.contains(id));
        let mut seen: HashSet<ObjectId> = commits.iter().copied().collect();
        let mut level = commits;
        let mut steps = steps.unwrap_or(usize::MAX);
        while !level.is_empty() && steps > 0 {
            steps = steps.saturating_sub(1);
            let mut next = Vec::new();
            for id in level {
                self.commit(id, merged, paths, names)?;
                let parents = self.repository.parents(&id)?;
                next.extend(parents.into_iter().filter(|parent| !left_out.contains(parent) && seen.insert(*parent)));
            }
            level = next;
        }
        Ok(())
    }

    /// The names that a commit changed.
    fn commit(
        &mut self,
        id: ObjectId,
        merged: Merged,
        paths: &Pathspecs,
        names: &mut Vec<String>,
    ) -> Result<(), Unread> {
        let tree = self.repository.tree(id)?;
        let parents = self.repository.parents(&id)?;
        if parents.is_empty() {
            return self.differences(None, Some(tree), paths, names);
        }
        let mut common: Option<Vec<String>> = None;
        for parent in parents {
            let old = self.repository.tree(parent)?;
            let mut found = Vec::new();
            self.differences(Some(old), Some(tree), paths, &mut found)?;
            match (&mut common, merged) {
                (Some(common), Merged::FromAny) => common.append(&mut found),
                (Some(common), Merged::FromAll) => common.retain(|name| found.contains(name)),
                (None, _) => common = Some(found),
            }
        }
        names.extend(common.unwrap_or_default());
        Ok(())
    }
}

/// Which changes of a merge are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merged {
    /// Those to any parent.
    FromAny,
    /// Those to all parents.
    FromAll,
}

/// Whether the first operand is what is searched for.
fn takes_pattern(git: &GitUse) -> bool {
    git.command.ends_with("grep") && !git.options.iter().any(|option| matches!(option.as_str(), "-e" | "-f"))
}

/// Whether no operand is a path.
fn takes_only_objects(git: &GitUse) -> bool {
    ["cat-file", "unpack-file"].iter().any(|name| git.command.ends_with(name))
}

/// Whether an option of `git log` leaves out no commit.
fn is_plain_option(option: &str) -> bool {
    const PLAIN: &str = "-p -u --patch --no-patch -s --stat --numstat --shortstat --name-only --name-status --summary --oneline --format \
        --pretty --graph --no-graph --decorate --no-decorate --color --no-color --abbrev-commit --no-abbrev-commit --abbrev --date \
        --relative-date -U --unified -n --max-count -P --no-pager -C --no-ext-diff --no-textconv -w -b -M --find-renames --no-renames \
        --word-diff --color-words --raw --full-index --binary -z --minimal --patience --histogram --root --cc --compact-summary -W \
        --function-context --no-notes --topo-order --date-order --stdout -o --output-directory -k --keep-subject --signoff \
        --no-signature --numbered -N --cover-letter";
    let is_number = option.strip_prefix('-').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    is_number || PLAIN.split_whitespace().any(|plain| plain == option)
}

/// What is put aside.
pub(super) struct Stash {
    /// The tree that it was made on, and the tree that it is.
    pub base: ObjectId,
    pub tree: ObjectId,
    /// How they differ, and how the index that was put aside differs from the first.
    pub changes: Vec<Change>,
    pub untracked: Vec<Change>,
}

/// Finds what is put aside; `None` if there is no such stash.
pub(super) fn stash(repository: &mut Repository<'_>, git: &GitUse) -> Result<Option<Stash>, Unread> {
    let name = match git.operands.first().map(Word::known) {
        None => "stash".to_owned(),
        Some(Some(number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => format!("stash@{{{number}}}"),
        Some(Some(name)) => name.to_owned(),
        Some(None) => return Err(UNKNOWN),
    };
    let Some(stash) = repository.resolve(&name)? else { return Ok(None) };
    let stash = repository.peel(stash)?;
    let (base, index, untracked) = match repository.parents(&stash)?[..] {
        [base, index] => (base, index, None),
        [base, index, untracked] => (base, index, Some(repository.tree(untracked)?)),
        _ => return Err("it is not a stash"),
    };
    let (base, index, tree) = (repository.tree(base)?, repository.tree(index)?, repository.tree(stash)?);
    let mut changes = repository.objects.differences(Some(base), Some(tree), &|_| true)?;
    changes.extend(repository.objects.differences(Some(base), Some(index), &|_| true)?);
    let untracked = repository.objects.differences(None, untracked, &|_| true)?;
    Ok(Some(Stash { base, tree, changes, untracked }))
}
