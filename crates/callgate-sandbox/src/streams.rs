//! Standard streams: what arrives inside is a pipe, a terminal of the sandbox's own, or nothing; never a file of the host, because
//! a descriptor leads to its file past every fence.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::termios::{OptionalActions, Termios};

use crate::background::KeptOutput;

/// How much is copied at once.
const CHUNK: usize = 64 << 10;

/// How much of what was printed last is kept.
const TAIL: usize = 4 << 10;

/// What the program printed last.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default());
        let surplus = kept.len().saturating_sub(TAIL);
        kept.drain(..surplus);
    }
}

/// The three streams as the contained program gets them, and what copies between them and the caller's.
pub struct Streams {
    /// For the program.
    pub inside: [OwnedFd; 3],
    /// Which of them are a terminal.
    pub terminal: [bool; 3],
    /// The size of the terminal.
    pub size: (u16, u16),
    input: Option<OwnedFd>,
    output: Vec<(OwnedFd, OwnedFd)>,
    kept: Option<(OwnedFd, KeptOutput)>,
    total: Arc<AtomicU64>,
    limit: Option<u64>,
}

/// The streams while the program runs.
pub struct Running {
    copies: Vec<JoinHandle<()>>,
    raw: Option<(OwnedFd, Termios)>,
    outer: Option<OwnedFd>,
    total: Arc<AtomicU64>,
    limit: Option<u64>,
    tail: Tail,
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Whether a stream is not there, or `/dev/null`. Everything else, pipes too, is copied through a pipe of the sandbox's own: whoever has
/// one end of a pipe can open the other.
fn is_nothing(stream: BorrowedFd<'_>) -> bool {
    let Ok(stat) = rustix::fs::fstat(stream) else { return true };
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)) == (1, 3)
}

impl Streams {
    /// Whether the program may print only so much.
    pub fn are_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes up the standard streams of this process. `limit` is for the bytes that the program prints.
    pub fn of_this_process(limit: Option<u64>) -> io::Result<Self> {
        let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let terminal = standard.map(rustix::termios::isatty);
        let window = standard.iter().find_map(|stream| rustix::termios::tcgetwinsize(stream).ok());
        let size = window.map_or((24, 80), |window| (window.ws_row, window.ws_col));
        let [stdin, stdout, stderr] = standard;
        let [input_is_terminal, _, _] = terminal;
        let (inner_input, input) = if input_is_terminal || is_nothing(stdin) {
            (nothing()?, None)
        } else {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            (read, Some(write))
        };
        let mut output: Vec<(OwnedFd, OwnedFd)> = Vec::new();
        let mut outgoing = |stream: BorrowedFd<'_>, is_terminal: bool, same: Option<&OwnedFd>| -> io::Result<OwnedFd> {
            match same {
                _ if is_terminal || is_nothing(stream) => nothing(),
                Some(same) => Ok(same.try_clone()?),
                None => {
                    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
                    output.push((read, stream.try_clone_to_owned()?));
                    Ok(write)
                }
            }
        };
        let [_, output_is_terminal, errors_are_terminal] = terminal;
        let inner_output = outgoing(stdout, output_is_terminal, None)?;
        // What goes to the same file stays in its order.
        let same = same_file(stdout, stderr) && !output_is_terminal;
        let inner_errors = outgoing(stderr, errors_are_terminal, same.then_some(&inner_output))?;
        let inside = [inner_input, inner_output, inner_errors];
        Ok(Streams { inside, terminal, size, input, output, kept: None, total: Arc::default(), limit })
    }

    /// No streams at all.
    pub fn none() -> io::Result<Self> {
        let inside = [nothing()?, nothing()?, nothing()?];
        Ok(Self::without_terminal(inside, None, None))
    }

    /// No input; everything that the program prints is kept.
    pub fn kept(output: KeptOutput, limit: Option<u64>) -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let inside = [nothing()?, write.try_clone()?, write];
        Ok(Self::without_terminal(inside, Some((read, output)), limit))
    }

    fn without_terminal(inside: [OwnedFd; 3], kept: Option<(OwnedFd, KeptOutput)>, limit: Option<u64>) -> Self {
        let (terminal, size) = ([false; 3], (24, 80));
        Streams { inside, terminal, size, input: None, output: Vec::new(), kept, total: Arc::default(), limit }
    }

    /// Starts copying. Call it when the program has its ends.
    pub fn start(self, outer: Option<OwnedFd>) -> io::Result<Running> {
        let Streams { inside, terminal, input, output, kept, total, limit, .. } = self;
        drop(inside);
        let tail = Tail::default();
        let mut running = Running {
            copies: Vec::new(),
            raw: None,
            outer: None,
            total: Arc::clone(&total),
            limit,
            tail: tail.clone(),
        };
        if let Some(write) = input {
            let stdin = rustix::stdio::stdin().try_clone_to_owned()?;
            copy(stdin, write, None)?;
        }
        if let Some((read, output)) = kept {
            running.copies.push(keep(read, output, Arc::clone(&total))?);
        }
        for (read, write) in output {
            running.copies.push(copy(read, write, Some((Arc::clone(&total), limit, tail.clone())))?);
        }
        let Some(outer) = outer else { return Ok(running) };
        let [input, output, errors] = terminal;
        if input {
            let stdin = rustix::stdio::stdin().try_clone_to_owned()?;
            running.raw = make_raw(&stdin)?;
            copy(stdin, outer.try_clone()?, None)?;
        }
        let shown = if output { Some(rustix::stdio::stdout()) } else { errors.then(rustix::stdio::stderr) };
        let shown = shown.unwrap_or(rustix::stdio::stdin()).try_clone_to_owned()?;
        running.copies.push(copy(outer.try_clone()?, shown, Some((total, limit, tail)))?);
        running.outer = Some(outer);
        Ok(running)
    }
}

