//! Every question and every no names the one command that changes it, and that command really does.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

mod support;

use serde_json::{Value, json};
use support::{Answered, Told, World, answered, feed, told};

fn run(world: &World, arguments: &[&str]) -> Told {
    told(world.command(arguments).output().expect("it starts"))
}

fn check(world: &World, command: &str) -> i32 {
    run(world, &["check", "--sandbox", "none", command]).code
}

/// A call of an agent: how it takes the answer, and what it is told.
fn call(world: &World, agent: &str, command: &str, id: &str) -> (Answered, String) {
    let payload = support::payload(agent, command, id, &world.project());
    let output = feed(world.hook(agent, &[]), &payload);
    (answered(agent, &payload, &output), format!("{}{}", output.stdout, output.stderr))
}

fn rules(world: &World) -> String {
    std::fs::read_to_string(world.home().join(".config/callgate/callgate.yaml")).unwrap_or_default()
}

#[test]
fn allow_writes_the_narrowest_rule_that_flips_the_verdict_and_undo_takes_it_back() {
    let world = World::new();
    assert_eq!(check(&world, "git push origin main"), 10);
    let output = run(&world, &["allow", "--dry-run", "git", "push", "origin", "main"]);
    assert!(output.code == 0 && output.stdout.contains("would be written to"), "{output:?}");
    assert_eq!(rules(&world), "");
    let output = run(&world, &["allow", "git push origin main"]);
    assert_eq!(output.code, 0, "{output:?}");
    for said in
        ["allow: `git push origin main`", "also covers", "callgate.yaml; undo: callgate policy undo", "--rule 2"]
    {
        assert!(output.stdout.contains(said), "{said}: {output:?}");
    }
    assert_eq!((check(&world, "git push origin main"), check(&world, "git push origin next")), (0, 10));
    // the rule that decides is the one that was written
    let checked = run(&world, &["check", "git push origin main"]);
    assert!(checked.stdout.contains("rule allow-20"), "{checked:?}");
    let again = run(&world, &["allow", "git push origin main"]);
    assert!(again.code == 0 && again.stdout.starts_with("already allowed"), "{again:?}");
    assert_eq!(run(&world, &["policy", "undo"]).code, 0);
    assert_eq!(check(&world, "git push origin main"), 10);
    assert_eq!(run(&world, &["policy", "undo"]).code, 1);
    let broad = run(&world, &["allow", "git push origin main", "--rule", "2"]);
    assert_eq!((broad.code, check(&world, "git push origin next")), (0, 0), "{broad:?}");
    assert_eq!(run(&world, &["allow", "rm -rf build", "--rule", "99"]).code, 2);
}

#[test]
fn undo_removes_the_newest_rule_of_callgate_and_nothing_of_a_person() {
    let world = World::new();
    let mine = "# mine\nversion: 1\nextends: standard\n\nrules:\n  # keep\n  - name: mine\n    commands: [\"git push ** --force **\"]\n    action: deny\n    reason: shared\n";
    std::fs::create_dir_all(world.home().join(".config/callgate")).expect("a directory");
    std::fs::write(world.home().join(".config/callgate/callgate.yaml"), mine).expect("a file");
    for command in ["git push origin main", "rm -rf build"] {
        assert_eq!(run(&world, &["allow", command]).code, 0);
    }
    assert_eq!(run(&world, &["policy", "undo"]).code, 0);
    assert_eq!((check(&world, "git push origin main"), check(&world, "rm -rf build")), (0, 10));
    assert_eq!(run(&world, &["policy", "undo"]).code, 0);
    assert_eq!(rules(&world), mine);
    assert_eq!(run(&world, &["policy", "undo"]).code, 1);
}

#[test]
fn no_rule_is_written_where_none_can_help_and_the_reason_is_said() {
    let world = World::new();
    let cases = [
        ("cat ~/.ssh/id_rsa", "an allow only answers questions"),
        ("rm -r $file", "only a person can answer"),
        ("git push origin main; rm -rf build", "several commands"),
        ("touch /opt/elsewhere", "boundary"),
    ];
    for (command, why) in cases {
        let output = run(&world, &["allow", command]);
        assert!(output.code == 1 && output.stdout.contains("no rule can change this"), "{command}: {output:?}");
        assert!(output.stdout.contains(why), "{command}: {output:?}");
        let told: Value = serde_json::from_str(&run(&world, &["allow", "--json", command]).stdout).expect("JSON");
        assert_eq!(told["written"], json!(false));
    }
    assert_eq!(rules(&world), "");
}

