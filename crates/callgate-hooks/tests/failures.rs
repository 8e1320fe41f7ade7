//! Whatever is wrong with a payload ends in a no that the agent understands.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong by failing")]

mod clients;

use std::path::Path;

use callgate::call::Call;
use callgate::describe::{CallContext, Registry};
use callgate::json::{MAXIMUM_DEPTH, MAXIMUM_SIZE};
use callgate_hooks::{Agent, HookEvent, HookInput, HookRequest, PayloadError};
use callgate_shell::effect::Coverage;
use clients::{Then, then};
use serde_json::{Value, json};

/// A payload before a tool runs that is in order, the fields that must be there, and those that must be of their type.
struct Sound {
    agent: &'static str,
    payload: Value,
    required: &'static [&'static str],
    typed: &'static [&'static str],
    event_field: Option<&'static str>,
}

const COMMON: &[&str] = &["hook_event_name", "session_id", "cwd", "tool_name", "tool_input"];

fn sound() -> Vec<Sound> {
    let common = |event: &str, tool: &str| {
        json!({ "hook_event_name": event, "session_id": "s-1", "cwd": "/home/ada/app", "tool_name": tool,
            "tool_input": { "command": "ls" }, "tool_use_id": "t-1", "permission_mode": "default" })
    };
    let claude_like = |agent, event, tool| Sound {
        agent,
        payload: common(event, tool),
        required: COMMON,
        typed: &["tool_use_id", "permission_mode"],
        event_field: Some("hook_event_name"),
    };
    vec![
        claude_like("claude", "PreToolUse", "Bash"),
        claude_like("codex", "PreToolUse", "Bash"),
        claude_like("gemini", "BeforeTool", "run_shell_command"),
        claude_like("qwen", "PreToolUse", "run_shell_command"),
        claude_like("opencode", "PreToolUse", "bash"),
        Sound {
            agent: "copilot",
            payload: json!({ "sessionId": "s-1", "timestamp": 1, "cwd": "/home/ada/app", "toolName": "bash",
                "toolArgs": { "command": "ls" } }),
            required: &["sessionId", "cwd", "toolName", "toolArgs"],
            typed: &[],
            event_field: None,
        },
        Sound {
            agent: "cursor",
            payload: json!({ "hook_event_name": "preToolUse", "conversation_id": "c-1", "tool_name": "Shell",
                "tool_input": { "command": "ls" }, "tool_use_id": "t-1", "workspace_roots": ["/home/ada/app"] }),
            required: &["hook_event_name", "conversation_id", "tool_name", "tool_input"],
            typed: &["tool_use_id", "workspace_roots"],
            event_field: Some("hook_event_name"),
        },
        Sound {
            agent: "windsurf",
            payload: json!({ "agent_action_name": "pre_run_command", "trajectory_id": "t-1",
                "tool_info": { "command_line": "ls", "cwd": "/home/ada/app" } }),
            required: &["agent_action_name", "trajectory_id", "tool_info"],
            typed: &[],
            event_field: Some("agent_action_name"),
        },
        Sound { agent: "amp", payload: json!({ "cmd": "ls" }), required: &[], typed: &[], event_field: None },
        Sound {
            agent: "goose",
            payload: json!({ "event": "PreToolUse", "session_id": "s-1", "tool_name": "developer__shell",
                "tool_input": { "command": "ls" }, "working_dir": "/home/ada/app", "tool_call_id": "t-1" }),
            required: &["event", "session_id", "tool_name"],
            typed: &["tool_input", "working_dir", "tool_call_id"],
            event_field: Some("event"),
        },
        Sound {
            agent: "generic",
            payload: json!({ "version": 1, "event": "before", "tool": "Bash", "input": { "command": "ls" },
                "session": "s-1", "directory": "/home/ada/app", "workspace": "/home/ada/app", "call_id": "t-1",
                "mode": "x", "server": "fs", "scope": "t", "agent": "a", "subagent": "b" }),
            required: &["version", "event", "tool", "input"],
            typed: &["session", "directory", "workspace", "call_id", "mode", "server", "scope", "agent", "subagent"],
            event_field: Some("event"),
        },
    ]
}

fn agent(name: &str) -> &'static Agent {
    callgate_hooks::find(name).expect("built in")
}

fn read(name: &str, payload: &[u8]) -> Result<HookRequest, PayloadError> {
    agent(name).read(&HookInput {
        environment: &|variable| (variable == "AGENT_TOOL_NAME").then(|| "Bash".to_owned()),
        directory: Some(Path::new("/home/ada/app")),
        ..HookInput::of(payload)
    })
}

fn deciding(agent: &Agent) -> impl Iterator<Item = HookEvent> {
    agent.events().filter(|event| event.decides())
}

