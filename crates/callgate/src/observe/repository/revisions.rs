//! Finds what a revision names: `main`, `HEAD~2`, `v1.0^{}`, `stash@{1}`, `3f2a9c1`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::objects::{ObjectId, ObjectKind, Objects, Unread, parse_id};
use crate::path::file_system::{EntryKind, FileSystem, PathEntry};

const LONGEST_REFERENCE: usize = 4 << 10;
const LONGEST_LIST: usize = 16 << 20;
const DEEPEST_REFERENCE: usize = 5;
const MOST_REFERENCES: usize = 5_000;

/// A repository whose references and objects can be read.
pub(crate) struct Repository<'a> {
    file_system: &'a dyn FileSystem,
    /// The work tree.
    pub root: PathBuf,
    /// Its own git directory, and the one that it shares with other work trees.
    pub folder: PathBuf,
    pub common: PathBuf,
    pub objects: Objects<'a>,
    /// Commits whose parents were not fetched.
    pub shallow: HashSet<ObjectId>,
}

impl<'a> Repository<'a> {
    /// Opens a repository whose format is the usual one; objects are not replaced by others.
    pub(crate) fn open(
        file_system: &'a dyn FileSystem,
        root: &Path,
        folder: PathBuf,
        common: PathBuf,
    ) -> Result<Self, Unread> {
        let exists = |path: &str| file_system.look(&common.join(path)) != PathEntry::Missing;
        if exists("objects/info/alternates") {
            return Err("the repository borrows objects from another one");
        }
        if exists("info/grafts") || exists("reftable") {
            return Err("the repository has a format that callgate does not read");
        }
        // More names than were asked for are not listed at all.
        let replaced = file_system.names(&common.join("refs/replace"), 1);
        if exists("refs/replace") && replaced.is_none_or(|names| !names.is_empty()) {
            return Err("objects of the repository are replaced by others");
        }
        let shallow = match file_system.read(&common.join("shallow"), LONGEST_LIST) {
            Ok(text) => text.unwrap_or_default().split(|byte| *byte == b'\n').filter_map(parse_id).collect(),
            Err(_) => return Err("the list of shallow commits cannot be read"),
        };
        let objects = Objects::new(file_system, common.join("objects"));
        let root = root.to_owned();
        let repository = Repository { file_system, root, folder, common, objects, shallow };
        match repository.packed_references()? {
            text if text.contains("refs/replace/") => Err("objects of the repository are replaced by others"),
            _ => Ok(repository),
        }
    }

    fn text(&self, path: &Path, longest: usize) -> Result<Option<String>, Unread> {
        const UNREADABLE: Unread = "a reference of the repository cannot be read";
        match self.file_system.read(path, longest) {
            Ok(Some(bytes)) => String::from_utf8(bytes).map(Some).map_err(|_| UNREADABLE),
            Ok(None) => Ok(None),
            // A directory in its place: the name is only the front of others.
            Err(_) if self.file_system.look(path) == PathEntry::Directory => Ok(None),
            Err(_) => Err(UNREADABLE),
        }
    }

    fn packed_references(&self) -> Result<String, Unread> {
        Ok(self.text(&self.common.join("packed-refs"), LONGEST_LIST)?.unwrap_or_default())
    }

    /// The object that a reference with its whole name (`HEAD`, `refs/heads/main`) points to.
    pub(crate) fn reference(&self, name: &str) -> Result<Option<ObjectId>, Unread> {
        let mut name = name.to_owned();
        for _ in 0..DEEPEST_REFERENCE {
            let is_own =
                !name.starts_with("refs/") || name.starts_with("refs/bisect/") || name.starts_with("refs/worktree/");
            let base = if is_own { &self.folder } else { &self.common };
            let Some(text) = self.text(&base.join(&name), LONGEST_REFERENCE)? else {
                let packed = self.packed_references()?;
                let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
                return Ok(lines.find(|(_, packed)| *packed == name).and_then(|(id, _)| parse_id(id.as_bytes())));
            };
            match text.strip_prefix("ref:") {
                Some(target) => {
                    name = plain_reference(target.trim()).ok_or("a reference has an unusual name")?.to_owned()
                }
                None => {
                    let id = text.split_whitespace().next().and_then(|word| parse_id(word.as_bytes()));
                    return id.map(Some).ok_or("a reference does not hold the name of an object");
                }
            }
        }
        Err("references point to each other")
    }

