//! A parser for bash and POSIX shell scripts.
//!
//! The parser never panics, and its recursion and its work are bounded. It refuses constructs that it does not know or that
//! shells read differently ([`NotUnderstood`]). The commands before a mistake are kept, because a shell runs them.

pub(crate) mod ast;
mod commands;
mod compound;
mod conditional;
mod cursor;
mod here_document;
mod parameter;
mod quotes;
mod simple;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use commands::RESERVED;
pub use cursor::NotUnderstood;
pub(crate) use cursor::is_name;
pub(crate) use simple::DECLARATIONS;

use ast::{Script, Span};
use cursor::Parser;
use serde::{Deserialize, Serialize};

/// Which shell reads the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// bash.
    Bash,
    /// zsh, or a shell that nobody named: what bash and zsh read differently is not understood.
    #[default]
    Any,
    /// `sh`, which may be any POSIX shell: constructs that shells disagree about are refused.
    Sh,
}

/// Limits on the work of one analysis. A command that exceeds them is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest source, in bytes.
    pub bytes: usize,
    /// How deeply constructs may be nested.
    pub depth: usize,
    /// How many words, expansions and commands may be read.
    pub nodes: usize,
    /// How many commands may be evaluated, counting each round of a loop and each call. Sixteen words, or four kilobytes of
    /// them, count as one more.
    pub steps: usize,
    /// How many rounds of a loop are unrolled; brace expansion may make sixteen times as many words.
    pub unrolled: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 1 << 18, depth: 60, nodes: 100_000, steps: 4_000, unrolled: 64 }
    }
}

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ParsedScript {
    /// The commands before the first mistake.
    pub(crate) script: Script,
    /// The first mistake.
    pub mistake: Option<NotUnderstood>,
}

/// Reads a script.
///
/// ```
/// use callgate_shell::syntax::{parse, Dialect, Limits};
/// let reading = parse("cd /tmp && ls; echo 'unfinished", Dialect::Bash, Limits::default());
/// assert!(reading.mistake.is_some());
/// ```
pub fn parse(source: &str, dialect: Dialect, limits: Limits) -> ParsedScript {
    parse_at(source, dialect, limits, None, 0)
}

/// Parses a script that is part of a command: every span is that of the text it comes from.
pub(crate) fn parse_at(source: &str, dialect: Dialect, limits: Limits, at: Option<Span>, depth: usize) -> ParsedScript {
    if let Some(mistake) = refuse(source, limits) {
        return ParsedScript { script: Script::default(), mistake: Some(mistake) };
    }
    let mut parser = Parser::new(source, dialect, limits);
    parser.stands_at = at;
    parser.depth = depth;
    let (script, mistake) = parser.whole_script();
    ParsedScript { script, mistake }
}

/// Counts the nodes that parsing `source` takes: the measure of the parser's work.
#[cfg(test)]
fn work(source: &str, dialect: Dialect, limits: Limits) -> usize {
    let mut parser = Parser::new(source, dialect, limits);
    let _ = parser.whole_script();
    limits.nodes.saturating_sub(parser.fuel.get())
}

fn refuse(source: &str, limits: Limits) -> Option<NotUnderstood> {
    let span = 0..source.len();
    if source.len() > limits.bytes {
        return Some(NotUnderstood { what: format!("longer than {} bytes", limits.bytes), span });
    }
    if source.contains('\0') {
        return Some(NotUnderstood { what: "contains a NUL byte".to_owned(), span });
    }
    None
}
