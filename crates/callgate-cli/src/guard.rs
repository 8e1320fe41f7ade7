//! Programs that must not outlive callgate: approver commands and notifications.
//!
//! They run in a process group of their own, so that they can be ended with everything they started, and so Ctrl-C does not reach
//! them. A guard is this program once more, the first process of that group: it starts the program, and ends the group as soon as
//! callgate is gone, however that happened.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Signal, getpgrp, getppid, kill_process_group};

/// The first argument of a guard.
pub const GUARD: &str = "callgate-guard";
/// How often the guard looks whether callgate is there.
const LOOK: Duration = Duration::from_millis(20);
/// The exit code if the program cannot be started.
const NOT_STARTED: u8 = 127;

/// The words in front of a program that is to be guarded; none if callgate does not know its own path.
pub fn words() -> Vec<OsString> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    vec![program.into(), GUARD.into(), std::process::id().to_string().into()]
}

/// Runs a program as its guard. `words` are the number of the process that started the guard, the program and its arguments.
pub fn run(words: &[OsString]) -> ExitCode {
    let Some((owner, [program, arguments @ ..])) = words.split_first() else { return ExitCode::from(NOT_STARTED) };
    let owner: Option<i32> = owner.to_str().and_then(|owner| owner.parse().ok());
    let is_owned = || getppid().map(|parent| parent.as_raw_pid()) == owner;
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("callgate: cannot start {}: {error}", program.to_string_lossy());
            return ExitCode::from(NOT_STARTED);
        }
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                let code = status.code().or_else(|| Some(status.signal()?.saturating_add(128)));
                return ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED));
            }
            Ok(None) if is_owned() => std::thread::sleep(LOOK),
            _ => {
                // With the guard itself. A guard that somebody else started has no group of its own to end.
                if getpgrp().as_raw_pid().cast_unsigned() == std::process::id() {
                    let _ = kill_process_group(getpgrp(), Signal::KILL);
                }
                let _ = child.kill();
                return ExitCode::FAILURE;
            }
        }
    }
}
