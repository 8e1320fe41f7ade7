//! Patterns for the output of programs inside words.

pub use callgate_model::word::{ListedNames, Word};

/// The pattern of a number that a program prints. It may be empty, because programs fail.
pub(crate) const DIGITS: &str = "*([0-9])";

/// The same for a number that may be negative.
pub(crate) const INTEGER: &str = "?(-)*([0-9])";

/// Whether a pattern only matches numbers, or nothing.
pub(crate) fn is_number(pattern: &str) -> bool {
    matches!(pattern, DIGITS | INTEGER)
}

/// One plain word that a program printed, between quotes: exactly one word, though it may be empty.
pub(crate) const PLAIN: &str = "*([!/])";

/// Makes a pattern of file names, in which the output of a program may be anything.
pub(crate) fn file_pattern(pattern: &str) -> String {
    pattern.replace(INTEGER, "*").replace(DIGITS, "*").replace(PLAIN, "*")
}

/// Replaces unknown numbers in a pattern by a number; `None` if anything else in it is unknown.
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
