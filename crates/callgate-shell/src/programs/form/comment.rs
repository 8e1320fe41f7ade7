//! Comments in tables. `build.rs` uses this file, too.

/// Cuts a comment off: `#` at the front, or after two spaces and outside quotes.
pub fn without_comment(text: &str) -> &str {
    if text.starts_with('#') {
        return "";
    }
    let single_quotes = text.starts_with("example ");
    let mut quote = None;
    let mut spaces = 0usize;
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '"' || (character == '\'' && single_quotes) => quote = Some(character),
            None if character == '#' && spaces >= 2 => {
                return text.get(..at).unwrap_or_default().trim_end();
            }
            None => {}
        }
        spaces = if character == ' ' { spaces + 1 } else { 0 };
    }
    text.trim_end()
}
