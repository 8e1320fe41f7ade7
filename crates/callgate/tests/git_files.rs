//! Real repositories: what git shows is read by name, and what it changes is written by name.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate};

struct Project {
    _directory: tempfile::TempDir,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("project");
        std::fs::create_dir(&root).expect("a directory");
        let project = Project { _directory: directory, root };
        project.git(&["init", "-q", "-b", "main"]);
        project.write("src/a.rs", "a\n");
        project.write("notes.txt", "n\n");
        project.commit("first");
        project
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(&self.root).args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
        let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn output(&self, words: &[&str]) -> String {
        let output = Command::new("git").current_dir(&self.root).args(words).output().expect("git");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.root.join(name)).expect("it was there");
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    fn decide_in(&self, directory: &Path, command: &str) -> Decision {
        let gate = Gate::builder().policy(Policy::bundled("standard").expect("a policy")).build();
        let call = Call::new("Bash", serde_json::json!({ "command": command }))
            .directory(directory)
            .workspace(&self.root)
            .shell("bash");
        gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
    }

    #[track_caller]
    fn silent(&self, commands: &[&str]) {
        for command in commands {
            assert_eq!(self.decide_in(&self.root, command), Decision::Allow, "{command}");
        }
    }

    #[track_caller]
    fn asked(&self, commands: &[&str]) {
        for command in commands {
            assert_ne!(self.decide_in(&self.root, command), Decision::Allow, "{command}");
        }
    }

    /// Puts every object into one pack, with deltas.
    fn pack(&self) {
        self.git(&["repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=50"]);
        self.git(&["prune-packed", "-q"]);
        self.git(&["pack-refs", "--all"]);
    }
}

const EVERYDAY: &[&str] = &[
    "git diff",
    "git diff HEAD",
    "git diff HEAD~1 -- src",
    "git diff --cached",
    "git diff --staged --stat",
    "git log -p",
    "git log -p -3",
    "git log -p --all",
    "git log -p -S foo -- src",
    "git log -p HEAD~1..",
    "git show",
    "git show HEAD~1",
    "git show HEAD:src/a.rs",
    "git blame src/a.rs",
    "git grep foo",
    "git grep foo HEAD -- '*.rs'",
    "git archive HEAD",
    "git format-patch --stdout -1",
    "git diff main...HEAD",
    "git stash show -p",
    "git cat-file -p HEAD",
    "git status -v",
    "git add -A && git diff --cached",
    "git commit -qam x && git show",
];

#[test]
fn without_secrets_looking_is_silent() {
    let project = Project::new();
    project.write("src/a.rs", "a\nb\n");
    project.commit("second");
    project.silent(EVERYDAY);
    project.pack();
    project.silent(EVERYDAY);
    // what is ignored is not shown
    project.write(".gitignore", ".env\n");
    project.write(".env", "TOKEN=x\n");
    project.silent(EVERYDAY);
    project.asked(&["git grep --no-index TOKEN", "git grep --no-index TOKEN '.e*'", "cat .en*"]);
}

#[test]
fn a_secret_that_git_would_take_is_read() {
    let project = Project::new();
    project.write(".env", "TOKEN=x\n");
    project.write("deep/down/id_rsa", "x\n");
    project.silent(&["git diff", "git log -p", "git grep TOKEN", "git add src", "git add notes.txt"]);
    project.asked(&[
        "git add .env",
        "git add '.e*'",
        "git add -A",
        "git add . && git diff --cached",
        "git add deep",
        "git add '*rsa'",
        "git add ':(icase).ENV'",
        "git add :/",
        "git grep --untracked TOKEN",
        "cd src && git add -A",
        "cd src && git add ..",
    ]);
    project.write(".gitignore", ".env\ndeep/\n");
    project.silent(&["git add -A", "git add . && git diff --cached"]);
}

