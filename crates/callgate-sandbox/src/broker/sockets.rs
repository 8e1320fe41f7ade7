//! Sockets: bound and connected for contained programs.
//!
//! A unix socket can be connected to only if it was bound inside, whatever its name. Addresses of the internet lead to this
//! sandbox's own loopback, or through the supervisor to a host that the fence names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::path::{self, Last, Target};
use super::{Broker, Done, Waiting, Wanted, int, long, thread};
use crate::order::{FIRST_PUBLISHED, RESOLVER};
use crate::system::{self, Notification};

/// The kernel's limit for an address.
const LONGEST_ADDRESS: usize = 128;
/// Where the path of a unix address starts.
const PATH_START: usize = 2;
/// How a unix address starts.
#[allow(clippy::cast_possible_truncation, reason = "the number is 1")]
const AF_UNIX: [u8; 2] = (libc::AF_UNIX as u16).to_ne_bytes();

/// Device, inode and the time of birth of a socket.
pub(super) type SocketIdentity = ((u32, u32), u64, i64, u32);

impl Broker {
    /// Binds or connects a socket of a program.
    pub(super) fn address(&mut self, call: &Notification, bind: bool) -> Result<Done, Errno> {
        let socket = self.socket(call)?;
        let length = usize::try_from(int(call, 2)).ok().filter(|length| (2..=LONGEST_ADDRESS).contains(length));
        let mut address = vec![0; length.ok_or(Errno::INVAL)?];
        let read = system::read_memory(thread(call), long(call, 1), &mut address).map_err(|_| Errno::FAULT)?;
        if read != address.len() || !system::still_waits(self.listener.as_fd(), call.id) {
            return Err(Errno::FAULT);
        }
        let family = sockopt::socket_domain(&socket)?;
        // A socket of one family takes addresses of that family only, so judging by the socket is judging what happens.
        if family == AddressFamily::UNIX {
            return self.unix(call, &socket, &address, bind);
        }
        if self.guard.alone && !bind && family != AddressFamily::NETLINK {
            // without a network of its own the sandbox's loopback is everybody's
            self.hold_back("connect", internet(&address).map_or_else(String::new, |to| to.to_string()), "network");
            return Err(Errno::NETUNREACH);
        }
        if bind || family == AddressFamily::NETLINK {
            return done(system::with_address(socket.as_fd(), &address, bind));
        }
        if let Some(port) = self.guard.names
            && internet(&address) == Some(RESOLVER.into())
            && let Some(place) = address.get_mut(2..4)
        {
            place.copy_from_slice(&port.to_be_bytes());
        }
        match internet(&address) {
            Some(to) if !is_here(to.ip()) || self.reach.ports.contains(&to.port()) => {
                self.connect_outside(call, &socket, to)
            }
            Some(to) if self.is_for_neighbours(&socket, to) => self.ask_supervisor(call, &socket, to, true),
            // an address of no family ends a connection
            _ => self.wait_for(call, socket, address),
        }
    }

    /// Whether nobody inside listens where a program wants to connect, and another call of the project may.
    fn is_for_neighbours(&self, socket: &OwnedFd, to: SocketAddr) -> bool {
        self.reach.neighbours
            && to.port() >= FIRST_PUBLISHED
            && sockopt::socket_type(socket) == Ok(SocketType::STREAM)
            && is_free(to) == Ok(true)
    }

    pub(super) fn listen(&mut self, call: &Notification) -> Result<Done, Errno> {
        let socket = self.socket(call)?;
        rustix::net::listen(&socket, int(call, 1))?;
        self.listened = true;
        Ok(Done::Value(0))
    }

