//! Contained calls of agents: the hook hands a call over, `callgate run` redeems its permit, and nobody else gets anything for it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic like tests"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Told, World, feed, told};

const AGENTS: [&str; 6] = ["claude", "codex", "gemini", "copilot", "opencode", "generic"];

/// A project whose test does what it may and tries what it may not.
fn world() -> World {
    support::permits_in_turn();
    let world = World::new();
    let project = world.project();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
        std::fs::write(project.join(name), text).unwrap();
    };
    write("test.sh", "echo 3 tests passed; echo careful >&2; exit 3\n");
    write("evil.sh", "cat ~/.ssh/id_rsa; echo x > .git/hooks/pre-commit; echo x > .envrc\n");
    write("sub/test.sh", "echo in sub\n");
    write("touch.sh", "echo ran >> ran\n");
    write(".git/hooks/sample", "");
    std::fs::create_dir_all(world.home().join(".ssh")).unwrap();
    std::fs::write(world.home().join(".ssh/id_rsa"), "PRIVATE KEY").unwrap();
    world
}

fn works() -> bool {
    callgate_sandbox::choose(&callgate::fence::Protection::ALL, None).is_ok()
}

/// Where an agent's answer has the input that replaces its own.
fn changed<'a>(agent: &str, answer: &'a Value) -> &'a Value {
    match agent {
        "gemini" => &answer["hookSpecificOutput"]["tool_input"],
        "copilot" => &answer["modifiedArgs"],
        "cursor" => &answer["updated_input"],
        "generic" => &answer["input"],
        _ => &answer["hookSpecificOutput"]["updatedInput"],
    }
}

/// What an agent is told about a command; the changed input if there is one.
fn announce(world: &World, agent: &str, command: &str, id: &str) -> (Told, Option<Value>) {
    let payload = support::payload(agent, command, id, &world.project());
    let output = feed(world.hook(agent, &[]), &payload);
    let answer: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    let input = Some(changed(agent, &answer).clone()).filter(Value::is_object);
    (output, input)
}

/// The command that Claude Code is to run in place of its own.
fn handed_over(world: &World, command: &str) -> String {
    let (output, input) = announce(world, "claude", command, command);
    let input = input.unwrap_or_else(|| panic!("{command}: {output:?}"));
    input["command"].as_str().unwrap().to_owned()
}

/// Runs a command as an agent's shell does.
fn shell(world: &World, command: &str) -> Command {
    shell_of(world, "/bin/bash", command)
}

fn shell_of(world: &World, program: &str, command: &str) -> Command {
    let mut shell = Command::new(program);
    shell.args(["-c", command]).current_dir(world.project()).env_clear().envs(world.environment());
    shell.stdin(Stdio::null());
    shell
}

fn run(mut command: Command) -> Told {
    told(command.output().unwrap())
}

/// The entries of the log that are about calls.
fn entries(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.log().join("audit-000001.jsonl")).unwrap_or_default();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|entry| entry["call"].is_string() || entry["tool"].is_string()).collect()
}

fn kinds(world: &World) -> Vec<String> {
    entries(world).iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
}

/// The permit of a command lies in a directory that follows from the user alone.
fn file_of(command: &str) -> PathBuf {
    let token = command.split_once("--permit ").unwrap().1.get(..32).unwrap();
    let user = rustix::process::geteuid().as_raw();
    callgate::policy::directories::permits(user)
        .expect("a home")
        .join(callgate_model::digest::sha256_hex(token.as_bytes()))
}

fn refused(output: &Told, why: &str) {
    assert_eq!(output.code, 125, "{why}: {output:?}");
    assert!(output.stderr.contains(why), "{why}: {output:?}");
    assert_eq!(output.stdout, "", "{why}");
}

fn is_logged(world: &World, why: &str) {
    let entries = entries(world);
    for kind in ["security_violation", "refused"] {
        let found =
            entries.iter().any(|entry| entry["kind"] == kind && entry["reason"].as_str().unwrap().contains(why));
        assert!(found, "{kind} {why}: {entries:#?}");
    }
}

