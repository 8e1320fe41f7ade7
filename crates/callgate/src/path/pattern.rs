//! Shell patterns as paths: their fixed part, and whether a link among what they match leads astray.

use std::path::{Path, PathBuf};

use callgate_model::glob::unescape;

use super::file_system::{Entry, FileSystem};
use super::resolve::{ResolveError, resolve};

/// How many directory entries are looked at for one pattern.
const MAXIMUM_ENTRIES: usize = 2048;
/// How many names a pattern may stand for before it is judged as a pattern.
const MAXIMUM_MATCHES: usize = 256;
/// The longest component that is matched; beyond it, it is taken to match.
const MAXIMUM_COMPONENT: usize = 255;

/// Whether names that start with a dot are matched by a pattern that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// As the shell does.
    LeftOut,
    /// As after `shopt -s dotglob`.
    Matched,
}

/// A pattern taken apart: `/ws/src/*/x` is `/ws/src` and `*/x`.
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

    /// Whether some component behind the fixed part is, or may match, `..`.
    pub(super) fn may_go_up(&self) -> bool {
        self.rest.iter().any(|component| {
            let literal_dot = component.contains('.') && (component.starts_with('.') || component.contains(['(', '[']));
            literal_dot && may_match(component, "..")
        })
    }

    /// The names that the pattern matches now; `None` if there are none, too many, or it cannot be told.
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
                // what cannot be resolved cannot be looked into by the shell either
                let Ok(real) = resolve(file_system, &directory) else {
                    continue;
                };
                if !is_special(component) {
                    let path = directory.join(unescape(component));
                    if file_system.look(&real.join(unescape(component))) != Entry::Missing {
                        next.push(path);
                    }
                    continue;
                }
                let Some(names) = file_system.names(&real, left) else {
                    match file_system.look(&real) {
                        Entry::Missing | Entry::Other => continue,
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

    /// Looks for a link among what the pattern matches that leads to a place which is not `inside`.
    ///
    /// `resolved` is where the fixed part lies. Behind `**` no link is followed (no program does), and it is looked into one
    /// level only; names at the very end are followed only if `contents` are touched, not if they are only listed.
    pub(super) fn check_links(
        &self,
        file_system: &dyn FileSystem,
        resolved: &Path,
        contents: bool,
        inside: &dyn Fn(&Path) -> bool,
    ) -> Result<(), ResolveError> {
        const ASTRAY: ResolveError = ResolveError::Ambiguous("the pattern matches a link that leads out");
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
                    Entry::Directory if !self.rest.contains(&"**") => {
                        return Err(ResolveError::Ambiguous("the pattern matches too much to look at"));
                    }
                    _ => continue,
                }
            };
            left = left.saturating_sub(names.len());
            let matching = names.iter().filter(|name| name.to_str().is_none_or(|name| may_match(component, name)));
            for name in matching {
                let path = directory.join(name);
                match file_system.look(&path) {
                    Entry::Link(_) if any_depth && !after.is_empty() => {}
                    Entry::Link(_) if after.is_empty() && !contents => {}
                    Entry::Link(_) => {
                        let target = resolve(file_system, &path)?;
                        if !inside(&target) {
                            return Err(ASTRAY);
                        }
                        waiting.push((target, after, true));
                    }
                    Entry::Directory if any_depth => {
                        if may_descend && !after.is_empty() {
                            waiting.push((path, after, false));
                        }
                    }
                    Entry::Directory => waiting.push((path, after, true)),
                    Entry::Missing | Entry::Other | Entry::Unreadable(_) => {}
                }
            }
        }
        Ok(())
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

/// One element of a component.
enum Element {
    Any,
    One,
    Character(char),
    Set { ranges: Vec<(char, char)>, negated: bool },
}

/// A set from behind its `[`, and what follows it; `None` if it is one that is not read.
fn set(text: &str) -> Option<(Element, &str)> {
    let (negated, body) = match text.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, text),
    };
    // a `]` right at the start stands for itself
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
    Some((Element::Set { ranges, negated }, body.get(end.checked_add(1)?..)?))
}

/// Whether a component can match a name. Says yes where it does not understand the component.
fn may_match(component: &str, name: &str) -> bool {
    if component.len() > MAXIMUM_COMPONENT || component.contains('(') {
        return true;
    }
    let mut elements = Vec::with_capacity(component.len());
    let mut characters = component.chars();
    while let Some(character) = characters.next() {
        elements.push(match character {
            '*' => Element::Any,
            '?' => Element::One,
            '[' => match set(characters.as_str()) {
                Some((element, rest)) => {
                    characters = rest.chars();
                    element
                }
                None => return true,
            },
            '\\' => characters.next().map_or(Element::One, Element::Character),
            other => Element::Character(other),
        });
    }
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut position) = (0_usize, 0_usize);
    let mut restart: Option<(usize, usize)> = None;
    while let Some(character) = name.get(position) {
        let fits = match elements.get(at) {
            Some(Element::Any) => {
                at = at.saturating_add(1);
                restart = Some((at, position));
                continue;
            }
            Some(Element::One) => true,
            Some(Element::Character(expected)) => expected == character,
            Some(Element::Set { ranges, negated }) => {
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
    elements.iter().skip(at).all(|element| matches!(element, Element::Any))
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
