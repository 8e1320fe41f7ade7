//! Repositories as attackers make them, and how git reads its words.

use std::collections::BTreeMap;

use super::*;

fn findings(config: &str) -> Vec<String> {
    findings_of(config, GitReach::Looks)
}

fn findings_of(config: &str, reach: GitReach) -> Vec<String> {
    examined(config, GitExamination { reach, run: GitRun::Hardened, subcommand: None })
}

fn examined(config: &str, examination: GitExamination<'_>) -> Vec<String> {
    let files = BTreeMap::from([
        (PathBuf::from("/w/.git/HEAD"), "ref: refs/heads/main\n".to_owned()),
        (PathBuf::from("/w/.git/config"), config.to_owned()),
    ]);
    examine(Path::new("/w/src"), examination, &|path, _| Ok(files.get(path).map(|text| text.clone().into_bytes())))
}

const LOOKS: GitExamination<'_> = GitExamination { reach: GitReach::Looks, run: GitRun::Hardened, subcommand: None };
const ORDINARY: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = git@example.com:x\n\
    \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";

#[test]
fn an_ordinary_repository_is_clean() {
    assert_eq!(findings(ORDINARY), Vec::<String>::new());
}

#[test]
fn what_hardening_overrides_is_no_finding() {
    assert_eq!(
        findings("[core]\n\tfsmonitor = ./evil\n\thooksPath = .hooks\n\tpager = ./evil\n"),
        Vec::<String>::new()
    );
}

#[test]
fn what_nobody_switches_off_is_a_finding() {
    let missing = GitExamination { reach: GitReach::Looks, run: GitRun::AsWritten, subcommand: None };
    for config in [
        "[core]\nfsmonitor = ./x",
        "[core]\nhooksPath = hooks",
        "[core]\npager = ./x",
        "[core]\nalternateRefsCommand = ./x",
        "[diff]\nexternal = ./x",
        "[interactive]\ndiffFilter = ./x",
        "[log]\nshowSignature = true",
        "[pager]\nlog = ./x",
    ] {
        assert_eq!(findings(config), Vec::<String>::new(), "{config}");
        assert_eq!(examined(config, missing).len(), 1, "{config}");
    }
    for config in [ORDINARY, "[core]\nfsmonitor = true", "[core]\nfsmonitor = false"] {
        assert_eq!(examined(config, missing), Vec::<String>::new(), "{config}");
    }
}

#[test]
fn a_directory_can_be_a_repository_itself() {
    let found = |names: &str, run: GitRun| {
        let files: Vec<PathBuf> = names.split(' ').map(|name| Path::new("/w/sub").join(name)).collect();
        let read = |path: &Path, _| Ok(files.iter().any(|file| file == path).then(Vec::new));
        examine(Path::new("/w/sub"), GitExamination { run, ..LOOKS }, &read).len()
    };
    for run in [GitRun::AsWritten, GitRun::Hardened] {
        assert_eq!(found("HEAD objects refs", run), 1);
        assert_eq!(found("HEAD commondir", run), 1);
        assert_eq!(found("HEAD objects", run), 0);
        assert_eq!(found("commondir objects refs", run), 0);
    }
}

#[test]
fn a_hook_of_references_runs_for_everything_that_changes_one() {
    let found = |hook: &str, reach: GitReach| {
        let files = [PathBuf::from("/w/.git/HEAD"), Path::new("/w/.git/hooks").join(hook)];
        let read = |path: &Path, _| Ok(files.iter().any(|file| file == path).then(Vec::new));
        examine(Path::new("/w"), GitExamination { reach, run: GitRun::AsWritten, subcommand: None }, &read).len()
    };
    assert_eq!(found("reference-transaction", GitReach::More), 1);
    assert_eq!(found("reference-transaction", GitReach::Looks), 0);
    assert_eq!(found("post-index-change", GitReach::Looks), 1);
    assert_eq!(found("reference-transaction.sample", GitReach::More), 0);
}

#[test]
fn an_alias_stands_in_for_its_name() {
    let config = "[alias]\n\tlfs = !./evil\n\tst = status\n";
    let found = |name: &str| examined(config, GitExamination { subcommand: Some(name), ..LOOKS }).len();
    assert_eq!((found("lfs"), found("LFS"), found("status")), (1, 1, 0));
}

#[test]
fn a_comment_does_not_hide_the_next_line() {
    let missing = GitExamination { reach: GitReach::Looks, run: GitRun::AsWritten, subcommand: None };
    for config in [
        "[user]\n\tname = a # \\\n[core]\n\tfsmonitor = ./x\n",
        "[user]\n\tname = a ; b \\\n[core]\n\tfsmonitor = ./x\n",
        "[user]\n\tname = \"a # b\" \\\n c\n[core]\n\tfsmonitor = ./x\n",
    ] {
        assert_eq!(examined(config, missing).len(), 1, "{config}");
    }
    assert_eq!(examined("[user]\n\tname = \"a\n[core]\n", missing), ["/w/.git/config:2 is invalid"]);
}

