//! Path globs, compared component by component.
//!
//! A glob is a row of segments: `**` stands for any number of components, everything else for exactly one. Comparing
//! walks the components once and keeps the set of segments that may come next in the bits of a number, so the work is
//! the product of the two lengths, whatever the pattern.

use super::name::{self, Tokens};
use super::{Fit, Pool, Span, Text};
use crate::policy::stored::{Flat, List, flat_struct};

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
/// What comes before the segments (a home or a workspace) may be this deep.
const MAXIMUM_PREFIX: usize = 70;
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
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len().saturating_add(open.len()) > MAXIMUM_ALTERNATIVES {
            return Err(GlobError::TooManyAlternatives);
        }
        match first_brace(&pattern)? {
            None => done.push(pattern),
            Some((before, alternatives, after)) => {
                // Pushed in reverse, so that alternatives come out in the order they were written.
                for alternative in alternatives.iter().rev() {
                    open.push(format!("{before}{alternative}{after}"));
                }
            }
        }
    }
    Ok(done)
}

type Brace<'a> = (&'a str, Vec<&'a str>, &'a str);

fn first_brace(pattern: &str) -> Result<Option<Brace<'_>>, GlobError> {
    let (mut depth, mut start, mut from) = (0_usize, 0, 0);
    let mut alternatives = Vec::new();
    let mut quoted = false;
    for (index, byte) in pattern.bytes().enumerate() {
        if std::mem::take(&mut quoted) {
            continue;
        }
        match byte {
            b'\\' => quoted = true,
            b'{' => {
                if depth == 0 {
                    start = index;
                    from = index.saturating_add(1);
                }
                depth = depth.saturating_add(1);
            }
            b',' if depth == 1 => {
                alternatives.push(pattern.get(from..index).unwrap_or_default());
                from = index.saturating_add(1);
            }
            b'}' if depth > 0 => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    alternatives.push(pattern.get(from..index).unwrap_or_default());
                    let before = pattern.get(..start).unwrap_or_default();
                    let after = pattern.get(index.saturating_add(1)..).unwrap_or_default();
                    return Ok(Some((before, alternatives, after)));
                }
            }
            _ => {}
        }
    }
    if depth > 0 { Err(GlobError::OpenBrace) } else { Ok(None) }
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
                    Segment::Literal(pool.add(&name::unescape(component)))
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

/// Quotes what would be special in a pattern.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | '!') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// A component before a glob's own segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix<'a> {
    Name(&'a [u8]),
    AnyName,
}

/// What follows the components that are certain.
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

/// What a glob is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The components that are certain, from `/`.
    pub components: &'a [&'a [u8]],
    pub following: Following<'a>,
    /// Everything below is meant too.
    pub tree: bool,
    /// Trees are searched for floating globs (`**/.env`) only outside the boundary's areas.
    pub floating_counts: bool,
    /// Something is changed: then a directory stands for the protected names in it.
    pub changes: bool,
}

/// How a glob and a subject relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relation {
    /// Whether some of what is meant fits the glob.
    pub touches: Fit,
    /// Whether all of what is meant fits the glob.
    pub covers: bool,
}

impl Relation {
    const NONE: Self = Self { touches: Fit::No, covers: false };
}

/// A glob behind a prefix.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<'a> {
    pub prefix: &'a [Prefix<'a>],
    pub segments: &'a [Segment],
    pub pool: &'a Pool,
}

