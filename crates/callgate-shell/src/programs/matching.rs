//! Globs of tables, and the truth of conditions.

use super::scan::{Given, Scan, is_many};
use super::table::{Atom, Condition, Text, ValueSet, When};
use crate::word::Word;

/// What is known of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    Yes,
    No,
    Maybe,
}

impl From<bool> for Truth {
    fn from(certain: bool) -> Self {
        if certain { Truth::Yes } else { Truth::No }
    }
}

impl std::ops::Not for Truth {
    type Output = Truth;

    fn not(self) -> Truth {
        match self {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Maybe => Truth::Maybe,
        }
    }
}

/// Whether a pattern with `*`, `?` and `[…]` matches the text. Case counts.
pub fn matches_glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return pattern == text;
    }
    let parts = parts(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = text.get(position) {
        match parts.get(at) {
            Some(GlobPart::Star) => {
                star = Some((at, position));
                at += 1;
            }
            Some(part) if part.matches(*character) => {
                at += 1;
                position += 1;
            }
            _ => match star {
                Some((star_at, started)) => {
                    at = star_at + 1;
                    position = started + 1;
                    star = Some((star_at, started + 1));
                }
                None => return false,
            },
        }
    }
    parts.get(at..).unwrap_or_default().iter().all(|part| *part == GlobPart::Star)
}

#[derive(Debug, PartialEq)]
enum GlobPart {
    Star,
    Any,
    Exactly(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl GlobPart {
    fn matches(&self, character: char) -> bool {
        match self {
            GlobPart::Star => false,
            GlobPart::Any => true,
            GlobPart::Exactly(other) => *other == character,
            GlobPart::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *negated
            }
        }
    }
}

fn parts(pattern: &str) -> Vec<GlobPart> {
    let mut found = Vec::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        found.push(match character {
            '*' => GlobPart::Star,
            '?' => GlobPart::Any,
            '[' => match class(rest) {
                Some((part, after)) => {
                    rest = after;
                    part
                }
                None => GlobPart::Exactly('['),
            },
            other => GlobPart::Exactly(other),
        });
    }
    found
}

/// `[a-z]` or `[!a-z]`, behind its bracket; a `]` right behind that is a member.
fn class(text: &str) -> Option<(GlobPart, &str)> {
    let (negated, body) = match text.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, text),
    };
    let first = body.chars().next()?.len_utf8();
    let end = first + body.get(first..)?.find(']')?;
    let members: Vec<char> = body.get(..end)?.chars().collect();
    let mut ranges = Vec::new();
    let mut rest = members.as_slice();
    while let [from, after @ ..] = rest {
        match after {
            ['-', to, behind @ ..] => {
                ranges.push((*from, *to));
                rest = behind;
            }
            _ => {
                ranges.push((*from, *from));
                rest = after;
            }
        }
    }
    Some((GlobPart::Class { negated, ranges }, body.get(end + 1..)?))
}

/// The same without regard to case, except where it decides: `\n` is a line's end, `\N` a letter.
pub(super) fn matches_loosely(pattern: &str, text: &str) -> bool {
    if pattern.contains('\\') {
        return matches_glob(pattern, text);
    }
    matches_glob(&pattern.to_lowercase(), &text.to_lowercase())
}

impl ValueSet {
    /// Whether a word is among the values.
    fn hold(&self, word: &Word) -> Truth {
        let literal = |glob: &Text| !glob.contains(['*', '?', '[']);
        match word {
            Word::Known(text) => self.contain(text).into(),
            Word::Glob(pattern)
                if self.globs.iter().all(literal) && !self.globs.iter().any(|text| may_match(pattern, text)) =>
            {
                self.others.into()
            }
            _ => Truth::Maybe,
        }
    }

    pub(super) fn contain(&self, text: &str) -> bool {
        self.globs.iter().any(|glob| matches_loosely(glob, text)) != self.others
    }
}