#[test]
fn every_agent_that_takes_a_changed_input_runs_it_contained() {
    if !works() {
        return;
    }
    for agent in AGENTS {
        let world = world();
        let (output, input) = announce(&world, agent, "sh test.sh", "call");
        let input = input.unwrap_or_else(|| panic!("{agent}: {output:?}"));
        let command = input["command"].as_str().unwrap();
        assert!(command.starts_with(env!("CARGO_BIN_EXE_callgate")), "{agent}: {command}");
        assert!(command.ends_with("--shell 'sh test.sh'"), "{agent}: {command}");
        let ran = run(shell(&world, command));
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (3, "3 tests passed\n", "careful\n"),
            "{agent}"
        );
        assert_eq!(kinds(&world), ["tool_attempt", "permit_issued", "started", "finished"], "{agent}");
        let entries = entries(&world);
        assert!(entries.iter().all(|entry| entry["call"] == entries[0]["call"]), "{agent}: {entries:#?}");
        assert_eq!((&entries[0]["decision"], &entries[3]["exit"]), (&json!("contain"), &json!(3)));
        assert!(entries[3]["duration_ms"].is_u64());
        world.log_is_whole();
    }
    for agent in ["cursor", "qwen", "windsurf", "amp", "goose"] {
        let world = world();
        let (output, input) = announce(&world, agent, "sh test.sh", "call");
        assert!(input.is_none() && !output.stdout.contains("--permit"), "{agent}: {output:?}");
    }
}

/// A plugin of OpenCode that does not say that it changes the input would run the original.
#[test]
fn a_door_that_does_not_say_that_it_changes_the_input_is_asked() {
    let world = world();
    let payload = support::payload("opencode", "sh test.sh", "t", &world.project());
    let mut payload: Value = serde_json::from_slice(&payload).unwrap();
    payload.as_object_mut().unwrap().remove("changes_input");
    let payload = payload.to_string().into_bytes();
    let told = feed(world.hook("opencode", &[]), &payload);
    assert_eq!(support::answered("opencode", &payload, &told), support::Answered::Refused, "{told:?}");
}

#[test]
fn the_other_parameters_stay() {
    if !works() {
        return;
    }
    let world = world();
    let input = json!({"command": "sh test.sh", "timeout": 5000, "description": "tests", "run_in_background": true});
    let payload = json!({"session_id": "s", "transcript_path": "/t", "cwd": world.project(), "tool_use_id": "t",
        "hook_event_name": "PreToolUse", "permission_mode": "default", "tool_name": "Bash", "tool_input": input});
    let output = feed(world.hook("claude", &[]), payload.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    let mut changed = changed("claude", &answer).clone();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "allow");
    changed["command"] = "sh test.sh".into();
    assert_eq!(changed, input);
}

#[test]
fn what_it_may_not_is_held_back_told_and_logged() {
    if !works() {
        return;
    }
    let world = world();
    let command = handed_over(&world, "sh evil.sh");
    let ran = run(shell(&world, &command));
    assert!(!ran.stdout.contains("PRIVATE") && !ran.stderr.contains("PRIVATE"), "{ran:?}");
    assert!(ran.stderr.contains("callgate: held back: write") && ran.stderr.contains(" and 1 more"), "{ran:?}");
    assert!(ran.stderr.contains("/.ssh/id_rsa is hidden from contained calls"), "{ran:?}");
    assert_eq!(ran.stderr.matches("callgate: ").count(), 2, "{ran:?}");
    assert!(!world.project().join(".envrc").exists() && !world.project().join(".git/hooks/pre-commit").exists());
    let last = entries(&world).pop().unwrap();
    assert_eq!((&last["kind"], last["held_back"].as_array().unwrap().len()), (&json!("finished"), 2));
}

#[test]
fn a_permit_runs_once() {
    if !works() {
        return;
    }
    let world = world();
    let command = handed_over(&world, "sh touch.sh");
    assert_eq!(run(shell(&world, &command)).code, 0);
    refused(&run(shell(&world, &command)), "the permit was used before");
    is_logged(&world, "the permit was used before");
    assert_eq!(std::fs::read_to_string(world.project().join("ran")).unwrap(), "ran\n");
}

