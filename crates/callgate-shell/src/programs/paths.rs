//! Paths as programs name them, made absolute without looking at the file system.

use crate::effect::Names;
use crate::word::{Word, file_pattern};

/// A path made absolute against `directory`; as it is if that is not known.
pub(super) fn absolute(directory: Option<&str>, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let Some(directory) = directory else {
        return path.to_owned();
    };
    let mut rest = path;
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter.trim_start_matches('/');
    }
    if rest.is_empty() || rest == "." {
        return directory.to_owned();
    }
    [directory.trim_end_matches('/'), "/", rest].concat()
}

/// A path of a table: `~` is the home directory.
pub(super) fn of_table(directory: Option<&str>, home: Option<&str>, path: &str) -> Names {
    match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Names::Exact(format!("{}{rest}", home.trim_end_matches('/')))
        }
        (Some(_), None) => Names::Unknown(format!("{path}: the home directory is not known")),
        _ if path.contains(['*', '?']) => glob(directory, path),
        _ => Names::Exact(absolute(directory, path)),
    }
}

/// Which names a word in a path's place stands for; `None`: it is certainly no path (empty).
pub(super) fn names(directory: Option<&str>, word: &Word) -> Option<Names> {
    Some(match word {
        Word::Known(text) if text.is_empty() => return None,
        Word::Known(text) => Names::Exact(absolute(directory, without_scheme(text))),
        Word::Glob(pattern) => glob(directory, pattern),
        Word::Below { directory: below, .. } => Names::Below(absolute(directory, below)),
        Word::Partly { prefix, why, .. } => Names::Unknown(format!("{prefix}…: {why}")),
        Word::Unknown { why, .. } => Names::Unknown(why.clone()),
    })
}

/// `file:name?options` and `file:///name`, as SQLite, curl and others take them, name a path like any other.
fn without_scheme(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("file:").filter(|rest| !rest.is_empty()) else { return text };
    let rest = rest.strip_prefix("//localhost").or(rest.strip_prefix("//")).unwrap_or(rest);
    rest.split(['?', '#']).next().unwrap_or(rest)
}

fn glob(directory: Option<&str>, pattern: &str) -> Names {
    let pattern = file_pattern(pattern);
    let pattern = pattern.as_str();
    match directory {
        Some(directory) if !pattern.starts_with('/') => {
            let escaped = escape(directory.trim_end_matches('/'));
            Names::Glob(format!("{escaped}/{}", pattern.strip_prefix("./").unwrap_or(pattern)))
        }
        _ => Names::Glob(pattern.to_owned()),
    }
}

/// A text as a shell pattern that matches only itself.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '(' | ')' | '|' | '!' | '+' | '@' | '{' | '}') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The text of a pattern before its first wildcard, unescaped.
pub(super) fn literal_prefix(pattern: &str) -> String {
    let mut prefix = String::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => prefix.extend(characters.next()),
            '*' | '?' | '[' => break,
            '@' | '+' | '!' if characters.peek() == Some(&'(') => break,
            _ => prefix.push(character),
        }
    }
    prefix
}

/// Devices that hold nothing and lead nowhere.
pub(super) fn is_harmless_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/zero"
            | "/dev/full"
            | "/dev/urandom"
            | "/dev/random"
            | "/dev/tty"
    ) || path.strip_prefix("/dev/fd/").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Directories whose programs go by their bare name.
const SYSTEM_DIRECTORIES: [&str; 9] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
    "/usr/games",
];

/// The bare name of a program that is named by its path in a system directory.
pub(super) fn system_program(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/')?;
    SYSTEM_DIRECTORIES.contains(&folder).then_some(name).filter(|name| !name.is_empty())
}

/// The last component of a path, as `cp` and `mv` take it; `None`: the contents of a directory.
pub(super) fn base_name(path: &str) -> Option<&str> {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    (!matches!(name, "" | "." | "..")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_without_touching_dots_inside() {
        let cases = [
            ("a", "/w/a"),
            ("./a", "/w/a"),
            (".//a", "/w/a"),
            (".", "/w"),
            ("./", "/w"),
            ("../a", "/w/../a"),
            ("/a", "/a"),
            ("a/./b", "/w/a/./b"),
        ];
        for (path, expected) in cases {
            assert_eq!(absolute(Some("/w"), path), expected);
        }
        assert_eq!(absolute(None, "a"), "a");
        assert_eq!(absolute(Some("/"), "a"), "/a");
    }

    #[test]
    fn a_directory_in_front_of_a_pattern_is_literal() {
        assert_eq!(names(Some("/w[1]"), &Word::Glob("*.rs".into())), Some(Names::Glob("/w\\[1\\]/*.rs".into())));
    }

    #[test]
    fn only_empty_devices_are_harmless() {
        assert!(is_harmless_device("/dev/null"));
        assert!(is_harmless_device("/dev/fd/3"));
        assert!(!is_harmless_device("/dev/fd/3/../../../etc/shadow"));
        assert!(!is_harmless_device("/dev/sda"));
    }
}
