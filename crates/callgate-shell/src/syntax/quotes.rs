//! Quotes: single, double, ANSI-C, and backticks with their un-escaping.

use super::Dialect;
use super::ast::{Part, Substitution};
use super::cursor::{Parsed, Parser};
use super::words::push_text;

impl Parser<'_> {
    /// `'…'`
    pub fn single_quotes(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
        let rest = self.rest().get(1..).unwrap_or("");
        let Some(length) = rest.find('\'') else {
            return self.fail("unclosed single quote");
        };
        push_text(parts, rest.get(..length).unwrap_or(""), true);
        self.advance(length.saturating_add(2));
        Ok(())
    }

    /// `"…"`
    pub fn double_quotes(&mut self) -> Parsed<Part> {
        self.advance(1);
        let parts = self.deeper(|parser| parser.quoted_parts(true))?;
        if self.peek() != Some(b'"') {
            return self.fail("unclosed double quote");
        }
        self.advance(1);
        Ok(Part::Double(parts))
    }

    /// The body of a here-document in which expansions count.
    pub fn here_parts(&mut self) -> Parsed<Vec<Part>> {
        self.quoted_parts(false)
    }

    /// Text with expansions, up to `"` if that counts, else to the end.
    fn quoted_parts(&mut self, double_quotes: bool) -> Parsed<Vec<Part>> {
        let mut parts = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if double_quotes => break,
                b'$' => self.dollar(&mut parts, true)?,
                b'`' => parts.push(self.backticks(double_quotes)?),
                b'\\' => match self.peek_at(1) {
                    Some(b'\n') => self.advance(2),
                    Some(next) if matches!(next, b'$' | b'`' | b'\\') || next == b'"' && double_quotes => {
                        self.escape(&mut parts);
                    }
                    _ => self.quoted_text(&mut parts, 1),
                },
                _ => {
                    let length = self
                        .rest()
                        .bytes()
                        .position(|byte| matches!(byte, b'$' | b'`' | b'\\') || byte == b'"' && double_quotes)
                        .unwrap_or(self.rest().len());
                    self.quoted_text(&mut parts, length);
                }
            }
        }
        Ok(parts)
    }

    pub fn quoted_text(&mut self, parts: &mut Vec<Part>, length: usize) {
        push_text(parts, self.text(self.position, self.position.saturating_add(length)), true);
        self.advance(length);
    }

    /// `` `…` ``: the text is un-escaped once and read again, so a mistake in it shows only when it runs.
    pub fn backticks(&mut self, in_double_quotes: bool) -> Parsed<Part> {
        let start = self.position;
        let rest = self.rest().get(1..).unwrap_or("");
        let mut text = String::new();
        let mut length = 1usize;
        let mut characters = rest.chars().peekable();
        loop {
            let Some(character) = characters.next() else {
                return self.fail("unclosed backtick");
            };
            length = length.saturating_add(character.len_utf8());
            match character {
                '`' => break,
                '\\' => {
                    let Some(next) = characters.next() else {
                        return self.fail("unclosed backtick");
                    };
                    length = length.saturating_add(next.len_utf8());
                    let escaped = matches!(next, '$' | '`' | '\\') || next == '"' && in_double_quotes;
                    if !escaped {
                        text.push('\\');
                    }
                    text.push(next);
                }
                other => text.push(other),
            }
        }
        self.advance(length);
        let span = self.span_from(start);
        self.deeper(|parser| {
            let mut inner = parser.inner(&text, span.clone());
            let (script, mistake) = inner.whole_script();
            match mistake {
                Some(mistake) if parser.fuel.get() == 0 => Err(Box::new(mistake)),
                Some(mistake) => Ok(Part::Unclear(format!("in backticks: {}", mistake.what), span)),
                None => Ok(Part::Command(Substitution { script, doubt: None, span })),
            }
        })
    }

    /// `$'…'`
    pub fn ansi_quotes(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
        self.bash_only("`$'`")?;
        let start = self.position;
        let body = self.rest().get(2..).unwrap_or("");
        let mut escaped = false;
        let Some(length) = body.bytes().position(|byte| {
            let ends = byte == b'\'' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        }) else {
            return self.fail("unclosed quote");
        };
        self.advance(length.saturating_add(3));
        let body = body.get(..length).unwrap_or("");
        let usual = |escape: char| "abefnrtvxuU\\'\"01234567".contains(escape);
        let same = self.dialect != Dialect::Any
            || body.replace("\\\\", "").split('\\').skip(1).all(|rest| rest.starts_with(usual));
        match decode_ansi(body).filter(|_| same) {
            Some(text) => push_text(parts, &text, true),
            None => parts.push(Part::Unclear(
                "`$'…'` contains bytes that are not text, or shells read it differently".to_owned(),
                self.span_from(start),
            )),
        }
        Ok(())
    }
}

/// Decodes the escapes of `$'…'`. `None`: the result is not text, or bash's reading of it is odd.
fn decode_ansi(source: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..)?;
        if character != '\\' {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let Some(escape) = rest.chars().next() else {
            bytes.push(b'\\');
            break;
        };
        rest = rest.get(escape.len_utf8()..)?;
        let byte = match escape {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '?' => u8::try_from(escape).ok()?,
            '0'..='7' => {
                let digits = digits(rest, 2, 8);
                let text = format!("{escape}{}", rest.get(..digits)?);
                rest = rest.get(digits..)?;
                u8::try_from(u32::from_str_radix(&text, 8).ok()? & 0xff).ok()?
            }
            'x' | 'u' | 'U' => {
                let most = match escape {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits = digits(rest, most, 16);
                if digits == 0 {
                    return None;
                }
                let value = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
                rest = rest.get(digits..)?;
                if escape != 'x' && value >= 0x80 {
                    // The shell writes it in the encoding of its locale.
                    bytes.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                u8::try_from(value).ok()?
            }
            'c' => {
                let control = rest.chars().next().filter(char::is_ascii_alphabetic)?;
                rest = rest.get(1..)?;
                u8::try_from(control.to_ascii_uppercase()).ok()? & 0x1f
            }
            other => {
                bytes.push(b'\\');
                bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        if byte == 0 {
            // A NUL ends the string.
            break;
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

fn digits(text: &str, most: usize, radix: u32) -> usize {
    text.chars().take(most).take_while(|character| character.is_digit(radix)).count()
}
