//! Patterns on hosts and services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Match, Pool, Text, name};
use crate::rules::stored::flat_enum;

/// A compiled host pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostPattern {
    /// `*`: any host. Services are matched by `<*>`.
    Any,
    /// A name without wildcards.
    Name(Text),
    /// `*.example.com`: every subdomain. The text has no leading `*`.
    Below(Text),
    /// Any other pattern, also on services: `<aws>`, `<*>`.
    Pattern(Text),
    /// An address or a network.
    Network { address: u128, bits: u8 },
}

flat_enum!(HostPattern {
    0: Any,
    1: Name { 0: name: Text },
    2: Below { 0: name: Text },
    3: Pattern { 0: name: Text },
    4: Network { address: address: u128, bits: bits: u8 },
});

/// Why a host pattern is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    #[error("expected a host name, found a URL")]
    Url,
    #[error("host patterns cannot contain a port")]
    Port,
    #[error("invalid network `{0}`")]
    Network(String),
    #[error("{0}")]
    Name(&'static str),
}

/// Compiles one pattern without braces.
pub(crate) fn compile(pattern: &str, pool: &mut Pool) -> Result<HostPattern, HostError> {
    let pattern = pattern.to_lowercase();
    if pattern.contains("://") {
        return Err(HostError::Url);
    }
    if pattern == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some((address, bits)) = pattern.split_once('/') {
        let network = || HostError::Network(pattern.clone());
        let address: IpAddr = address.parse().map_err(|_| network())?;
        let bits: u8 = bits.parse().map_err(|_| network())?;
        let offset = if address.is_ipv4() { 96 } else { 0 };
        let bits = bits.checked_add(offset).filter(|bits| *bits <= 128).ok_or_else(network)?;
        return Ok(HostPattern::Network { address: number(address) & mask(bits), bits });
    }
    if let Some(address) = address(&pattern) {
        return Ok(HostPattern::Network { address: number(address), bits: 128 });
    }
    if pattern.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(HostError::Port);
    }
    name::check(&pattern).map_err(HostError::Name)?;
    Ok(match pattern.strip_prefix('*') {
        Some(below) if below.starts_with('.') && !name::is_pattern(below) => HostPattern::Below(pool.add(below)),
        _ if name::is_pattern(&pattern) => HostPattern::Pattern(pool.add(&pattern)),
        _ => HostPattern::Name(pool.add(pattern.trim_end_matches('.'))),
    })
}

/// The host of an effect in a comparable form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostTarget {
    /// Not known.
    Unknown,
    /// A service in angle brackets.
    Service(String),
    /// A name.
    Name(String),
    /// An address in whatever form it was written.
    Address(u128),
}

impl HostTarget {
    pub(crate) fn new(host: Option<&str>) -> Self {
        let Some(host) = host else {
            return Self::Unknown;
        };
        let host = host.trim_end_matches('.').to_lowercase();
        if host.starts_with('<') {
            return Self::Service(host);
        }
        // The program that connects may parse an invalid host name in another way.
        if host.is_empty() || host.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Self::Unknown;
        }
        match address(&host) {
            Some(address) => Self::Address(number(address)),
            None => Self::Name(host),
        }
    }

    /// Whether the host matches a pattern.
    pub(crate) fn fit(&self, pattern: HostPattern, pool: &Pool) -> Match {
        match (pattern, self) {
            (HostPattern::Any, Self::Service(_)) => Match::No,
            (HostPattern::Any, _) => Match::Yes,
            (_, Self::Unknown) => Match::Maybe,
            (HostPattern::Name(wanted), Self::Name(name) | Self::Service(name)) => {
                Match::certain(pool.get(wanted) == name)
            }
            (HostPattern::Below(domain), Self::Name(name)) => {
                let domain = pool.get(domain);
                Match::certain(name.len() > domain.len() && name.ends_with(domain))
            }
            (HostPattern::Pattern(pattern), Self::Name(name) | Self::Service(name)) => {
                Match::certain(name::matches(pool.get(pattern), name.as_bytes()))
            }
            (HostPattern::Network { address, bits }, Self::Address(other)) => {
                Match::certain(other & mask(bits) == address)
            }
            _ => Match::No,
        }
    }
}

fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(u32::from(bits))).unwrap_or(0)
}

/// One number for both kinds of addresses, so that `::ffff:127.0.0.1` is `127.0.0.1`.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// An address in any of the forms that resolvers accept: dotted, decimal, octal, hexadecimal, shortened.
fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let bare = bare.split('%').next().unwrap_or(bare);
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return Some(address.into());
    }
    if !host.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let parts: Vec<u64> = host.split('.').map(part).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    if front.len() > 3 || front.iter().any(|part| *part > 255) {
        return None;
    }
    let shift = 8_u32.saturating_mul(u32::try_from(4_usize.saturating_sub(front.len())).ok()?);
    if *last >= 1_u64.checked_shl(shift)? {
        return None;
    }
    let upper = front.iter().fold(0_u64, |number, part| number << 8 | part);
    u32::try_from(upper << shift | last).ok().map(|bits| Ipv4Addr::from_bits(bits).into())
}

fn part(text: &str) -> Option<u64> {
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return if hexadecimal.is_empty() { Some(0) } else { u64::from_str_radix(hexadecimal, 16).ok() };
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pattern: &str, host: Option<&str>) -> Match {
        let mut pool = Pool::default();
        let pattern = compile(pattern, &mut pool).unwrap();
        HostTarget::new(host).fit(pattern, &pool)
    }

    #[test]
    fn hosts_fit_patterns() {
        for (pattern, host, expected) in [
            ("example.com", "example.com", Match::Yes),
            ("example.com", "EXAMPLE.com.", Match::Yes),
            ("example.com", "evil-example.com", Match::No),
            ("*.example.com", "a.b.example.com", Match::Yes),
            ("*.example.com", "example.com", Match::No),
            ("*.example.com", "evilexample.com", Match::No),
            ("127.0.0.0/8", "127.1", Match::Yes),
            ("127.0.0.0/8", "2130706433", Match::Yes),
            ("127.0.0.0/8", "0x7f.0.0.1", Match::Yes),
            ("127.0.0.0/8", "0177.0.0.1", Match::Yes),
            ("127.0.0.0/8", "[::ffff:127.0.0.1]", Match::Yes),
            ("127.0.0.0/8", "128.0.0.1", Match::No),
            ("169.254.169.254", "0xa9fea9fe", Match::Yes),
            ("::1", "[::1]", Match::Yes),
            ("fd00::/8", "fd12::1", Match::Yes),
            ("<aws>", "<aws>", Match::Yes),
            ("<*>", "<kubernetes>", Match::Yes),
            ("<*>", "example.com", Match::No),
            ("*", "example.com", Match::Yes),
            ("*", "<aws>", Match::No),
            ("api-?.example.com", "api-1.example.com", Match::Yes),
        ] {
            assert_eq!(fit(pattern, Some(host)), expected, "{pattern} {host}");
        }
        assert_eq!(fit("example.com", None), Match::Maybe);
        assert_eq!(fit("*", None), Match::Yes);
        assert_eq!(fit("example.com", Some("a\0example.com")), Match::Maybe);
    }

    #[test]
    fn mistakes() {
        for pattern in ["https://x.example", "x.example:443", "10.0.0.0/64", "10.0.0/x"] {
            assert!(compile(pattern, &mut Pool::default()).is_err(), "{pattern}");
        }
    }
}
