//! A repository that names programs, and a real git in it: what `examine` lets pass runs none of them once `harden`ed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use callgate::git::{GitExamination, GitReach, GitRun, examine, harden, subcommand};

/// Settings that name a program. `diff=d merge=d filter=f` stands in the repository's attributes.
const SETTINGS: &[&str] = &[
    "core.fsmonitor",
    "core.hooksPath",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.alternateRefsCommand",
    "core.gitProxy",
    "credential.helper",
    "diff.external",
    "diff.d.command",
    "diff.d.textconv",
    "difftool.d.cmd",
    "filter.f.clean",
    "filter.f.process",
    "gpg.program",
    "gc.recentObjectsHook",
    "interactive.diffFilter",
    "lfs.extension.x.clean",
    "merge.d.driver",
    "mergetool.d.cmd",
    "pager.log",
    "pager.status",
    "remote.origin.uploadpack",
    "sequence.editor",
    "trailer.t.command",
];

/// Commands that only look.
const LOOKS: &[&str] = &[
    "status",
    "status -vv",
    "status --porcelain=2 --ignored",
    "diff",
    "diff HEAD",
    "diff --submodule=log",
    "diff --cached",
    "diff-files -p",
    "diff-index -p HEAD",
    "diff-tree -p HEAD",
    "log -p",
    "log -p --remerge-diff --all",
    "log -L1,2:a",
    "show",
    "show HEAD:a",
    "whatchanged -p",
    "blame a",
    "annotate a",
    "blame -C -C a",
    "range-diff HEAD~1..HEAD HEAD~1..other",
    "merge-tree HEAD other",
    "stash list -p",
    "stash show -p",
    "reflog -p",
    "reflog show -p",
    "grep 1",
    "grep --recurse-submodules 1",
    "ls-files --recurse-submodules",
    "ls-files -m",
    "describe --always --dirty",
    "cat-file -p HEAD:a",
    "shortlog -s HEAD",
    "cherry HEAD other",
    "format-patch --stdout HEAD~1",
    "archive HEAD",
    "fsck",
    "rev-parse HEAD",
    "submodule status",
    "submodule summary",
    "add -n .",
];

/// Commands that change the index and no more.
const CHANGES: &[&str] =
    &["add .", "rm -rn .", "mv b c", "tag -a -m x y", "branch z", "stash", "gc -q", "fetch --dry-run"];

struct Scene {
    folder: tempfile::TempDir,
    run: GitRun,
}

impl Scene {
    /// A repository `work` with a branch `other`, something put aside, a change in the work tree, and a submodule `sub`.
    fn new() -> Scene {
        let scene = Scene { folder: tempfile::tempdir().expect("a directory"), run: GitRun::Hardened };
        for name in ["library", "work"] {
            let root = scene.path(name);
            std::fs::create_dir(&root).expect("a directory");
            scene.git(&root, "init -q");
            scene.git(&root, "config user.name a");
            scene.git(&root, "config user.email a@example.com");
            write(&root.join(".gitattributes"), "* diff=d merge=d filter=f\n");
            write(&root.join("a"), "1\n2\n");
            write(&root.join("b"), "1\n");
            scene.git(&root, "add .");
            scene.git(&root, "commit -qm one");
        }
        let work = scene.path("work");
        scene.git(&work, "-c protocol.file.allow=always submodule --quiet add ../library sub");
        scene.git(&work, "commit -qm two");
        scene.git(&work, "checkout -qb other");
        write(&work.join("a"), "1\n2\nother\n");
        scene.git(&work, "commit -qam three");
        scene.git(&work, "checkout -q -");
        write(&work.join("a"), "1\n2\nmine\n");
        scene.git(&work, "commit -qam four");
        write(&work.join("a"), "1\n2\naside\n");
        scene.git(&work, "stash -q");
        let evil = scene.path("evil");
        write(&evil, &format!("#!/bin/sh\necho run >> {}\n", scene.path("marker").display()));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&evil, mode).expect("it can be made executable");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, directory: &Path, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn git(&self, directory: &Path, arguments: &str) {
        let status = self.command(directory, &words(arguments)).status().expect("git starts");
        assert!(status.success(), "git {arguments}");
    }

    /// Names the program in a setting of the repository in that directory.
    fn set(&self, directory: &Path, setting: &str) {
        self.git(directory, &format!("config {setting} {}", self.path("evil").display()));
    }

    fn unset(&self, directory: &Path, setting: &str) {
        self.git(directory, &format!("config --unset {setting}"));
    }

