//! The helper: the process that starts a program for a tool, and ends everything it leaves behind.
//!
//! It is this very program, started again with [`HELPER`] as its only word, so that it has one thread, a session of its own, and no descriptors but
//! its own. It tells the toolbox through a socket how the program ended, and when the socket closes, because the toolbox was killed or wants it so, everything ends.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgate::fence::{Fence, HeldBack};
use callgate::live::LiveRun;
use callgate_sandbox::{Backend, Denied, Launch};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::result::ErrorKind;

/// The only word of the helper's command line.
pub const HELPER: &str = "__callgate-tool-helper";

/// How long a program may take to end by itself after it was told to.
pub(crate) const GRACE: Duration = Duration::from_millis(200);
/// The longest order and report.
const MAXIMUM: u32 = 64 * 1024 * 1024;

static ENTERED: AtomicBool = AtomicBool::new(false);

/// What the helper is to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub words: Vec<String>,
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
    /// The terminal that the program gets; pipes if there is none.
    pub terminal: Option<PathBuf>,
    /// What it may reach, if it may only run contained.
    pub fence: Option<Box<Fence>>,
    pub backend: Option<Backend>,
    /// What others are told about it while it runs.
    pub run: LiveRun,
}

/// How it ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub code: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<String>,
    pub held_back: Vec<HeldBack>,
    /// Why it did not start, and whether the program itself is the reason.
    pub denied: Option<(String, Option<i32>)>,
}

impl Report {
    /// What kind of error it is, if it is one.
    pub fn error_kind(&self, contained: bool) -> Option<ErrorKind> {
        match (&self.denied, self.limit.as_deref(), self.code) {
            (Some((_, Some(127))), _, _) => Some(ErrorKind::NotFound),
            (Some((_, None)), _, _) if contained => Some(ErrorKind::SandboxDenied),
            (Some(_), _, _) | (None, _, None) => Some(ErrorKind::Unknown),
            (None, Some("time"), _) => Some(ErrorKind::Timeout),
            (None, _, Some(0)) => None,
            (None, _, Some(_)) => Some(ErrorKind::ExitCode),
        }
    }
}

impl From<Denied> for Report {
    fn from(denied: Denied) -> Self {
        Report { denied: Some((denied.reason, denied.program)), ..Report::default() }
    }
}

