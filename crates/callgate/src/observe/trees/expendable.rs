//! Finds trees whose removal loses nothing that git keeps: the committed rules ignore them.

use std::path::{Component, Path, PathBuf};

use callgate_model::effect::Selection;

use super::super::{recoverable, repository};
use super::Trees;
use crate::git::{FoundRepository, WorkTree, index};
use crate::observe::repository::revisions::Repository;
use crate::path::file_system::PathEntry;
use crate::path::pattern::may_match;

/// Larger files are not read, and nothing is proven.
const LARGEST_INDEX: usize = 16 << 20;
const LARGEST_RULES: usize = 64 << 10;
const LONGEST_GLOB: usize = 100;

impl Trees<'_> {
    /// Whether a tree in a repository, which may be missing, is ignored by rules that are committed and contains neither a tracked file
    /// nor another repository. Nothing is proven if another command of the call writes there or changes the rules.
    pub(super) fn is_expendable(&mut self, tree: &Path) -> bool {
        self.proof(tree).is_some()
    }

    fn proof(&mut self, tree: &Path) -> Option<()> {
        let file_system = self.file_system;
        let FoundRepository::Certain(found) = repository::find(tree.parent()?, file_system) else { return None };
        let root = &found.root;
        let changes = |path: &Path| path.starts_with(tree) || tree.starts_with(path);
        let is_changed = self.earlier.may_touch(tree) || self.is_written_by_others(changes);
        (!is_changed).then_some(())?;
        self.is_ignored(tree, &found).then_some(())?;
        let name = tree.strip_prefix(root).ok()?;
        let entries = index::entries(&file_system.read(&found.folder.join("index"), LARGEST_INDEX).ok()??)?;
        let tracked = entries.iter().any(|entry| Path::new(&entry.path).starts_with(name));
        let is_repository = |path: &Path| path.file_name().is_some_and(|name| name == ".git" || name == "HEAD");
        let repository = self.walk(tree, &Selection::default()).ok()?.iter().any(|entry| is_repository(&entry.path));
        (!tracked && !repository).then_some(())
    }

    /// Whether the `.gitignore` files of a repository, as it has them, leave out a tree or a directory that it lies in.
    fn is_ignored(&self, tree: &Path, found: &WorkTree) -> bool {
        let WorkTree { root, folder, common } = found;
        let Ok(mut repository) = Repository::open(self.file_system, root, folder.clone(), common.clone()) else {
            return false;
        };
        let Ok(inside) = tree.strip_prefix(root) else { return false };
        let mut folder = root.clone();
        // Names that apply in every directory below.
        let mut rules = Vec::new();
        for component in inside.components() {
            let Component::Normal(name) = component else { return false };
            let Some(name) = name.to_str() else { return false };
            let Some(found) = self.rules_in(&folder, &mut repository) else { return false };
            rules.retain(|rule: &Rule| !rule.only_here);
            rules.extend(found);
            folder.push(name);
            // What is missing would be a directory.
            let is_directory = matches!(self.file_system.look(&folder), PathEntry::Directory | PathEntry::Missing);
            let fits = |rule: &&Rule| (is_directory || !rule.only_directories) && may_match(&rule.glob, name);
            match rules.iter().rev().find(fits).map(|rule| rule.ignores) {
                Some(Some(true)) => return true,
                // What takes a name back in, or is not understood, leaves a doubt about everything below.
                Some(_) => return false,
                None => {}
            }
        }
        false
    }

    /// The rules in the `.gitignore` file of a directory; `None` if git does not have the file as it is.
    fn rules_in(&self, folder: &Path, repository: &mut Repository<'_>) -> Option<Vec<Rule>> {
        let path: PathBuf = folder.join(".gitignore");
        if self.earlier.may_touch(&path) || self.is_written_by_others(|written| path.starts_with(written)) {
            return None;
        }
        if self.file_system.look(&path) == PathEntry::Missing {
            return Some(Vec::new());
        }
        let staged = recoverable::proof(&path, self.file_system)?;
        let name = path.strip_prefix(&repository.root).ok()?.to_str()?.to_owned();
        let head = repository.head().ok()??;
        let tree = repository.tree(head).ok()?;
        let committed = repository.objects.at_path(tree, &name).ok()??;
        (committed.id[..] == staged.object[..]).then_some(())?;
        let text = String::from_utf8(self.file_system.read(&path, LARGEST_RULES).ok()??).ok()?;
        Some(
            text.lines()
                .map(|line| line.trim_end_matches(' '))
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .map(rule)
                .collect(),
        )
    }
}

/// A line of a `.gitignore` file.
struct Rule {
    glob: String,
    only_directories: bool,
    only_here: bool,
    /// Whether names that match are ignored; `None`: not known.
    ignores: Option<bool>,
}

fn rule(line: &str) -> Rule {
    let (line, takes_back) = line.strip_prefix('!').map_or((line, false), |line| (line, true));
    let body = line.strip_suffix('/').unwrap_or(line);
    let only_directories = body.len() != line.len() && !takes_back;
    let (only_here, glob) = match (body.strip_prefix("**/"), body.strip_prefix('/')) {
        (Some(glob), _) => (false, glob),
        (None, Some(glob)) => (true, glob),
        (None, None) => (false, body),
    };
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'?' | b'.' | b'_' | b'-' | b'+' | b'@');
    let is_name = |glob: &str| {
        let names_something = glob.bytes().any(|byte| !matches!(byte, b'*' | b'?' | b'.'));
        glob.len() < LONGEST_GLOB && glob.bytes().all(plain) && names_something
    };
    if is_name(glob) {
        return Rule { glob: glob.to_owned(), only_directories, only_here, ignores: Some(!takes_back) };
    }
    // A path ignores nothing for certain, and may take back what has its last name.
    let last = glob.rsplit('/').next().filter(|last| is_name(last));
    let glob = if takes_back { last.unwrap_or("*") } else { "" };
    Rule { glob: glob.to_owned(), only_directories: false, only_here: false, ignores: None }
}
