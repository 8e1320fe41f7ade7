//! `echo` and `printf`: no effects, but what they print may be run by the next program.

use crate::stream::Stream;
use crate::word::Word;

/// How much text is followed through a pipe.
const MAX_TEXT: usize = 1 << 20;

/// What `echo` prints, if that is the same in every shell.
pub(super) fn echo(words: &[Word]) -> Stream {
    let mut words = words;
    let mut newline = true;
    while let Some((Word::Known(first), rest)) = words.split_first() {
        match first.as_str() {
            "-n" => newline = false,
            "-E" => {}
            _ if first.len() > 1
                && first.starts_with('-')
                && first.bytes().skip(1).all(|byte| b"neE".contains(&byte)) =>
            {
                return Stream::Unknown;
            }
            _ => break,
        }
        words = rest;
    }
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let Word::Known(known) = word else {
            return Stream::Unknown;
        };
        // Some shells expand backslashes, some do not.
        if known.contains('\\') || text.len() > MAX_TEXT {
            return Stream::Unknown;
        }
        if index > 0 {
            text.push(' ');
        }
        text.push_str(known);
    }
    if newline {
        text.push('\n');
    }
    Stream::Text(text)
}

/// What `printf` prints, for formats of `%s`, `%d`, `%%` and simple escapes.
pub(super) fn printf(words: &[Word]) -> Stream {
    let words = match words.split_first() {
        Some((Word::Known(first), rest)) if first == "--" => rest,
        Some((Word::Known(first), _)) if first.starts_with('-') => return Stream::Unknown,
        _ => words,
    };
    let Some((Word::Known(format), arguments)) = words.split_first() else {
        return Stream::Unknown;
    };
    let Some(arguments) = arguments.iter().map(Word::known).collect::<Option<Vec<_>>>() else {
        return Stream::Unknown;
    };
    let mut text = String::new();
    let mut arguments = arguments.into_iter();
    loop {
        let left = arguments.len();
        if !formatted(format, &mut arguments, &mut text) || text.len() > MAX_TEXT {
            return Stream::Unknown;
        }
        // The format is used again as long as it takes arguments.
        if arguments.len() == 0 || arguments.len() == left {
            return Stream::Text(text);
        }
    }
}

fn formatted<'a>(format: &str, arguments: &mut impl Iterator<Item = &'a str>, text: &mut String) -> bool {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => match characters.next() {
                Some('%') => text.push('%'),
                Some('s') => text.push_str(arguments.next().unwrap_or_default()),
                Some('d') => match arguments.next().unwrap_or("0").parse::<i64>() {
                    Ok(number) => text.push_str(&number.to_string()),
                    Err(_) => return false,
                },
                _ => return false,
            },
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('\\') => text.push('\\'),
                Some('"') => text.push('"'),
                _ => return false,
            },
            other => text.push(other),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<Word> {
        texts.iter().map(|text| Word::Known((*text).to_owned())).collect()
    }

    #[test]
    fn echo_prints_its_words() {
        assert_eq!(echo(&words(&["a", "b"])), Stream::Text("a b\n".into()));
        assert_eq!(echo(&words(&["-n", "a"])), Stream::Text("a".into()));
        assert_eq!(echo(&words(&["-e", "a"])), Stream::Unknown);
        assert_eq!(echo(&words(&["a\\nb"])), Stream::Unknown);
        assert_eq!(echo(&[Word::Unknown { why: "$x".into(), many: false }]), Stream::Unknown);
    }

    #[test]
    fn printf_follows_its_format() {
        assert_eq!(printf(&words(&["%s\\n", "a", "b"])), Stream::Text("a\nb\n".into()));
        assert_eq!(printf(&words(&["x%%%d", "3"])), Stream::Text("x%3".into()));
        assert_eq!(printf(&words(&["\\x72m"])), Stream::Unknown);
        assert_eq!(printf(&words(&["plain", "extra"])), Stream::Text("plain".into()));
    }
}
