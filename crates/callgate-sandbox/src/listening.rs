//! Which ports are listened on, and whose a connection is: the kernel's tables of the network namespace of this process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a socket that listens.
const LISTENS: &str = "0A";

/// One line of a table.
struct Row {
    local: SocketAddr,
    remote: SocketAddr,
    listens: bool,
    user: u32,
}

/// The addresses on which TCP sockets listen here.
pub fn listening() -> Vec<SocketAddr> {
    rows(|row| row.listens).into_iter().map(|row| row.local).collect()
}

/// The user whose socket is connected from `from` to `to`, if there is one.
pub fn user_of(from: SocketAddr, to: SocketAddr) -> Option<u32> {
    rows(|row| !row.listens && row.local == from && row.remote == to).first().map(|row| row.user)
}

fn rows(wanted: impl Fn(&Row) -> bool) -> Vec<Row> {
    let mut found = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // a kernel without one of the families has no table of it
        let text = std::fs::read_to_string(table).unwrap_or_default();
        found.extend(text.lines().skip(1).filter_map(row).filter(&wanted));
    }
    found
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let listens = fields.next()? == LISTENS;
    Some(Row { local, remote, listens, user: fields.nth(3)?.parse().ok()? })
}

/// `0100007F:1435` is `127.0.0.1:5173`: words of the machine's byte order in hexadecimal digits.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |place: usize| {
        let digits = ip.get(place..place.checked_add(8)?)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let bytes: Vec<u8> = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn own_sockets_are_found() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place) else { continue };
            let address = listener.local_addr().unwrap();
            assert!(listening().contains(&address));
            let client = TcpStream::connect(address).unwrap();
            let user = user_of(client.local_addr().unwrap(), address);
            assert_eq!(user, Some(rustix::process::getuid().as_raw()));
            assert_eq!(user_of(address, SocketAddr::from(([127, 0, 0, 1], 1))), None);
        }
    }

    #[test]
    fn lines_that_are_none_are_left_out() {
        for text in ["", "0100007F", "0100007F:xyz", "01:02", "zzzzzzzz:1435"] {
            assert_eq!(address(text), None);
        }
        assert_eq!(address("00000000000000000000000001000000:1435"), Some("[::1]:5173".parse().unwrap()));
    }
}
