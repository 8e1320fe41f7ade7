//! Shell patterns as paths: their fixed part, and whether a link among what they match leads astray.

use std::path::{Path, PathBuf};

use super::file_system::{Entry, FileSystem};
use super::resolve::{ResolveError, resolve};

/// How many directory entries are looked at for one pattern.
const MAXIMUM_ENTRIES: usize = 2048;
/// The longest component that is matched; beyond it, it is taken to match.
const MAXIMUM_COMPONENT: usize = 255;

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

fn unescape(component: &str) -> String {
    let mut text = String::with_capacity(component.len());
    let mut characters = component.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    text
}

/// One element of a component.
enum Element {
    Any,
    One,
    Character(char),
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
            // a set is taken to match any one character
            '[' => match characters.as_str().get(1..).and_then(|rest| rest.split_once(']')) {
                Some((_, rest)) if !component.contains("[:") => {
                    characters = rest.chars();
                    Element::One
                }
                _ => return true,
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
            ("[ab]x", "zx", true),
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
