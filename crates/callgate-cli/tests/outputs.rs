//! Standard output that is closed, full, or read by nobody: callgate says so, and nobody takes its silence for a yes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what is missing by failing")]

mod world;

use std::process::{Command, Stdio};

use serde_json::json;
use world::{World, told};

/// Commands that answer something.
const COMMANDS: &[&[&str]] = &[
    &["check", "ls"],
    &["check", "--json", "rm x"],
    &["explain", "ls"],
    &["policy", "show"],
    &["policy", "lint"],
    &["policy", "test"],
    &["policy", "schema"],
    &["status"],
    &["status", "--json"],
    &["doctor"],
    &["approvals", "list"],
    &["approvals", "list", "--json"],
    &["grant", "add", "Bash", "--any"],
    &["grant", "list"],
    &["session", "show"],
    &["session", "auto", "s", "--all"],
    &["audit", "tail"],
    &["audit", "tail", "--json"],
    &["audit", "query"],
    &["audit", "stats"],
    &["audit", "verify"],
    &["audit", "export"],
    &["audit", "checkpoint"],
    &["init", "--dry-run"],
    &["install"],
    &["install", "--json"],
    &["install", "claude", "--dry-run"],
    &["suggest"],
    &["policy", "suggest"],
    &["ps"],
    &["completions", "bash"],
    &["manual"],
    &["help"],
    &["--version"],
    &["check", "--help"],
    &["demo"],
];

/// A world whose log has calls, and the payload of a hook.
fn world() -> (World, Vec<u8>) {
    let world = World::new();
    let payload = json!({
        "session_id": "s", "cwd": world.project(), "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": "ls" }, "tool_use_id": "t", "permission_mode": "default",
    });
    let payload = payload.to_string().into_bytes();
    assert_eq!(world.with_input(&["hook", "claude"], &payload).0, 0);
    (world, payload)
}

/// The command behind a shell that closes standard output.
fn closed(world: &World, arguments: &[&str], redirections: &str) -> Command {
    let base = world.command(arguments);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("exec \"$0\" \"$@\" {redirections}")]).arg(base.get_program()).args(base.get_args());
    shell.env_clear().envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(world.project()).stdin(Stdio::null());
    shell
}

#[test]
fn a_closed_output_is_an_error_for_every_command() {
    let (world, payload) = world();
    for arguments in COMMANDS {
        let (code, _, error) = told(closed(&world, arguments, ">&-").output().expect("it starts"));
        assert_eq!((code, error.contains("standard output is closed")), (2, true), "{arguments:?}: {error}");
        assert_eq!(told(closed(&world, arguments, ">&- 2>&-").output().expect("it starts")).0, 2, "{arguments:?}");
    }
    assert_eq!(world.run(&["grant", "list"]).1, "no outstanding grants\n", "nothing was done unseen");
    for agent in ["claude", "codex", "gemini", "copilot", "cursor", "opencode", "qwen", "windsurf", "amp", "goose"] {
        world.write("payload", &String::from_utf8_lossy(&payload));
        let hook = closed(&world, &["hook", agent], "<payload >&-").output().expect("it starts");
        let (code, _, error) = told(hook);
        assert_eq!((code, error.contains("standard output is closed")), (2, true), "{agent}: {error}");
    }
    // a command's output is its own
    assert_eq!(told(closed(&world, &["run", "--", "true"], ">&-").output().expect("it starts")).0, 0);
    // no output wanted is not the same as none possible
    assert_eq!(told(world.command(&["check", "ls"]).stdout(Stdio::null()).output().expect("it starts")).0, 0);
}

#[test]
fn a_full_device_is_an_error_and_a_reader_that_left_is_none_to_talk_about() {
    let (world, payload) = world();
    for arguments in COMMANDS {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let (code, _, error) = told(world.command(arguments).stdout(full).output().expect("it starts"));
        assert_eq!((code, error.contains("No space left on device")), (2, true), "{arguments:?}: {error}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let (_, _, error) = told(world.command(arguments).stdout(writer).output().expect("it starts"));
        assert!(!error.contains("panicked") && !error.contains("pipe"), "{arguments:?}: {error}");
    }
    world.write("payload", &String::from_utf8_lossy(&payload));
    let mut hook = closed(&world, &["hook", "claude"], "< payload > /dev/full");
    let (code, _, error) = told(hook.output().expect("it starts"));
    assert_eq!((code, error.contains("could not print its answer")), (2, true), "{error}");
}