#[test]
fn a_staged_secret_is_shown_by_what_shows_the_index() {
    let project = Project::new();
    project.write(".env", "TOKEN=x\n");
    project.git(&["add", "-f", ".env"]);
    project.asked(&[
        "git diff --cached",
        "git diff HEAD",
        "git diff --cached -- ':(glob)**/.e*'",
        "git grep TOKEN",
        "git grep TOKEN -- '.e*'",
        "git grep --cached TOKEN",
        "git status -v",
        "git commit --dry-run -v",
        "git show :.env",
        "git show :0:.env",
        "git commit -qm x && git show",
        "git stash show -p; git diff --cached",
    ]);
    let blob = project.output(&["rev-parse", ":.env"]);
    project.asked(&[
        &format!("git show {blob}"),
        &format!("git cat-file -p {blob}"),
        &format!("git cat-file blob {blob}"),
    ]);
    project.silent(&[
        "git diff --cached -- src",
        "git diff --cached --stat",
        "git diff --cached -- ':!.env'",
        "git log -p",
    ]);
}

#[test]
fn a_tracked_secret_is_shown_only_where_it_differs() {
    let project = Project::new();
    project.write(".npmrc", "registry=https://example.com\n");
    project.commit("registry");
    project.write("src/a.rs", "a\nb\n");
    project.commit("code");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    project.git(&["update-index", "-q", "--refresh"]);
    project.git(&["update-index", "--force-write-index"]);
    project.silent(&["git diff", "git diff HEAD", "git diff HEAD~1", "git show", "git log -p -1", "git diff --cached"]);
    project.asked(&[
        "git grep registry",
        "git grep registry HEAD",
        "git archive HEAD",
        "git log -p",
        "git log -p -2",
        "git show -2",
    ]);
    project.asked(&[
        "git show HEAD~1",
        "git diff HEAD~2",
        "git diff HEAD~2 HEAD",
        "git diff HEAD~1^!",
        "git format-patch HEAD~2",
    ]);
    project.asked(&[
        "git diff-tree -p HEAD~1",
        "git diff HEAD~2...HEAD",
        "git show HEAD~1^@ HEAD~1",
        "git range-diff HEAD~2 HEAD~1 HEAD",
    ]);
    project.write(".npmrc", "token=x\n");
    project.asked(&[
        "git diff",
        "git diff HEAD",
        "git diff -- '*rc'",
        "cd src && git diff",
        "git diff-files -p",
        "git status -vv",
    ]);
    project.silent(&["git diff --stat", "git diff -- src", "git diff --name-only", "git diff --cached"]);
}

#[test]
fn a_secret_that_is_only_in_history_is_found_there() {
    let project = Project::new();
    project.write("conf/.env", "TOKEN=x\n");
    project.commit("oops");
    let blob = project.output(&["rev-parse", "HEAD:conf/.env"]);
    project.remove("conf/.env");
    project.commit("gone");
    project.write("src/a.rs", "c\n");
    project.commit("later");
    for _ in 0..2 {
        project.silent(&[
            "git show",
            "git log -p -1",
            "git diff HEAD~1",
            "git grep x HEAD",
            "git archive HEAD",
            "git log --stat",
        ]);
        project.silent(&["git log -p -- src/a.rs", "git log -p -- src", "git log --oneline -- conf"]);
        project.asked(&[
            "git log -p",
            "git log -p -2",
            "git log -p -- conf",
            "git log -p -S TOKEN",
            "git log --cc",
            "git log -p HEAD~2..HEAD",
        ]);
        project.asked(&[
            "git show HEAD~1",
            "git show HEAD~2",
            "git grep x HEAD~2",
            "git archive HEAD~2 conf",
            "git diff HEAD~2",
        ]);
        project.asked(&[
            "git fast-export HEAD",
            "git format-patch --stdout HEAD~3",
            "git log -p --all",
            "git reflog -p",
        ]);
        project.asked(&[&format!("git cat-file -p {blob}"), &format!("git show {}", &blob[..9])]);
        project.asked(&["cd conf 2>/dev/null; git show HEAD~2:conf/.env", "git show 'HEAD~2:./conf/.env'"]);
        project.asked(&[
            "git diff HEAD~2: HEAD:",
            "git diff HEAD~2:conf HEAD:src",
            "git grep x HEAD~2:",
            "git archive HEAD~2:conf",
        ]);
        project.silent(&["git diff HEAD -- *.txt", "git log -p -- src/*", "git grep x -- *.txt"]);
        project.asked(&[
            "git show $(git rev-parse HEAD~2)",
            "git diff $(git merge-base HEAD~2 HEAD)",
            "git log -p -1 $(git rev-parse HEAD~1)",
        ]);
        project.asked(&[
            "git diff --merge-base HEAD~2",
            "git show -3",
            "git show HEAD~3...HEAD",
            "git log -p --grep -1",
            "git log -p -1 --skip=1",
        ]);
        project.asked(&["git log -p HEAD --not HEAD~3", "git show HEAD~3..", "git log -p -1 -- ':(attr:x)a' conf"]);
        project.silent(&[
            "git show HEAD~2:src",
            "git diff HEAD~1: HEAD:",
            "git log -p HEAD^!",
            "git -c color.ui=never log -p -1",
        ]);
        project.pack();
    }
}

