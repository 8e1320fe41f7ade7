//! `callgate run --again`: the same call with exactly what was held back of it, after a yes at the terminal.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod terminal;
mod world;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use callgate_audit::entry::{EntryBody, LogEntry};
use callgate_audit::read::Entries;
use serde_json::Value;
use terminal::OnTerminal;
use world::World;

fn works() -> bool {
    callgate_sandbox::choose(&callgate::fence::Protection::ALL, None).is_ok()
}

/// A project with a script, and a directory outside that may be read. It is not in a temporary directory: contained calls have their own.
fn world(script: &str) -> (World, tempfile::TempDir) {
    let world = World::new();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let policy = format!("extends: standard\nboundary: {{readable: ['@system', '{}']}}\n", outside.path().display());
    let config = world.home().join(".config/callgate");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("callgate.yaml"), policy).unwrap();
    std::fs::create_dir_all(world.project().join(".git/hooks")).unwrap();
    std::fs::create_dir_all(world.project().join(".claude")).unwrap();
    let path = world.project().join("try.sh");
    std::fs::write(&path, script.replace("OUTSIDE", outside.path().to_str().unwrap())).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    (world, outside)
}

/// `callgate run --again` at a terminal of its own, where somebody answers.
fn again(world: &World, id: &str, answer: &str) -> (i32, String) {
    let command = format!("{} run --again {id}", env!("CARGO_BIN_EXE_callgate"));
    let base = world.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir("/").env_clear();
    script.envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is installed");
    let (mut shown, mut byte) = (Vec::new(), [0_u8]);
    let mut output = child.stdout.take().unwrap();
    while !shown.ends_with(b"[n]o? ") && output.read(&mut byte).unwrap() == 1 {
        shown.push(byte[0]);
    }
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(answer.as_bytes());
    output.read_to_end(&mut shown).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    (code, String::from_utf8_lossy(&shown).replace("\r\n", "\n"))
}