enum Piece<'a> {
    Many,
    AnyName,
    Name(&'a [u8]),
    Fits(&'a str),
}

impl<'a> Pattern<'a> {
    fn length(&self) -> usize {
        self.prefix.len().saturating_add(self.segments.len())
    }

    fn piece(&self, index: usize) -> Option<Piece<'a>> {
        if let Some(prefix) = self.prefix.get(index) {
            return Some(match prefix {
                Prefix::Name(name) => Piece::Name(name),
                Prefix::AnyName => Piece::AnyName,
            });
        }
        self.segments.get(index.saturating_sub(self.prefix.len())).map(|segment| match segment {
            Segment::Many => Piece::Many,
            Segment::Literal(text) => Piece::Name(self.pool.get(*text).as_bytes()),
            Segment::Pattern(text) => Piece::Fits(self.pool.get(*text)),
        })
    }

    fn is_many(&self, index: usize) -> bool {
        matches!(self.piece(index), Some(Piece::Many))
    }

    /// States in which a `**` may stand for nothing.
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
    fn advance(&self, states: u128, fits: impl Fn(&Piece<'_>) -> bool) -> (u128, u128) {
        let (mut next, mut named) = (0, 0);
        for index in Bits(states) {
            match self.piece(index) {
                Some(Piece::Many) => next |= 1 << index,
                Some(piece) if fits(&piece) => named |= 1_u128 << index.saturating_add(1),
                _ => {}
            }
        }
        (self.closure(next | named), named)
    }

    /// How this glob and the subject relate.
    pub(crate) fn relate(&self, subject: &Subject<'_>) -> Relation {
        let end = self.length();
        if self.prefix.len() > MAXIMUM_PREFIX || self.segments.len() > MAXIMUM_SEGMENTS {
            return Relation { touches: Fit::Maybe, covers: false };
        }
        let exact = !subject.tree && matches!(subject.following, Following::Nothing);
        if exact && end != subject.components.len() && !self.segments.contains(&Segment::Many) {
            return Relation::NONE;
        }
        let mut states = self.closure(1);
        let mut named = if self.is_many(0) { 0 } else { 1 };
        for component in subject.components {
            (states, named) = self.advance(states, |piece| match piece {
                Piece::Many | Piece::AnyName => true,
                Piece::Name(name) => name == component,
                Piece::Fits(pattern) => name::matches(pattern, component),
            });
            if states == 0 {
                return Relation::NONE;
            }
        }
        let holds_all = end > 0 && self.is_many(end.saturating_sub(1)) && states >> end.saturating_sub(1) & 1 == 1;
        match subject.following {
            Following::Nothing if !subject.tree => {
                let fits = states >> end & 1 == 1;
                Relation { touches: Fit::certain(fits), covers: fits }
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
                    Fit::certain(states >> end & 1 == 1)
                };
                Relation { touches, covers: holds_all }
            }
        }
    }

    fn advance_shell(&self, states: u128, shell: &ShellName) -> (u128, u128) {
        let anything = |piece: &Piece<'_>| match piece {
            Piece::Many | Piece::AnyName => true,
            Piece::Fits(pattern) => *pattern == "*",
            Piece::Name(_) => false,
        };
        match shell {
            ShellName::One(tokens) => self.advance(states, |piece| match piece {
                Piece::Many | Piece::AnyName => true,
                Piece::Name(name) => {
                    let name = Tokens::new(&escape(&String::from_utf8_lossy(name)), false);
                    tokens.aims_at(&name) && tokens.overlaps(&name)
                }
                Piece::Fits(pattern) => {
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

    /// Whether names below a directory fit.
    fn below(&self, subject: &Subject<'_>, states: u128, named: u128) -> Fit {
        let end = self.length();
        if states >> end & 1 == 1 {
            return Fit::Yes;
        }
        let floats_from = |from: usize| (from..end.saturating_sub(1)).any(|index| self.is_many(index));
        if !floats_from(0) {
            return Fit::certain(states != 0);
        }
        if subject.floating_counts {
            return if states == 0 { Fit::No } else { Fit::Maybe };
        }
        // `**/.git/hooks/**` and `rm -r .git`: the directory itself was named by the glob.
        let directly =
            subject.changes && Bits(named).any(|index| index > 0 && !floats_from(index) && self.is_exact(index));
        Fit::certain(directly)
    }

    /// Whether the segment before `index` is a name without wildcards. The index knows only those.
    fn is_exact(&self, index: usize) -> bool {
        matches!(self.piece(index.saturating_sub(1)), Some(Piece::Name(_)))
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
    use super::*;

    fn relate(glob: &str, path: &str, shell: Option<&str>, tree: bool, floating_counts: bool) -> Relation {
        let (mut pool, mut segments) = (Pool::default(), List::default());
        let glob = compile(glob, &Base::Workspace, &mut pool, &mut segments).unwrap();
        let prefix: &[Prefix<'_>] = match glob.anchor {
            Anchor::Absolute => &[],
            Anchor::Home => &[Prefix::Name(b"home"), Prefix::AnyName],
            Anchor::Workspace => &[Prefix::Name(b"w")],
        };
        let components: Vec<&[u8]> = path.split('/').filter(|name| !name.is_empty()).map(str::as_bytes).collect();
        let names = shell.map(|shell| ShellName::parse(shell).unwrap());
        Pattern { prefix, segments: &glob.segments.of(&segments), pool: &pool }.relate(&Subject {
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
            assert_eq!((relation.touches, relation.covers), (Fit::certain(fits), fits), "{glob} {path}");
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
            assert_eq!((relation.touches, relation.covers), (Fit::certain(touches), covers), "{glob} {path}");
        }
        // A name that may stand anywhere may stand below a directory that nobody vouches for.
        let outside = relate("**/.env", "/w", None, true, true);
        assert_eq!((outside.touches, outside.covers), (Fit::Maybe, false));
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
            assert_eq!((relation.touches, relation.covers), (Fit::certain(touches), covers), "{glob} {path} {shell}");
        }
    }

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
