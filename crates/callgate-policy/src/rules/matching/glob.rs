//! Path globs: a row of segments, of which `**` stands for any number of components and everything else for exactly one.
//! `relate.rs` compares them.

use callgate_model::glob::{BraceError, LoneBraces, escape, unescape};

use super::name;
use super::{Pool, Span, Text};
use crate::rules::stored::{Flat, List, flat_struct};

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
    /// A name that fits this pattern.
    Pattern(Text),
}

/// A compiled glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glob {
    pub anchor: Anchor,
    /// `!`: takes names out again.
    pub negated: bool,
    pub segments: Span,
}
flat_struct!(Glob { anchor: Anchor, negated: bool, segments: Span });

impl Flat for Anchor {
    const SIZE: usize = 1;

    fn put(&self, to: &mut Vec<u8>) {
        (*self as u8).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Absolute,
            1 => Self::Home,
            2 => Self::Workspace,
            _ => return None,
        })
    }
}

impl Flat for Segment {
    const SIZE: usize = 1 + Text::SIZE;

    fn put(&self, to: &mut Vec<u8>) {
        let (kind, text) = match self {
            Self::Many => (0_u8, Text::default()),
            Self::Literal(text) => (1, *text),
            Self::Pattern(text) => (2, *text),
        };
        kind.put(to);
        text.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let kind = u8::take(from)?;
        let text = Text::take(from)?;
        Some(match kind {
            0 => Self::Many,
            1 => Self::Literal(text),
            2 => Self::Pattern(text),
            _ => return None,
        })
    }
}

/// More segments than this are refused, so that sets of them fit into a number.
pub(crate) const MAXIMUM_SEGMENTS: usize = 48;
/// One pattern may stand for this many after its braces are expanded.
const MAXIMUM_ALTERNATIVES: usize = 4096;

/// Why a glob cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GlobError {
    #[error("a `{{` is not closed")]
    OpenBrace,
    #[error("the braces stand for more than {MAXIMUM_ALTERNATIVES} patterns")]
    TooManyAlternatives,
    #[error("more than {MAXIMUM_SEGMENTS} components")]
    TooDeep,
    #[error("{0}")]
    Name(&'static str),
    #[error("`..` is not used in patterns: paths are compared after it has been resolved")]
    Parent,
    #[error("`~name` is not used in patterns: `~` is every user's home")]
    OtherHome,
    #[error("`**` stands for whole components only; write `*` within a name")]
    PartialMany,
}

/// Where relative globs of a file start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// At the workspace of the call.
    Workspace,
    /// At the directory of the file, absolute.
    Directory(String),
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
pub(crate) fn compile(
    pattern: &str,
    base: &Base,
    pool: &mut Pool,
    segments: &mut List<Segment>,
) -> Result<Glob, GlobError> {
    let (negated, pattern) = match pattern.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let directory;
    let (anchor, body) = if let Some(rest) = pattern.strip_prefix('~') {
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(GlobError::OtherHome);
        }
        (Anchor::Home, rest)
    } else if pattern.starts_with('/') || pattern == "**" || pattern.starts_with("**/") {
        (Anchor::Absolute, pattern)
    } else {
        match base {
            Base::Workspace => (Anchor::Workspace, pattern),
            Base::Directory(path) => {
                // The directory is a path, not a pattern: what looks special in it is taken literally.
                directory = format!("{}/{pattern}", escape(path));
                (Anchor::Absolute, directory.as_str())
            }
        }
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
            _ => {
                name::check(component).map_err(GlobError::Name)?;
                if component.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
                    Segment::Pattern(pool.add(component))
                } else {
                    Segment::Literal(pool.add(&unescape(component)))
                }
            }
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
        let compile = |text: &str| compile(text, &Base::Workspace, &mut Pool::default(), &mut List::default());
        assert_eq!(compile("/a/../b"), Err(GlobError::Parent));
        assert_eq!(compile("~bob/x"), Err(GlobError::OtherHome));
        assert_eq!(compile("/a/x**"), Err(GlobError::PartialMany));
        assert!(matches!(compile("/a/[x"), Err(GlobError::Name(_))));
        assert_eq!(compile(&"/a".repeat(100)), Err(GlobError::TooDeep));
    }
}
