//! Builds the fence of a contained call from the policy, the boundary and what the call does.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use callgate_model::call::Call;
use callgate_model::decision::Decision;
use callgate_model::effect::{Action, Mark};
use callgate_model::fence::{Fence, Globs, SharedPath};
use callgate_model::glob::escape;
use callgate_model::place::{Rest, Zone};
use callgate_model::word::Word;
use callgate_policy::{FenceGlobs, Root};

use super::repositories::outside;
use super::{Assessment, Assessor};
use crate::path::file_system::{FileSystem, PathEntry};
use crate::path::resolve::resolve;

impl Assessor {
    /// What a contained call may reach; `None` if the call may run anywhere.
    pub fn fence(&self, call: &Call, assessment: &Assessment) -> Option<Fence> {
        assessment.is_contained().then(|| self.fence_of(call, assessment))
    }

    /// The globs of the policy that fences are made of.
    pub(super) fn fence_globs(&self, call: &Call) -> Option<FenceGlobs> {
        let home = self.host.home.as_deref().and_then(|home| resolve(self.file_system.as_ref(), home).ok());
        Some(self.policy()?.fence_globs(home.as_deref(), call.origin.project()))
    }

    pub(crate) fn fence_of(&self, call: &Call, assessment: &Assessment) -> Fence {
        let file_system = self.file_system.as_ref();
        let resolved = |path: &Path| resolve(file_system, path).ok();
        let home = self.host.home.as_deref().and_then(resolved);
        let workspace = call.origin.project().and_then(resolved);
        let FenceGlobs { secrets, runs_outside, toolchains, caches, own } = self.fence_globs(call).unwrap_or_default();
        let boundary = self.resolved_boundary(&call.origin);
        let temporary: Vec<PathBuf> = self.host.temporary.iter().filter_map(|directory| resolved(directory)).collect();
        let areas = boundary.fence_areas(file_system);

        let mut hidden = secrets;
        for excluded in areas.excluded {
            let Some(excluded) = excluded.to_str().map(escape) else { continue };
            hidden.push(&[&excluded]);
            hidden.push(&[&excluded, "/**"]);
        }
        let roots =
            areas.roots.into_iter().filter(|root| Some(root) == workspace.as_ref() || !temporary.contains(root));
        let mut names = KnownNames::new(file_system, home.as_deref());
        let mut listed = |globs: &Globs| {
            let directory = |glob: &str| Root::of_call(glob).directories(None, &self.host);
            let paths = globs.iter().flat_map(directory).filter(|(_, excluded)| !excluded);
            let there = paths.filter(|(path, _)| names.may_exist(path));
            there.filter_map(|(path, _)| resolved(&path)).collect::<Vec<_>>()
        };
        let git = assessment.description.parts.iter().any(|part| is_git(&part.words));
        let mut roots: Vec<PathBuf> = roots.collect();
        let repository = workspace.as_deref().and_then(|workspace| outside(workspace, &roots, file_system));
        let (repository, changed) = repository.map(|found| (found.directory, found.changed)).unzip();
        if git {
            roots.extend(changed.unwrap_or_default());
        }
        let readable = areas.readable.into_iter().chain(listed(&toolchains)).chain(repository);
        Fence {
            roots: existing(roots, file_system),
            readable: existing(readable, file_system),
            caches: without_repeats(listed(&caches)),
            shared: shared(assessment, &temporary, workspace.as_deref()),
            hidden,
            protected: runs_outside,
            allowed: Vec::new(),
            own,
            git,
            network: assessment.judgement.terms.network.clone(),
            limits: assessment.judgement.terms.limits,
            required: assessment.required().iter().collect(),
            home,
            workspace,
        }
    }
}

fn existing(paths: impl IntoIterator<Item = PathBuf>, file_system: &dyn FileSystem) -> Vec<PathBuf> {
    let exists = |path: &PathBuf| matches!(file_system.look(path), PathEntry::Directory | PathEntry::Other);
    without_repeats(paths.into_iter().filter(exists).collect())
}

/// The paths in their order, each once.
fn without_repeats(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    paths.into_iter().filter(|path| seen.insert(path.clone())).collect()
}

/// Which paths do not exist, told by the names in their directories. Sets name hundreds of paths in a few directories, and most of
/// them do not exist.
struct KnownNames<'a> {
    file_system: &'a dyn FileSystem,
    /// The names in each directory, if they are known, by the text of its path.
    directories: HashMap<OsString, Option<HashSet<OsString>>>,
}

