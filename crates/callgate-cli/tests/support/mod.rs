//! A home and a project of their own, agents' payloads, and how each agent takes what a hook says.

#![allow(dead_code, reason = "every test uses another part")]

pub mod dice;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use callgate::path::boundary::HostDirectories;
use serde_json::{Value, json};

/// The command in an empty home and a small project.
pub struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let world = World { directory };
        for path in [world.home(), world.project(), world.temporary(), world.project().join("src")] {
            std::fs::create_dir_all(path).expect("a directory");
        }
        std::fs::write(world.project().join("README.md"), "hello\n").expect("a file");
        std::fs::write(world.project().join("src/main.rs"), "fn main() {}\n").expect("a file");
        world
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it is there")
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    fn temporary(&self) -> PathBuf {
        self.root().join("tmp")
    }

    pub fn log(&self) -> PathBuf {
        self.home().join(".local/state/callgate/audit")
    }

    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let text = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
        vec![
            ("HOME", text(self.home())),
            ("TMPDIR", text(self.temporary())),
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("CLAUDE_PROJECT_DIR", text(self.project())),
            ("AGENT_TOOL_NAME", "Bash".to_owned()),
        ]
    }

    /// The surroundings as the command finds them here.
    pub fn host(&self) -> HostDirectories {
        HostDirectories {
            home: Some(self.home()),
            temporary: vec![self.temporary(), "/tmp".into(), "/var/tmp".into()],
            programs: vec![],
        }
    }

    fn placed(&self, mut command: Command) -> Command {
        command.current_dir(self.project()).env_clear().envs(self.environment());
        command
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.args(arguments).stdin(Stdio::null());
        self.placed(command)
    }

    /// The hook as an agent starts it.
    pub fn hook(&self, agent: &str, arguments: &[&str]) -> Command {
        self.command(&[&["hook", agent], event(agent), arguments].concat())
    }

    /// The hook with a clock that is wrong.
    pub fn at_another_time(&self, shift: &str, agent: &str) -> Command {
        let mut command = Command::new("faketime");
        command.args(["-f", shift, env!("CARGO_BIN_EXE_callgate"), "hook", agent]).args(event(agent));
        self.placed(command)
    }

    /// The log holds what it should, unaltered.
    pub fn log_is_whole(&self) {
        let output = told(self.command(&["audit", "verify"]).output().expect("the command starts"));
        assert_eq!(output.code, 0, "{output:?}");
    }

    /// How many calls the log has.
    pub fn attempts(&self) -> usize {
        let segments = std::fs::read_dir(self.log()).expect("a log").map(|entry| entry.expect("an entry").path());
        let lines = segments.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        lines.map(|path| std::fs::read_to_string(path).expect("text").matches("\"tool_attempt\"").count()).sum()
    }
}

/// Waits for other tests that use permits. Permits lie where the user id leads, so tests share them, and what is presented without a
/// permit is recorded where the latest permit came from. Only one process of these tests runs at a time.
pub fn permits_in_turn() {
    static TURN: std::sync::OnceLock<std::fs::File> = std::sync::OnceLock::new();
    TURN.get_or_init(|| {
        let turn = std::fs::File::create(concat!(env!("CARGO_TARGET_TMPDIR"), "/permits.turn")).expect("a file");
        turn.lock().expect("a lock");
        turn
    });
}

