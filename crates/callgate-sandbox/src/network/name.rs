//! Host names in the one form in which they are compared.

use std::net::IpAddr;

use super::address;

/// A host name: lower case, ASCII, without a trailing dot, and not a number that some program takes for an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HostName(String);

/// A host as it is written somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Name(HostName),
    Address(IpAddr),
}

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameError {
    #[error("it is empty")]
    Empty,
    #[error("it contains a character that host names cannot have")]
    Character,
    #[error("it is not ASCII; write the name in its ASCII form (`xn--…`)")]
    NotAscii,
    #[error("a label of it is empty or longer than 63 characters, or it is longer than 253 characters")]
    Length,
    #[error("it looks like a number but is not an address")]
    Number,
}

/// The longest name that DNS can carry.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// Top-level names that nobody can register, so that no stranger decides where a name below them leads.
const LOCAL_TOPS: &[&str] = &["internal", "local", "localhost", "lan", "home", "corp", "intranet", "private", "test"];

impl Host {
    /// Reads a name or an address in any spelling that programs accept, IPv6 also in brackets.
    pub(super) fn new(text: &str) -> Result<Self, NameError> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::Address(address::plain(IpAddr::V6(address))));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        match address::numeric(name) {
            Some(Some(address)) => return Ok(Self::Address(address.into())),
            Some(None) => return Err(NameError::Number),
            None => {}
        }
        HostName::new(text).map(Self::Name)
    }
}

impl HostName {
    fn new(text: &str) -> Result<Self, NameError> {
        if !text.is_ascii() {
            return Err(NameError::NotAscii);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
            return Err(NameError::Character);
        }
        if name.len() > LONGEST_NAME || name.split('.').any(|label| label.is_empty() || label.len() > LONGEST_LABEL) {
            return Err(NameError::Length);
        }
        Ok(Self(name))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the name of the machine for itself (RFC 6761).
    pub(super) fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }

    /// Whether the name exists only in the user's own network.
    pub(super) fn is_local(&self) -> bool {
        match self.0.rsplit_once('.') {
            None => true,
            Some((front, top)) => {
                LOCAL_TOPS.contains(&top) || top == "arpa" && (front == "home" || front.ends_with(".home"))
            }
        }
    }
}

impl std::borrow::Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for HostName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_form() {
        let name = |text: &str| Host::Name(HostName(text.to_owned()));
        let address = |text: &str| Host::Address(text.parse().unwrap());
        for (text, expected) in [
            ("Example.COM.", name("example.com")),
            ("_dmarc.a-b.example", name("_dmarc.a-b.example")),
            ("db", name("db")),
            ("127.0.0.1.", address("127.0.0.1")),
            ("0x7f.1", address("127.0.0.1")),
            ("[::1]", address("::1")),
            ("::ffff:7f00:1", address("127.0.0.1")),
            ("[::ffff:10.0.0.1]", address("10.0.0.1")),
        ] {
            assert_eq!(Host::new(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("a..b", NameError::Length),
            ("a..", NameError::Length),
            (".a", NameError::Length),
            ("a\0.example", NameError::Character),
            ("a.example\n", NameError::Character),
            ("user@a.example", NameError::Character),
            ("a.example/x", NameError::Character),
            ("a.example:1", NameError::Character),
            ("*.example", NameError::Character),
            ("a%2eexample", NameError::Character),
            ("[::1", NameError::Character),
            ("fe80::1%eth0", NameError::Character),
            ("bücher.example", NameError::NotAscii),
            ("ｅxample.com", NameError::NotAscii),
            ("a。example", NameError::NotAscii),
            ("999.1", NameError::Number),
            ("example.0x7f", NameError::Number),
        ] {
            assert_eq!(Host::new(text), Err(expected), "{text}");
        }
        assert_eq!(Host::new(&format!("{}.x", "a".repeat(64))), Err(NameError::Length));
        assert_eq!(Host::new(&"a.".repeat(127)), Ok(name("a.".repeat(127).trim_end_matches('.'))));
        assert_eq!(Host::new(&"a.".repeat(128)), Err(NameError::Length));
    }

    #[test]
    fn local_names() {
        let local = |text: &str| matches!(Host::new(text), Ok(Host::Name(name)) if name.is_local());
        for text in ["db", "db.internal", "nas.home.arpa", "a.localhost"] {
            assert!(local(text), "{text}");
        }
        for text in ["example.com", "local.example.com", "evilhome.arpa", "arpa.example"] {
            assert!(!local(text), "{text}");
        }
    }
}
