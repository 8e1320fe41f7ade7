//! `callgate install`, `uninstall` and `status` with the real hook.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing by failing")]

mod terminal;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use terminal::OnTerminal;

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

#[test]
fn install_says_how_questions_are_answered_and_sets_it_up() {
    let world = World::new();
    let (code, output, error) = world.run(&["install", "claude", "gemini"]);
    assert_eq!(code, 0, "{output}{error}");
    assert!(output.contains("Claude Code shows questions in its own prompt"), "{output}");
    assert!(
        output.contains("Gemini CLI has no prompt for questions: keep `callgate approvals watch` open"),
        "{output}"
    );
    let (code, output, error) = world.run(&["install", "claude", "--ask", "approvers"]);
    assert_eq!(code, 0, "{output}{error}");
    assert!(output.contains("questions wait for your answer"), "{output}");
    let settings = fs::read_to_string(world.home(".claude/settings.json")).expect("there");
    assert!(settings.contains(r#""--ask", "approvers""#), "{settings}");
    assert!(world.states().contains(&("claude".to_owned(), "proven".to_owned())));
    assert_eq!(world.run(&["uninstall", "claude"]).0, 0);
    assert!(!world.home(".claude/settings.json").exists());
}

#[test]
fn a_hook_that_codex_would_skip_is_not_called_installed() {
    let world = World::new();
    let (code, output, error) = world.run(&["install", "codex"]);
    assert_eq!(code, 1, "{output}{error}");
    assert!(output.contains("Codex CLI: written, and not active"), "{output}");
    assert!(output.contains("callgate install codex --trust"), "{output}");
    let (code, output, error) = world.run(&["install", "codex", "--trust"]);
    assert!(code == 0 && output.contains("Codex CLI: installed"), "{output}{error}");
}

#[test]
fn entries_that_a_person_changed_are_removed_and_what_cannot_be_is_said() {
    let world = World::new();
    let settings = world.home(".claude/settings.json");
    fs::write(&settings, SETTINGS).expect("written");
    assert_eq!(world.run(&["install", "claude"]).0, 0);
    let text = fs::read_to_string(&settings).expect("there");
    let program = env!("CARGO_BIN_EXE_callgate");
    let shorter = text.replace("\"--timeout\", \"600\"", "\"--ask\", \"nobody\"");
    let moved = text.replace(program, "/opt/my tools/callgate");
    let one_line = text
        .replace(&format!("\"command\": \"{program}\""), "\"command\": \"nice '/opt/my tools/callgate' hook claude\"")
        .replace("\"args\": [\"hook\", \"claude\", \"--timeout\", \"600\"],", "");
    for edited in [shorter, moved, one_line] {
        assert!(edited != text, "{text}");
        for receipt in [true, false] {
            assert_eq!(world.run(&["install", "claude"]).0, 0);
            fs::write(&settings, &edited).expect("written");
            if !receipt {
                fs::remove_dir_all(world.home(".local/share/callgate/installed")).expect("removed");
                assert_eq!(world.states(), [("claude".to_owned(), "altered".to_owned())]);
            }
            let (code, output, error) = world.run(&["uninstall", "claude"]);
            assert!(code == 0 && output.contains("removed"), "{output}{error}");
            let after = fs::read_to_string(&settings).unwrap_or_default();
            assert!(!after.contains("\"hook\"") && !after.contains("callgate hook"), "{after}");
            assert_eq!(world.states(), [("claude".to_owned(), "not_installed".to_owned())]);
        }
    }
    // a form that nobody could know
    assert_eq!(world.run(&["install", "claude"]).0, 0);
    let text = fs::read_to_string(&settings).expect("there");
    fs::write(&settings, text.replacen('{', &format!("{{ \"statusLine\": \"{program} hook claude\","), 1))
        .expect("written");
    let (code, output, error) = world.run(&["uninstall", "claude"]);
    assert_eq!(code, 1, "{output}{error}");
    assert!(output.contains("removed in part") && output.contains("still starts callgate"), "{output}");
    assert_eq!(world.states(), [("claude".to_owned(), "altered".to_owned())]);
}

#[test]
fn settings_behind_a_link_are_edited_where_they_are() {
    let world = World::new();
    let real = world.home("dotfiles/claude.json");
    fs::create_dir_all(world.home("dotfiles")).expect("a directory");
    fs::write(&real, SETTINGS).expect("written");
    let link = world.home(".claude/settings.json");
    std::os::unix::fs::symlink("../dotfiles/claude.json", &link).expect("a link");
    let (code, output, error) = world.run(&["install", "claude"]);
    assert_eq!(code, 0, "{output}{error}");
    assert!(
        output.contains("is a link: ") && output.contains("dotfiles/claude.json is the file that is edited"),
        "{output}"
    );
    let is_link = || fs::symlink_metadata(&link).expect("there").is_symlink();
    assert!(is_link() && fs::read_to_string(&real).expect("there").contains("\"hook\""));
    assert_eq!(world.states(), [("claude".to_owned(), "proven".to_owned())]);
    let (code, output, error) = world.run(&["uninstall", "claude"]);
    assert_eq!(code, 0, "{output}{error}");
    assert!(is_link());
    assert_eq!(fs::read_to_string(&real).expect("there"), SETTINGS);
    // a link that leads out of the home is not followed
    fs::remove_file(&link).expect("removed");
    let outside = world.directory.path().join("project/settings.json");
    fs::write(&outside, SETTINGS).expect("written");
    std::os::unix::fs::symlink(&outside, &link).expect("a link");
    let (code, output, error) = world.run(&["install", "claude"]);
    assert!(code == 1 && error.contains("which is not below"), "{output}{error}");
    assert_eq!(fs::read_to_string(&outside).expect("there"), SETTINGS);
}

#[test]
fn the_test_of_a_hook_is_no_violation_in_the_log() {
    let world = World::new();
    let (code, output, error) = world.run(&["install", "claude", "gemini", "amp"]);
    assert!(code == 0 && output.matches("`cat ~/.ssh/id_rsa` is denied").count() == 3, "{output}{error}");
    let (code, output, error) = world.run(&["audit", "tail"]);
    assert!(code == 0 && output.contains("ls"), "{output}{error}");
    assert!(!output.contains("id_rsa") && !output.contains("violation"), "{output}");
    assert!(!world.home(".local/state/callgate/canary-state").exists());
}

const OWN_RULES: &str = r#"{"permissions": {"allow": ["Bash(git push:*)", "Bash(npm test:*)", "Bash(ls:*)", "Read(~/.ssh/**)"],
  "deny": ["Bash(git push --force:*)"]}}"#;

