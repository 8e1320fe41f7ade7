//! The plugin for OpenCode in a real JavaScript runtime: whatever is not a clear yes stops the call.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use callgate_install::{CanaryExpectation, HostEnvironment, InstallScope, Installer, find};

/// Hands one call to the plugin, and prints what came of it.
const DRIVER: &str = r#"
import { Callgate } from "./callgate.mjs"
const plugin = await Callgate({ directory: process.cwd() })
// as OpenCode does: it passes its own object in, and runs that object
const args = { command: "ls" }
const output = { args }
try {
  await plugin["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, output)
  console.log("ran " + args.command)
} catch (error) {
  console.log("stopped " + error.message)
}
await plugin["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "c", args: output.args }, { output: "x" })
"#;

fn with_program(directory: &Path, script: Option<&str>) -> String {
    let home = directory.join("it's a \"home\"");
    let program = home.join("call gate");
    fs::create_dir_all(&home).expect("a directory");
    if let Some(script) = script {
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("mode");
    } else {
        drop(fs::remove_file(&program));
    }
    let environment = HostEnvironment::of_home(&home);
    let installer = Installer {
        environment: &environment,
        program: &program,
        scope: InstallScope::User,
        denies: &[],
        trust: false,
        ask: None,
        expected: CanaryExpectation::default(),
    };
    let steps = installer.preview(find("opencode").expect("known")).expect("a plan");
    let plugin = steps.files.into_iter().find_map(|step| step.after).expect("the plugin");
    // So that a hook that hangs is not waited for until somebody could have answered.
    let impatient = plugin.replace("600000", "500");
    assert_ne!(plugin, impatient);
    fs::write(home.join("callgate.mjs"), impatient).expect("written");
    fs::write(home.join("driver.mjs"), DRIVER).expect("written");
    let output = Command::new("node").arg("driver.mjs").current_dir(&home).output().expect("node");
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    told
}

#[test]
fn only_a_clear_yes_lets_a_call_run() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("node is not installed; the plugin was not run");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let told = |script: Option<&str>| with_program(directory.path(), script);
    let answer = |rest: &str| format!("cat >/dev/null; echo '{{\"hookSpecificOutput\":{{{rest}}}}}'");

    assert_eq!(told(Some(&answer(r#""permissionDecision":"allow""#))), "ran ls");
    let rewritten = answer(r#""permissionDecision":"allow","updatedInput":{"command":"ls -l"}"#);
    assert_eq!(told(Some(&rewritten)), "ran ls -l");
    let denied = answer(r#""permissionDecision":"deny","permissionDecisionReason":"not this""#);
    assert_eq!(told(Some(&denied)), "stopped not this");
    assert_eq!(told(Some("cat >/dev/null; echo why >&2; exit 2")), "stopped why");
    // It is told what is called.
    assert_eq!(
        told(Some("grep -q '\"tool_input\":{\"command\":\"ls\"}' || exit 0; echo seen >&2; exit 2")),
        "stopped seen"
    );
    for script in [
        "cat >/dev/null",
        "exit 0",
        "exit 1",
        "exit 3",
        "kill -9 $$",
        "echo '{not json'",
        "echo yes",
        "echo '[]'",
        "echo null",
        "echo '{}'",
        &answer(r#""permissionDecision":"ask""#),
        &answer(r#""permissionDecision":"banana""#),
        "exec sleep 60",
        &format!("{}; exit 1", answer(r#""permissionDecision":"allow""#)),
    ] {
        let told = told(Some(script));
        assert!(told.starts_with("stopped ") && told.len() > "stopped ".len(), "{script}: {told}");
    }
    assert!(told(None).starts_with("stopped callgate did not start"));
}
