//! One call, one decision: through the library, through `check`, and through the hook of every agent.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod support;

use std::path::Path;

use callgate::fence::Protection;
use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate, SandboxSupport};
use callgate_hooks::{Agent, ContainedCalls, HookDetails, HookInput};
use serde_json::{Value, json};
use support::{Answered, World};

/// Every n-th example of the program tables, so that there are a thousand.
fn commands() -> Vec<String> {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let below = |folder: &Path| std::fs::read_dir(folder).expect("the tables").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = below(&tables).flat_map(|area| below(&area)).collect();
    files.sort();
    let mut examples = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a table");
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("example "));
        let command = |line: &str| {
            line.split(" => ").next().unwrap_or(line).trim_end_matches(" \\").trim_end_matches(" =>").trim().to_owned()
        };
        examples.extend(lines.map(command));
    }
    let step = (examples.len() / 1_000).max(1);
    let chosen: Vec<String> = examples.into_iter().step_by(step).take(1_000).collect();
    assert_eq!(chosen.len(), 1_000);
    chosen
}

fn gate(world: &World) -> Gate {
    gate_with(world, SandboxSupport::Missing)
}

fn gate_with(world: &World, sandbox: SandboxSupport) -> Gate {
    let policy = Policy::bundled("standard").expect("a policy").with_home(world.home());
    Gate::builder().policy(policy).host(world.host()).sandbox(sandbox).build()
}

