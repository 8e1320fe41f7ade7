//! Any bytes in, a defined answer out; any answer out, what was meant at the other end.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong by failing")]

mod clients;

use std::path::Path;

use callgate_hooks::{Agent, HookAnswer, HookEvent, HookEventKind, HookInput, HookOutput};
use clients::{Then, then};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn received<'a>(payload: &'a [u8], event: Option<&'a str>) -> HookInput<'a> {
    HookInput {
        environment: &|variable| (variable == "AGENT_TOOL_NAME").then(|| "Bash".to_owned()),
        directory: Some(Path::new("/home/ada/app")),
        event,
        ..HookInput::of(payload)
    }
}

/// The names of fields and events that mean something to some agent, and values that may be right or wrong for them.
fn field() -> impl Strategy<Value = String> {
    let names = vec![
        "hook_event_name",
        "session_id",
        "cwd",
        "tool_name",
        "tool_input",
        "tool_use_id",
        "tool_response",
        "mcp_server",
        "mcp_context",
        "sessionId",
        "toolName",
        "toolArgs",
        "toolResult",
        "error",
        "conversation_id",
        "workspace_roots",
        "command",
        "file_path",
        "attachments",
        "agent_action_name",
        "trajectory_id",
        "tool_info",
        "event",
        "working_dir",
        "version",
        "tool",
        "server",
        "input",
        "outcome",
        "directory",
    ];
    proptest::sample::select(names).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let events: Vec<Value> =
        callgate_hooks::all().iter().flat_map(|agent| agent.events()).map(|event| event.name.into()).collect();
    let leaf = prop_oneof![
        proptest::sample::select(events),
        proptest::sample::select(vec![json!("/home/ada/app"), json!("Bash"), json!(1), json!(null), json!("bash -i")]),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((field(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn answer() -> impl Strategy<Value = Option<HookAnswer>> {
    let text = prop_oneof!["", "[ \n\t]{1,4}", ".{1,40}", "\\PC{1,40}", "(?s).{0,3000}"];
    proptest::option::of(prop_oneof![
        (proptest::option::of(value()), proptest::option::of(text.clone()))
            .prop_map(|(rewritten, note)| HookAnswer::Allow { rewritten, note }),
        text.clone().prop_map(|reason| HookAnswer::Deny { reason }),
        text.prop_map(|reason| HookAnswer::Ask { reason }),
    ])
}

/// Standard output holds one line of JSON or nothing, standard error one line or nothing.
fn assert_printable(agent: &Agent, output: &HookOutput) {
    let one_document = output.stdout.is_empty() || serde_json::from_str::<Value>(&output.stdout).is_ok();
    assert!(one_document, "{}: {}", agent.name(), output.stdout);
    for text in [&output.stdout, &output.stderr] {
        let line = text.strip_suffix('\n').unwrap_or(text);
        assert!(!line.contains(|character: char| character.is_ascii_control() && character != '\u{7f}'), "{line:?}");
    }
    assert!(!output.stderr.trim_end_matches('\n').contains(char::is_control), "{:?}", output.stderr);
}

/// What an agent must do with an answer to an event that decides.
fn meant(event: HookEvent, answer: Option<&HookAnswer>) -> &'static str {
    match answer {
        Some(HookAnswer::Allow { rewritten: None, .. }) => "runs",
        Some(HookAnswer::Allow { rewritten: Some(input), .. }) if event.can_rewrite() && input.is_object() => {
            "runs changed"
        }
        Some(HookAnswer::Ask { .. }) if event.can_ask() => "asks",
        None if event.kind == HookEventKind::Permission && event.can_ask() => "asks",
        Some(HookAnswer::Allow { .. } | HookAnswer::Ask { .. } | HookAnswer::Deny { .. }) | None => "blocked",
    }
}

fn assert_meant(agent: &Agent, event: HookEvent, answer: Option<&HookAnswer>) {
    let output = agent.write(event, answer);
    assert_printable(agent, &output);
    let then = then(agent.name(), event, &output);
    let done = match &then {
        Then::Runs => "runs",
        Then::RunsWith(input) => {
            let Some(HookAnswer::Allow { rewritten: Some(meant), .. }) = answer else {
                panic!("{}: {then:?}", agent.name())
            };
            assert_eq!(input, meant);
            "runs changed"
        }
        Then::Blocked(reason) => {
            let line = reason.strip_suffix('\n').unwrap_or(reason);
            let bounded = !line.trim().is_empty() && line.chars().count() < 2_100;
            assert!(bounded && !line.contains(char::is_control), "{}: {reason:?}", agent.name());
            "blocked"
        }
        Then::Asks => "asks",
        Then::Unclear(why) => why,
    };
    assert_eq!(done, meant(event, answer), "{} {} {answer:?} {output:?}", agent.name(), event.name);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_answer_is_understood_as_it_was_meant(answer in answer()) {
        for agent in callgate_hooks::all() {
            for event in agent.events() {
                if event.decides() {
                    assert_meant(agent, event, answer.as_ref());
                } else {
                    assert_printable(agent, &agent.write(event, answer.as_ref()));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for agent in callgate_hooks::all() {
            answered(agent, &received(&bytes, None));
        }
    }

    #[test]
    fn any_object_is_answered(
        entries in proptest::collection::vec((field(), value()), 0..12),
        event in proptest::option::of(Just("preToolUse")),
    ) {
        let payload = Value::Object(entries.into_iter().collect()).to_string();
        for agent in callgate_hooks::all() {
            answered(agent, &received(payload.as_bytes(), event));
        }
    }

    #[test]
    fn a_damaged_payload_is_answered(place in any::<proptest::sample::Index>(), byte in any::<u8>(), which in any::<proptest::sample::Index>()) {
        let payloads = [
            r#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
            r#"{"sessionId":"s","cwd":"/w","toolName":"bash","toolArgs":{"command":"ls"}}"#,
            r#"{"agent_action_name":"pre_run_command","trajectory_id":"t","tool_info":{"command_line":"ls","cwd":"/w"}}"#,
            r#"{"version":1,"event":"before","tool":"Bash","input":{"command":"ls"}}"#,
        ];
        let mut bytes = which.get(&payloads).as_bytes().to_vec();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        for agent in callgate_hooks::all() {
            answered(agent, &received(&bytes, None));
        }
    }
}

/// What cannot be read is blocked; what can be read and is denied is blocked too.
fn answered(agent: &Agent, received: &HookInput<'_>) {
    match agent.read(received) {
        Ok(incoming) => {
            assert!(agent.events().any(|event| (event.name, event.kind) == (incoming.event.name, incoming.event.kind)));
            let output = agent.refuse(Some(incoming.event), "no");
            assert_printable(agent, &output);
            if incoming.event.decides() {
                assert!(incoming.call().is_some_and(|call| call.input.is_object()));
                assert!(matches!(then(agent.name(), incoming.event, &output), Then::Blocked(_)));
            }
        }
        Err(error) => {
            let output = agent.refuse(None, &error.to_string());
            assert_printable(agent, &output);
            for event in agent.events().filter(|event| event.decides()) {
                assert!(matches!(then(agent.name(), event, &output), Then::Blocked(_)), "{} {error}", agent.name());
            }
        }
    }
}
