//! Shell patterns as text: `*`, `?`, `[…]`, extended globs and braces, with `\` in front of what is literal.

use std::borrow::Cow;

/// The characters with a special meaning in patterns.
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

/// Returns the text that a pattern without wildcards matches.
///
/// ```
/// use callgate_model::glob::{escape, unescape};
///
/// assert_eq!(unescape(&escape("a*b")), "a*b");
/// ```
pub fn unescape(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    text
}

/// Returns the text before the first wildcard of `pattern`, unescaped. Every match starts with it.
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

/// What braces without a comma mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoneBraces {
    /// Themselves, as in a shell: `{a}` is `{a}`.
    Kept,
    /// Only what is between them, as in policies: `{a}` is `a`.
    Dropped,
}

/// Why braces cannot be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BraceError {
    /// A brace is not closed.
    Unclosed,
    /// There are more alternatives than allowed.
    TooMany,
}

/// Expands `{a,b}`, nested ones too, into at most about `most` patterns, in the order in which they are written.
///
/// ```
/// use callgate_model::glob::{LoneBraces, expand_braces};
///
/// assert_eq!(expand_braces("a{b,c{d,e}}f", 256, LoneBraces::Kept).unwrap(), ["abf", "acdf", "acef"]);
/// ```
pub fn expand_braces(pattern: &str, most: usize, lone: LoneBraces) -> Result<Vec<String>, BraceError> {
    // Most patterns have none, and policies have thousands of patterns.
    if !pattern.bytes().any(|byte| matches!(byte, b'{' | b'}' | b'\\')) {
        return Ok(vec![pattern.to_owned()]);
    }
    let mut done = Vec::new();
    let mut waiting = vec![pattern.to_owned()];
    while let Some(text) = waiting.pop() {
        if done.len().saturating_add(waiting.len()) > most {
            return Err(BraceError::TooMany);
        }
        let Some(bounds) = first_group(&text, lone)? else {
            done.push(text);
            continue;
        };
        let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let (Some(start), Some(end)) = (bounds.first(), bounds.last()) else { continue };
        let (before, after) = (piece(0, *start), piece(end.saturating_add(1), text.len()));
        // In reverse, because the last one is taken first.
        for bounds in bounds.windows(2).rev() {
            if let [from, to] = bounds {
                waiting.push([before, piece(from.saturating_add(1), *to), after].concat());
            }
        }
    }
    Ok(done)
}

/// Finds the group that starts first. Returns the positions of its `{`, its commas and its `}`.
fn first_group(text: &str, lone: LoneBraces) -> Result<Option<Vec<usize>>, BraceError> {
    let mut open: Vec<Vec<usize>> = Vec::new();
    let mut first: Option<Vec<usize>> = None;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (byte, open.last_mut()) {
            (b'\\', _) => {
                bytes.next();
            }
            (b'{', _) => open.push(vec![at]),
            (b',', Some(group)) => group.push(at),
            (b'}', Some(_)) => {
                let mut group = open.pop().unwrap_or_default();
                let is_group = group.len() > 1 || lone == LoneBraces::Dropped;
                group.push(at);
                if is_group && first.as_ref().is_none_or(|other| group.first() < other.first()) {
                    first = Some(group);
                }
            }
            _ => {}
        }
    }
    if open.is_empty() { Ok(first) } else { Err(BraceError::Unclosed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_mean_their_alternatives() {
        let cases: &[(&str, &[&str])] = &[
            ("a", &["a"]),
            ("/dev/{null,zero}", &["/dev/null", "/dev/zero"]),
            ("{a,b}{c,d}", &["ac", "ad", "bc", "bd"]),
            ("x{a,{b,c}}", &["xa", "xb", "xc"]),
            ("{,a}x", &["x", "ax"]),
            ("{single}", &["{single}"]),
            ("{x{a,b}}", &["{xa}", "{xb}"]),
            ("\\{a,b\\}", &["\\{a,b\\}"]),
            ("\\é{a,b}", &["\\éa", "\\éb"]),
            ("a}b", &["a}b"]),
        ];
        for (pattern, expected) in cases {
            assert_eq!(expand_braces(pattern, 256, LoneBraces::Kept).unwrap(), *expected, "{pattern}");
        }
        assert_eq!(expand_braces("{single}{x{a,b}}", 256, LoneBraces::Dropped).unwrap(), ["singlexa", "singlexb"]);
    }

    #[test]
    fn too_many_alternatives_and_unclosed_braces_are_errors() {
        for lone in [LoneBraces::Kept, LoneBraces::Dropped] {
            assert_eq!(expand_braces(&"{a,b}".repeat(20), 256, lone), Err(BraceError::TooMany));
            assert_eq!(expand_braces("{a,b", 256, lone), Err(BraceError::Unclosed));
            assert_eq!(expand_braces("a\\{b", 256, lone).unwrap(), ["a\\{b"]);
            assert_eq!(expand_braces(&"{".repeat(100_000), 256, lone), Err(BraceError::Unclosed));
        }
    }
}
