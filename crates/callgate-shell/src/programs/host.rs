//! Hosts and URLs in all their spellings.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::paths::literal_prefix;
use crate::effect::Host;
use crate::lists::listed;
use crate::word::Word;

/// Where a URL or a `host:path` leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// To another machine.
    Remote(Host),
    /// To a file here.
    Local(String),
}

/// Where a URL leads; without a scheme it is `http`.
pub(super) fn url(word: &Word) -> Destination {
    let (text, whole) = certain_text(word);
    let shown = shown(word);
    let unknown = || Destination::Remote(Host { name: None, shown: shown.clone() });
    let trimmed = text.trim_matches(|character: char| character <= ' ');
    if trimmed.contains(|character: char| character.is_control()) {
        return unknown();
    }
    let (scheme, rest) = match trimmed.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        _ if trimmed.to_ascii_lowercase().starts_with("file:") => {
            ("file".to_owned(), trimmed.get(5..).unwrap_or_default())
        }
        _ => (String::new(), trimmed),
    };
    // Programs read `http:host` and `http:\\\\host` differently.
    let lower = trimmed.to_ascii_lowercase();
    if scheme.is_empty() && ["http:", "https:", "ftp:"].iter().any(|front| lower.starts_with(front)) {
        return unknown();
    }
    if scheme == "file" {
        if !whole {
            return unknown();
        }
        let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest);
        let path = path.split(['?', '#']).next().unwrap_or_default();
        return percent_decoded(path).map_or_else(unknown, Destination::Local);
    }
    // The paths of these URLs are commands for the machine, so its name alone would say too little.
    if listed("gopher gophers dict telnet smtp smtps mqtt tftp ldap ldaps", &scheme) {
        return unknown();
    }
    let end = rest.find(['/', '?', '#']);
    if end.is_none() && !whole {
        return unknown();
    }
    let authority = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
    Destination::Remote(Host { name: authority_host(authority), shown })
}

/// Where a host operand leads: `host`, `user@host`, `host:port`, or a URL.
pub(super) fn host(word: &Word) -> Host {
    let (text, whole) = certain_text(word);
    let shown = shown(word);
    if text.contains("://") {
        return match url(word) {
            Destination::Remote(host) => host,
            Destination::Local(_) => Host { name: None, shown },
        };
    }
    let name = if whole { authority_host(text.split('/').next().unwrap_or_default()) } else { None };
    Host { name, shown }
}

/// Where an operand of `scp` or `rsync` leads.
pub(super) fn remote(word: &Word) -> Option<Destination> {
    let (text, whole) = certain_text(word);
    if text.contains("://") {
        return Some(url(word));
    }
    // A colon before any slash makes it remote; `./a:b` is a file.
    let colon = if text.starts_with('[') { text.find("]:").map(|at| at + 1) } else { text.find(':') };
    let slash = text.find('/');
    match colon {
        Some(colon) if slash.is_none_or(|slash| colon < slash) => {
            let name = authority_host(text.get(..colon).unwrap_or_default());
            Some(Destination::Remote(Host { name, shown: shown(word) }))
        }
        _ if whole || slash.is_some() || matches!(word, Word::Glob(_)) => None,
        _ => Some(Destination::Remote(Host { name: None, shown: shown(word) })),
    }
}

/// Where a word leads that its role does not call a host: a URL, also behind `name=`, or `user@host:path`.
pub(super) fn hidden(word: &Word) -> Option<Destination> {
    let (text, _) = certain_text(word);
    if let Some(colon) = text.find("://") {
        let front = text.get(..colon)?;
        let start = front.rfind(|letter: char| !(letter.is_ascii_alphanumeric() || "+-.".contains(letter)));
        let start = start.map_or(0, |at| at.saturating_add(1));
        // Behind a blank it is part of a sentence.
        let prose = front.contains(char::is_whitespace);
        let scheme = front.get(start..)?;
        // `fileb://` is how some programs write a file.
        return (!prose && scheme != "fileb" && is_scheme(scheme)).then(|| url(&behind(word, start)));
    }
    let (user, rest) = text.split_once('@')?;
    let (name, _) = rest.split_once(':')?;
    (!user.contains(['/', ':', ' ']) && is_dotted(name))
        .then(|| Destination::Remote(host(&Word::Known(name.to_owned()))))
}

