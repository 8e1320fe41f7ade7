//! Calls one after the other in a shell that lives on: what the earlier ones left counts for the later ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic like tests"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use callgate_shell::effect::{Action, Coverage, Names, Target};
use callgate_shell::programs::Programs;
use callgate_shell::{Analysis, Dialect, Limits, ShellContext, ShellState, analyze};

/// The analysis of the last of several calls in one shell, which was started in `/work`, each of which did run.
fn last_of(calls: &[&str]) -> Analysis {
    last_in(calls, "/work", ShellState::after_running)
}

/// The same in another directory. Between two calls the state is written down and read again, as it is where it is kept.
fn last_in(calls: &[&str], directory: &str, goes_on: impl Fn(ShellState) -> ShellState) -> Analysis {
    let variables = BTreeMap::new();
    let mut before = ShellState::default();
    let mut last = None;
    for call in calls {
        let context = ShellContext {
            directory: Some(directory),
            home: Some("/home/me"),
            variables: &variables,
            programs: Programs::bundled(),
            dialect: Dialect::Bash,
            limits: Limits::default(),
            state: Some(&before),
        };
        let mut analysis = analyze(call, &context);
        let after = goes_on(analysis.state.clone().unwrap());
        before = serde_json::from_str::<ShellState>(&serde_json::to_string(&after).unwrap()).unwrap();
        analysis.state = Some(after);
        last = Some(analysis);
    }
    last.unwrap()
}

fn doubts(analysis: &Analysis) -> String {
    let texts =
        analysis.effects().filter(|effect| effect.action == Action::Opaque).map(|effect| match &effect.target {
            Target::Text(text) => text.as_str(),
            _ => "",
        });
    texts.collect::<Vec<_>>().join("; ")
}

