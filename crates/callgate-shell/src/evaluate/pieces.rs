//! Partly expanded words: quoted and unquoted text, and the unknown pieces between.

use super::state::Value;
use crate::stream::Stream;
use crate::word::{INTEGER, ListedNames, Word};
use callgate_model::glob::escape;
use std::borrow::Cow;
use std::sync::Arc;

/// A piece of a word after expansion.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Text. Wildcards in it count unless it is quoted.
    Text { text: String, quoted: bool },
    /// A pattern whose names a variable holds.
    Pattern { pattern: Arc<str>, quoted: bool },
    /// A path at or below a directory.
    Below { directory: Arc<str>, many: bool, names: ListedNames },
    /// A whole number.
    Number,
    /// Not known.
    Unknown { why: Arc<str>, many: bool },
}

/// A word that is being expanded. Without pieces it is the empty word.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Field {
    pub pieces: Vec<Piece>,
    /// Quotes make even an empty word count.
    pub quoted: bool,
}

impl Field {
    pub fn push_text(&mut self, text: &str, quoted: bool) {
        self.quoted |= quoted;
        match self.pieces.last_mut() {
            Some(Piece::Text { text: last, quoted: same }) if *same == quoted => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece::Text { text: text.to_owned(), quoted }),
        }
    }

    /// The whole text, if it is certain; quotes make no difference.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if let [Piece::Text { text, .. }] = self.pieces.as_slice() {
            return Some(Cow::Borrowed(text));
        }
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text { text, .. } => whole.push_str(text),
                _ => return None,
            }
        }
        Some(Cow::Owned(whole))
    }

    /// What a program reads if this is its input, followed by `end`.
    pub fn stream(&self, end: &str) -> Stream {
        self.text().map_or(Stream::Unknown, |text| Stream::Text(text.into_owned() + end))
    }

    /// Whether it is empty and unquoted: such a word disappears.
    pub fn vanishes(&self) -> bool {
        self.pieces.is_empty() && !self.quoted
    }

    /// The value this gives to a variable: no splitting, no wildcards.
    pub fn value(&self) -> Value {
        if let Some(text) = self.text() {
            return Value::text(&text);
        }
        match self.pieces.as_slice() {
            [Piece::Number] => Value::Number,
            [Piece::Pattern { pattern, .. }] => Value::Glob(Arc::clone(pattern)),
            _ => Value::of_word(&self.word(false)),
        }
    }

    /// The word as a program would receive it.
    pub fn into_word(mut self, globs: bool) -> Word {
        match self.pieces.as_mut_slice() {
            [Piece::Text { text, quoted }] if *quoted || !globs || !has_wildcards(text) => {
                Word::Known(std::mem::take(text))
            }
            _ => self.word(globs),
        }
    }

    /// The same, if the field is still needed.
    pub fn word(&self, globs: bool) -> Word {
        if let [Piece::Text { text, quoted }] = self.pieces.as_slice()
            && (*quoted || !globs || !has_wildcards(text))
        {
            return Word::Known(text.clone());
        }
        if self.pieces.iter().all(|piece| matches!(piece, Piece::Text { .. } | Piece::Pattern { .. })) {
            return self.text_or_pattern(globs);
        }
        if let Some(word) = self.with_numbers(globs).or_else(|| self.below()) {
            return word;
        }
        let mut prefix = String::new();
        let mut many = false;
        let mut reason: Option<Arc<str>> = None;
        for piece in &self.pieces {
            match piece {
                Piece::Text { text, quoted } => {
                    let wild = !*quoted && globs && has_wildcards(text);
                    many |= wild;
                    if reason.is_none() {
                        if wild {
                            let end = text.find(WILDCARDS).unwrap_or(0);
                            prefix.push_str(text.get(..end).unwrap_or(""));
                            reason = Some(Arc::from("a wildcard beside something unknown"));
                        } else {
                            prefix.push_str(text);
                        }
                    }
                }
                Piece::Unknown { why, many: several } => {
                    many |= several;
                    reason.get_or_insert_with(|| Arc::clone(why));
                }
                Piece::Number => {
                    reason.get_or_insert_with(|| Arc::from("an unknown number"));
                }
                Piece::Pattern { .. } => {
                    reason.get_or_insert_with(|| Arc::from("a name that a pattern matches"));
                }
                Piece::Below { directory, many: several, .. } => {
                    many |= several;
                    if reason.is_none() && prefix.is_empty() && !several {
                        prefix.push_str(directory);
                    }
                    reason.get_or_insert_with(|| Arc::from("a name that a program prints"));
                }
            }
        }
        let why = reason.map_or_else(String::new, |why| why.to_string());
        if prefix.is_empty() { Word::Unknown { why, many } } else { Word::Partly { prefix, why, many } }
    }

    /// Makes a pattern of text around unknown numbers: `/proc/$$/status`.
    fn with_numbers(&self, globs: bool) -> Option<Word> {
        let text_first = match self.pieces.as_slice() {
            [Piece::Text { text, .. }, ..] => !text.starts_with('-'),
            [Piece::Number, Piece::Text { .. }, ..] => true,
            _ => false,
        };
        let plain = |piece: &Piece| matches!(piece, Piece::Text { .. } | Piece::Pattern { .. } | Piece::Number);
        if !text_first || !self.pieces.iter().all(plain) {
            return None;
        }
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Number => Piece::Pattern { pattern: Arc::from(INTEGER), quoted: true },
            other => other.clone(),
        });
        Some(Field { pieces: pieces.collect(), quoted: self.quoted }.text_or_pattern(globs))
    }

    /// A path below a directory stays below it with more text after it, unless the text contains `..`.
    fn below(&self) -> Option<Word> {
        let (Piece::Below { directory, many, names }, rest) = self.pieces.split_first()? else {
            return None;
        };
        let harmless = rest.iter().all(|piece| match piece {
            Piece::Text { text, quoted } => !text.contains("..") && (*quoted || !has_wildcards(text)),
            Piece::Number => true,
            _ => false,
        });
        let starts = match rest.first() {
            Some(Piece::Text { text, .. }) => text.starts_with('/') || !directory.ends_with('/'),
            _ => true,
        };
        let names = if rest.is_empty() { names.clone() } else { ListedNames::Changed };
        (harmless && starts).then(|| Word::Below { directory: directory.to_string(), many: *many, names })
    }

    fn text_or_pattern(&self, globs: bool) -> Word {
        let mut pattern = String::new();
        let mut known = String::new();
        let (mut wild, mut bracket) = (false, false);
        for piece in &self.pieces {
            match piece {
                Piece::Text { text, quoted } => {
                    known.push_str(text);
                    if *quoted || !globs {
                        pattern.push_str(&escape(text));
                    } else {
                        wild |= has_wildcards(text) || bracket && text.contains(']');
                        bracket |= text.contains('[');
                        pattern.push_str(text);
                    }
                }
                Piece::Pattern { pattern: names, quoted } => {
                    wild = true;
                    if !*quoted && splits_into_other_paths(names) {
                        let why = "names with blanks would be split".to_owned();
                        return Word::Unknown { why, many: true };
                    }
                    pattern.push_str(names);
                }
                _ => {}
            }
        }
        if wild { Word::Glob(pattern) } else { Word::Known(known) }
    }
}

const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Whether unquoted text is a pattern.
pub(super) fn has_wildcards(text: &str) -> bool {
    let class =
        || text.find('[').and_then(|open| text.get(open.saturating_add(2)..)).is_some_and(|rest| rest.contains(']'));
    text.contains(['*', '?'])
        || class()
        || (text.contains('(') && (text.contains("@(") || text.contains("+(") || text.contains("!(")))
}

/// Whether a slash follows a wildcard: splitting at a blank in a directory name would make an absolute path of the rest.
fn splits_into_other_paths(pattern: &str) -> bool {
    match pattern.find(WILDCARDS) {
        Some(place) => pattern.get(place..).is_some_and(|rest| rest.contains('/')),
        None => false,
    }
}
