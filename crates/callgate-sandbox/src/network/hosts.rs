//! The list of hosts that a contained call may reach.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use callgate_model::fence::Network;

use super::address::{self, AddressKind, Range};
use super::name::{Host, HostName, NameError};

/// The hosts that a contained call may reach.
///
/// ```
/// use callgate_model::fence::Network;
/// use callgate_sandbox::network::{Answer, HostList};
///
/// let list = HostList::new(&Network::Hosts(vec!["*.example.com:443".into(), "10.0.0.0/8".into()]))?;
/// assert!(list.allows_name("API.example.com.", 443));
/// assert!(!list.allows_name("example.com", 443));
/// assert_eq!(list.allows_address("10.1.2.3:5432".parse()?), Answer::Allowed);
/// assert_eq!(list.allows_address("93.184.216.34:443".parse()?), Answer::NotListed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct HostList {
    all: bool,
    names: HashMap<HostName, Ports>,
    below: HashMap<HostName, Ports>,
    ranges: Vec<(Range, Option<u16>)>,
}

/// The ports of a host.
#[derive(Debug, Clone, Default)]
struct Ports {
    every: bool,
    some: HashSet<u16>,
}

/// Whether an address may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It may.
    Allowed,
    /// It is not listed.
    NotListed,
    /// It is not listed, and as an address that is not public it has to be listed itself.
    NotPublic(AddressKind),
}

/// Why an entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// It is a URL.
    #[error("invalid host `{0}`: expected a host, found a URL; write only its host")]
    Url(String),
    /// It has a user name.
    #[error("invalid host `{0}`: a host cannot have a user name; write only what follows the `@`")]
    User(String),
    /// It is a named set.
    #[error("invalid host `{0}`: unknown set; the only set of hosts is `@registries`")]
    Set(String),
    /// A wildcard is somewhere else than in front.
    #[error(
        "invalid host `{0}`: a wildcard can only be the first label, as in `*.example.com`; for every public host use `network: all`"
    )]
    Wildcard(String),
    /// The port is not a number from 1 to 65535.
    #[error("invalid host `{0}`: the port must be a number from 1 to 65535")]
    Port(String),
    /// The number of bits does not fit the address.
    #[error("invalid address range `{0}`: expected an address and its number of bits, as in `10.0.0.0/8`")]
    Range(String),
    /// It is not a host name.
    #[error("invalid host `{host}`: {why}")]
    Name {
        /// The entry.
        host: String,
        /// What is wrong with it.
        why: String,
    },
}

impl HostList {
    /// Reads the entries of `network`: names, `*.name`, addresses and ranges, each with an optional `:port`.
    pub fn new(network: &Network) -> Result<Self, HostError> {
        let mut list = Self { all: *network == Network::All, ..Self::default() };
        if let Network::Hosts(entries) = network {
            for entry in entries {
                list.add(entry)?;
            }
        }
        Ok(list)
    }

    fn add(&mut self, entry: &str) -> Result<(), HostError> {
        let shown = || shown(entry);
        if entry.contains("://") {
            return Err(HostError::Url(shown()));
        }
        if entry.contains('@') {
            return Err(if entry.starts_with('@') { HostError::Set(shown()) } else { HostError::User(shown()) });
        }
        let (host, port) = split_port(entry).ok_or_else(|| HostError::Port(shown()))?;
        let name = |why: NameError| HostError::Name { host: shown(), why: why.to_string() };
        if let Some((start, bits)) = host.split_once('/') {
            let range = || {
                let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
                let start: IpAddr = start.parse().ok()?;
                Range::new(start, bits.parse().ok().filter(|_| digits)?)
            };
            self.ranges.push((range().ok_or_else(|| HostError::Range(shown()))?, port));
            return Ok(());
        }
        let (host, below) = match host.strip_prefix("*.") {
            Some(domain) => (domain, true),
            None => (host, false),
        };
        if host.contains('*') {
            return Err(HostError::Wildcard(shown()));
        }
        match Host::new(host).map_err(name)? {
            Host::Address(_) if below => return Err(HostError::Wildcard(shown())),
            Host::Address(address) => self.ranges.push((Range::single(target(address)), port)),
            Host::Name(domain) if below => self.below.entry(domain).or_default().add(port),
            Host::Name(name) => {
                if name.is_localhost() {
                    // These names are never asked of a resolver, so their addresses stand for them.
                    self.ranges.push((Range::single(Ipv4Addr::LOCALHOST.into()), port));
                    self.ranges.push((Range::single(Ipv6Addr::LOCALHOST.into()), port));
                }
                self.names.entry(name).or_default().add(port);
            }
        }
        Ok(())
    }

