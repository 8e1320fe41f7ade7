//! What an address is good for, and ranges of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of host an address belongs to. Everything but [`AddressKind::Public`] is out of reach unless it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// A host of the public internet.
    Public,
    /// A host of a private network, also behind a carrier's address translation.
    Private,
    /// This machine.
    Loopback,
    /// A host of the same link.
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// Several hosts at once.
    Multicast,
    /// Reserved, or kept for documentation and measurements.
    Reserved,
}

impl AddressKind {
    /// The kind in words, as in "a private address".
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        }
    }
}

impl std::fmt::Display for AddressKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The blocks that are not public, the first that fits counts. IPv4 from the registry of special-purpose addresses (RFC 6890).
const BLOCKS_4: &[([u8; 4], u8, AddressKind)] = &[
    // The metadata services of AWS, Azure and others; of containers on AWS; of Azure's host, Alibaba and Oracle.
    ([169, 254, 169, 254], 32, AddressKind::Metadata),
    ([169, 254, 170, 2], 32, AddressKind::Metadata),
    ([169, 254, 170, 23], 32, AddressKind::Metadata),
    ([168, 63, 129, 16], 32, AddressKind::Metadata),
    ([100, 100, 100, 200], 32, AddressKind::Metadata),
    ([192, 0, 0, 192], 32, AddressKind::Metadata),
    // Linux takes 0.0.0.0 for this machine.
    ([0, 0, 0, 0], 32, AddressKind::Loopback),
    ([0, 0, 0, 0], 8, AddressKind::Reserved),
    ([10, 0, 0, 0], 8, AddressKind::Private),
    ([100, 64, 0, 0], 10, AddressKind::Private),
    ([127, 0, 0, 0], 8, AddressKind::Loopback),
    ([169, 254, 0, 0], 16, AddressKind::LinkLocal),
    ([172, 16, 0, 0], 12, AddressKind::Private),
    ([192, 0, 0, 0], 24, AddressKind::Reserved),
    ([192, 0, 2, 0], 24, AddressKind::Reserved),
    ([192, 88, 99, 0], 24, AddressKind::Reserved),
    ([192, 168, 0, 0], 16, AddressKind::Private),
    ([198, 18, 0, 0], 15, AddressKind::Reserved),
    ([198, 51, 100, 0], 24, AddressKind::Reserved),
    ([203, 0, 113, 0], 24, AddressKind::Reserved),
    ([224, 0, 0, 0], 4, AddressKind::Multicast),
    ([240, 0, 0, 0], 4, AddressKind::Reserved),
];

/// The same for IPv6. What lies outside 2000::/3 is not public in any case.
const BLOCKS_6: &[([u16; 8], u8, AddressKind)] = &[
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, AddressKind::Metadata),
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, AddressKind::Metadata),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, AddressKind::Metadata),
    ([0, 0, 0, 0, 0, 0, 0, 0], 127, AddressKind::Loopback),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, AddressKind::Private),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, AddressKind::Reserved),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, AddressKind::Reserved),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, AddressKind::Reserved),
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, AddressKind::Public),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, AddressKind::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, AddressKind::LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, AddressKind::Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, AddressKind::Multicast),
];

/// A range of addresses of both families: IPv4 is part of IPv6 as `::ffff:0:0/96`, so that both spellings are one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Range {
    start: u128,
    bits: u8,
}

/// The bits of a range that an IPv4 address does not have.
const MAPPED_BITS: u8 = 96;

impl Range {
    /// The range of the `bits` first bits of `address`.
    pub(super) fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { bits.checked_add(MAPPED_BITS)? } else { bits };
        (bits <= 128).then(|| Self { start: number(address) & mask(bits), bits })
    }

    /// The range of one address.
    pub(super) fn single(address: IpAddr) -> Self {
        Self { start: number(address), bits: 128 }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        number(address) & mask(self.bits) == self.start
    }

    /// Whether all of this range lies in `other`.
    pub(super) fn is_within(self, other: Range) -> bool {
        self.bits >= other.bits && self.start & mask(other.bits) == other.start
    }
}

fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(u32::from(bits))).unwrap_or(0)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// An address with the IPv4 address that `::ffff:a.b.c.d` stands for taken out.
pub(super) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The kind of an address, and the block that makes it so. An IPv6 address that carries an IPv4 address is of the kind of
/// the inner one if that is not public: a translator at the edge of the network may lead there.
pub(super) fn kind(address: IpAddr) -> (AddressKind, Range) {
    let (outer, block) = own_kind(address);
    let inner = match plain(address) {
        IpAddr::V6(address) => carried(address),
        IpAddr::V4(_) => None,
    };
    match inner.map(|inner| own_kind(inner.into()).0) {
        // The range of a block of the inner addresses has no meaning outside: only the exact address can be listed.
        Some(inner) if inner != AddressKind::Public => (inner, Range::single(address)),
        Some(_) if is_nat64(address) => (AddressKind::Public, block),
        _ => (outer, block),
    }
}

fn own_kind(address: IpAddr) -> (AddressKind, Range) {
    let whole = Range { start: 0, bits: 0 };
    match plain(address) {
        IpAddr::V4(address) => {
            for (start, bits, kind) in BLOCKS_4 {
                if let Some(block) = Range::new(IpAddr::V4(Ipv4Addr::from(*start)), *bits)
                    && block.contains(address.into())
                {
                    return (*kind, block);
                }
            }
            (AddressKind::Public, whole)
        }
        IpAddr::V6(address) => {
            for (start, bits, kind) in BLOCKS_6 {
                if let Some(block) = Range::new(IpAddr::V6(Ipv6Addr::from(*start)), *bits)
                    && block.contains(address.into())
                {
                    return (*kind, block);
                }
            }
            (AddressKind::Reserved, Range::single(address.into()))
        }
    }
}

fn is_nat64(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.segments().starts_with(&[0x64, 0xff9b, 0, 0, 0, 0]))
}

/// The IPv4 address in an IPv6 one: compatible, 6to4, NAT64, Teredo, ISATAP.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |upper: u16, lower: u16| Ipv4Addr::from_bits(u32::from(upper) << 16 | u32::from(lower));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x64, 0xff9b, 1, _, _, _, a, b] => {
            Some(join(a, b))
        }
        [0, 0, 0, 0, 0xffff, 0, a, b] => Some(join(a, b)),
        [0x2002, a, b, ..] => Some(join(a, b)),
        [0x2001, 0, _, _, _, _, a, b] => Some(join(!a, !b)),
        [_, _, _, _, 0 | 0x200, 0x5efe, a, b] => Some(join(a, b)),
        _ => None,
    }
}

/// Reads an IPv4 address as `inet_aton` does: one to four numbers, decimal, octal or hexadecimal, the last one fills the rest.
///
/// `None` is a name; `Some(None)` looks like a number and is not an address, so that programs disagree on what it is.
pub(super) fn numeric(text: &str) -> Option<Option<Ipv4Addr>> {
    let last = text.rsplit('.').next()?;
    let is_numeric = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
        || last.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"))
            && last.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit());
    is_numeric.then(|| from_numbers(text))
}

fn from_numbers(text: &str) -> Option<Ipv4Addr> {
    let mut address = 0_u32;
    let mut room = 32_u32;
    let mut parts = text.split('.').peekable();
    while let Some(part) = parts.next() {
        let value = part_number(part)?;
        if parts.peek().is_some() {
            room = room.checked_sub(8)?;
            address |= u32::from(u8::try_from(value).ok()?).checked_shl(room)?;
        } else {
            let limit = 1_u64.checked_shl(room)?;
            if room == 0 || u64::from(value) >= limit {
                return None;
            }
            address |= value;
        }
    }
    Some(Ipv4Addr::from_bits(address))
}

