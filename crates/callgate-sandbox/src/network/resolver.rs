//! Resolves the names that a contained call may reach, and answers its DNS queries.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use callgate_model::fence::HeldBack;
use rustix::event::PollFlags;

use super::hosts::{Answer, HostList};
use super::message::{Code, LONGEST_QUERY, Query, RecordKind, Unread};
use super::name::HostName;
use super::pins::Pins;
use super::stream::{Places, STACK, Stream, serve_connections, wait};

/// Takes note of what was held back. It is called once for each target.
pub type Report = Arc<dyn Fn(HeldBack) + Send + Sync>;

/// Looks up the addresses of a name.
type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// The longest that a client waits for one name. The look-up itself cannot be ended and goes on.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Look-ups at once.
const MOST_LOOKUPS: usize = 16;
/// Queries over UDP that wait for a look-up.
const MOST_WAITING: usize = 64;
/// Connections for queries over TCP.
const MOST_CONNECTIONS: usize = 16;
/// How long one of them may be silent.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// How long an outcome is used again.
const FRESH_FOUND: Duration = Duration::from_secs(30);
const FRESH_NOT_FOUND: Duration = Duration::from_secs(3);
/// Outcomes that are kept.
const MOST_OUTCOMES: usize = 1024;
/// Targets that are reported, so that a call that asks for a million names cannot fill the log.
const MOST_REPORTED: usize = 256;

/// Resolves the names on a [`HostList`] and pins their addresses. Names that are not listed leave the machine in no query.
pub struct Resolver {
    hosts: Arc<HostList>,
    pins: Pins,
    outcomes: Arc<Outcomes>,
    lookup: Arc<Lookup>,
    lookups: Places,
    waiting: Places,
    connections: Places,
    reported: Mutex<HashSet<String>>,
    report: Report,
    time_limit: Duration,
}

/// Why a name has no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResolveError {
    /// It is not listed, or leads only where it may not.
    HeldBack,
    /// There is no such name.
    NotFound,
    /// It could not be found out, or not in time.
    Failed,
}

/// What look-ups found, and which of them go on.
#[derive(Default)]
struct Outcomes {
    known: Mutex<HashMap<HostName, Outcome>>,
    changed: Condvar,
}

enum Outcome {
    Running,
    Found { addresses: Vec<IpAddr>, since: Instant },
    Failed { error: ResolveError, since: Instant },
}

impl Resolver {
    /// A resolver that asks the system, which heeds its hosts file and its own settings.
    ///
    /// The C library also heeds `LOCALDOMAIN`, `RES_OPTIONS` and `HOSTALIASES`, with which a listed name can be made to mean
    /// another one. The process must be started without them if somebody else than the user can set them.
    pub fn new(hosts: Arc<HostList>, report: Report) -> Self {
        Self::with_lookup(hosts, report, Arc::new(system_lookup))
    }

    pub(super) fn with_lookup(hosts: Arc<HostList>, report: Report, lookup: Arc<Lookup>) -> Self {
        Self {
            hosts,
            pins: Pins::default(),
            outcomes: Arc::default(),
            lookup,
            lookups: Places::new(MOST_LOOKUPS),
            waiting: Places::new(MOST_WAITING),
            connections: Places::new(MOST_CONNECTIONS),
            reported: Mutex::default(),
            report,
            time_limit: TIME_LIMIT,
        }
    }

    /// The list that decides.
    pub(super) fn hosts(&self) -> &HostList {
        &self.hosts
    }

    /// The listed names that led to `address`.
    pub(super) fn names(&self, address: IpAddr) -> Vec<HostName> {
        self.pins.names(address, Instant::now())
    }

    /// Reports that `target` was held back, unless it was already.
    pub(super) fn held_back(&self, target: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < MOST_REPORTED && reported.insert(target.to_owned()) {
            drop(reported);
            (self.report)(held_back(target));
        }
    }

