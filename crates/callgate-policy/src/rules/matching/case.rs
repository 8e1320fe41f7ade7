//! Names in which upper and lower case are the same, as some file systems compare them.

use std::borrow::Cow;

/// The form that all spellings of a name share on a file system that folds case.
///
/// Such file systems also ignore characters without a shape, and fold a few letters outside ASCII into it (`ſ` is an `s`).
pub(crate) fn fold(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.is_ascii() {
        let text = String::from_utf8_lossy(name);
        let shaped = text.chars().filter(|character| !is_ignored(*character));
        let folded: String = shaped.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
        return Cow::Owned(folded.into_bytes());
    }
    if name.iter().any(u8::is_ascii_uppercase) {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    Cow::Borrowed(name)
}

fn is_ignored(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_are_equal() {
        for (left, right) in
            [(".CLAUDE", ".claude"), (".\u{17f}sh", ".ssh"), ("\u{212a}ey", "key"), (".g\u{200c}it", ".git")]
        {
            assert_eq!(fold(left.as_bytes()), fold(right.as_bytes()), "{left} {right}");
        }
        assert_ne!(fold(b"a"), fold(b"b"));
    }
}
