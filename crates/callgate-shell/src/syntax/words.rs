//! Words and the expansions inside them.

use super::Dialect;
use super::ast::{CommandKind, Part, RedirectionKind, Script, SourceWord, Substitution};
use super::cursor::{Parsed, Parser, is_metacharacter};

/// What ends an arithmetic expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A `)` without its `(`.
    Parenthesis,
    /// A `;`.
    Semicolon,
    /// A `]` without its `[`.
    Bracket,
    /// A `}` or a `:`.
    BraceOrColon,
}

/// Where a word occurs, which changes how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    /// Anywhere in a command.
    Command,
    /// A pattern inside `[[ … ]]`: extended globs are always on.
    Pattern,
    /// After `=~`: parentheses and bars belong to the word.
    Expression,
}

/// Adds text, joined to text of the same kind before it.
pub(super) fn push_text(parts: &mut Vec<Part>, text: &str, quoted: bool) {
    match (parts.last_mut(), quoted) {
        (Some(Part::Literal(last)), false) => last.push_str(text),
        (Some(Part::Quoted(last)), true) => last.push_str(text),
        (_, false) => push_part(parts, Part::Literal(text.to_owned())),
        (_, true) => push_part(parts, Part::Quoted(text.to_owned())),
    }
}

/// Adds a part. Most words have just one: room for more is made when it is needed.
pub(super) fn push_part(parts: &mut Vec<Part>, part: Part) {
    if parts.capacity() == 0 {
        parts.reserve_exact(1);
    }
    parts.push(part);
}

