//! What an agent's user answers at the agent's own prompt is known from what follows, and counts.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod support;

use serde_json::{Value, json};
use support::{Answered, Told, World, answered, feed, told};

const ASKED: &str = "git push origin main";

fn event(world: &World, name: &str, mode: &str, fields: Value) -> Told {
    let mut payload = json!({"session_id": "s-1", "transcript_path": "/t", "cwd": world.project(), "permission_mode": mode,
        "hook_event_name": name});
    for (key, value) in fields.as_object().expect("fields") {
        payload[key] = value.clone();
    }
    let output = feed(world.hook("claude", &[]), payload.to_string().as_bytes());
    assert_eq!(output.code, 0, "{output:?}");
    output
}

fn shell(command: &str, id: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id})
}

fn before(world: &World, mode: &str, command: &str, id: &str) -> Answered {
    answered("claude", b"", &event(world, "PreToolUse", mode, shell(command, id)))
}

fn ran(world: &World, mode: &str, mut call: Value) {
    call["tool_response"] = json!({"stdout": ""});
    event(world, "PostToolUse", mode, call);
}

/// The log without its housekeeping, one line an entry: kind, and what matters of it.
fn log(world: &World) -> Vec<String> {
    let output = told(world.command(&["audit", "tail", "-n", "100", "--json"]).output().expect("it starts"));
    let entries = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    entries
        .filter_map(|entry| match entry["kind"].as_str().expect("a kind") {
            "tool_attempt" => Some(format!("attempt {}", text(&entry, "decision"))),
            "approval" => Some(format!("approval {} by {}", text(&entry, "outcome"), text(&entry, "by"))),
            "refused" => Some(format!("refused {}", text(&entry, "refusal"))),
            kind @ ("approval_requested" | "finished" | "ran_without_verdict") => Some(kind.to_owned()),
            _ => None,
        })
        .collect()
}

fn stats(world: &World) -> Value {
    let output = told(world.command(&["audit", "stats", "--json"]).output().expect("it starts"));
    serde_json::from_str(&output.stdout).expect("JSON")
}

#[test]
fn a_yes_is_recorded_and_counts_for_the_same_request_in_the_session() {
    let world = World::new();
    assert_eq!(before(&world, "default", ASKED, "toolu_1"), Answered::Asked);
    // Claude Code tells of the call once more when it shows its prompt, without the id
    let mut prompt = shell(ASKED, "");
    prompt.as_object_mut().expect("fields").remove("tool_use_id");
    assert_eq!(event(&world, "PermissionRequest", "default", prompt).stdout, "");
    ran(&world, "default", shell(ASKED, "toolu_1"));
    let first =
        ["attempt ask", "approval_requested", "approval approved_for_session by the user of claude", "finished"];
    assert_eq!(log(&world), first);
    // all entries are about one call
    let calls = told(world.command(&["audit", "tail", "--json"]).output().expect("it starts")).stdout;
    let calls: std::collections::BTreeSet<String> = calls
        .lines()
        .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["call"].as_str()?.to_owned()))
        .collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(before(&world, "default", ASKED, "toolu_2"), Answered::Allowed);
    assert_eq!(log(&world)[4..], ["attempt ask", "approval approved by session"]);
    // another request is another question
    assert_eq!(before(&world, "default", "git push origin next", "toolu_3"), Answered::Asked);
    let stats = stats(&world);
    assert_eq!((&stats["answered"], &stats["approved"], &stats["cached"]), (&json!(1), &json!(1), &json!(1)));
    world.log_is_whole();
}

#[test]
fn a_failed_tool_ran_too() {
    let world = World::new();
    assert_eq!(before(&world, "default", ASKED, "toolu_1"), Answered::Asked);
    let mut call = shell(ASKED, "toolu_1");
    call["error"] = json!("Exit code 1");
    event(&world, "PostToolUseFailure", "default", call);
    assert_eq!(before(&world, "default", ASKED, "toolu_2"), Answered::Allowed);
}

#[test]
fn a_no_is_recorded_and_the_third_attempt_is_not_asked_about() {
    for end in ["Stop", "UserPromptSubmit"] {
        let world = World::new();
        for id in ["toolu_1", "toolu_2"] {
            assert_eq!(before(&world, "default", ASKED, id), Answered::Asked);
            event(&world, end, "default", json!({}));
            // an end is told of more than once
            event(&world, "Stop", "default", json!({}));
        }
        let once = ["attempt ask", "approval_requested", "approval denied by the user of claude", "refused permission"];
        assert_eq!(log(&world), [once, once].concat());
        assert_eq!(before(&world, "default", ASKED, "toolu_3"), Answered::Refused);
        let stats = stats(&world);
        assert_eq!((&stats["answered"], &stats["approved"]), (&json!(2), &json!(0)));
    }
}