#[test]
fn two_at_once_run_once() {
    if !works() {
        return;
    }
    let world = world();
    for round in 1..=5 {
        let command = handed_over(&world, "sh touch.sh");
        let children: Vec<_> = (0..4)
            .map(|_| shell(&world, &command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
            .collect();
        let codes: Vec<i32> = children.into_iter().map(|child| told(child.wait_with_output().unwrap()).code).collect();
        assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == 125).count(), 3, "{codes:?}");
        assert_eq!(std::fs::read_to_string(world.project().join("ran")).unwrap().lines().count(), round);
    }
    is_logged(&world, "the permit was used before");
}

#[test]
fn other_text_another_directory_and_a_guess_are_refused() {
    if !works() {
        return;
    }
    let world = world();
    let other_text = handed_over(&world, "sh test.sh").replace("'sh test.sh'", "'sh touch.sh'");
    refused(&run(shell(&world, &other_text)), "issued for another command");
    is_logged(&world, "issued for another command");

    let mut elsewhere = shell(&world, &handed_over(&world, "sh touch.sh"));
    elsewhere.current_dir(world.project().join("sub"));
    refused(&run(elsewhere), "the permit was issued for /");
    is_logged(&world, "the permit was issued for /");

    let command = handed_over(&world, "sh touch.sh");
    let token = command.split_once("--permit ").unwrap().1.get(..32).unwrap().to_owned();
    for guess in ["0".repeat(32), "../../etc/passwd".to_owned(), String::new(), token.to_uppercase(), "x".repeat(4000)]
    {
        let guessed = command.replace(&token, &format!("'{guess}'"));
        refused(&run(shell(&world, &guessed)), "there is no such permit");
    }
    is_logged(&world, "there is no such permit");
    assert!(!world.project().join("ran").exists());
    // the one that was not touched still works
    assert_eq!(run(shell(&world, &command)).code, 0);
}

/// A process that nobody started who called the hook.
#[test]
fn another_process_is_refused() {
    if !works() {
        return;
    }
    let world = world();
    let command = handed_over(&world, "sh touch.sh");
    // its parent ends, so that it belongs to the machine's first process
    let script = world.project().join("other.sh");
    let result = world.project().join("result");
    std::fs::write(
        &script,
        format!("while kill -0 $1 2>/dev/null; do sleep 0.01; done\n{command}\necho $? > result\n"),
    )
    .unwrap();
    run(shell(&world, "setsid bash other.sh $$ > output 2>&1 &"));
    let since = Instant::now();
    while !result.exists() && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(50));
    let said = std::fs::read_to_string(world.project().join("output")).unwrap();
    assert_eq!(std::fs::read_to_string(&result).unwrap().trim(), "125", "{said}");
    assert!(said.contains("issued to another process"), "{said}");
    is_logged(&world, "issued to another process");
    assert!(!world.project().join("ran").exists());
}

/// An agent of its own, which is still there, and a second one beside it.
#[test]
fn another_agent_is_refused() {
    if !works() {
        return;
    }
    let world = world();
    let payload = support::payload("claude", "sh touch.sh", "t", &world.project());
    std::fs::write(world.project().join("payload"), payload).unwrap();
    let agent = format!(
        "sleep 1.2; {} hook claude < payload > answer; echo done > told; exec sleep 20",
        env!("CARGO_BIN_EXE_callgate")
    );
    let mut first = shell(&world, &agent).spawn().unwrap();
    while !world.project().join("told").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let answer: Value =
        serde_json::from_str(&std::fs::read_to_string(world.project().join("answer")).unwrap()).unwrap();
    let command = changed("claude", &answer)["command"].as_str().unwrap().to_owned();
    let second = run(shell(&world, &command));
    first.kill().unwrap();
    first.wait().unwrap();
    refused(&second, "issued to another process");
    is_logged(&world, "issued to another process");
}

#[test]
fn an_expired_permit_is_refused() {
    if !works() || Command::new("faketime").arg("--version").output().is_err() {
        return;
    }
    let world = world();
    let command = handed_over(&world, "sh touch.sh");
    for shift in ["+3m", "-1m"] {
        let command = if shift == "+3m" { command.clone() } else { handed_over(&world, "sh touch.sh") };
        let mut later = Command::new("faketime");
        later.args(["-f", shift, "/bin/bash", "-c", &command]).current_dir(world.project());
        later.env_clear().envs(world.environment()).stdin(Stdio::null());
        refused(&run(later), "the permit has expired");
    }
    is_logged(&world, "the permit has expired");
    assert!(!world.project().join("ran").exists());
}