/// Whether one of the names that a pattern of the shell stands for may be this text. It may where that is hard to say.
fn may_match(pattern: &str, text: &str) -> bool {
    pattern.contains(['[', '(']) || matches_loosely(&pattern.replace('\\', ""), text)
}

/// The lines that may be the first whose condition holds.
pub(super) fn chosen<'t, T>(lines: &'t [When<T>], scan: &Scan<'_>) -> impl Iterator<Item = &'t T> {
    let mut certain = false;
    lines.iter().filter_map(move |line| {
        if certain {
            return None;
        }
        let truth = truth(&line.condition, scan);
        certain = truth == Truth::Yes;
        (truth != Truth::No).then_some(&line.then)
    })
}

/// Whether a condition holds.
pub(super) fn truth(condition: &Condition, scan: &Scan<'_>) -> Truth {
    truth_at(condition, scan, None)
}

/// The same for a line about one option: its value is the one given there.
pub(super) fn truth_at(condition: &Condition, scan: &Scan<'_>, here: Option<&Given<'_>>) -> Truth {
    // All hold unless one of them does not.
    !any(condition.all.iter().map(|term| {
        let holds = any(term.any.iter().map(|atom| atom_truth(atom, scan, here)));
        if term.negated { holds } else { !holds }
    }))
}

/// Whether one of several holds; looks no further than the first that does for certain.
fn any(truths: impl Iterator<Item = Truth>) -> Truth {
    let mut found = Truth::No;
    for truth in truths {
        match truth {
            Truth::Yes => return Truth::Yes,
            Truth::Maybe => found = Truth::Maybe,
            Truth::No => {}
        }
    }
    found
}

fn atom_truth(atom: &Atom, scan: &Scan<'_>, here: Option<&Given<'_>>) -> Truth {
    match atom {
        Atom::Option(name) => scan.has(name).into(),
        Atom::Value(name, values) => {
            let named = |given: &&Given<'_>| given.form.names.contains(name);
            let here = here.filter(named);
            let all = if here.is_none() { Some(scan.given()) } else { None };
            let Some(level) = scan.level_of(name) else {
                return Truth::No;
            };
            let candidates = here.into_iter().chain(all.into_iter().flatten());
            any(candidates.filter(|given| given.level == level && named(given)).map(|given| {
                crate::work::count(1);
                match given.values.first() {
                    Some((word, _)) => values.hold(word),
                    None => (given.negated && values.contain("false")).into(),
                }
            }))
        }
        Atom::Count(count) => {
            let least = scan.operands.iter().filter(|word| !is_many(word)).count();
            let more = least < *count && scan.operands.iter().any(|word| is_many(word));
            if more { Truth::Maybe } else { (least >= *count).into() }
        }
        Atom::AnyOperand(values) => any(scan.operands.iter().map(|word| {
            crate::work::count(1);
            values.hold(word)
        })),
        Atom::Operand(place, values) => {
            let index = place.saturating_sub(1);
            if scan.operands.iter().take(index).any(|word| is_many(word)) {
                return Truth::Maybe;
            }
            scan.operands.get(index).map_or(Truth::No, |word| values.hold(word))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        let cases = [
            ("create*", "create-bucket", true),
            ("create*", "recreate", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbc", false),
            ("x", "x", true),
            ("[2-7]???", "4755", true),
            ("[2-7]???", "1777", false),
            ("[!/-]*", "out.tar", true),
            ("[!/-]*", "/out.tar", false),
            ("*[[]*", "a[1]", true),
            ("a[", "a[", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches_glob(pattern, text), expected, "{pattern} on {text}");
        }
        assert!(may_match(r"/dev/z\ero*", "/dev/zero") && may_match("/dev/[z]*", "/dev/zero"));
        assert!(!may_match("*.txt", "/dev/zero"));
        assert!(matches_loosely("post", "POST"));
        assert!(matches_loosely(r"\n", r"\n"));
        assert!(!matches_loosely(r"\n", r"\N"));
    }
}
