//! Commands made to slip past a gate: none of them may look harmless.
//!
//! Every line of `data/bypasses.txt` reads secrets, writes a program, deletes, runs foreign code, sends data away or changes
//! rights, behind some trick. It is held to what the bundled standard policy lets pass in silence: the analysis must be
//! partial, or at least one effect must be one that policy asks about.

use callgate_shell::effect::{Action, CodeOrigin, Coverage, Effect, Mark, Names, Target};
use callgate_shell::programs::Programs;
use callgate_shell::{Analysis, Dialect, Limits, ShellContext, analyze};
use std::collections::BTreeMap;

/// Files of the project that the policy does not hand out, or that something runs later.
const GUARDED: &[&str] = &[
    "/work/.env",
    "/work/.gitattributes",
    "/work/.github/workflows/ci.yml",
    "/work/.envrc",
    "/work/.vscode/tasks.json",
    "/work/Makefile",
    "/work/build.rs",
    "/work/conftest.py",
    "/work/id_rsa",
    "/work/package.json",
    "/work/server.key",
    "/work/callgate.yaml",
];

/// Where anything may be read, except what [`SYSTEM_SECRETS`] names.
const READABLE: &[&str] = &[
    "/usr/",
    "/bin/",
    "/lib/",
    "/opt/",
    "/etc/",
    "/sys/",
    "/proc/",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/std",
    "/dev/fd/",
    "/dev/tty",
];

/// Where anything may be written outside the project.
const WRITABLE: &[&str] = &["/dev/null", "/dev/std", "/dev/fd/", "/dev/tty"];

const SYSTEM_SECRETS: &[&str] =
    &["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/etc/ssh/ssh_host", "/proc/kcore"];

fn analysis(source: &str) -> Analysis {
    let variables = BTreeMap::new();
    let context = ShellContext {
        directory: Some("/work"),
        home: Some("/home/user"),
        variables: &variables,
        programs: Programs::bundled(),
        dialect: Dialect::Bash,
        limits: Limits::default(),
        state: None,
    };
    analyze(source, &context)
}

/// Whether the standard policy would let all of this pass without a question.
fn passes_in_silence(analysis: &Analysis) -> bool {
    analysis.coverage == Coverage::Complete && !analysis.effects().any(asked_about)
}

fn asked_about(effect: &Effect) -> bool {
    if effect.marks.iter().any(|mark| matches!(mark, Mark::Destructive | Mark::Credentials)) {
        return true;
    }
    match (&effect.action, &effect.target) {
        (Action::List, _) => false,
        (Action::Read, Target::Path(path)) => guarded(&path.names, path.tree, Action::Read),
        (Action::Write, Target::Path(path)) => guarded(&path.names, path.tree, Action::Write),
        (Action::Run, Target::Program(program)) => match program.origin {
            CodeOrigin::Known | CodeOrigin::Defined => false,
            CodeOrigin::Project => !matches!(program.name.as_str(), "git-config" | "python-path"),
            _ => true,
        },
        (Action::Connect, Target::Host(host)) => !host
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with('<') || matches!(name, "localhost" | "127.0.0.1" | "::1")),
        _ => true,
    }
}

fn guarded(names: &Names, tree: bool, action: Action) -> bool {
    let writes = action == Action::Write;
    let outside = if writes { WRITABLE } else { READABLE };
    let (text, glob) = match names {
        Names::Exact(text) | Names::Below(text) => (text, false),
        Names::Glob(text) => (text, true),
        Names::Unknown(_) => return true,
    };
    let Some(path) = normal(text) else { return true };
    let free = path.starts_with("/work/") || path == "/work" || path.starts_with("/tmp/") || path == "/tmp";
    if !free && !outside.iter().any(|front| path.starts_with(front)) {
        return true;
    }
    let process = path.starts_with("/proc/") && ["/environ", "/root", "/cwd"].iter().any(|part| path.contains(part));
    let repository = path.ends_with("/.git") || path.contains("/.git/");
    if process || repository || SYSTEM_SECRETS.iter().any(|secret| path.starts_with(secret)) {
        return true;
    }
    GUARDED.iter().any(|secret| {
        path == *secret
            || glob && matches(path.as_bytes(), secret.as_bytes())
            || tree && writes && secret.starts_with(&path)
    })
}

/// Without `.` and `..`; `None` if relative.
fn normal(path: &str) -> Option<String> {
    if !path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// Whether a shell pattern may match a path: sure for `*` and `?`, and yes for all brackets and extended patterns.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    pattern.split(|byte| *byte == b'/').count() == text.split(|byte| *byte == b'/').count()
        && std::iter::zip(pattern.split(|byte| *byte == b'/'), text.split(|byte| *byte == b'/')).all(
            |(pattern, name)| {
                (name.first() != Some(&b'.') || !pattern.starts_with(b"*")) && name_matches(pattern, name)
            },
        )
}

fn name_matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'[' | b'(', _)), _) => true,
        (Some((b'*', rest)), _) => {
            name_matches(rest, text) || text.split_first().is_some_and(|(_, tail)| name_matches(pattern, tail))
        }
        (Some((b'?', rest)), Some((_, tail))) => name_matches(rest, tail),
        (Some((b'@' | b'!' | b'+', [b'(', ..])), _) => true,
        (Some((b'\\', rest)), _) => match (rest.split_first(), text.split_first()) {
            (Some((a, rest)), Some((b, tail))) => a == b && name_matches(rest, tail),
            _ => false,
        },
        (Some((a, rest)), Some((b, tail))) => a == b && name_matches(rest, tail),
        _ => false,
    }
}

/// The commands of the data file with their line numbers; `⏎` in a line stands for a line feed.
fn commands(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with("# "))
        .map(|(index, line)| (index + 1, line.replace('⏎', "\n")))
}

#[test]
fn no_trick_looks_harmless() {
    let text = include_str!("data/bypasses.txt");
    let mut slipped = Vec::new();
    for (line, command) in commands(text) {
        if passes_in_silence(&analysis(&command)) {
            slipped.push(format!("line {line}: {command}"));
        }
    }
    assert!(slipped.is_empty(), "{} commands slip through:\n{}", slipped.len(), slipped.join("\n"));
    assert!(commands(text).count() > 400);
}

/// The measure itself can tell the two apart.
#[test]
fn ordinary_work_is_harmless() {
    for command in [
        "ls -la",
        "cat README.md | grep -n foo > /tmp/out.txt",
        "git status && git diff",
        "find . -name '*.rs' | xargs wc -l",
        "cat /etc/hosts",
        "for f in src/*.rs; do head -3 \"$f\"; done",
        "FOO=1 sed -n 1,5p src/main.rs",
    ] {
        assert!(passes_in_silence(&analysis(command)), "{command}");
    }
    for command in ["cat .en[v]", "cat ~/.ssh/id_rsa", "rm x", "sudo ls", "./x", "curl https://example.com"] {
        assert!(!passes_in_silence(&analysis(command)), "{command}");
    }
}
