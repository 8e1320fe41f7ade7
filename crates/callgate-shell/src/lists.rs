//! Lists of words, written as one text.

/// Whether `list`, words with one space between them, contains `word`.
pub(crate) fn listed(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|other| other == word)
}
