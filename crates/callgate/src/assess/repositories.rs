//! The repository of a worktree or submodule that lies outside the roots: `.git` is a file there, which names it.
//!
//! That file is the workspace's own, so it proves nothing. The repository must name the workspace, too: git writes there which
//! worktrees and which submodule belong to it.

use std::path::{Path, PathBuf};

use crate::path::file_system::{FileSystem, PathEntry};
use crate::path::resolve::resolve;

/// The longest file that is read here.
const LONGEST: usize = 64 << 10;

/// What a commit writes outside the directory of its worktree.
const SHARED: &[&str] = &["objects", "refs", "logs"];

/// What of a repository outside a call in its worktree reaches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// The repository.
    pub directory: PathBuf,
    /// What git changes when it works in this worktree.
    pub changed: Vec<PathBuf>,
}

/// The repository outside that a workspace belongs to.
pub(super) fn outside(workspace: &Path, roots: &[PathBuf], file_system: &dyn FileSystem) -> Option<Repository> {
    let read = |path: &Path| {
        let text = file_system.read(path, LONGEST).ok()??;
        String::from_utf8(text).ok().filter(|text| text.len() < LONGEST)
    };
    let link = workspace.join(".git");
    if file_system.look(&link) != PathEntry::Other {
        return None;
    }
    let folder = read(&link)?.strip_prefix("gitdir:")?.trim().to_owned();
    let folder = resolve(file_system, &workspace.join(folder)).ok()?;
    // Under another name the sets do not protect its settings and hooks.
    let is_named = folder.components().any(|part| part.as_os_str() == ".git");
    if !is_named || roots.iter().any(|root| folder.starts_with(root)) {
        return None;
    }
    let leads_to =
        |text: &str, from: &Path, to: &Path| resolve(file_system, &from.join(text.trim())).is_ok_and(|end| end == to);
    match read(&folder.join("commondir")) {
        Some(common) => {
            let common = resolve(file_system, &folder.join(common.trim())).ok()?;
            let is_own = folder.parent() == Some(&common.join("worktrees"))
                && common.file_name().is_some_and(|name| name == ".git")
                && leads_to(&read(&folder.join("gitdir"))?, &folder, &link);
            let shared = SHARED.iter().map(|name| common.join(name));
            let changed = shared.chain([folder]).collect();
            is_own.then_some(Repository { directory: common, changed })
        }
        None => {
            let settings = read(&folder.join("config"))?;
            let worktrees = settings.lines().filter_map(|line| line.trim().strip_prefix("worktree"));
            let mut worktrees = worktrees.filter_map(|rest| rest.trim_start().strip_prefix('='));
            let is_own = worktrees.next().is_some_and(|worktree| leads_to(worktree, &folder, workspace));
            is_own.then(|| Repository { changed: vec![folder.clone()], directory: folder })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::file_system::fake::Fake;

    fn found(files: &Fake) -> Option<Repository> {
        outside(Path::new("/w"), &["/w".into()], files)
    }

    #[test]
    fn a_worktree_belongs_to_the_repository_that_names_it() {
        let tree = "/m/.git/worktrees/w";
        let files = |back: &str, common: &str| {
            let files = Fake::new().contents("/w/.git", &format!("gitdir: {tree}\n"));
            files.contents(&format!("{tree}/gitdir"), back).contents(&format!("{tree}/commondir"), common)
        };
        let changed = ["/m/.git/objects", "/m/.git/refs", "/m/.git/logs", tree].map(PathBuf::from).to_vec();
        let expected = Some(Repository { directory: "/m/.git".into(), changed });
        assert_eq!(found(&files("/w/.git\n", "../..\n")), expected);
        // another worktree, and a repository that is not around its directory
        assert_eq!(found(&files("/other/.git\n", "../..\n")), None);
        assert_eq!(found(&files("/w/.git\n", "/x/.git\n")), None);
    }

    #[test]
    fn a_submodule_belongs_to_the_repository_that_names_it() {
        let files = |worktree: &str| {
            let files = Fake::new().contents("/w/.git", "gitdir: ../m/.git/modules/w\n");
            files.contents("/m/.git/modules/w/config", &format!("[core]\n\tbare = false\n\tworktree = {worktree}\n"))
        };
        let directory = PathBuf::from("/m/.git/modules/w");
        let expected = Some(Repository { changed: vec![directory.clone()], directory });
        assert_eq!(found(&files("../../../../w")), expected);
        assert_eq!(found(&files("../../../../x")), None);
        assert_eq!(found(&Fake::new().contents("/w/.git", "gitdir: /m/.git\n").contents("/m/.git/config", "")), None);
        assert_eq!(found(&Fake::new().directory("/w/.git")), None);
    }
}
