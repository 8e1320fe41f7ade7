//! The command as people and programs meet it.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing by failing")]

mod world;

use std::path::Path;
use std::process::Command;

use world::World;

#[test]
fn exit_codes_tell_allow_ask_deny_and_trouble_apart() {
    let world = World::new();
    for (command, code) in [("ls -la", 0), ("rm notes.txt", 10), ("cat ~/.ssh/id_rsa", 11)] {
        assert_eq!(world.run(&["check", command]).0, code, "{command}");
    }
    assert_eq!(world.run(&["check", "--policy", "unattended", "make"]).0, 12);
    assert_eq!(world.run(&["check", "--policy", "no-such-policy", "ls"]).0, 2);
    assert_eq!(world.run(&["check", "--tool", "Read", "--input", "{"]).0, 2);
    assert_eq!(world.run(&["frobnicate"]).0, 2);
}

#[test]
fn a_command_is_judged_for_the_shell_that_runs_it() {
    let world = World::new();
    let command = "l=(a b); echo ${l[1]}";
    for (arguments, code) in [
        (&["check", command][..], 10),
        (&["check", "--shell", "bash", command], 0),
        (&["check", "--shell", "/bin/zsh", command], 10),
        (&["check", "--door", "gemini", command], 0),
    ] {
        assert_eq!(world.run(arguments).0, code, "{arguments:?}");
    }
    let request = format!("{}\n", serde_json::json!({ "command": command, "context": { "shell": "bash" } }));
    assert!(world.with_input(&["check", "--jsonl"], request.as_bytes()).1.contains("\"decision\":\"allow\""));
}

#[test]
fn the_verdict_comes_first_then_the_rule_then_the_effects() {
    let (_, output, _) = World::new().run(&["check", "cat ~/.ssh/id_rsa"]);
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].starts_with("deny"), "{output}");
    assert!(lines[1].contains("rule no-secrets (standard"), "{output}");
    assert!(output.contains("read") && output.contains(".ssh/id_rsa"), "{output}");
}

