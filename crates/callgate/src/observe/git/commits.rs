//! Commits and trees: which names a version has, and which differ between two versions.

use std::collections::{BTreeMap, HashSet};

use super::objects::{ObjectId, ObjectKind, Objects, Unread, parse_id};

const ODD_TREE: Unread = "a directory of the repository has entries that callgate does not understand";
const ODD_COMMIT: Unread = "a commit of the repository is in a form that callgate does not read";
/// The most names that are told apart, and how deeply they may be nested.
const MAXIMUM_NAMES: usize = 100_000;
const DEEPEST_TREE: usize = 128;

/// What a name in a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Directory,
    File,
    Executable,
    Link,
    /// A commit of another repository.
    Submodule,
}

/// A version of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub mode: Mode,
    pub id: ObjectId,
}

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
pub(crate) fn parse_tree(bytes: &[u8]) -> Result<BTreeMap<String, Version>, Unread> {
    let mut entries = BTreeMap::new();
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
        if is_odd || entries.insert(name.to_owned(), Version { mode, id: *id }).is_some() {
            return Err(ODD_TREE);
        }
    }
    Ok(entries)
}

/// Whether anything at or below a path can matter.
pub(crate) type Wanted<'a> = &'a dyn Fn(&str) -> bool;

impl Objects<'_> {
    pub(crate) fn commit(&mut self, id: &ObjectId) -> Result<Commit, Unread> {
        parse_commit(&self.read(id, ObjectKind::Commit)?)
    }

    fn entries(&mut self, tree: Option<ObjectId>) -> Result<BTreeMap<String, Version>, Unread> {
        match tree {
            Some(tree) => parse_tree(&self.read(&tree, ObjectKind::Tree)?),
            None => Ok(BTreeMap::new()),
        }
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
            let (old, mut new) = (self.entries(old)?, self.entries(new)?);
            let pairs: Vec<_> = old.into_iter().map(|(name, old)| (new.remove(&name), name, Some(old))).collect();
            let added = new.into_iter().map(|(name, new)| (Some(new), name, None));
            for (new, name, old) in pairs.into_iter().chain(added).filter(|(new, _, old)| new != old) {
                let path = if path.is_empty() { name } else { format!("{path}/{name}") };
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
            match self.entries(Some(found.id))?.get(name) {
                Some(entry) => found = *entry,
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
