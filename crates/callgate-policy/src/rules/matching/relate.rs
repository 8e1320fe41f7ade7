//! Compares a path glob with a path, component by component.
//!
//! The comparison visits the components once and keeps the possible next segments as bits of a number, so the cost is the
//! product of the two lengths.

use std::borrow::Cow;

use super::case::fold;
use super::glob::{MAXIMUM_SEGMENTS, Segment};
use super::name::{self, Tokens};
use super::{Match, Pool};
use callgate_model::glob::escape;

/// The limit for the prefix (a home directory or a workspace).
const MAXIMUM_PREFIX: usize = 70;

/// A component before a glob's own segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathPrefix<'a> {
    Name(&'a [u8]),
    AnyName,
}

impl PathPrefix<'_> {
    /// The name in the form that all its spellings share.
    pub(crate) fn folded(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            PathPrefix::Name(name) => Some(fold(name)),
            PathPrefix::AnyName => None,
        }
    }
}

/// What follows the known components.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Following<'a> {
    /// Nothing.
    Nothing,
    /// Any name at or below.
    Anything,
    /// A shell pattern, one entry for each component.
    Shell(&'a [ShellName]),
}

/// One component of a shell pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShellName {
    /// `**`: any number of components.
    Many,
    /// One component.
    One(Tokens),
}

impl ShellName {
    /// Takes a shell pattern apart; `None` if it climbs with `..`.
    pub(crate) fn parse(pattern: &str) -> Option<Vec<Self>> {
        let mut names = Vec::new();
        for component in pattern.split('/').filter(|component| !matches!(*component, "" | ".")) {
            names.push(match component {
                ".." => return None,
                "**" => Self::Many,
                _ => Self::One(Tokens::new(component, true)),
            });
        }
        Some(names)
    }
}

/// A path to compare with globs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ComparedPath<'a> {
    /// The known components, from `/`.
    pub components: &'a [&'a [u8]],
    pub following: Following<'a>,
    /// Whether everything below is included.
    pub tree: bool,
    /// Whether floating globs (`**/.env`) match inside trees: only outside the boundary.
    pub floating_counts: bool,
    /// Whether something is changed. Then a directory represents the protected names in it.
    pub changes: bool,
}

/// The result of comparing a glob with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relation {
    /// Whether the glob matches a part of the path.
    pub touches: Match,
    /// Whether the glob matches all of the path.
    pub covers: bool,
}

impl Relation {
    const NONE: Self = Self { touches: Match::No, covers: false };
}

/// A glob behind a prefix.
#[derive(Clone, Copy)]
pub(crate) struct PathPattern<'a> {
    pub prefix: &'a [PathPrefix<'a>],
    pub segments: &'a [Segment],
    pub pool: &'a Pool,
}