    /// Whether nothing outside can be reached.
    pub fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty() && self.below.is_empty() && self.ranges.is_empty()
    }

    /// Whether `name` may be reached on `port`, as far as its name tells. An address is judged as an address.
    pub fn allows_name(&self, name: &str, port: u16) -> bool {
        match Host::new(name) {
            Ok(Host::Name(name)) => self.listed(&name, Some(port)).is_some(),
            Ok(Host::Address(address)) => self.allows_address(SocketAddr::new(address, port)) == Answer::Allowed,
            Err(_) => false,
        }
    }

    /// Whether `address` may be reached by itself, without a name that leads to it.
    pub fn allows_address(&self, address: SocketAddr) -> Answer {
        self.judge(address.ip(), |wanted| wanted.is_none_or(|wanted| wanted == address.port()))
    }

    /// Whether the entry that lists `address` names its port too, as datagrams need it.
    pub(super) fn allows_datagrams(&self, address: SocketAddr) -> bool {
        self.is_listed(target(address.ip()), |wanted| wanted == Some(address.port()))
    }

    fn judge(&self, address: IpAddr, fits: impl Fn(Option<u16>) -> bool) -> Answer {
        let address = target(address);
        match address::kind(address).0 {
            _ if self.is_listed(address, fits) => Answer::Allowed,
            AddressKind::Public if self.all => Answer::Allowed,
            AddressKind::Public => Answer::NotListed,
            kind => Answer::NotPublic(kind),
        }
    }

    fn is_listed(&self, address: IpAddr, fits: impl Fn(Option<u16>) -> bool) -> bool {
        let (kind, block) = address::kind(address);
        self.ranges.iter().any(|(range, port)| {
            fits(*port)
                && range.contains(address)
                // A range that is wider than what makes the address special was meant for the public ones in it.
                && (kind == AddressKind::Public || range.is_within(block))
        })
    }

    /// Whether `name` is listed with any port, so that it may be resolved.
    pub(super) fn resolves(&self, name: &HostName) -> bool {
        self.listed(name, None).is_some()
    }

    /// Whether `address` may be reached because `name` resolved to it. `port`: `None` is any port.
    pub(super) fn allows_resolved(&self, name: &HostName, address: IpAddr, port: Option<u16>) -> Answer {
        let fits = |wanted: Option<u16>| wanted.is_none() || port.is_none() || wanted == port;
        if self.judge(address, fits) == Answer::Allowed {
            return Answer::Allowed;
        }
        let Some(listed) = self.listed(name, port) else {
            return Answer::NotListed;
        };
        match address::kind(address).0 {
            AddressKind::Public => Answer::Allowed,
            AddressKind::Private | AddressKind::Reserved if listed == Listed::Exactly => Answer::Allowed,
            // The owner of a public name could point it at this machine or at its credentials.
            AddressKind::Loopback | AddressKind::LinkLocal | AddressKind::Metadata
                if listed == Listed::Exactly && name.is_local() =>
            {
                Answer::Allowed
            }
            kind => Answer::NotPublic(kind),
        }
    }

    fn listed(&self, name: &HostName, port: Option<u16>) -> Option<Listed> {
        if self.names.get(name).is_some_and(|ports| ports.contain(port)) {
            return Some(Listed::Exactly);
        }
        let mut rest = name.as_str();
        while let Some((_, domain)) = rest.split_once('.') {
            if self.below.get(domain).is_some_and(|ports| ports.contain(port)) {
                return Some(Listed::Otherwise);
            }
            rest = domain;
        }
        (self.all && !name.is_localhost()).then_some(Listed::Otherwise)
    }
}

