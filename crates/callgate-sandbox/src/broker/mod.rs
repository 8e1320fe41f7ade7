//! The broker: performs for contained programs what changes files and what connects sockets.
//!
//! A filter hands these system calls over (see [`crate::filter`]). The broker reads a call's arguments once, finds what they mean by
//! descriptor, decides, and performs the operation itself on what it holds. It never lets a call continue that has arguments in
//! memory: another thread could put others there after they were judged. `umask`, which has none, continues. The contained programs themselves have no right to change any file,
//! by Landlock where the kernel has it, so a system call that is forgotten here changes nothing either.
//!
//! It runs in the same namespaces as the programs, outside the filter, with no capability but that of looking into them.

mod files;
mod masks;
pub mod path;
mod reads;
pub mod sockets;

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_model::fence::HeldBack;
use rustix::io::Errno;

use self::masks::Masks;
pub use self::reads::Secrets;
use crate::names::Names;
use crate::system::{self, Notification};

/// How much of what was held back is remembered.
const MOST_HELD_BACK: usize = 200;

/// What a contained call may change.
#[derive(Debug)]
pub struct Guard {
    /// The directories of the host that it may change.
    pub roots: Vec<PathBuf>,
    /// What it may not change in them.
    pub protected: Names,
    /// What a person has opened of that, each path by itself.
    pub allowed: Vec<PathBuf>,
    /// Protected files that have other names: device and inode.
    pub files: HashSet<(u64, u64)>,
    /// Names that are hidden in the roots, whenever they are made; `None` if none was there when the call started.
    pub secrets: Option<Secrets>,
    /// Directories that are the sandbox's own, or have a layer: their files may be changed, too.
    pub changeable: Vec<PathBuf>,
    /// Whether nothing but this broker keeps it from changing the rest of the file system.
    pub alone: bool,
    /// Whether symlinks may be made and moved in the roots.
    pub links: bool,
    /// The port that leads to the resolver in place of its own, which only a process with more rights could have.
    pub names: Option<u16>,
}

/// What can be reached outside, through the supervisor.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Whether it connects to hosts.
    pub outside: bool,
    /// The ports of the loopback that mean the host's.
    pub ports: Vec<u16>,
    /// Whether it finds the ports of other calls of the same project.
    pub neighbours: bool,
    /// How many filters a process has at most that may reach hosts: scripts of packages have one more.
    pub filters: Option<usize>,
}

/// The result of a system call: a value, or a descriptor that the program gets.
enum Done {
    Value(i64),
    Descriptor {
        descriptor: OwnedFd,
        close_on_exec: bool,
    },
    /// Answered by a thread that waits for something.
    Later,
}

/// A program that waits until the supervisor has connected.
struct Waiting {
    target: u32,
    blocks: bool,
    close_on_exec: bool,
}

/// A connection that the supervisor is asked for.
#[derive(Debug)]
pub struct Wanted {
    /// The system call that waits.
    pub id: u64,
    /// A stream, or datagrams.
    pub stream: bool,
    /// The address.
    pub to: std::net::SocketAddr,
}

/// Performs what contained programs may do.
pub struct Broker {
    listener: Arc<OwnedFd>,
    guard: Guard,
    /// Sockets that were made inside.
    sockets: HashSet<sockets::SocketIdentity>,
    /// Programs that wait for the supervisor.
    waiting: HashMap<u64, Waiting>,
    reach: Reach,
    /// Whether a program has listened on a socket since this was last asked.
    listened: bool,
    wanted: Vec<Wanted>,
    terminal: Option<PathBuf>,
    /// What all brokers of a user share: only the one that has it judges and performs.
    lock: OwnedFd,
    /// The network namespace of this process.
    network: u64,
    masks: Masks,
    held_back: HashSet<HeldBack>,
    news: Vec<HeldBack>,
}

impl Broker {
    /// A broker for the calls that a listener hands over.
    pub fn new(listener: OwnedFd, lock: OwnedFd, guard: Guard, terminal: Option<PathBuf>, reach: Reach) -> Self {
        system::decide_synchronously(listener.as_fd());
        Broker {
            listener: Arc::new(listener),
            guard,
            sockets: HashSet::new(),
            waiting: HashMap::new(),
            reach,
            listened: false,
            wanted: Vec::new(),
            terminal,
            lock,
            network: system::own_network().unwrap_or_default(),
            masks: Masks::default(),
            held_back: HashSet::new(),
            news: Vec::new(),
        }
    }

    /// The descriptor that becomes readable when a program waits.
    pub fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// What was held back since this was last asked.
    pub fn news(&mut self) -> Vec<HeldBack> {
        std::mem::take(&mut self.news)
    }