fn part_number(text: &str) -> Option<u32> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // `from_str_radix` takes a sign, which is not part of an address.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (address, expected) in [
            ("93.184.216.34", AddressKind::Public),
            ("172.15.255.255", AddressKind::Public),
            ("172.16.0.0", AddressKind::Private),
            ("172.31.255.255", AddressKind::Private),
            ("172.32.0.0", AddressKind::Public),
            ("100.63.255.255", AddressKind::Public),
            ("100.64.0.0", AddressKind::Private),
            ("127.255.255.255", AddressKind::Loopback),
            ("0.0.0.0", AddressKind::Loopback),
            ("0.1.2.3", AddressKind::Reserved),
            ("169.254.1.1", AddressKind::LinkLocal),
            ("169.254.169.254", AddressKind::Metadata),
            ("255.255.255.255", AddressKind::Reserved),
            ("224.0.0.251", AddressKind::Multicast),
            ("203.0.113.9", AddressKind::Reserved),
            ("::", AddressKind::Loopback),
            ("::1", AddressKind::Loopback),
            ("::2", AddressKind::Reserved),
            ("2606:4700::1111", AddressKind::Public),
            ("2001:4860::8888", AddressKind::Public),
            ("2001:db8::1", AddressKind::Reserved),
            ("fd00::1", AddressKind::Private),
            ("fd00:ec2::254", AddressKind::Metadata),
            ("fe80::1", AddressKind::LinkLocal),
            ("ff02::fb", AddressKind::Multicast),
            ("4000::1", AddressKind::Reserved),
            ("::ffff:127.0.0.1", AddressKind::Loopback),
            ("::ffff:8.8.8.8", AddressKind::Public),
            ("::ffff:169.254.169.254", AddressKind::Metadata),
            ("::127.0.0.1", AddressKind::Loopback),
            ("::8.8.8.8", AddressKind::Reserved),
            ("64:ff9b::8.8.8.8", AddressKind::Public),
            ("64:ff9b::a9fe:a9fe", AddressKind::Metadata),
            ("64:ff9b:1::10.0.0.1", AddressKind::Private),
            ("2002:7f00:1::", AddressKind::Loopback),
            ("2002:808:808::1", AddressKind::Public),
            ("2001:0:53aa:64c:0:0:80ff:fffe", AddressKind::Loopback),
            ("2606:4700::5efe:a00:1", AddressKind::Private),
            ("fe80::5efe:808:808", AddressKind::LinkLocal),
        ] {
            assert_eq!(kind(address.parse().unwrap()).0, expected, "{address}");
        }
    }

    #[test]
    fn numbers() {
        let localhost = Some(Some(Ipv4Addr::LOCALHOST));
        for text in
            ["127.0.0.1", "127.1", "0x7f.1", "0X7F.0.0.0x1", "2130706433", "017700000001", "0177.0.1", "0x7f000001"]
        {
            assert_eq!(numeric(text), localhost, "{text}");
        }
        assert_eq!(numeric("0"), Some(Some(Ipv4Addr::UNSPECIFIED)));
        assert_eq!(numeric("0x"), Some(Some(Ipv4Addr::UNSPECIFIED)));
        assert_eq!(numeric("4294967295"), Some(Some(Ipv4Addr::BROADCAST)));
        for text in
            ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "08", "4294967296", "1..2", "x.1", "0xfffffffff", ".1", "+1.2"]
        {
            assert_eq!(numeric(text), Some(None), "{text}");
        }
        for text in ["", "a.b", "1.2.3.x", "0xg", "face", "1."] {
            assert_eq!(numeric(text), None, "{text}");
        }
    }

    #[test]
    fn ranges() {
        let range = |text: &str, bits| Range::new(text.parse().unwrap(), bits);
        assert!(range("10.0.0.0", 33).is_none());
        assert!(range("::", 129).is_none());
        assert!(range("10.0.0.0", 8).unwrap().contains("::ffff:10.9.9.9".parse().unwrap()));
        assert!(range("10.1.0.0", 16).unwrap().is_within(range("10.0.0.0", 8).unwrap()));
        assert!(!range("10.0.0.0", 7).unwrap().is_within(range("10.0.0.0", 8).unwrap()));
        assert!(range("0.0.0.0", 0).unwrap().contains("255.0.0.1".parse().unwrap()));
        assert!(!range("0.0.0.0", 0).unwrap().contains("2606:4700::1".parse().unwrap()));
    }
}