#[test]
fn a_store_that_was_copied_or_edited_is_worth_nothing() {
    if !works() {
        return;
    }
    let world = world();
    // in place, with another command
    let command = handed_over(&world, "sh test.sh");
    std::thread::sleep(Duration::from_millis(120));
    let file = file_of(&command);
    let digest = |text: &str| callgate_model::digest::sha256_hex(text.as_bytes());
    let edited = std::fs::read_to_string(&file).unwrap().replace(&digest("sh test.sh"), &digest("sh touch.sh"));
    std::fs::write(&file, edited).unwrap();
    refused(&run(shell(&world, &command.replace("sh test.sh", "sh touch.sh"))), "changed after it was issued");
    is_logged(&world, "changed after it was issued");

    // put back after it was used
    let command = handed_over(&world, "sh touch.sh");
    let file = file_of(&command);
    let saved = std::fs::read(&file).unwrap();
    std::thread::sleep(Duration::from_millis(120));
    assert_eq!(run(shell(&world, &command)).code, 0);
    std::fs::write(&file, saved).unwrap();
    refused(&run(shell(&world, &command)), "changed after it was issued");

    // a copy elsewhere, and variables that lead there
    let command = handed_over(&world, "sh test.sh");
    let copy = world.project().join("copy");
    for below in [".local/state/callgate/permits", ".local/share/callgate/permits", "callgate/permits"] {
        std::fs::create_dir_all(copy.join(below)).unwrap();
        let file = file_of(&command);
        let text = std::fs::read_to_string(&file).unwrap().replace(&digest("sh test.sh"), &digest("sh touch.sh"));
        std::fs::write(copy.join(below).join(file.file_name().unwrap()), text).unwrap();
    }
    let mut misled = shell(&world, &command.replace("sh test.sh", "sh touch.sh"));
    for name in ["HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "CALLGATE_HOME"] {
        misled.env(name, &copy);
    }
    refused(&run(misled), "issued for another command");
    is_logged(&world, "issued for another command");
    assert_eq!(std::fs::read_to_string(world.project().join("ran")).unwrap(), "ran\n");
}

/// What the agent's shell has in its environment decides nothing about callgate.
#[test]
fn the_environment_of_the_caller_decides_nothing() {
    if !works() {
        return;
    }
    let world = world();
    let other = world.project().join("other");
    for directory in ["home/.config/callgate", "config/callgate"] {
        std::fs::create_dir_all(other.join(directory)).unwrap();
        std::fs::write(other.join(directory).join("callgate.yaml"), "version: 1\ndefault: allow\n").unwrap();
    }
    let command = handed_over(&world, "sh evil.sh");
    let mut misled = shell(&world, &command);
    misled.env("HOME", other.join("home")).env("XDG_CONFIG_HOME", other.join("config"));
    misled.env("XDG_STATE_HOME", other.join("state")).env("XDG_DATA_HOME", other.join("data"));
    misled.env("XDG_CACHE_HOME", other.join("cache")).env("TMPDIR", world.home());
    misled.env("PATH", format!("{}:/usr/bin:/bin", other.display()));
    let ran = run(misled);
    assert!(ran.stderr.contains("held back"), "{ran:?}");
    assert!(!world.project().join(".envrc").exists());
    assert_eq!(kinds(&world), ["tool_attempt", "permit_issued", "started", "finished"]);
    for made in ["state", "data", "cache", "home/.local"] {
        assert!(!other.join(made).exists(), "{made}");
    }
}