enum GlobPiece<'a> {
    Many,
    AnyName,
    Name(&'a [u8]),
    Fits(&'a str),
}

impl<'a> PathPattern<'a> {
    fn length(&self) -> usize {
        self.prefix.len().saturating_add(self.segments.len())
    }

    fn piece(&self, index: usize) -> Option<GlobPiece<'a>> {
        if let Some(prefix) = self.prefix.get(index) {
            return Some(match prefix {
                PathPrefix::Name(name) => GlobPiece::Name(name),
                PathPrefix::AnyName => GlobPiece::AnyName,
            });
        }
        self.segments.get(index.saturating_sub(self.prefix.len())).map(|segment| match segment {
            Segment::Many => GlobPiece::Many,
            Segment::Literal(text) => GlobPiece::Name(self.pool.get(*text).as_bytes()),
            Segment::Pattern(text) => GlobPiece::Fits(self.pool.get(*text)),
        })
    }

    fn is_many(&self, index: usize) -> bool {
        matches!(self.piece(index), Some(GlobPiece::Many))
    }

    /// Adds the states that are reached if a `**` matches nothing.
    fn closure(&self, states: u128) -> u128 {
        let mut all = states;
        for index in Bits(states) {
            let mut next = index;
            while self.is_many(next) {
                next = next.saturating_add(1);
                all |= 1 << next;
            }
        }
        all
    }

    /// The states after one component. The second set holds those that were reached by comparing a name.
    fn advance(&self, states: u128, fits: impl Fn(&GlobPiece<'_>) -> bool) -> (u128, u128) {
        let (mut next, mut named) = (0, 0);
        for index in Bits(states) {
            match self.piece(index) {
                Some(GlobPiece::Many) => next |= 1 << index,
                Some(piece) if fits(&piece) => named |= 1_u128 << index.saturating_add(1),
                _ => {}
            }
        }
        (self.closure(next | named), named)
    }

    /// Compares the glob with a path.
    pub(crate) fn relate(&self, subject: &ComparedPath<'_>) -> Relation {
        let end = self.length();
        if self.prefix.len() > MAXIMUM_PREFIX || self.segments.len() > MAXIMUM_SEGMENTS {
            return Relation { touches: Match::Maybe, covers: false };
        }
        let exact = !subject.tree && matches!(subject.following, Following::Nothing);
        if exact && end != subject.components.len() && !self.segments.contains(&Segment::Many) {
            return Relation::NONE;
        }
        let mut states = self.closure(1);
        let mut named = if self.is_many(0) { 0 } else { 1 };
        for component in subject.components {
            (states, named) = self.advance(states, |piece| match piece {
                GlobPiece::Many | GlobPiece::AnyName => true,
                GlobPiece::Name(name) => name == component,
                GlobPiece::Fits(pattern) => name::matches(pattern, component),
            });
            if states == 0 {
                return Relation::NONE;
            }
        }
        let holds_all = end > 0 && self.is_many(end.saturating_sub(1)) && states >> end.saturating_sub(1) & 1 == 1;
        match subject.following {
            Following::Nothing if !subject.tree => {
                let fits = states >> end & 1 == 1;
                Relation { touches: Match::certain(fits), covers: fits }
            }
            Following::Nothing | Following::Anything => {
                Relation { touches: self.below(subject, states, named), covers: holds_all }
            }
            Following::Shell(names) => {
                for shell in names {
                    (states, named) = self.advance_shell(states, shell);
                    if states == 0 {
                        return Relation::NONE;
                    }
                }
                let touches = if subject.tree {
                    self.below(subject, states, named)
                } else {
                    Match::certain(states >> end & 1 == 1)
                };
                Relation { touches, covers: holds_all }
            }
        }
    }

    fn advance_shell(&self, states: u128, shell: &ShellName) -> (u128, u128) {
        let anything = |piece: &GlobPiece<'_>| match piece {
            GlobPiece::Many | GlobPiece::AnyName => true,
            GlobPiece::Fits(pattern) => *pattern == "*",
            GlobPiece::Name(_) => false,
        };
        match shell {
            ShellName::One(tokens) => self.advance(states, |piece| match piece {
                GlobPiece::Many | GlobPiece::AnyName => true,
                GlobPiece::Name(name) => {
                    let name = Tokens::new(&escape(&String::from_utf8_lossy(name)), false);
                    tokens.aims_at(&name) && tokens.overlaps(&name)
                }
                GlobPiece::Fits(pattern) => {
                    let pattern = Tokens::new(pattern, false);
                    tokens.aims_at(&pattern) && tokens.overlaps(&pattern)
                }
            }),
            ShellName::Many => {
                let mut all = states;
                loop {
                    let more = all | self.advance(all, anything).0;
                    if more == all {
                        return (all, 0);
                    }
                    all = more;
                }
            }
        }
    }

    /// Whether names below a directory match.
    fn below(&self, subject: &ComparedPath<'_>, states: u128, named: u128) -> Match {
        let end = self.length();
        if states >> end & 1 == 1 {
            return Match::Yes;
        }
        let floats_from = |from: usize| (from..end.saturating_sub(1)).any(|index| self.is_many(index));
        if !floats_from(0) {
            return Match::certain(states != 0);
        }
        if subject.floating_counts {
            return if states == 0 { Match::No } else { Match::Maybe };
        }
        // `**/.git/hooks/**` and `rm -r .git`: the directory itself was named by the glob.
        let directly =
            subject.changes && Bits(named).any(|index| index > 0 && !floats_from(index) && self.is_exact(index));
        Match::certain(directly)
    }

    /// Whether the segment before `index` is a name without wildcards. The index knows only those.
    fn is_exact(&self, index: usize) -> bool {
        matches!(self.piece(index.saturating_sub(1)), Some(GlobPiece::Name(_)))
    }
}

