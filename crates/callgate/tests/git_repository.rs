//! Real repositories: a commit or a new branch is silent where nothing of the repository runs, and so is deleting what git has.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate};

fn git(directory: &Path, words: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(directory).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
    assert!(git.output().expect("git").status.success(), "{words:?}");
}

struct Repository {
    _directory: tempfile::TempDir,
    project: PathBuf,
}

impl Repository {
    fn path(&self) -> &Path {
        &self.project
    }
}

fn repository() -> Repository {
    let directory = tempfile::tempdir().expect("a directory");
    let project = directory.path().join("project");
    std::fs::create_dir(&project).expect("a directory");
    std::fs::write(project.join("a.txt"), "a\n").expect("a file");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    Repository { _directory: directory, project }
}

fn decide(directory: &Path, command: &str) -> Decision {
    let gate = Gate::builder().policy(Policy::bundled("standard").expect("a policy")).build();
    let call = Call::new("Bash", serde_json::json!({ "command": command }))
        .directory(directory)
        .workspace(directory)
        .shell("bash");
    gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
}

const SILENT: [&str; 5] = [
    "git commit -m 'fix: an empty list'",
    "git commit -am wip",
    "git checkout -b feature",
    "git switch -c feature",
    "git add a.txt && git commit -qm x",
];

#[test]
fn without_hooks_it_is_silent() {
    let repository = repository();
    for command in SILENT {
        assert_eq!(decide(repository.path(), command), Decision::Allow, "{command}");
    }
}