#[test]
fn options_that_show_more_than_the_operands_say_are_heard() {
    let project = Project::new();
    project.write("conf/.env", "TOKEN=x\n");
    project.write("src/a.rs", "b\n");
    project.commit("both");
    project.write("src/a.rs", "c\n");
    project.commit("code");
    project.silent(&["git log -p -- src/a.rs", "git log -p HEAD~1..", "git log -p HEAD ^HEAD~1"]);
    project.asked(&["git log -p --full-diff -- src/a.rs", "git log -p --boundary HEAD~1..", "git log -p --not ^HEAD"]);
    project.asked(&["git fast-export HEAD~1..HEAD", "git fast-export --full-tree HEAD~1..HEAD"]);
    // what only another work tree has
    project.git(&["worktree", "add", "-q", "--detach", "other", "HEAD~2"]);
    std::fs::write(project.root.join("other/.npmrc"), "token=x\n").expect("a file");
    project.git(&["-C", "other", "add", "-f", ".npmrc"]);
    project.git(&["-C", "other", "commit", "-qm", "elsewhere"]);
    project.git(&["checkout", "-q", "--orphan", "fresh"]);
    project.git(&["rm", "-rqf", "--cached", "."]);
    project.git(&["add", "notes.txt"]);
    project.git(&["commit", "-qm", "fresh"]);
    project.git(&["branch", "-q", "-D", "main"]);
    project.silent(&["git log -p"]);
    project.asked(&["git log -p --all"]);
}

/// The commands of a call may run in another order than they are written in.
#[test]
fn what_another_command_changes_is_not_shown_in_silence() {
    let project = branches();
    project.silent(&["git status && git checkout feature", "git diff > a.patch && git diff --cached > b.patch"]);
    project.silent(&["git checkout -b new && git diff", "git add -A && git commit -qm x && git log -p -1"]);
    project.asked(&[
        "git checkout feature && git diff",
        "for step in 1 2; do git log -p -1; git checkout -q feature; done",
        "f() { git show; }; f; git checkout -q feature; f",
        "git reset -q HEAD~1 && git diff --cached",
        "git fetch && git diff HEAD origin/main",
        "cp x .git/index && git diff",
    ]);
    // a repository that comes with a branch is used by the next command
    project.git(&["checkout", "-q", "-b", "bare"]);
    project.write("bare/HEAD", "ref: refs/heads/main\n");
    project.write("bare/config", "[core]\n\tfsmonitor = ./x\n");
    project.write("bare/objects/keep", "");
    project.write("bare/refs/keep", "");
    project.commit("bare");
    project.git(&["checkout", "-q", "main"]);
    project.asked(&["git checkout bare && git -C bare status", "git checkout bare; cd bare && git log"]);
}

#[test]
fn what_stands_for_something_else_is_a_question() {
    let project = Project::new();
    let blob = project.output(&["rev-parse", "HEAD:notes.txt"]);
    project.asked(&[
        &format!("git update-index --add --cacheinfo 100644,{blob},other.txt"),
        &format!("git replace {blob} {blob}"),
        "git notes add -C HEAD:notes.txt",
        "git for-each-ref --format='%(raw)'",
        "git tag -l --format='%(raw)'",
        "git merge-file -p --object-id HEAD:notes.txt HEAD:notes.txt HEAD:notes.txt",
        "git rerere diff",
        "git add -p",
        "git stash list -p",
        "echo x | git mktree",
    ]);
}