/// How a name is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Exactly,
    Otherwise,
}

impl Ports {
    fn add(&mut self, port: Option<u16>) {
        match port {
            Some(port) => {
                self.some.insert(port);
            }
            None => self.every = true,
        }
    }

    fn contain(&self, port: Option<u16>) -> bool {
        self.every || port.is_none_or(|port| self.some.contains(&port))
    }
}

/// Where a connection to `address` really goes: Linux takes the unspecified address for this machine.
pub(super) fn target(address: IpAddr) -> IpAddr {
    match address::plain(address) {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Splits `host:port`, `[address]:port` and `[range]:port`. The host has no brackets afterwards.
fn split_port(entry: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = entry.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port_number(port)?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match entry.split_once(':') {
        // More than one colon without brackets is an IPv6 address.
        Some((host, port)) if !port.contains(':') => Some((host, Some(port_number(port)?))),
        _ => Some((entry, None)),
    }
}

/// Reads a port: digits only, from 1 to 65535.
pub(super) fn port_number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

/// An entry as it is shown in an error: one line, bounded, without a password.
fn shown(entry: &str) -> String {
    let (front, rest) = entry.split_once("://").unwrap_or(("", entry));
    let rest = match rest.rsplit_once('@') {
        Some((user, host)) if !user.is_empty() => format!("…@{host}"),
        _ => rest.to_owned(),
    };
    let whole = if front.is_empty() { rest } else { format!("{front}://{rest}") };
    whole.chars().take(100).map(|char| if char.is_control() { '�' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(entries: &[&str]) -> HostList {
        HostList::new(&Network::Hosts(entries.iter().map(|entry| (*entry).to_owned()).collect())).unwrap()
    }

    fn name(text: &str) -> HostName {
        match Host::new(text).unwrap() {
            Host::Name(name) => name,
            Host::Address(address) => panic!("{address} is not a name"),
        }
    }

    fn address(list: &HostList, address: &str) -> Answer {
        list.allows_address(address.parse().unwrap())
    }

    #[test]
    fn an_empty_list_reaches_nobody() {
        for network in [Network::None, Network::Hosts(Vec::new())] {
            let list = HostList::new(&network).unwrap();
            assert!(list.is_empty());
            assert!(!list.allows_name("example.com", 443));
            assert_eq!(address(&list, "93.184.216.34:443"), Answer::NotListed);
            assert_eq!(address(&list, "127.0.0.1:80"), Answer::NotPublic(AddressKind::Loopback));
        }
    }

    #[test]
    fn names_and_ports() {
        let list =
            list(&["Example.com.", "*.pkg.example", "git.example:22", "git.example:443", "*.ports.example:8443"]);
        for (name, port, expected) in [
            ("example.com", 1, true),
            ("EXAMPLE.com.", 443, true),
            ("a.example.com", 443, false),
            ("evilexample.com", 443, false),
            ("example.com.evil", 443, false),
            ("example.com\0.evil", 443, false),
            ("a.pkg.example", 443, true),
            ("a.b.pkg.example", 443, true),
            ("pkg.example", 443, false),
            ("evilpkg.example", 443, false),
            ("git.example", 22, true),
            ("git.example", 443, true),
            ("git.example", 80, false),
            ("a.ports.example", 8443, true),
            ("a.ports.example", 443, false),
        ] {
            assert_eq!(list.allows_name(name, port), expected, "{name}:{port}");
        }
        assert!(list.resolves(&name("git.example")));
        assert!(!list.resolves(&name("ports.example")));
    }

    #[test]
    fn addresses_and_ranges() {
        let list = list(&["0x7f.1:5432", "10.2.0.0/16", "[fd00::/8]:443", "[2606:4700::1111]:443", "9.9.9.9", "::1"]);
        for (text, expected) in [
            ("127.0.0.1:5432", Answer::Allowed),
            ("[::ffff:127.0.0.1]:5432", Answer::Allowed),
            ("0.0.0.0:5432", Answer::Allowed),
            ("127.0.0.1:5433", Answer::NotPublic(AddressKind::Loopback)),
            ("127.0.0.2:5432", Answer::NotPublic(AddressKind::Loopback)),
            ("10.2.3.4:1", Answer::Allowed),
            ("10.3.0.1:1", Answer::NotPublic(AddressKind::Private)),
            ("[fd12::1]:443", Answer::Allowed),
            ("[fd12::1]:80", Answer::NotPublic(AddressKind::Private)),
            ("[fd00:ec2::254]:443", Answer::NotPublic(AddressKind::Metadata)),
            ("[2606:4700::1111]:443", Answer::Allowed),
            ("9.9.9.9:53", Answer::Allowed),
            ("9.9.9.10:53", Answer::NotListed),
            ("[64:ff9b::909:909]:53", Answer::NotListed),
            ("[::]:80", Answer::Allowed),
        ] {
            assert_eq!(address(&list, text), expected, "{text}");
        }
        assert!(list.allows_datagrams("127.0.0.1:5432".parse().unwrap()));
        assert!(!list.allows_datagrams("9.9.9.9:53".parse().unwrap()));
    }

    #[test]
    fn a_wide_range_has_only_what_is_public_in_it() {
        let list = list(&["0.0.0.0/0", "::/0", "169.254.0.0/16"]);
        assert_eq!(address(&list, "9.9.9.9:53"), Answer::Allowed);
        assert_eq!(address(&list, "[2606:4700::1]:53"), Answer::Allowed);
        assert_eq!(address(&list, "169.254.1.1:80"), Answer::Allowed);
        for text in [
            "10.0.0.1:80",
            "127.0.0.1:80",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "[2002:7f00:1::]:1",
        ] {
            assert!(matches!(address(&list, text), Answer::NotPublic(_)), "{text}");
        }
    }

    #[test]
    fn a_name_leads_only_where_it_may() {
        let hosts = list(&["registry.example.com", "*.example.com", "db.internal", "127.0.0.9"]);
        for (host, ip, expected) in [
            ("registry.example.com", "9.9.9.9", Answer::Allowed),
            ("registry.example.com", "10.0.0.1", Answer::Allowed),
            ("registry.example.com", "127.0.0.1", Answer::NotPublic(AddressKind::Loopback)),
            ("registry.example.com", "0.0.0.0", Answer::NotPublic(AddressKind::Loopback)),
            ("registry.example.com", "::ffff:127.0.0.1", Answer::NotPublic(AddressKind::Loopback)),
            ("registry.example.com", "127.0.0.9", Answer::Allowed),
            ("registry.example.com", "169.254.169.254", Answer::NotPublic(AddressKind::Metadata)),
            ("registry.example.com", "64:ff9b::a9fe:a9fe", Answer::NotPublic(AddressKind::Metadata)),
            ("other.example.com", "10.0.0.1", Answer::NotPublic(AddressKind::Private)),
            ("other.example.com", "9.9.9.9", Answer::Allowed),
            ("db.internal", "10.0.0.1", Answer::Allowed),
            ("db.internal", "127.0.0.1", Answer::Allowed),
            ("db.internal", "224.0.0.1", Answer::NotPublic(AddressKind::Multicast)),
            ("elsewhere.example", "9.9.9.9", Answer::NotListed),
        ] {
            assert_eq!(hosts.allows_resolved(&name(host), ip.parse().unwrap(), Some(443)), expected, "{host} {ip}");
        }
        let all = HostList::new(&Network::All).unwrap();
        assert!(all.allows_name("a.example", 1) && !all.allows_name("localhost", 1) && !all.allows_name("127.1", 1));
        assert_eq!(all.allows_resolved(&name("a.example"), "9.9.9.9".parse().unwrap(), Some(1)), Answer::Allowed);
        assert_eq!(
            all.allows_resolved(&name("db"), "10.0.0.1".parse().unwrap(), Some(1)),
            Answer::NotPublic(AddressKind::Private)
        );
    }

    #[test]
    fn localhost_is_listed_with_its_addresses() {
        let list = list(&["localhost:5173"]);
        assert_eq!(address(&list, "127.0.0.1:5173"), Answer::Allowed);
        assert_eq!(address(&list, "[::1]:5173"), Answer::Allowed);
        assert_eq!(address(&list, "127.0.0.1:5174"), Answer::NotPublic(AddressKind::Loopback));
    }

    #[test]
    fn mistakes_are_named() {
        for (entry, expected) in [
            ("https://a.example/", "expected a host, found a URL"),
            ("user:secret@a.example", "cannot have a user name"),
            ("@hosts", "unknown set"),
            ("*", "a wildcard can only be the first label"),
            ("a*.example", "a wildcard can only be the first label"),
            ("*.*.example", "a wildcard can only be the first label"),
            ("*.10.0.0.1", "a wildcard can only be the first label"),
            ("a.example:0", "the port must be"),
            ("a.example:65536", "the port must be"),
            ("a.example:+80", "the port must be"),
            ("a.example:", "the port must be"),
            ("[::1]x", "the port must be"),
            ("10.0.0.0/33", "invalid address range"),
            ("10.0.0.0/+8", "invalid address range"),
            ("a.example/path", "invalid address range"),
            ("b\u{fc}cher.example", "xn--"),
            ("a\0b", "character"),
            ("", "empty"),
            ("1.2.3.4.5", "looks like a number"),
        ] {
            let error = HostList::new(&Network::Hosts(vec![entry.to_owned()])).unwrap_err().to_string();
            assert!(error.contains(expected), "{entry:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_entry_is_read_or_refused(entry in ".{0,40}", host in ".{0,40}", port: u16) {
            if let Ok(list) = HostList::new(&Network::Hosts(vec![entry])) {
                list.allows_name(&host, port);
            }
        }

        #[test]
        fn hostlike_entries_are_read_or_refused(entry in "[*0-9a-fx.:/\\[\\]@-]{0,30}", host in "[0-9a-fx.:]{0,20}", port: u16) {
            if let Ok(list) = HostList::new(&Network::Hosts(vec![entry])) {
                list.allows_name(&host, port);
            }
        }

        #[test]
        fn a_listed_name_allows_only_itself(wanted in "[a-z]{1,5}(\\.[a-z]{1,5}){1,3}", other in "[a-zA-Z.]{1,20}", port in 1_u16..) {
            let list = list(&[&wanted]);
            prop_assert!(list.allows_name(&wanted.to_uppercase(), port));
            let same = other.strip_suffix('.').unwrap_or(&other).eq_ignore_ascii_case(&wanted);
            prop_assert_eq!(list.allows_name(&other, port), same);
            let below = format!("x.{wanted}");
            let evil = format!("{wanted}.x");
            prop_assert!(!list.allows_name(&below, port) && !list.allows_name(&evil, port));
        }

        #[test]
        fn nothing_special_is_reached_unless_listed(bits: u128, narrow: u32, port: u16) {
            let all = HostList::new(&Network::All).unwrap();
            let wide = list(&["0.0.0.0/0", "::/0"]);
            for ip in [IpAddr::from(Ipv6Addr::from_bits(bits)), IpAddr::from(Ipv4Addr::from_bits(narrow))] {
                let public = address::kind(ip).0 == AddressKind::Public;
                for list in [&all, &wide] {
                    prop_assert_eq!(list.allows_address(SocketAddr::new(ip, port)) == Answer::Allowed, public);
                }
            }
        }

        #[test]
        fn an_address_has_one_meaning_in_all_spellings(bits: u32, port in 1_u16..) {
            let ip = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = ip.octets();
            let list = list(&[&ip.to_string()]);
            for spelling in [
                format!("{bits}"),
                format!("0x{bits:x}"),
                format!("0{bits:o}"),
                format!("{a}.{}", bits & 0x00ff_ffff),
                format!("0{a:o}.0x{b:X}.{}", bits & 0xffff),
                format!("{a}.{b}.{c}.{d}."),
                format!("::ffff:{ip}"),
                format!("[::ffff:{:x}:{:x}]", bits >> 16, bits & 0xffff),
            ] {
                prop_assert!(list.allows_name(&spelling, port), "{}", spelling);
            }
            let next = Ipv4Addr::from_bits(bits.wrapping_add(1));
            prop_assert_eq!(list.allows_name(&next.to_string(), port), target(ip.into()) == target(next.into()));
        }
    }
}
