//! One program: started, watched and ended.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use callgate::fence::Fence;
use callgate::live::LiveRun;
use callgate_sandbox::Backend;
use serde_json::{Map, Value};

use super::tail::Tail;
use crate::helper::{self, GRACE, HELPER, Order, Report};
use crate::result::{ErrorKind, ToolError, ToolResult};

/// How much of each stream is kept.
const KEPT: usize = 65_536;

/// A program to start.
pub(crate) struct Program {
    pub words: Vec<String>,
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
    pub backend: Option<Backend>,
    /// What it may reach, if it may only run contained.
    pub fence: Option<Box<Fence>>,
    /// The program that starts others, if it is not this one.
    pub helper: Option<PathBuf>,
    /// The id of the call.
    pub call: String,
    /// The command, without secrets.
    pub shown: String,
}

/// The streams of a program.
pub(crate) enum Streams {
    /// Nothing to read, and two pipes.
    Pipes,
    /// A terminal.
    Terminal(PathBuf),
}

/// A program that was started, through its helper.
pub(crate) struct Started {
    pub child: Child,
    socket: UnixStream,
    report: Option<JoinHandle<Option<Report>>>,
    pub streams: Option<(ChildStdout, ChildStderr)>,
}

impl Program {
    /// Starts it.
    pub fn start(self, streams: Streams) -> Result<Started, ToolError> {
        if self.words.iter().any(|word| word.contains('\0')) {
            return Err(ToolError::validation("an argument contains a NUL byte"));
        }
        let helper = match &self.helper {
            Some(program) => program.clone(),
            None if helper::is_entered() => PathBuf::from("/proc/self/exe"),
            None => {
                return Err(ToolError::new(
                    ErrorKind::Unknown,
                    "this program cannot start others: call `callgate_tools::helper::enter` first in its `main`, or name a helper",
                ));
            }
        };
        let failed =
            |error: std::io::Error| ToolError::new(ErrorKind::Unknown, format!("cannot start a program: {error}"));
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let terminal = match streams {
            Streams::Pipes => None,
            Streams::Terminal(path) => Some(path),
        };
        let mut command = Command::new(helper);
        command.arg(HELPER).stdin(Stdio::from(OwnedFd::from(theirs)));
        let output = || if terminal.is_none() { Stdio::piped() } else { Stdio::null() };
        let mut child = command.stdout(output()).stderr(output()).spawn().map_err(failed)?;
        // it keeps the other end of the socket open
        drop(command);
        let order = Order {
            words: self.words,
            directory: self.directory,
            environment: self.environment,
            terminal,
            fence: self.fence,
            backend: self.backend,
            run: LiveRun { call: self.call, command: self.shown.chars().take(500).collect(), ..LiveRun::default() },
        };
        let streams = child.stdout.take().zip(child.stderr.take());
        let sent = helper::send(&socket, &order);
        let reading = socket.try_clone().map_err(failed)?;
        let report = std::thread::spawn(move || helper::receive(&reading).ok());
        let mut started = Started { child, socket, report: Some(report), streams };
        if let Err(error) = sent {
            started.end();
            return Err(failed(error));
        }
        Ok(started)
    }
}

impl Started {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Tells the program to end, and ends it with everything it started if it does not.
    pub fn end(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        let start = Instant::now();
        // the helper needs a moment more than the program is given
        while start.elapsed() < GRACE.saturating_mul(20) {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end and says how it ended.
    pub fn report(&mut self) -> Report {
        let _ = self.child.wait();
        self.report.take().and_then(|report| report.join().ok().flatten()).unwrap_or_default()
    }
}

/// Reads a stream to its end in a thread and keeps the last of it.
fn keep(stream: OwnedFd) -> (Arc<Mutex<Tail>>, JoinHandle<()>) {
    let tail = Arc::new(Mutex::new(Tail::new(KEPT)));
    let kept = Arc::clone(&tail);
    let reader = std::thread::spawn(move || {
        let mut stream = File::from(stream);
        let mut buffer = vec![0_u8; 65_536];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(buffer.get(..length).unwrap_or_default());
        }
    });
    (tail, reader)
}

/// Starts a program, waits for its end, and says what it printed.
pub(crate) fn run_to_end(
    program: Program,
    timeout: Duration,
    data: Map<String, Value>,
) -> Result<ToolResult, ToolError> {
    let contained = program.fence.is_some();
    let with = |error: ToolError| error.data(Value::Object(data.clone()));
    let mut started = program.start(Streams::Pipes).map_err(with)?;
    let Some((output, errors)) = started.streams.take() else {
        started.end();
        return Err(ToolError::new(ErrorKind::Unknown, "the program has no streams"));
    };
    let (output, output_end) = keep(output.into());
    let (errors, errors_end) = keep(errors.into());
    let start = Instant::now();
    let mut timed_out = false;
    let mut pause = Duration::from_micros(200);
    while !started.has_ended() {
        if start.elapsed() >= timeout {
            timed_out = true;
            started.end();
            break;
        }
        // short programs are noticed at once, long ones cost nothing
        std::thread::sleep(pause.min(timeout.saturating_sub(start.elapsed())));
        pause = pause.saturating_mul(2).min(Duration::from_millis(20));
    }
    let report = started.report();
    // The helper has ended everything that could hold the streams open.
    let _ = (output_end.join(), errors_end.join());
    let output = output.lock().unwrap_or_else(PoisonError::into_inner).take(KEPT);
    let errors = errors.lock().unwrap_or_else(PoisonError::into_inner).take(KEPT);
    let mut data = data;
    output.keep_apart("stdout", &mut data);
    errors.keep_apart("stderr", &mut data);
    let mut result = ToolResult::text(output.text()).truncated(output.cut || errors.cut);
    result.stderr = errors.text();
    result.held_back = report.held_back.clone();
    if !result.held_back.is_empty() {
        let held: Vec<Value> = result.held_back.iter().filter_map(|held| serde_json::to_value(held).ok()).collect();
        data.insert("held_back".to_owned(), Value::Array(held));
    }
    result.data = Some(Value::Object(data));
    let kind = if timed_out { Some(ErrorKind::Timeout) } else { report.error_kind(contained) };
    if let Some((reason, _)) = &report.denied {
        result.stderr.clone_from(reason);
    }
    if kind == Some(ErrorKind::Timeout) {
        let waited = format!("the program was ended after {} ms", timeout.as_millis());
        result.stderr = if result.stderr.is_empty() { waited } else { format!("{}\n{waited}", result.stderr) };
    }
    result.exit_code = report.code.filter(|_| kind != Some(ErrorKind::Timeout));
    result.ok = kind.is_none();
    result.error_kind = kind;
    Ok(result)
}