/// The entries of the log.
fn log(world: &World) -> Vec<LogEntry> {
    let directory = world.home().join(".local/state/callgate/audit");
    Entries::open(&directory).unwrap().map(|line| line.unwrap().entry).collect()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn a_yes_opens_exactly_what_was_held_back() {
    if !works() {
        return;
    }
    let (world, outside) = world(
        "#!/bin/bash\necho x > .git/hooks/pre-commit\necho y > OUTSIDE/out\necho z > .claude/settings.json\necho s > .envrc\n\
         timeout 1 bash -c 'echo > /dev/tcp/192.0.2.1/9'\n[ -n \"$(ls .git/hooks)\" ] && echo w > .git/hooks/post-commit\nexit 0\n",
    );
    let hook = world.project().join(".git/hooks/pre-commit");
    let out = outside.path().join("out");
    let (code, _, error) = world.run(&["run", "--", "./try.sh"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("`callgate run --again last` asks you and lets it through"), "{error}");
    assert!(!exists(&hook) && !exists(&out));

    // without a terminal nobody says yes, and a no is one
    let (code, _, error) = world.run(&["run", "--again", "last"]);
    assert!(code == 125 && error.contains("human_required"), "{code} {error}");
    let (code, shown) = again(&world, "last", "n\n");
    assert!(code == 125 && shown.contains("the answer was no"), "{shown}");
    assert!(!exists(&hook) && !exists(&out));

    let (code, shown) = again(&world, "last", "y\n");
    assert_eq!(code, 0, "{shown}");
    let project = world.project().canonicalize().unwrap();
    for line in [
        format!("  + write {}/.git/hooks/pre-commit", project.display()),
        format!("  + write {}", out.display()),
        "  + connect 192.0.2.1:9".to_owned(),
        format!("  - not write {}/.claude/settings.json: contained calls never", project.display()),
        format!("  - not write {}/.envrc: something outside runs", project.display()),
    ] {
        assert!(shown.contains(&line), "{line}\n{shown}");
    }
    assert_eq!(std::fs::read_to_string(&hook).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "y\n");
    for closed in [".claude/settings.json", ".envrc", ".git/hooks/post-commit"] {
        assert!(!exists(&world.project().join(closed)), "{closed}");
    }
    // what was not held back the first time is held back now, and only that is asked about next
    let (_, shown) = again(&world, "last", "n\n");
    assert!(shown.contains("+ write") && shown.contains("post-commit") && !shown.contains("+ connect"), "{shown}");
    assert!(!shown.contains("pre-commit"), "{shown}");

    // the second call is one of its own, and names the first
    let entries = log(&world);
    let attempts: Vec<(&str, &Value)> = entries
        .iter()
        .filter_map(|entry| match &entry.record.body {
            EntryBody::ToolAttempt(attempt) => Some((entry.record.call.as_deref()?, &attempt.input)),
            _ => None,
        })
        .collect();
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    let named = attempts[1].1["description"].as_str();
    assert!(named == Some(&format!("callgate run --again {}", attempts[0].0)), "{attempts:?}");
    assert_ne!(attempts[0].0, attempts[1].0);
}

#[test]
fn what_cannot_run_again_is_said_before_anybody_is_asked() {
    if !works() {
        return;
    }
    let (world, _outside) = world("#!/bin/bash\necho z > .claude/settings.json\nln -s /etc .vscode\nexit 0\n");
    let (code, _, error) = world.run(&["run", "--again", "last"]);
    assert!(code == 2 && error.contains("there is no audit log"), "{code} {error}");
    assert_eq!(world.run(&["run", "--", "ls"]).0, 0);
    let (code, _, error) = world.run(&["run", "--again", "last"]);
    assert!(code == 2 && error.contains("no call of which something was held back"), "{code} {error}");
    assert_eq!(world.run(&["run", "--again", "nobody"]).0, 2);
    assert_eq!(world.run(&["run", "--", "./try.sh"]).0, 0);
    let settings = "- not write";
    let (code, shown) = again(&world, "last", "n\n");
    assert!(code == 125 && shown.contains(settings) && shown.contains("+ write"), "{code} {shown}");
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let command = format!("./try.sh {secret}");
    let (code, _, error) = world.run(&["run", "--shell", &command]);
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = world.run(&["run", "--again", "last"]);
    assert!(code == 2 && error.contains("without its secrets"), "{code} {error}");
    assert_eq!(world.run(&["run", "--again", "last", "--", "ls"]).0, 2, "not with another command");
}

#[test]
fn a_weaker_backend_runs_only_what_a_trusted_file_says_less_is_enough_for() {
    let (world, outside) = world("#!/bin/bash\necho in > inside\necho out > OUTSIDE/out\nexit 0\n");
    let run = || world.run(&["run", "--backend", "landlock", "--", "./try.sh"]);
    let rule = "rules:\n  - {name: tried, commands: ['./try.sh **'], action: contain, profile: less}\n";
    let user = |requires: &str| {
        let text = format!("extends: standard\nsandbox: {{profiles: {{less: {{requires: [{requires}]}}}}}}\n{rule}");
        std::fs::write(world.home().join(".config/callgate/callgate.yaml"), text).unwrap();
    };
    user("writes, reads");
    let (code, _, error) = run();
    assert!(code == 125 && error.contains("sandbox_denied") && error.contains("cannot hold reads"), "{code} {error}");

    // a project's file that nobody trusts does not say that less is enough
    let text = format!("sandbox: {{profiles: {{less: {{requires: [writes]}}}}}}\n{rule}");
    std::fs::write(world.project().join("callgate.yaml"), text).unwrap();
    std::fs::write(world.home().join(".config/callgate/callgate.yaml"), "extends: standard\n").unwrap();
    assert_eq!(run().0, 125);
    assert!(!exists(&world.project().join("inside")));
    std::fs::remove_file(world.project().join("callgate.yaml")).unwrap();

    user("writes, protected_names, kernel");
    // where this machine has it
    if world.run(&["doctor"]).1.contains("\nlandlock    works") {
        let (code, _, error) = run();
        assert_eq!(code, 0, "{error}");
        assert!(exists(&world.project().join("inside")) && !exists(&outside.path().join("out")), "{error}");
    }
}

#[test]
fn the_question_shows_a_long_command_in_full_on_a_narrow_screen() {
    if !works() {
        return;
    }
    let (world, _outside) = world("#!/bin/bash\necho x > .git/hooks/pre-commit\nexit 0\n");
    let long: String = (0..8).map(|number| format!("part {number}, ")).collect();
    // the log has longer ones only in part, and those do not run again
    let argument = format!("{long}\nin: /home\u{202e}the end");
    assert_eq!(world.run(&["run", "--", "./try.sh", &argument]).0, 0);
    let mut terminal = OnTerminal::new(&world.command(&[]), 40, "run --again last");
    let shown = terminal.shown_until("[y]es or [n]o? ");
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    let (text, _) = shown.split_once("\n\nwith this").unwrap_or_else(|| panic!("{shown}"));
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    let command: String =
        text.lines().filter_map(|line| line.trim_start().strip_prefix(['│', '┆'])?.strip_prefix(' ')).collect();
    assert!(command.contains(&long), "{command}");
    assert!(command.contains("\\u{202e}the end"), "{command}");
    assert!(!text.contains("\n    in: /home "), "{text}");
    terminal.types("n\n");
    assert_eq!(terminal.ends().0, 125);
}
