//! The `approvals:` section says who answers questions, in hooks and for `check --ask` alike.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what is missing by failing")]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use support::{Answered, World, answered, feed, told};

const ASKED: &str = "git push origin main";

fn policy(world: &World, approvals: &str) {
    let directory = world.home().join(".config/callgate");
    std::fs::create_dir_all(&directory).expect("a directory");
    let text = format!("version: 1\nextends: standard\napprovals:\n{approvals}");
    std::fs::write(directory.join("callgate.yaml"), text).expect("a file");
}

/// How a hook without a prompt, one with a prompt and `check --ask` answer.
fn answers(world: &World) -> (Answered, Answered, i32) {
    let call = |agent: &str| {
        let payload = support::payload(agent, ASKED, "c-1", &world.project());
        answered(agent, &payload, &feed(world.hook(agent, &[]), &payload))
    };
    let check = told(world.command(&["check", "--ask", "--sandbox", "none", ASKED]).output().expect("it starts"));
    (call("codex"), call("claude"), check.code)
}

fn program(world: &World, name: &str, text: &str) -> String {
    let path = world.home().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn rules_answer_before_anybody_is_asked_and_a_default_instead() {
    let world = World::new();
    policy(&world, "  rules:\n    - {tools: [Bash], commands: [\"git push **\"], decision: approved}\n");
    assert_eq!(answers(&world), (Answered::Allowed, Answered::Allowed, 0));
    policy(&world, "  default: denied\n");
    assert_eq!(answers(&world), (Answered::Refused, Answered::Refused, 11));
    // without a rule that matches and a default, people are asked
    policy(&world, "  rules:\n    - {tools: [Bash], commands: [\"make\"], decision: approved}\n");
    assert_eq!(answers(&world), (Answered::Refused, Answered::Asked, 11));
}

#[test]
fn those_who_are_named_are_asked_in_their_order() {
    let world = World::new();
    let yes = program(&world, "yes", "cat > /dev/null; echo '{\"decision\": \"approved\"}'");
    let slow = program(&world, "slow", "sleep 60");
    policy(
        &world,
        &format!("  ask:\n    - watch\n    - {{command: [{slow}], seconds: 1}}\n    - {{command: [{yes}]}}\n"),
    );
    assert_eq!(answers(&world), (Answered::Allowed, Answered::Allowed, 0));
    policy(&world, &format!("  ask:\n    - agent\n    - {{command: [{yes}]}}\n"));
    assert_eq!(answers(&world), (Answered::Allowed, Answered::Asked, 0));
    policy(&world, "  ask: [{command: [/nonexistent]}]\n");
    assert_eq!(answers(&world), (Answered::Refused, Answered::Refused, 11));
}

#[test]
fn a_project_that_is_not_trusted_names_nobody() {
    let world = World::new();
    let yes = program(&world, "yes", "cat > /dev/null; echo '{\"decision\": \"approved\"}'");
    let text = format!("version: 1\nextends: standard\napprovals:\n  ask: [{{command: [{yes}]}}]\n");
    std::fs::write(world.project().join("callgate.yaml"), text).expect("a file");
    assert_eq!(answers(&world), (Answered::Refused, Answered::Asked, 11));
}
