//! A proxy for contained programs where the kernel gives no listener: HTTP CONNECT and SOCKS5.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::connect::{Connector, HostFailure};
use super::hosts::port_number;
use super::name::Host;
use super::stream::{Places, Stream, serve_connections};
use super::tunnel;

/// The longest head of an HTTP request.
const LONGEST_HEAD: usize = 8 * 1024;
/// How long a client may take for its request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// How long a tunnel may be silent.
const IDLE_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Connections at once.
const MOST_CONNECTIONS: usize = 256;

/// Passes on the connections of contained programs to the hosts that the list of their call names.
///
/// It speaks HTTP CONNECT and SOCKS5 without authentication on the same socket. Plain HTTP requests are refused: a proxy that
/// read them would have to understand them as the server does.
#[derive(Debug)]
pub struct Proxy {
    connector: Arc<Connector>,
    places: Places,
}

impl Proxy {
    /// A proxy that connects by `connector`.
    pub fn new(connector: Arc<Connector>) -> Self {
        Self { connector, places: Places::new(MOST_CONNECTIONS) }
    }

    /// Serves the connections to `listener`, a unix or TCP socket, until `stop` is readable or hung up. Open connections end
    /// then, too.
    pub fn serve(&self, listener: OwnedFd, stop: BorrowedFd<'_>) -> io::Result<()> {
        let connector = Arc::clone(&self.connector);
        let full = http_answer(503, "Service Unavailable", "too many connections at once");
        serve_connections(&listener, stop, &self.places, full.as_bytes(), REQUEST_LIMIT, move |stream| {
            // A client that breaks off is not an error.
            let _ = serve_client(&connector, stream);
        })
    }
}

fn serve_client(connector: &Connector, mut stream: Stream) -> io::Result<()> {
    let mut first = [0];
    stream.read_exact(&mut first)?;
    let (outside, early) = match first {
        [5] => (socks(connector, &mut stream)?, Vec::new()),
        // SOCKS4 has no names, and its clients take no other answer.
        [4] => {
            stream.write_all(&[0, 91, 0, 0, 0, 0, 0, 0])?;
            (None, Vec::new())
        }
        [byte] => http(connector, &mut stream, byte)?,
    };
    let Some(outside) = outside else {
        return drain(&mut stream);
    };
    rustix::io::ioctl_fionbio(&outside, true)?;
    let outside = stream.beside(outside);
    outside.write_all(&early)?;
    tunnel::run(stream.socket(), outside.socket(), stream.stop(), IDLE_LIMIT)
}