    /// The program's socket itself, not a copy of it. One that the supervisor has connected belongs to the network outside and
    /// stays as it is.
    fn socket(&self, call: &Notification) -> Result<OwnedFd, Errno> {
        let thread = thread(call);
        let process = group(thread).ok_or(Errno::SRCH)?;
        let process = rustix::process::pidfd_open(process, PidfdFlags::empty())?;
        let socket = rustix::process::pidfd_getfd(&process, int(call, 0), PidfdGetfdFlags::empty())?;
        // without a network of its own the sandbox has no socket of another
        if !self.guard.alone && system::network_of(socket.as_fd()) != Some(self.network) {
            return Err(if rustix::fs::fstat(&socket).is_ok_and(is_socket) { Errno::ISCONN } else { Errno::NOTSOCK });
        }
        Ok(socket)
    }

    fn unix(&mut self, call: &Notification, socket: &OwnedFd, address: &[u8], bind: bool) -> Result<Done, Errno> {
        let name = address.get(PATH_START..).unwrap_or_default();
        // Abstract names, and none at all, belong to this network namespace.
        if matches!(name.first(), None | Some(0)) {
            if bind {
                return done(system::with_address(socket.as_fd(), address, true));
            }
            return self.wait_for(call, socket.try_clone().map_err(|_| Errno::MFILE)?, address.to_vec());
        }
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let name = name.get(..end).unwrap_or_default();
        if bind {
            return self.bind_unix(call, socket, name);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = match path::find(thread(call), libc::AT_FDCWD, name, Last::Followed)? {
            Target::Descriptor(found) => found,
            Target::Named(name) => {
                rustix::fs::openat(&name.directory, &name.name, flags | OFlags::NOFOLLOW, Mode::empty())?
            }
        };
        let stat = rustix::fs::fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        if identity(&found).is_none_or(|identity| !self.sockets.contains(&identity)) {
            self.hold_back("connect", String::from_utf8_lossy(name).into_owned(), "sockets");
            return Err(Errno::ACCESS);
        }
        // The address leads through the descriptor that was judged, and the thread keeps it open.
        let held = [&AF_UNIX, format!("/proc/self/fd/{}\0", found.as_raw_fd()).as_bytes()].concat();
        self.wait_with(call, socket.try_clone().map_err(|_| Errno::MFILE)?, held, Some(found))
    }

    fn bind_unix(&mut self, call: &Notification, socket: &OwnedFd, name: &[u8]) -> Result<Done, Errno> {
        let Target::Named(name) = path::find(thread(call), libc::AT_FDCWD, name, Last::Kept)? else {
            return Err(Errno::PERM);
        };
        self.allow(&name.path, "write")?;
        // In the directory that was judged, under its bare name: nothing is left to be found once more.
        let bare = [&AF_UNIX, name.name.as_bytes_with_nul()].concat();
        rustix::process::fchdir(&name.directory)?;
        let bound = self.with_mask(call, || system::with_address(socket.as_fd(), &bare, true));
        rustix::process::chdir("/")?;
        let result = done(bound)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(made) = rustix::fs::openat(&name.directory, &name.name, flags, Mode::empty())
            && let Some(identity) = identity(&made)
        {
            self.sockets.insert(identity);
        }
        Ok(result)
    }

    fn connect_outside(&mut self, call: &Notification, socket: &OwnedFd, to: SocketAddr) -> Result<Done, Errno> {
        let stream = sockopt::socket_type(socket)? == SocketType::STREAM;
        let is_script =
            self.reach.filters.is_some_and(|most| filters(thread(call)).is_none_or(|filters| filters > most));
        if !self.reach.outside || is_script {
            // Datagrams are how programs look which address they would have: nothing is sent.
            if stream {
                self.hold_back("connect", to.to_string(), "network");
            }
            return Err(Errno::NETUNREACH);
        }
        self.ask_supervisor(call, socket, to, stream)
    }

    /// Lets the program wait until the supervisor has connected.
    fn ask_supervisor(
        &mut self,
        call: &Notification,
        socket: &OwnedFd,
        to: SocketAddr,
        stream: bool,
    ) -> Result<Done, Errno> {
        let blocks = !rustix::fs::fcntl_getfl(socket)?.contains(OFlags::NONBLOCK);
        let target = int(call, 0).unsigned_abs();
        self.waiting.insert(call.id, Waiting { target, blocks, close_on_exec: closes_on_exec(call) });
        self.wanted.push(Wanted { id: call.id, stream, to });
        Ok(Done::Later)
    }

    /// The supervisor has connected, or could not.
    pub fn connected(&mut self, id: u64, error: i32, connection: Option<OwnedFd>) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        let put = |connection: OwnedFd| {
            if !waiting.blocks {
                rustix::fs::fcntl_setfl(&connection, OFlags::NONBLOCK)?;
            }
            let listener = self.listener.as_fd();
            system::replace_descriptor(listener, id, connection.as_fd(), waiting.target, waiting.close_on_exec)
        };
        let done = match connection {
            Some(connection) => put(connection).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)),
            None => Err(if error == 0 { libc::EIO } else { error }),
        };
        system::answer(self.listener.as_fd(), id, done.map(|()| 0));
    }

    fn wait_for(&self, call: &Notification, socket: OwnedFd, address: Vec<u8>) -> Result<Done, Errno> {
        self.wait_with(call, socket, address, None)
    }

    /// Connects without keeping others waiting.
    fn wait_with(
        &self,
        call: &Notification,
        socket: OwnedFd,
        address: Vec<u8>,
        keep: Option<OwnedFd>,
    ) -> Result<Done, Errno> {
        let waits = !rustix::fs::fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK);
        if !waits {
            return done(system::with_address(socket.as_fd(), &address, false));
        }
        let (listener, id) = (Arc::clone(&self.listener), call.id);
        let wait = move || {
            let connected = system::with_address(socket.as_fd(), &address, false);
            let number = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            system::answer(listener.as_fd(), id, connected.map(|()| 0).map_err(number));
            drop(keep);
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(wait).map_err(|_| Errno::AGAIN)?;
        Ok(Done::Later)
    }
}