impl<'a> KnownNames<'a> {
    /// Directories with more names are not listed.
    const MOST: usize = 2_000;

    fn new(file_system: &'a dyn FileSystem, home: Option<&Path>) -> Self {
        // the home directory exists, so nobody looks above it
        let above = home.and_then(Path::parent).map(|parent| (parent.as_os_str().to_owned(), None));
        KnownNames { file_system, directories: above.into_iter().collect() }
    }

    fn may_exist(&mut self, path: &Path) -> bool {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return true };
        if let Some(names) = self.directories.get(directory.as_os_str()) {
            return names.as_ref().is_none_or(|names| names.contains(name));
        }
        let exists = self.may_exist(directory);
        let listed = || Some(self.file_system.names(directory, Self::MOST)?.into_iter().collect());
        let names: Option<HashSet<OsString>> = if exists { listed() } else { Some(HashSet::new()) };
        let may_exist = names.as_ref().is_none_or(|names| names.contains(name));
        self.directories.insert(directory.as_os_str().to_owned(), names);
        may_exist
    }
}

/// Whether a simple command is the system's git: a program of the same name in the project is not.
fn is_git(words: &[Word]) -> bool {
    matches!(words.first(), Some(Word::Known(program)) if ["git", "/usr/bin/git", "/bin/git"].contains(&program.as_str()))
}