/// Reads on for a moment after a refusal: closing a socket with unread bytes would take the answer away from the client.
fn drain(stream: &mut Stream) -> io::Result<()> {
    let _ = rustix::net::shutdown(stream.socket(), rustix::net::Shutdown::Write);
    stream.extend(Duration::from_secs(1));
    let mut buffer = [0; 1024];
    for _ in 0..64 {
        if stream.read(&mut buffer)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The socket outside and what the client has sent for it already; `None` if the client was refused.
type Served = (Option<OwnedFd>, Vec<u8>);

/// An HTTP status, its name and an explanation.
struct HttpRefusal(u16, &'static str, String);

impl HttpRefusal {
    fn bad_request(text: &str) -> Self {
        Self(400, "Bad Request", text.to_owned())
    }
}

fn http(connector: &Connector, stream: &mut Stream, first: u8) -> io::Result<Served> {
    let refusal = match http_head(stream, first)? {
        Err(refusal) => refusal,
        Ok(HttpHead { head, early }) => match http_target(&head).and_then(|target| http_connect(connector, &target)) {
            Ok(outside) => {
                stream.extend(REQUEST_LIMIT);
                stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                return Ok((Some(outside), early));
            }
            Err(refusal) => refusal,
        },
    };
    let HttpRefusal(status, reason, text) = refusal;
    stream.extend(REQUEST_LIMIT);
    stream.write_all(http_answer(status, reason, &text).as_bytes())?;
    Ok((None, Vec::new()))
}

/// The head of a request, and what came behind it.
struct HttpHead {
    head: Vec<u8>,
    early: Vec<u8>,
}

/// Reads the head of a request.
fn http_head(stream: &Stream, first: u8) -> io::Result<Result<HttpHead, HttpRefusal>> {
    // Nothing else begins a request, so that garbage is answered at its first byte.
    if !first.is_ascii_uppercase() {
        return Ok(Err(HttpRefusal::bad_request("this is a proxy for HTTP CONNECT and SOCKS5")));
    }
    let mut head = vec![first];
    let mut seen = 0_usize;
    loop {
        // The end may lie across two reads.
        let fresh = head.get(seen.saturating_sub(3)..).unwrap_or_default();
        if let Some(end) = fresh.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let early = head.split_off(end.saturating_add(seen.saturating_sub(3)).saturating_add(4));
            return Ok(Ok(HttpHead { head, early }));
        }
        seen = head.len();
        if seen >= LONGEST_HEAD {
            let text = "the request is too long".to_owned();
            return Ok(Err(HttpRefusal(431, "Request Header Fields Too Large", text)));
        }
        let mut buffer = [0; 1024];
        let room = LONGEST_HEAD.saturating_sub(seen).min(buffer.len());
        match stream.read(buffer.get_mut(..room).unwrap_or_default()) {
            Ok(0) => return Ok(Err(HttpRefusal::bad_request("the request is incomplete"))),
            Ok(read) => head.extend_from_slice(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Ok(Err(HttpRefusal(408, "Request Timeout", "the request took too long".to_owned())));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The host and port of a CONNECT request.
fn http_target(head: &[u8]) -> Result<(Host, u16), HttpRefusal> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).unwrap_or_default();
    let [method, target, "HTTP/1.0" | "HTTP/1.1"] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err(HttpRefusal::bad_request("the request is not HTTP/1.1"));
    };
    if method != "CONNECT" {
        let text = "callgate passes on tunnels only: use https, or CONNECT (curl: --proxytunnel), or SOCKS5";
        return Err(HttpRefusal(405, "Method Not Allowed", text.to_owned()));
    }
    let Some((host, port)) = target.rsplit_once(':').and_then(|(host, port)| Some((host, port_number(port)?))) else {
        return Err(HttpRefusal::bad_request("CONNECT needs host:port"));
    };
    // Without brackets the last part of an IPv6 address would be taken for the port.
    let plain = !host.contains(':') || host.starts_with('[');
    let host = Host::new(host).ok().filter(|_| plain);
    Ok((host.ok_or_else(|| HttpRefusal::bad_request("this is not a host name or an address"))?, port))
}

fn http_connect(connector: &Connector, (host, port): &(Host, u16)) -> Result<OwnedFd, HttpRefusal> {
    connector.connect_host(host, *port).map_err(|failure| match failure {
        HostFailure::HeldBack(target) => {
            connector.report(&target);
            let text = format!("callgate held back the connection to {target}: it is not on this call's list of hosts");
            HttpRefusal(403, "Forbidden", text)
        }
        HostFailure::NotFound => HttpRefusal(502, "Bad Gateway", "the host is not known".to_owned()),
        HostFailure::Failed(errno) if errno == Errno::TIMEDOUT.raw_os_error() => {
            HttpRefusal(504, "Gateway Timeout", "the host does not answer".to_owned())
        }
        HostFailure::Failed(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            HttpRefusal(502, "Bad Gateway", format!("the host cannot be reached: {error}"))
        }
    })
}

fn http_answer(status: u16, reason: &str, text: &str) -> String {
    let allow = if status == 405 { "Allow: CONNECT\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status} {reason}\r\n{allow}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}\n",
        text.len().saturating_add(1)
    )
}

/// The outcomes that SOCKS5 knows.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Done = 0,
    Failed = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    Refused = 5,
    UnknownCommand = 7,
    UnknownAddress = 8,
}

fn socks(connector: &Connector, stream: &mut Stream) -> io::Result<Option<OwnedFd>> {
    let mut count = [0];
    stream.read_exact(&mut count)?;
    let mut methods = vec![0; usize::from(count[0])];
    stream.read_exact(&mut methods)?;
    if !methods.contains(&0) {
        stream.write_all(&[5, 0xff])?;
        return Ok(None);
    }
    stream.write_all(&[5, 0])?;
    let mut request = [0; 4];
    stream.read_exact(&mut request)?;
    let [version, command, _, kind] = request;
    let reply = |stream: &mut Stream, reply: Reply| {
        stream.extend(REQUEST_LIMIT);
        stream.write_all(&[5, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0])
    };
    if version != 5 {
        reply(stream, Reply::Failed)?;
        return Ok(None);
    }
    let host = match kind {
        1 => {
            let mut address = [0; 4];
            stream.read_exact(&mut address)?;
            Some(Host::Address(IpAddr::V4(Ipv4Addr::from(address))))
        }
        4 => {
            let mut address = [0; 16];
            stream.read_exact(&mut address)?;
            Some(Host::Address(IpAddr::V6(Ipv6Addr::from(address))))
        }
        3 => {
            let mut length = [0];
            stream.read_exact(&mut length)?;
            let mut name = vec![0; usize::from(length[0])];
            stream.read_exact(&mut name)?;
            std::str::from_utf8(&name).ok().and_then(|name| Host::new(name).ok())
        }
        _ => {
            reply(stream, Reply::UnknownAddress)?;
            return Ok(None);
        }
    };
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    let outcome = match host {
        _ if command != 1 => Err(Reply::UnknownCommand),
        None => Err(Reply::NotAllowed),
        Some(host) => connector.connect_host(&host, u16::from_be_bytes(port)).map_err(|failure| match failure {
            HostFailure::HeldBack(target) => {
                connector.report(&target);
                Reply::NotAllowed
            }
            HostFailure::NotFound => Reply::HostUnreachable,
            HostFailure::Failed(errno) => match Errno::from_raw_os_error(errno) {
                Errno::CONNREFUSED => Reply::Refused,
                Errno::NETUNREACH => Reply::NetworkUnreachable,
                Errno::HOSTUNREACH | Errno::TIMEDOUT => Reply::HostUnreachable,
                _ => Reply::Failed,
            },
        }),
    };
    reply(stream, outcome.as_ref().map_or_else(|reply| *reply, |_| Reply::Done))?;
    Ok(outcome.ok())
}

#[cfg(test)]
mod tests;