impl Running {
    /// The window of the caller's terminal has another size.
    pub fn resize(&self) {
        let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let window = standard.iter().find_map(|stream| rustix::termios::tcgetwinsize(stream).ok());
        if let (Some(outer), Some(window)) = (&self.outer, window) {
            // a terminal that is gone has no size
            let _ = rustix::termios::tcsetwinsize(outer, window);
        }
    }

    /// Whether the program printed more than it may.
    pub fn over_limit(&self) -> bool {
        self.limit.is_some_and(|limit| self.total.load(Ordering::Relaxed) > limit)
    }

    /// Waits until everything that was printed has arrived, and gives the terminal back. Returns what was printed last.
    pub fn finish(mut self) -> Vec<u8> {
        for copy in std::mem::take(&mut self.copies) {
            // a copy that panicked copied what it could
            let _ = copy.join();
        }
        std::mem::take(&mut self.tail.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((terminal, settings)) = self.raw.take() {
            // the terminal may be gone
            let _ = rustix::termios::tcsetattr(&terminal, OptionalActions::Drain, &settings);
        }
    }
}

fn same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// Lets every key reach the program. Not in the background, where that would stop this process.
fn make_raw(terminal: &OwnedFd) -> io::Result<Option<(OwnedFd, Termios)>> {
    if rustix::termios::tcgetpgrp(terminal).ok() != Some(rustix::process::getpgrp()) {
        return Ok(None);
    }
    let settings = rustix::termios::tcgetattr(terminal)?;
    let mut raw = settings.clone();
    raw.make_raw();
    rustix::termios::tcsetattr(terminal, OptionalActions::Drain, &raw)?;
    Ok(Some((terminal.try_clone()?, settings)))
}

/// Copies until one end is gone, in a thread of its own.
fn copy(
    from: OwnedFd,
    to: OwnedFd,
    counted: Option<(Arc<AtomicU64>, Option<u64>, Tail)>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let length = match rustix::io::read(&from, &mut buffer) {
                Ok(0) => return,
                Ok(length) => length,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => {
                    wait_for(from.as_fd(), rustix::event::PollFlags::IN);
                    continue;
                }
                Err(_) => return,
            };
            if let Some((total, limit, tail)) = &counted {
                tail.add(buffer.get(..length).unwrap_or_default());
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                let before = total.fetch_add(length, Ordering::Relaxed);
                if limit.is_some_and(|limit| before > limit) {
                    continue;
                }
            }
            let mut rest = buffer.get(..length).unwrap_or_default();
            while !rest.is_empty() {
                match rustix::io::write(&to, rest) {
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::AGAIN) => wait_for(to.as_fd(), rustix::event::PollFlags::OUT),
                    Err(_) => return,
                }
            }
        }
    })
}

/// Keeps what comes until the other end is gone, in a thread of its own.
fn keep(from: OwnedFd, mut to: KeptOutput, total: Arc<AtomicU64>) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            match rustix::io::read(&from, &mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    total.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
                    to.keep(buffer.get(..length).unwrap_or_default());
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    })
}

fn wait_for(stream: BorrowedFd<'_>, what: rustix::event::PollFlags) {
    let mut ready = [rustix::event::PollFd::new(&stream, what)];
    // an error shows up in the next read or write
    let _ = rustix::event::poll(&mut ready, None);
}
