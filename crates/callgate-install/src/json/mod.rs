//! JSON with comments, edited in place: only the inserted or removed text changes, every other byte stays.
//!
//! `jsonc-parser` finds the positions. The editing is our own, because that of `jsonc-parser` reformats what surrounds an
//! insertion, so that removing the insertion would not restore the same bytes.

mod insert;
mod remove;

pub(crate) use insert::insert;
pub(crate) use remove::{contains, left, remove, says_hook, sweep};

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests;

use std::fmt;

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::EditError;
use crate::settings::{SettingsNode, SyntaxError, line_and_column, parse_json};

/// One value to put into a JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JsonEdit {
    /// The members from the outside in.
    pub path: Vec<String>,
    /// What to put there.
    pub what: JsonItem,
    /// Whether it comes before all others, for lists where the first match decides.
    #[serde(default)]
    pub first: bool,
    /// Whether to leave it out if the file has no place for it.
    #[serde(default)]
    pub optional: bool,
}

/// An element of a list, or a member of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JsonItem {
    /// An element of a list.
    Element(SettingsNode),
    /// A member of an object.
    Member(String, SettingsNode),
}

impl JsonEdit {
    /// Appends an element to a list.
    pub(crate) fn element(path: &[&str], node: SettingsNode) -> Self {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        JsonEdit { path, what: JsonItem::Element(node), first: false, optional: false }
    }

    /// Sets a member of an object.
    pub(crate) fn member(path: &[&str], key: &str, node: SettingsNode) -> Self {
        JsonEdit { what: JsonItem::Member(key.to_owned(), node.clone()), ..JsonEdit::element(path, node) }
    }

    /// Leaves the value out if the file has no place for it.
    pub(crate) fn if_possible(self) -> Self {
        JsonEdit { optional: true, ..self }
    }

    /// Puts the element before all others.
    pub(crate) fn before_others(self) -> Self {
        JsonEdit { first: true, ..self }
    }

    /// Whether somebody else could have written the same value.
    pub(crate) fn is_ambiguous(&self) -> bool {
        match &self.what {
            JsonItem::Element(node) | JsonItem::Member(_, node) => !matches!(node, SettingsNode::Table(_)),
        }
    }
}

impl fmt::Display for JsonEdit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join(".");
        match &self.what {
            JsonItem::Element(node) => write!(formatter, "{} in {path}", node.value()),
            JsonItem::Member(key, node) => write!(formatter, "{path}.{key} = {}", node.value()),
        }
    }
}

/// A text and its parsed value.
#[derive(Debug)]
struct JsonDocument<'t> {
    text: &'t str,
    root: Option<ast::Value<'t>>,
}

impl<'t> JsonDocument<'t> {
    fn parse(text: &'t str) -> Result<Self, EditError> {
        Ok(JsonDocument { text, root: parse_json(text)? })
    }

    fn value(&self) -> Option<Value> {
        self.root.as_ref().map(value_of)
    }

    /// The value at a path of members.
    fn at(&self, path: &[String]) -> Result<Option<&ast::Value<'t>>, EditError> {
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

    /// A member of an object. A member that is defined twice is an error, because programs differ in which one they use.
    fn member<'a>(&self, object: &'a ast::Object<'t>, key: &str) -> Result<Option<&'a ast::ObjectProp<'t>>, EditError> {
        let mut found = object.properties.iter().filter(|member| member.name.as_str() == key);
        let first = found.next();
        match found.next() {
            Some(second) => {
                Err(SyntaxError::at(self.text, second.range.start, format!("`{key}` is defined twice")).into())
            }
            None => Ok(first),
        }
    }

    fn wrong_shape(&self, range: Range, path: &[String], expected: &'static str) -> EditError {
        let (line, column) = line_and_column(self.text, range.start);
        let path = if path.is_empty() { "the whole file".to_owned() } else { path.join(".") };
        EditError::Shape { line, column, path, expected }
    }
}

/// The positions of a list or an object and its children.
#[derive(Debug, Clone)]
struct Container {
    range: Range,
    children: Vec<Range>,
}

impl Container {
    fn of(value: &ast::Value<'_>) -> Option<Self> {
        let children = match value {
            ast::Value::Object(object) => object.properties.iter().map(|member| member.range).collect(),
            ast::Value::Array(array) => array.elements.iter().map(Ranged::range).collect(),
            _ => return None,
        };
        Some(Container { range: value.range(), children })
    }

    /// The offset after the opening bracket.
    fn inside(&self) -> usize {
        self.range.start.saturating_add(1)
    }

    /// The offset of the closing bracket.
    fn close(&self) -> usize {
        self.range.end.saturating_sub(1)
    }
}

fn value_of(value: &ast::Value<'_>) -> Value {
    SettingsNode::from(value).into()
}

/// The first offset from `offset` on that is neither white space nor part of a comment.
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

/// The end of the white space and comments that follow on the same line; `None` if anything else follows on that line.
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

/// Insertions and removals, all at offsets of the old text.
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