#[test]
fn what_an_earlier_call_left_makes_a_later_one_doubtful() {
    let cases: &[(&[&str], &str)] = &[
        (&["export PATH=./evil:$PATH", "ls"], "PATH was changed"),
        (&["PATH=./evil:$PATH", "true", "ls"], "PATH was changed"),
        (&["PATH[0]=./evil", "ls"], "PATH was changed"),
        (&["unset PATH", "ls"], "PATH was changed"),
        (&["read PATH < file", "ls"], "PATH was changed"),
        (&["alias ls='rm -rf'", "ls src"], "`ls` may be an alias"),
        (&["alias ls='rm -rf'", "command true", "ls src"], "`ls` may be an alias"),
        (&["alias if='rm -rf x; if'", "pwd"], "changes what later commands mean"),
        (&["ls() { rm -rf /; }", "ls"], "`ls` may be a shell function"),
        (&["function cd { rm -rf /; }", "pwd", "cd src && ls"], "`cd` may be a shell function"),
        (&["if test -f x; then ls() { rm -rf /; }; fi", "ls"], "`ls` may be a shell function"),
        (&["export GIT_PAGER=./evil", "git log"], "changes what programs run"),
        (&["GIT_SSH_COMMAND=./evil", "git status"], "changes what programs run"),
        (&["export LD_PRELOAD=./evil.so", "pwd", "/bin/ls"], "changes what programs run"),
        (&["export BASH_ENV=./evil", "bash -c ls"], "changes what programs run"),
        (&["BASH_CMDS[ls]=./evil", "ls"], "changes what programs run"),
        (&["PAGER=cat", "PAGER[0]=./evil", "git log"], "changes what programs run"),
        (&["source x", "ls"], "an earlier call may have changed anything in this shell: a file was sourced in it"),
        (&[". .venv/bin/activate", "python3 --version"], "a file was sourced in it"),
        (&["eval \"$x\"", "ls"], "`eval` runs unknown code"),
        (&["$x", "ls"], "the program name is unknown"),
        (&["shopt -s expand_aliases", "ls"], "unknown shell option"),
        (&["set -o posix", "ls"], "unknown shell option"),
        (&["hash -p ./evil ls", "ls"], "does not track what `hash` does"),
        (&["enable -f ./evil.so ls", "ls"], "does not track what `enable` does"),
        (&["trap 'cd /' USR1", "ls"], "an earlier call may have changed anything"),
        (&["true", "echo hello !ls"], "of its history"),
        (&["trap 'cd /' WINCH", "ls"], "runs code between commands"),
        (&["trap ls EXIT", "ls() { rm -rf /; }"], "may run a function defined here"),
        (&["PROMPT_COMMAND=ls", "ls() { rm -rf /; }"], "may run a function defined here"),
        (&["exec < commands"], "read its next commands from another source"),
        (&["ls (", "ls"], "an earlier call may have changed anything"),
        (&["x=$(cat name)", "$x"], "the program name is unknown"),
    ];
    let mut wrong = Vec::new();
    for (calls, expected) in cases {
        let analysis = last_of(calls);
        if analysis.coverage != Coverage::Partial || !doubts(&analysis).contains(expected) {
            wrong.push(format!("{calls:?}: {:?}", doubts(&analysis)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_ordinary_session_stays_without_doubt() {
    let cases: &[&[&str]] = &[
        &["export NODE_ENV=test", "ls"],
        &["export FOO=1 BAR=2", "unset FOO", "cat README.md"],
        &["set -e", "ls"],
        &["set -euo pipefail", "cd src && ls", "ls"],
        &["export PAGER=cat GIT_PAGER=cat", "git --version"],
        &["greet() { echo hello; }", "ls"],
        &["alias ll='ls -l'", "ls"],
        &["cd src", "ls", "cat x"],
        &["x=5", "echo \"$x\""],
        // A program that is not understood does not change the shell.
        &["./build.sh", "ls"],
        &["python3 build.py; bash -c \"$x\"", "ls"],
        &["(source x)", "ls"],
        &["source x | cat", "ls"],
        &["for f in a b; do echo $f; done", "ls"],
        &["exit", "ls"],
        &["trap 'rm -f /work/x' EXIT", "ls"],
        // It is said once.
        &["source x", "pwd", "ls"],
    ];
    let mut wrong = Vec::new();
    for calls in cases {
        let analysis = last_of(calls);
        if analysis.coverage != Coverage::Complete {
            wrong.push(format!("{calls:?}: {:?}", doubts(&analysis)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The files that the last of several calls reads.
fn read_by(calls: &[&str]) -> Vec<String> {
    let analysis = last_of(calls);
    let mut paths: Vec<String> = analysis
        .effects()
        .filter(|effect| effect.action == Action::Read)
        .map(|effect| match &effect.target {
            Target::Path(path) => match &path.names {
                Names::Exact(path) => path.clone(),
                other => format!("{other:?}"),
            },
            other => format!("{other:?}"),
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn relative_paths_follow_the_shell() {
    // Whether `cd` succeeds is not certain: both are meant.
    assert_eq!(read_by(&["cd src", "cat x"]), ["/work/src/x", "/work/x"]);
    assert_eq!(read_by(&["cd /etc || exit", "cat passwd"]), ["/etc/passwd", "/work/passwd"]);
    assert_eq!(read_by(&["(cd /etc)", "cat passwd"]), ["/work/passwd"]);
    assert_eq!(read_by(&["cd /etc | cat", "cat passwd"]), ["/work/passwd"]);
    assert_eq!(read_by(&["set -e; cd /etc", "cat passwd"]), ["/etc/passwd", "/work/passwd"]);
    assert_eq!(read_by(&["f=/etc/passwd", "cat \"$f\""]), ["/etc/passwd"]);
    assert_eq!(read_by(&["IFS=:", "f=a:b", "cat $f"]), ["Unknown(\"IFS has been changed\")"]);
    assert_eq!(read_by(&["set -- /etc/passwd", "cat \"$1\""]), ["/etc/passwd"]);
    assert_eq!(read_by(&["test -f x && exit; cd /", "cd etc", "cat y"]), ["/etc/y", "/work/etc/y", "/work/y", "/y"]);
}

#[test]
fn where_a_shell_is_can_be_settled_by_looking() {
    let settled = |command: &str| {
        let mut state = last_of(&[command]).state.unwrap();
        state.settle_directory(|directory| matches!(directory, "/work/src" | "/etc"));
        state.directory().map(str::to_owned)
    };
    assert_eq!(settled("cd src").as_deref(), Some("/work/src"));
    assert_eq!(settled("cd src && ./build.sh").as_deref(), Some("/work/src"));
    assert_eq!(settled("cd src; cd /etc; ls").as_deref(), Some("/etc"));
    assert_eq!(settled("ls").as_deref(), Some("/work"));
    // It is not there, or may not be there any more, or may not be gone to.
    for command in [
        "cd missing",
        "rm -r src; cd src",
        "./build.sh; cd src",
        "test -f x && cd src",
        "cd src || exit 1; false && exit",
    ] {
        assert_eq!(settled(command), None, "{command}");
    }
}

#[test]
fn what_a_call_made_unknown_is_not_unset() {
    let context_of_unset = |calls: &[&str]| last_of(calls).commands.last().unwrap().words.clone();
    // Known not to be set: the default counts.
    assert_eq!(context_of_unset(&["unset x", "echo ${x:-a}"])[1].known(), Some("a"));
    assert_eq!(context_of_unset(&["x=$(date)", "echo ${x:-a}"])[1].known(), None);
    assert_eq!(context_of_unset(&["unset x", "source y", "echo ${x:-a}"])[1].known(), None);
    assert_eq!(context_of_unset(&["unset x; test -f y && x=1", "echo ${x:-a}"])[1].known(), None);
}

#[test]
fn a_new_loss_is_told_again() {
    assert!(doubts(&last_of(&["source x", "source y", "ls"])).contains("a file was sourced in it"));
    assert_eq!(last_of(&["source x", "source y", "pwd", "ls"]).coverage, Coverage::Complete);
}

#[test]
fn a_state_that_is_too_large_is_lost_and_secrets_are_not_in_it() {
    let long = format!("x={}", "a".repeat(40_000));
    assert!(doubts(&last_of(&[&long, "ls"])).contains("more was set than is remembered"));
    let state = last_of(&["export GITHUB_TOKEN=ghp_secret NAME=value"]).state.unwrap();
    assert!(!serde_json::to_string(&state).unwrap().contains("ghp_secret"));
    assert_eq!(state.variable("NAME"), Some("value"));
}

#[test]
fn of_a_call_that_may_not_have_run_only_what_it_did_not_change_is_certain() {
    let one = last_of(&["x=1; y=1; cd /one"]).state.unwrap();
    let other = last_of(&["x=1; y=2; alias ls=rm"]).state.unwrap();
    let either = one.possibly(other, Some("/work"));
    assert_eq!((either.variable("x"), either.variable("y"), either.directory()), (Some("1"), None, None));
    assert_eq!(either.why_lost(), None);
    assert_eq!(either.possibly(ShellState::lost("it was"), Some("/work")).why_lost(), Some("it was"));
}

/// Numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from[(self.0 % from.len() as u64) as usize]
    }
}

const STEPS: &[&str] = &[
    "x=1",
    "y=2",
    "x=$y",
    "y=\"$x b\"",
    "z=${x:-d}",
    "z=${y#2}",
    "x+=c",
    "export x",
    "export y=3 z=4",
    "unset x",
    "unset -v y",
    "readonly r=1",
    "r=2",
    "declare -i n=2+3",
    "n=n+1",
    "n+=4",
    "declare -u u=abc",
    "((m = 4))",
    "((m += n))",
    "let m=2*3",
    "a=(1 2 3)",
    "a[1]=9",
    "x=${a[1]}",
    "x=${#a[@]}",
    "cd sub",
    "cd ..",
    "cd sub/deep",
    "cd nowhere",
    "cd - >/dev/null",
    "pushd sub >/dev/null",
    "popd >/dev/null",
    "cd sub && x=in",
    "cd nowhere || x=out",
    "f() { cd sub; x=f; }; f",
    "f() { local x=inner; y=$x; z=set; }; f; x=9 f",
    "if test -d sub; then x=yes; else x=no; fi",
    "for i in a b c; do x=$i; done",
    "while false; do y=never; done",
    "case $x in 1) y=one;; *) y=other;; esac",
    "f() { local x=inner; y=$x; z=set; }",
    "f",
    "f() { cd sub; x=f; }",
    "set -- p q r",
    "shift",
    "x=$1",
    "x=$#",
    "read -r x <<< 'line of text'",
    "printf -v y '%s-%s' a b",
    "eval 'x=5; y=6'",
    "x=7 eval 'y=$x'",
    "x=8 true",
    "x=9 f",
    "(x=sub; cd sub)",
    "x=$(echo out)",
    "true && y=and",
    "false || z=or",
    "! x=neg",
    "{ x=group; y=group; }",
    "x=pipe | true",
    ": ${w:=default}",
    "x=${w^^}",
    "IFS=:",
    "v='a:b'; x=${v%%:*}",
    "unset f",
    "unset -f f",
    "set -f",
    "set +f",
    "x=*",
    "y=~",
    "z=$PWD",
    "test -n \"$x\" && z=full",
    "x=$((n * 2))",
    "true & y=back; wait",
    "x=1 y=2 z=3",
    "export -n x",
    "unset IFS",
    "x=${a[*]}",
    "x=\"${a[@]}\"",
    "unset 'a[0]'",
];

/// Everything that is known of a shell's state must be so in bash.
#[test]
fn what_is_known_is_what_bash_has() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("sub/deep/sub")).unwrap();
    std::fs::create_dir_all(root.join("sub/sub/deep")).unwrap();
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9e37_79b9_7f4a_7c15);
    let mut dice = Dice(seed);
    let (mut compared, mut wrong) = (0, Vec::new());
    for _ in 0..800 {
        let calls: Vec<String> = (0..3)
            .map(|_| [dice.pick(STEPS), dice.pick(STEPS), dice.pick(STEPS)].join(dice.pick(&["; ", "\n", " && "])))
            .collect();
        // Lists that bash does not take, such as `x & && y`, tell nothing.
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let state = last_in(&calls, root.to_str().unwrap(), settled).state.unwrap();
        if state.why_lost().is_some() {
            continue;
        }
        let known: Vec<(&str, String)> = state
            .variables()
            .map(|(name, value)| (name, format!("={value}")))
            .chain(state.unset().map(|name| (name, String::new())))
            .collect();
        let Some((directory, found)) = in_bash(&calls, &known, &root) else { continue };
        compared += known.len();
        if let Some(ours) = state.directory() {
            compared += 1;
            if ours != directory {
                wrong.push(format!("{calls:#?}: is in {directory}, not in {ours}"));
            }
        }
        for ((name, ours), theirs) in known.iter().zip(found) {
            if *ours != theirs {
                wrong.push(format!("{calls:#?}: {name}{theirs:?}, not {ours:?}"));
            }
        }
    }
    eprintln!("compared {compared} variables and directories");
    assert!(wrong.is_empty(), "{}\n{} of {compared}", wrong.join("\n"), wrong.len());
    assert!(compared > 500, "{compared}");
}

/// The directories of the test do not change: where a call leads can be seen.
fn settled(mut state: ShellState) -> ShellState {
    state.settle_directory(|directory| Path::new(directory).is_dir());
    state
}

/// Where bash is after these calls, and what these variables are: `=value`, or nothing if they are not set.
fn in_bash(calls: &[&str], names: &[(&str, String)], root: &Path) -> Option<(String, Vec<String>)> {
    let mut script = calls.join("\n");
    script.push_str("\nbuiltin printf '%s\\0' \"$PWD\"\n");
    for (name, _) in names {
        script.push_str(&format!("builtin printf '%s\\0' \"${{{name}+=}}${{{name}-}}\"\n"));
    }
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &script, "zero"])
        .env_clear()
        .env("HOME", "/home/me")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut fields: Vec<String> = text.split('\0').map(str::to_owned).collect();
    fields.pop();
    // It ended before it could say.
    (fields.len() == names.len() + 1).then(|| (fields.remove(0), fields))
}

#[test]
fn a_stored_state_is_short_and_comes_back_whole() {
    let calls = ["declare -ix N=1; readonly R=a; A=(b c); set -- $(date) x; set -f; cd /etc; alias ls=rm; f() { p; }"];
    let mut left = last_of(&calls).state.unwrap();
    left.settle_directory(|_| true);
    for state in [ShellState::default(), left, ShellState::lost("a reason")] {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<ShellState>(&text).unwrap(), state, "{text}");
    }
    assert_eq!(serde_json::to_string(&ShellState::default()).unwrap(), "{}");
}
