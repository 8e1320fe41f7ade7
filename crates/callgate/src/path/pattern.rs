//! Shell patterns as paths: their fixed part, their matches, and symlinks among the matches that lead outside.

use std::path::{Path, PathBuf};

use callgate_model::glob::unescape;

use super::file_system::{FileSystem, PathEntry};
use super::resolve::{ResolveError, resolve};

/// The maximum number of directory entries to read for one pattern.
const MAXIMUM_ENTRIES: usize = 2048;
/// With more matches, a pattern is judged as a pattern.
const MAXIMUM_MATCHES: usize = 256;
/// The longest component that is matched. A longer one counts as a match.
const MAXIMUM_COMPONENT: usize = 255;

/// Whether wildcards match names that start with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// As the shell does.
    LeftOut,
    /// As after `shopt -s dotglob`.
    Matched,
}

/// A pattern in two parts: `/ws/src/*/x` is `/ws/src` and `*/x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern<'a> {
    /// The directories before the first special character, escapes removed.
    pub fixed: PathBuf,
    /// The components after it.
    pub rest: Vec<&'a str>,
}

impl<'a> Pattern<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let mut fixed = PathBuf::new();
        if text.starts_with('/') {
            fixed.push("/");
        }
        let mut components = text.split('/').filter(|component| !component.is_empty()).peekable();
        while let Some(component) = components.next_if(|component| !is_special(component)) {
            fixed.push(unescape(component));
        }
        Pattern { fixed, rest: components.collect() }
    }

    /// Whether a component after the fixed part may match `..`.
    pub(super) fn may_go_up(&self) -> bool {
        self.rest.iter().any(|component| {
            let literal_dot = component.contains('.') && (component.starts_with('.') || component.contains(['(', '[']));
            literal_dot && may_match(component, "..")
        })
    }

    /// The names that the pattern matches now; `None` if there are none, too many, or an unknown number.
    ///
    /// `from` is the fixed part as named. Names that start with a dot are left out as a shell does, unless `hidden`.
    pub(super) fn matches(&self, file_system: &dyn FileSystem, from: &Path, hidden: Hidden) -> Option<Vec<PathBuf>> {
        if self.rest.contains(&"**") || self.may_go_up() {
            return None;
        }
        let mut left = MAXIMUM_ENTRIES;
        let mut current = vec![from.to_path_buf()];
        for component in &self.rest {
            let mut next = Vec::new();
            for directory in current {
                // the shell cannot read a directory that cannot be resolved either
                let Ok(real) = resolve(file_system, &directory) else {
                    continue;
                };
                if !is_special(component) {
                    let path = directory.join(unescape(component));
                    if file_system.look(&real.join(unescape(component))) != PathEntry::Missing {
                        next.push(path);
                    }
                    continue;
                }
                let Some(names) = file_system.names(&real, left) else {
                    match file_system.look(&real) {
                        PathEntry::Missing | PathEntry::Other => continue,
                        _ => return None,
                    }
                };
                left = left.saturating_sub(names.len());
                for name in names {
                    let text = name.to_str()?;
                    let shown = !text.starts_with('.') || component.starts_with('.') || hidden == Hidden::Matched;
                    if shown && may_match(component, text) {
                        next.push(directory.join(text));
                    }
                }
            }
            if next.len() > MAXIMUM_MATCHES {
                return None;
            }
            current = next;
        }
        Some(current).filter(|matches| !matches.is_empty())
    }

    /// Fails if the pattern matches a symlink that leads to a place that is not `inside`.
    ///
    /// `resolved` is the resolved fixed part. After `**` no symlink is followed (no program does), and only one level is
    /// searched. Symlinks at the end are followed only if `contents` are touched, not if names are only listed.
    pub(super) fn check_links(
        &self,
        file_system: &dyn FileSystem,
        resolved: &Path,
        contents: bool,
        inside: &dyn Fn(&Path) -> bool,
    ) -> Result<(), ResolveError> {
        const ASTRAY: ResolveError = ResolveError::Ambiguous("the pattern matches a symlink that leads outside");
        let mut left = MAXIMUM_ENTRIES;
        let mut waiting = vec![(resolved.to_path_buf(), self.rest.as_slice(), true)];
        while let Some((directory, components, may_descend)) = waiting.pop() {
            let Some((component, after)) = components.split_first() else {
                continue;
            };
            let any_depth = *component == "**";
            if any_depth && !after.is_empty() {
                waiting.push((directory.clone(), after, true));
            }
            let Some(names) = file_system.names(&directory, left) else {
                match file_system.look(&directory) {
                    PathEntry::Directory if !self.rest.contains(&"**") => {
                        return Err(ResolveError::Ambiguous("the pattern matches too many files to check"));
                    }
                    _ => continue,
                }
            };
            left = left.saturating_sub(names.len());
            let matching = names.iter().filter(|name| name.to_str().is_none_or(|name| may_match(component, name)));
            for name in matching {
                let path = directory.join(name);
                match file_system.look(&path) {
                    PathEntry::Link(_) if any_depth && !after.is_empty() => {}
                    PathEntry::Link(_) if after.is_empty() && !contents => {}
                    PathEntry::Link(_) => {
                        let target = resolve(file_system, &path)?;
                        if !inside(&target) {
                            return Err(ASTRAY);
                        }
                        waiting.push((target, after, true));
                    }
                    PathEntry::Directory if any_depth => {
                        if may_descend && !after.is_empty() {
                            waiting.push((path, after, false));
                        }
                    }
                    PathEntry::Directory => waiting.push((path, after, true)),
                    PathEntry::Missing | PathEntry::Other | PathEntry::Unreadable(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// A pattern below a directory, in which `**` stands for any number of components.
#[derive(Debug)]
pub(crate) struct DeepPattern<'a>(Vec<&'a str>);

impl<'a> DeepPattern<'a> {
    pub(crate) fn new(pattern: &'a str) -> Self {
        DeepPattern(pattern.split('/').filter(|component| !matches!(*component, "" | ".")).collect())
    }

    /// Whether the pattern can match a relative path. Names that start with a dot are like others, as some tools have it.
    pub(crate) fn may_match(&self, path: &Path) -> bool {
        let mut reached = vec![false; self.0.len().saturating_add(1)];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        self.skip_empty(&mut reached);
        for name in path.components() {
            let name = name.as_os_str().to_str();
            let mut next = vec![false; reached.len()];
            for ((at, component), _) in self.0.iter().enumerate().zip(&reached).filter(|(_, reached)| **reached) {
                let stays = *component == "**";
                let target = if stays { at } else { at.saturating_add(1) };
                if let Some(slot) =
                    next.get_mut(target).filter(|_| stays || name.is_none_or(|name| may_match(component, name)))
                {
                    *slot = true;
                }
            }
            self.skip_empty(&mut next);
            reached = next;
        }
        reached.last() == Some(&true)
    }

    /// `**` may stand for no component at all.
    fn skip_empty(&self, reached: &mut [bool]) {
        for (at, component) in self.0.iter().enumerate() {
            if *component == "**" && reached.get(at) == Some(&true) {
                reached.iter_mut().skip(at.saturating_add(1)).take(1).for_each(|slot| *slot = true);
            }
        }
    }
}

fn is_special(component: &str) -> bool {
    let mut characters = component.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '*' | '?' | '[' | '(' => return true,
            _ => {}
        }
    }
    false
}

/// One element of a pattern component.
enum PatternElement {
    Any,
    One,
    Character(char),
    Set { ranges: Vec<(char, char)>, negated: bool },
}

/// Reads a set after its `[`. Returns it and what follows; `None` if it is unsupported.
fn set(text: &str) -> Option<(PatternElement, &str)> {
    let (negated, body) = match text.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, text),
    };
    // a `]` at the start is literal
    let first = body.chars().next()?.len_utf8();
    let end = first.checked_add(body.get(first..)?.find(']')?)?;
    let inside = body.get(..end)?;
    if inside.contains(['[', '\\']) {
        return None;
    }
    let mut ranges = Vec::new();
    let mut characters = inside.chars().peekable();
    while let Some(from) = characters.next() {
        let mut ahead = characters.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) => {
                ranges.push((from, to));
                characters = ahead;
            }
            _ => ranges.push((from, from)),
        }
    }
    Some((PatternElement::Set { ranges, negated }, body.get(end.checked_add(1)?..)?))
}