fn decision(gate: &Gate, call: &Call) -> Decision {
    gate.assess(call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
}

fn call(world: &World, command: &str) -> Call {
    let call = Call::new("Bash", json!({ "command": command })).shell("bash");
    call.directory(world.project()).workspace(world.project())
}

/// The call as an agent's hook is told of it.
fn told(world: &World, agent: &Agent, command: &str) -> (Call, bool) {
    let payload = support::payload(agent.name(), command, "call-1", &world.project());
    let variable =
        |name: &str| world.environment().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let directory = world.project();
    let received = HookInput { environment: &variable, directory: Some(&directory), ..HookInput::of(&payload) };
    let incoming = agent.read(&received).unwrap_or_else(|error| panic!("{} {command}: {error}", agent.name()));
    let HookDetails::Before(mut call) = incoming.details else { panic!("{} announces calls", agent.name()) };
    call.origin.workspace = Some(world.project());
    call.origin.directory.get_or_insert(world.project());
    (call, incoming.unseen_input.is_some())
}

#[test]
fn a_thousand_calls_are_decided_alike_wherever_they_come_from() {
    let world = World::new();
    let gate = gate(&world);
    let commands = commands();
    let expected: Vec<Decision> = commands.iter().map(|command| decision(&gate, &call(&world, command))).collect();
    let count = |wanted| expected.iter().filter(|decision| **decision == wanted).count();
    println!("{} allowed, {} asked, {} denied", count(Decision::Allow), count(Decision::Ask), count(Decision::Deny));
    assert!(count(Decision::Allow) > 100 && count(Decision::Ask) > 100 && count(Decision::Deny) > 5);

    // `check`
    let requests: String = commands.iter().map(|command| format!("{}\n", json!({ "command": command }))).collect();
    let held = gate_with(&world, SandboxSupport::Available);
    let contained: Vec<Decision> = commands.iter().map(|command| decision(&held, &call(&world, command))).collect();
    assert!(contained.iter().filter(|decision| **decision == Decision::Contain).count() > 20);
    for (sandbox, expected) in [("none", &expected), ("found", &contained)] {
        let words = ["check", "--jsonl", "--sandbox", sandbox];
        let output = support::feed(world.command(&words), requests.as_bytes());
        let checked: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(checked.len(), commands.len());
        for ((command, expected), answer) in commands.iter().zip(expected).zip(&checked) {
            assert_eq!(answer["decision"], json!(expected), "check --sandbox {sandbox}: {command}");
        }
    }

    // every dialect
    for agent in callgate_hooks::all() {
        for (command, expected) in commands.iter().zip(&expected) {
            let (call, unseen) = told(&world, agent, command);
            // an agent that shows no hook what is typed later is stricter about what would be typed into
            if !unseen {
                assert_eq!(decision(&gate, &call), *expected, "{}: {command}", agent.name());
            }
        }
    }
}

/// The hook processes themselves: every thousandth part of what the other test does in memory, and all of it for one agent.
#[test]
fn the_hooks_themselves_say_what_the_library_says() {
    let world = World::new();
    let (gate, held) = (gate(&world), gate_with(&world, SandboxSupport::Available));
    let works = callgate_sandbox::choose(&Protection::ALL, None).is_ok();
    let commands = commands();
    let agents = callgate_hooks::all();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (world, gate, held, commands) = (&world, &gate, &held, &commands);
            scope.spawn(move || {
                for (number, command) in commands.iter().enumerate().filter(|(number, _)| number % 4 == part) {
                    let agent = agents[number % agents.len()];
                    let (call, unseen) = told(world, agent, command);
                    let bytes = support::payload(agent.name(), command, &format!("call-{number}"), &world.project());
                    let output = support::feed(world.hook(agent.name(), &[]), &bytes);
                    let answered = support::answered(agent.name(), &bytes, &output);
                    // what is contained runs contained where the agent takes that, and what must be split is refused
                    let contains = works && agent.contained() != ContainedCalls::Asked;
                    let decided = match decision(held, &call) {
                        Decision::Contain if contains => Decision::Allow,
                        Decision::Deny if contains => Decision::Deny,
                        _ => decision(gate, &call),
                    };
                    let fits = match decided {
                        _ if unseen => answered == Answered::Refused,
                        Decision::Allow => answered == Answered::Allowed,
                        Decision::Ask => matches!(answered, Answered::Asked | Answered::Refused),
                        Decision::Deny | Decision::Contain => answered == Answered::Refused,
                    };
                    assert!(fits, "{} {command}: {answered:?} {output:?}", agent.name());
                }
            });
        }
    });
    world.log_is_whole();

    // What the hooks recorded is judged the same by everything that learns from the log.
    let json = |arguments: &[&str]| -> Value {
        let output = support::feed(world.command(arguments), b"");
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error} {output:?}"))
    };
    let replay = json(&["audit", "replay", "--policy", "standard", "--json"]);
    assert!(replay["calls"].as_u64() > Some(800), "{replay}");
    for kind in ["newly_allowed", "newly_asked", "newly_refused"] {
        assert_eq!(replay[kind]["count"], 0, "{replay:#}");
    }
    let difference = json(&["policy", "diff", "standard", "standard", "--recorded", "--json"]);
    assert_eq!((&difference["looser"], &difference["tighter"]), (&json!([]), &json!([])));
}

/// Through a door that takes no rewritten command, a call is judged as it was written.
#[test]
fn a_door_that_cannot_rewrite_is_told_what_the_library_says_by_default() {
    let world = World::new();
    let gate = gate(&world);
    let works = callgate_sandbox::choose(&Protection::ALL, None).is_ok();
    let held = gate_with(&world, if works { SandboxSupport::Available } else { SandboxSupport::Missing });
    let rewriting = ["claude", "codex"];
    for (number, command) in commands().iter().enumerate().filter(|(number, _)| number % 80 == 0) {
        let (free, contained) = (decision(&gate, &call(&world, command)), decision(&held, &call(&world, command)));
        let doors = [
            (&["--door", "amp"][..], free),
            (&["--door", rewriting[number % 2]], contained),
            (&["--sandbox", "none"], free),
        ];
        for (door, expected) in doors {
            let expected = json!(expected);
            for task in ["check", "explain"] {
                let output = support::feed(world.command(&[&[task, "--json"], door, &["--", command]].concat()), b"");
                let answer: Value = serde_json::from_str(&output.stdout).expect("JSON");
                assert_eq!(answer["decision"], expected, "{task} {door:?}: {command}");
            }
        }
    }
}
