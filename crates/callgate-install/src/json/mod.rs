//! JSON with comments, edited in place: only the inserted or removed text changes, every other byte stays.
//!
//! `jsonc` gives the places. What is done there is ours, because `jsonc-parser`'s own editing reformats what surrounds an insertion, and
//! then taking out what was put in does not lead back to the same bytes.

mod insert;
mod node;
mod remove;

pub use insert::insert;
pub use node::Node;
pub use remove::{contains, remove};

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests;

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use serde_json::Value;

use crate::jsonc;

/// Why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON, not even with comments and trailing commas.
    #[error(transparent)]
    Broken(#[from] jsonc::Broken),
    /// Something else is where a list or an object is needed.
    #[error("line {line}, column {column}: `{path}` is not {expected}")]
    Shape {
        /// Counted from one.
        line: usize,
        /// Counted from one.
        column: usize,
        /// The member.
        path: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A member is there twice, and readers differ in which one counts.
    #[error("line {line}, column {column}: `{key}` is there twice")]
    Twice {
        /// Counted from one.
        line: usize,
        /// Counted from one.
        column: usize,
        /// The member's name.
        key: String,
    },
    /// The edited text does not mean what it should; nothing is written then.
    #[error("cannot be edited without changing what else it says")]
    Unfaithful,
}

/// What is put into a list or an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<'a> {
    /// An element of a list.
    Element(&'a Node),
    /// A member of an object.
    Member(&'a str, &'a Node),
}

/// Where in a list or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Before all others: for lists where the first match decides.
    First,
    /// After all others: what counts elements does not change for them.
    Last,
}

/// A text and what it says.
#[derive(Debug)]
pub struct Document<'t> {
    pub(super) text: &'t str,
    pub(super) root: Option<ast::Value<'t>>,
}

impl<'t> Document<'t> {
    /// Reads a text, which may be empty.
    pub fn parse(text: &'t str) -> Result<Self, JsonError> {
        Ok(Document { text, root: jsonc::parse(text)? })
    }

    /// What the text says.
    pub fn value(&self) -> Option<Value> {
        self.root.as_ref().map(value_of)
    }

    /// What is at these members, from the outside in; an error where one of them is there twice.
    pub fn at(&self, path: &[String]) -> Result<Option<&ast::Value<'t>>, JsonError> {
        let Some(mut found) = self.root.as_ref() else { return Ok(None) };
        for key in path {
            let ast::Value::Object(object) = found else { return Ok(None) };
            match self.member(object, key)? {
                Some(member) => found = &member.value,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn member<'a>(&self, object: &'a ast::Object<'t>, key: &str) -> Result<Option<&'a ast::ObjectProp<'t>>, JsonError> {
        let mut found = object.properties.iter().filter(|member| member.name.as_str() == key);
        let first = found.next();
        if let Some(second) = found.next() {
            let (line, column) = place(self.text, second.range.start);
            return Err(JsonError::Twice { line, column, key: key.to_owned() });
        }
        Ok(first)
    }

    fn wrong_shape(&self, range: Range, path: &[String], expected: &'static str) -> JsonError {
        let (line, column) = place(self.text, range.start);
        let path = if path.is_empty() { "the whole".to_owned() } else { path.join(".") };
        JsonError::Shape { line, column, path, expected }
    }
}

/// A list or an object as places in the text.
#[derive(Debug, Clone)]
struct Container {
    range: Range,
    children: Vec<Range>,
}

impl Container {
    fn of(value: &ast::Value<'_>) -> Option<Self> {
        match value {
            ast::Value::Object(object) => {
                Some(Container { range: object.range, children: object.properties.iter().map(|it| it.range).collect() })
            }
            ast::Value::Array(array) => {
                Some(Container { range: array.range, children: array.elements.iter().map(|it| it.range()).collect() })
            }
            _ => None,
        }
    }

    /// Just after the bracket that opens it.
    fn inside(&self) -> usize {
        self.range.start.saturating_add(1)
    }

    /// At the bracket that closes it.
    fn close(&self) -> usize {
        self.range.end.saturating_sub(1)
    }
}

fn value_of(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(text) => Value::from(text.value.as_ref()),
        ast::Value::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        ast::Value::BooleanLit(truth) => Value::from(truth.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => Value::Array(array.elements.iter().map(value_of).collect()),
        ast::Value::Object(object) => Value::Object(
            object.properties.iter().map(|it| (it.name.as_str().to_owned(), value_of(&it.value))).collect(),
        ),
    }
}

/// Line and column, both from one, of a place in a text.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let column = before.get(line_start..).unwrap_or_default().chars().count();
    (before.matches('\n').count().saturating_add(1), column.saturating_add(1))
}

/// The first place from `offset` on that is neither white space nor part of a comment.
fn after_trivia(text: &str, mut offset: usize) -> usize {
    loop {
        let rest = text.get(offset..).unwrap_or_default();
        let trimmed = rest.trim_start();
        offset = offset.saturating_add(rest.len().saturating_sub(trimmed.len()));
        let comment = if trimmed.starts_with("//") {
            trimmed.find('\n').unwrap_or(trimmed.len())
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map_or(trimmed.len(), |end| end.saturating_add(2))
        } else {
            return offset;
        };
        offset = offset.saturating_add(comment);
    }
}

/// Where white space and comments that follow on the same line end; `None` if something else is on that line.
fn line_of_trivia(text: &str, mut offset: usize) -> Option<usize> {
    loop {
        let rest = text.get(offset..).unwrap_or_default();
        let trimmed = rest.trim_start_matches([' ', '\t']);
        let skipped = rest.len().saturating_sub(trimmed.len());
        if trimmed.starts_with('\n') || trimmed.starts_with("\r\n") {
            return Some(offset);
        }
        let comment = if trimmed.starts_with("//") {
            let line = trimmed.find('\n').unwrap_or(trimmed.len());
            trimmed.get(..line).map_or(line, |comment| comment.trim_end_matches('\r').len())
        } else if trimmed.starts_with("/*") {
            let end = trimmed.find("*/").map_or(trimmed.len(), |end| end.saturating_add(2));
            if trimmed.get(..end).is_some_and(|comment| comment.contains('\n')) {
                return None;
            }
            end
        } else {
            return None;
        };
        offset = offset.saturating_add(skipped).saturating_add(comment);
    }
}

/// The text with some ranges taken out and some texts put in, all at places of the old text.
#[derive(Debug, Default)]
struct Splices(Vec<(usize, usize, String)>);

impl Splices {
    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.0.push((at, at, text.into()));
    }

    fn cut(&mut self, start: usize, end: usize) {
        self.0.push((start, end, String::new()));
    }

    fn apply(mut self, text: &str) -> Option<String> {
        self.0.sort_by_key(|(start, end, _)| (*start, *end));
        let mut result = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end, inserted) in &self.0 {
            result.push_str(text.get(done..*start)?);
            result.push_str(inserted);
            done = *end;
        }
        result.push_str(text.get(done..)?);
        Some(result)
    }
}
