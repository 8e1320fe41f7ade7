//! The hosts that a contained call may reach: names are resolved and connections made here, outside, each in a thread of its own.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use callgate_model::fence::{Fence, HeldBack, Network};

use crate::channel;
use crate::denied::Denied;
use crate::network::{Connector, HostList, Resolver, SocketKind, registries};
use crate::order::Request;

/// The set of hosts that package managers fetch from.
pub const REGISTRIES: &str = "@registries";
/// What a thread needs here.
const STACK: usize = 256 << 10;

/// Reaches hosts on behalf of a contained call.
pub struct Outside {
    resolver: Arc<Resolver>,
    connector: Arc<Connector>,
    held_back: Arc<Mutex<Vec<HeldBack>>>,
    /// Closed when the call has ended, which ends the threads that serve names.
    ended: (OwnedFd, Arc<OwnedFd>),
}

impl Outside {
    /// The hosts of a network, which [`hosts`] gave; `None` if it has none.
    pub fn new(network: &Network) -> Result<Option<Self>, Denied> {
        if *network == Network::None {
            return Ok(None);
        }
        let invalid = |error: &dyn std::fmt::Display| Denied::new(format!("invalid host in `network`: {error}"));
        let hosts = HostList::new(network).map_err(|error| invalid(&error))?;
        let held_back: Arc<Mutex<Vec<HeldBack>>> = Arc::default();
        let noted = Arc::clone(&held_back);
        let report = Arc::new(move |held: HeldBack| noted.lock().unwrap_or_else(PoisonError::into_inner).push(held));
        let resolver = Arc::new(Resolver::new(Arc::new(hosts), report));
        let connector = Arc::new(Connector::new(Arc::clone(&resolver)));
        let (stop, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| Denied::new(format!("cannot make a pipe: {error}")))?;
        Ok(Some(Outside { resolver, connector, held_back, ended: (write, Arc::new(stop)) }))
    }

    /// Answers at the sockets that came from inside.
    pub fn serve_names(&self, sockets: Vec<OwnedFd>) {
        let mut sockets = sockets.into_iter();
        if let Some(datagrams) = sockets.next() {
            let (resolver, stop) = (Arc::clone(&self.resolver), Arc::clone(&self.ended.1));
            spawn(move || drop(resolver.serve_udp(datagrams, stop.as_fd())));
        }
        if let Some(connections) = sockets.next() {
            let (resolver, stop) = (Arc::clone(&self.resolver), Arc::clone(&self.ended.1));
            spawn(move || drop(resolver.serve_tcp(connections, stop.as_fd())));
        }
    }

    /// Connects and hands the connection in.
    pub fn connect(&self, channel: OwnedFd, id: u64, stream: bool, to: SocketAddr) {
        let (connector, held_back) = (Arc::clone(&self.connector), Arc::clone(&self.held_back));
        spawn(move || {
            let kind = if stream { SocketKind::Stream } else { SocketKind::Datagram };
            // If the call has ended meanwhile, nobody waits for this.
            let _ = match connector.connect(kind, to) {
                Ok(connection) => channel::send(&channel, &Request::Connected { id, error: 0 }, &[connection.as_fd()]),
                Err(error) => {
                    if let Some(held) = error.held_back {
                        let mut all = held_back.lock().unwrap_or_else(PoisonError::into_inner);
                        if !all.contains(&held) && all.len() < 200 {
                            all.push(held);
                        }
                    }
                    channel::send(&channel, &Request::Connected { id, error: error.errno }, &[])
                }
            };
        });
    }

    /// What was held back.
    pub fn held_back(&self) -> Vec<HeldBack> {
        self.held_back.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn spawn(body: impl FnOnce() + Send + 'static) {
    // Without a thread the program inside waits until its call ends, which is no way out.
    let _ = std::thread::Builder::new().stack_size(STACK).spawn(body);
}

/// The network of a fence, with the registries by their names.
pub fn hosts(fence: &Fence) -> Network {
    match &fence.network {
        Network::Hosts(hosts) => Network::Hosts(expanded(hosts, fence)),
        other => other.clone(),
    }
}

fn expanded(hosts: &[String], fence: &Fence) -> Vec<String> {
    let mut all: Vec<String> = hosts.iter().filter(|host| *host != REGISTRIES).cloned().collect();
    if all.len() < hosts.len() {
        let home = fence.home.clone().unwrap_or_default();
        all.extend(registries(&home, &|name| callgate_policy::directories::variable(name)?.into_string().ok()));
    }
    all
}
