//! `$x` and `${x…}`.

use super::Dialect;
use super::ast::{ArrayIndex, Operator, Parameter, Part, TestKind};
use super::cursor::{Parsed, Parser, name_length};
use super::words::{Stop, push_text};

const SPECIAL: &[u8] = b"@*#?-$!";

/// The length of the name at the start of a text: a variable, a number or a special parameter.
fn parameter_length(text: &str) -> usize {
    match text.as_bytes().first() {
        Some(byte) if byte.is_ascii_digit() => text.bytes().take_while(u8::is_ascii_digit).count(),
        Some(byte) if SPECIAL.contains(byte) => 1,
        _ => name_length(text),
    }
}

impl Parser<'_> {
    /// `$x`, `$1`, `$?`, or just a dollar sign.
    pub fn bare_parameter(&mut self, parts: &mut Vec<Part>, quoted: bool) -> Parsed<()> {
        self.pay()?;
        let start = self.position;
        let rest = self.rest().get(1..).unwrap_or("");
        // Without braces, `$12` is `$1` and a `2`.
        let length = match rest.as_bytes().first() {
            Some(byte) if byte.is_ascii_digit() => 1,
            _ => parameter_length(rest),
        };
        if length == 0 {
            push_text(parts, "$", quoted);
            self.advance(1);
            return Ok(());
        }
        let name = rest.get(..length).unwrap_or("").to_owned();
        self.advance(length.saturating_add(1));
        if self.starts_with("\\\n") && name.bytes().all(super::cursor::is_name_byte) {
            return self.fail("a line continuation inside a name");
        }
        parts.push(Part::Parameter(Box::new(Parameter {
            name,
            braced: false,
            indirect: false,
            length: false,
            index: None,
            operator: Operator::Plain,
            span: self.span_from(start),
        })));
        Ok(())
    }

    /// `${…}`
    pub fn braced_parameter(&mut self, quoted: bool) -> Parsed<Parameter> {
        let start = self.position;
        self.advance(2);
        let length = self.peek() == Some(b'#') && self.is_length();
        let indirect = self.peek() == Some(b'!')
            && self.peek_at(1).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@' | b'*'));
        if length || indirect {
            self.advance(1);
        }
        let name = self.parameter_name()?;
        let index = if self.peek() == Some(b'[') { Some(self.index()?) } else { None };
        let operator = if self.peek() == Some(b'}') {
            Operator::Plain
        } else if length {
            return self.fail("an operator after `${#name`");
        } else if indirect && (self.starts_with("*}") || self.starts_with("@}")) {
            self.advance(1);
            Operator::Names
        } else {
            self.operator(quoted)?
        };
        if self.peek() != Some(b'}') {
            return self.fail("unknown `${…}` expansion");
        }
        self.advance(1);
        if indirect || index.is_some() {
            self.bash_only("this `${…}` expansion")?;
        }
        Ok(Parameter { name, braced: true, indirect, length, index, operator, span: self.span_from(start) })
    }

    /// Whether the `#` here asks for a length: a whole parameter and nothing else follows.
    fn is_length(&self) -> bool {
        let rest = self.rest().get(1..).unwrap_or("");
        let length = parameter_length(rest);
        length > 0 && matches!(rest.as_bytes().get(length), Some(b'}' | b'['))
    }

    fn parameter_name(&mut self) -> Parsed<String> {
        let rest = self.rest();
        let length = parameter_length(rest);
        if length == 0 {
            return self.fail("unknown `${…}` expansion");
        }
        self.advance(length);
        Ok(rest.get(..length).unwrap_or("").to_owned())
    }

    fn index(&mut self) -> Parsed<ArrayIndex> {
        for (text, index) in [("[@]", ArrayIndex::Each), ("[*]", ArrayIndex::Joined)] {
            if self.starts_with(text) {
                self.advance(text.len());
                return Ok(index);
            }
        }
        self.advance(1);
        let parts = self.arithmetic_parts(Stop::Bracket)?;
        self.advance(1);
        Ok(ArrayIndex::Expression(parts))
    }

    fn operator(&mut self, quoted: bool) -> Parsed<Operator> {
        let colon = self.peek() == Some(b':');
        let test = match self.peek_at(usize::from(colon)) {
            Some(b'-') => Some(TestKind::Default),
            Some(b'=') => Some(TestKind::Assign),
            Some(b'?') => Some(TestKind::Error),
            Some(b'+') => Some(TestKind::Alternative),
            _ => None,
        };
        if let Some(kind) = test {
            self.advance(usize::from(colon).saturating_add(1));
            let operand = self.operand(quoted, false, false)?;
            return Ok(Operator::Test { kind, colon, operand });
        }
        if !matches!(self.peek(), Some(b'#' | b'%')) {
            self.bash_only("this `${…}` expansion")?;
        }
        match self.peek() {
            Some(mark @ (b'#' | b'%')) => {
                let longest = self.peek_at(1) == Some(mark);
                self.advance(usize::from(longest).saturating_add(1));
                let pattern = self.operand(quoted, true, false)?;
                Ok(Operator::Remove { front: mark == b'#', longest, pattern })
            }
            Some(b':') => {
                self.advance(1);
                let offset = self.arithmetic_parts(Stop::BraceOrColon)?;
                let mut length = None;
                if self.peek() == Some(b':') {
                    self.advance(1);
                    length = Some(self.arithmetic_parts(Stop::BraceOrColon)?);
                }
                Ok(Operator::Substring { offset, length })
            }
            Some(b'/') => {
                let all = self.peek_at(1) == Some(b'/');
                self.advance(usize::from(all).saturating_add(1));
                let pattern = self.operand(quoted, true, true)?;
                let mut replacement = Vec::new();
                if self.peek() == Some(b'/') {
                    self.advance(1);
                    replacement = self.operand(quoted, true, false)?;
                }
                Ok(Operator::Replace { all, pattern, replacement })
            }
            Some(mark @ (b'^' | b',' | b'~')) => {
                let count = if self.peek_at(1) == Some(mark) { 2 } else { 1 };
                let kind = self.text(self.position, self.position.saturating_add(count)).to_owned();
                self.advance(count);
                Ok(Operator::Case { kind, pattern: self.operand(quoted, true, false)? })
            }
            Some(b'@') => match self.peek_at(1) {
                Some(letter) if letter.is_ascii_alphabetic() && self.peek_at(2) == Some(b'}') => {
                    self.advance(2);
                    Ok(Operator::Transform(char::from(letter)))
                }
                _ => self.fail("unknown `${…}` expansion"),
            },
            _ => self.fail("unknown `${…}` expansion"),
        }
    }

    /// Reads the operand of an operator, up to `}`, or up to `/` if `slash`.
    fn operand(&mut self, quoted: bool, pattern: bool, slash: bool) -> Parsed<Vec<Part>> {
        self.pay()?;
        let mut parts = Vec::new();
        let as_text = quoted && !pattern;
        loop {
            let Some(byte) = self.peek() else {
                return self.fail("expected `}`");
            };
            match byte {
                b'}' => return Ok(parts),
                b'/' if slash && !parts.is_empty() => return Ok(parts),
                b'\\' if as_text => match self.peek_at(1) {
                    Some(b'$' | b'`' | b'"' | b'\\' | b'}' | b'\n') => self.escape(&mut parts),
                    _ => self.quoted_text(&mut parts, 1),
                },
                b'\\' => self.escape(&mut parts),
                b'\'' if as_text => self.apostrophes(&mut parts)?,
                b'\'' => self.single_quotes(&mut parts)?,
                b'"' => parts.push(self.double_quotes()?),
                // Patterns and replacements support these quotes even between double quotes. Refused if a parser
                // that does not support them would find another end.
                b'$' if quoted && pattern && self.peek_at(1) == Some(b'\'') && self.plain_ansi_quotes() => {
                    self.ansi_quotes(&mut parts)?;
                }
                b'$' if quoted && self.peek_at(1) == Some(b'\'') => {
                    return self.fail("`$'` inside a quoted `${…}`");
                }
                b'$' => self.dollar(&mut parts, quoted)?,
                b'`' => parts.push(self.backticks(quoted)?),
                b'<' | b'>' if self.peek_at(1) == Some(b'(') && self.dialect != Dialect::Sh => {
                    if quoted {
                        return self.fail("process substitution inside double quotes");
                    }
                    let reads = byte == b'<';
                    let body = self.parenthesised_commands()?;
                    parts.push(Part::Process { reads, body });
                }
                _ => {
                    let rest = self.rest();
                    let length = rest
                        .char_indices()
                        .skip(1)
                        .find(|(_, character)| {
                            matches!(character, '}' | '\\' | '\'' | '"' | '$' | '`' | '<' | '>')
                                || *character == '/' && slash
                        })
                        .map_or(rest.len(), |(place, _)| place);
                    push_text(&mut parts, rest.get(..length).unwrap_or(""), as_text);
                    self.advance(length);
                }
            }
        }
    }

    /// Whether the `$'…'` that starts here ends at the same place for a reader that takes `$'` for text.
    fn plain_ansi_quotes(&self) -> bool {
        let body = self.rest().get(2..).unwrap_or("");
        let end = body.find(['\'', '"', '`', '$', '}', '/']);
        let body = end.and_then(|end| body.get(..=end)).unwrap_or("");
        body.ends_with('\'') && !body.contains("\\'") && !body.contains("\\\\")
    }

    /// Single quotes in `"${x:-'…'}"` are text, yet bash pairs them to find the end. Fails where the two readings
    /// disagree.
    fn apostrophes(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
        let rest = self.rest().get(1..).unwrap_or("");
        match rest.find(['\'', '$', '`', '\\', '"', '}']) {
            Some(length) if rest.as_bytes().get(length) == Some(&b'\'') => {
                self.quoted_text(parts, length.saturating_add(2));
                Ok(())
            }
            _ => self.fail("single quotes inside a quoted `${…}`"),
        }
    }
}