const CHANGES: &[&str] = &[
    "git checkout feature",
    "git switch feature",
    "git checkout -q feature",
    "git checkout --detach feature",
    "git checkout -b other feature",
    "git switch -c other feature",
    "git merge feature",
    "git merge --no-ff --no-edit feature",
    "git rebase feature",
    "git cherry-pick feature",
    "git revert --no-edit HEAD",
    "git stash pop",
    "git stash apply stash@{0}",
];

/// A project on `main` with a branch `feature` that begins one commit before, and something put aside.
fn branches() -> Project {
    let project = Project::new();
    project.git(&["checkout", "-q", "-b", "feature"]);
    project.write("src/feature.rs", "f\n");
    project.commit("feature");
    project.git(&["checkout", "-q", "main"]);
    project.write("src/a.rs", "a\nmore\n");
    project.commit("more");
    project.write("notes.txt", "n\nput aside\n");
    project.git(&["stash", "-q"]);
    project
}

#[test]
fn changes_of_ordinary_files_are_silent() {
    let project = branches();
    project.silent(CHANGES);
    project.pack();
    project.silent(CHANGES);
    // nothing differs, or there is no such thing
    project.silent(&[
        "git checkout main",
        "git checkout",
        "git rebase main",
        "git merge main",
        "git cherry-pick c5b2752",
        "git switch nosuch",
    ]);
    project.silent(&[
        "git checkout HEAD",
        "git checkout -",
        "git switch -",
        "git checkout @{-1}",
        "git stash pop stash@{7}",
    ]);
    project.git(&["stash", "drop", "-q"]);
    project.silent(&["git stash pop", "git stash apply"]);
    let linked = project.root.join("linked");
    project.git(&["worktree", "add", "-q", "linked", "-b", "third"]);
    assert_eq!(project.decide_in(&linked, "git merge feature"), Decision::Allow);
}

#[test]
fn options_that_lose_changes_are_questions() {
    let project = branches();
    project.asked(&[
        "git checkout -f feature",
        "git checkout -m feature",
        "git checkout feature -- notes.txt",
        "git checkout notes.txt",
        "git checkout src",
        "git checkout .",
        "git checkout '*.txt'",
        "git switch --discard-changes feature",
        "git switch -C feature",
        "git checkout -B feature main",
        "git checkout --orphan x",
        "git merge -s ours feature",
        "git merge -X subtree=deep feature",
        "git merge feature main~1",
        "git merge FETCH_HEAD",
        "git rebase -i feature",
        "git rebase --onto feature main~1",
        "git rebase -x ./run feature",
        "git rebase",
        "git cherry-pick -m 1 feature",
        "git cherry-pick main~1..feature",
        "git revert -n HEAD",
        "git stash branch x",
        "git pull",
        "git checkout $x",
        "git checkout $(cat notes.txt)",
        "git checkout feature; git checkout main",
        "echo x > src/feature.rs; git checkout feature",
    ]);
}

#[test]
fn whatever_the_repository_runs_is_a_question() {
    for hook in
        ["post-checkout", "post-merge", "pre-rebase", "post-rewrite", "prepare-commit-msg", "reference-transaction"]
    {
        let project = branches();
        let path = project.root.join(".git/hooks").join(hook);
        std::fs::write(&path, "#!/bin/sh\n").expect("a hook");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its rights");
        project.asked(CHANGES);
    }
    for (key, value) in [
        ("core.hooksPath", "hooks"),
        ("filter.x.smudge", "./x"),
        ("merge.x.driver", "./x"),
        ("core.fsmonitor", "./x"),
        ("core.attributesFile", "x"),
        ("core.sparseCheckout", "true"),
        ("core.ignoreStat", "true"),
        ("commit.gpgSign", "true"),
        ("sequence.editor", "./x"),
        ("extensions.partialClone", "origin"),
    ] {
        let project = branches();
        project.git(&["config", key, value]);
        project.asked(CHANGES);
    }
}

