//! `callgate demo` shows the real thing and leaves nothing behind.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing by failing")]

mod world;

use serde_json::Value;
use world::{World, told};

#[test]
fn the_demo_runs_without_a_terminal_and_leaves_nothing_behind() {
    let world = World::new();
    let temporary = world.project().join("temporary");
    std::fs::create_dir(&temporary).expect("a directory");
    // A user's policy that would refuse everything does not reach the demo.
    std::fs::create_dir_all(world.home().join(".config/callgate")).expect("a directory");
    std::fs::write(world.home().join(".config/callgate/callgate.yaml"), "version: 1\ndefault: deny\n").expect("a file");
    let mut command = world.command(&["demo"]);
    let (code, output, error) =
        told(command.env("TMPDIR", &temporary).env("CALLGATE_POLICY", "x").output().expect("it starts"));
    assert_eq!(code, 0, "{output}{error}");
    let verdicts: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(first, _)| first)
        .filter(|first| ["allow", "ask", "deny"].contains(first))
        .collect();
    let status: Value = serde_json::from_str(&world.run(&["status", "--json"]).1).expect("JSON");
    if status["sandbox"]["backend"].is_string() {
        assert_eq!(verdicts, ["allow", "ask", "deny", "allow", "deny", "deny"], "{output}");
        assert!(output.contains("could not read ~/.ssh") && output.contains("could not write .git/hooks"), "{output}");
        assert!(output.contains("build.txt is there, .git/hooks/pre-commit is not there"), "{output}");
        assert!(error.contains("held back"), "{error}");
    } else {
        assert_eq!(verdicts, ["allow", "ask", "ask", "deny", "allow", "deny", "deny"], "{output}");
        assert!(output.contains("cannot contain calls"), "{output}");
    }
    assert!(!output.contains("the private key of the demo"), "{output}");
    assert!(output.contains("no terminal here"), "{output}");
    assert_eq!(std::fs::read_dir(&temporary).expect("there").count(), 0, "the scratch directory is gone");
    let left: Vec<_> =
        std::fs::read_dir(world.home()).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".config"], "the user's log and store are untouched");
}
