//! Agents that keep a shell: what one call leaves in it counts for the next, through the hook itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic like tests"
)]

mod support;

use serde_json::{Value, json};
use support::{Answered, World};

/// What Copilot is told about a command in one of its shells, and why.
fn copilot(world: &World, session: &str, shell: Option<&str>, command: &str) -> (Answered, String) {
    let mut arguments = json!({ "command": command, "description": "x" });
    if let Some(shell) = shell {
        arguments["sessionId"] = shell.into();
    }
    tell(world, "copilot", copilot_payload(world, session, "bash", &arguments))
}

fn copilot_payload(world: &World, session: &str, tool: &str, arguments: &Value) -> Value {
    json!({"sessionId": session, "timestamp": 1_794_768_607_435_u64, "cwd": world.project(), "toolName": tool, "toolArgs": arguments})
}

fn tell(world: &World, agent: &str, payload: Value) -> (Answered, String) {
    let payload = payload.to_string().into_bytes();
    let told = support::feed(world.hook(agent, &[]), &payload);
    (support::answered(agent, &payload, &told), format!("{}{}", told.stdout, told.stderr))
}

/// Copilot says that a command did run.
fn copilot_ran(world: &World, session: &str, command: &str) {
    let mut payload = copilot_payload(world, session, "bash", &json!({ "command": command, "description": "x" }));
    payload["toolResult"] = json!({ "resultType": "success", "textResultForLlm": "" });
    support::feed(world.hook("copilot", &[]), payload.to_string().as_bytes());
}

#[test]
fn what_a_call_leaves_in_a_shell_counts_for_the_next() {
    let (allowed, asked) = (Answered::Allowed, Answered::Asked);
    let sequences: &[&[(&str, Answered)]] = &[
        &[("ls", allowed), ("export PATH=./evil:$PATH", asked), ("ls", asked), ("cat README.md", asked)],
        &[("alias ls='rm -rf'", allowed), ("cat README.md", allowed), ("ls", asked)],
        &[("ls() { cat README.md; }", allowed), ("ls", asked)],
        &[("export GIT_PAGER=./evil", asked), ("git log", asked)],
        &[("cd src", allowed), ("cat main.rs", allowed), ("cat README.md", allowed)],
        &[("cd src", allowed), ("cd ..", allowed), ("cat README.md", allowed), ("ls", allowed)],
        &[
            ("cd src && ls", allowed),
            ("cd ../src && ls", allowed),
            ("cat ../README.md", allowed),
            ("touch x", allowed),
            ("cd / && ls", allowed),
            ("touch x", asked),
            ("cat etc/shadow", Answered::Refused),
        ],
        // from wherever it is now, that leads out of the project
        &[("cd src", allowed), ("cat ../README.md", allowed), ("cat ../../home/.ssh/id_rsa", Answered::Refused)],
        &[("set -e", allowed), ("ls", allowed), ("cat README.md", allowed)],
        &[("export NODE_ENV=test RUST_LOG=debug", allowed), ("ls", allowed), ("git status", allowed)],
        &[("source ./env.sh", asked), ("ls", asked), ("ls", asked)],
    ];
    let world = World::new();
    for (number, sequence) in sequences.iter().enumerate() {
        for (command, expected) in *sequence {
            let (answered, why) = copilot(&world, &format!("session {number}"), None, command);
            assert_eq!(answered, *expected, "{command} of {sequence:?}: {why}");
        }
    }
}

#[test]
fn shells_and_sessions_do_not_mix() {
    let world = World::new();
    assert_eq!(copilot(&world, "one", Some("a"), "alias ls='rm -rf'").0, Answered::Allowed);
    assert_eq!(copilot(&world, "one", Some("a"), "ls").0, Answered::Asked);
    assert_eq!(copilot(&world, "one", Some("b"), "ls").0, Answered::Allowed);
    assert_eq!(copilot(&world, "two", Some("a"), "ls").0, Answered::Allowed);
    // the agent may have given an id to a shell that was asked for without one
    assert_eq!(copilot(&world, "one", None, "alias cat='rm -rf'").0, Answered::Allowed);
    assert_eq!(copilot(&world, "one", Some("c"), "cat README.md").0, Answered::Asked);
}

