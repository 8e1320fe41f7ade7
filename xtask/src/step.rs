//! Running one step of a task and saying what went wrong.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Why a task stopped.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure described in words.
    pub fn new(reason: impl Into<String>) -> Self {
        Failure(reason.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A cargo command of the same toolchain.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs a command, with its output passed through, and fails if it does.
pub fn run(name: &str, command: &mut Command) -> Result<(), Failure> {
    eprintln!("── {name}");
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|error| Failure::new(format!("{name}: {:?} does not start: {error}", command.get_program())))?;
    if !status.success() {
        return Err(Failure::new(format!("{name} failed ({status})")));
    }
    eprintln!("── {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Whether a command can be run and succeeds; says nothing.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// cargo's target directory: this very program lies in `target/PROFILE`.
pub fn target() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::new(error.to_string()))?;
    program.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| Failure::new("xtask lies outside a target directory"))
}
