//! What a project's policy file may do: nothing unseen, nothing unsaid.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Answered, Told, World, answered, feed, told};

fn run(world: &World, arguments: &[&str]) -> Told {
    told(world.command(arguments).output().expect("it starts"))
}

fn write(world: &World, path: &str, text: &str) {
    std::fs::write(world.project().join(path), text).expect("a file");
}

/// A call of an agent in a directory: how it takes the answer, and what it is told.
fn call(world: &World, agent: &str, command: &str, directory: &Path) -> (Answered, String) {
    let payload = support::payload(agent, command, "c-1", directory);
    let output = feed(world.hook(agent, &[]), &payload);
    (answered(agent, &payload, &output), format!("{}{}", output.stdout, output.stderr))
}

const LAX: &str = "version: 1\nextends: standard\nrules:\n  - {name: ours, commands: ['git push **'], action: allow, reason: ours}\n  - {name: odd, commands: ['frobnicate --all'], action: allow, reason: odd}\n";

/// Answers a command at a terminal of its own.
fn at_a_terminal(world: &World, arguments: &str, typed: &str) -> String {
    let mut command = Command::new("script");
    command
        .args(["-qec", &format!("{} {arguments}", env!("CARGO_BIN_EXE_callgate")), "/dev/null"])
        .current_dir(world.project())
        .env_clear()
        .envs(world.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("script starts");
    let mut keyboard = child.stdin.take().expect("a pipe");
    writeln!(keyboard, "{typed}").expect("typed");
    let output = told(child.wait_with_output().expect("it ends"));
    drop(keyboard);
    output.stdout
}

#[test]
fn trust_shows_what_becomes_possible_and_asks() {
    let world = World::new();
    write(&world, "callgate.yaml", LAX);
    let output = run(&world, &["trust"]);
    assert!(output.code == 2 && output.stderr.contains("callgate trust --yes"), "{output:?}");
    assert!(output.stderr.contains("ask → allow (ours)  git push"), "{output:?}");
    assert!(output.stderr.contains("(odd)  frobnicate --all"), "{output:?}");
    assert_eq!(run(&world, &["trust", "--status"]).code, 1);
    let shown = at_a_terminal(&world, "trust", "n");
    assert!(shown.contains("git push") && shown.contains("is not trusted"), "{shown}");
    assert_eq!(run(&world, &["trust", "--status"]).code, 1);
    let shown = at_a_terminal(&world, "trust", "y");
    assert!(shown.contains("git push") && shown.contains("is trusted until"), "{shown}");
    assert_eq!(run(&world, &["trust", "--status"]).code, 0);
    assert_eq!(run(&world, &["check", "git push origin main"]).code, 0);
    assert_eq!(run(&world, &["trust", "--remove", "--json"]).code, 0);
    let answer: Value = serde_json::from_str(&run(&world, &["trust", "--yes", "--json"]).stdout).expect("JSON");
    assert!(answer["trusted"] == true && answer["becomes_possible"]["count"].as_u64() > Some(0), "{answer}");
}

#[test]
fn an_untrusted_rule_that_would_have_decided_is_named() {
    let world = World::new();
    let words = "the rule ours of ";
    assert!(!run(&world, &["check", "git push origin main"]).stdout.contains(words));
    write(&world, "callgate.yaml", LAX);
    let output = run(&world, &["check", "git push origin main"]);
    assert!(output.code == 10 && output.stdout.contains(words), "{output:?}");
    assert!(output.stdout.contains("which nobody trusts, would allow this: callgate trust"), "{output:?}");
    assert!(!run(&world, &["check", "git push --force origin x; cat ~/.ssh/id_rsa"]).stdout.contains(words));
    for agent in ["claude", "codex", "gemini"] {
        let (answer, said) = call(&world, agent, "git push origin main", &world.project());
        assert!(answer != Answered::Allowed && said.contains(words), "{agent}: {said}");
        assert!(said.contains("your user can run: callgate trust"), "{agent}: {said}");
        let (_, said) = call(&world, agent, "cat ~/.ssh/id_rsa", &world.project());
        assert!(!said.contains("callgate trust"), "{agent}: {said}");
    }
}

#[test]
fn a_broken_policy_is_explained_without_escape_codes_and_its_refusals_are_logged() {
    let texts = [("version: 1\nrulez: []\n", "rulez"), ("version: 1\ndefault: \u{9b}31m\n", "invalid YAML")];
    for (place, (broken, why)) in ["project", "user"].into_iter().flat_map(|place| texts.map(|text| (place, text))) {
        let world = World::new();
        if place == "project" {
            write(&world, "callgate.yaml", broken);
        } else {
            std::fs::create_dir_all(world.home().join(".config/callgate")).expect("a directory");
            std::fs::write(world.home().join(".config/callgate/callgate.yaml"), broken).expect("a file");
        }
        for (number, agent) in ["claude", "codex", "gemini", "windsurf"].into_iter().enumerate() {
            let payload = support::payload(agent, "ls", "c-1", &world.project());
            let mut hook = world.hook(agent, &[]);
            hook.env("CLICOLOR_FORCE", "1");
            let output = feed(hook, &payload);
            assert_eq!(answered(agent, &payload, &output), Answered::Refused, "{agent}: {output:?}");
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(said.contains(why), "{agent}: {said}");
            let hidden = |text: &str| text.contains(['\u{1b}', '\u{9b}']) || text.contains("\\u001b");
            assert!(!hidden(&said), "{agent}: {said}");
            assert_eq!(world.attempts(), number + 1, "{agent}");
        }
        let log = run(&world, &["audit", "--log", world.log().to_str().expect("UTF-8"), "tail"]);
        assert!(log.code == 0 && log.stdout.contains(why), "{log:?}");
    }
}

#[test]
fn a_file_below_the_project_tightens_for_calls_that_work_there() {
    for agent in ["claude", "codex"] {
        let world = World::new();
        let deep = world.project().join("src/deep");
        std::fs::create_dir_all(&deep).expect("a directory");
        // the session begins at the top
        let (answer, said) = call(&world, agent, "ls -la", &world.project());
        assert_eq!(answer, Answered::Allowed, "{agent}: {said}");
        write(
            &world,
            "src/callgate.yaml",
            "version: 1\nrules:\n  - {name: no-ls, commands: ['ls **'], action: deny, reason: not here}\n  - {name: lax, commands: ['git push **'], action: allow, reason: lax}\n",
        );
        let (answer, said) = call(&world, agent, "ls -la", &deep);
        assert!(answer == Answered::Refused && said.contains("not here"), "{agent}: {said}");
        let (answer, _) = call(&world, agent, "ls -la", &world.project());
        assert_eq!(answer, Answered::Allowed, "{agent}");
        // trusted or not, it allows nothing: the agent chose to work there
        assert_eq!(run(&world, &["trust", "--yes", "src/callgate.yaml"]).code, 0);
        let (answer, said) = call(&world, agent, "git push origin main", &deep);
        assert!(answer != Answered::Allowed, "{agent}: {said}");
        // nor does it take the place of the project's own file
        write(
            &world,
            "callgate.yaml",
            "version: 1\nrules:\n  - {name: no-cat, commands: ['cat **'], action: deny, reason: top}\n",
        );
        let (answer, said) = call(&world, agent, "cat x", &deep);
        assert!(answer == Answered::Refused && said.contains("top"), "{agent}: {said}");
    }
}