    fn findings(&self, reach: GitReach) -> Vec<String> {
        examine(&self.path("work"), GitExamination { reach, run: self.run, subcommand: None }, &|path, limit| {
            match std::fs::read(path) {
                Ok(bytes) if bytes.len() > limit => Err(std::io::ErrorKind::FileTooLarge.into()),
                Ok(bytes) => Ok(Some(bytes)),
                Err(error)
                    if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
                {
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Whether the command makes git run the program that the repository names.
    fn runs_it(&self, words: &[String]) -> bool {
        // Files that may have changed, since they are as long as before, are read again, and so filtered.
        let count = self.counter();
        write(&self.path("work/a"), &format!("{count:08}\n"));
        write(&self.path("work/sub/a"), &format!("{count:03}\n"));
        let marker = self.path("marker");
        let _ = std::fs::remove_file(&marker);
        self.command(&self.path("work"), words).status().expect("git starts");
        marker.exists()
    }

    fn counter(&self) -> usize {
        let counter = self.path("counter");
        let text = std::fs::read_to_string(&counter).unwrap_or_default();
        write(&counter, &format!("{text}."));
        text.len()
    }

    /// Sets all settings that `examine` lets pass, and says which ones it does not.
    fn set_what_passes(&self, directory: &Path, reach: GitReach) -> Vec<&'static str> {
        assert_eq!(self.findings(reach), Vec::<String>::new(), "an ordinary repository with a submodule");
        let (mut passing, mut found) = (Vec::new(), Vec::new());
        for setting in SETTINGS {
            self.set(directory, setting);
            if self.findings(reach).is_empty() { &mut passing } else { &mut found }.push(*setting);
            self.unset(directory, setting);
        }
        for setting in passing {
            self.set(directory, setting);
        }
        assert_eq!(self.findings(reach), Vec::<String>::new());
        found
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("it can be written");
}

fn words(arguments: &str) -> Vec<String> {
    std::iter::once("git").chain(arguments.split(' ')).map(str::to_owned).collect()
}

fn hardened(arguments: &str) -> Vec<String> {
    let words = words(arguments);
    harden(&words, subcommand(&words).expect("a subcommand"))
}

#[test]
fn a_hardened_look_runs_nothing_that_the_repository_names() {
    let scene = Scene::new();
    let found = scene.set_what_passes(&scene.path("work"), GitReach::Looks);
    for setting in ["filter.f.clean", "diff.d.textconv", "diff.d.command", "merge.d.driver"] {
        assert!(found.contains(&setting), "{setting}");
    }
    assert!(scene.runs_it(&words("status")), "without hardening the program is run, or this test shows nothing");
    for look in LOOKS {
        assert!(!scene.runs_it(&hardened(look)), "git {look}");
    }
}

#[test]
fn a_hardened_change_runs_nothing_that_the_repository_names() {
    let scene = Scene::new();
    let found = scene.set_what_passes(&scene.path("work"), GitReach::More);
    for setting in
        ["core.editor", "core.sshCommand", "credential.helper", "remote.origin.uploadpack", "mergetool.d.cmd"]
    {
        assert!(found.contains(&setting), "{setting}");
    }
    for change in CHANGES {
        assert!(!scene.runs_it(&hardened(change)), "git {change}");
    }
}

#[test]
fn git_enters_submodules_and_what_they_name_is_found() {
    let scene = Scene::new();
    let submodule = scene.path("work/sub");
    for (setting, command) in [("filter.f.clean", "status"), ("filter.f.clean", "diff"), ("filter.f.clean", "add -n .")]
    {
        scene.set(&submodule, setting);
        assert!(scene.runs_it(&hardened(command)), "git {command} does not run {setting} of a submodule any more");
        assert_eq!(scene.findings(GitReach::Looks).len(), 1, "{setting}");
        scene.unset(&submodule, setting);
    }
}

#[test]
fn a_submodule_without_findings_runs_nothing() {
    let scene = Scene::new();
    scene.set_what_passes(&scene.path("work/sub"), GitReach::Looks);
    for command in LOOKS {
        assert!(!scene.runs_it(&hardened(command)), "git {command}");
    }
    let scene = Scene::new();
    scene.set_what_passes(&scene.path("work/sub"), GitReach::More);
    for command in CHANGES {
        assert!(!scene.runs_it(&hardened(command)), "git {command}");
    }
}

#[test]
fn a_look_that_nobody_hardens_runs_nothing_if_there_are_no_findings() {
    for place in ["work", "work/sub"] {
        let scene = Scene { run: GitRun::AsWritten, ..Scene::new() };
        let found = scene.set_what_passes(&scene.path(place), GitReach::Looks);
        for setting in ["core.fsmonitor", "core.hooksPath", "diff.external"] {
            assert!(found.contains(&setting), "{setting}");
        }
        for look in LOOKS {
            assert!(!scene.runs_it(&words(look)), "git {look} in {place}");
        }
        let hook = scene.path("work/.git/hooks/post-index-change");
        std::fs::create_dir_all(hook.parent().expect("a directory")).expect("it can be made");
        std::fs::copy(scene.path("evil"), &hook).expect("it can be copied");
        // a file that is the same and looks newer makes git write the index
        write(&scene.path("work/b"), "1\n");
        assert!(scene.runs_it(&words("status")), "the hook runs, or this test shows nothing");
        assert_eq!(scene.findings(GitReach::Looks).len(), 1);
    }
}

#[test]
fn every_version_of_the_index_is_read() {
    let scene = Scene::new();
    scene.set(&scene.path("work/sub"), "filter.f.clean");
    for version in ["2", "3", "4"] {
        scene.git(&scene.path("work"), &format!("update-index --index-version {version}"));
        assert_eq!(scene.findings(GitReach::Looks).len(), 1, "version {version}");
    }
    scene.git(&scene.path("work"), "update-index --split-index");
    assert!(scene.findings(GitReach::Looks).iter().any(|finding| finding.contains("index cannot be read")));
}
