//! `callgate status` and the end of `callgate doctor`.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing by failing")]

mod world;

use std::fs;

use serde_json::Value;
use world::World;

#[test]
fn one_screen_says_what_is_wrong_and_the_command_that_mends_it() {
    let world = World::new();
    let status = |world: &World| -> Value { serde_json::from_str(&world.run(&["status", "--json"]).1).expect("JSON") };
    let commands = |status: &Value| -> Vec<(String, bool)> {
        let problems = status["problems"].as_array().expect("a list");
        let told =
            |problem: &Value| (problem["command"].as_str().expect("a command").to_owned(), problem["serious"] == true);
        problems.iter().map(told).filter(|(command, _)| command != "callgate doctor").collect()
    };
    assert_eq!(world.run(&["install", "claude", "gemini"]).0, 0);
    let (code, output, _) = world.run(&["status"]);
    assert_eq!(code, 0, "{output}");
    for part in [
        "Claude Code: in the agent's own prompt",
        "Gemini CLI: nobody (run `callgate approvals watch`)",
        "watch is not running",
        "standard (bundled)",
        "sandbox",
        "log",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let told = status(&world);
    assert_eq!(commands(&told), []);
    assert!(told["agents"].as_array().expect("a list").iter().all(|agent| agent["called_today"] == false), "{told}");
    assert!(!world.home().join(".local/share/callgate/callgate.db").exists(), "looking makes no store");

    world.write("callgate.yaml", "version: 1\nextends: standard\napprovals: {ask: [watch, terminal]}\n");
    let told = status(&world);
    assert_eq!(commands(&told), [("callgate trust".to_owned(), false)], "{told}");
    let settings = world.home().join(".claude/settings.json");
    let text = fs::read_to_string(&settings).expect("there");
    fs::write(&settings, text.replacen("\"hooks\"", "\"disableAllHooks\": true, \"hooks\"", 1)).expect("written");
    world.write("callgate.yaml", "version: 1\nrulez: []\n");
    let told = status(&world);
    assert_eq!(
        commands(&told),
        [("callgate policy lint".to_owned(), true), ("callgate install claude".to_owned(), true)],
        "{told}"
    );
    assert!(told["policy"]["error"].as_str().is_some_and(|error| !error.contains('\u{1b}')), "{told}");
    for command in ["status", "doctor"] {
        let (code, output, _) = world.run(&[command]);
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("→ callgate policy lint") && output.contains("→ callgate install claude"), "{output}");
    }
    // A call of the agent is seen.
    world.write("callgate.yaml", "version: 1\n");
    let payload = serde_json::json!({ "session_id": "s", "cwd": world.project(), "hook_event_name": "SessionStart", "source": "startup" });
    assert_eq!(world.with_input(&["hook", "claude"], payload.to_string().as_bytes()).0, 0);
    let told = status(&world);
    let claude = told["agents"].as_array().expect("a list").iter().find(|agent| agent["agent"] == "claude");
    assert_eq!(claude.map(|agent| &agent["called_today"]), Some(&Value::Bool(true)), "{told}");
}