/// Whether a component can match a name. Unsupported components match everything.
pub(crate) fn may_match(component: &str, name: &str) -> bool {
    if component.len() > MAXIMUM_COMPONENT || component.contains('(') {
        return true;
    }
    let mut elements = Vec::with_capacity(component.len());
    let mut characters = component.chars();
    while let Some(character) = characters.next() {
        elements.push(match character {
            '*' => PatternElement::Any,
            '?' => PatternElement::One,
            '[' => match set(characters.as_str()) {
                Some((element, rest)) => {
                    characters = rest.chars();
                    element
                }
                None => return true,
            },
            '\\' => characters.next().map_or(PatternElement::One, PatternElement::Character),
            other => PatternElement::Character(other),
        });
    }
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut position) = (0_usize, 0_usize);
    let mut restart: Option<(usize, usize)> = None;
    while let Some(character) = name.get(position) {
        let fits = match elements.get(at) {
            Some(PatternElement::Any) => {
                at = at.saturating_add(1);
                restart = Some((at, position));
                continue;
            }
            Some(PatternElement::One) => true,
            Some(PatternElement::Character(expected)) => expected == character,
            Some(PatternElement::Set { ranges, negated }) => {
                ranges.iter().any(|(from, to)| (from..=to).contains(&character)) != *negated
            }
            None => false,
        };
        if fits {
            at = at.saturating_add(1);
            position = position.saturating_add(1);
        } else if let Some((element, from)) = restart {
            let from = from.saturating_add(1);
            restart = Some((element, from));
            at = element;
            position = from;
        } else {
            return false;
        }
    }
    elements.iter().skip(at).all(|element| matches!(element, PatternElement::Any))
}

#[cfg(test)]
mod tests {
    use super::super::file_system::fake::Fake;
    use super::*;

