//! `callgate audit` and what learns from it, as people and programs meet it: on a log that was kept, so that what is shown is known.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing by failing"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use callgate_audit::entry::{EntryBody, Record, Started};
use callgate_audit::{Log, LogSettings, SyncMode};
use serde_json::Value;

/// A home with a log in its usual place.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let world = World { directory };
        fs::create_dir_all(world.path("project")).expect("a directory");
        let log = world.log();
        fs::create_dir_all(&log.directory).expect("a directory");
        fs::set_permissions(&log.directory, fs::Permissions::from_mode(0o700)).expect("a mode");
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../callgate-audit/tests/data/version-1");
        for (name, to) in [
            ("audit-000001.jsonl", log.directory.join("audit-000001.jsonl")),
            ("head", log.directory.join("head")),
            ("audit-key", log.key),
        ] {
            fs::copy(kept.join(name), &to).expect("a file");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn log(&self) -> LogSettings {
        LogSettings::at(self.path("home/.local/state/callgate/audit")).sync(SyncMode::Os)
    }

    fn segment(&self) -> PathBuf {
        self.log().directory.join("audit-000001.jsonl")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command
            .args(arguments)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    /// Exit code and output; what differs from run to run is replaced.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().expect("the command starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let text = text.replace(&self.directory.path().display().to_string(), "[world]");
        (output.status.code().expect("an exit code"), text)
    }

    /// The output of something that goes well.
    fn shown(&self, arguments: &[&str]) -> String {
        let (code, text) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {text}");
        text
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn tail_shows_the_last_entries_as_a_table_or_as_they_stand() {
    let world = World::new();
    insta::assert_snapshot!("tail", world.shown(&["audit", "tail", "-n", "8"]));
    let whole = fs::read_to_string(world.segment()).expect("a log");
    let last: Vec<&str> = whole.lines().rev().take(3).collect();
    let shown = world.shown(&["audit", "tail", "--json", "-n", "3"]);
    assert_eq!(shown.lines().rev().collect::<Vec<_>>(), last);
    assert_eq!(world.shown(&["audit", "tail", "--json", "-n", "0"]), "");
}

#[test]
fn tail_goes_on_as_entries_are_added() {
    let world = World::new();
    let mut child =
        world.command(&["audit", "tail", "--json", "-f", "-n", "1"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines(&output.next().expect("a line").expect("text")).remove(0);
    assert_eq!(next()["seq"], 27);
    let log = Log::open(world.log()).expect("a log");
    for call in ["a", "b\u{1b}[2J\nc"] {
        let body = EntryBody::Started(Started { tool: "Bash".into(), sandbox: None });
        log.append(&Record::new(body).call(call)).expect("an entry");
        log.rotate().expect("another segment");
        let found = std::iter::repeat_with(&mut next).find(|entry| entry["kind"] == "started").expect("an entry");
        assert_eq!(found["call"], call);
    }
    child.kill().expect("it ends");
    child.wait().expect("it ends");
}

#[test]
fn query_finds_entries_by_everything_they_have() {
    let world = World::new();
    let count = |arguments: &[&str]| {
        let all = [&["audit", "query", "--json"], arguments].concat();
        lines(&world.shown(&all)).len()
    };
    for (arguments, expected) in [
        (&[] as &[&str], 26),
        (&["--since", "2026-11-15T00:00:00Z"], 26),
        (&["--since", "2026-11-16"], 0),
        (&["--until", "2026-11-15T00:00:00Z"], 0),
        (&["--until", "2026-11-16", "--since", "2026-11-15"], 26),
        (&["--session", "s-1"], 26),
        (&["--session", "s"], 0),
        (&["--kind", "approval"], 3),
        (&["--kind", "segment"], 1),
        (&["--tool", "Bash"], 26),
        (&["--tool", "B*h"], 26),
        (&["--tool", "Read"], 0),
        (&["--effect", "run"], 7),
        (&["--effect", "connect"], 2),
        (&["--effect", "delete"], 0),
        (&["--decision", "deny"], 1),
        (&["--decision", "ask"], 3),
        (&["--rule", "project-code"], 3),
        (&["--rule", "no-secrets"], 2),
        (&["--path", "/home/ada/.ssh"], 1),
        (&["--path", "/home/ada/.ss"], 0),
        (&["--path", "*/notes.md"], 1),
        (&["--host", "example.com"], 0),
        (&["--decision", "allow", "--path", "/home/ada/project/notes.md"], 1),
    ] {
        assert_eq!(count(arguments), expected, "{arguments:?}");
    }
    insta::assert_snapshot!("query_table", world.shown(&["audit", "query", "--decision", "ask"]));
    insta::assert_snapshot!("query_csv", world.shown(&["audit", "query", "--format", "csv", "--rule", "no-secrets"]));
    for wrong in [["--since", "yesterday"], ["--effect", "fly"], ["--decision", "perhaps"]] {
        let (code, text) = world.run(&[&["audit", "query"], wrong.as_slice()].concat());
        assert_eq!(code, 2, "{text}");
    }
}

#[test]
fn show_tells_the_whole_story_of_a_call_in_order() {
    let world = World::new();
    insta::assert_snapshot!("show_asked", world.shown(&["audit", "show", "18e85b285881b0ce-317f-2"]));
    insta::assert_snapshot!("show_denied", world.shown(&["audit", "show", "18e85b285b5e1446-317f-5"]));
    assert_eq!(lines(&world.shown(&["audit", "show", "--json", "18e85b285881b0ce-317f-2"])).len(), 5);
    let (code, text) = world.run(&["audit", "show", "nobody"]);
    assert!(code != 0 && text.contains("call nobody is not in the log"), "{text}");
}

#[test]
fn stats_count_prompts_answers_and_rules() {
    let world = World::new();
    insta::assert_snapshot!("stats", world.shown(&["audit", "stats"]));
    let stats: Value = serde_json::from_str(&world.shown(&["audit", "stats", "--json"])).expect("JSON");
    assert_eq!((&stats["calls"], &stats["approved"]), (&Value::from(7), &Value::from(2)));
    let silent = world.shown(&["audit", "stats", "--policy", "standard"]);
    assert!(silent.contains("rules that never decided"), "{silent}");
    assert!(!silent.split("never decided").nth(1).expect("a list").contains("no-secrets"), "{silent}");
}

#[test]
fn export_speaks_ocsf() {
    let world = World::new();
    let text = world.shown(&["audit", "export", "--format", "ocsf"]);
    let events = lines(&text);
    assert_eq!(events.len(), 27);
    let violation = events.iter().find(|event| event["class_uid"] == 2004).expect("a finding");
    insta::assert_json_snapshot!("ocsf_finding", violation);
}

#[test]
fn export_speaks_otlp() {
    let world = World::new();
    let requests = lines(&world.shown(&["audit", "export", "--format", "otel"]));
    assert_eq!(requests.len(), 1);
    let logs = &requests[0]["resourceLogs"][0];
    assert_eq!(logs["resource"]["attributes"][0]["key"], "service.name");
    let records = logs["scopeLogs"][0]["logRecords"].as_array().expect("records");
    assert_eq!(records.len(), 27);
    let (code, text) = world.run(&["audit", "export", "-o", "../entries.jsonl"]);
    assert_eq!((code, text.as_str()), (0, "27 entries\n"));
    let (code, text) = world.run(&["audit", "export", "-o", "../entries.jsonl"]);
    assert!(code != 0 && text.contains("cannot create"), "nothing is overwritten: {text}");
}

#[test]
fn verify_tells_intact_crashed_and_tampered_apart() {
    let world = World::new();
    insta::assert_snapshot!("verify_intact", world.shown(&["audit", "verify"]));
    let whole = fs::read_to_string(world.segment()).expect("a log");
    fs::write(world.segment(), format!("{whole}{{\"v\":1,\"seq\":28,\"pr")).expect("a file");
    let (code, text) = world.run(&["audit", "verify"]);
    assert_eq!(code, 20, "{text}");
    insta::assert_snapshot!("verify_crash", text);
    fs::write(world.segment(), whole.replacen("cat ~/.ssh/id_rsa", "cat ~/.ssh/config", 1)).expect("a file");
    let (code, text) = world.run(&["audit", "verify"]);
    assert_eq!(code, 21, "{text}");
    insta::assert_snapshot!("verify_tampered", text);
    let (code, text) = world.run(&["audit", "verify", "--json"]);
    assert_eq!(code, 21);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["status"], "tampered");
    let (code, _) = world.run(&["audit", "verify", "--log", "nowhere"]);
    assert!(!matches!(code, 0 | 20 | 21));
}

#[test]
fn a_log_that_fits_its_checkpoints_elsewhere_is_whole_and_one_rolled_back_is_not() {
    let world = World::new();
    let kept: Vec<(PathBuf, Vec<u8>)> = ["audit-000001.jsonl", "head"]
        .map(|name| world.log().directory.join(name))
        .map(|path| (path.clone(), fs::read(&path).expect("a file")))
        .into();
    let checkpoint = world.shown(&["audit", "checkpoint"]);
    fs::write(world.path("project/sent"), &checkpoint).expect("a file");
    world.shown(&["audit", "verify", "--checkpoints", "sent"]);
    for (path, bytes) in kept {
        fs::write(path, bytes).expect("a file");
    }
    world.shown(&["audit", "verify"]);
    let (code, text) = world.run(&["audit", "verify", "--checkpoints", "sent"]);
    assert_eq!(code, 21, "log and head rolled back together: {text}");
    fs::write(
        world.path("project/forged"),
        checkpoint.replacen("\"seq\": ", "\"seq\": 1", 1).replacen("\"seq\":", "\"seq\":1", 1),
    )
    .expect("a file");
    let (code, _) = world.run(&["audit", "verify", "--checkpoints", "forged"]);
    assert_ne!(code, 0, "a checkpoint that nobody signed");
}

#[test]
fn an_entry_taken_out_leaves_a_tombstone_and_a_damaged_log_is_set_aside() {
    let world = World::new();
    world.shown(&["audit", "redact", "22", "--reason", "names a key", "--by", "ada"]);
    world.shown(&["audit", "verify"]);
    let all = world.shown(&["audit", "export"]);
    assert!(!all.contains("id_rsa") && all.contains("\"reason\":\"names a key\""), "{all}");
    let (code, text) = world.run(&["audit", "redact", "1", "--reason", "x"]);
    assert!(code != 0 && text.contains("is not in the log"), "{text}");

    let path = fs::read_dir(world.log().directory).expect("a log").filter_map(Result::ok).map(|file| file.path());
    let last = path.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).max().expect("a segment");
    fs::write(&last, "garbage\n").expect("a file");
    let (code, text) = world.run(&["audit", "checkpoint"]);
    assert!(code != 0 && text.contains("is damaged"), "{text}");
    let text = world.shown(&["audit", "set-aside"]);
    assert!(text.contains("set-aside-"), "{text}");
    world.shown(&["audit", "verify"]);
    assert!(world.shown(&["audit", "export"]).contains("\"follows\":\"audit.set-aside-"));
}

#[test]
fn replay_shows_what_another_policy_would_change() {
    let world = World::new();
    let (code, text) = world.run(&["audit", "replay", "--policy", "unattended"]);
    assert_eq!(code, 22, "{text}");
    insta::assert_snapshot!("replay_unattended", text);
    let quiet = "extends: standard\nrules:\n  - {name: tests, commands: [cargo test], action: allow, reason: ours}\n";
    fs::write(world.path("project/quiet.yaml"), quiet).expect("a file");
    let (code, text) = world.run(&["audit", "replay", "--policy", "quiet.yaml"]);
    assert_eq!(code, 22, "{text}");
    insta::assert_snapshot!("replay_quiet", text);
    world.shown(&["audit", "replay", "--policy", "quiet.yaml", "--fail-on", "asked,refused"]);
    world.shown(&["audit", "replay", "--policy", "standard"]);
    let json = world.shown(&["audit", "replay", "--policy", "unattended", "--fail-on", "none", "--json"]);
    let replay: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(replay["calls"], 7);
}

#[test]
fn suggest_proposes_what_would_have_saved_prompts_and_diff_shows_what_becomes_possible() {
    let world = World::new();
    insta::assert_snapshot!("suggest", world.shown(&["policy", "suggest"]));
    let loose =
        "extends: standard\nrules:\n  - {name: pushes, commands: ['git push **'], action: allow, reason: ours}\n";
    fs::write(world.path("project/loose.yaml"), loose).expect("a file");
    let (code, text) = world.run(&["policy", "diff", "standard", "loose.yaml", "--recorded"]);
    assert_eq!(code, 22, "{text}");
    // how many calls are compared changes with every example of a bundled policy
    let (compared, shown) = text.split_once('\n').expect("lines");
    assert!(compared.ends_with("calls compared"), "{compared}");
    insta::assert_snapshot!("diff", shown);
    let (code, text) = world.run(&["policy", "diff", "standard", "standard"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn suggestions_are_accepted_by_number() {
    let world = World::new();
    let proposed = |world: &World| -> Vec<serde_json::Value> {
        let (code, text) = world.run(&["suggest", "--json"]);
        assert_eq!(code, 0, "{text}");
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        answer["suggestions"].as_array().expect("a list").clone()
    };
    let before = proposed(&world);
    assert!(!before.is_empty() && before.len() <= 5);
    let example = before[0]["examples"][0].as_str().expect("an example").to_owned();
    let example = example.split_once(": ").map_or(example.as_str(), |(_, command)| command).to_owned();
    let file = world.path("home/.config/callgate/callgate.yaml");
    let (code, text) = world.run(&["suggest", "--accept", "1,9"]);
    assert!(code != 0 && text.contains("there is no proposal 9") && !file.exists(), "{text}");
    let (_, shown) = world.run(&["suggest"]);
    assert!(shown.contains("1. ") && shown.contains("callgate suggest --accept NUMBER"), "{shown}");
    assert_ne!(world.run(&["check", "--sandbox", "none", &example]).0, 0);
    let (code, text) = world.run(&["suggest", "--accept", "1"]);
    assert!(code == 0 && file.exists(), "{text}");
    assert_eq!(world.run(&["check", "--sandbox", "none", &example]).0, 0, "{example}");
    assert_eq!(proposed(&world).len(), before.len() - 1);
    assert_eq!(world.run(&["policy", "undo"]).0, 0);
    assert_eq!(proposed(&world).len(), before.len());
}

#[test]
fn the_users_policy_says_where_the_log_lies_and_a_projects_does_not() {
    let world = World::new();
    fs::write(world.path("project/callgate.yaml"), "audit: {directory: /nowhere/at/all}\n").expect("a file");
    world.shown(&["audit", "verify"]);
    fs::create_dir_all(world.path("home/.config/callgate")).expect("a directory");
    let user = "extends: standard\naudit: {directory: ~/elsewhere/log}\n";
    fs::write(world.path("home/.config/callgate/callgate.yaml"), user).expect("a file");
    let (code, text) = world.run(&["audit", "verify"]);
    assert!(code == 0 && text.contains("no call was recorded yet in [world]/home/elsewhere/log"), "{text}");
    fs::write(world.path("home/.config/callgate/callgate.yaml"), "audit: {directory: here}\n").expect("a file");
    let (code, text) = world.run(&["audit", "verify"]);
    assert!(code != 0 && text.contains("--log DIRECTORY"), "{text}");
    let usual = world.log().directory.display().to_string();
    world.shown(&["audit", "verify", "--log", &usual]);
}

#[test]
fn a_log_that_was_removed_is_not_an_empty_one() {
    let world = World::new();
    world.run(&["check", "--ask", "git push"]);
    fs::remove_dir_all(world.log().directory).expect("a log");
    let (code, text) = world.run(&["audit", "verify"]);
    assert!(code != 0 && text.contains("there is no audit log"), "{text}");
}

#[test]
fn questions_about_calls_are_not_calls() {
    let world = World::new();
    let before = fs::read(world.segment()).expect("a log");
    for arguments in [["check", "ls"], ["check", "rm -rf /"], ["explain", "git push"]] {
        world.run(&arguments);
    }
    assert_eq!(fs::read(world.segment()).expect("a log"), before);
    // with --ask the call is meant, and what cannot be answered is refused and written down
    let (code, _) = world.run(&["check", "--ask", "git push"]);
    assert_ne!(code, 0);
    let kinds: Vec<String> = lines(&world.shown(&["audit", "query", "--json"]))
        .iter()
        .skip(26)
        .map(|entry| entry["kind"].as_str().expect("a kind").to_owned())
        .collect();
    assert_eq!(kinds, ["tool_attempt", "approval_requested", "approval", "refused"]);
}

#[test]
fn the_policies_in_the_document_about_the_log_hold() {
    let world = World::new();
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit-log.md")).expect("a document");
    let sections: Vec<&str> = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!sections.is_empty());
    for section in sections {
        fs::write(world.path("project/shown.yaml"), section).expect("a file");
        assert_eq!(world.run(&["policy", "test", "shown.yaml"]).0, 0, "{section}");
    }
}