#[test]
fn names_that_matter_are_written_by_name() {
    for name in
        [".claude/settings.json", ".envrc", "package.json", ".git-hooks/../Makefile", ".github/workflows/x.yml", ".env"]
    {
        let project = Project::new();
        let name = name.replace(".git-hooks/../", "");
        project.git(&["checkout", "-q", "-b", "feature"]);
        project.write(&name, "{}\n");
        project.commit("feature");
        project.git(&["checkout", "-q", "main"]);
        for command in ["git checkout feature", "git merge feature", "git cherry-pick feature", "git rebase feature"] {
            project.asked(&[command]);
        }
        project.git(&["checkout", "-q", "feature"]);
        for command in ["git checkout main", "git revert --no-edit HEAD"] {
            project.asked(&[command]);
        }
    }
}

#[test]
fn filters_links_and_submodules_of_the_target_are_questions() {
    let attributes = |project: &Project| project.write(".gitattributes", "*.bin filter=x\n");
    let drivers = |project: &Project| project.write(".gitattributes", "*.rs merge=x\n");
    let link = |project: &Project| std::os::unix::fs::symlink("/etc", project.root.join("out")).expect("a link");
    type Case<'a> = (&'a str, &'a dyn Fn(&Project), &'a [&'a str]);
    let cases: [Case<'_>; 3] = [
        ("attributes", &attributes, &["git checkout feature", "git merge feature"]),
        ("drivers", &drivers, &["git merge feature", "git cherry-pick feature"]),
        ("link", &link, &["git checkout feature", "git merge feature", "git cherry-pick feature"]),
    ];
    for (name, change, commands) in cases {
        let project = Project::new();
        project.git(&["checkout", "-q", "-b", "feature"]);
        change(&project);
        project.commit(name);
        project.git(&["checkout", "-q", "main"]);
        project.write("notes.txt", "m\n");
        project.commit("main");
        project.asked(commands);
    }
    let project = branches();
    project.git(&["clone", "-q", ".", "inner"]);
    project.git(&["checkout", "-q", "-b", "nested"]);
    project.git(&["add", "inner"]);
    project.git(&["commit", "-qm", "nested"]);
    project.git(&["checkout", "-q", "main"]);
    project.asked(&["git checkout nested"]);
}

#[test]
fn what_git_would_overwrite_is_not_lost() {
    let project = branches();
    project.write(".gitignore", "src/feature.rs\n");
    project.silent(&["git checkout feature"]);
    project.write("src/feature.rs", "mine, and ignored\n");
    project.asked(&["git checkout feature", "git merge feature", "git cherry-pick feature", "git rebase feature"]);
    let project = branches();
    project.git(&["update-index", "--assume-unchanged", "src/a.rs"]);
    project.asked(&["git checkout feature"]);
    let project = branches();
    std::fs::remove_dir_all(project.root.join("src")).expect("it was there");
    std::os::unix::fs::symlink("/etc", project.root.join("src")).expect("a link");
    project.asked(&["git checkout feature", "git cherry-pick feature"]);
    let project = branches();
    std::fs::remove_file(project.root.join(".git/logs/HEAD")).expect("a log");
    project.asked(&["git rebase feature"]);
}

#[test]
fn what_was_renamed_is_a_question() {
    // a commit that changes `x.txt` changes the file that it was renamed to
    let project = Project::new();
    let text = "one\ntwo\nthree\nfour\nfive\n";
    project.write("x.txt", text);
    project.write("folder/y.txt", text);
    project.commit("base");
    project.git(&["checkout", "-q", "-b", "feature"]);
    project.write("x.txt", &format!("{text}six\n"));
    project.commit("change");
    project.write("folder/settings.json", "{}\n");
    project.commit("add");
    project.git(&["checkout", "-q", "main"]);
    std::fs::create_dir(project.root.join(".claude")).expect("a directory");
    project.git(&["mv", "x.txt", ".claude/settings.local.json"]);
    project.git(&["mv", "folder/y.txt", ".claude/y.txt"]);
    project.git(&["commit", "-qm", "rename"]);
    project.asked(&["git cherry-pick feature~1", "git cherry-pick feature", "git merge feature", "git rebase feature"]);
}

#[test]
fn what_cannot_be_read_is_a_question() {
    let both = |project: &Project| {
        project.asked(&["git checkout feature", "git merge feature", "git log -p", "git show HEAD"]);
    };
    let objects = |project: &Project| project.root.join(".git/objects");
    // objects that are borrowed, replaced, damaged or missing
    let project = branches();
    std::fs::write(objects(&project).join("info/alternates"), "/elsewhere\n").expect("a file");
    both(&project);
    let project = branches();
    project.git(&["replace", "HEAD", "HEAD~1"]);
    both(&project);
    for damage in [&b"not zlib"[..], b"", b"\x78\x9c\x4b\x2a"] {
        let project = branches();
        let tree = project.output(&["rev-parse", "HEAD^{tree}"]);
        let path = objects(&project).join(&tree[..2]).join(&tree[2..]);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("its rights");
        std::fs::write(&path, damage).expect("an object");
        both(&project);
        std::fs::remove_file(&path).expect("an object");
        both(&project);
    }
    let project = branches();
    project.pack();
    let pack = std::fs::read_dir(objects(&project).join("pack")).expect("packs");
    for entry in
        pack.map(|entry| entry.expect("a pack").path()).filter(|path| path.extension().is_some_and(|end| end == "pack"))
    {
        std::fs::set_permissions(&entry, std::fs::Permissions::from_mode(0o644)).expect("its rights");
        let mut bytes = std::fs::read(&entry).expect("a pack");
        bytes.iter_mut().skip(12).for_each(|byte| *byte ^= 0x55);
        std::fs::write(&entry, bytes).expect("a pack");
    }
    both(&project);
}

#[test]
fn another_format_is_a_question() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("project");
    std::fs::create_dir(&root).expect("a directory");
    let project = Project { _directory: directory, root };
    project.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    project.write("a.txt", "a\n");
    project.commit("first");
    project.git(&["branch", "feature"]);
    project.asked(&["git checkout feature", "git log -p"]);
}