    /// The addresses to which `name` may lead; they are pinned from now on.
    pub(super) fn resolve(&self, name: &HostName) -> Result<Vec<IpAddr>, ResolveError> {
        if name.is_localhost() {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        if !self.hosts.resolves(name) {
            self.held_back(name.as_str());
            return Err(ResolveError::HeldBack);
        }
        let found = self.look_up(name)?;
        self.judged(name, &found)
    }

    fn judged(&self, name: &HostName, found: &[IpAddr]) -> Result<Vec<IpAddr>, ResolveError> {
        let mut allowed = Vec::new();
        for address in found {
            match self.hosts.allows_resolved(name, *address, None) {
                Answer::Allowed => allowed.push(*address),
                // The address is what would have to be listed.
                Answer::NotListed | Answer::NotPublic(_) => self.held_back(&address.to_string()),
            }
        }
        if allowed.is_empty() {
            return Err(if found.is_empty() { ResolveError::NotFound } else { ResolveError::HeldBack });
        }
        self.pins.pin(name, &allowed, Instant::now());
        Ok(allowed)
    }

    /// Looks up `name`, together with everybody else who waits for the same name.
    fn look_up(&self, name: &HostName) -> Result<Vec<IpAddr>, ResolveError> {
        let deadline = Instant::now() + self.time_limit;
        let mut known = self.outcomes.lock();
        loop {
            if let Some(outcome) = known.get(name).and_then(Outcome::fresh) {
                return outcome;
            }
            if !matches!(known.get(name), Some(Outcome::Running)) {
                self.start(name, &mut known)?;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ResolveError::Failed);
            }
            known = self.outcomes.changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start(&self, name: &HostName, known: &mut HashMap<HostName, Outcome>) -> Result<(), ResolveError> {
        let place = self.lookups.take().ok_or(ResolveError::Failed)?;
        if known.len() >= MOST_OUTCOMES {
            known.retain(|_, outcome| matches!(outcome, Outcome::Running));
        }
        let (outcomes, lookup, asked) = (Arc::clone(&self.outcomes), Arc::clone(&self.lookup), name.clone());
        // getaddrinfo of some C libraries needs more room than a connection.
        let thread = std::thread::Builder::new().stack_size(4 * STACK).spawn(move || {
            let outcome = match lookup(asked.as_str()) {
                Ok(addresses) => Outcome::Found { addresses, since: Instant::now() },
                Err(error) => Outcome::Failed { error: failure(&error), since: Instant::now() },
            };
            outcomes.lock().insert(asked, outcome);
            outcomes.changed.notify_all();
            drop(place);
        });
        thread.map_err(|_| ResolveError::Failed)?;
        known.insert(name.clone(), Outcome::Running);
        Ok(())
    }

    /// The answer to a DNS message, or `None` if nobody waits for one. Waits for a look-up where it needs one.
    pub fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.answer_at_once(message).unwrap_or_else(|query| Some(self.resolved(&query)))
    }

    /// The same, but `Err` is a query that needs a look-up first.
    fn answer_at_once(&self, message: &[u8]) -> Result<Option<Vec<u8>>, Query> {
        let query = match Query::read(message) {
            Ok(query) => query,
            Err(Unread::Silent) => return Ok(None),
            Err(Unread::Answer(answer)) => return Ok(Some(answer)),
        };
        if query.kind == RecordKind::Pointer && is_own_pointer(&query.shown) {
            return Ok(Some(query.answer(Code::NotFound, &[])));
        }
        let Some(name) = query.host.as_ref().filter(|_| query.is_internet()) else {
            self.held_back(&query.shown);
            return Ok(Some(refused(&query)));
        };
        let listed = name.is_localhost() || self.hosts.resolves(name);
        let fresh = || self.outcomes.lock().get(name).is_some_and(|outcome| outcome.fresh().is_some());
        if !listed || name.is_localhost() || fresh() {
            return Ok(Some(self.resolved(&query)));
        }
        match query.kind {
            RecordKind::A | RecordKind::Aaaa => Err(query),
            // Nothing else is passed on: what these records say could not be held to.
            RecordKind::Pointer | RecordKind::Other => Ok(Some(query.answer(Code::Done, &[]))),
        }
    }

    fn resolved(&self, query: &Query) -> Vec<u8> {
        match query.host.as_ref().map(|name| self.resolve(name)) {
            Some(Ok(addresses)) => query.answer(Code::Done, &addresses),
            Some(Err(ResolveError::NotFound)) => query.answer(Code::NotFound, &[]),
            Some(Err(ResolveError::Failed)) => query.answer(Code::Failed, &[]),
            Some(Err(ResolveError::HeldBack)) | None => refused(query),
        }
    }

    /// Answers the queries that arrive at `socket`, until `stop` is readable or hung up.
    pub fn serve_udp(self: &Arc<Self>, socket: OwnedFd, stop: BorrowedFd<'_>) -> io::Result<()> {
        let socket = Arc::new(UdpSocket::from(socket));
        socket.set_nonblocking(true)?;
        let mut buffer = [0; LONGEST_QUERY + 1];
        loop {
            match wait([(socket.as_fd(), Some(PollFlags::IN))], stop, None) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => return Ok(()),
                Err(error) => return Err(error),
            }
            // A client that is gone already shows as an error of the next call here.
            let Ok((length, client)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            match self.answer_at_once(buffer.get(..length).unwrap_or_default()) {
                Ok(None) => {}
                Ok(Some(answer)) => drop(socket.send_to(&answer, client)),
                Err(query) => self.answer_later(&socket, client, query),
            }
        }
    }

    fn answer_later(self: &Arc<Self>, socket: &Arc<UdpSocket>, client: SocketAddr, query: Query) {
        let failed = query.answer(Code::Failed, &[]);
        let started = self.waiting.take().map(|place| {
            let (resolver, socket) = (Arc::clone(self), Arc::clone(socket));
            std::thread::Builder::new().stack_size(STACK).spawn(move || {
                let _ = socket.send_to(&resolver.resolved(&query), client);
                drop(place);
            })
        });
        if !matches!(started, Some(Ok(_))) {
            let _ = socket.send_to(&failed, client);
        }
    }

    /// Answers the queries of connections to `listener`, until `stop` is readable or hung up.
    pub fn serve_tcp(self: &Arc<Self>, listener: OwnedFd, stop: BorrowedFd<'_>) -> io::Result<()> {
        let resolver = Arc::clone(self);
        serve_connections(&listener, stop, &self.connections, b"", IDLE_LIMIT, move |stream| {
            // A client that breaks off is not an error.
            let _ = resolver.serve_stream(stream);
        })
    }

    fn serve_stream(&self, mut stream: Stream) -> io::Result<()> {
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let length = usize::from(u16::from_be_bytes(length));
            if length > LONGEST_QUERY {
                return Ok(());
            }
            let mut message = vec![0; length];
            stream.read_exact(&mut message)?;
            let Some(answer) = self.answer(&message) else {
                return Ok(());
            };
            stream.extend(IDLE_LIMIT);
            stream.write_all(&u16::try_from(answer.len()).unwrap_or_default().to_be_bytes())?;
            stream.write_all(&answer)?;
        }
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Resolver").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, HashMap<HostName, Outcome>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outcome {
    /// The outcome, if it is there and can still be used.
    fn fresh(&self) -> Option<Result<Vec<IpAddr>, ResolveError>> {
        match self {
            Self::Running => None,
            Self::Found { addresses, since } => (since.elapsed() < FRESH_FOUND).then(|| Ok(addresses.clone())),
            Self::Failed { error, since } => (since.elapsed() < FRESH_NOT_FOUND).then_some(Err(*error)),
        }
    }
}

/// The answer for a name that is held back. musl's resolver takes every code but "not found" for a lost packet and waits for
/// five seconds, and glibc's calls "refused" a temporary failure, which makes programs try again.
fn refused(query: &Query) -> Vec<u8> {
    match query.kind {
        RecordKind::A | RecordKind::Aaaa => query.answer(Code::NotFound, &[]),
        RecordKind::Pointer | RecordKind::Other => query.answer(Code::Refused, &[]),
    }
}

/// What a contained call wanted of the network and did not get.
pub(super) fn held_back(target: &str) -> HeldBack {
    HeldBack { action: "connect".to_owned(), target: target.to_owned(), by: "network".to_owned() }
}

/// Whether `name` asks for the name of this machine's loopback address, as servers do for their log.
fn is_own_pointer(name: &str) -> bool {
    if let Some(front) = name.strip_suffix(".127.in-addr.arpa") {
        return front.split('.').count() == 3 && front.split('.').all(|part| part.parse::<u8>().is_ok());
    }
    name.strip_suffix("ip6.arpa").is_some_and(|front| front.strip_prefix("1.") == Some("0.".repeat(31).as_str()))
}

/// Asks the system. Addresses that this machine has no route to are left out: contained programs cannot find that out.
fn system_lookup(name: &str) -> io::Result<Vec<IpAddr>> {
    let addresses: Vec<IpAddr> = (name, 0).to_socket_addrs()?.map(|address| address.ip()).collect();
    let mut seen = HashSet::new();
    Ok(addresses.into_iter().filter(|address| seen.insert(*address) && has_route(*address)).collect())
}

/// Whether this machine knows a way to `address`. Connecting a datagram socket sends nothing.
fn has_route(address: IpAddr) -> bool {
    let own: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    UdpSocket::bind(own).and_then(|socket| socket.connect((address, 53))).is_ok()
}

/// The standard library tells a name that does not exist from a resolver that does not answer only in words.
fn failure(error: &io::Error) -> ResolveError {
    let words = error.to_string();
    let temporary = ["Temporary failure", "Try again", "System error"].iter().any(|part| words.contains(part));
    if temporary { ResolveError::Failed } else { ResolveError::NotFound }
}

#[cfg(test)]
mod tests;