#[test]
fn what_cannot_be_overridden_is_found() {
    for config in [
        "[filter \"x\"]\n\tclean = ./evil\n",
        "[filter.x] clean = ./evil\n",
        "[FILTER \"a\\\"b]\"] process=./evil",
        "[include]\n\tpath = ../evil\n",
        "[includeIf \"gitdir:/\"]\n\tpath = ../evil\n",
        "[gpg]\n\tprogram = ./evil\n",
        "[gpg \"ssh\"] program = ./evil\n",
        "[core]\n\tworktree = /\n",
        "[diff \"x\"]\n\ttextconv = ./evil\n",
        "[diff \"x\"]\n\tcommand = ./evil\n",
        "[merge \"x\"]\n\tdriver = ./evil\n",
        "[lfs \"extension.x\"]\n\tclean = ./evil\n",
        "[extensions]\n\tpartialClone = origin\n",
        "[remote \"origin\"] promisor = true\n",
        "[unheard-of]\n\tkey = 1\n",
    ] {
        assert_eq!(findings(config).len(), 1, "{config}");
    }
}

#[test]
fn what_runs_only_beyond_looking_is_found_there() {
    for config in [
        "[core]\n\teditor = ./evil\n",
        "[core]\n\tsshCommand = ./evil\n",
        "[credential]\n\thelper = !./evil\n",
        "[remote \"origin\"]\n\tuploadpack = ./evil\n",
        "[submodule \"x\"]\n\tupdate = !./evil\n",
        "[mergetool \"x\"]\n\tcmd = ./evil\n",
    ] {
        assert_eq!(findings(config), Vec::<String>::new(), "{config}");
        assert_eq!(findings_of(config, GitReach::More).len(), 1, "{config}");
    }
    assert_eq!(findings_of(ORDINARY, GitReach::More), Vec::<String>::new());
}

#[test]
fn a_work_tree_may_be_named_if_it_is_the_one() {
    let found = |worktree: &str| {
        let files = BTreeMap::from([
            (PathBuf::from("/w/sub/.git"), "gitdir: ../.git/modules/sub\n".to_owned()),
            (PathBuf::from("/w/sub/../.git/modules/sub/config"), format!("[core]\n\tworktree = {worktree}\n")),
        ]);
        let read = |path: &Path, _| Ok(files.get(path).map(|text| text.clone().into_bytes()));
        examine(Path::new("/w/sub"), LOOKS, &read).len()
    };
    assert_eq!(found("../../../sub"), 0);
    assert_eq!(found("../../../other"), 1);
    assert_eq!(found("/"), 1);
}

#[test]
fn a_value_that_continues_does_not_hide_the_next_key() {
    assert_eq!(findings("[user]\n\tname = a\\\n[include]\n[filter \"x\"]\n\tclean = y\n").len(), 1);
}

#[test]
fn what_is_not_understood_is_a_finding() {
    for config in ["[core", "key = 1\n", "[core]\n\t= x\n", "[core] a.b = 1\n", "[a \"b]\nx=1\n"] {
        assert_eq!(findings(config).len(), 1, "{config}");
    }
}

#[test]
fn a_work_tree_elsewhere_is_followed() {
    let files = BTreeMap::from([
        (PathBuf::from("/w/.git"), "gitdir: /main/.git/worktrees/w\n".to_owned()),
        (PathBuf::from("/main/.git/worktrees/w/commondir"), "../..\n".to_owned()),
        (PathBuf::from("/main/.git/worktrees/w/../../config"), "[filter \"x\"]\nclean=evil\n".to_owned()),
    ]);
    let found = examine(Path::new("/w"), LOOKS, &|path, _| Ok(files.get(path).map(|text| text.clone().into_bytes())));
    assert_eq!(found.len(), 1);
}

#[test]
fn the_subcommand_stands_behind_the_options() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(subcommand(&words("git status")), Some(1));
    assert_eq!(subcommand(&words("/usr/bin/git -C x -c a=b --no-pager log -3")), Some(6));
    assert_eq!(subcommand(&words("git --namespace x --attr-source=HEAD -P log")), Some(5));
    assert_eq!(subcommand(&words("builtin command -p git -C x log")), Some(6));
    assert_eq!(subcommand(&words("git --version")), None);
    assert_eq!(subcommand(&words("env git status")), None);
}