#[test]
fn a_false_repository_does_not_hide_tracked_files() {
    let project = Project::new();
    project.write("sub/.env", "TOKEN=x\n");
    project.commit("secret");
    project.write("sub/.git/HEAD", "nothing\n");
    project.asked(&["git -C sub grep TOKEN", "cd sub && git grep TOKEN", "cd sub && git diff HEAD~1"]);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    project.write("sub/keep.txt", "k\n");
    project.asked(&["rm sub/keep.txt", "cd sub && git checkout main"]);
}

#[test]
fn words_that_only_git_takes_for_revisions_hide_nothing() {
    let project = Project::new();
    project.write("conf/.env", "KEY=1\n");
    project.commit("with a secret");
    let second = project.output(&["rev-parse", "HEAD"]);
    project.git(&["branch", "old"]);
    project.remove("conf/.env");
    std::fs::remove_dir(project.root.join("conf")).expect("it is empty");
    project.write("conf", "a file now\n");
    project.commit("without");
    project.asked(&[
        // the tree without names is not stored, and still a revision
        "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 old",
        "git diff-tree -p 4b825dc642cb6eb9a060e54bf8d69288fbee4904 old",
        &format!("git show x-1-g{second}"),
        "git show 'old@{1 second ago}'",
        "git grep KEY main-worktree/HEAD~1",
        "git format-patch --stdout main old",
        "git format-patch --stdout main...old",
        // what is a file now was a directory
        "git log -p -- conf",
        "git grep KEY old -- ':!conf/.env/'",
        "git grep KEY old -- ':(exclude,icase)conf/.ENV'",
        "git diff main old -- ':!*env/'",
    ]);
    project.silent(&["git log -p -- notes.txt", "git grep KEY old -- ':!conf'", "git show HEAD -- notes.txt"]);
}

#[test]
fn several_replaced_objects_are_noticed_like_one() {
    let project = Project::new();
    project.write("notes.txt", "more\n");
    project.commit("second");
    project.silent(&["git show HEAD"]);
    project.git(&["replace", "HEAD", "HEAD~1"]);
    project.git(&["replace", "HEAD:notes.txt", "HEAD:src/a.rs"]);
    project.asked(&["git show HEAD"]);
}
