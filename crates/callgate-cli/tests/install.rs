//! `callgate install`, `uninstall` and `status` with the real hook.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing by failing")]

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// An empty home and an empty project.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["home/.claude", "project"] {
            fs::create_dir_all(directory.path().join(name)).expect("a directory");
        }
        World { directory }
    }

    fn home(&self, name: &str) -> PathBuf {
        self.directory.path().join("home").join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command
            .args(arguments)
            .current_dir(self.directory.path().join("project"))
            .env_clear()
            .env("HOME", self.home(""))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().expect("the command starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn states(&self) -> Vec<(String, String)> {
        let (_, output, _) = self.run(&["status", "--json"]);
        let status: Value = serde_json::from_str(&output).expect("JSON");
        let told = |report: &Value, key: &str| report[key].as_str().expect("a text").to_owned();
        status["agents"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|report| (told(report, "agent"), told(report, "state")))
            .filter(|(_, state)| state != "not_found")
            .collect()
    }
}

const SETTINGS: &str = "{\n  // mine\n  \"model\": \"x\"\n}\n";

#[test]
fn every_agent_is_proven_with_the_real_hook_and_everything_goes_again() {
    let world = World::new();
    fs::write(world.home(".claude/settings.json"), SETTINGS).expect("written");
    let agents = ["claude", "codex", "gemini", "copilot", "cursor", "opencode", "qwen", "windsurf", "amp", "goose"];
    let (code, output, error) = world.run(&[&["install", "--trust"], agents.as_slice()].concat());
    assert_eq!(code, 0, "{output}{error}");
    assert_eq!(output.matches("tested: `ls` is allowed").count(), agents.len(), "{output}");
    let expected: Vec<_> = agents.iter().map(|agent| ((*agent).to_owned(), "proven".to_owned())).collect();
    assert_eq!(world.states(), expected, "trying out is not using");
    assert_eq!(world.run(&["status"]).0, 0);

    let (code, output, _) = world.run(&["install", "claude", "codex"]);
    assert_eq!((code, output.matches("nothing to change").count()), (0, 2), "{output}");
    assert_eq!(world.run(&["uninstall", "--all"]).0, 0);
    assert_eq!(fs::read_to_string(world.home(".claude/settings.json")).expect("there"), SETTINGS);
    assert_eq!(world.states(), [("claude".to_owned(), "not_installed".to_owned())]);
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let world = World::new();
    fs::write(world.home(".claude/settings.json"), SETTINGS).expect("written");
    let (code, output, _) = world.run(&["install", "claude", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(output.contains("-  \"model\": \"x\"\n+  \"model\": \"x\",\n+  \"hooks\": {\n"), "{output}");
    assert_eq!(fs::read_to_string(world.home(".claude/settings.json")).expect("there"), SETTINGS);
    assert!(!world.home(".local/share/callgate/installed").exists());
    let (code, output, _) = world.run(&["install"]);
    assert_eq!(code, 0);
    assert!(output.contains("Claude Code") && output.contains("callgate install claude"), "{output}");
}

#[test]
fn mistakes_are_told_apart_from_what_went_wrong() {
    let world = World::new();
    let (code, _, error) = world.run(&["install", "clod"]);
    assert_eq!(code, 2);
    assert!(error.contains("unknown agent `clod`; expected one of claude, codex"), "{error}");
    fs::write(world.home(".claude/settings.json"), "{\n  \"a\": ,\n}").expect("written");
    let (code, _, error) = world.run(&["install", "claude"]);
    assert_eq!(code, 1);
    assert!(error.contains("settings.json: line 2, column 8"), "{error}");
    let (code, output, _) = world.run(&["install", "amp", "--managed", "--json"]);
    assert_eq!(code, 1);
    assert!(serde_json::from_str::<Value>(&output).expect("JSON")["error"].is_string(), "{output}");
}

#[test]
fn what_was_altered_is_found() {
    let world = World::new();
    assert_eq!(world.run(&["install", "claude"]).0, 0);
    let settings = world.home(".claude/settings.json");
    let text = fs::read_to_string(&settings).expect("there");
    fs::write(&settings, text.replacen("\"hooks\"", "\"disableAllHooks\": true, \"hooks\"", 1)).expect("written");
    let (code, output, _) = world.run(&["status"]);
    assert_eq!(code, 1);
    assert!(output.contains("altered") && output.contains("`disableAllHooks` is true in"), "{output}");
}

#[test]
fn the_first_call_of_the_agent_makes_it_active() {
    let world = World::new();
    assert_eq!(world.run(&["install", "claude"]).0, 0);
    assert_eq!(world.states(), [("claude".to_owned(), "proven".to_owned())]);
    let mut hook =
        world.command(&["hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a hook");
    let project = world.directory.path().join("project");
    let payload = serde_json::json!({ "session_id": "s", "cwd": project, "hook_event_name": "SessionStart", "source": "startup" });
    hook.stdin.take().expect("a pipe").write_all(payload.to_string().as_bytes()).expect("written");
    assert!(hook.wait().expect("it ends").success());
    assert_eq!(world.states(), [("claude".to_owned(), "active".to_owned())]);
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_file_or_the_new_one() {
    let world = World::new();
    let settings = world.home(".claude/settings.json");
    fs::write(&settings, SETTINGS).expect("written");
    assert_eq!(world.run(&["install", "claude"]).0, 0);
    let installed = fs::read_to_string(&settings).expect("there");
    assert_eq!(world.run(&["uninstall", "claude"]).0, 0);
    for step in 0..24_u64 {
        let task = if step % 3 == 2 { "uninstall" } else { "install" };
        let mut child = world
            .command(&[task, "claude"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        std::thread::sleep(Duration::from_millis(step * 7));
        drop(child.kill());
        child.wait().expect("it ends");
        let text = fs::read_to_string(&settings).expect("there");
        assert!(text == SETTINGS || text == installed, "{text}");
    }
    assert_eq!(world.run(&["install", "claude"]).0, 0, "what a kill left behind is no obstacle");
    assert_eq!(world.run(&["uninstall", "claude"]).0, 0);
    assert_eq!(fs::read_to_string(&settings).expect("there"), SETTINGS);
}