/// The host at the front of a word such as `registry.example/image:tag`, where the program would take it for one.
pub(super) fn leading(word: &Word) -> Option<Host> {
    let (text, _) = certain_text(word);
    let authority = text.split('/').next().unwrap_or_default();
    let name = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    (is_dotted(name) || name == "localhost").then(|| Host { name: authority_host(authority), shown: shown(word) })
}

/// A name with dots whose last part is letters, or an address.
fn is_dotted(name: &str) -> bool {
    let Some((front, last)) = name.rsplit_once('.') else { return false };
    let letters = last.len() > 1 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    !front.is_empty() && !front.starts_with('.') && (letters || name.parse::<Ipv4Addr>().is_ok())
}

/// The word without its first bytes.
fn behind(word: &Word, start: usize) -> Word {
    let cut = |text: &String| text.get(start..).unwrap_or_default().to_owned();
    match word {
        Word::Known(text) => Word::Known(cut(text)),
        Word::Partly { prefix, why, many } => Word::Partly { prefix: cut(prefix), why: why.clone(), many: *many },
        other => other.clone(),
    }
}

/// The certain prefix of a word, and whether it is the whole word.
fn certain_text(word: &Word) -> (String, bool) {
    match word {
        Word::Known(text) => (text.clone(), true),
        Word::Glob(pattern) => (literal_prefix(pattern), false),
        Word::Partly { prefix, .. } => (prefix.clone(), false),
        Word::Below { .. } | Word::Unknown { .. } => (String::new(), false),
    }
}

fn shown(word: &Word) -> String {
    match word {
        Word::Known(text) => without_password(text),
        Word::Glob(pattern) => pattern.clone(),
        Word::Partly { prefix, .. } => format!("{}…", without_password(prefix)),
        Word::Below { directory, .. } => format!("{directory}/…"),
        Word::Unknown { why, .. } => why.clone(),
    }
}