/// What tells a socket apart from one that gets its number later: device, inode and when it was made.
fn identity(socket: &OwnedFd) -> Option<SocketIdentity> {
    let wanted = StatxFlags::BTIME | StatxFlags::INO | StatxFlags::TYPE;
    let stat = rustix::fs::statx(socket, "", AtFlags::EMPTY_PATH, wanted).ok()?;
    let is_socket = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Socket;
    let device = (stat.stx_dev_major, stat.stx_dev_minor);
    is_socket.then_some((device, stat.stx_ino, stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
}

fn is_socket(stat: rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Socket
}

fn done(result: std::io::Result<()>) -> Result<Done, Errno> {
    result.map(|()| Done::Value(0)).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// How many filters of system calls a thread has.
pub fn filters(thread: i32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

/// The process of a thread.
fn group(thread: i32) -> Option<Pid> {
    Pid::from_raw(super::files::status_field(thread, c"Tgid:")?.parse().ok()?)
}

fn closes_on_exec(call: &Notification) -> bool {
    let info = std::fs::read_to_string(format!("/proc/{}/fdinfo/{}", thread(call), int(call, 0))).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or_default();
    flags & libc::O_CLOEXEC.unsigned_abs() != 0
}

/// The address of the internet that some bytes mean.
fn internet(address: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(address.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(address.get(2..4)?.try_into().ok()?);
    let ip = match family {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(address.get(4..8)?).ok()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(address.get(8..24)?).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Whether nobody listens at an address of this network namespace: only then another socket can be bound there. Programs bind and
/// listen through this broker, so none of them is in the way of this socket, and it of none.
fn is_free(address: SocketAddr) -> Result<bool, Errno> {
    let (family, here) = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (AddressFamily::INET, IpAddr::V4(Ipv4Addr::LOCALHOST)),
        IpAddr::V6(ip) if ip.is_unspecified() => (AddressFamily::INET6, IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ip => (if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }, ip),
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // connections that have ended do not count
    sockopt::set_socket_reuseaddr(&socket, true)?;
    match rustix::net::bind(&socket, &SocketAddr::new(here, address.port())) {
        Ok(()) => Ok(true),
        Err(Errno::ADDRINUSE) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether an address leads to this network namespace itself.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified()
}
