//! Shell patterns as text: `*`, `?`, `[…]`, extended globs and braces, with `\` in front of what is literal.

use std::borrow::Cow;

/// The characters that mean something in a pattern.
const SPECIAL: [char; 13] = ['*', '?', '[', ']', '\\', '(', ')', '|', '!', '+', '@', '{', '}'];

/// Returns the pattern that matches only `text`.
///
/// ```
/// use callgate_model::glob::escape;
///
/// assert_eq!(escape("notes [draft].md"), r"notes \[draft\].md");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(SPECIAL) {
        return Cow::Borrowed(text);
    }
    let mut pattern = String::with_capacity(text.len().saturating_add(8));
    for character in text.chars() {
        if SPECIAL.contains(&character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    Cow::Owned(pattern)
}

/// Returns the text with which everything starts that `pattern` matches: what stands before its first wildcard, unescaped.
///
/// ```
/// use callgate_model::glob::literal_prefix;
///
/// assert_eq!(literal_prefix(r"src/\[a\]*.rs"), "src/[a]");
/// ```
pub fn literal_prefix(pattern: &str) -> String {
    let mut prefix = String::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => prefix.extend(characters.next()),
            '*' | '?' | '[' => break,
            '@' | '+' | '!' if characters.peek() == Some(&'(') => break,
            _ => prefix.push(character),
        }
    }
    prefix
}