#[test]
fn a_policy_that_has_changed_and_a_stricter_answer_refuse() {
    if !works() {
        return;
    }
    let world = world();
    let command = handed_over(&world, "sh touch.sh");
    let configuration = world.home().join(".config/callgate");
    std::fs::create_dir_all(&configuration).unwrap();
    std::fs::write(configuration.join("callgate.yaml"), "version: 1\nextends: standard\n").unwrap();
    refused(&run(shell(&world, &command)), "the policy has changed");
    is_logged(&world, "the policy has changed");

    // the same policy, and another answer: the file is a credential by now
    let command = handed_over(&world, "cat README.md && sh touch.sh");
    std::fs::remove_file(world.project().join("README.md")).unwrap();
    std::os::unix::fs::symlink(world.home().join(".ssh/id_rsa"), world.project().join("README.md")).unwrap();
    let output = run(shell(&world, &command));
    assert_eq!((output.code, output.stdout.as_str()), (125, ""), "{output:?}");
    let last = entries(&world).pop().unwrap();
    assert_eq!(last["kind"], "refused", "{last:#}");
    assert!(!world.project().join("ran").exists());
}

/// Another hook has put its own command in place of callgate's.
#[test]
fn a_tool_that_ended_without_its_permit_is_a_violation() {
    if !works() {
        return;
    }
    for agent in ["claude", "copilot"] {
        let world = world();
        let (_, input) = announce(&world, agent, "sh test.sh", "t");
        let input = input.unwrap();
        let after = |input: &Value| match agent {
            "claude" => {
                json!({"session_id": "session", "transcript_path": "/t", "cwd": world.project(), "tool_use_id": "t",
                "hook_event_name": "PostToolUse", "permission_mode": "default", "tool_name": "Bash", "tool_input": input,
                "tool_response": {"stdout": "x"}})
            }
            _ => {
                json!({"sessionId": "t", "timestamp": 1, "cwd": world.project(), "toolName": "bash", "toolArgs": input,
                "toolResult": {"resultType": "success", "textResultForLlm": ""}})
            }
        };
        feed(world.hook(agent, &[]), after(&input).to_string().as_bytes());
        let found = kinds(&world);
        assert_eq!(found, ["tool_attempt", "permit_issued", "security_violation", "ran_without_verdict"], "{agent}");
        // with its permit it is none
        let (_, input) = announce(&world, agent, "sh touch.sh", "t");
        let input = input.unwrap();
        assert_eq!(run(shell(&world, input["command"].as_str().unwrap())).code, 0);
        feed(world.hook(agent, &[]), after(&input).to_string().as_bytes());
        assert_eq!(kinds(&world)[4..], ["tool_attempt", "permit_issued", "started", "finished"], "{agent}");
    }
}

#[test]
fn the_changed_call_is_known_when_it_is_announced_again() {
    if !works() {
        return;
    }
    let world = world();
    let command = handed_over(&world, "sh touch.sh");
    let again = |command: &str| {
        let payload = support::payload("claude", command, "sh touch.sh", &world.project());
        let told = feed(world.hook("claude", &[]), &payload);
        support::answered("claude", &payload, &told)
    };
    assert_eq!(again(&command), support::Answered::Allowed);
    for other in [command.replace("touch.sh", "test.sh"), format!("{command}; rm -rf src"), format!("X=1 {command}")] {
        assert_ne!(again(&other), support::Answered::Allowed, "{other}");
    }
    assert_eq!(run(shell(&world, &command)).code, 0);
    assert_ne!(again(&command), support::Answered::Allowed, "it was used");
}

#[test]
fn the_agents_own_rules_still_see_the_original() {
    if !works() {
        return;
    }
    let world = world();
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    let settings = |list: &str, rule: &str| {
        let text = json!({"permissions": {list: [rule]}}).to_string();
        std::fs::write(world.home().join(".claude/settings.json"), text).unwrap();
        let (output, input) = announce(&world, "claude", "sh test.sh", "t");
        assert!(!output.stdout.is_empty());
        input.is_some()
    };
    for (list, rule, expected) in [
        ("deny", "Bash(sh test.sh:*)", false),
        ("deny", "Bash(sh *)", false),
        ("ask", "Bash(sh test.sh)", false),
        ("deny", "Bash(curl:*)", true),
        ("allow", "Bash(sh:*)", true),
        ("deny", "Read(./secret)", true),
    ] {
        assert_eq!(settings(list, rule), expected, "{list} {rule}");
    }
    std::fs::write(world.home().join(".claude/settings.json"), "{broken").unwrap();
    assert!(announce(&world, "claude", "sh test.sh", "t").1.is_none(), "what cannot be read may deny something");
}

