//! Contained calls that live on after the command that started them: what they print is kept, and they can be asked and ended.
//!
//! Each has a directory in callgate's state directory, which no contained call sees: its output, a socket at which its supervisor
//! answers, and after its end how it ended. Nobody is ended by a number in a file: the supervisor that holds the call is asked, over a
//! socket whose other end the kernel names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::live::{self, LiveRun};
use callgate_model::clock::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::channel;
use crate::publish::{Port, Publisher};

/// How much of the output each of the two files holds: the newer one and the one before.
const KEPT_OUTPUT: u64 = 1 << 20;
/// How many calls that have ended are remembered.
const MOST_ENDED: usize = 20;
/// How long the ended ones are remembered.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a call may take to end: it is given two seconds to end by itself.
const ENDING: Duration = Duration::from_secs(10);

const OUTPUT: &str = "output";
const EARLIER_OUTPUT: &str = "output.1";
const SOCKET: &str = "socket";
const ENDED: &str = "ended.json";

/// What is asked at the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    Ports,
    Connect { port: u16 },
    Stop,
}

/// What the supervisor answers. A descriptor comes with it if it has connected.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Reply {
    ports: BTreeMap<u16, Port>,
    error: i32,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The call.
    #[serde(flatten)]
    pub run: LiveRun,
    /// When it ended.
    pub until: Timestamp,
    /// Its exit code as a shell gives it.
    pub exit: i32,
    /// Why, if not by itself: a limit, the end of its session, or `stopped`.
    pub because: Option<String>,
}

/// A contained call, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackgroundRun {
    /// It runs. The ports are missing if it runs in the foreground, or if its supervisor does not answer.
    Running(LiveRun, Option<BTreeMap<u16, Port>>),
    /// It has ended.
    Ended(Ended),
}

impl BackgroundRun {
    /// The call.
    pub fn run(&self) -> &LiveRun {
        match self {
            BackgroundRun::Running(run, _) | BackgroundRun::Ended(Ended { run, .. }) => run,
        }
    }
}

fn directory() -> io::Result<PathBuf> {
    let state = callgate_policy::directories::state().ok_or_else(|| io::Error::other("there is no home directory"))?;
    Ok(state.join("processes"))
}

/// The directory of one call; an error for what is no id.
fn directory_of(id: &str) -> io::Result<PathBuf> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_id { Ok(directory()?.join(id)) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
}

/// The state of a call, held by its supervisor.
pub struct Keeper {
    directory: PathBuf,
    socket: OwnedFd,
    run: LiveRun,
}

impl Keeper {
    /// Makes the directory of a call and the socket in it.
    pub fn new(run: &LiveRun) -> io::Result<Self> {
        let directory = directory_of(&run.id)?;
        // A process that had this number before has ended.
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        at_socket(&directory, |address| rustix::net::bind(&socket, address))?;
        rustix::net::listen(&socket, 64)?;
        Ok(Keeper { directory, socket, run: run.clone() })
    }

    /// Readable when somebody asks.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The file for what the call prints.
    pub fn output(&self) -> io::Result<KeptOutput> {
        KeptOutput::new(self.directory.clone())
    }

    /// Takes up a question. `stop` is called if the call shall end.
    pub fn answer(&self, publisher: &Arc<Publisher>, stop: impl FnOnce() + Send + 'static) {
        let Ok(asking) = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC) else { return };
        // The directory is closed to others; this is closed to what reached it otherwise.
        let own =
            rustix::net::sockopt::socket_peercred(&asking).is_ok_and(|peer| peer.uid == rustix::process::getuid());
        if !own {
            return;
        }
        let publisher = Arc::clone(publisher);
        let answer = move || {
            if !is_ready(asking.as_fd(), PATIENCE) {
                return;
            }
            let Ok(Some((question, _))) = channel::receive::<Question>(&asking) else { return };
            let mut reply = Reply { ports: publisher.ports(), error: 0 };
            let connection = match question {
                Question::Connect { port } => publisher.connect(port).map_err(|error| {
                    reply.error = error.raw_os_error().unwrap_or(libc::ECONNREFUSED);
                }),
                Question::Ports | Question::Stop => Err(()),
            };
            let descriptors: Vec<_> = connection.iter().map(AsFd::as_fd).collect();
            // who asked may be gone
            let _ = channel::send(&asking, &reply, &descriptors);
            if matches!(question, Question::Stop) {
                stop();
            }
        };
        // Without a thread nobody is answered.
        let _ = std::thread::Builder::new().stack_size(256 << 10).spawn(answer);
    }

    /// Records how the call ended.
    pub fn ended(&self, exit: i32, because: Option<String>) {
        let ended = Ended { run: self.run.clone(), until: Timestamp::now(), exit, because };
        let record = || -> io::Result<()> {
            let _ = std::fs::remove_file(self.directory.join(SOCKET));
            let new = self.directory.join("ended.new");
            private_file(&new)?.write_all(&serde_json::to_vec(&ended)?)?;
            std::fs::rename(new, self.directory.join(ENDED))
        };
        // A full disk loses how it ended, and nothing else.
        let _ = record();
    }

    /// Forgets a call that was not started.
    pub fn forget(self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// What a call prints, of which the latest part is kept.
pub struct KeptOutput {
    directory: PathBuf,
    file: File,
    length: u64,
}

impl KeptOutput {
    fn new(directory: PathBuf) -> io::Result<Self> {
        let file = private_file(&directory.join(OUTPUT))?;
        Ok(KeptOutput { directory, file, length: 0 })
    }

    /// Keeps some bytes. What cannot be written is lost: the call goes on.
    pub fn keep(&mut self, bytes: &[u8]) {
        if self.length >= KEPT_OUTPUT {
            let output = self.directory.join(OUTPUT);
            let renewed =
                std::fs::rename(&output, self.directory.join(EARLIER_OUTPUT)).and_then(|()| private_file(&output));
            if let Ok(file) = renewed {
                (self.file, self.length) = (file, 0);
            }
        }
        if self.length < KEPT_OUTPUT && self.file.write_all(bytes).is_ok() {
            self.length = self.length.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        }
    }
}

/// Calls with the address of the socket in a directory. Its length does not count: the address leads through a descriptor.
fn at_socket(directory: &Path, body: impl FnOnce(&SocketAddrUnix) -> Result<(), rustix::io::Errno>) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::open(directory, flags, Mode::empty())?;
    Ok(body(&SocketAddrUnix::new(format!("/proc/self/fd/{}/{SOCKET}", held.as_raw_fd()))?)?)
}

