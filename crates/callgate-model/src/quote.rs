//! Quoting for a POSIX shell.

use std::borrow::Cow;

/// Quotes `word` so that a shell takes it literally. A word of plain characters stays as it is.
///
/// ```
/// use callgate_model::quote::shell_word;
///
/// assert_eq!(shell_word("src/main.rs"), "src/main.rs");
/// assert_eq!(shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(word: &str) -> Cow<'_, str> {
    if is_plain(word) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Joins words into one command line, quoting where needed.
pub fn shell_words<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| shell_word(word.as_ref()).into_owned()).collect();
    quoted.join(" ")
}

/// Whether a shell takes `word` literally without quotes, wherever it stands in a command.
fn is_plain(word: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'@' | b'+' | b'%')
    };
    !word.is_empty() && word.bytes().all(plain)
}
