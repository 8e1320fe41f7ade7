//! Commits and trees: which names a version has, and which differ between two versions.

use std::collections::HashSet;
use std::sync::Arc;

use super::objects::{Mode, ObjectId, ObjectKind, Objects, Tree, Unread, Version, parse_id};

const ODD_TREE: Unread = "a directory of the repository has entries that callgate does not understand";
const ODD_COMMIT: Unread = "a commit of the repository is in a form that callgate does not read";
/// The most names that are told apart, and how deeply they may be nested.
const MAXIMUM_NAMES: usize = 100_000;
const DEEPEST_TREE: usize = 128;

/// A path that differs between two trees. One of the versions is missing if it was added or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub path: String,
    pub old: Option<Version>,
    pub new: Option<Version>,
}

/// What a commit refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
}

/// Reads the header of a commit.
pub(crate) fn parse_commit(bytes: &[u8]) -> Result<Commit, Unread> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let tree = lines.next().and_then(|line| line.strip_prefix(b"tree ")).and_then(parse_id).ok_or(ODD_COMMIT)?;
    let mut parents = Vec::new();
    for line in lines {
        let Some(parent) = line.strip_prefix(b"parent ") else { break };
        parents.push(parse_id(parent).ok_or(ODD_COMMIT)?);
    }
    Ok(Commit { tree, parents })
}

/// Reads a tree. Names that git would not check out, or that are not text, are errors.
pub(crate) fn parse_tree(bytes: &[u8]) -> Result<Vec<(String, Version)>, Unread> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).ok_or(ODD_TREE)?;
        let (head, behind) = rest.split_at_checked(end).ok_or(ODD_TREE)?;
        let (id, behind) = behind.get(1..).and_then(|behind| behind.split_first_chunk::<20>()).ok_or(ODD_TREE)?;
        rest = behind;
        let (mode, name) = std::str::from_utf8(head).ok().and_then(|head| head.split_once(' ')).ok_or(ODD_TREE)?;
        let mode = match mode {
            "40000" => Mode::Directory,
            "100644" | "100664" => Mode::File,
            "100755" => Mode::Executable,
            "120000" => Mode::Link,
            "160000" => Mode::Submodule,
            _ => return Err(ODD_TREE),
        };
        let is_odd = name.contains('/') || matches!(name, "" | "." | "..") || name.eq_ignore_ascii_case(".git");
        if is_odd {
            return Err(ODD_TREE);
        }
        entries.push((name.to_owned(), Version { mode, id: *id }));
    }
    // git sorts directories as if a slash stood behind their names.
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let is_twice = entries.iter().zip(entries.iter().skip(1)).any(|((one, _), (other, _))| one == other);
    if is_twice { Err(ODD_TREE) } else { Ok(entries) }
}

/// The names in either of two trees, with what they are in each.
fn pairs<'t>(old: &'t Tree, new: &'t Tree) -> impl Iterator<Item = (&'t str, Option<Version>, Option<Version>)> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        let name = match (old.peek(), new.peek()) {
            (Some((one, _)), Some((other, _))) => one.min(other),
            (Some((name, _)), None) | (None, Some((name, _))) => name,
            (None, None) => return None,
        };
        let one = old.next_if(|(other, _)| other == name).map(|(_, version)| *version);
        Some((name.as_str(), one, new.next_if(|(other, _)| other == name).map(|(_, version)| *version)))
    })
}

/// Whether anything at or below a path can matter.
pub(crate) type Wanted<'a> = &'a dyn Fn(&str) -> bool;

impl Objects<'_> {
    pub(crate) fn commit(&mut self, id: &ObjectId) -> Result<Commit, Unread> {
        parse_commit(&self.read(id, ObjectKind::Commit)?)
    }

    fn entries(&mut self, tree: Option<ObjectId>) -> Result<Arc<Tree>, Unread> {
        let Some(tree) = tree else { return Ok(Vec::new().into()) };
        if let Some(known) = self.trees.get(&tree) {
            return Ok(Arc::clone(known));
        }
        let entries: Arc<Tree> = parse_tree(&self.read(&tree, ObjectKind::Tree)?)?.into();
        self.trees.insert(tree, Arc::clone(&entries));
        Ok(entries)
    }

    /// The paths that differ between two trees; `None` is an empty one. Directories that are not wanted are left out.
    pub(crate) fn differences(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Change>, Unread> {
        let mut changes = Vec::new();
        let mut waiting = vec![(String::new(), old, new, DEEPEST_TREE)];
        while let Some((path, old, new, deepest)) = waiting.pop() {
            if old == new {
                continue;
            }
            let left = deepest.checked_sub(1).ok_or(ODD_TREE)?;
            let (old, new) = (self.entries(old)?, self.entries(new)?);
            for (name, old, new) in pairs(&old, &new).filter(|(_, old, new)| old != new) {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
                let tree = |version: Option<Version>| {
                    version.filter(|version| version.mode == Mode::Directory).map(|version| version.id)
                };
                let file = |version: Option<Version>| version.filter(|version| version.mode != Mode::Directory);
                if (tree(old).is_some() || tree(new).is_some()) && wanted(&path) {
                    waiting.push((path.clone(), tree(old), tree(new), left));
                }
                if file(old).is_some() || file(new).is_some() {
                    changes.push(Change { path, old: file(old), new: file(new) });
                }
                if changes.len().saturating_add(waiting.len()) > MAXIMUM_NAMES {
                    return Err("more files differ than callgate looks at");
                }
            }
        }
        Ok(changes)
    }

    /// What a tree has at a path.
    pub(crate) fn at_path(&mut self, tree: ObjectId, path: &str) -> Result<Option<Version>, Unread> {
        let mut found = Version { mode: Mode::Directory, id: tree };
        for name in path.split('/') {
            if found.mode != Mode::Directory {
                return Ok(None);
            }
            let entries = self.entries(Some(found.id))?;
            let place = entries.binary_search_by(|(other, _)| other.as_str().cmp(name));
            match place.ok().and_then(|place| entries.get(place)) {
                Some((_, version)) => found = *version,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// The commits that can be reached from these, themselves included, down to so many steps. Commits in `roots` have no parents
    /// here, as in a shallow clone.
    pub(crate) fn ancestors(
        &mut self,
        tips: &[ObjectId],
        steps: Option<usize>,
        roots: &HashSet<ObjectId>,
    ) -> Result<Vec<(ObjectId, Commit)>, Unread> {
        let mut seen: HashSet<ObjectId> = tips.iter().copied().collect();
        let mut found = Vec::new();
        let mut level: Vec<ObjectId> = seen.iter().copied().collect();
        let mut steps = steps.unwrap_or(usize::MAX);
        while !level.is_empty() && steps > 0 {
            steps = steps.saturating_sub(1);
            let mut next = Vec::new();
            for id in level {
                let mut commit = self.commit(&id)?;
                if roots.contains(&id) {
                    commit.parents.clear();
                }
                next.extend(commit.parents.iter().filter(|parent| seen.insert(**parent)));
                found.push((id, commit));
            }
            level = next;
        }
        Ok(found)
    }
}