    /// The connections that the supervisor must be asked for since this was last asked.
    pub fn wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(&mut self.wanted)
    }

    /// Whether a program has listened on a socket since this was last asked.
    pub fn has_listened(&mut self) -> bool {
        std::mem::take(&mut self.listened)
    }

    /// Serves one system call.
    pub fn serve(&mut self) -> io::Result<()> {
        let call = match system::receive(self.listener.as_fd()) {
            Ok(call) => call,
            // the program was killed meanwhile, or a signal came
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR | libc::EAGAIN)) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if libc::c_long::from(call.number) == libc::SYS_umask {
            self.masks.forget();
            system::let_continue(self.listener.as_fd(), call.id);
            return Ok(());
        }
        let result = if self.guard.secrets.is_some() && reads::only_reads(&call) {
            self.perform(&call)
        } else {
            // Two calls in one workspace must not change what the other has just judged.
            rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::LockExclusive)?;
            let result = self.perform(&call);
            rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::Unlock)?;
            result
        };
        let listener = self.listener.as_fd();
        match result {
            Ok(Done::Value(value)) => system::answer(listener, call.id, Ok(value)),
            Ok(Done::Later) => {}
            Ok(Done::Descriptor { descriptor, close_on_exec }) => {
                if let Err(error) = system::answer_with_descriptor(listener, call.id, descriptor.as_fd(), close_on_exec)
                {
                    let number = error.raw_os_error().filter(|number| *number != libc::ENOENT);
                    if let Some(number) = number {
                        system::answer(listener, call.id, Err(number));
                    }
                }
            }
            Err(error) => system::answer(listener, call.id, Err(error.raw_os_error())),
        }
        Ok(())
    }

    fn perform(&mut self, call: &Notification) -> Result<Done, Errno> {
        let number = libc::c_long::from(call.number);
        match number {
            libc::SYS_connect | libc::SYS_bind => self.address(call, number == libc::SYS_bind),
            libc::SYS_listen => self.listen(call),
            _ => self.change(call),
        }
    }

    /// A path of the program, read once. What was read counts only if the thread still waits.
    fn path(&self, call: &Notification, address: u64) -> Result<Vec<u8>, Errno> {
        let path = path::read_path(thread(call), address)?;
        if system::still_waits(self.listener.as_fd(), call.id) { Ok(path.into_bytes()) } else { Err(Errno::SRCH) }
    }

    /// Refuses to change a protected name.
    fn allow(&mut self, path: &Path, action: &str) -> Result<(), Errno> {
        let inside = self.guard.roots.iter().any(|root| path.starts_with(root));
        if inside && self.guard.protected.covers(path) && !self.guard.allowed.iter().any(|allowed| allowed == path) {
            self.hold_back(action, path.display().to_string(), "protected");
            return Err(Errno::ACCESS);
        }
        self.allow_secret(path, action)?;
        // Devices change nothing, below `/proc` only the program's own files are found, and what has no path is a pipe or the like.
        let harmless = || path.starts_with("/dev") || path.starts_with("/proc") || !path.is_absolute();
        if !inside && !self.is_changeable(path) && !harmless() {
            self.hold_back(action, path.display().to_string(), "files");
            return Err(Errno::ROFS);
        }
        Ok(())
    }

    /// Whether a file lies where contained programs may change files.
    fn is_changeable(&self, path: &Path) -> bool {
        self.guard.changeable.iter().chain(&self.guard.roots).any(|directory| path.starts_with(directory))
    }

    fn is_outside(&self, path: &Path) -> bool {
        !self.guard.roots.iter().any(|root| path.starts_with(root))
    }

    fn hold_back(&mut self, action: &str, target: String, by: &str) {
        if self.held_back.len() >= MOST_HELD_BACK {
            return;
        }
        let held_back = HeldBack { action: action.to_owned(), target, by: by.to_owned() };
        if self.held_back.insert(held_back.clone()) {
            self.news.push(held_back);
        }
    }
}

fn thread(call: &Notification) -> i32 {
    call.thread.cast_signed()
}

/// One argument as the kernel reads an `int`.
fn int(call: &Notification, index: usize) -> i32 {
    let value = call.arguments.get(index).copied().unwrap_or_default();
    // INVARIANT: the kernel takes the lower half, whatever the upper one holds.
    u32::try_from(value & 0xffff_ffff).unwrap_or_default().cast_signed()
}

fn long(call: &Notification, index: usize) -> u64 {
    call.arguments.get(index).copied().unwrap_or_default()
}
