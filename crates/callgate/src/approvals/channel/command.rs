//! Asks another command: the question as JSON on its standard input, the answer as JSON on its standard output.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Approver, AskError, MAXIMUM_REPLY, read_reply, time_left};
use crate::approvals::{Answer, Question};

/// How often it is looked whether the command has finished or the question is settled elsewhere.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command for every question. Anything but exit code 0 and a clear answer is a refusal; a command that takes too
/// long is killed with everything it started.
#[derive(Debug, Clone)]
pub struct CommandApprover {
    program: OsString,
    arguments: Vec<OsString>,
    guard: Vec<OsString>,
}

/// The exit code by which a guard says that it cannot start the command.
const NOT_STARTED: i32 = 127;

impl CommandApprover {
    /// A program and its arguments. No shell is involved.
    pub fn new<S: Into<OsString>>(program: impl Into<OsString>, arguments: impl IntoIterator<Item = S>) -> Self {
        CommandApprover {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            guard: Vec::new(),
        }
    }

    /// Starts the command by another program, which takes the command as its last arguments, passes on its streams and exit code, ends
    /// the process group as soon as this process is gone, and exits with 127 if it cannot start the command. Without one, a command
    /// outlives this process if a signal ends it while the command runs.
    #[must_use]
    pub fn guarded(mut self, words: Vec<OsString>) -> Self {
        self.guard = words;
        self
    }
}

/// A child that does not outlive the question.
struct RunningCommand(Child);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // Gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Approver for CommandApprover {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        let unavailable = |error: std::io::Error| AskError::Unavailable(format!("the approver command: {error}"));
        let mut input = serde_json::to_vec(question).map_err(|error| AskError::Unusable(error.to_string()))?;
        input.push(b'\n');
        let mut words = self.guard.iter().chain([&self.program]).chain(&self.arguments);
        let child = Command::new(words.next().unwrap_or(&self.program))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()
            .map_err(unavailable)?;
        let mut running = RunningCommand(child);
        if let Some(mut stdin) = running.0.stdin.take() {
            // A command that decides without reading everything is fine.
            thread::spawn(move || drop(stdin.write_all(&input)));
        }
        let (sender, receiver) = mpsc::channel();
        if let Some(stdout) = running.0.stdout.take() {
            thread::spawn(move || {
                let mut output = Vec::new();
                let most = u64::try_from(MAXIMUM_REPLY).unwrap_or(u64::MAX).saturating_add(1);
                let read = stdout.take(most).read_to_end(&mut output);
                drop(sender.send(read.map(|_| output)));
            });
        }
        let status = wait(&mut running.0, question, open)?;
        if !self.guard.is_empty() && status.code() == Some(NOT_STARTED) {
            return Err(AskError::Unavailable("the approver command cannot be started".into()));
        }
        if !status.success() {
            return Err(AskError::Unusable(format!("the approver command failed: {status}")));
        }
        // The command has ended; something it left behind may still hold the pipe.
        match receiver.recv_timeout(time_left(question).min(Duration::from_secs(1))) {
            Ok(Ok(output)) => read_reply(&output, question),
            Ok(Err(error)) => Err(AskError::Unusable(error.to_string())),
            Err(_) => Err(AskError::Unusable("the approver command left its output open".into())),
        }
    }
}

fn wait(child: &mut Child, question: &Question, open: &dyn Fn() -> bool) -> Result<ExitStatus, AskError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if time_left(question).is_zero() => return Err(AskError::TimedOut),
            Ok(None) if !open() => return Err(AskError::Closed),
            Ok(None) => thread::sleep(LOOK),
            Err(error) => return Err(AskError::Unusable(error.to_string())),
        }
    }
}
