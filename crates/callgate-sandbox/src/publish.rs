//! Ports that a contained call listens on, at the same port of the user's loopback.
//!
//! The listener outside is there only while one inside is. A connection is accepted from the same user only. It is passed on through a
//! socket that the first process makes, so it ends inside the call's own network and nowhere else.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::order::{FIRST_PUBLISHED, RESOLVER, Request};
use crate::{channel, listening, network};

/// How many ports are published.
const MOST_PORTS: usize = 64;
/// Connections at once.
const MOST_CONNECTIONS: u64 = 256;
/// How often a listener outside looks whether it is still wanted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// How long the first process may take to make a socket, and a server to accept.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may be silent.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// What a thread needs here.
const STACK: usize = 256 << 10;

/// How a port is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    /// It can be reached at this machine's loopback.
    Published,
    /// Another program has the port, which keeps it.
    InUse,
}

/// Publishes the ports of one call.
pub struct Publisher {
    channel: OwnedFd,
    /// Those who wait for a socket.
    waiting: Mutex<HashMap<u64, SyncSender<OwnedFd>>>,
    next: AtomicU64,
    connections: AtomicU64,
    /// Where the call listens.
    inside: Mutex<Vec<SocketAddr>>,
    outside: Mutex<BTreeMap<u16, Port>>,
    /// Readable when the call has ended.
    ended: OwnedFd,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Publisher {
    /// Publishes through a channel to the first process. The other result ends everything when it is dropped.
    pub fn new(channel: OwnedFd) -> io::Result<(Arc<Self>, OwnedFd)> {
        let (ended, end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let publisher = Publisher {
            channel,
            waiting: Mutex::default(),
            next: AtomicU64::default(),
            connections: AtomicU64::default(),
            inside: Mutex::default(),
            outside: Mutex::default(),
            ended,
        };
        Ok((Arc::new(publisher), end))
    }

    /// The ports and how they are published.
    pub fn ports(&self) -> BTreeMap<u16, Port> {
        lock(&self.outside).clone()
    }

    /// Whether it is worth asking where the call listens now.
    pub fn listens(&self) -> bool {
        !lock(&self.inside).is_empty()
    }

    /// The call listens on these addresses and no others.
    pub fn listening(self: &Arc<Self>, mut addresses: Vec<SocketAddr>) {
        let reachable = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
        addresses.retain(|at| at.port() >= FIRST_PUBLISHED && reachable(at.ip()) && at.ip() != RESOLVER.0);
        let mut ports: Vec<u16> = addresses.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.truncate(MOST_PORTS);
        *lock(&self.inside) = addresses;
        let mut outside = lock(&self.outside);
        outside.retain(|port, state| *state == Port::Published || ports.contains(port));
        for port in ports {
            if outside.get(&port) != Some(&Port::Published) {
                outside.insert(port, self.publish(port));
            }
        }
    }

    /// A socket that the first process has made.
    pub fn made(&self, id: u64, socket: Option<OwnedFd>) {
        if let (Some(waiting), Some(socket)) = (lock(&self.waiting).remove(&id), socket) {
            // whoever waited may have given up
            let _ = waiting.send(socket);
        }
    }

    fn publish(self: &Arc<Self>, port: u16) -> Port {
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) else { return Port::InUse };
        // `localhost` may mean this one, too; if another program has it, that one keeps it
        let also = TcpListener::bind((Ipv6Addr::LOCALHOST, port));
        let listeners: Vec<TcpListener> = [Ok(listener), also].into_iter().flatten().collect();
        let publisher = Arc::clone(self);
        spawn(move || {
            publisher.accept(&listeners, port);
            drop(listeners);
            lock(&publisher.outside).remove(&port);
        });
        Port::Published
    }

    fn is_inside(&self, port: u16) -> bool {
        lock(&self.inside).iter().any(|at| at.port() == port)
    }

    /// Accepts until the call no longer listens.
    fn accept(self: &Arc<Self>, listeners: &[TcpListener], port: u16) {
        if listeners.iter().any(|listener| listener.set_nonblocking(true).is_err()) {
            return;
        }
        while self.is_inside(port) {
            let mut ready: Vec<PollFd<'_>> =
                listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
            ready.push(PollFd::new(&self.ended, PollFlags::IN));
            match rustix::event::poll(&mut ready, Some(&LOOK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            if ready.last().is_some_and(|ended| !ended.revents().is_empty()) {
                return;
            }
            for listener in listeners {
                while let Ok((connection, peer)) = listener.accept() {
                    self.take(connection, peer, port);
                }
            }
        }
    }

    /// Serves a connection of the same user; another one is closed.
    fn take(self: &Arc<Self>, connection: TcpStream, peer: SocketAddr, port: u16) {
        let user = connection.local_addr().ok().and_then(|here| listening::user_of(peer, here));
        let is_own = user == Some(rustix::process::getuid().as_raw());
        if !is_own || self.connections.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
            return;
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        let publisher = Arc::clone(self);
        spawn(move || {
            // either side may break off at any time
            let _ = publisher.pass_on(&OwnedFd::from(connection), port);
            publisher.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn pass_on(&self, connection: &OwnedFd, port: u16) -> io::Result<()> {
        let inside = self.connect(port)?;
        rustix::io::ioctl_fionbio(connection, true)?;
        rustix::io::ioctl_fionbio(&inside, true)?;
        network::tunnel(connection.as_fd(), inside.as_fd(), self.ended.as_fd(), IDLE)
    }

    /// A connection to a port that the call listens on.
    pub fn connect(&self, port: u16) -> io::Result<OwnedFd> {
        let here = |at: &SocketAddr| match at.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
            _ => *at,
        };
        let place = lock(&self.inside).iter().find(|at| at.port() == port).map(here);
        let place = place.ok_or(io::ErrorKind::ConnectionRefused)?;
        let socket = self.socket(place.is_ipv6())?;
        connect(&socket, place)?;
        Ok(socket)
    }

    /// A socket that belongs to the network of the call.
    fn socket(&self, version_6: bool) -> io::Result<OwnedFd> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver): (_, Receiver<OwnedFd>) = sync_channel(1);
        lock(&self.waiting).insert(id, sender);
        let socket = channel::send(&self.channel, &Request::Socket { id, version_6 }, &[])
            .and_then(|()| receiver.recv_timeout(PATIENCE).map_err(io::Error::other));
        lock(&self.waiting).remove(&id);
        socket
    }
}

/// Connects, with a limit. The socket blocks afterwards.
fn connect(socket: &OwnedFd, to: SocketAddr) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, true)?;
    match rustix::net::connect(socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let limit = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
            let mut ready = [PollFd::new(socket, PollFlags::OUT)];
            if rustix::event::poll(&mut ready, Some(&limit))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            rustix::net::sockopt::socket_error(socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::io::ioctl_fionbio(socket, false)?)
}

fn spawn(body: impl FnOnce() + Send + 'static) {
    // Without a thread the connection is closed.
    let _ = std::thread::Builder::new().stack_size(STACK).spawn(body);
}
