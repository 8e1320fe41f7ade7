//! The prompt on a real terminal, made by `script`, and where there is none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callgate::approvals::channel::TerminalApprover;
use callgate::approvals::{ApprovalId, Approver as _, Question};
use callgate::clock::Timestamp;
use serde_json::json;

const RESULT: &str = "CALLGATE_TEST_RESULT";

/// What the process on the terminal does: asks, and writes down what it was told.
#[test]
fn asker() {
    let Some(result) = std::env::var_os(RESULT) else { return };
    let now = Timestamp::now();
    let question: Question = serde_json::from_value(json!({
        "id": ApprovalId::random().unwrap(), "tool": "Bash", "key": null, "session": null, "agent": "claude", "scope": null,
        "directory": null, "request": {"command": "make \u{202e}"}, "effects": [], "risk_level": "low", "rule": null,
        "place": null, "reason": "why", "asked_at": now, "deadline": now.after(Duration::from_secs(20)),
    }))
    .unwrap();
    let answer = TerminalApprover::new().ask(&question, &|| true);
    fs::write(result, format!("{answer:?}")).unwrap();
}

fn asker_command(result: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    format!("{RESULT}='{}' '{}' --exact asker --nocapture", result.display(), program.display())
}

fn shown_until(terminal: &mut Child, end: &str) -> String {
    let mut shown = Vec::new();
    let mut byte = [0_u8];
    let output = terminal.stdout.as_mut().unwrap();
    while !String::from_utf8_lossy(&shown).ends_with(end) {
        assert_eq!(output.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
        shown.push(byte[0]);
    }
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_person_answers_at_the_terminal_and_what_was_typed_before_is_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let result = directory.path().join("result");
    let mut terminal = Command::new("script")
        .args(["-qec", &format!("sleep 1; {}", asker_command(&result)), "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = terminal.stdin.take().unwrap();
    // typed while nobody has asked anything yet
    keyboard.write_all(b"y\n").unwrap();
    let shown = shown_until(&mut terminal, "\n> ");
    assert!(shown.contains("may claude do this?") && shown.contains("make \\u{202e}"), "{shown}");
    assert!(!result.exists());
    keyboard.write_all(b"n not today\n").unwrap();
    drop(terminal.stdout.take());
    terminal.wait().unwrap();
    let told = fs::read_to_string(result).unwrap();
    assert!(told.contains("Denied") && told.contains("not today"), "{told}");
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let result = directory.path().join("result");
    let status = Command::new("setsid")
        .args(["--wait", "sh", "-c", &asker_command(&result)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let told = fs::read_to_string(result).unwrap();
    assert!(told.contains("Unavailable") && told.contains("no terminal"), "{told}");
}
