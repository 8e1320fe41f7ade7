//! Shell commands: what `callgate-shell` says of them, as parts.

use super::Part;
use super::collect::{Collector, opaque, placed};

/// The longest command that is analysed.
const MAXIMUM_COMMAND: usize = 256 * 1024;

/// The parts of a command given as shell source.
pub(super) fn source(source: &str, collector: &Collector<'_>) -> Vec<Part> {
    if source.trim().is_empty() {
        return vec![unknown("the command is empty")];
    }
    if source.len() > MAXIMUM_COMMAND {
        return vec![unknown("the command is too long to be analysed")];
    }
    if source.contains('\0') {
        return vec![unknown("the command has a NUL byte")];
    }
    analyze(source, collector.directory.as_deref(), collector.home())
}

/// The parts of a command given as words, which no shell expands.
pub(super) fn words(words: &[&str], collector: &Collector<'_>) -> Vec<Part> {
    let length = words.iter().fold(0_usize, |sum, word| {
        sum.saturating_add(word.len()).saturating_add(3)
    });
    if length > MAXIMUM_COMMAND {
        return vec![unknown("the command is too long to be analysed")];
    }
    if words.first().is_none_or(|program| program.is_empty()) {
        return vec![unknown("the command names no program")];
    }
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    source(&quoted.join(" "), collector)
}

/// A word that the shell takes as it stands.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether a name is that of a shell whose language is read.
pub(super) fn is_known_shell(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or_default();
    let directory = name.strip_suffix(base).unwrap_or_default();
    matches!(base, "bash" | "sh" | "dash" | "zsh" | "ksh")
        && matches!(directory, "" | "/bin/" | "/usr/bin/")
}

fn unknown(why: &str) -> Part {
    Part {
        effects: placed(vec![opaque(why)]),
        ..Part::default()
    }
}

/// The one place where the analysis of shell commands is called.
fn analyze(_source: &str, _directory: Option<&str>, _home: Option<&str>) -> Vec<Part> {
    vec![unknown("shell commands are not analysed yet")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_nothing_expands() {
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("$(x)"), "'$(x)'");
    }

    #[test]
    fn shells_are_known_by_their_place() {
        for name in ["bash", "/bin/sh", "/usr/bin/zsh"] {
            assert!(is_known_shell(name), "{name}");
        }
        for name in ["", "python", "./bash", "/tmp/bash", "/bin/bash/"] {
            assert!(!is_known_shell(name), "{name}");
        }
    }
}