#[test]
fn own_allow_rules_are_shown_and_imported_only_on_request() {
    let world = World::new();
    fs::write(world.home(".claude/settings.json"), OWN_RULES).expect("written");
    let policy = world.home(".config/callgate/callgate.yaml");
    let heading = "your own rules in Claude Code allow calls about which callgate decides otherwise";
    let offer = "to import them: callgate install claude --import";
    for arguments in [&["install", "claude", "--dry-run"][..], &["install", "claude"]] {
        let (code, output, error) = world.run(arguments);
        assert_eq!(code, 0, "{output}{error}");
        assert!(output.contains(heading) && output.contains(offer), "{output}");
        let push = "ask      git push  (~/.claude/settings.json: Bash(git push:*); allow after an import)";
        assert!(output.contains(push), "{output}");
        assert!(output.contains(" npm test  (~/.claude/settings.json: Bash(npm test:*);"), "{output}");
        let key = ".ssh/a/b  (~/.claude/settings.json: Read(~/.ssh/**); the same after an import)";
        assert!(output.contains("deny     Read ") && output.contains(key), "{output}");
        assert!(!output.contains(": Bash(ls:*)"), "what callgate allows, too, is not mentioned: {output}");
    }
    assert!(!policy.exists(), "nothing is imported unasked");
    let (_, output, _) = world.run(&["install", "claude", "--no-import"]);
    assert!(!output.contains(offer), "{output}");
    let (code, output, error) = world.run(&["install", "claude", "--json"]);
    let told: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((code, &told["own_rules"][0]["imported"]), (0, &Value::Bool(false)), "{error}");
    assert_eq!(told["own_rules"][0]["rules"][0]["decision"], "ask", "{told}");

    assert_eq!(world.run(&["check", "git push origin main"]).0, 10);
    let (code, output, error) = world.run(&["install", "claude", "--import"]);
    assert!(code == 0 && output.contains("imported into "), "{output}{error}");
    assert_eq!(world.run(&["check", "git push origin main"]).0, 0);
    assert_eq!(world.run(&["check", "git push --force origin main"]).0, 11, "a deny comes along");
    assert_eq!(world.run(&["check", "cat ~/.ssh/id_rsa"]).0, 11, "an import loosens no deny of callgate");
    // a file that is there stays
    let before = fs::read_to_string(&policy).expect("there");
    fs::write(world.home(".claude/settings.json"), OWN_RULES.replace("git push:*", "gh pr create:*")).expect("written");
    let (code, output, error) = world.run(&["install", "claude", "--import"]);
    assert!(code == 1 && error.contains("already exists"), "{output}{error}");
    assert_eq!(fs::read_to_string(&policy).expect("there"), before);
}

#[test]
fn own_rules_of_a_project_go_into_its_file_which_has_to_be_trusted() {
    let world = World::new();
    let project = world.directory.path().join("project");
    fs::create_dir(project.join(".claude")).expect("a directory");
    // where Claude Code keeps "don't ask again"
    fs::write(project.join(".claude/settings.local.json"), OWN_RULES).expect("written");
    let (code, output, error) = world.run(&["install", "claude", "--import"]);
    assert!(code == 0 && output.contains("until you run `callgate trust`"), "{output}{error}");
    assert!(project.join("callgate.yaml").exists() && !world.home(".config/callgate/callgate.yaml").exists());
    assert_eq!(world.run(&["check", "git push origin main"]).0, 10);
    assert_eq!(world.run(&["trust", "--yes"]).0, 0);
    assert_eq!(world.run(&["check", "git push origin main"]).0, 0);
}

#[test]
fn at_a_terminal_the_import_is_a_question() {
    for (typed, code) in [("n\n", 10), ("Y\n", 0)] {
        let world = World::new();
        fs::write(world.home(".claude/settings.json"), OWN_RULES).expect("written");
        let mut terminal = OnTerminal::new(&world.command(&[]), 100, "install claude");
        terminal.shown_until("Import these rules into ");
        terminal.shown_until("? [y/N] ");
        terminal.types(typed);
        assert_eq!(terminal.ends().0, 0);
        assert_eq!(world.run(&["check", "git push origin main"]).0, code, "{typed}");
    }
}
