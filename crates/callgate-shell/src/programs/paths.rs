//! Paths as programs name them, made absolute without looking at the file system.

use crate::effect::{Action, Names, Selection, TreeNames};
use crate::lists::listed;
use crate::word::{ListedNames, Word, file_pattern};
pub(super) use callgate_model::glob::{escape, literal_prefix};
pub(super) use callgate_model::lexical::absolute;

/// A path of a table: `~` is the home directory.
pub(super) fn of_table(directory: Option<&str>, home: Option<&str>, path: &str) -> Names {
    match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Names::Exact(format!("{}{rest}", home.trim_end_matches('/')))
        }
        (Some(_), None) => Names::Unknown(format!("{path}: the home directory is unknown")),
        _ if path.contains(['*', '?']) => glob(directory, path),
        _ => Names::Exact(absolute(directory, path)),
    }
}

/// The names that a word in place of a path means; `None`: it is empty, so it is not a path.
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

/// The names below a directory that a word from a list of names means, to a program that does something to them.
pub(crate) fn listed_names(names: &ListedNames, action: Action) -> TreeNames {
    match names {
        ListedNames::Changed if action == Action::Write => TreeNames::Any("names made out of listed ones".to_owned()),
        ListedNames::All | ListedNames::Changed => TreeNames::default(),
        ListedNames::Tracked => TreeNames::Existing(Selection { tracked: true, ..Selection::default() }),
        // No name in a directory is called so.
        ListedNames::Nothing => TreeNames::Existing(Selection { only: vec![".".to_owned()], ..Selection::default() }),
        ListedNames::Matching(globs) => TreeNames::Existing(Selection { only: globs.clone(), ..Selection::default() }),
    }
}

/// Removes the scheme of `file:name?options` and `file:///name`, which SQLite, curl and others accept as paths.
fn without_scheme(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("file:").filter(|rest| !rest.is_empty()) else { return text };
    let rest = rest.strip_prefix("//localhost").or(rest.strip_prefix("//")).unwrap_or(rest);
    rest.split(['?', '#']).next().unwrap_or(rest)
}

/// The names that a pattern matches, made absolute.
pub(crate) fn glob(directory: Option<&str>, pattern: &str) -> Names {
    let pattern = file_pattern(pattern);
    match directory {
        Some(directory) if !pattern.starts_with('/') => {
            let escaped = escape(directory.trim_end_matches('/'));
            Names::Glob(format!("{escaped}/{}", pattern.strip_prefix("./").unwrap_or(&pattern)))
        }
        _ => Names::Glob(pattern),
    }
}

/// Whether a path names a descriptor of the process itself.
pub(crate) fn is_descriptor(path: &str) -> bool {
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    matches!(path, "/dev/stdin" | "/dev/stdout" | "/dev/stderr") || path.strip_prefix("/dev/fd/").is_some_and(number)
}

/// Whether a path names a device without contents, or a descriptor of the process itself.
pub(super) fn is_harmless_device(path: &str) -> bool {
    const DEVICES: &str = "/dev/null /dev/zero /dev/full /dev/urandom /dev/random /dev/tty";
    listed(DEVICES, path) || is_descriptor(path)
}

/// Directories whose programs go by their bare name.
const SYSTEM_DIRECTORIES: &str = "/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin";

/// Returns the bare name of a program that is named by its path in a system directory.
pub(crate) fn system_program(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    (listed(SYSTEM_DIRECTORIES, directory) && !name.is_empty()).then_some(name)
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