/// What a process said.
#[derive(Debug)]
pub struct Told {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn told(output: Output) -> Told {
    Told {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Starts a process and hands it its input.
pub fn start(mut command: Command, input: &[u8]) -> Child {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // a hook may refuse before it has read everything
    let _ = stdin.write_all(input);
    child
}

/// Starts a process, hands it its input and waits for its end.
pub fn feed(command: Command, input: &[u8]) -> Told {
    told(start(command, input).wait_with_output().expect("it ends"))
}

/// The event, where the payload does not name it.
fn event(_agent: &str) -> &'static [&'static str] {
    &[]
}

/// The payload with which an agent announces a shell command. Agents that keep a shell begin a session for each call: what
/// one call leaves there would change what is decided of the next.
pub fn payload(agent: &str, command: &str, id: &str, directory: &Path) -> Vec<u8> {
    let input = json!({ "command": command });
    let session = "session";
    let shaped = match agent {
        "gemini" => {
            json!({"session_id": session, "transcript_path": "/t", "cwd": directory, "hook_event_name": "BeforeTool",
            "timestamp": "2026-11-15T10:00:00Z", "tool_name": "run_shell_command", "tool_input": input})
        }
        "qwen" => {
            json!({"session_id": session, "transcript_path": "/t", "cwd": directory, "hook_event_name": "PreToolUse",
            "permission_mode": "yolo", "tool_name": "run_shell_command", "tool_input": input, "tool_use_id": id})
        }
        "copilot" => {
            json!({"sessionId": id, "timestamp": 1_794_768_607_435_u64, "cwd": directory, "toolName": "bash",
            "toolArgs": {"command": command, "description": "x"}})
        }
        "cursor" => json!({"conversation_id": id, "generation_id": "g", "hook_event_name": "beforeShellExecution",
            "workspace_roots": [directory], "command": command, "cwd": directory}),
        "opencode" => {
            json!({"hook_event_name": "PreToolUse", "client": "opencode", "session_id": session, "cwd": directory,
            "tool_name": "bash", "tool_input": input, "tool_use_id": id, "changes_input": true})
        }
        "windsurf" => json!({"agent_action_name": "pre_run_command", "trajectory_id": session, "execution_id": id,
            "timestamp": "2026-11-15T10:00:00Z", "tool_info": {"command_line": command, "cwd": directory}}),
        "amp" => json!({ "cmd": command }),
        "generic" => {
            json!({"version": 1, "event": "before", "agent": "x", "session": session, "call_id": id, "directory": directory,
            "workspace": directory, "tool": "Bash", "input": input})
        }
        "goose" => {
            json!({"event": "PreToolUse", "session_id": session, "tool_name": "developer__shell", "tool_input": input,
            "working_dir": directory})
        }
        _ => json!({"session_id": session, "transcript_path": "/t", "cwd": directory, "hook_event_name": "PreToolUse",
            "permission_mode": "default", "tool_name": "Bash", "tool_input": input, "tool_use_id": id}),
    };
    shaped.to_string().into_bytes()
}

/// How an agent takes what a hook said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Allowed,
    Refused,
    Asked,
    /// Nothing that the agent understands: it would go on as if there were no hook.
    Nothing,
}

/// How this agent takes it, read as strictly as the agent does.
pub fn answered(agent: &str, _payload: &[u8], told: &Told) -> Answered {
    let reason = !told.stderr.trim().is_empty();
    match told.code {
        0 => {}
        1 if agent == "amp" => return Answered::Asked,
        3 if agent == "generic" && reason => return Answered::Asked,
        // without a reason some agents go on
        2 if reason => return Answered::Refused,
        _ => return Answered::Nothing,
    }
    if told.stdout.trim().is_empty() {
        // these have no other way to say yes
        return if matches!(agent, "codex" | "goose" | "windsurf" | "amp") {
            Answered::Allowed
        } else {
            Answered::Nothing
        };
    }
    let Ok(answer) = serde_json::from_str::<Value>(&told.stdout) else { return Answered::Nothing };
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    let (decision, why) = match agent {
        "gemini" => (text("/decision"), text("/reason")),
        "copilot" => (text("/permissionDecision"), text("/permissionDecisionReason")),
        "cursor" => (text("/permission"), text("/agent_message")),
        "goose" => (text("/decision"), text("/reason")),
        "generic" => (text("/decision"), text("/reason")),
        _ if text("/hookSpecificOutput/hookEventName") != Some("PreToolUse") => return Answered::Nothing,
        _ => (text("/hookSpecificOutput/permissionDecision"), text("/hookSpecificOutput/permissionDecisionReason")),
    };
    match (decision, why) {
        (Some("allow"), _) if agent == "codex" && answer.pointer("/hookSpecificOutput/updatedInput").is_none() => {
            Answered::Nothing
        }
        (Some("allow"), _) => Answered::Allowed,
        (Some("deny" | "block"), Some(why)) if !why.trim().is_empty() => Answered::Refused,
        // these go on, or hang
        (Some("ask"), _) if matches!(agent, "codex" | "gemini") => Answered::Nothing,
        (Some("ask"), Some(_)) => Answered::Asked,
        _ => Answered::Nothing,
    }
}
