//! Reads URLs and resource identifiers: which host, or which paths.

use callgate_model::digest::from_hex;
use callgate_model::effect::Host;

/// How many times percent-encoding is decoded: more often than any reader does.
const MAXIMUM_LAYERS: usize = 8;

/// What an identifier leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// Local paths: as written, and with each layer of percent-encoding decoded.
    Paths(Vec<String>),
    /// Another machine.
    Host(Host),
    /// Nowhere: the identifier contains the data.
    Inline,
    /// Unknown, and why.
    Unknown(&'static str),
}

/// Reads a URL or resource identifier.
pub(super) fn read(text: &str) -> Destination {
    // readers differ: some drop these characters, some stop there, some read them as a slash
    if text.chars().any(|character| character.is_control() || character.is_whitespace() || character == '\\') {
        return Destination::Unknown("a URL with spaces, backslashes or control characters");
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Destination::Unknown("not a URL");
    };
    match scheme.to_ascii_lowercase().as_str() {
        "file" => file_paths(rest),
        "data" | "about" => Destination::Inline,
        "http" | "https" | "ws" | "wss" | "ftp" | "ftps" | "git" | "ssh" => {
            match rest.strip_prefix("//").and_then(host_of) {
                Some(name) => Destination::Host(Host { name: Some(name), shown: text.to_owned() }),
                None => Destination::Unknown("a URL without a host"),
            }
        }
        _ => Destination::Unknown("a URL of an unknown scheme"),
    }
}

/// The host of what follows `//`: lower case, without user, port and path.
fn host_of(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host_and_port.strip_prefix('[') {
        Some(address) => address.split_once(']')?.0,
        None => host_and_port.split_once(':').map_or(host_and_port, |(host, _)| host),
    };
    // a percent sign is decoded by some readers and not by others
    (!host.is_empty() && !host.contains('%')).then(|| host.trim_end_matches('.').to_ascii_lowercase())
}

fn file_paths(rest: &str) -> Destination {
    let path = match rest.strip_prefix("//") {
        Some(after) => {
            let (authority, path) = after.find('/').map_or((after, ""), |slash| after.split_at(slash));
            match authority.to_ascii_lowercase().as_str() {
                "" | "localhost" => path,
                // careless readers take `file://etc/passwd` and `file://./x` for paths
                _ => after,
            }
        }
        None => rest,
    };
    let path = path.split(['?', '#']).next().filter(|front| *front == path).unwrap_or(path);
    if path.is_empty() {
        return Destination::Unknown("a file URL without a path");
    }
    Destination::Paths(layers(path))
}

/// A text, and its forms with percent-encoding decoded repeatedly.
pub(super) fn layers(text: &str) -> Vec<String> {
    let mut layers = vec![text.to_owned()];
    let mut current = text.to_owned();
    for _ in 0..MAXIMUM_LAYERS {
        let decoded = decode(&current);
        if decoded == current {
            break;
        }
        layers.push(decoded.clone());
        current = decoded;
    }
    layers
}

fn decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    decoded.extend(pieces.next().unwrap_or_default().bytes());
    for piece in pieces {
        match piece.split_at_checked(2).and_then(|(digits, rest)| Some((from_hex::<1>(digits.as_bytes())?, rest))) {
            Some((byte, rest)) => {
                decoded.extend(byte);
                decoded.extend(rest.bytes());
            }
            None => {
                decoded.push(b'%');
                decoded.extend(piece.bytes());
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Every `http:` and `https:` URL in a text.
pub(super) fn urls_in(text: &str) -> Vec<&str> {
    let mut urls = Vec::new();
    let mut rest = text;
    while let Some(position) = rest.find("://") {
        let (before, after) = rest.split_at(position);
        let scheme_start = before
            .char_indices()
            .rev()
            .take_while(|(_, character)| character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.'))
            .last()
            .map_or(position, |(start, _)| start);
        let end = after
            .find(|character: char| {
                character.is_whitespace() || matches!(character, '"' | '\'' | '<' | '>' | '`' | ')' | ']')
            })
            .unwrap_or(after.len());
        if let Some(url) = rest.get(scheme_start..position.saturating_add(end)) {
            urls.push(url);
        }
        rest = after.get(end.max(3)..).unwrap_or_default();
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_as_they_are() {
        let cases: &[(&str, Option<&str>)] = &[
            ("https://Example.COM/path", Some("example.com")),
            ("https://user:pw@example.com:8080/x?y#z", Some("example.com")),
            ("http://good.example@evil.example/", Some("evil.example")),
            ("http://example.com.", Some("example.com")),
            ("http://[::1]:80/", Some("::1")),
            ("http://2130706433/", Some("2130706433")),
            ("HTTPS://x", Some("x")),
            ("https://example.com?x@evil", Some("example.com")),
            ("http:///x", None),
            ("http://evil%2ecom/", None),
            ("https://good.example\\@evil.example/", None),
            ("http://exa\tmple.com", None),
            ("gopher://x", None),
            ("example.com", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let host = match read(text) {
                Destination::Host(host) => host.name,
                _ => None,
            };
            assert_eq!(host.as_deref(), *expected, "{text}");
        }
    }

    #[test]
    fn file_resources_are_paths_decoded_and_undecoded() {
        let cases: &[(&str, &[&str])] = &[
            ("file:///etc/passwd", &["/etc/passwd"]),
            ("FILE:///etc/passwd", &["/etc/passwd"]),
            ("file://localhost/etc/passwd", &["/etc/passwd"]),
            ("file:/etc/passwd", &["/etc/passwd"]),
            ("file:relative", &["relative"]),
            ("file://etc/passwd", &["etc/passwd"]),
            ("file:///a%2fb", &["/a%2fb", "/a/b"]),
            ("file:///ws/%252e%252e/x", &["/ws/%252e%252e/x", "/ws/%2e%2e/x", "/ws/../x"]),
            ("file:///100%25", &["/100%25", "/100%"]),
            ("file:///x%zz", &["/x%zz"]),
        ];
        for (text, expected) in cases {
            let expected = expected.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(read(text), Destination::Paths(expected), "{text}");
        }
    }

    #[test]
    fn urls_are_found_in_text() {
        assert_eq!(
            urls_in("compare https://a.example/x, (http://b.example) and \"ftp://c\" ://"),
            ["https://a.example/x,", "http://b.example", "ftp://c", "://"]
        );
        assert_eq!(urls_in(&"://".repeat(1_000)).len(), 1);
        assert_eq!(urls_in("none"), Vec::<&str>::new());
    }
}
