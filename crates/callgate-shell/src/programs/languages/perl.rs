//! Perl one-liners that only match, replace and print.

use super::CodeEffects;
use crate::cursor::Cursor;
use crate::lists::listed;

const WORDS: &str = include_str!("words/perl-words.txt");

pub(super) fn read(code: &str) -> CodeEffects {
    match harmless(code) {
        Some(()) => CodeEffects::default(),
        None => CodeEffects::unknown("cannot tell what the perl code does"),
    }
}

fn harmless(code: &str) -> Option<()> {
    let mut cursor = Cursor::new(code);
    // Whether a slash would divide.
    let mut value = false;
    while let Some(character) = cursor.peek() {
        match character {
            '"' => {
                interpolated(&cursor.quoted()?)?;
                value = true;
            }
            '\'' => {
                cursor.quoted()?;
                value = true;
            }
            '/' if !value => {
                interpolated(&cursor.quoted()?)?;
                flags(&mut cursor)?;
                value = true;
            }
            '$' | '@' | '%'
                if cursor.ahead(1).is_some_and(|next| {
                    next.is_ascii_alphanumeric() || matches!(next, '_' | '.' | '&' | ',' | '/' | '\\')
                }) =>
            {
                if character == '%' && value {
                    cursor.next();
                    value = false;
                    continue;
                }
                cursor.next();
                let name = cursor.name();
                // `ARGV` is what `<>` reads; the others are the environment, the module path and signal handlers.
                if matches!(name.as_str(), "ARGV" | "ENV" | "INC" | "SIG") {
                    return None;
                }
                if name.is_empty() {
                    cursor.next();
                }
                value = true;
            }
            _ if character.is_ascii_alphabetic() || character == '_' => {
                let word = cursor.name();
                value = word_is_harmless(&word, &mut cursor)?;
            }
            _ if character.is_ascii_digit() => {
                cursor.take_while(|next| next.is_ascii_digit() || next == '.');
                value = true;
            }
            // `<FILE>`, `<$x>`, `<>` read files.
            '<' => {
                cursor.next();
                // `<=>` compares.
                if cursor.take_if('=') && cursor.take_if('>') {
                    value = false;
                    continue;
                }
                if !matches!(cursor.peek(), Some(' ' | '0'..='9')) {
                    return None;
                }
                value = false;
            }
            '>' => {
                cursor.next();
                value = false;
            }
            // `|` and `&` only in pairs: no pipes, no calls.
            '|' | '&' => {
                cursor.next();
                cursor.take_if(character).then_some(())?;
                value = false;
            }
            ')' | ']' | '}' => {
                cursor.next();
                value = character != '}';
                cursor.skip_blanks();
                if cursor.peek() == Some('(') {
                    return None;
                }
            }
            ' ' | '\t' | '\n' => cursor.skip(1),
            ';' | '(' | '{' | '[' | ',' | '.' | '+' | '-' | '*' | '/' | '%' | '=' | '!' | '?' | ':' | '~' => {
                cursor.next();
                // File tests and references to code.
                if character == '-' && !value && cursor.peek().is_some_and(|next| next.is_ascii_alphabetic()) {
                    return None;
                }
                if character == '-' && cursor.peek() == Some('>') && !matches!(cursor.ahead(1), Some('[' | '{')) {
                    return None;
                }
                value = false;
            }
            _ => return None,
        }
    }
    Some(())
}

/// Returns whether the word is a value.
fn word_is_harmless(word: &str, cursor: &mut Cursor) -> Option<bool> {
    let delimiter = cursor.peek().filter(|next| matches!(next, '/' | '|' | '#' | ',' | '!' | ':' | '@'));
    match (word, delimiter) {
        ("s" | "tr" | "y", Some(delimiter)) => {
            interpolated(&cursor.quoted()?)?;
            interpolated(&cursor.until(delimiter)?)?;
            flags(cursor)?;
            Some(true)
        }
        ("m" | "qr", Some(_)) => {
            interpolated(&cursor.quoted()?)?;
            flags(cursor)?;
            Some(true)
        }
        ("s" | "tr" | "y" | "m" | "qr" | "q" | "qq" | "qw" | "qx", _) => None,
        ("print" | "printf" | "say", _) => {
            cursor.skip_blanks();
            // `print FILE …` and `print {…}` go elsewhere.
            let next = cursor.peek();
            if next == Some('{') || next.is_some_and(|next| next.is_ascii_uppercase()) {
                return None;
            }
            Some(false)
        }
        _ => listed(WORDS, word).then_some(false),
    }
}

/// Flags of a pattern; `e` would run the replacement.
fn flags(cursor: &mut Cursor) -> Option<()> {
    let flags = cursor.take_while(|next| next.is_ascii_alphabetic());
    flags.chars().all(|flag| "gimsxorcdn".contains(flag)).then_some(())
}

/// Checks that a text with interpolation runs no code: only plain scalars stand in it, without an index, a key or an arrow.
fn interpolated(text: &str) -> Option<()> {
    if ["(?{", "(??{", "(?p{", "(*{"].iter().any(|code| text.contains(code)) {
        return None;
    }
    let mut cursor = Cursor::new(text);
    while let Some(character) = cursor.next() {
        match character {
            '\\' => cursor.skip(1),
            '$' | '@' => {
                let name = cursor.name();
                if matches!(name.as_str(), "ENV" | "ARGV" | "INC" | "SIG") {
                    return None;
                }
                // the end of a pattern, the whole match, an address such as `a@b`
                let plain = !name.is_empty()
                    || matches!((character, cursor.peek()), (_, None | Some(')' | '|' | ' ' | '&' | '/' | '.' | ',')));
                let reaches = matches!(cursor.peek(), Some('[' | '{' | ':'))
                    || cursor.peek() == Some('-') && matches!(cursor.ahead(1), Some('>'))
                    || name.is_empty() && matches!(cursor.ahead(1), Some('[' | '{'));
                (plain && !reaches).then_some(())?;
            }
            _ => {}
        }
    }
    Some(())
}