#[test]
fn the_kept_directory_follows_and_nothing_else_does() {
    if !works() {
        return;
    }
    let world = world();
    let project = world.project();
    let outside = world.home().join("elsewhere");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(project.join("$(touch evaluated)")).unwrap();
    std::fs::write(project.join("$(touch evaluated)/test.sh"), "").unwrap();
    std::fs::write(
        project.join("lie.sh"),
        format!("(sleep 0.3; echo {} > /tmp/.callgate-left) &\n", outside.display()),
    )
    .unwrap();
    let shells: Vec<&str> =
        ["/bin/bash", "/bin/zsh"].into_iter().filter(|program| Path::new(program).exists()).collect();
    for program in shells {
        for (text, code, output, directory) in [
            ("cd sub && sh test.sh", 0, "in sub\n", project.join("sub")),
            ("cd sub; sh test.sh; sh ../test.sh", 3, "in sub\n3 tests passed\n", project.join("sub")),
            ("sh test.sh; exit 4; cd sub", 4, "3 tests passed\n", project.clone()),
            ("cd '$(touch evaluated)' && sh test.sh", 0, "", project.join("$(touch evaluated)")),
            ("sh test.sh; cd /usr/share", 0, "3 tests passed\n", project.clone()),
            ("sh lie.sh; cd sub; sleep 0.6", 0, "", project.join("sub")),
            ("cd nowhere; sh test.sh", 3, "3 tests passed\n", project.clone()),
        ] {
            let command = handed_over(&world, text);
            let ran = run(shell_of(&world, program, &format!("{command}\necho \"$?\" > code; pwd -P > here; exit 0")));
            let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
            assert_eq!(
                (ran.stdout.as_str(), read("code").trim()),
                (output, code.to_string().as_str()),
                "{program} {text} {ran:?}"
            );
            assert_eq!(read("here").trim(), directory.to_str().unwrap(), "{program} {text}");
            for name in ["code", "here"] {
                std::fs::remove_file(directory.join(name)).unwrap();
            }
        }
    }
    assert!(!project.join("evaluated").exists() && !project.join("$(touch evaluated)/evaluated").exists());
}

/// What a call is to leave in a shell that the agent keeps would be lost.
#[test]
fn what_changes_a_kept_shell_is_asked_about() {
    if !works() {
        return;
    }
    let world = world();
    std::fs::write(world.project().join("env.sh"), "export NAME=value\n").unwrap();
    for (text, contained) in [
        ("sh test.sh", true),
        ("cd sub && sh test.sh", true),
        ("source ./env.sh", false),
        ("export NAME=value; sh test.sh", false),
        ("alias x=y; sh test.sh", false),
    ] {
        assert_eq!(announce(&world, "copilot", text, text).1.is_some(), contained, "{text}");
    }
}

#[test]
fn output_input_and_exit_code_are_those_of_the_command() {
    if !works() {
        return;
    }
    let world = world();
    std::fs::write(world.project().join("bytes.sh"), "head -c 300000 /dev/urandom | tee bytes; cat\n").unwrap();
    for text in ["sh bytes.sh", "cd . && sh bytes.sh"] {
        let command = handed_over(&world, text);
        let mut child = shell(&world, &command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"the input \0\xff").unwrap();
        let output = child.wait_with_output().unwrap();
        let mut expected = std::fs::read(world.project().join("bytes")).unwrap();
        expected.extend(b"the input \0\xff");
        assert!(output.stdout == expected, "{text}: {} bytes", output.stdout.len());
        assert_eq!(output.status.code(), Some(0));
    }
}

/// Agents end what takes too long by killing the shell and its group; nothing inside outlives it.
#[test]
fn an_agents_time_out_ends_everything() {
    if !works() {
        return;
    }
    let world = world();
    let mark = format!("{}", 41_000_000 + std::process::id());
    std::fs::write(world.project().join("long.sh"), format!("echo begun > begun; sleep {mark} & sleep {mark}\n"))
        .unwrap();
    for text in ["sh long.sh", "cd . && sh long.sh"] {
        for signal in ["TERM", "KILL"] {
            let command = handed_over(&world, text);
            let mut child = std::os::unix::process::CommandExt::process_group(&mut shell(&world, &command), 0)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let begun = world.project().join("begun");
            let since = Instant::now();
            while !begun.exists() && since.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::fs::remove_file(begun).unwrap();
            run(shell(&world, &format!("kill -{signal} -- -{}", child.id())));
            child.wait().unwrap();
            let alive =
                || run(shell(&world, &format!("ps ax -o args= | grep -c '[s]leep {mark}'"))).stdout.trim() != "0";
            let since = Instant::now();
            while alive() && since.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(!alive(), "{text} {signal}");
        }
    }
}

