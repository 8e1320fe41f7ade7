//! Path globs: a row of segments, of which `**` stands for any number of components and everything else for exactly one.
//! `relate.rs` compares them.

use callgate_model::glob::{BraceError, LoneBraces, unescape};

use super::name;
use super::{Pool, Span, Text};
use crate::rules::stored::{StoredList, flat_enum, flat_struct};

/// Where a glob starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Anchor {
    /// At `/`.
    Absolute,
    /// At any user's home (`~`).
    Home,
    /// At the workspace of the call (`./`).
    Workspace,
}

/// One component of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment {
    /// `**`.
    Many,
    /// Exactly this name.
    Literal(Text),
    /// A name that matches this pattern.
    Pattern(Text),
}

flat_struct! {
    /// A compiled glob.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Glob {
        pub anchor: Anchor,
        /// Whether the glob starts with `!` and excludes names.
        pub negated: bool,
        pub segments: Span,
    }
}
flat_enum!(Anchor { 0: Absolute, 1: Home, 2: Workspace });
flat_enum!(Segment { 0: Many, 1: Literal { 0: name: Text }, 2: Pattern { 0: name: Text } });

impl Segment {
    /// Compiles one name or word, which is not `**`.
    pub(crate) fn new(text: &str, pool: &mut Pool) -> Result<Self, GlobError> {
        name::check(text).map_err(GlobError::Name)?;
        Ok(if text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
            Self::Pattern(pool.add(text))
        } else {
            Self::Literal(pool.add(&unescape(text)))
        })
    }
}

/// The limit for the segments of a glob, so that a set of them fits into a `u128`.
pub(crate) const MAXIMUM_SEGMENTS: usize = 48;
/// The limit for the alternatives of one pattern with braces.
const MAXIMUM_ALTERNATIVES: usize = 4096;

/// Why a glob is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GlobError {
    #[error("unclosed `{{`")]
    OpenBrace,
    #[error("braces expand to more than {MAXIMUM_ALTERNATIVES} patterns")]
    TooManyAlternatives,
    #[error("pattern has more than {MAXIMUM_SEGMENTS} components")]
    TooDeep,
    #[error("{0}")]
    Name(&'static str),
    #[error("`..` is not supported in patterns; paths are resolved before they are compared")]
    Parent,
    #[error("`~name` is not supported in patterns; `~` matches the home directory of every user")]
    OtherHome,
    #[error("`**` must be a whole component; use `*` within a name")]
    PartialMany,
}

/// Expands `{a,b}`, also nested, into all alternatives.
pub(crate) fn expand_braces(pattern: &str) -> Result<Vec<String>, GlobError> {
    callgate_model::glob::expand_braces(pattern, MAXIMUM_ALTERNATIVES, LoneBraces::Dropped).map_err(|error| match error
    {
        BraceError::Unclosed => GlobError::OpenBrace,
        BraceError::TooMany => GlobError::TooManyAlternatives,
    })
}

/// Compiles one pattern without braces.
pub(crate) fn compile(pattern: &str, pool: &mut Pool, segments: &mut StoredList<Segment>) -> Result<Glob, GlobError> {
    let (negated, pattern) = match pattern.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (anchor, body) = match pattern.strip_prefix('~') {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => return Err(GlobError::OtherHome),
        Some(rest) => (Anchor::Home, rest),
        None if pattern.starts_with('/') || pattern == "**" || pattern.starts_with("**/") => {
            (Anchor::Absolute, pattern)
        }
        None => (Anchor::Workspace, pattern),
    };
    let mut compiled = Vec::new();
    for component in body.split('/') {
        let segment = match component {
            "" | "." => continue,
            ".." => return Err(GlobError::Parent),
            "**" => {
                if compiled.last() == Some(&Segment::Many) {
                    continue;
                }
                Segment::Many
            }
            _ if component.contains("**") => return Err(GlobError::PartialMany),
            _ => Segment::new(component, pool)?,
        };
        compiled.push(segment);
    }
    if compiled.len() > MAXIMUM_SEGMENTS {
        return Err(GlobError::TooDeep);
    }
    Ok(Glob { anchor, negated, segments: segments.append(compiled) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces() {
        assert_eq!(expand_braces("a{b,c{d,e}}f").unwrap(), ["abf", "acdf", "acef"]);
        assert_eq!(expand_braces("{a,b}{c,d}").unwrap(), ["ac", "ad", "bc", "bd"]);
        assert_eq!(expand_braces("a\\{b").unwrap(), ["a\\{b"]);
        assert_eq!(expand_braces("{a"), Err(GlobError::OpenBrace));
        assert_eq!(expand_braces(&"{a,b}".repeat(40)), Err(GlobError::TooManyAlternatives));
    }

    #[test]
    fn mistakes() {
        let compile = |text: &str| compile(text, &mut Pool::default(), &mut StoredList::default());
        assert_eq!(compile("/a/../b"), Err(GlobError::Parent));
        assert_eq!(compile("~bob/x"), Err(GlobError::OtherHome));
        assert_eq!(compile("/a/x**"), Err(GlobError::PartialMany));
        assert!(matches!(compile("/a/[x"), Err(GlobError::Name(_))));
        assert_eq!(compile(&"/a".repeat(100)), Err(GlobError::TooDeep));
    }
}
