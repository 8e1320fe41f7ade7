//! The parser's position in the source, and its budgets.

use super::ast::Span;
use super::{Dialect, Limits};
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::fmt::Display;
use std::rc::Rc;

/// A syntax error, or a construct that the parser refuses. Nothing after it is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotUnderstood {
    /// What it is.
    pub what: String,
    /// Where it is in the source.
    pub span: Span,
}

/// The result of a parsing step.
pub type Parsed<T> = Result<T, Box<NotUnderstood>>;

/// A here-document whose body has not been reached.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub delimiter: String,
    pub quoted: bool,
    pub strips_tabs: bool,
    pub body: Rc<OnceCell<Vec<super::ast::Part>>>,
}

/// The parser: a cursor over the source with its budgets.
pub(super) struct Parser<'s> {
    pub source: &'s str,
    pub position: usize,
    /// The parser stops here.
    pub end: usize,
    pub dialect: Dialect,
    pub limits: Limits,
    pub depth: usize,
    /// Work left, shared with the parsers of backticks.
    pub fuel: Rc<Cell<usize>>,
    /// For text that is not in the source as such: where it comes from.
    pub stands_at: Option<Span>,
    pub pending: Vec<Pending>,
    /// Here-documents of an enclosing command wait for their bodies.
    pub outer_pending: bool,
    /// How many here-documents have been announced.
    pub documents: usize,
    /// Inside how many `$(`.
    pub substitutions: usize,
    /// Places where `((` turned out not to start arithmetic.
    pub not_arithmetic: HashSet<usize>,
    /// Where `extglob` is first mentioned, looked up when needed.
    extended_globs: OnceCell<Option<usize>>,
}

impl<'s> Parser<'s> {
    pub fn new(source: &'s str, dialect: Dialect, limits: Limits) -> Self {
        Parser {
            source,
            position: 0,
            end: source.len(),
            dialect,
            limits,
            depth: 0,
            fuel: Rc::new(Cell::new(limits.nodes)),
            stands_at: None,
            pending: Vec::new(),
            outer_pending: false,
            documents: 0,
            substitutions: 0,
            not_arithmetic: HashSet::new(),
            extended_globs: OnceCell::new(),
        }
    }

    /// A parser for text made from a part of this one's source; shares depth and fuel.
    pub fn inner<'t>(&self, text: &'t str, span: Span) -> Parser<'t> {
        let mut inner = Parser::new(text, self.dialect, self.limits);
        inner.depth = self.depth;
        inner.fuel = Rc::clone(&self.fuel);
        inner.stands_at = Some(self.stands_at.clone().unwrap_or(span));
        inner
    }

    /// Where the source first mentions `extglob`: after that, extended globs may be on.
    pub fn extended_globs_from(&self) -> Option<usize> {
        *self.extended_globs.get_or_init(|| self.source.find("extglob"))
    }

    pub fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub fn peek_at(&self, ahead: usize) -> Option<u8> {
        let place = self.position.saturating_add(ahead);
        if place < self.end { self.source.as_bytes().get(place).copied() } else { None }
    }

    pub fn rest(&self) -> &'s str {
        self.source.get(self.position..self.end).unwrap_or("")
    }

    pub fn starts_with(&self, text: &str) -> bool {
        self.rest().as_bytes().starts_with(text.as_bytes())
    }

    pub fn text(&self, from: usize, to: usize) -> &'s str {
        self.source.get(from..to).unwrap_or("")
    }

    /// Moves on over `count` bytes.
    pub fn advance(&mut self, count: usize) {
        self.position = self.position.saturating_add(count).min(self.end);
    }

    /// Takes this operator if it is next.
    pub fn take(&mut self, operator: &str) -> bool {
        let there = self.starts_with(operator);
        if there {
            self.advance(operator.len());
        }
        there
    }

    pub fn span_from(&self, start: usize) -> Span {
        self.stands_at.clone().unwrap_or(start..self.position)
    }

    pub fn fail<T>(&self, what: impl Into<String>) -> Parsed<T> {
        let end = self.position.saturating_add(1).min(self.source.len());
        let span = self.stands_at.clone().unwrap_or(self.position.min(end)..end);
        Err(Box::new(NotUnderstood { what: what.into(), span }))
    }

    /// Fails where the source is for a POSIX shell, which may not know `construct`.
    pub fn bash_only(&self, construct: impl Display) -> Parsed<()> {
        match self.dialect {
            Dialect::Bash | Dialect::Any => Ok(()),
            Dialect::Sh => self.fail(format!("{construct} is not available in every `sh`")),
        }
    }

    /// Takes this operator or fails.
    pub fn require(&mut self, operator: &str) -> Parsed<()> {
        if self.take(operator) { Ok(()) } else { self.fail(format!("expected `{operator}`")) }
    }

    /// Fails at an unexpected character.
    pub fn unexpected<T>(&self) -> Parsed<T> {
        match self.rest().chars().next() {
            Some('\n') => self.fail("unexpected line break"),
            Some(character) => self.fail(format!("unexpected `{character}`")),
            None => self.fail("unexpected end"),
        }
    }

    /// Pays for one node.
    pub fn pay(&self) -> Parsed<()> {
        match self.fuel.get().checked_sub(1) {
            Some(left) => {
                self.fuel.set(left);
                Ok(())
            }
            None => self.fail("the command is too complex"),
        }
    }

    /// Runs a step one level deeper.
    pub fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= self.limits.depth {
            return self.fail("nested too deeply");
        }
        self.pay()?;
        self.depth = self.depth.saturating_add(1);
        let result = step(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Skips spaces, tabs and line continuations.
    pub fn skip_blanks(&mut self) {
        if !matches!(self.peek(), Some(b' ' | b'\t' | b'\\')) {
            return;
        }
        let bytes = self.rest().as_bytes();
        let mut count = 0usize;
        loop {
            match bytes.get(count) {
                Some(b' ' | b'\t') => count = count.saturating_add(1),
                Some(b'\\') if bytes.get(count.saturating_add(1)) == Some(&b'\n') => count = count.saturating_add(2),
                _ => break,
            }
        }
        self.advance(count);
    }

    /// Skips blanks and a comment that starts here.
    pub fn skip_to_token(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b'#') {
            let rest = self.rest();
            self.advance(rest.find('\n').unwrap_or(rest.len()));
        }
    }

    /// Skips blanks, comments and newlines; reads here-documents that wait.
    pub fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_to_token();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Takes the newline that is next and the bodies of here-documents after it.
    pub fn newline(&mut self) -> Parsed<()> {
        if self.outer_pending {
            return self.fail("a line break before the here-document of an outer command");
        }
        self.advance(1);
        for pending in std::mem::take(&mut self.pending) {
            self.here_document(pending)?;
        }
        Ok(())
    }
}

/// Whether a byte ends an unquoted word.
pub(super) fn is_metacharacter(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether text is the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// The length of the name at the start of a text.
pub(super) fn name_length(text: &str) -> usize {
    match text.as_bytes().first() {
        Some(first) if is_name_start(*first) => text.bytes().take_while(|byte| is_name_byte(*byte)).count(),
        _ => 0,
    }
}
