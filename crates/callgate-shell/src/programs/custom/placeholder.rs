//! `{}` in the commands of `find`, `fd`, `xargs` and `parallel`.

use crate::word::Word;

/// A word with every `placeholder` replaced by `item`.
pub(super) fn replaced(word: &Word, placeholder: &str, item: &Word) -> Word {
    let Word::Known(text) = word else {
        return word.clone();
    };
    if placeholder.is_empty() || !text.contains(placeholder) {
        return word.clone();
    }
    if text == placeholder {
        return match item {
            // Replaced inside one word, names stay one word.
            Word::Below { directory, names, .. } => {
                Word::Below { directory: directory.clone(), many: false, names: names.clone() }
            }
            other => other.clone(),
        };
    }
    match item {
        Word::Known(known) => Word::Known(text.replace(placeholder, known)),
        _ => {
            let why = format!("what {placeholder} stands for");
            match text.split(placeholder).next() {
                Some(prefix) if !prefix.is_empty() => Word::Partly { prefix: prefix.to_owned(), why, many: false },
                _ => Word::Unknown { why, many: false },
            }
        }
    }
}

/// Whether a word holds the placeholder.
pub(super) fn holds(word: &Word, placeholder: &str) -> bool {
    matches!(word, Word::Known(text) if text.contains(placeholder))
}

/// Whether a shell would take the text as one plain word.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(['-', '~', '='])
        && text.chars().all(|character| {
            character.is_alphanumeric()
                || matches!(character, '_' | '-' | '.' | '/' | ':' | '@' | '%' | '+' | ',' | '=')
        })
}