#[test]
fn a_refused_call_leaves_nothing() {
    let world = World::new();
    let refused = "cat ~/.ssh/id_rsa; alias ls='rm -rf'";
    assert_eq!(copilot(&world, "s", None, refused).0, Answered::Refused);
    assert_eq!(copilot(&world, "s", None, "ls").0, Answered::Allowed);
}

#[test]
fn that_anything_may_have_changed_is_said_until_somebody_went_on() {
    let world = World::new();
    assert_eq!(copilot(&world, "s", None, "source ./env.sh").0, Answered::Asked);
    copilot_ran(&world, "s", "source ./env.sh");
    let (answered, why) = copilot(&world, "s", None, "ls src");
    assert_eq!(answered, Answered::Asked);
    assert!(why.contains("an earlier call may have changed anything in this shell"), "{why}");
    copilot_ran(&world, "s", "ls src");
    assert_eq!(copilot(&world, "s", None, "ls").0, Answered::Allowed);
    assert_eq!(copilot(&world, "s", None, "source ./env.sh").0, Answered::Asked);
    assert_eq!(copilot(&world, "s", None, "ls").0, Answered::Asked);
}

#[test]
fn what_is_typed_into_a_shell_is_not_followed() {
    let world = World::new();
    let typed = copilot_payload(&world, "s", "write_bash", &json!({ "sessionId": "a", "input": "alias ls=rm{enter}" }));
    assert_eq!(tell(&world, "copilot", typed).0, Answered::Asked);
    assert_eq!(copilot(&world, "s", Some("a"), "ls").0, Answered::Asked);
    assert_eq!(copilot(&world, "s", Some("b"), "ls").0, Answered::Allowed);
}

/// What is remembered of the shells of the only session.
fn memory(world: &World) -> std::path::PathBuf {
    let sessions = world.home().join(".local/state/callgate/sessions");
    std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path().join("shells")
}

#[test]
fn damaged_memory_is_no_memory() {
    let world = World::new();
    assert_eq!(copilot(&world, "s", None, "alias ls='rm -rf'").0, Answered::Allowed);
    let file = memory(&world);
    let text = std::fs::read_to_string(&file).unwrap();
    let cut = text.trim_end().len() - 10;
    std::fs::write(&file, &text[..cut]).unwrap();
    assert_eq!(copilot(&world, "s", None, "ls").0, Answered::Asked);
}

#[test]
fn secrets_are_not_kept() {
    let world = World::new();
    copilot(&world, "s", None, "export NAME=ghp_0123456789abcdefghijklmnopqrstuvwxyz0 MY_PASSWORD=hunter22 KEPT=plain");
    let text = std::fs::read_to_string(memory(&world)).unwrap();
    assert!(text.contains("plain") && !text.contains("ghp_") && !text.contains("hunter22"), "{text}");
}

#[test]
fn an_agent_without_a_dialect_names_its_shell_and_others_keep_none() {
    let world = World::new();
    let generic = |shell: Option<&str>, command: &str| {
        let mut payload = json!({"version": 1, "event": "before", "session": "s", "directory": world.project(),
            "workspace": world.project(), "tool": "Bash", "input": {"command": command}});
        if let Some(shell) = shell {
            payload["shell"] = shell.into();
        }
        let bytes = payload.to_string().into_bytes();
        support::feed(world.hook("generic", &[]), &bytes).code
    };
    assert_eq!((generic(Some("1"), "alias ls='rm -rf'"), generic(Some("1"), "ls")), (0, 3));
    // a shell that ends with its command: nobody defines a name there without meaning it
    assert_eq!((generic(None, "alias ls='rm -rf'"), generic(None, "ls")), (3, 0));
    let (allowed, asked) = (Answered::Allowed, Answered::Asked);
    for (agent, expected) in [("cursor", (allowed, asked)), ("claude", (asked, allowed)), ("qwen", (asked, allowed))] {
        let say = |command: &str| {
            let bytes = support::payload(agent, command, "call", &world.project());
            support::answered(agent, &bytes, &support::feed(world.hook(agent, &[]), &bytes))
        };
        assert_eq!((say("alias ls='rm -rf'"), say("ls")), expected, "{agent}");
    }
}