    #[test]
    fn the_fixed_part_ends_before_the_first_special_character() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("/ws/src/*.rs", "/ws/src", &["*.rs"]),
            ("/ws/a\\*b/c?/d", "/ws/a*b", &["c?", "d"]),
            ("/ws/**/x", "/ws", &["**", "x"]),
            ("/ws/x[ab]", "/ws", &["x[ab]"]),
            ("/ws/@(a|b)/c", "/ws", &["@(a|b)", "c"]),
            ("/*", "/", &["*"]),
            ("src/*", "src", &["*"]),
        ];
        for (text, fixed, rest) in cases {
            let pattern = Pattern::parse(text);
            assert_eq!((pattern.fixed.as_path(), pattern.rest.as_slice()), (Path::new(fixed), *rest), "{text}");
        }
    }

    #[test]
    fn patterns_reach_any_depth() {
        for (pattern, path, fits) in [
            ("**/*", ".env", true),
            ("**/*", "a/b/.env", true),
            ("*.rs", "a.rs", true),
            ("*.rs", "src/a.rs", false),
            ("**/*.rs", "a.rs", true),
            ("src/**", "src/a/b", true),
            ("src/**", "lib/a", false),
            ("a/**/b/*", "a/x/y/b/c", true),
            ("a/**/b/*", "a/b", false),
        ] {
            assert_eq!(DeepPattern::new(pattern).may_match(Path::new(path)), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn patterns_that_may_go_up_are_seen() {
        for text in ["/ws/*/../x", "/ws/*/.*", "/ws/*/.?/x", "/ws/x*/@(..)/y", "/ws/?/[.]."] {
            assert!(Pattern::parse(text).may_go_up(), "{text}");
        }
        for text in ["/ws/*", "/ws/.env*", "/ws/**/*.rs", "/ws/??", "/ws/../*", "/ws/@(a|b)"] {
            assert!(!Pattern::parse(text).may_go_up(), "{text}");
        }
    }

    #[test]
    fn matching_errs_on_the_side_of_yes() {
        let cases: &[(&str, &str, bool)] = &[
            ("*.rs", "main.rs", true),
            ("*.rs", "main.py", false),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("?", "ab", false),
            ("[ab]x", "bx", true),
            ("[ab]x", "zx", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "zx", true),
            ("[a-]x", "-x", true),
            ("[ab", "zz", true),
            ("[]x]y", "]y", true),
            ("[[:alpha:]]", "long", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("+(a)", "zzz", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(may_match(pattern, name), *expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_stand_for_the_names_that_are_there() {
        let file_system =
            Fake::new().file("/ws/a.rs").file("/ws/.env").file("/ws/src/b.rs").link("/ws/l.rs", "/etc/passwd");
        let matches = |text: &str, hidden: Hidden| {
            let pattern = Pattern::parse(text);
            let fixed = pattern.fixed.clone();
            let found = pattern.matches(&file_system, &fixed, hidden)?;
            Some(found.iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let owned = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(matches("/ws/*.rs", Hidden::LeftOut), owned(&["/ws/a.rs", "/ws/l.rs"]));
        assert_eq!(matches("/ws/*", Hidden::LeftOut), owned(&["/ws/a.rs", "/ws/l.rs", "/ws/src"]));
        assert_eq!(matches("/ws/*", Hidden::Matched), owned(&["/ws/.env", "/ws/a.rs", "/ws/l.rs", "/ws/src"]));
        assert_eq!(matches("/ws/.e*", Hidden::LeftOut), owned(&["/ws/.env"]));
        assert_eq!(matches("/ws/s*/b.rs", Hidden::LeftOut), owned(&["/ws/src/b.rs"]));
        for text in ["/ws/*.py", "/ws/**/*.rs", "/ws/*/../x", "/nowhere/*"] {
            assert_eq!(matches(text, Hidden::LeftOut), None, "{text}");
        }
    }

    #[test]
    fn a_link_among_the_matches_that_leads_out_is_found() {
        let file_system = Fake::new()
            .file("/ws/a.txt")
            .link("/ws/notes.md", "/etc/passwd")
            .link("/ws/out", "/etc")
            .link("/ws/in", "src")
            .file("/ws/src/b.txt")
            .link("/ws/src/deep.md", "/etc/passwd")
            .file("/etc/passwd");
        let inside = |path: &Path| path.starts_with("/ws");
        let check = |text: &str, contents: bool| {
            let pattern = Pattern::parse(text);
            let fixed = pattern.fixed.clone();
            pattern.check_links(&file_system, &fixed, contents, &inside)
        };
        assert_eq!(check("/ws/*.txt", true), Ok(()));
        assert!(check("/ws/*.md", true).is_err());
        assert_eq!(check("/ws/*.md", false), Ok(()));
        assert!(check("/ws/o*/passwd", false).is_err());
        assert!(check("/ws/*/*.md", true).is_err());
        assert_eq!(check("/ws/i*/b.txt", true), Ok(()));
        assert!(check("/ws/**/*.md", true).is_err());
        assert_eq!(check("/ws/**/*.txt", true), Ok(()));
        assert_eq!(check("/ws/none*/x", true), Ok(()));
    }
}