/// The numbers of the bits that are set.
struct Bits(u128);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        Some(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::glob::{Anchor, compile};
    use super::*;
    use crate::rules::stored::StoredList;

    fn relate(glob: &str, path: &str, shell: Option<&str>, tree: bool, floating_counts: bool) -> Relation {
        let (mut pool, mut segments) = (Pool::default(), StoredList::default());
        let glob = compile(glob, &mut pool, &mut segments).unwrap();
        let prefix: &[PathPrefix<'_>] = match glob.anchor {
            Anchor::Absolute => &[],
            Anchor::Home => &[PathPrefix::Name(b"home"), PathPrefix::AnyName],
            Anchor::Workspace => &[PathPrefix::Name(b"w")],
        };
        let components: Vec<&[u8]> = path.split('/').filter(|name| !name.is_empty()).map(str::as_bytes).collect();
        let names = shell.map(|shell| ShellName::parse(shell).unwrap());
        PathPattern { prefix, segments: &glob.segments.of(&segments), pool: &pool }.relate(&ComparedPath {
            components: &components,
            following: names.as_deref().map_or(Following::Nothing, Following::Shell),
            tree,
            floating_counts,
            changes: false,
        })
    }

    #[test]
    fn exact_paths() {
        for (glob, path, fits) in [
            ("/etc/shadow", "/etc/shadow", true),
            ("/etc/shadow", "/etc/shadow-", false),
            ("/etc/**", "/etc", true),
            ("/etc/**", "/etc/a/b", true),
            ("/etc/*", "/etc/a/b", false),
            ("**/.env", "/w/.env", true),
            ("**/.env", "/w/a/my.env", false),
            ("**/.git/**", "/w/.git/hooks/x", true),
            ("~/.ssh/**", "/home/u/.ssh/id", true),
            ("~/.ssh/**", "/home/u/x/.ssh/id", false),
            ("~", "/home/u", true),
            ("/", "/", true),
            ("/*", "/etc", true),
            ("/*", "/", false),
            ("./src/**", "/w/src/a.rs", true),
            ("./src/**", "/w_evil/src/a.rs", false),
            ("src/*.rs", "/w/src/a.rs", true),
            ("./**", "/w", true),
            ("/a/**/b/**/c", "/a/x/b/c", true),
        ] {
            let relation = relate(glob, path, None, false, true);
            assert_eq!((relation.touches, relation.covers), (Match::certain(fits), fits), "{glob} {path}");
        }
    }

    #[test]
    fn trees() {
        for (glob, path, floating_counts, touches, covers) in [
            ("~/.ssh/**", "/home/u", true, true, false),
            ("~/.ssh/**", "/", true, true, false),
            ("~/.ssh/**", "/home/u/.ssh", true, true, true),
            ("~/.ssh/**", "/home/u/src", true, false, false),
            ("/etc/shadow", "/etc", false, true, false),
            ("**/.env", "/w", false, false, false),
            ("**/.git/**", "/w/.git", false, true, true),
            ("./**", "/w/src", false, true, true),
            ("./src/**", "/w", false, true, false),
        ] {
            let relation = relate(glob, path, None, true, floating_counts);
            assert_eq!((relation.touches, relation.covers), (Match::certain(touches), covers), "{glob} {path}");
        }
        // A name that may stand anywhere may stand below a directory that nobody vouches for.
        let outside = relate("**/.env", "/w", None, true, true);
        assert_eq!((outside.touches, outside.covers), (Match::Maybe, false));
    }

    #[test]
    fn shell_patterns() {
        for (glob, path, shell, touches, covers) in [
            ("~/.ssh/**", "/home/u", ".s*/id_rsa", true, false),
            ("~/.ssh/**", "/home/u/.ssh", "*", true, true),
            ("~/.ssh/**", "/home/u", "*/x", false, false),
            ("**/.env", "/w", "*", false, false),
            ("**/.env", "/w", ".e*", true, false),
            ("**/.env", "/w", "*/.env", true, false),
            ("**/.env", "/w", "**/.en?", true, false),
            ("**/*.pem", "/w", "*.pem", true, false),
            ("**/*.pem", "/w", "a*", false, false),
            ("./**", "/w", "*.rs", true, true),
            ("./src/**", "/w", "*.rs", false, false),
            ("~/.ssh/**", "/home", "*/.ssh/id_rsa", true, false),
        ] {
            let relation = relate(glob, path, Some(shell), false, false);
            assert_eq!((relation.touches, relation.covers), (Match::certain(touches), covers), "{glob} {path} {shell}");
        }
    }
}