/// The files in the temporary directories that the call names and may use: a contained call has temporary directories of its own.
fn shared(assessment: &Assessment, temporary: &[PathBuf], workspace: Option<&Path>) -> Vec<SharedPath> {
    let mut all: Vec<SharedPath> = Vec::new();
    for (part, effects) in assessment.description.parts.iter().enumerate() {
        for (effect, placed) in effects.effects.iter().enumerate() {
            let Some(place) = placed.place.as_ref().filter(|place| place.zone == Zone::Root) else { continue };
            let writable = match placed.effect.action {
                Action::List | Action::Read | Action::Run => false,
                Action::Write | Action::Delete => true,
                _ => continue,
            };
            let path = &place.resolved;
            let inside = |directory: &PathBuf| path.starts_with(directory) && path != directory;
            let named = place.rest == Rest::Nothing && temporary.iter().any(inside);
            let allowed = || assessment.ruling_of(part, effect).is_some_and(|ruling| ruling.decision < Decision::Deny);
            if !named || workspace.is_some_and(|workspace| path.starts_with(workspace)) || !allowed() {
                continue;
            }
            let redirected = writable && placed.effect.marks.contains(&Mark::Redirection);
            match all.iter_mut().find(|known| known.path == *path) {
                Some(known) => {
                    known.writable |= writable;
                    known.redirected |= redirected;
                }
                None => all.push(SharedPath { path: path.clone(), writable, redirected }),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PathList;
    use crate::policy::Policy;

    #[test]
    fn the_fence_follows_from_the_boundary_and_the_sets() {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = base.path().canonicalize().unwrap();
        let path = |name: &str| base.join(name);
        for directory in ["home/.cargo/bin", "home/.cargo/registry", "home/.nvm", "tmp/w/.git", "data/private", "tools"]
        {
            std::fs::create_dir_all(path(directory)).unwrap();
        }
        let text = format!(
            "extends: standard\nboundary: {{roots: [., '{0}/data', '!{0}/data/private', '@temporary', '{0}/absent'], readable: ['{0}/tools'], outside: ask}}\n\
             sets: {{secrets: ['@secrets', '!**/dummy.pem', './own']}}\n\
             rules:\n  - {{name: held, commands: ['make **', 'git **'], action: contain}}\n",
            base.display()
        );
        let mut assessor = Assessor::new(Policy::from_yaml(&text, "test").unwrap().with_home(path("home")));
        assessor.host.home = Some(path("home"));
        assessor.host.temporary = vec![path("tmp")];
        let call = |command: &str| {
            Call::new("Bash", serde_json::json!({"command": command})).directory(path("tmp/w")).shell("bash")
        };
        let fence = |command: &str| {
            let call = call(command);
            assessor.fence(&call, &assessor.assess(&call).unwrap())
        };
        assert_eq!(fence("ls"), None);

        let made = fence(&format!("make all > {0}/tmp/x/log < {0}/tmp/x/in", base.display())).unwrap();
        assert_eq!(made.roots, [path("tmp/w"), path("data")], "no temporary directory and nothing that does not exist");
        assert_eq!(made.home, Some(path("home")));
        assert_eq!(made.workspace, Some(path("tmp/w")));
        for readable in ["tools", "home/.cargo/bin", "home/.nvm"] {
            assert!(made.readable.contains(&path(readable)), "{readable} {:?}", made.readable);
        }
        assert!(!made.readable.contains(&path("home/.pyenv")) && made.caches.contains(&path("home/.cargo/registry")));
        assert!(!made.git && fence("git commit -m x").unwrap().git);
        assert!(
            !fence("git(){ ./x; }; make ./git").unwrap().git && !fence("make; ./git x").is_some_and(|fence| fence.git)
        );
        let shared = [("tmp/x/log", true), ("tmp/x/in", false)];
        assert_eq!(made.shared.len(), 2);
        for (name, writable) in shared {
            let expected = SharedPath { path: path(name), writable, redirected: writable };
            assert!(made.shared.contains(&expected), "{:?}", made.shared);
        }

        let (hidden, protected) = (PathList::new(made.hidden.iter(), None), PathList::new(made.protected.iter(), None));
        for (list, name, expected) in [
            (&hidden, "home/.ssh/id", true),
            (&hidden, "home/.ssh/id.pub", false),
            (&hidden, "tmp/w/a/.env", true),
            (&hidden, "tmp/w/a/.env.example", false),
            (&hidden, "tmp/w/own", true),
            (&hidden, "tmp/w/server.pem", true),
            (&hidden, "tmp/w/dummy.pem", false),
            (&hidden, "data/private/x", true),
            (&hidden, "data/x", false),
            (&protected, "home/.config/fish/config.fish", true),
            (&protected, "tmp/w/.git", true),
            (&protected, "tmp/w/.git/hooks/pre-commit", true),
            (&protected, "tmp/w/.GIT/hooks/pre-commit", true),
            (&protected, "tmp/w/.git/index", false),
            (&protected, "tmp/w/.git/refs/heads/main", false),
            (&protected, "tmp/w/.git/HEAD", false),
            (&protected, "tmp/w/.git/objects/info/alternates", true),
            (&protected, "tmp/w/.git/modules/a/b/config", true),
            (&protected, "tmp/w/sub/.git/config", true),
            (&protected, "tmp/w/bare/HEAD", true),
            (&protected, "tmp/w/.git/rebase-merge/git-rebase-todo", true),
            (&protected, "tmp/w/.bashrc", true),
            (&protected, "tmp/w/.envrc", true),
            (&protected, "tmp/w/a/.claude/skills/x.md", true),
            (&protected, "tmp/w/.claude", true),
            (&protected, "tmp/w/callgate.yaml", true),
            (&protected, "tmp/w/.github/workflows/ci.yml", true),
            (&protected, "tmp/w/node_modules/x/.github/workflows/ci.yml", false),
            (&protected, "tmp/w/node_modules/x/.git/hooks/pre-commit", true),
            (&protected, "tmp/w/node_modules/.bin/x", false),
            (&protected, "tmp/w/Makefile", false),
            (&protected, "tmp/w/package.json", false),
            (&protected, "tmp/w/conftest.py", false),
            (&protected, "tmp/w/settings.json", false),
            (&protected, "tmp/w/.venv/bin/python", false),
        ] {
            assert_eq!(list.matches(&path(name)), expected, "{name}");
        }
        assert!(
            protected.is_component(b".github") && protected.is_component(b".VSCode") && !protected.is_component(b"src")
        );
        assert!(protected.holds(&path("tmp/w/x/.vscode")) && !protected.holds(&path("tmp/w/src")));
        assert!(protected.holds(&path("home/.config/systemd")));
        assert!(protected.is_exempt(&path("tmp/w/node_modules/x")) && !protected.is_exempt(&path("tmp/w/x")));
    }

    #[test]
    fn a_policy_without_files_has_the_bundled_sets() {
        let policy = Policy::from(crate::policy::PermissionPolicy::default());
        let globs = policy.fence_globs(Some(Path::new("/home/me")), None);
        assert!(globs.secrets.iter().any(|glob| glob == "/home/me/.ssh/**") && globs.runs_outside.iter().count() > 1);
    }
}