#[test]
fn a_turn_of_the_main_agent_says_nothing_about_a_sub_agent() {
    let world = World::new();
    let mut call = shell(ASKED, "toolu_1");
    call["agent_id"] = json!("sub");
    assert_eq!(answered("claude", b"", &event(&world, "PreToolUse", "default", call.clone())), Answered::Asked);
    event(&world, "Stop", "default", json!({}));
    assert_eq!(log(&world), ["attempt ask", "approval_requested"]);
    ran(&world, "default", call);
    assert_eq!(before(&world, "default", ASKED, "toolu_2"), Answered::Allowed);
}

#[test]
fn in_automatic_modes_nobody_answered_and_nothing_is_learned() {
    let modes = ["acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto", "a new one"];
    for (asked_in, ran_in) in
        modes.iter().map(|mode| (*mode, *mode)).chain([("default", "bypassPermissions"), ("auto", "default")])
    {
        let world = World::new();
        assert_eq!(before(&world, asked_in, ASKED, "toolu_1"), Answered::Asked);
        ran(&world, ran_in, shell(ASKED, "toolu_1"));
        assert_eq!(log(&world)[2..], ["approval failed by nobody", "finished"], "{asked_in} {ran_in}");
        assert_eq!(before(&world, "default", ASKED, "toolu_2"), Answered::Asked, "{asked_in} {ran_in}");
        let stats = stats(&world);
        assert_eq!((&stats["answered"], &stats["unanswered"]), (&json!(0), &json!(1)));
    }
}

#[test]
fn only_the_same_call_with_the_same_input_in_the_same_session_is_an_answer() {
    let changed: [fn(&mut Value); 4] = [
        |call| call["tool_use_id"] = json!("toolu_9"),
        |call| call["tool_input"]["command"] = json!("git push origin main --force"),
        |call| call["session_id"] = json!("s-2"),
        |call| drop(call.as_object_mut().expect("fields").remove("tool_use_id")),
    ];
    for change in changed {
        let world = World::new();
        assert_eq!(before(&world, "default", ASKED, "toolu_1"), Answered::Asked);
        let mut call = shell(ASKED, "toolu_1");
        change(&mut call);
        ran(&world, "default", call.clone());
        assert_eq!(before(&world, "default", ASKED, "toolu_2"), Answered::Asked, "{call}");
        assert!(!log(&world).iter().any(|entry| entry.contains("approved")), "{call}");
    }
    // a call that was never asked about teaches nothing
    let world = World::new();
    ran(&world, "default", shell(ASKED, "toolu_1"));
    assert_eq!(log(&world), ["ran_without_verdict"]);
    assert_eq!(before(&world, "default", ASKED, "toolu_1"), Answered::Asked);
}

#[test]
fn what_only_a_person_can_answer_is_asked_each_time_and_so_is_everything_if_the_policy_says_so() {
    let world = World::new();
    assert_eq!(before(&world, "default", "rm -r $file", "toolu_1"), Answered::Asked);
    ran(&world, "default", shell("rm -r $file", "toolu_1"));
    assert_eq!(log(&world)[2], "approval approved by the user of claude");
    assert_eq!(before(&world, "default", "rm -r $file", "toolu_2"), Answered::Asked);
    // an untrusted file can tighten this
    std::fs::write(
        world.project().join("callgate.yaml"),
        "version: 1\nextends: standard\napprovals: {agent_answers: once}\n",
    )
    .expect("a file");
    assert_eq!(before(&world, "default", ASKED, "toolu_3"), Answered::Asked);
    ran(&world, "default", shell(ASKED, "toolu_3"));
    assert_eq!(before(&world, "default", ASKED, "toolu_4"), Answered::Asked);
}

#[test]
fn suggest_learns_from_the_prompts_of_the_agent() {
    let world = World::new();
    for (session, branch) in [("s-1", "one"), ("s-2", "two"), ("s-3", "three")] {
        let mut call = shell(&format!("git push origin {branch}"), "toolu_1");
        call["session_id"] = json!(session);
        assert_eq!(answered("claude", b"", &event(&world, "PreToolUse", "default", call.clone())), Answered::Asked);
        ran(&world, "default", call);
    }
    let output = told(world.command(&["policy", "suggest"]).output().expect("it starts"));
    assert!(output.stdout.contains("# saves 3 prompts") && output.stdout.contains("git push **"), "{output:?}");
}

#[test]
fn rules_of_the_user_in_the_agent_are_named_and_do_not_decide() {
    let world = World::new();
    let reason = |world: &World, command: &str| {
        let said = event(world, "PreToolUse", "default", shell(command, command));
        assert_eq!(answered("claude", b"", &said), Answered::Asked, "{said:?}");
        let answer: Value = serde_json::from_str(&said.stdout).expect("JSON");
        answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().expect("a reason").to_owned()
    };
    let named = "rules in Claude Code allow it, and callgate decides (your user can run: callgate import claude)";
    assert!(!reason(&world, ASKED).contains(named));
    let settings = world.home().join(".claude");
    std::fs::create_dir_all(&settings).expect("a directory");
    let rules = r#"{"permissions": {"allow": ["Bash(git push:*)"]}}"#;
    std::fs::write(settings.join("settings.json"), rules).expect("a file");
    assert!(reason(&world, "git push origin other").contains(named));
    assert!(!reason(&world, "rm notes.txt").contains(named));
}