#[test]
fn every_word_up_to_the_subcommand_is_understood() {
    let read = |text: &'static str| invocation(&text.split(' ').map(Some).collect::<Vec<_>>());
    for (text, directories) in [
        ("git -c a=b -C x diff", vec!["x"]),
        ("git --namespace n -C x --attr-source HEAD -C y diff -C z", vec!["x", "y"]),
        ("exec -a n git --config-env=a=b -C x log", vec!["x"]),
        ("git diff -C x", vec![]),
        ("git -C x --version", vec!["x"]),
    ] {
        assert!(matches!(read(text), Invocation::Git(start) if start.directories == directories), "{text}");
    }
    for text in [
        "git --git-dir=x log",
        "git --work-tree x log",
        "git --bare log",
        "git --exec-path=x log",
        "git --unheard-of x log",
        "git -Cx log",
        "git -C",
        "command -x git log",
        "exec x git log",
    ] {
        assert_eq!(read(text), Invocation::Unknown, "{text}");
    }
    assert_eq!(invocation(&[Some("git"), Some("-c"), None, Some("log")]), Invocation::Unknown);
    assert_eq!(invocation(&[None, Some("git"), Some("log")]), Invocation::Unknown);
    assert_eq!(read("gh repo clone x"), Invocation::Other);
    assert_eq!(read("gh repo clone git"), Invocation::Other);
}

#[test]
fn what_is_no_repository_for_git_hides_none() {
    let found = |files: &[(&str, &str)], folders: &[&str]| {
        let mut known = BTreeMap::from([
            (PathBuf::from("/w/.git/HEAD"), "ref: refs/heads/main\n"),
            (PathBuf::from("/w/.git/config"), "[filter \"x\"]\nclean=y\n"),
        ]);
        known.extend(files.iter().map(|(name, text)| (Path::new("/w/sub").join(name), *text)));
        let folders: Vec<PathBuf> = folders.iter().map(|name| Path::new("/w/sub").join(name)).collect();
        let read = |path: &Path, _| match known.get(path) {
            Some(text) => Ok(Some(text.as_bytes().to_vec())),
            None if folders.iter().any(|folder| folder == path) => Err(std::io::ErrorKind::IsADirectory.into()),
            None => Ok(None),
        };
        examine(Path::new("/w/sub"), LOOKS, &read).len()
    };
    let head = (".git/HEAD", "ref: refs/heads/main\n");
    let both = [".git/objects", ".git/refs"];
    assert_eq!(found(&[head], &both), 0);
    assert_eq!(found(&[head, (".git/commondir", "../c\n")], &[".git/../c/objects", ".git/../c/refs"]), 0);
    assert_eq!(found(&[head], &[]), 1);
    assert_eq!(found(&[head], &[".git/objects"]), 1);
    assert_eq!(found(&[head, (".git/refs", "")], &[".git/objects"]), 1);
    assert_eq!(found(&[(".git/HEAD", "x")], &both), 1);
    assert_eq!(found(&[head, (".git/commondir", "../c\n")], &both), 1);
    assert_eq!(found(&[], &[".git"]), 1);
}

#[test]
fn a_path_is_what_git_takes_it_for() {
    for (name, text, expected) in [
        (".git", "gitdir: g\n", 0),
        (".git", "gitdir: g\r\n", 0),
        (".git", "gitdir: g \n", 1),
        (".git", "gitdir:  g\n", 1),
        (".git", "gitdir:g\n", 1),
        (".git", " gitdir: g\n", 1),
        (".git", "gitdir: g\nh\n", 1),
        (".git", "gitdir: g\t\n", 1),
        (".git", "gitdir: \n", 1),
        (".git/commondir", "../c\n", 0),
        (".git/commondir", "../c \n", 1),
        (".git/commondir", " ../c", 1),
        (".git/commondir", "\n", 1),
    ] {
        let read = |path: &Path, _| {
            let head = name != ".git" && path == Path::new("/w/.git/HEAD");
            let text = if head {
                Some("ref: refs/heads/main")
            } else {
                Some(text).filter(|_| path == Path::new("/w").join(name))
            };
            Ok(text.map(|text| text.as_bytes().to_vec()))
        };
        assert_eq!(examine(Path::new("/w"), LOOKS, &read).len(), expected, "{name}: {text:?}");
    }
}

#[test]
fn hardened_words_keep_their_order() {
    let words: Vec<String> = ["git", "-C", "x", "log", "-3"].map(str::to_owned).to_vec();
    let hardened = harden(&words, 3);
    assert_eq!(hardened.first().map(String::as_str), Some("git"));
    let log = hardened.iter().position(|word| word == "log").unwrap();
    assert_eq!(&hardened[log..], ["log", "--no-ext-diff", "--no-textconv", "-3"]);
    assert!(hardened[..log].windows(2).any(|pair| pair == ["-c", "core.fsmonitor=false"]));
}
