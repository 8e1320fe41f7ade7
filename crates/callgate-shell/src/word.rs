//! Patterns for the output of programs inside words.

pub use callgate_model::word::Word;

/// A number that a program printed, as a pattern: nothing else fits. It may be missing, since programs fail.
pub(crate) const DIGITS: &str = "*([0-9])";

/// The same with a dash in front of what is below zero.
pub(crate) const INTEGER: &str = "?(-)*([0-9])";

/// Whether what fits a pattern is a number, or nothing.
pub(crate) fn is_number(pattern: &str) -> bool {
    matches!(pattern, DIGITS | INTEGER)
}

/// One plain word that a program printed, between quotes: exactly one word, though it may be empty.
pub(crate) const PLAIN: &str = "*([!/])";

/// The pattern as names of files: what programs printed may be any of them.
pub(crate) fn file_pattern(pattern: &str) -> String {
    pattern.replace(INTEGER, "*").replace(DIGITS, "*").replace(PLAIN, "*")
}

/// Text in which only numbers are not known, with some number in their place; `None`: the pattern is another one.
pub(crate) fn with_some_numbers(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(INTEGER).or_else(|| rest.strip_prefix(DIGITS)) {
            text.push('1');
            rest = after;
            continue;
        }
        let (character, after) = match first {
            '\\' => {
                let mut escaped = rest.chars();
                escaped.next();
                (escaped.next()?, escaped.as_str())
            }
            '*' | '?' | '[' | '(' | ')' | '|' => return None,
            _ => (first, rest.get(first.len_utf8()..)?),
        };
        text.push(character);
        rest = after;
    }
    Some(text)
}
