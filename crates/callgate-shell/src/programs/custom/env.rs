//! `env`: assignments and a command, and `-S`, which holds both in one word.

use super::front;
use crate::programs::collect::Collector;
use crate::programs::scan::name_and_value;
use crate::programs::table::{Style, Table};
use crate::stream::Stream;
use crate::word::Word;

/// How often `-S` may stand inside `-S`.
const MAX_SPLITS: usize = 8;

pub(super) fn read(table: &Table, words: &[Word], collector: &mut Collector<'_>) -> Stream {
    let mut words = words.to_vec();
    for _ in 0..MAX_SPLITS {
        let Some((at, length, source)) = split_option(&words) else {
            let program = collector.program.clone();
            return front(&Style::Posix, table, &words, &program, collector).1;
        };
        let Some(split) = source.known().and_then(split) else {
            collector.opaque("the words that env takes apart are not known", "-S");
            return Stream::Unknown;
        };
        words.splice(at..at.saturating_add(length).min(words.len()), split.into_iter().map(Word::Known));
    }
    collector.opaque("env -S is nested too deeply", "-S");
    Stream::Unknown
}

/// The place of the first `-S` among the options, how many words it takes, and its value.
fn split_option(words: &[Word]) -> Option<(usize, usize, Word)> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let (text, known) = match word {
            Word::Known(text) => (text.as_str(), true),
            Word::Partly { prefix, .. } => (prefix.as_str(), false),
            _ => return None,
        };
        if text == "--" || !text.starts_with('-') {
            return None;
        }
        let value = |rest: &str| {
            if known { Word::Known(rest.to_owned()) } else { Word::Unknown { why: "-S".to_owned(), many: false } }
        };
        if let Some(long) = text.strip_prefix("--") {
            let (name, glued) = name_and_value(long);
            if !name.is_empty() && "split-string".starts_with(name) {
                return Some(match glued {
                    Some(glued) => (at, 1, value(glued)),
                    None => (at, 2, words.get(at + 1)?.clone()),
                });
            }
            let takes_word =
                glued.is_none() && !name.is_empty() && ("unset".starts_with(name) || "chdir".starts_with(name));
            at += if takes_word { 2 } else { 1 };
            continue;
        }
        let mut step = 1;
        for (place, letter) in text.char_indices().skip(1) {
            let rest = text.get(place + letter.len_utf8()..).unwrap_or_default();
            match letter {
                'S' if rest.is_empty() && known => {
                    return Some((at, 2, words.get(at + 1)?.clone()));
                }
                'S' => return Some((at, 1, value(rest))),
                'u' | 'C' | 'P' => {
                    step = if rest.is_empty() { 2 } else { 1 };
                    break;
                }
                _ => {}
            }
        }
        at += step;
    }
    None
}

/// Words as `env -S` takes them apart; `None` where variables or escapes are in them.
fn split(source: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in source.chars() {
        match (quote, character) {
            (_, '\\' | '$' | '#') => return None,
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_ascii_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