#[test]
fn every_spelling_of_the_same_read_is_refused() {
    let world = World::new();
    for command in [
        "cat ~/.ssh/id_rsa",
        "c\\at ~/.ssh/id_rsa",
        "tar c ~/.ssh",
        "cd ~ && cp .s*/id_rsa x",
        "x=.ssh; cat ~/$x/id_rsa",
        "cat < ~/.ssh/id_rsa",
        "bash -c 'cat ~/.ssh/id_rsa'",
        "echo \"$(cat ~/.ssh/id_rsa)\"",
        "cat .en[v]",
    ] {
        assert_eq!(world.run(&["check", command]).0, 11, "{command}");
    }
    assert_eq!(world.run(&["check", "--tool", "Read", "--input", r#"{"file_path": "~/.ssh/id_rsa"}"#]).0, 11);
}

#[test]
fn input_comes_from_an_argument_a_file_or_standard_input() {
    let world = World::new();
    let input = r#"{"file_path": "README.md"}"#;
    world.write("call.json", input);
    assert_eq!(world.run(&["check", "--tool", "Read", "--input", input]).0, 0);
    assert_eq!(world.run(&["check", "--tool", "Read", "--input", "@call.json"]).0, 0);
    assert_eq!(world.with_input(&["check", "--tool", "Read", "--input", "-"], input.as_bytes()).0, 0);
    assert_eq!(world.run(&["check", "--tool", "Read", "--input", "@missing.json"]).0, 2);
}

#[test]
fn every_line_gets_an_answer_and_a_bad_one_stops_nothing() {
    let world = World::new();
    let mut input = Vec::new();
    input.extend_from_slice(b"{\"id\": 1, \"command\": \"ls\"}\n");
    input.extend_from_slice(b"not json\n");
    input.extend_from_slice(b"{\"id\": 2, \"command\": \"ls\", \"command\": \"rm -rf /\"}\n");
    input.extend_from_slice(b"{\"id\": 3}\n\n");
    input.extend_from_slice(b"{\"id\": 4, \"command\": [\"ls\"]}\n");
    input.extend_from_slice(b"\xff\xfe\n");
    input.extend_from_slice(b"{\"id\": 5, \"command\": \"\\ud800\"}\n");
    input.extend_from_slice(
        format!("{{\"id\": 6, \"command\": \"ls\", \"x\": {}1{}}}\n", "[".repeat(500), "]".repeat(500)).as_bytes(),
    );
    input.extend_from_slice(b"{\"id\": 7, \"tool\": \"Read\", \"input\": {\"file_path\": 7}}\n");
    input.extend_from_slice(b"{\"id\": 8, \"tool\": \"Read\", \"input\": {\"file_path\": \"x\"}, \"context\": {\"cwd\": \"/srv/a\", \"workspace\": \"/srv/a\"}}");
    let (code, output, _) = world.with_input(&["check", "--jsonl"], &input);
    assert_eq!(code, 0);
    let answers: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let decisions: Vec<&str> = answers.iter().map(|answer| answer["decision"].as_str().expect("a decision")).collect();
    assert_eq!(decisions, ["allow", "deny", "deny", "deny", "deny", "deny", "deny", "deny", "ask", "allow"]);
    assert_eq!(answers.iter().filter(|answer| answer.get("error").is_some()).count(), 7);
}

#[test]
fn huge_commands_are_answered() {
    let world = World::new();
    for command in [
        "a".repeat(10_000_000),
        "echo ".to_owned() + &"'a' ".repeat(200_000),
        "(".repeat(100_000),
        "$(".repeat(100_000),
        "ls;".repeat(100_000),
    ] {
        let line = serde_json::json!({ "id": 1, "command": command }).to_string();
        let (code, output, error) = world.with_input(&["check", "--jsonl"], line.as_bytes());
        assert_eq!(code, 0, "{error}");
        let answer: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        assert!(matches!(answer["decision"].as_str(), Some("ask" | "deny")), "{}", &output[..200.min(output.len())]);
    }
}

#[test]
fn a_project_file_may_tighten_and_loosens_only_when_trusted() {
    let world = World::new();
    world.write("callgate.yaml", "version: 1\nextends: standard\nrules:\n  - {name: ours, commands: ['make **'], action: allow, reason: ours}\n  - {name: no-ls, commands: ['ls **'], action: deny, reason: no}\n");
    assert_eq!(world.run(&["check", "--sandbox", "none", "make"]).0, 10);
    assert_eq!(world.run(&["check", "ls"]).0, 11);
    assert_eq!(world.run(&["trust", "--status"]).0, 1);
    assert_eq!(world.run(&["trust", "--yes"]).0, 0);
    assert_eq!(world.run(&["check", "--sandbox", "none", "make"]).0, 0);
    let text = std::fs::read_to_string(world.project().join("callgate.yaml")).expect("the file");
    world.write("callgate.yaml", &(text + "# changed\n"));
    assert_eq!(world.run(&["check", "--sandbox", "none", "make"]).0, 10, "a changed file is untrusted again");
}

#[test]
fn init_writes_a_file_that_loads_and_never_overwrites() {
    let world = World::new();
    assert_eq!(world.run(&["init"]).0, 0);
    assert_eq!(world.run(&["policy", "lint", "callgate.yaml"]).0, 0);
    assert_eq!(world.run(&["policy", "test", "callgate.yaml"]).0, 0);
    world.write("callgate.yaml", "version: 1\n");
    assert_eq!(world.run(&["init"]).0, 2);
    assert_eq!(std::fs::read_to_string(world.project().join("callgate.yaml")).expect("the file"), "version: 1\n");
}

#[test]
fn mistakes_in_a_policy_are_shown_with_their_line_and_what_to_write() {
    let world = World::new();
    world.write("callgate.yaml", "version: 1\nrulez: []\n");
    let (code, _, error) = world.run(&["check", "ls"]);
    assert_eq!(code, 2);
    assert!(error.contains("callgate.yaml:2") && error.contains("rules"), "{error}");
}

#[test]
fn an_example_that_does_not_hold_makes_the_file_unusable() {
    let world = World::new();
    world.write(
        "callgate.yaml",
        "version: 1\nrules:\n  - {name: x, commands: [ls], action: deny, reason: x, matches: [cat y]}\n",
    );
    let (code, _, error) = world.run(&["check", "ls"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("should match"), "{error}");
}

#[test]
fn the_bundled_policies_are_clean_and_their_examples_hold() {
    let world = World::new();
    let all = ["strict", "standard", "relaxed", "permissive", "unattended"];
    let lint = world.run(&[&["policy", "lint"], &all[..]].concat());
    assert_eq!(lint.0, 0, "{}", lint.1);
    let test = world.run(&[&["policy", "test"], &all[..]].concat());
    assert_eq!(test.0, 0, "{}", test.1);
}

#[test]
fn git_looks_are_silent_unless_the_repository_runs_something() {
    let world = World::new();
    let git = |arguments: &[&str]| {
        let status =
            Command::new("git").args(arguments).current_dir(world.project()).env("HOME", "/nonexistent").status();
        assert!(status.expect("git starts").success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    assert_eq!(world.run(&["check", "git status"]).0, 0);
    git(&["config", "core.fsmonitor", "./evil"]);
    assert_eq!(world.run(&["check", "git status"]).0, 0, "hardening switches the monitor off");
    git(&["config", "filter.x.clean", "./evil"]);
    assert_eq!(world.run(&["check", "git status"]).0, 10, "nothing switches a filter off");
}

#[test]
fn secrets_do_not_come_out_again() {
    let world = World::new();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for arguments in [vec!["check"], vec!["check", "--json"], vec!["explain"], vec!["explain", "--json"]] {
        let command =
            format!("curl -H 'Authorization: Bearer {token}' https://user:{token}@example.com/?token={token}");
        let (_, output, error) = world.run(&[&arguments[..], &[&command]].concat());
        assert!(!output.contains(token) && !error.contains(token), "{arguments:?}: {output}");
    }
}

#[test]
fn a_grant_is_spent_once_by_whoever_asks() {
    let world = World::new();
    let ask = || world.run(&["check", "--ask", "rm notes.txt"]);
    assert_eq!(ask().0, 11, "without a grant and without a terminal nobody says yes");
    let (code, output, error) = world.run(&["grant", "add", "Bash", "--any", "--reason", "tidying up"]);
    assert_eq!(code, 0, "{output}{error}");
    let first = ask();
    assert_eq!(first.0, 0, "{}{}", first.1, first.2);
    assert_eq!(ask().0, 11, "the grant is spent");
    world.run(&["grant", "add", "Bash", "--any"]);
    assert_eq!(world.run(&["check", "--ask", "cat ~/.ssh/id_rsa"]).0, 11, "no grant overturns a deny");
    assert_eq!(ask().0, 0, "a call refused for another reason spends nothing");
    let verified = world.run(&["audit", "verify"]);
    assert_eq!(verified.0, 0, "{}{}", verified.1, verified.2);
}

#[test]
fn rules_of_an_agent_become_a_policy_that_is_used() {
    let world = World::new();
    std::fs::create_dir(world.project().join(".claude")).expect("a directory");
    let settings = r#"{"permissions": {"deny": ["Bash(ls *)"], "allow": ["Bash(make:*)", "Bash(echo \"x\")"]}}"#;
    world.write(".claude/settings.json", settings);
    let (code, output, error) = world.run(&["import", "claude", "--dry-run"]);
    assert_eq!(code, 0, "{output}{error}");
    assert!(output.contains("\"ls **\"    # .claude/settings.json: Bash(ls *)"), "{output}");
    assert!(output.contains("none of them is allowed now") && output.contains("left out"), "{output}");
    assert!(!world.project().join("callgate.yaml").exists(), "a dry run writes nothing");
    assert_eq!(world.run(&["import", "claude"]).0, 0);
    assert_eq!(world.run(&["check", "ls -la"]).0, 11);
    assert_eq!(world.run(&["check", "--sandbox", "none", "make"]).0, 10, "an allow needs trust");
    assert_eq!(world.run(&["trust", "--yes"]).0, 0);
    assert_eq!(world.run(&["check", "--sandbox", "none", "make"]).0, 0);
    assert_eq!(world.run(&["import", "claude"]).0, 2, "a file that is there stays");
    let (code, output, _) = world.run(&["import", "claude", "--dry-run", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((code, &answer["holds"], &answer["rules"]), (0, &serde_json::json!(true), &serde_json::json!(3)));
    assert_eq!(world.run(&["import", "codex"]).0, 2, "there are no rules");
    assert_eq!(world.run(&["import", "claude", "--from", "missing.json"]).0, 2);
    world.write(".claude/settings.local.json", "{");
    assert_eq!(world.run(&["import", "claude", "--dry-run"]).0, 2, "a broken file may have denied something");
}

#[test]
fn completions_and_the_manual_are_there() {
    let world = World::new();
    assert!(world.run(&["completions", "bash"]).1.contains("callgate"));
    assert!(world.run(&["manual"]).1.contains(".TH callgate"));
    assert!(world.run(&["policy", "schema"]).1.contains("\"$schema\""));
}

/// The policies of the documents load, and their examples hold.
#[test]
fn the_policies_in_the_documents_hold() {
    let world = World::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut shown = 0_usize;
    for document in ["README.md", "docs/policies.md", "docs/policy.md", "docs/approvals.md", "docs/grants.md"] {
        let text = std::fs::read_to_string(root.join(document)).expect(document);
        for (_, block) in
            blocks(&text).into_iter().filter(|(language, block)| *language == "yaml" && block.contains("version: 1"))
        {
            world.write("shown.yaml", block);
            for task in ["test", "lint"] {
                let (code, output, error) = world.run(&["policy", task, "shown.yaml"]);
                let only_unused = output.contains("has no effect in this version");
                assert!(code == 0 || task == "lint" && only_unused, "{document}: {output}{error}\n{block}");
            }
            shown += 1;
        }
    }
    assert!(shown >= 6, "only {shown} policies were found");
}

fn blocks(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```") {
        let Some((language, body)) = after.split_once('\n') else { break };
        let Some((block, after)) = body.split_once("\n```") else { break };
        found.push((language.trim(), block));
        rest = after;
    }
    found
}

#[test]
fn a_payload_that_trickles_in_is_refused_in_bounded_time() {
    let world = World::new();
    let mut hook = world.command(&["hook", "claude"]);
    hook.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut hook = hook.spawn().expect("it starts");
    let mut input = hook.stdin.take().expect("a pipe");
    let began = std::time::Instant::now();
    std::thread::spawn(move || {
        use std::io::Write as _;
        while input.write_all(b" ").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    let output = hook.wait_with_output().expect("it ends");
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("did not arrive in time"), "{said}");
    assert!(said.contains("\"deny\"") || output.status.code() == Some(2), "{said}");
}

#[test]
fn an_empty_log_is_no_error() {
    let world = World::new();
    for arguments in [
        &["audit", "tail"][..],
        &["audit", "stats"],
        &["audit", "query"],
        &["audit", "verify"],
        &["audit", "replay", "--policy", "strict"],
        &["policy", "suggest"],
    ] {
        let (code, output, error) = world.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {output}{error}");
        assert!(error.contains("the audit log is empty"), "{arguments:?}: {error}");
    }
    assert_eq!(world.run(&["audit", "--log", "missing", "tail"]).0, 2, "a log that was named has to exist");
}

#[test]
fn commands_that_change_something_answer_programs_too() {
    let world = World::new();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let (code, output, error) = world.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {output}{error}");
        serde_json::from_str(&output).unwrap_or_else(|_| panic!("{arguments:?}: {output}"))
    };
    let granted = json(&["grant", "add", "Bash", "--any", "--json"]);
    let id = granted[0]["id"].to_string();
    assert_eq!(json(&["grant", "revoke", &id, "--json"])[0]["id"].to_string(), id);
    assert_eq!(json(&["session", "auto", "s", "--all", "--json"])["session"], "s");
    assert_eq!(json(&["session", "reset", "s", "--json"])["reset"], true);
    let payload = serde_json::json!({"session_id": "s", "cwd": world.project(), "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command", "tool_input": {"command": "git push origin main"}});
    for (answer, decision) in [("approve", "approved"), ("deny", "denied")] {
        world.with_input(&["hook", "gemini"], payload.to_string().as_bytes());
        let waiting = json(&["approvals", "list", "--json"]);
        let id = waiting[0]["id"].as_str().expect("a question is kept").to_owned();
        let told = json(&["approvals", answer, &id, "--json"]);
        assert_eq!((told["id"].as_str(), told["decision"].as_str()), (Some(id.as_str()), Some(decision)));
        // the yes is spent
        world.with_input(&["hook", "gemini"], payload.to_string().as_bytes());
    }
    assert_eq!(json(&["audit", "redact", "2", "--reason", "x", "--json"])["redacted"], true);
    assert!(json(&["audit", "checkpoint", "--json"]).is_object());
}
