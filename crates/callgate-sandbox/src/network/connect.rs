//! Connects on behalf of contained processes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_model::fence::HeldBack;
use rustix::event::{PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::hosts::{Answer, target};
use super::name::{Host, HostName};
use super::resolver::{ResolveError, Resolver, held_back};
use super::stream::{Places, STACK};

/// The longest that one connection may take to come about.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long a datagram socket may be silent before its relay ends.
const IDLE_LIMIT: Duration = Duration::from_secs(300);
/// Datagram sockets at once.
const MOST_RELAYS: usize = 32;
/// The largest datagram there is.
const LONGEST_DATAGRAM: usize = 65536;

/// The kind of a socket that is to be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SocketKind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

/// Why a connection does not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot connect: {}", io::Error::from_raw_os_error(*.errno))]
pub struct ConnectError {
    /// What the program is told: `EACCES` where the list refuses, otherwise what the system said.
    pub errno: i32,
    /// What the list refused, if that is worth a word.
    pub held_back: Option<HeldBack>,
}

/// Connects sockets outside for contained processes, as the list of their call says.
///
/// The refusal is `EACCES`: every program prints "permission denied" for it at once, while `ECONNREFUSED` and `ETIMEDOUT`
/// make package managers try again.
#[derive(Debug)]
pub struct Connector {
    resolver: Arc<Resolver>,
    relays: Places,
    time_limit: Duration,
}

impl Connector {
    /// A connector for the list and the pinned names of `resolver`.
    pub fn new(resolver: Arc<Resolver>) -> Self {
        Self { resolver, relays: Places::new(MOST_RELAYS), time_limit: TIME_LIMIT }
    }

    /// Connects to `address` and waits until this is done. The socket blocks and is closed on exec.
    ///
    /// A stream socket is always a connected one, also for programs whose own socket does not block: on one that is not, or no
    /// longer, connected, a program could listen in the network outside.
    ///
    /// A datagram socket is one end of a relay, of family `AF_UNIX`: with a socket of the network outside, the program could
    /// send to any address.
    pub fn connect(&self, kind: SocketKind, address: SocketAddr) -> Result<OwnedFd, ConnectError> {
        let socket = match kind {
            SocketKind::Stream => {
                self.judge(address)?;
                stream(address, Instant::now() + self.time_limit)?
            }
            SocketKind::Datagram => {
                self.judge_datagrams(address)?;
                self.relay(address)?
            }
        };
        rustix::io::ioctl_fionbio(&socket, false)?;
        Ok(socket)
    }

    /// Whether a stream may be connected to `address`: it is listed, or a name led to it that is.
    fn judge(&self, address: SocketAddr) -> Result<(), ConnectError> {
        let hosts = self.resolver.hosts();
        if hosts.allows_address(address) == Answer::Allowed {
            return Ok(());
        }
        let mut names = self.resolver.names(address.ip());
        let allowed =
            |name: &HostName| hosts.allows_resolved(name, address.ip(), Some(address.port())) == Answer::Allowed;
        if names.iter().any(allowed) {
            return Ok(());
        }
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        Err(match names.first() {
            Some(name) => refused(format!("{name}:{}", address.port())),
            None => refused(shown(address)),
        })
    }

    fn judge_datagrams(&self, address: SocketAddr) -> Result<(), ConnectError> {
        if self.resolver.hosts().allows_datagrams(address) {
            return Ok(());
        }
        // The C library connects datagram sockets to sort addresses, and browsers try QUIC before TCP. Both do without.
        let harmless = !self.resolver.names(address.ip()).is_empty() || self.judge(address).is_ok();
        let held_back = (!harmless).then(|| held_back(&shown(address)));
        Err(ConnectError { errno: Errno::ACCESS.raw_os_error(), held_back })
    }

    /// Connects to a host as a proxy's client names it.
    pub(super) fn connect_host(&self, host: &Host, port: u16) -> Result<OwnedFd, HostFailure> {
        let name = match host {
            Host::Address(address) => return Ok(self.connect(SocketKind::Stream, SocketAddr::new(*address, port))?),
            Host::Name(name) => name,
        };
        if !name.is_localhost() && !self.resolver.hosts().allows_name(name.as_str(), port) {
            return Err(HostFailure::HeldBack(format!("{name}:{port}")));
        }
        let addresses = self.resolver.resolve(name).map_err(|error| match error {
            ResolveError::HeldBack => HostFailure::HeldBack(format!("{name}:{port}")),
            ResolveError::NotFound => HostFailure::NotFound,
            ResolveError::Failed => HostFailure::Failed(Errno::TIMEDOUT.raw_os_error()),
        })?;
        let deadline = Instant::now() + self.time_limit;
        let mut failure = HostFailure::NotFound;
        for address in addresses {
            let attempt = self.connect(SocketKind::Stream, SocketAddr::new(address, port));
            match attempt {
                Ok(socket) => return Ok(socket),
                Err(error) => failure = error.into(),
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        Err(failure)
    }

    /// Reports what a proxy's client was refused. Those who connect on behalf report the error itself.
    pub(super) fn report(&self, target: &str) {
        self.resolver.held_back(target);
    }

    /// A socket whose packets go to `address` and nowhere else.
    fn relay(&self, address: SocketAddr) -> Result<OwnedFd, ConnectError> {
        let place = self.relays.take().ok_or(Errno::NOBUFS)?;
        let outside = socket(address, SocketType::DGRAM)?;
        rustix::net::connect(&outside, &destination(address))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (inside, ours) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || {
                relay_datagrams(&ours, &outside);
                drop(place);
            })
            .map_err(|_| Errno::AGAIN)?;
        Ok(inside)
    }
}

/// Why a proxy's client does not reach a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostFailure {
    /// The list refuses this target.
    HeldBack(String),
    /// There is no such name.
    NotFound,
    /// The system's error.
    Failed(i32),
}

impl From<ConnectError> for HostFailure {
    fn from(error: ConnectError) -> Self {
        error.held_back.map_or(Self::Failed(error.errno), |held| Self::HeldBack(held.target))
    }
}

impl From<Errno> for ConnectError {
    fn from(errno: Errno) -> Self {
        Self { errno: errno.raw_os_error(), held_back: None }
    }
}

fn refused(target: String) -> ConnectError {
    ConnectError { errno: Errno::ACCESS.raw_os_error(), held_back: Some(held_back(&target)) }
}

/// The address as it can be listed.
fn shown(address: SocketAddr) -> String {
    SocketAddr::new(target(address.ip()), address.port()).to_string()
}

/// Where the socket is told to connect: what was judged, in the family of the program's own socket where that is the same.
fn destination(address: SocketAddr) -> SocketAddr {
    match target(address.ip()) {
        judged @ IpAddr::V4(judged_4) if address.ip() != judged => {
            let mapped = IpAddr::V6(judged_4.to_ipv6_mapped());
            SocketAddr::new(if address.is_ipv6() { mapped } else { judged }, address.port())
        }
        judged if address.ip() != judged => SocketAddr::new(judged, address.port()),
        _ => address,
    }
}

fn socket(address: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// A socket that is connected to `address`.
fn stream(address: SocketAddr, deadline: Instant) -> Result<OwnedFd, Errno> {
    let socket = socket(address, SocketType::STREAM)?;
    match rustix::net::connect(&socket, &destination(address)) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    while !wait_for(&[(&socket, PollFlags::OUT)], deadline.saturating_duration_since(Instant::now()))? {
        if Instant::now() >= deadline {
            return Err(Errno::TIMEDOUT);
        }
    }
    rustix::net::sockopt::socket_error(&socket)??;
    Ok(socket)
}

/// Whether one of the sockets is ready before the time is over.
fn wait_for(sockets: &[(&OwnedFd, PollFlags)], limit: Duration) -> Result<bool, Errno> {
    let limit =
        Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: limit.subsec_nanos().into() };
    let mut polled: Vec<_> =
        sockets.iter().map(|(socket, flags)| rustix::event::PollFd::from_borrowed_fd(socket.as_fd(), *flags)).collect();
    match poll(&mut polled, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Passes packets on in both directions until the program closes its end or nothing comes for long.
fn relay_datagrams(inside: &OwnedFd, outside: &OwnedFd) {
    let mut buffer = vec![0; LONGEST_DATAGRAM];
    while let Ok(true) = wait_for(&[(inside, PollFlags::IN), (outside, PollFlags::IN)], IDLE_LIMIT) {
        match rustix::net::recv(inside, &mut buffer[..], RecvFlags::empty()) {
            // The program has closed its end.
            Ok((0, _)) => return,
            Ok((length, _)) => {
                // What cannot be sent is lost, as datagrams are.
                let _ = rustix::net::send(outside, buffer.get(..length).unwrap_or_default(), SendFlags::NOSIGNAL);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return,
        }
        if let Ok((length, _)) = rustix::net::recv(outside, &mut buffer[..], RecvFlags::empty())
            && length > 0
        {
            let _ = rustix::net::send(inside, buffer.get(..length).unwrap_or_default(), SendFlags::NOSIGNAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixDatagram;
    use std::sync::Mutex;

    use callgate_model::fence::Network;

    use super::super::hosts::HostList;
    use super::*;

    fn connector(network: &Network) -> Connector {
        let hosts = Arc::new(HostList::new(network).unwrap());
        let lookup = |name: &str| -> io::Result<Vec<IpAddr>> {
            Ok(match name {
                "db.internal" => vec![Ipv4Addr::LOCALHOST.into()],
                "shared.example" | "other.example" => vec!["10.0.0.1".parse().unwrap()],
                _ => Vec::new(),
            })
        };
        Connector::new(Arc::new(Resolver::with_lookup(hosts, Arc::new(|_| {}), Arc::new(lookup))))
    }

    fn listed(entries: &[String]) -> Connector {
        connector(&Network::Hosts(entries.to_vec()))
    }

    fn name(text: &str) -> HostName {
        match Host::new(text).unwrap() {
            Host::Name(name) => name,
            Host::Address(address) => panic!("{address}"),
        }
    }

    fn outcome(connector: &Connector, kind: SocketKind, address: &str) -> (i32, Option<String>) {
        let error = connector.connect(kind, address.parse().unwrap()).unwrap_err();
        (error.errno, error.held_back.map(|held| held.target))
    }

    const EACCES: i32 = 13;
    const ECONNREFUSED: i32 = 111;
    const ETIMEDOUT: i32 = 110;

    #[test]
    fn what_is_listed_is_connected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connector = listed(&[format!("127.0.0.1:{port}")]);
        for address in [format!("127.0.0.1:{port}"), format!("0.0.0.0:{port}"), format!("[::ffff:127.0.0.1]:{port}")] {
            let address: SocketAddr = address.parse().unwrap();
            let socket = connector.connect(SocketKind::Stream, address).unwrap();
            let mut stream = TcpStream::from(socket);
            let (mut server, _) = listener.accept().unwrap();
            assert_eq!(stream.peer_addr().unwrap().is_ipv6(), address.is_ipv6());
            stream.write_all(b"ping").unwrap();
            drop(stream);
            let mut text = String::new();
            server.read_to_string(&mut text).unwrap();
            assert_eq!(text, "ping");
        }
    }

    #[test]
    fn sockets_are_closed_on_exec() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = listed(&[address.to_string()]).connect(SocketKind::Stream, address).unwrap();
        assert!(rustix::io::fcntl_getfd(&socket).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_program_cannot_listen_on_what_it_is_given() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = listed(&[address.to_string()]).connect(SocketKind::Stream, address).unwrap();
        assert_eq!(rustix::net::listen(&socket, 1), Err(Errno::INVAL));
        // Also after the host has broken off: unread bytes make it a reset.
        rustix::net::send(&socket, b"unread", SendFlags::NOSIGNAL).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.peek(&mut [0; 6]).unwrap();
        drop(server);
        let mut stream = TcpStream::from(socket);
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(rustix::net::listen(&stream, 1), Err(Errno::INVAL));
    }

    #[test]
    fn no_byte_reaches_what_is_not_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        for network in [Network::None, Network::All, Network::Hosts(vec!["a.example".into(), "0.0.0.0/0".into()])] {
            let connector = connector(&network);
            for host in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::127.0.0.1]", "127.9.9.9"]
            {
                let (errno, held) = outcome(&connector, SocketKind::Stream, &format!("{host}:{port}"));
                assert_eq!(errno, EACCES, "{host}");
                assert!(held.is_some(), "{host}");
            }
        }
        assert!(listener.accept().is_err());
        let none = connector(&Network::None);
        assert_eq!(outcome(&none, SocketKind::Stream, "9.9.9.9:443"), (EACCES, Some("9.9.9.9:443".into())));
        assert_eq!(outcome(&none, SocketKind::Stream, "0.0.0.0:80"), (EACCES, Some("127.0.0.1:80".into())));
    }

    #[test]
    fn an_address_counts_once_a_listed_name_led_to_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connector = listed(&[format!("db.internal:{}", address.port())]);
        assert_eq!(connector.connect(SocketKind::Stream, address).unwrap_err().errno, EACCES);
        connector.resolver.resolve(&name("db.internal")).unwrap();
        assert!(connector.connect(SocketKind::Stream, address).is_ok());
        let other = SocketAddr::new(address.ip(), 1);
        let error = connector.connect(SocketKind::Stream, other).unwrap_err();
        assert_eq!(error.held_back.unwrap().target, "db.internal:1", "the name tells more than the address");
    }

    #[test]
    fn ports_of_two_names_with_one_address_stay_apart() {
        let connector = listed(&["shared.example:443".into(), "other.example:22".into()]);
        connector.resolver.resolve(&name("shared.example")).unwrap();
        let judge = |port| connector.judge(SocketAddr::new("10.0.0.1".parse().unwrap(), port)).is_ok();
        assert!(judge(443) && !judge(22) && !judge(80));
    }

    #[test]
    fn errors_of_the_system_are_passed_on() {
        let closed = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let connector = listed(&["127.0.0.1".into()]);
        assert_eq!(outcome(&connector, SocketKind::Stream, &closed.to_string()), (ECONNREFUSED, None));
    }

    #[test]
    fn a_host_that_does_not_answer_costs_no_more_than_the_limit() {
        // Once the queue of a listener is full, further connections are not answered.
        let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = TcpListener::from(listener.try_clone().unwrap()).local_addr().unwrap();
        let mut connector = listed(&["127.0.0.1".into()]);
        connector.time_limit = Duration::from_millis(300);
        let mut held = Vec::new();
        let start = Instant::now();
        let error = loop {
            match connector.connect(SocketKind::Stream, address) {
                Ok(socket) => held.push(socket),
                Err(error) => break error,
            }
            assert!(held.len() < 10);
        };
        assert_eq!(error.errno, ETIMEDOUT);
        assert!(start.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn datagrams_go_where_they_are_listed_and_nowhere_else() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let address = server.local_addr().unwrap();
        let connector = listed(&[address.to_string()]);
        let client = UnixDatagram::from(connector.connect(SocketKind::Datagram, address).unwrap());
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut buffer = [0; 100];
        for text in ["one", "two"] {
            client.send(text.as_bytes()).unwrap();
            let (length, peer) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], text.as_bytes());
            server.send_to(b"answer", peer).unwrap();
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"answer");
        }
        // An address of its own is ignored by the relay: it cannot be steered.
        let elsewhere = UdpSocket::bind("127.0.0.1:0").unwrap();
        elsewhere.set_nonblocking(true).unwrap();
        let sent = rustix::net::sendto(&client, b"three", SendFlags::NOSIGNAL, &elsewhere.local_addr().unwrap());
        if sent.is_ok() {
            let (length, _) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"three");
        }
        assert!(elsewhere.recv_from(&mut buffer).is_err());
    }

    #[test]
    fn datagrams_need_an_entry_with_their_port() {
        let held = Mutex::new(Vec::new());
        let connector = listed(&["9.9.9.9".into(), "8.8.8.8:53".into()]);
        for address in ["9.9.9.9:443", "9.9.9.9:0", "8.8.8.8:443", "1.1.1.1:53", "127.0.0.1:53"] {
            let (errno, target) = outcome(&connector, SocketKind::Datagram, address);
            assert_eq!(errno, EACCES);
            held.lock().unwrap().extend(target);
        }
        assert_eq!(*held.lock().unwrap(), ["8.8.8.8:443", "1.1.1.1:53", "127.0.0.1:53"]);
        assert_eq!(outcome(&self::connector(&Network::All), SocketKind::Datagram, "9.9.9.9:443"), (EACCES, None));
    }

    #[test]
    fn relays_end_with_their_program() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let connector = listed(&[address.to_string()]);
        for _ in 0..3 {
            let held: Vec<_> = (0..MOST_RELAYS)
                .map(|_| {
                    let start = Instant::now();
                    loop {
                        match connector.connect(SocketKind::Datagram, address) {
                            Ok(socket) => return socket,
                            Err(error) => assert!(start.elapsed() < Duration::from_secs(5), "{error}"),
                        }
                        std::thread::sleep(Duration::from_millis(5));
                    }
                })
                .collect();
            assert!(connector.connect(SocketKind::Datagram, address).is_err());
            drop(held);
        }
    }
}
