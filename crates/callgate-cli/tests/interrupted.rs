//! Ctrl-C, or a kill, while callgate has started something: no process is left.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what is missing by failing")]

mod terminal;
mod world;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use terminal::OnTerminal;
use world::World;

/// A world whose user policy has these lines, and a program that starts another one, says so, and takes its time.
fn world(approvals: &str) -> (World, PathBuf) {
    let world = World::new();
    let slow = world.home().join("slow");
    // a shell without a terminal lets what it starts in the background ignore Ctrl-C
    let text = "#!/bin/sh\nsleep 300 &\ntouch started\nsleep 300\n";
    std::fs::write(&slow, text).expect("a file");
    std::fs::set_permissions(&slow, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    std::fs::copy(&slow, world.project().join("slow.sh")).expect("a copy");
    let directory = world.home().join(".config/callgate");
    std::fs::create_dir_all(&directory).expect("a directory");
    let policy = format!(
        "version: 1\nextends: standard\napprovals:\n{}\n",
        approvals.replace("SLOW", slow.to_str().expect("UTF-8"))
    );
    std::fs::write(directory.join("callgate.yaml"), policy).expect("a file");
    (world, slow)
}

/// The processes that belong to a world: their home is its home.
fn processes(world: &World) -> Vec<(i32, String)> {
    let mark = format!("HOME={}", world.home().display());
    let entries =
        std::fs::read_dir("/proc").expect("processes").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let numbers = entries.filter_map(|name| name.parse::<i32>().ok());
    let text = |number: i32, name: &str| {
        let bytes = std::fs::read(format!("/proc/{number}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let ours = numbers.filter(|number| text(*number, "environ").split(' ').any(|word| word == mark));
    ours.map(|number| (number, text(number, "cmdline"))).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts something at a terminal, waits until it runs, interrupts it, and waits until nothing is left.
fn leaves_nothing(approvals: &str, arguments: &str, interrupt: impl Fn(&mut OnTerminal, &World)) {
    let (world, _) = world(approvals);
    let payload = serde_json::json!({
        "session_id": "s", "cwd": world.project(), "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": "rm notes.txt" }, "tool_use_id": "t", "permission_mode": "default",
    });
    world.write("payload", &payload.to_string());
    let mut terminal = OnTerminal::new(&world.command(&[]), 80, arguments);
    let sleeping = || processes(&world).iter().filter(|(_, words)| words.starts_with("sleep")).count();
    until(&format!("{arguments}: it starts"), || world.project().join("started").exists() && sleeping() == 2);
    interrupt(&mut terminal, &world);
    let callgate = |words: &str| !words.starts_with("script") && !words.contains("exec ");
    until(&format!("{arguments}: nothing is left: {:?}", processes(&world)), || {
        processes(&world).iter().all(|(_, words)| !callgate(words))
    });
    terminal.ends();
}

fn control_c(terminal: &mut OnTerminal, _: &World) {
    terminal.types("\u{3}");
}

/// Ends callgate itself without giving it a chance.
fn kill(_: &mut OnTerminal, world: &World) {
    let program = env!("CARGO_BIN_EXE_callgate");
    let found = processes(world).into_iter().find(|(_, words)| words.starts_with(program) && !words.contains("-guard"));
    let (number, _) = found.expect("callgate runs");
    kill_process(Pid::from_raw(number).expect("a number"), Signal::KILL).expect("killed");
}

const COMMAND: &str = "  ask: [{command: [SLOW]}]";
const NOTIFY: &str = "  notify: {command: [SLOW]}";

#[test]
fn approver_commands() {
    for interrupt in [control_c, kill] {
        leaves_nothing(COMMAND, "check --ask 'rm notes.txt'", interrupt);
        leaves_nothing(COMMAND, "hook claude < payload", interrupt);
        leaves_nothing(COMMAND, "run -- rm notes.txt", interrupt);
    }
}

#[test]
fn notifications() {
    for interrupt in [control_c, kill] {
        leaves_nothing(NOTIFY, "check --ask 'rm notes.txt'", interrupt);
        leaves_nothing(NOTIFY, "hook claude --ask approvers < payload", interrupt);
    }
}

#[test]
fn contained_calls() {
    if callgate_sandbox::choose(&callgate::fence::Protection::ALL, None).is_err() {
        return;
    }
    for interrupt in [control_c, kill] {
        leaves_nothing("  notify: off", "run -- ./slow.sh", interrupt);
    }
}

#[test]
fn watching_and_prompts() {
    let (world, _) = world("  notify: off");
    for (arguments, shown) in [("approvals watch", "Ctrl-C"), ("check --ask 'rm notes.txt'", "\n> "), ("demo", "\n> ")]
    {
        let mut terminal = OnTerminal::new(&world.command(&[]), 80, arguments);
        terminal.shown_until(shown);
        terminal.types("\u{3}");
        terminal.ends();
        until(arguments, || processes(&world).is_empty());
    }
}