fn is_ready(socket: std::os::fd::BorrowedFd<'_>, limit: Duration) -> bool {
    let Ok(limit) = Timespec::try_from(limit) else { return false };
    let mut ready = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    matches!(rustix::event::poll(&mut ready, Some(&limit)), Ok(1..))
}

/// Asks the supervisor of a call. The socket that comes back is closed when the supervisor has ended.
fn ask(id: &str, question: &Question) -> io::Result<(Reply, Vec<OwnedFd>)> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    at_socket(&directory_of(id)?, |address| rustix::net::connect(&socket, address))?;
    if rustix::net::sockopt::socket_peercred(&socket)?.uid != rustix::process::getuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    channel::send(&socket, question, &[])?;
    if !is_ready(socket.as_fd(), PATIENCE.saturating_add(PATIENCE)) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    channel::receive(&socket)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Connects to a port of a call in the background that belongs to the same project. `None` if none listens there.
pub fn connect_to_neighbour(workspace: &Path, port: u16) -> Option<OwnedFd> {
    let runs = live::all().ok()?;
    let neighbours = runs.into_iter().filter(|run| run.background && run.workspace.as_deref() == Some(workspace));
    neighbours.into_iter().find_map(|run| ask(&run.id, &Question::Connect { port }).ok()?.1.pop())
}

/// All contained calls that run, and those in the background that have ended not long ago.
pub fn list() -> io::Result<Vec<BackgroundRun>> {
    let running = live::all()?;
    let mut all: Vec<BackgroundRun> = ended(&running)?.into_iter().map(BackgroundRun::Ended).collect();
    for run in running {
        let ask = || ask(&run.id, &Question::Ports).ok().map(|(reply, _)| reply.ports);
        let ports = if run.background { ask() } else { None };
        all.push(BackgroundRun::Running(run, ports));
    }
    all.sort_by_key(|run| (run.run().since, run.run().id.clone()));
    Ok(all)
}

/// The calls that have ended. Removes what is too old, too many, or was left by a supervisor that was killed.
fn ended(running: &[LiveRun]) -> io::Result<Vec<Ended>> {
    let entries = match std::fs::read_dir(directory()?) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        if running.iter().any(|run| entry.file_name() == *run.id) {
            continue;
        }
        let text = std::fs::read(entry.path().join(ENDED)).unwrap_or_default();
        match serde_json::from_slice::<Ended>(&text) {
            Ok(ended) if ended.until.until(Timestamp::now()) < REMEMBERED && entry.file_name() == *ended.run.id => {
                all.push(ended);
            }
            // One that starts has a directory before it counts as running.
            _ if is_young(&entry.path()) => {}
            _ => {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
    all.sort_by_key(|ended| std::cmp::Reverse(ended.until));
    for old in all.drain(MOST_ENDED.min(all.len())..) {
        let _ = directory_of(&old.run.id).and_then(std::fs::remove_dir_all);
    }
    Ok(all)
}

fn is_young(path: &Path) -> bool {
    let modified = path.symlink_metadata().and_then(|data| data.modified());
    modified.is_ok_and(|modified| modified.elapsed().unwrap_or_default() < Duration::from_secs(30))
}

/// What a call has printed, as much of it as is kept.
pub fn output(id: &str) -> io::Result<Vec<u8>> {
    let directory = directory_of(id)?;
    let mut all = Vec::new();
    if let Ok(mut earlier) = File::open(directory.join(EARLIER_OUTPUT)) {
        earlier.read_to_end(&mut all)?;
    }
    File::open(directory.join(OUTPUT))?.read_to_end(&mut all)?;
    Ok(all)
}

/// Ends a call and waits until it has ended.
pub fn stop(run: &LiveRun) -> io::Result<()> {
    ask(&run.id, &Question::Stop)?;
    let start = Instant::now();
    while start.elapsed() < ENDING {
        if !live::all()?.iter().any(|other| other.id == run.id && other.call == run.call) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = KeptOutput::new(directory.path().to_owned()).unwrap();
        for number in 0..40_u8 {
            kept.keep(&vec![number; 100 << 10]);
        }
        let size = |name: &str| directory.path().join(name).metadata().unwrap().len();
        assert!(size(OUTPUT) <= KEPT_OUTPUT + (100 << 10) && size(EARLIER_OUTPUT) <= KEPT_OUTPUT + (100 << 10));
        assert_eq!(std::fs::read(directory.path().join(OUTPUT)).unwrap().last(), Some(&39));
    }

    #[test]
    fn only_numbers_are_ids() {
        for id in ["", "..", "1/2", "a", "1\0"] {
            assert_eq!(directory_of(id).unwrap_err().kind(), io::ErrorKind::NotFound, "{id:?}");
        }
    }
}