impl Parser<'_> {
    /// Reads a word of a command.
    pub fn word(&mut self) -> Parsed<SourceWord> {
        self.word_in(WordPlace::Command)
    }

    pub fn word_in(&mut self, place: WordPlace) -> Parsed<SourceWord> {
        let start = self.position;
        let parts = self.word_parts(place)?;
        if self.position == start {
            return self.fail("expected a word");
        }
        Ok(SourceWord { parts, span: self.span_from(start) })
    }

    /// Whether `<(` or `>(` is next.
    pub fn at_process_substitution(&self) -> bool {
        self.starts_with("<(") || self.starts_with(">(")
    }

    /// Reads parts up to the end of the word; none if a metacharacter is next.
    pub fn word_parts(&mut self, place: WordPlace) -> Parsed<Vec<Part>> {
        self.pay()?;
        let mut parts = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => parts.push(self.process_substitution()?),
                b'(' if place == WordPlace::Expression => self.parenthesised(&mut parts)?,
                b'|' if place == WordPlace::Expression && self.peek_at(1) != Some(b'|') => self.literal(&mut parts, 1),
                b'(' if self.extended_glob_before(&parts, place)? => self.parenthesised(&mut parts)?,
                _ if is_metacharacter(byte) => break,
                _ => self.word_part(byte, &mut parts)?,
            }
        }
        Ok(parts)
    }

    fn literal(&mut self, parts: &mut Vec<Part>, length: usize) {
        push_text(parts, self.text(self.position, self.position.saturating_add(length)), false);
        self.advance(length);
    }

    /// Quotes, expansions and plain text outside of double quotes.
    fn word_part(&mut self, byte: u8, parts: &mut Vec<Part>) -> Parsed<()> {
        match byte {
            b'\\' => self.escape(parts),
            b'\'' => self.single_quotes(parts)?,
            b'"' => push_part(parts, self.double_quotes()?),
            b'$' => self.dollar(parts, false)?,
            b'`' => push_part(parts, self.backticks(false)?),
            _ => {
                let length = self
                    .rest()
                    .bytes()
                    .position(|byte| is_metacharacter(byte) || matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`'))
                    .unwrap_or(self.rest().len());
                self.literal(parts, length.max(1));
            }
        }
        Ok(())
    }

    /// `\x` outside of quotes.
    pub fn escape(&mut self, parts: &mut Vec<Part>) {
        let next = self.rest().get(1..).and_then(|rest| rest.chars().next());
        match next {
            Some('\n') => self.advance(2),
            Some(character) => {
                let length = character.len_utf8();
                let from = self.position.saturating_add(1);
                push_text(parts, self.text(from, from.saturating_add(length)), true);
                self.advance(length.saturating_add(1));
            }
            // bash keeps a backslash at the very end.
            None => {
                push_text(parts, "\\", true);
                self.advance(1);
            }
        }
    }

    /// Whether the `(` here belongs to an extended glob such as `@(a|b)`.
    fn extended_glob_before(&self, parts: &[Part], place: WordPlace) -> Parsed<bool> {
        let operator = match parts.last() {
            Some(Part::Literal(text)) => text.ends_with(['?', '*', '+', '@', '!']),
            _ => false,
        };
        if !operator {
            return Ok(false);
        }
        let on = place == WordPlace::Pattern
            || self.dialect == Dialect::Bash && self.extended_globs_from().is_some_and(|from| from < self.position);
        if on { Ok(true) } else { self.fail("an extended glob, without `shopt -s extglob` before it") }
    }

    /// A balanced `( … )` inside a word.
    fn parenthesised(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
        self.deeper(|parser| {
            parser.literal(parts, 1);
            loop {
                match parser.peek() {
                    None => return parser.fail("expected `)`"),
                    Some(b')') => {
                        parser.literal(parts, 1);
                        return Ok(());
                    }
                    Some(b'(') => parser.parenthesised(parts)?,
                    Some(b'\n') => return parser.fail("a line break inside a pattern"),
                    Some(b'<' | b'>') if parser.peek_at(1) == Some(b'(') => {
                        parts.push(parser.process_substitution()?);
                    }
                    Some(b'|') => parser.literal(parts, 1),
                    Some(byte) if is_metacharacter(byte) => {
                        push_text(parts, parser.text(parser.position, parser.position.saturating_add(1)), true);
                        parser.advance(1);
                    }
                    Some(byte) => parser.word_part(byte, parts)?,
                }
            }
        })
    }

    fn process_substitution(&mut self) -> Parsed<Part> {
        self.bash_only("process substitution")?;
        let reads = self.peek() == Some(b'<');
        let body = self.parenthesised_commands()?;
        Ok(Part::Process { reads, body })
    }

    /// Reads `$(…)`, `<(…)` or `>(…)` from its two first characters to its `)`.
    pub fn parenthesised_commands(&mut self) -> Parsed<Substitution> {
        let start = self.position;
        self.advance(2);
        let pending = std::mem::take(&mut self.pending);
        let outer_pending = self.outer_pending;
        self.outer_pending = outer_pending || !pending.is_empty();
        self.substitutions = self.substitutions.saturating_add(1);
        let mut script = Script::default();
        let documents = self.documents;
        let result = self.deeper(|parser| parser.items(&mut script));
        let unread = !self.pending.is_empty();
        self.pending = pending;
        self.outer_pending = outer_pending;
        self.substitutions = self.substitutions.saturating_sub(1);
        result?;
        if unread {
            return self.fail("the body of a here-document is outside its substitution");
        }
        self.require(")")?;
        // bash stores a substitution as text printed from its syntax tree, and some versions lose the
        // separator after a here-document in it. Only one at the very end is safe.
        let inside = self.documents.saturating_sub(documents);
        let reprinted = inside > 0 && documents_at_the_end(&script) != inside;
        let doubt =
            reprinted.then_some("a here-document in the middle of a substitution, which some bash versions change");
        Ok(Substitution { script, doubt, span: self.span_from(start) })
    }

    /// Reads `$…`.
    pub fn dollar(&mut self, parts: &mut Vec<Part>, in_double_quotes: bool) -> Parsed<()> {
        match self.peek_at(1) {
            Some(b'(') => parts.push(self.dollar_parenthesis()?),
            Some(b'{') => {
                let parameter = self.deeper(|parser| parser.braced_parameter(in_double_quotes))?;
                parts.push(Part::Parameter(Box::new(parameter)));
            }
            Some(b'[') => return self.fail("obsolete `$[…]` arithmetic"),
            Some(b'\\') if self.peek_at(2) == Some(b'\n') => {
                return self.fail("a line continuation after `$`");
            }
            Some(b'\'') if !in_double_quotes => self.ansi_quotes(parts)?,
            Some(b'"') if !in_double_quotes => {
                self.bash_only("`$\"`")?;
                let start = self.position;
                self.advance(1);
                let text = self.double_quotes()?;
                parts.push(Part::Unclear(
                    "`$\"…\"` is translated, which may run code".to_owned(),
                    self.span_from(start),
                ));
                parts.push(text);
            }
            _ => self.bare_parameter(parts, in_double_quotes)?,
        }
        Ok(())
    }

    fn dollar_parenthesis(&mut self) -> Parsed<Part> {
        let start = self.position;
        if self.peek_at(2) == Some(b'(') && !self.not_arithmetic.contains(&start) {
            let (pending, outer) = (self.pending.clone(), self.outer_pending);
            let (substitutions, end) = (self.substitutions, self.end);
            self.advance(3);
            if let Some(parts) = self.deeper(Self::arithmetic_until_double_parenthesis)? {
                return Ok(Part::Arithmetic(parts, self.span_from(start)));
            }
            // `$( (a); (b) )`: remembered, so that no place is tried twice.
            self.not_arithmetic.insert(start);
            self.position = start;
            (self.pending, self.outer_pending) = (pending, outer);
            (self.substitutions, self.end) = (substitutions, end);
        }
        self.parenthesised_commands().map(Part::Command)
    }

    /// Reads an arithmetic expression up to what ends it.
    pub fn arithmetic_parts(&mut self, stop: Stop) -> Parsed<Vec<Part>> {
        self.pay()?;
        let mut parts = Vec::new();
        let (mut parentheses, mut brackets) = (0usize, 0usize);
        loop {
            let Some(byte) = self.peek() else {
                return self.fail("unclosed arithmetic expression");
            };
            match (byte, stop) {
                (b')', _) if parentheses == 0 && stop != Stop::Bracket => break,
                (b']', Stop::Bracket) if brackets == 0 => break,
                (b';', Stop::Semicolon) if parentheses == 0 => break,
                (b'}' | b':', Stop::BraceOrColon) if parentheses == 0 => break,
                (b'?', Stop::BraceOrColon) => {
                    return self.fail("`?:` inside a substring expression");
                }
                _ => {}
            }
            match byte {
                b'$' => self.dollar(&mut parts, true)?,
                b'`' => parts.push(self.backticks(false)?),
                b'"' => parts.push(self.double_quotes()?),
                b'\'' => self.single_quotes(&mut parts)?,
                b'\\' => self.escape(&mut parts),
                b'#' if stop == Stop::Parenthesis && self.comment_like() => {
                    return self.fail("`#` may start a comment here");
                }
                _ => {
                    match byte {
                        b'(' => parentheses = parentheses.saturating_add(1),
                        b')' => parentheses = parentheses.saturating_sub(1),
                        b'[' => brackets = brackets.saturating_add(1),
                        b']' => brackets = brackets.saturating_sub(1),
                        _ => {}
                    }
                    let length = self.rest().chars().next().map_or(1, char::len_utf8);
                    self.literal(&mut parts, length);
                }
            }
        }
        Ok(parts)
    }

    /// Whether a comment may start at the `#` that is next: not in `16#ff`.
    fn comment_like(&self) -> bool {
        let before = self.position.checked_sub(1).and_then(|place| self.source.as_bytes().get(place));
        matches!(before, Some(b' ' | b'\t' | b'\n' | b'('))
    }
}

/// How many here-documents the simple commands of the last pipeline have, if nothing follows them.
fn documents_at_the_end(script: &Script) -> usize {
    let Some(last) = script.items.last().filter(|item| item.rest.is_empty() && !item.background) else {
        return 0;
    };
    let redirections = last.first.commands.iter().flat_map(|command| match command.kind {
        CommandKind::Simple { .. } => command.redirections.as_slice(),
        _ => &[],
    });
    redirections.filter(|redirection| matches!(redirection.kind, RedirectionKind::HereDocument(_))).count()
}
