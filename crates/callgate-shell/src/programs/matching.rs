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

/// Whether `*` and `?` in the pattern match the text; upper and lower case are the same only
/// where [`matches_loosely`] is used.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return pattern == text;
    }
    let parts = parts(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = text.get(position) {
        match parts.get(at) {
            Some(Part::Star) => {
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
    parts.get(at..).unwrap_or_default().iter().all(|part| *part == Part::Star)
}

#[derive(Debug, PartialEq)]
enum Part {
    Star,
    Any,
    Exactly(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Part {
    fn matches(&self, character: char) -> bool {
        match self {
            Part::Star => false,
            Part::Any => true,
            Part::Exactly(other) => *other == character,
            Part::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *negated
            }
        }
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        found.push(match character {
            '*' => Part::Star,
            '?' => Part::Any,
            '[' => match class(rest) {
                Some((part, after)) => {
                    rest = after;
                    part
                }
                None => Part::Exactly('['),
            },
            other => Part::Exactly(other),
        });
    }
    found
}

/// `[a-z]` or `[!a-z]`, behind its bracket; a `]` right behind that is a member.
fn class(text: &str) -> Option<(Part, &str)> {
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
    Some((Part::Class { negated, ranges }, body.get(end + 1..)?))
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
            Word::Known(text) if self.contain(text) => Truth::Yes,
            Word::Known(_) => Truth::No,
            Word::Glob(pattern)
                if self.globs.iter().all(literal) && !self.globs.iter().any(|text| may_match(pattern, text)) =>
            {
                if self.others { Truth::Yes } else { Truth::No }
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
    let mut all = Truth::Yes;
    for term in &condition.all {
        let mut any = Truth::No;
        for atom in &term.any {
            match atom_truth(atom, scan, here) {
                Truth::Yes => {
                    any = Truth::Yes;
                    break;
                }
                Truth::Maybe => any = Truth::Maybe,
                Truth::No => {}
            }
        }
        let holds = match (any, term.negated) {
            (Truth::Maybe, _) => Truth::Maybe,
            (Truth::Yes, false) | (Truth::No, true) => Truth::Yes,
            _ => Truth::No,
        };
        match holds {
            Truth::No => return Truth::No,
            Truth::Maybe => all = Truth::Maybe,
            Truth::Yes => {}
        }
    }
    all
}

fn atom_truth(atom: &Atom, scan: &Scan<'_>, here: Option<&Given<'_>>) -> Truth {
    match atom {
        Atom::Option(name) => {
            if scan.has(name) {
                Truth::Yes
            } else {
                Truth::No
            }
        }
        Atom::Value(name, values) => {
            let mut found = Truth::No;
            let named = |given: &&Given<'_>| given.form.names.contains(name);
            let here = here.filter(named);
            let all = if here.is_none() { Some(scan.given()) } else { None };
            let Some(level) = scan.level_of(name) else {
                return Truth::No;
            };
            let candidates = here.into_iter().chain(all.into_iter().flatten());
            for given in candidates.filter(|given| given.level == level && named(given)) {
                crate::work::count(1);
                match given.values.first().map(|(word, _)| word.as_ref()) {
                    Some(word) => match values.hold(word) {
                        Truth::Yes => return Truth::Yes,
                        Truth::Maybe => found = Truth::Maybe,
                        Truth::No => {}
                    },
                    None if given.negated && values.contain("false") => return Truth::Yes,
                    None => {}
                }
            }
            found
        }
        Atom::Count(count) => {
            let least = scan.operands.iter().filter(|word| !is_many(word)).count();
            if least >= *count {
                Truth::Yes
            } else if scan.operands.iter().any(|word| is_many(word)) {
                Truth::Maybe
            } else {
                Truth::No
            }
        }
        Atom::AnyOperand(values) => {
            let mut found = Truth::No;
            for word in &scan.operands {
                crate::work::count(1);
                match values.hold(word) {
                    Truth::Yes => return Truth::Yes,
                    Truth::Maybe => found = Truth::Maybe,
                    Truth::No => {}
                }
            }
            found
        }
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
