//! Lists of words, written as one text.

/// Whether `list`, words with white space between them, contains `word`.
pub(crate) fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}