/// A contained process reaches neither permits nor log nor store, and cannot present anything.
#[test]
fn contained_processes_reach_none_of_it() {
    if !works() {
        return;
    }
    let world = world();
    let waiting = handed_over(&world, "sh test.sh");
    let permits = file_of(&waiting).parent().unwrap().to_owned();
    let state = world.home().join(".local/state/callgate");
    let script = format!(
        "ls {0} {1} 2>&1 | grep -v 'No such'; echo x 2>/dev/null > {0}/x; mkdir -p {0} 2>/dev/null; rm -rf {1}; {2}; echo $?\n",
        permits.display(),
        state.display(),
        waiting
    );
    std::fs::write(world.project().join("reach.sh"), script).unwrap();
    let before = std::fs::read_dir(&permits).unwrap().count();
    let ran = run(shell(&world, &handed_over(&world, "sh reach.sh")));
    assert!(!ran.stdout.contains("3 tests passed"), "{ran:?}");
    assert!(!ran.stdout.contains("audit") && !ran.stdout.contains("sessions"), "{ran:?}");
    assert!(file_of(&waiting).exists() && !permits.join("x").exists() && state.join("audit").exists());
    assert!(std::fs::read_dir(&permits).unwrap().count() > before, "the other permit is there as well");
    assert_eq!(run(shell(&world, &waiting)).code, 3);
}

/// Agents cannot write permits with their own tools either.
#[test]
fn the_tools_of_agents_write_no_permits() {
    let world = world();
    let user = rustix::process::geteuid().as_raw();
    let path = format!("/run/user/{user}/callgate/permits/x");
    let payload = json!({"session_id": "s", "transcript_path": "/t", "cwd": world.project(), "tool_use_id": "t",
        "hook_event_name": "PreToolUse", "permission_mode": "default", "tool_name": "Write",
        "tool_input": {"file_path": path, "content": "{}"}});
    let payload = payload.to_string().into_bytes();
    let told = feed(world.hook("claude", &[]), &payload);
    assert_eq!(support::answered("claude", &payload, &told), support::Answered::Refused, "{path} {told:?}");
}

/// An agent's own sandbox around the command: other process numbers, or a store that cannot be written.
#[test]
fn a_sandbox_around_the_command_is_explained() {
    let unshare = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(words);
        command
    };
    if !works() || !unshare(&["-r", "-p", "-f", "--mount-proc", "true"]).status().is_ok_and(|code| code.success()) {
        return;
    }
    let world = world();
    let surrounded = |words: &[&str], command: &str| {
        let mut outer = unshare(words);
        outer.args(["/bin/bash", "-c", command]).current_dir(world.project());
        run({
            outer.env_clear().envs(world.environment()).stdin(Stdio::null());
            outer
        })
    };
    let command = handed_over(&world, "sh touch.sh");
    let output = surrounded(&["-r", "-p", "-f", "--mount-proc"], &command);
    refused(&output, "the agent's own sandbox surrounds this command");
    assert!(output.stderr.contains("outside the agent's own sandbox"), "{output:?}");
    // it was not used, and still can be
    assert_eq!(run(shell(&world, &command)).code, 0);

    let command = handed_over(&world, "sh touch.sh");
    let store = file_of(&command).parent().unwrap().to_owned();
    let closed = format!("mount --bind -o ro {0} {0} && mount -o remount,bind,ro {0} && {command}", store.display());
    let output = surrounded(&["-r", "-m"], &closed);
    refused(&output, "cannot be used: Read-only file system");
    assert_eq!(std::fs::read_to_string(world.project().join("ran")).unwrap(), "ran\n");
}