/// Becomes the helper, or the inner half of the sandbox, if this process was started as one. Call it first in `main` of a program that has a
/// [`Toolbox`](crate::Toolbox) and does not name [another helper](crate::ToolboxBuilder::helper).
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = callgate_tools::helper::enter() {
///         return code;
///     }
///     // the program itself
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn enter() -> Option<ExitCode> {
    ENTERED.store(true, Ordering::Relaxed);
    let mut words = std::env::args_os().skip(1);
    let (first, second) = (words.next(), words.next());
    match first.filter(|_| second.is_none()) {
        Some(word) if word == HELPER => Some(run()),
        Some(word) if word == callgate_sandbox::stage::STAGE => Some(callgate_sandbox::stage::run()),
        _ => None,
    }
}

/// Whether this program can be its own helper.
pub(crate) fn is_entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// Sends a message with its length in front.
pub(crate) fn send(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    socket.write_all(&length.to_be_bytes())?;
    socket.write_all(&text)
}

/// Receives such a message.
pub(crate) fn receive<T: for<'de> Deserialize<'de>>(mut socket: &UnixStream) -> io::Result<T> {
    let mut length = [0_u8; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAXIMUM {
        return Err(io::Error::other("the message is too long"));
    }
    let mut text = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    socket.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn run() -> ExitCode {
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 10).map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    let report = match prepare(&socket) {
        Ok(order) => start(&socket, order),
        Err(error) => Denied::new(format!("cannot prepare the program: {error}")).into(),
    };
    end_all(Signal::KILL);
    reap_all();
    // If the toolbox is gone, there is nobody to tell.
    let _ = send(&socket, &report);
    ExitCode::SUCCESS
}

/// Reads the order, leaves the caller's session, and connects the streams.
fn prepare(socket: &UnixStream) -> io::Result<Order> {
    // Before there is a second thread, which would take signals that are meant for the program.
    callgate_sandbox::hold_signals()?;
    let order: Order = receive(socket)?;
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let input = match &order.terminal {
        // The first terminal that the leader of a session opens becomes its own.
        Some(path) => {
            let terminal: OwnedFd = rustix::fs::openat(CWD, path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
            rustix::process::ioctl_tiocsctty(&terminal)?;
            rustix::stdio::dup2_stdout(&terminal)?;
            rustix::stdio::dup2_stderr(&terminal)?;
            terminal
        }
        None => rustix::fs::openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
    };
    rustix::stdio::dup2_stdin(&input)?;
    Ok(order)
}

fn start(socket: &UnixStream, order: Order) -> Report {
    let contained = order.fence.is_some();
    let watched = socket.as_fd().try_clone_to_owned().map(UnixStream::from);
    let watching = watched.and_then(|socket| {
        let watch = std::thread::Builder::new().name("watch".to_owned());
        watch.spawn(move || end_when_told(&socket, contained))
    });
    if let Err(error) = watching {
        return Denied::new(format!("cannot watch the toolbox: {error}")).into();
    }
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    environment.retain(|(name, _)| !order.environment.iter().any(|(set, _)| name == set.as_str()));
    environment.extend(order.environment.into_iter().map(|(name, value)| (name.into(), value.into())));
    let launch = Launch {
        words: order.words.into_iter().map(OsString::from).collect(),
        directory: order.directory,
        environment,
        backend: order.backend,
        run: order.run,
        ..Launch::default()
    };
    match order.fence {
        None => match callgate_sandbox::run_free(&launch) {
            Ok(code) => Report { code: Some(code), ..Report::default() },
            Err(denied) => denied.into(),
        },
        Some(fence) => match callgate_sandbox::run(&fence, &launch, None) {
            Ok(outcome) => Report {
                code: Some(outcome.exit_code()),
                limit: outcome.limit,
                held_back: outcome.held_back,
                denied: None,
            },
            Err(denied) => denied.into(),
        },
    }
}

/// Waits until the toolbox says that the program must end, or is gone.
fn end_when_told(mut socket: &UnixStream, contained: bool) {
    let mut byte = [0_u8; 1];
    // Any byte, the end and an error mean the same.
    let _ = socket.read(&mut byte);
    if contained {
        // The supervisor passes it on.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TERM);
        std::thread::sleep(GRACE);
        // When the supervisor ends, the kernel ends everything inside.
        std::process::exit(i32::from(128_u8.saturating_add(9)));
    }
    end_all(Signal::TERM);
    std::thread::sleep(GRACE);
    // Whoever is told to end may start something meanwhile.
    let start = Instant::now();
    while end_all(Signal::KILL) && start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to everything that descends from this process. Says whether there was anything.
fn end_all(signal: Signal) -> bool {
    let mut found = false;
    let mut open = vec![rustix::process::getpid()];
    while let Some(process) = open.pop() {
        for child in children(process) {
            found = true;
            // a stopped process would not notice
            let _ = rustix::process::kill_process(child, signal);
            let _ = rustix::process::kill_process(child, Signal::CONT);
            open.push(child);
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn children(process: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    let lists = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| {
        let numbers = list.split_whitespace().filter_map(|number| number.parse().ok());
        numbers.collect::<Vec<i32>>()
    };
    lists.flat_map(numbers).filter_map(Pid::from_raw).collect()
}

#[cfg(not(target_os = "linux"))]
fn children(process: Pid) -> Vec<Pid> {
    let list =
        std::process::Command::new("/usr/bin/pgrep").arg("-P").arg(process.as_raw_nonzero().to_string()).output();
    let list = list.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    list.split_whitespace().filter_map(|number| number.parse().ok()).filter_map(Pid::from_raw).collect()
}

/// Waits for what was ended, so that nothing is left when this process ends.
fn reap_all() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        match rustix::process::waitpid(None, WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => {
                end_all(Signal::KILL);
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(_) => return,
        }
    }
}