#[test]
fn every_hook_that_may_run_is_a_question() {
    for hook in
        ["pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "reference-transaction", "post-checkout"]
    {
        let repository = repository();
        let path = repository.path().join(".git/hooks").join(hook);
        std::fs::write(&path, "#!/bin/sh\n").expect("a hook");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its rights");
        for command in SILENT {
            assert_eq!(decide(repository.path(), command), Decision::Ask, "{hook}: {command}");
        }
    }
}

#[test]
fn every_setting_that_runs_something_is_a_question() {
    for (key, value) in [
        ("core.hooksPath", "hooks"),
        ("core.fsmonitor", "./x"),
        ("commit.gpgSign", "true"),
        ("gpg.program", "./x"),
        ("filter.x.clean", "./x"),
        ("core.editor", "./x"),
        ("gc.recentObjectsHook", "./x"),
    ] {
        let repository = repository();
        git(repository.path(), &["config", key, value]);
        for command in ["git commit -m x", "git checkout -b feature"] {
            assert_eq!(decide(repository.path(), command), Decision::Ask, "{key}: {command}");
        }
    }
}

#[test]
fn a_call_that_sets_up_a_hook_first_is_a_question() {
    let repository = repository();
    for command in
        ["cp a.txt .git/hooks/pre-commit && git commit -m x", "git config core.hooksPath . && git commit -m x"]
    {
        assert_eq!(decide(repository.path(), command), Decision::Ask, "{command}");
    }
    assert_eq!(decide(repository.path(), "git config user.email dev@example.com"), Decision::Allow);
    assert_eq!(decide(repository.path(), "git config core.editor ./x"), Decision::Ask);
}

#[test]
fn a_call_that_adds_a_repository_to_the_index_is_a_question() {
    let repository = repository();
    let nested = repository.path().join("deep/nested");
    std::fs::create_dir_all(&nested).expect("a directory");
    std::fs::write(nested.join("b.txt"), "b\n").expect("a file");
    let calls =
        ["git add deep/nested && git status", "git add -A && git diff --cached", "git add . && git commit -m x"];
    for command in calls {
        assert_eq!(decide(repository.path(), command), Decision::Allow, "{command}");
    }
    git(&nested, &["init", "-q", "-b", "main"]);
    git(&nested, &["add", "-A"]);
    git(&nested, &["commit", "-qm", "first"]);
    // an ordinary repository runs nothing, wherever it lies
    for command in calls {
        assert_eq!(decide(repository.path(), command), Decision::Allow, "{command}");
    }
    git(&nested, &["config", "core.fsmonitor", "./x"]);
    for command in calls {
        assert_eq!(decide(repository.path(), command), Decision::Ask, "{command}");
    }
    assert_eq!(decide(repository.path(), "git status && git log"), Decision::Allow);
    std::fs::write(repository.path().join(".gitignore"), "deep/\n").expect("a file");
    assert_eq!(decide(repository.path(), "git add . && git status"), Decision::Allow);
    assert_eq!(decide(repository.path(), "git add -Af . && git status"), Decision::Ask);
    assert_eq!(decide(repository.path(), "git add --force deep/nested && git status"), Decision::Ask);
}

#[test]
fn a_false_repository_does_not_hide_the_one_above() {
    let repository = repository();
    git(repository.path(), &["config", "core.fsmonitor", "./x"]);
    let folder = repository.path().join("sub/.git");
    std::fs::create_dir_all(&folder).expect("a directory");
    for file in ["HEAD", "config"] {
        let text = if file == "HEAD" { "ref: refs/heads/main\n" } else { "" };
        std::fs::write(folder.join(file), text).expect("a file");
        assert_eq!(decide(repository.path(), "git -C sub status"), Decision::Ask, "{file}");
    }
    for name in ["objects", "refs"] {
        assert_eq!(decide(repository.path(), "git -C sub status"), Decision::Ask, "{name}");
        std::fs::create_dir(folder.join(name)).expect("a directory");
    }
    assert_eq!(decide(repository.path(), "git -C sub status"), Decision::Allow);
}

/// Makes git look at the files once more, after its last look was too close to their last change.
fn settle(repository: &Path) {
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    git(repository, &["update-index", "-q", "--refresh"]);
    git(repository, &["update-index", "--force-write-index"]);
}

#[test]
fn deleting_what_git_has_is_silent() {
    let repository = repository();
    let file = |name: &str, text: &str| std::fs::write(repository.path().join(name), text).expect("a file");
    for name in ["b.txt", "hidden.txt", "changed.txt", "filtered.bin", "Makefile"] {
        file(name, name);
    }
    file(".gitattributes", "*.bin filter=x\n");
    std::fs::create_dir(repository.path().join("docs")).expect("a directory");
    file("docs/c.md", "c");
    git(repository.path(), &["add", "-A"]);
    git(repository.path(), &["commit", "-qm", "second"]);
    git(repository.path(), &["update-index", "--assume-unchanged", "hidden.txt"]);
    file("changed.txt", "otherwise");
    file("new.txt", "new");
    // a filter anywhere in a file of attributes leaves everything in its directory unproven
    assert_eq!(decide(repository.path(), "rm a.txt"), Decision::Ask);
    std::fs::remove_file(repository.path().join(".gitattributes")).expect("it was there");
    settle(repository.path());
    for command in [
        "rm a.txt",
        "mv b.txt d.txt",
        "rm -f docs/c.md a.txt",
        "rm filtered.bin && ls",
        "mkdir -p old && mv a.txt old/a.txt && rm docs/c.md",
        // nothing is there
        "rm none.txt",
        "mv none.txt docs/none.txt",
        "rm docs/none.txt && rm none.txt",
        // made by the call itself
        "sort a.txt > none.txt && mv none.txt b.txt",
        "jq .a b.txt > none.json; mv none.json docs/c.md",
    ] {
        assert_eq!(decide(repository.path(), command), Decision::Allow, "{command}");
    }
    for command in [
        "rm new.txt",
        "rm changed.txt",
        "rm hidden.txt",
        "rm a.txt new.txt",
        "rm -r docs",
        "rm Makefile",
        "rm *.txt",
        "rm .git/index",
        "echo x >> a.txt; rm a.txt",
        "git rm -q --cached a.txt && rm a.txt",
        "rm docs/c.md && echo '* filter=x' > .gitattributes && rm a.txt",
        "mv new.txt none.txt; rm none.txt",
        "sort a.txt > new.txt && mv new.txt b.txt",
        "sort b.txt > a.txt && rm a.txt",
        "sort a.txt > none.txt && mv none.txt Makefile",
        "sort a.txt > none.txt && mv none.txt .git/hooks/pre-commit",
        "sort a.txt > none.txt; ln -sf / none.txt; mv none.txt b.txt",
        "while sleep 1; do sort a.txt > none.txt; mv none.txt b.txt; ln -s docs none.txt; done",
        "sort a.txt > none.txt; mv docs none.txt; mv none.txt b.txt",
        "mv docs lost; rm lost/none.txt",
        "cp -r docs lost; rm lost/c.md",
        "rm none.txt new.txt",
        "rm -r none",
        "rm ~none",
        "rm '~/none'",
        "rm /var/none.txt",
        "rm .envrc",
        "mv none.txt Makefile",
        "mv none.txt .git/hooks/pre-commit",
        "shred none.txt",
        "find . -exec rm none.txt ';'",
        "make; rm none.txt",
    ] {
        assert_ne!(decide(repository.path(), command), Decision::Allow, "{command}");
    }
    // in a pack it is as safe; without its object it is gone
    git(repository.path(), &["gc", "-q"]);
    assert_eq!(decide(repository.path(), "rm a.txt"), Decision::Allow);
    std::fs::remove_dir_all(repository.path().join(".git/objects/pack")).expect("packs");
    assert_eq!(decide(repository.path(), "rm a.txt"), Decision::Ask);
}

#[test]
fn removing_what_tools_make_again_is_silent() {
    let repository = repository();
    let root = repository.path();
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    put(".gitignore", "# made\n/dist/\nnode_modules\ncoverage\n*.egg-info\ntarget\n!keep\nnotes\n!sub/target\nbuild\n");
    put("docs/.gitignore", "!dist\n!build\n");
    for made in [
        "dist/a.js",
        "dist/bin/run",
        "node_modules/.cache/x/package.json",
        "node_modules/a/index.js",
        "build/x",
        "notes/a",
    ] {
        put(made, "x");
    }
    for made in [
        "out/a",
        "docs/build/x",
        "docs/coverage/x",
        "target/a",
        "x.egg-info/PKG-INFO",
        "build-notes/a",
        "tracked/build/x",
    ] {
        put(made, "x");
    }
    git(root, &["add", "-A"]);
    git(root, &["add", "-f", "tracked/build/x"]);
    git(root, &["commit", "-qm", "rules"]);
    settle(root);
    for command in [
        "rm -rf dist",
        "rm -rf dist build",
        "rm -rf ./dist/ node_modules/.cache",
        "rm -r docs/coverage",
        "rm -rf x.egg-info",
        "cd docs && rm -rf coverage && ls",
        "rm -rf none/coverage",
        "rm -rf coverage && ls",
    ] {
        assert_eq!(decide(root, command), Decision::Allow, "{command}");
    }
    for command in [
        "rm -rf node_modules",
        "rm -rf notes",
        "rm -rf out",
        "rm -rf htmlcov",
        "rm -rf docs/dist",
        "rm -rf docs/build",
        // a path takes something back in
        "rm -rf target",
        "rm -rf tracked/build",
        "rm -rf build-notes",
        "rm -rf *dist",
        "rm -rf dist/..",
        "mv docs dist; rm -rf dist",
        "rm -rf dist; mv docs dist; rm -rf dist",
        "while sleep 1; do rm -rf dist; cp -r docs dist; done",
        "echo out > .gitignore; rm -rf dist",
        "git add -A; rm -rf dist",
        "make; rm -rf dist",
        "mv dist elsewhere",
    ] {
        assert_ne!(decide(root, command), Decision::Allow, "{command}");
    }
    let asks = |why: &str| assert_ne!(decide(root, "rm -rf dist"), Decision::Allow, "{why}");
    put("dist/.env", "KEY=1");
    asks("it holds a secret");
    std::fs::remove_file(root.join("dist/.env")).expect("it was there");
    git(root, &["init", "-q", "dist/inner"]);
    asks("it holds a repository");
    std::fs::remove_dir_all(root.join("dist/inner")).expect("it was there");
    // rm takes a link away, not what it leads to
    std::os::unix::fs::symlink("/", root.join("dist/link")).expect("a link");
    assert_eq!(decide(root, "rm -rf dist"), Decision::Allow);
    assert_ne!(decide(root, "rm -rf dist/link/"), Decision::Allow);
    git(root, &["add", "-f", "dist/a.js"]);
    asks("it holds a tracked file");
    git(root, &["rm", "-q", "--cached", "dist/a.js"]);
    settle(root);
    assert_eq!(decide(root, "rm -rf dist"), Decision::Allow);
    std::fs::rename(root.join("dist"), root.join("real")).expect("a directory");
    std::os::unix::fs::symlink("docs", root.join("dist")).expect("a link");
    asks("it is a link");
    std::fs::remove_file(root.join("dist")).expect("it was there");
    assert_eq!(decide(root, "rm -rf dist"), Decision::Allow, "it is missing");
    put(".gitignore", "dist\n");
    asks("the rules are not those that git has");
}
