//! Here-documents: their delimiters and bodies.

use super::ast::{HereDocument, Part, SourceWord};
use super::cursor::{Parsed, Parser, Pending};
use std::cell::OnceCell;
use std::rc::Rc;

impl Parser<'_> {
    /// Reads the delimiter and records that a body follows the line.
    pub fn announce_here_document(&mut self, strips_tabs: bool) -> Parsed<HereDocument> {
        self.skip_blanks();
        let word = self.word()?;
        let Some((delimiter, quoted)) = delimiter(&word) else {
            return self.fail("the delimiter of a here-document is not plain text");
        };
        if delimiter.contains('\n') {
            return self.fail("the delimiter of a here-document has several lines");
        }
        self.documents = self.documents.saturating_add(1);
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending { delimiter, quoted, strips_tabs, body: Rc::clone(&body) });
        Ok(HereDocument { body })
    }

    /// Reads the body that starts here.
    pub fn here_document(&mut self, pending: Pending) -> Parsed<()> {
        self.pay()?;
        let start = self.position;
        let (body_end, document_end) = self.find_end(&pending)?;
        let text = self.text(start, body_end);
        let text = if pending.strips_tabs { without_tabs(text) } else { text.to_owned() };
        self.advance(body_end.saturating_sub(start));
        let parts = if pending.quoted {
            vec![Part::Quoted(text)]
        } else {
            // bash reports a mistake in the body only when the command runs.
            let span = self.stands_at.clone().unwrap_or(start..body_end);
            let body = self.deeper(|parser| Ok(parser.inner(&text, span.clone()).here_parts()))?;
            match body {
                Err(mistake) if self.fuel.get() == 0 => return Err(mistake),
                Err(mistake) => vec![Part::Unclear(format!("in a here-document: {}", mistake.what), span)],
                Ok(parts) => parts,
            }
        };
        self.advance(document_end.saturating_sub(self.position));
        if pending.body.set(parts).is_err() {
            return self.fail("a here-document has two bodies");
        }
        Ok(())
    }

    /// Where the body ends, and where the line with the delimiter ends.
    fn find_end(&self, pending: &Pending) -> Parsed<(usize, usize)> {
        let mut line_start = self.position;
        while line_start < self.end {
            let mut line_end = self.line_end(line_start);
            let mut joined = false;
            while !pending.quoted && line_end < self.end && ends_in_continuation(self.text(line_start, line_end)) {
                joined = true;
                line_end = self.line_end(line_end.saturating_add(1));
            }
            let line = self.text(line_start, line_end);
            let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
            if joined && line.replace("\\\n", "") == pending.delimiter {
                return self.fail("the delimiter of a here-document is split by a line continuation");
            }
            let next = line_end.saturating_add(1).min(self.end);
            if line == pending.delimiter {
                return Ok((line_start, next));
            }
            let in_parentheses = self.substitutions > 0 || self.stands_at.is_some();
            if in_parentheses && line.starts_with(pending.delimiter.as_str()) && line.contains(')') {
                return self.fail("a here-document may end together with its substitution");
            }
            line_start = next;
        }
        Ok((self.end, self.end))
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = self.source.get(from..self.end).unwrap_or("");
        rest.find('\n').map_or(self.end, |length| from.saturating_add(length))
    }
}

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn without_tabs(text: &str) -> String {
    text.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
}

/// The text of a delimiter after quote removal, and whether any of it was quoted.
fn delimiter(word: &SourceWord) -> Option<(String, bool)> {
    let mut text = String::new();
    let mut quoted = false;
    for part in &word.parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Quoted(literal) => {
                text.push_str(literal);
                quoted = true;
            }
            Part::Double(parts) => {
                quoted = true;
                for part in parts {
                    let Part::Quoted(literal) = part else { return None };
                    text.push_str(literal);
                }
            }
            _ => return None,
        }
    }
    Some((text, quoted))
}