/// Hides the password in a URL, which people and logs see.
fn without_password(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.get(..end).and_then(|authority| authority.rfind('@')) {
        Some(at) if rest.get(..at).is_some_and(|user| user.contains(':')) => {
            format!("{}…{}", text.get(..start).unwrap_or_default(), rest.get(at..).unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The host of `user:password@host:port`, in its plain form; `None` if that is not certain.
fn authority_host(authority: &str) -> Option<String> {
    let after_user = authority.rsplit('@').next().unwrap_or_default();
    // Programs disagree on `a@b@c`, `\` and patterns in URLs, so these are not certain.
    if authority.contains('\\')
        || authority.matches('@').count() > 1
        || after_user.contains(['{', '}', '*', '\\', '%', ',', ' '])
    {
        return None;
    }
    if let Some(rest) = after_user.strip_prefix('[') {
        let (address, _) = rest.split_once(']')?;
        return Some(plain_ipv6(address.parse().ok()?));
    }
    if after_user.matches(':').count() > 1 {
        return after_user.parse().ok().map(plain_ipv6);
    }
    let name = after_user.split(':').next().unwrap_or_default();
    plain_name(name)
}

fn plain_ipv6(address: Ipv6Addr) -> String {
    address.to_ipv4_mapped().map_or_else(|| address.to_string(), |inner| inner.to_string())
}

fn plain_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name.is_empty() || !name.is_ascii() || name.ends_with('.') || name.contains("..") {
        // Programs map non-ASCII look-alikes differently.
        return None;
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')) {
        return None;
    }
    numeric_address(&name).map_or(Some(name), |address| Some(address?.to_string()))
}

/// `inet_aton`: one to four numbers, decimal, octal or hexadecimal, the last filling the rest.
/// `None`: a name; `Some(None)`: a number that is not an address.
fn numeric_address(name: &str) -> Option<Option<Ipv4Addr>> {
    let last = name.rsplit('.').next()?;
    let numeric = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    if !numeric {
        return None;
    }
    let parts: Option<Vec<u32>> = name.split('.').map(number).collect();
    let Some(parts) = parts else {
        return Some(None);
    };
    let (last, front) = parts.split_last()?;
    if front.len() > 3 || front.iter().any(|part| *part > 255) {
        return Some(None);
    }
    let mut address: u32 = 0;
    for (place, part) in front.iter().enumerate() {
        address |= part.checked_shl(24u32.saturating_sub(8 * place as u32)).unwrap_or_default();
    }
    let room = 32u32.saturating_sub(8 * front.len() as u32);
    if room < 32 && *last >= 1u32.checked_shl(room).unwrap_or(u32::MAX) {
        return Some(None);
    }
    Some(Some(Ipv4Addr::from(address | last)))
}

fn number(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x") {
        return if digits.is_empty() { Some(0) } else { u32::from_str_radix(digits, 16).ok() };
    }
    if text.len() > 1 && text.starts_with('0') {
        return u32::from_str_radix(text, 8).ok();
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(text: &str) -> Option<String> {
        match url(&Word::Known(text.to_owned())) {
            Destination::Remote(host) => host.name,
            Destination::Local(path) => panic!("{text} is the file {path}"),
        }
    }

    #[test]
    fn disguised_addresses_are_made_plain() {
        let cases = [
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://0177.0.0.1/x", "127.0.0.1"),
            ("http://127.1", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]:80/", "127.0.0.1"),
            ("http://[::1]/", "::1"),
            ("http://0xA9FEA9FE/latest", "169.254.169.254"),
            ("HTTPS://EXAMPLE.COM./x", "example.com"),
            ("https://user:secret@example.com:8443/x?y#z", "example.com"),
            ("https://good.example@evil.example/", "evil.example"),
            ("example.com/path", "example.com"),
            ("localhost:8080", "localhost"),
            ("https://example.com?x=@evil", "example.com"),
            ("ftp://example.com", "example.com"),
        ];
        for (text, expected) in cases {
            assert_eq!(name_of(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_programs_read_differently_is_not_known() {
        for text in [
            "http://a@b@c/",
            "http://{a,b}.example/",
            "http://exa%6dple.com/",
            "http://bücher.example/",
            "http://999.999.999.999/",
            "http://",
            "http://a\nb/",
            "http://a\\@b/",
            "http:evil.example",
            "http:\\\\evil.example/",
            "http://a..b/",
        ] {
            assert_eq!(name_of(text), None, "{text}");
        }
    }

    #[test]
    fn file_urls_are_paths() {
        let cases = [
            ("file:///etc/passwd", "/etc/passwd"),
            ("FILE://localhost/etc/pass%77d", "/etc/passwd"),
            ("file:/etc/passwd", "/etc/passwd"),
        ];
        for (text, path) in cases {
            assert_eq!(url(&Word::Known(text.into())), Destination::Local(path.into()));
        }
    }

    #[test]
    fn a_host_is_certain_once_it_has_ended() {
        let partly = |prefix: &str| Word::Partly { prefix: prefix.into(), why: "$x".into(), many: false };
        assert_eq!(host(&partly("example.com")).name, None);
        let name = |word| match url(&word) {
            Destination::Remote(host) => host.name,
            Destination::Local(_) => None,
        };
        assert_eq!(name(partly("https://example.com/items/")), Some("example.com".into()));
        assert_eq!(name(partly("https://example.com")), None);
        assert_eq!(name(Word::Glob("https://example.com/a?b=c".into())), Some("example.com".into()));
    }

    #[test]
    fn a_colon_before_any_slash_is_remote() {
        let remote_name = |text: &str| remote(&Word::Known(text.into()));
        assert!(
            matches!(remote_name("user@Host:/x"), Some(Destination::Remote(host)) if host.name.as_deref() == Some("host"))
        );
        assert!(
            matches!(remote_name("host::module"), Some(Destination::Remote(host)) if host.name.as_deref() == Some("host"))
        );
        assert_eq!(remote_name("./a:b"), None);
        assert_eq!(remote_name("plain"), None);
    }

    #[test]
    fn passwords_are_not_shown() {
        let Destination::Remote(host) = url(&Word::Known("https://me:hunter2@example.com/x".into())) else {
            panic!("remote");
        };
        assert_eq!(host.shown, "https://…@example.com/x");
    }
}