/// The payload is refused, and none of the agent's events takes the refusal for anything else.
fn assert_refused(name: &str, payload: &[u8], what: &str) {
    let shown = String::from_utf8_lossy(payload.get(..payload.len().min(200)).unwrap_or_default()).into_owned();
    let Err(error) = read(name, payload) else { panic!("{name}, {what}: taken for sound: {shown}") };
    let output = agent(name).refuse(None, &error.to_string());
    for event in deciding(agent(name)) {
        match then(name, event, &output) {
            Then::Blocked(reason) => assert!(!reason.trim().is_empty(), "{name}, {what}: refused without a reason"),
            other => panic!("{name}, {what}: {} ends in {other:?}", event.name),
        }
    }
}

#[test]
fn the_payloads_that_are_broken_below_are_sound() {
    for Sound { agent, payload, .. } in sound() {
        let incoming = read(agent, payload.to_string().as_bytes()).unwrap_or_else(|error| panic!("{agent}: {error}"));
        assert!(incoming.event.decides(), "{agent}");
    }
}

#[test]
fn every_agent_is_among_them() {
    let names: Vec<&str> = sound().iter().map(|sound| sound.agent).collect();
    for agent in callgate_hooks::all() {
        assert!(names.contains(&agent.name()), "{}", agent.name());
    }
}

#[test]
fn what_is_no_json_object_is_refused() {
    let deep = [vec![b'['; MAXIMUM_DEPTH], vec![b']'; MAXIMUM_DEPTH]].concat();
    let endless = vec![b'['; 1_000_000];
    let large = vec![b' '; MAXIMUM_SIZE + 1];
    let cases: &[(&str, &[u8])] = &[
        ("nothing", b""),
        ("blanks", b" \n"),
        ("broken", b"{not json"),
        ("text", b"rm -rf /"),
        ("null", b"null"),
        ("a number", b"7"),
        ("a list", b"[]"),
        ("a text", b"\"PreToolUse\""),
        ("a NUL", b"\0"),
        ("invalid UTF-8", b"{\"tool_name\":\"\xff\"}"),
        ("nested too deeply", &deep),
        ("never closed", &endless),
        ("too large", &large),
    ];
    for agent in callgate_hooks::all() {
        for (what, payload) in cases {
            assert_refused(agent.name(), payload, what);
        }
    }
}

#[test]
fn a_payload_that_ends_early_is_refused() {
    for Sound { agent, payload, .. } in sound() {
        let whole = payload.to_string();
        for end in 0..whole.len() {
            assert_refused(agent, &whole.as_bytes()[..end], "cut off");
        }
    }
}

#[test]
fn what_stands_around_a_payload_makes_it_refused() {
    for Sound { agent, payload, .. } in sound() {
        let whole = payload.to_string();
        for damaged in [format!("{whole}x"), format!("{whole}{whole}"), format!("\u{feff}{whole}"), format!("x{whole}")]
        {
            assert_refused(agent, damaged.as_bytes(), "more than one document");
        }
        assert!(read(agent, format!(" {whole}\n").as_bytes()).is_ok(), "{agent}: blanks around are none of it");
    }
}

#[test]
fn a_key_given_twice_is_refused_wherever_it_is() {
    for Sound { agent, payload, .. } in sound() {
        let whole = payload.to_string();
        for (key, value) in payload.as_object().expect("an object") {
            let twice = format!("{},{}:{value}}}", whole.trim_end_matches('}'), json!(key));
            let closing = whole.len() - whole.trim_end_matches('}').len();
            if closing == 1 {
                assert_refused(agent, twice.as_bytes(), "a key twice");
            }
            let front = format!("{{{}:{value},{}", json!(key), &whole[1..]);
            assert_refused(agent, front.as_bytes(), "a key twice");
        }
        let inner = whole.replacen("\"ls\"", "\"ls\",\"command\":1,\"command\":2", 1);
        assert_refused(agent, inner.as_bytes(), "a key of the input twice");
    }
}

#[test]
fn a_field_that_is_missing_or_of_another_type_is_refused() {
    let others = [json!(null), json!(7), json!(true), json!([]), json!([1]), json!({ "a": 1 }), json!(""), json!("\0")];
    for Sound { agent, payload, required, typed, .. } in sound() {
        for field in required {
            let mut damaged = payload.clone();
            damaged.as_object_mut().expect("an object").remove(*field);
            assert_refused(agent, damaged.to_string().as_bytes(), &format!("no {field}"));
        }
        for field in required.iter().chain(typed) {
            for other in &others {
                let whole = &payload[field];
                let same_type = std::mem::discriminant(whole) == std::mem::discriminant(other);
                // no value of an optional field, and an empty list of folders, are as good as none
                let as_good = (typed.contains(field) && other.is_null()) || (whole.is_array() && *other == json!([]));
                let empty_is_wrong = required.contains(field) && *other == json!("");
                if as_good || (same_type && !empty_is_wrong) {
                    continue;
                }
                let mut damaged = payload.clone();
                damaged[*field] = other.clone();
                assert_refused(agent, damaged.to_string().as_bytes(), &format!("{field} is {other}"));
            }
        }
    }
}