#[test]
fn deny_denies_and_does_not_hide_a_stricter_rule() {
    let world = World::new();
    assert_eq!(check(&world, "ls -la"), 0);
    assert_eq!(run(&world, &["deny", "ls -la"]).code, 0);
    assert_eq!((check(&world, "ls -la"), check(&world, "ls")), (11, 0));
    let already = run(&world, &["deny", "cat ~/.ssh/id_rsa"]);
    assert!(already.stdout.starts_with("already denied"), "{already:?}");
    // an allow does not overturn it
    assert_eq!(run(&world, &["allow", "ls -la"]).code, 1);
    assert_eq!(run(&world, &["policy", "undo"]).code, 0);
    assert_eq!(check(&world, "ls -la"), 0);
}

#[test]
fn the_command_that_an_agent_is_told_lets_its_next_attempt_pass() {
    for agent in ["codex", "claude", "gemini"] {
        let world = World::new();
        let (answer, said) = call(&world, agent, "git push origin main", "c-1");
        assert!(answer != Answered::Allowed, "{said}");
        assert!(said.contains("callgate allow 'git push origin main'"), "{agent}: {said}");
        let output = run(&world, &["allow", "--last"]);
        assert!(output.code == 0 && output.stderr.contains("git push origin main"), "{output:?}");
        assert_eq!(call(&world, agent, "git push origin main", "c-2").0, Answered::Allowed, "{agent}");
    }
}

#[test]
fn what_no_command_can_change_is_said_to_be_so() {
    let world = World::new();
    let (answer, said) = call(&world, "codex", "cat ~/.ssh/id_rsa", "c-1");
    assert!(answer == Answered::Refused && said.contains("no answer and no `callgate allow` changes it"), "{said}");
    let (answer, said) = call(&world, "codex", "rm -r $file", "c-2");
    assert!(answer == Answered::Refused && said.contains("no rule can allow it"), "{said}");
    let (answer, said) = call(&world, "claude", "rm -r $file", "c-3");
    assert!(answer == Answered::Asked && said.contains("no rule can allow it"), "{said}");
}

#[test]
fn examples_from_the_log_show_what_else_a_rule_covers() {
    let world = World::new();
    for (id, branch) in [("c-1", "one"), ("c-2", "two")] {
        call(&world, "claude", &format!("git push origin {branch}"), id);
    }
    let narrow = run(&world, &["allow", "--dry-run", "git push origin one"]);
    assert!(!narrow.stdout.contains("from the log"), "{narrow:?}");
    let broad = run(&world, &["allow", "--dry-run", "git push origin one", "--rule", "2"]);
    assert!(broad.stdout.contains("from the log: Bash: git push origin two"), "{broad:?}");
    let deny = run(&world, &["deny", "--dry-run", "git push origin one", "--rule", "2"]);
    assert!(deny.stdout.contains("from the log: Bash: git push origin two"), "{deny:?}");
}

#[test]
fn these_commands_are_not_for_agents() {
    let world = World::new();
    let binary = env!("CARGO_BIN_EXE_callgate");
    for task in ["allow 'npm test'", "allow --last", "deny ls", "policy undo"] {
        for command in
            [format!("callgate {task}"), format!("env callgate {task}"), format!("sh -c \"callgate {task}\"")]
        {
            assert_eq!(call(&world, "claude", &command, "c-1").0, Answered::Refused, "{command}");
        }
        // by whatever path
        assert_ne!(call(&world, "claude", &format!("{binary} {task}"), "c-1").0, Answered::Allowed, "{task}");
    }
}

#[test]
fn the_words_of_a_command_need_no_quotes() {
    let world = World::new();
    let plain = run(&world, &["check", "ls -la"]).stdout;
    for words in [&["check", "ls", "-la"][..], &["check", "--", "ls", "-la"]] {
        let output = run(&world, words);
        assert_eq!((output.code, &output.stdout), (0, &plain), "{words:?}");
    }
    assert_eq!(run(&world, &["check", "--", "echo", "a b; rm -rf /"]).code, 0, "words stay words");
}