    /// The branch that HEAD points to, as `refs/heads/main`; `None` if it points to a commit.
    pub(crate) fn branch(&self) -> Result<Option<String>, Unread> {
        let head = self.text(&self.folder.join("HEAD"), LONGEST_REFERENCE)?.unwrap_or_default();
        Ok(head.strip_prefix("ref:").map(|target| target.trim().to_owned()))
    }

    /// The commit that HEAD points to; `None` if there is none yet.
    pub(crate) fn head(&mut self) -> Result<Option<ObjectId>, Unread> {
        match self.reference("HEAD")? {
            Some(id) => self.peel(id).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a name exists below `logs`, so that what a reference pointed to can be found again.
    pub(crate) fn keeps_log(&self) -> bool {
        let logs = |name: &str| matches!(self.file_system.look(&self.folder.join("logs").join(name)), PathEntry::Other);
        logs("HEAD")
    }

    /// What a reference pointed to, newest first.
    fn log(&self, name: &str) -> Result<Vec<String>, Unread> {
        let base = if name.starts_with("refs/") { &self.common } else { &self.folder };
        let text = self.text(&base.join("logs").join(name), LONGEST_LIST)?.unwrap_or_default();
        Ok(text.lines().rev().map(str::to_owned).collect())
    }

    /// The commit that this many checkouts ago was left (`-`, `@{-1}`), as it was named then.
    fn left(&self, count: usize) -> Result<Option<String>, Unread> {
        let moves = self.log("HEAD")?.into_iter().filter_map(|line| {
            let (_, message) = line.split_once("\tcheckout: moving from ")?;
            message.split(' ').next().map(str::to_owned)
        });
        let mut moves = moves.skip(count.saturating_sub(1));
        Ok(moves.next())
    }

    /// The whole names of the references that a short name may mean, in git's order.
    fn candidates(name: &str) -> Vec<String> {
        let mut names: Vec<String> = ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/"]
            .iter()
            .map(|front| format!("{front}{name}"))
            .collect();
        names.push(format!("refs/remotes/{name}/HEAD"));
        if is_root_reference(name) {
            names.insert(0, name.to_owned());
        }
        names
    }

    /// The whole name and the object of a reference with a short name.
    fn short_reference(&self, name: &str) -> Result<Option<(String, ObjectId)>, Unread> {
        if plain_reference(name).is_none() {
            return Ok(None);
        }
        let mut found: Option<(String, ObjectId)> = None;
        for whole in Self::candidates(name) {
            match (self.reference(&whole)?, &found) {
                (Some(id), None) => found = Some((whole, id)),
                (Some(id), Some((_, other))) if id != *other => return Err("more than one reference has this name"),
                _ => {}
            }
        }
        // Older versions of git read any file there as a reference.
        let own = self.file_system.look(&self.folder.join(name));
        if !is_root_reference(name) && matches!(own, PathEntry::Other | PathEntry::Link(_)) {
            return Err("a file of the repository has this name");
        }
        Ok(found)
    }

    /// The objects that a revision names; `None` if it names none.
    pub(crate) fn resolve(&mut self, revision: &str) -> Result<Option<ObjectId>, Unread> {
        const UNUSUAL: Unread = "callgate does not read revisions of this form";
        let named = if revision == "-" { "@{-1}" } else { revision };
        let end = named.find(['^', '~', ':']).unwrap_or(named.len());
        let end = named.find("@{").map_or(end, |at| end.min(at));
        let (base, mut rest) = named.split_at_checked(end).ok_or(UNUSUAL)?;
        let mut found = match rest.strip_prefix("@{") {
            Some(inner) => {
                let (inner, behind) = inner.split_once('}').ok_or(UNUSUAL)?;
                rest = behind;
                match inner.strip_prefix('-') {
                    Some(count) if base.is_empty() => {
                        let count = count.parse().map_err(|_| UNUSUAL)?;
                        let Some(left) = self.left(count)? else { return Ok(None) };
                        self.named(&left)?
                    }
                    _ => self.logged(base, inner.parse().map_err(|_| UNUSUAL)?)?,
                }
            }
            None if base.is_empty() => return Err(UNUSUAL),
            None => self.named(base)?,
        };
        while let Some(id) = found {
            let Some(operator) = rest.chars().next() else { return Ok(Some(id)) };
            rest = rest.get(1..).ok_or(UNUSUAL)?;
            if let Some(inner) = rest.strip_prefix('{').filter(|_| operator == '^') {
                let (kind, behind) = inner.split_once('}').ok_or(UNUSUAL)?;
                rest = behind;
                found = match kind {
                    "" | "commit" | "object" => Some(self.peel(id)?),
                    "tree" => Some(self.tree(id)?),
                    _ => return Err(UNUSUAL),
                };
                continue;
            }
            let digits = rest.len().saturating_sub(rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len());
            let (count, behind) = rest.split_at_checked(digits).ok_or(UNUSUAL)?;
            rest = behind;
            let count = if count.is_empty() { 1 } else { count.parse::<usize>().map_err(|_| UNUSUAL)? };
            let mut commit = self.peel(id)?;
            found = match (operator, count) {
                (_, 0) => Some(commit),
                ('^', count) => self.parents(&commit)?.get(count.saturating_sub(1)).copied(),
                ('~', count) => {
                    let mut last = Some(commit);
                    for _ in 0..count {
                        last = self.parents(&commit)?.first().copied();
                        match last {
                            Some(parent) => commit = parent,
                            None => break,
                        }
                    }
                    last
                }
                _ => return Err(UNUSUAL),
            };
        }
        Ok(None)
    }

    /// The object that a plain name or the number of an object stands for.
    fn named(&mut self, name: &str) -> Result<Option<ObjectId>, Unread> {
        if let Some(id) = parse_id(name.as_bytes()) {
            return self.objects.find(&id)?.map(|_| Some(id)).ok_or("an object of the repository is missing");
        }
        // The references of other work trees.
        if name.starts_with("main-worktree/") || name.starts_with("worktrees/") {
            return Err("callgate does not read revisions of this form");
        }
        let name = if name == "@" { "HEAD" } else { name };
        if let Some((_, id)) = self.short_reference(name)? {
            return Ok(Some(id));
        }
        // `git describe` writes v1.0-3-g3f2a9c1.
        let digits = name.rsplit_once("-g").map_or(name, |(_, digits)| digits);
        if !(4..=40).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(None);
        }
        match self.objects.starting_with(digits)?.as_slice() {
            [] => Ok(None),
            [id] => Ok(Some(*id)),
            _ => Err("more than one object has a name that begins so"),
        }
    }

    /// What a reference pointed to so many changes ago.
    fn logged(&self, name: &str, count: usize) -> Result<Option<ObjectId>, Unread> {
        let whole = match name {
            "" => self.branch()?.unwrap_or_else(|| "HEAD".to_owned()),
            "@" | "HEAD" => "HEAD".to_owned(),
            name => match self.short_reference(name)? {
                Some((whole, _)) => whole,
                None => return Ok(None),
            },
        };
        let log = self.log(&whole)?;
        let new = log.get(count).and_then(|line| line.split(' ').nth(1));
        let old = count.checked_sub(1).and_then(|before| log.get(before)).and_then(|line| line.split(' ').next());
        Ok(new.or(old).and_then(|id| parse_id(id.as_bytes())).filter(|id| *id != ObjectId::default()))
    }

    /// The branches of remotes that `git checkout NAME` would make a branch from.
    pub(crate) fn remote_branches(&self, name: &str) -> Result<Vec<ObjectId>, Unread> {
        let mut found = Vec::new();
        let folder = self.common.join("refs/remotes");
        let remotes = match self.file_system.names(&folder, 1_000) {
            Some(remotes) => remotes,
            None if self.file_system.look(&folder) == PathEntry::Missing => Vec::new(),
            None => return Err("the remotes of the repository cannot be listed"),
        };
        let mut names: Vec<String> = remotes.iter().filter_map(|remote| remote.to_str().map(str::to_owned)).collect();
        let packed = self.packed_references()?;
        let packed = packed.lines().filter_map(|line| line.split_once(" refs/remotes/")?.1.split('/').next());
        names.extend(packed.map(str::to_owned));
        names.sort();
        names.dedup();
        for remote in names {
            found.extend(self.reference(&format!("refs/remotes/{remote}/{name}"))?);
        }
        Ok(found)
    }

    /// What all references below `refs` point to.
    pub(crate) fn all_references(&mut self) -> Result<Vec<ObjectId>, Unread> {
        const TOO_MANY: Unread = "the repository has more references than callgate looks at";
        let packed = self.packed_references()?;
        let mut found: Vec<ObjectId> =
            packed.lines().filter_map(|line| parse_id(line.split_once(' ')?.0.as_bytes())).collect();
        let mut waiting = vec!["refs".to_owned()];
        let mut left = MOST_REFERENCES;
        while let Some(folder) = waiting.pop() {
            for (name, kind) in self.file_system.entries(&self.common.join(&folder), left).map_err(|_| TOO_MANY)? {
                left = left.checked_sub(1).ok_or(TOO_MANY)?;
                let name = format!("{folder}/{}", name.to_str().ok_or("a reference has an unusual name")?);
                match kind {
                    EntryKind::Directory => waiting.push(name),
                    _ => found.extend(self.reference(&name)?),
                }
            }
        }
        // Other work trees have a HEAD as well.
        let folder = self.common.join("worktrees");
        let others = match self.file_system.names(&folder, MOST_REFERENCES) {
            Some(names) => names,
            None if self.file_system.look(&folder) == PathEntry::Missing => Vec::new(),
            None => return Err(TOO_MANY),
        };
        let others = others.into_iter().map(|name| folder.join(name)).chain([self.common.clone()]);
        for other in others {
            // A branch is among the references already.
            let head = self.text(&other.join("HEAD"), LONGEST_REFERENCE)?.unwrap_or_default();
            found.extend(parse_id(head.trim().as_bytes()));
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|id| self.peel(id)).collect()
    }

    /// The best common ancestors of two commits.
    pub(crate) fn merge_bases(&mut self, one: ObjectId, other: ObjectId) -> Result<Vec<ObjectId>, Unread> {
        let of_one: HashSet<ObjectId> =
            self.objects.ancestors(&[one], None, &self.shallow)?.into_iter().map(|(id, _)| id).collect();
        let mut common = self.objects.ancestors(&[other], None, &self.shallow)?;
        common.retain(|(id, _)| of_one.contains(id));
        // An ancestor of a common ancestor is the parent of one.
        let worse: HashSet<ObjectId> = common.iter().flat_map(|(_, commit)| commit.parents.iter().copied()).collect();
        Ok(common.into_iter().map(|(id, _)| id).filter(|id| !worse.contains(id)).collect())
    }

    /// Whether a commit can be reached from another one.
    pub(crate) fn is_ancestor(&mut self, old: ObjectId, new: ObjectId) -> Result<bool, Unread> {
        Ok(self.objects.ancestors(&[new], None, &self.shallow)?.iter().any(|(id, _)| *id == old))
    }

    pub(crate) fn parents(&mut self, commit: &ObjectId) -> Result<Vec<ObjectId>, Unread> {
        if self.shallow.contains(commit) {
            return Ok(Vec::new());
        }
        Ok(self.objects.commit(commit)?.parents)
    }

    /// The object that a tag stands for, however many tags lie between.
    pub(crate) fn peel(&mut self, id: ObjectId) -> Result<ObjectId, Unread> {
        let mut id = id;
        for _ in 0..DEEPEST_REFERENCE {
            match self.objects.find(&id)? {
                Some(object) if object.kind == ObjectKind::Tag => {
                    let first = object.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
                    let target = first.strip_prefix(b"object ").and_then(parse_id);
                    id = target.ok_or("a tag of the repository is in a form that callgate does not read")?;
                }
                Some(_) => return Ok(id),
                None => return Err("an object of the repository is missing"),
            }
        }
        Err("tags point to each other")
    }

    /// The tree of a commit, a tag or a tree.
    pub(crate) fn tree(&mut self, id: ObjectId) -> Result<ObjectId, Unread> {
        let id = self.peel(id)?;
        match self.objects.find(&id)?.map(|object| object.kind) {
            Some(ObjectKind::Commit) => Ok(self.objects.commit(&id)?.tree),
            Some(ObjectKind::Tree) => Ok(id),
            _ => Err("it is neither a commit nor a tree"),
        }
    }
}

/// Whether a name is taken for that of a reference as it is: `HEAD`, `ORIG_HEAD`, `refs/heads/main`.
fn is_root_reference(name: &str) -> bool {
    name.starts_with("refs/") || name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

/// A name that git accepts for a reference, as far as it can be a path.
fn plain_reference(name: &str) -> Option<&str> {
    let parts_are_plain =
        name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"));
    let is_odd = |letter: char| letter.is_control() || " ~^:?*[\\".contains(letter);
    let is_plain = parts_are_plain && !name.contains(is_odd) && !name.contains("..") && !name.contains("@{");
    (is_plain && !name.starts_with('-')).then_some(name)
}