#[test]
fn a_directory_that_is_not_absolute_is_refused() {
    let cases =
        [("claude", "cwd"), ("codex", "cwd"), ("gemini", "cwd"), ("goose", "working_dir"), ("generic", "directory")];
    for (agent, field) in cases {
        let mut payload = sound().into_iter().find(|sound| sound.agent == agent).expect("listed").payload;
        for directory in ["app", "./", "~", "C:\\app", "\0/app", "/app\0"] {
            payload[field] = directory.into();
            assert_refused(agent, payload.to_string().as_bytes(), directory);
        }
    }
}

#[test]
fn an_event_that_is_not_known_is_refused() {
    for Sound { agent, payload, event_field, .. } in sound() {
        let Some(field) = event_field else { continue };
        let known = payload[field].as_str().expect("an event").to_owned();
        let names =
            ["PreToolUseV2", "", " ", "pretooluse ", &known.to_uppercase(), &format!("{known}\0")].map(str::to_owned);
        for name in names.into_iter().filter(|name| *name != known) {
            let mut damaged = payload.clone();
            damaged[field] = name.clone().into();
            assert_refused(agent, damaged.to_string().as_bytes(), &name);
        }
    }
}

#[test]
fn a_payload_for_another_event_than_the_hooks_is_refused() {
    for Sound { agent: name, payload, event_field, .. } in sound() {
        let payload = payload.to_string();
        let received = HookInput { event: Some("SomethingElse"), ..HookInput::of(payload.as_bytes()) };
        assert!(agent(name).read(&received).is_err(), "{name}, {event_field:?}");
    }
}

#[test]
fn a_version_that_is_not_known_is_refused() {
    let generic = sound().into_iter().find(|sound| sound.agent == "generic").expect("listed");
    for version in [json!(0), json!(2), json!("1"), json!(1.5), json!(-1)] {
        let mut payload = generic.payload.clone();
        payload["version"] = version.clone();
        assert_refused("generic", payload.to_string().as_bytes(), &version.to_string());
    }
}

#[test]
fn amp_without_the_name_of_a_tool_is_refused() {
    for name in [None, Some(String::new())] {
        let received = HookInput { environment: &|_| name.clone(), ..HookInput::of(b"{}") };
        assert_eq!(agent("amp").read(&received), Err(PayloadError::MissingVariable { variable: "AGENT_TOOL_NAME" }));
    }
}

#[test]
fn a_tool_that_nobody_knows_stays_one() {
    let describe = |call: &Call| Registry::default().describe(call, &CallContext::default()).expect("described");
    let fields = [("tool_name", "frobnicate"), ("toolName", "frobnicate"), ("tool", "frobnicate")];
    for Sound { agent, mut payload, .. } in sound() {
        if agent == "amp" || agent == "windsurf" {
            continue;
        }
        let (field, tool) = fields.into_iter().find(|(field, _)| payload.get(field).is_some()).expect("a tool");
        payload[field] = tool.into();
        let incoming = read(agent, payload.to_string().as_bytes()).expect("sound");
        let call = incoming.call().expect("a call");
        assert!(call.tool.name.ends_with("frobnicate"), "{agent}: {}", call.tool);
        assert_eq!(describe(call).description.coverage, Coverage::Partial, "{agent}");
    }
}

#[test]
fn a_servers_tool_never_passes_for_one_of_the_agents_own() {
    // what a server could call itself and its tool so that both together look like a tool that is known
    let cases = [
        ("opencode", "read_file"),
        ("opencode", "write_file"),
        ("opencode", "web_fetch"),
        ("opencode", "mcp__x__read"),
        ("copilot", "read-file"),
        ("gemini", "mcp_read_file"),
        ("goose", "x__read"),
        ("goose", "developer2__shell"),
        ("claude", "mcp__x__Read"),
        ("codex", "mcp__x__Read"),
        ("qwen", "mcp__x__read_file"),
        ("cursor", "MCP:Read"),
    ];
    for (agent, name) in cases {
        let mut payload = sound().into_iter().find(|sound| sound.agent == agent).expect("listed").payload;
        let field = if payload.get("toolName").is_some() { "toolName" } else { "tool_name" };
        payload[field] = name.into();
        let incoming = read(agent, payload.to_string().as_bytes()).expect("sound");
        assert!(incoming.call().expect("a call").tool.server.is_some(), "{agent}: {name}");
    }
}
