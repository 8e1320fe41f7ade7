//! A question that nobody could answer is kept: it can be answered afterwards, and the call passes once when it is tried again.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod support;

use serde_json::Value;
use support::{Answered, Told, World, answered, feed, told};

const ASKED: &str = "git push origin main";

fn run(world: &World, arguments: &[&str]) -> Told {
    told(world.command(arguments).output().expect("it starts"))
}

fn call(world: &World, agent: &str, command: &str) -> (Answered, String) {
    let payload = support::payload(agent, command, "c-1", &world.project());
    let output = feed(world.hook(agent, &[]), &payload);
    (answered(agent, &payload, &output), format!("{}{}", output.stdout, output.stderr))
}

fn kept(world: &World) -> Vec<Value> {
    serde_json::from_str(&run(world, &["approvals", "list", "--json"]).stdout).expect("JSON")
}

#[test]
fn a_yes_afterwards_lets_one_retry_pass() {
    for agent in ["codex", "gemini", "opencode"] {
        let world = World::new();
        let (answer, said) = call(&world, agent, ASKED);
        assert_eq!(answer, Answered::Refused, "{agent}");
        let waiting = kept(&world);
        assert_eq!(waiting.len(), 1, "{agent}");
        let id = waiting[0]["id"].as_str().expect("an id").to_owned();
        assert!(said.contains(&format!("callgate approvals approve {id}")), "{said}");
        // the same request is one question
        assert_eq!(call(&world, agent, ASKED).0, Answered::Refused);
        assert_eq!(kept(&world).len(), 1, "{agent}");
        assert!(run(&world, &["approvals", "list"]).stdout.contains("a yes lets one retry pass"));
        assert_eq!(run(&world, &["approvals", "approve", &id]).code, 0);
        // another request does not spend it
        assert_eq!(call(&world, agent, "git push origin next").0, Answered::Refused, "{agent}");
        assert_eq!(call(&world, agent, ASKED).0, Answered::Allowed, "{agent}");
        assert_eq!(call(&world, agent, ASKED).0, Answered::Refused, "once, {agent}");
        world.log_is_whole();
    }
}

#[test]
fn a_no_and_a_yes_for_the_session_count_too() {
    let world = World::new();
    call(&world, "codex", ASKED);
    let id = kept(&world)[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(run(&world, &["approvals", "approve", &id, "--session"]).code, 0);
    for _ in 0..3 {
        assert_eq!(call(&world, "codex", ASKED).0, Answered::Allowed);
    }
    for _ in 0..2 {
        call(&world, "codex", "git push origin next");
        let id = kept(&world)[0]["id"].as_str().expect("an id").to_owned();
        assert_eq!(run(&world, &["approvals", "deny", &id]).code, 0);
    }
    let (answer, said) = call(&world, "codex", "git push origin next");
    assert!(answer == Answered::Refused && said.contains("denied twice"), "{said}");
    assert!(kept(&world).is_empty());
}

#[test]
fn what_only_a_person_can_answer_now_is_not_kept_and_many_questions_have_an_end() {
    let world = World::new();
    assert_eq!(call(&world, "codex", "rm -r $file").0, Answered::Refused);
    assert!(kept(&world).is_empty());
    for number in 0..102 {
        call(&world, "codex", &format!("git push origin b{number}"));
    }
    assert_eq!(kept(&world).len(), 100);
}
