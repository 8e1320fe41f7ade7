//! Payloads of real shape and what becomes of them: `fixtures/AGENT/*.json`.
//!
//! Each file holds a payload, what it is understood as, and what is answered to every verdict. After a change that is meant,
//! `CALLGATE_WRITE_FIXTURES=1 cargo test -p callgate-hooks --test dialects` writes the second and third anew; read the difference.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong by failing")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use callgate_hooks::{Agent, CallOutcome, HookAnswer, HookDetails, HookInput, HookOutput, HookRequest};
use serde_json::{Map, Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixtures(agent: &Agent) -> Vec<PathBuf> {
    let folder = folder().join(agent.name());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    paths.sort();
    paths
}

/// What is kept of an event, without what is not there.
fn understood(incoming: &HookRequest) -> Value {
    let call = incoming.call();
    let (kind, outcome, result) = match &incoming.details {
        HookDetails::Before(_) => ("before", None, None),
        HookDetails::Permission(_) => ("permission", None, None),
        HookDetails::After(after) => {
            let outcome = match after.outcome {
                CallOutcome::Succeeded => "succeeded",
                CallOutcome::Failed => "failed",
                CallOutcome::Unknown => "unknown",
            };
            ("after", Some(outcome), after.result.clone())
        }
        HookDetails::SessionStart => ("session_start", None, None),
        HookDetails::TurnEnd => ("turn_end", None, None),
        HookDetails::SessionEnd => ("session_end", None, None),
        HookDetails::Notice => ("notice", None, None),
    };
    if let Some(call) = call {
        assert_eq!(call.origin, incoming.origin, "a call comes from where its event comes from");
    }
    let entries = json!({
        "event": incoming.event.name,
        "kind": kind,
        "tool": call.map(|call| call.tool.to_string()),
        "input": call.map(|call| call.input.clone()),
        "agent": incoming.origin.agent,
        "session": incoming.origin.session,
        "scope": incoming.origin.scope,
        "directory": incoming.origin.directory,
        "workspace": incoming.origin.workspace,
        "directory_moves": incoming.directory_moves,
        "call_id": incoming.call_id,
        "mode": incoming.mode,
        "subagent": incoming.subagent,
        "server_source": incoming.server_source,
        "unseen_input": incoming.unseen_input,
        "shell": incoming.shell,
        "outcome": outcome,
        "result": result,
    });
    let Value::Object(entries) = entries else { unreachable!() };
    Value::Object(entries.into_iter().filter(|(_, value)| !value.is_null() && *value != false).collect())
}

fn shown(output: &HookOutput) -> Value {
    let mut entries = Map::new();
    if output.code != 0 {
        entries.insert("exit".into(), output.code.into());
    }
    if !output.stdout.is_empty() {
        entries.insert("stdout".into(), serde_json::from_str(&output.stdout).expect("standard output is JSON"));
    }
    if !output.stderr.is_empty() {
        entries.insert("stderr".into(), output.stderr.trim_end().into());
    }
    Value::Object(entries)
}

fn answered(agent: &Agent, incoming: &HookRequest) -> Value {
    let note = HookAnswer::Allow { rewritten: None, note: Some("runs without network".into()) };
    let answers = [
        ("allow", Some(HookAnswer::allow())),
        ("allow with a note", Some(note)),
        ("rewrite", Some(HookAnswer::rewrite(json!({ "command": "true" })))),
        ("deny", Some(HookAnswer::deny("reads a key; read the public one"))),
        ("ask", Some(HookAnswer::ask("sends a mail"))),
        ("silence", None),
    ];
    answers
        .iter()
        .map(|(name, answer)| ((*name).to_owned(), shown(&agent.write(incoming.event, answer.as_ref()))))
        .collect()
}

fn check(agent: &Agent, path: &Path, write: bool) {
    let name = path.display();
    let text = std::fs::read(path).expect("a fixture");
    let mut fixture: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let payload = fixture["payload"].to_string();
    let environment = fixture["environment"].clone();
    let servers: Vec<String> = serde_json::from_value(fixture["servers"].clone()).unwrap_or_default();
    let received = HookInput {
        environment: &|variable| environment[variable].as_str().map(str::to_owned),
        event: fixture["command_line_event"].as_str(),
        directory: fixture["process_directory"].as_str().map(Path::new),
        servers: &servers,
        ..HookInput::of(payload.as_bytes())
    };
    let incoming = agent.read(&received).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (incoming_shown, answers) = (understood(&incoming), answered(agent, &incoming));
    if write {
        fixture["understood"] = incoming_shown;
        fixture["answers"] = answers;
        let text = serde_json::to_string_pretty(&fixture).expect("JSON") + "\n";
        std::fs::write(path, text).expect("the fixture can be written");
    } else {
        assert_eq!(fixture["understood"], incoming_shown, "{name}");
        assert_eq!(fixture["answers"], answers, "{name}");
    }
}

#[test]
fn payloads_are_understood_and_verdicts_are_answered() {
    let write = std::env::var_os("CALLGATE_WRITE_FIXTURES").is_some();
    for agent in callgate_hooks::all() {
        let paths = fixtures(agent);
        assert!(!paths.is_empty(), "{} has no fixtures", agent.name());
        for path in paths {
            check(agent, &path, write);
        }
    }
}

#[test]
fn every_event_that_decides_has_a_fixture() {
    for agent in callgate_hooks::all() {
        let seen: BTreeSet<String> = fixtures(agent)
            .iter()
            .map(|path| {
                let fixture: Value = serde_json::from_slice(&std::fs::read(path).expect("a fixture")).expect("JSON");
                fixture["understood"]["event"].as_str().unwrap_or_default().to_owned()
            })
            .collect();
        for event in agent.events().filter(|event| event.decides()) {
            assert!(seen.contains(event.name), "{}: no fixture for {}", agent.name(), event.name);
        }
    }
}

#[test]
fn every_agent_is_found_by_all_its_names() {
    let mut names = BTreeSet::new();
    for agent in callgate_hooks::all() {
        for name in agent.aliases().iter().chain([&agent.name()]) {
            assert!(names.insert(*name), "{name} is taken twice");
            assert_eq!(callgate_hooks::find(name).map(Agent::name), Some(agent.name()));
        }
        let events: BTreeSet<&str> = agent.events().map(|event| event.name).collect();
        assert_eq!(events.len(), agent.events().count(), "{} names an event twice", agent.name());
    }
    assert!(callgate_hooks::find("").is_none());
    assert!(callgate_hooks::find("Claude").is_none());
}
