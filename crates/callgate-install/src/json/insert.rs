//! Inserts an item into a list or an object.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use serde_json::{Map, Value};

use super::{Container, JsonDocument, JsonEdit, JsonItem, Splices, after_trivia, line_of_trivia};
use crate::error::EditError;
use crate::settings::{SettingsNode, quoted};

/// A text after an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// The new text.
    pub text: String,
    /// The path of the outermost member that had to be created.
    pub created: Option<Vec<String>>,
}

/// Puts an item into the list or object at its path and creates what is missing on the way.
pub(crate) fn insert(text: &str, edit: &JsonEdit) -> Result<Inserted, EditError> {
    let document = JsonDocument::parse(text)?;
    let inserted = put(&document, edit)?;
    if JsonDocument::parse(&inserted.text)?.value() != expected_value(document.value(), edit) {
        return Err(EditError::Unfaithful);
    }
    Ok(inserted)
}

fn put(document: &JsonDocument<'_>, edit: &JsonEdit) -> Result<Inserted, EditError> {
    let (path, item) = (&edit.path, &edit.what);
    let style = Style::of(document);
    let Some(root) = &document.root else {
        // The file is empty or has only comments.
        let node = wrapped(path, item);
        let newline = if document.text.is_empty() || document.text.ends_with('\n') { "" } else { style.newline };
        let written =
            format!("{}{newline}{}{}", document.text, node.over_lines(style.newline, &style.unit), style.newline);
        return Ok(Inserted { text: written, created: Some(Vec::new()) });
    };
    let mut found = root;
    for (index, key) in path.iter().enumerate() {
        let (done, rest) = path.split_at(index);
        let ast::Value::Object(object) = found else {
            return Err(document.wrong_shape(found.range(), done, "an object"));
        };
        match document.member(object, key)? {
            Some(member) => found = &member.value,
            None => {
                let inner = wrapped(rest.get(1..).unwrap_or_default(), item);
                let text = style.put(document, found, &JsonItem::Member(key.clone(), inner), false)?;
                let created = done.iter().chain([key]).cloned().collect();
                return Ok(Inserted { text, created: Some(created) });
            }
        }
    }
    match (item, found) {
        (JsonItem::Member(key, _), ast::Value::Object(object)) if document.member(object, key)?.is_some() => {
            let path: Vec<&str> = path.iter().chain([key]).map(String::as_str).collect();
            Err(EditError::Taken(path.join(".")))
        }
        (JsonItem::Element(_), ast::Value::Array(_)) | (JsonItem::Member(..), ast::Value::Object(_)) => {
            Ok(Inserted { text: style.put(document, found, item, edit.first)?, created: None })
        }
        (JsonItem::Element(_), _) => Err(document.wrong_shape(found.range(), path, "a list")),
        (JsonItem::Member(..), _) => Err(document.wrong_shape(found.range(), path, "an object")),
    }
}

/// The item inside the objects that `path` names.
fn wrapped(path: &[String], item: &JsonItem) -> SettingsNode {
    let innermost = match item {
        JsonItem::Element(node) => SettingsNode::List(vec![node.clone()]),
        JsonItem::Member(key, node) => SettingsNode::Table(vec![(key.clone(), node.clone())]),
    };
    path.iter().rev().fold(innermost, |inner, key| SettingsNode::Table(vec![(key.clone(), inner)]))
}

/// The value that the text must have after the insertion.
fn expected_value(before: Option<Value>, edit: &JsonEdit) -> Option<Value> {
    let mut root = before.unwrap_or_else(|| Value::Object(Map::new()));
    let mut place = &mut root;
    for (index, key) in edit.path.iter().enumerate() {
        let is_list = index.saturating_add(1) == edit.path.len() && matches!(edit.what, JsonItem::Element(_));
        let empty = if is_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        place = place.as_object_mut()?.entry(key.clone()).or_insert(empty);
    }
    match &edit.what {
        JsonItem::Element(node) => {
            let elements = place.as_array_mut()?;
            let index = if edit.first { 0 } else { elements.len() };
            elements.insert(index, node.value());
        }
        JsonItem::Member(key, node) => drop(place.as_object_mut()?.insert(key.clone(), node.value())),
    }
    Some(root)
}

/// The formatting of a file.
struct Style {
    newline: &'static str,
    unit: String,
    /// Whether everything is on one line.
    compact: bool,
}

impl Style {
    fn of(document: &JsonDocument<'_>) -> Self {
        let text = document.text;
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let root = document.root.as_ref().and_then(Container::of);
        let unit = root
            .as_ref()
            .and_then(|root| root.children.first())
            .and_then(|child| indentation(text, child.start))
            .filter(|unit| !unit.is_empty())
            .unwrap_or("  ");
        let compact = root.is_some_and(|root| {
            !root.children.is_empty() && !text.get(root.range.start..root.range.end).is_some_and(|it| it.contains('\n'))
        });
        Style { newline, unit: unit.to_owned(), compact }
    }

    fn put(
        &self,
        document: &JsonDocument<'_>,
        container: &ast::Value<'_>,
        item: &JsonItem,
        first: bool,
    ) -> Result<String, EditError> {
        let text = document.text;
        let container = Container::of(container).ok_or(EditError::Unfaithful)?;
        let mut splices = Splices::default();
        match (container.children.first(), container.children.last()) {
            (Some(start), Some(last)) => match (indentation(text, start.start), first) {
                // The children are on lines of their own, so the new one is too.
                (Some(indent), true) => {
                    let line = format!("{}{indent}", self.newline);
                    splices.insert(container.inside(), format!("{line}{},", self.over_lines(item, &line)));
                }
                (Some(indent), false) => {
                    let line = format!("{}{indent}", self.newline);
                    self.append(text, last.end, &line, item, &mut splices);
                }
                (None, true) => splices.insert(start.start, format!("{},{}", self.on_one_line(item), self.gap())),
                (None, false) => splices.insert(last.end, format!(",{}{}", self.gap(), self.on_one_line(item))),
            },
            _ if self.compact => splices.insert(container.inside(), self.on_one_line(item)),
            _ => {
                let outer = format!("{}{}", self.newline, line_indentation(text, container.range.start));
                let line = format!("{outer}{}", self.unit);
                let interior = text.get(container.inside()..container.close()).unwrap_or_default();
                // After a comment, so that a comment to the end of the line does not swallow it.
                let at = container.inside().saturating_add(interior.trim_end().len());
                let closing = if interior.get(interior.trim_end().len()..).is_some_and(|rest| rest.contains('\n')) {
                    ""
                } else {
                    &outer
                };
                splices.insert(at, format!("{line}{}{closing}", self.over_lines(item, &line)));
            }
        }
        splices.apply(text).ok_or(EditError::Unfaithful)
    }

    /// Adds a line after the last child, which may already have a comma and a comment after it.
    fn append(&self, text: &str, last: usize, line: &str, item: &JsonItem, splices: &mut Splices) {
        let written = self.over_lines(item, line);
        let next = after_trivia(text, last);
        let trailing = text.get(next..).is_some_and(|rest| rest.starts_with(','));
        let (behind, comma) = if trailing { (next.saturating_add(1), ",") } else { (last, "") };
        let at = line_of_trivia(text, behind).unwrap_or(behind);
        if trailing || at != last {
            if !trailing {
                splices.insert(last, ",");
            }
            splices.insert(at, format!("{line}{written}{comma}"));
        } else {
            splices.insert(last, format!(",{line}{written}"));
        }
    }

    fn gap(&self) -> &'static str {
        if self.compact { "" } else { " " }
    }

    fn over_lines(&self, item: &JsonItem, line: &str) -> String {
        match item {
            JsonItem::Element(node) => node.over_lines(line, &self.unit),
            JsonItem::Member(key, node) => format!("{}: {}", quoted(key), node.over_lines(line, &self.unit)),
        }
    }

    fn on_one_line(&self, item: &JsonItem) -> String {
        match item {
            JsonItem::Element(node) => node.on_one_line(!self.compact),
            JsonItem::Member(key, node) => format!("{}:{}{}", quoted(key), self.gap(), node.on_one_line(!self.compact)),
        }
    }
}

/// The white space between the start of the line and `offset`; `None` if there is anything else.
fn indentation(text: &str, offset: usize) -> Option<&str> {
    let before = text.get(..offset)?;
    let line = before.get(before.rfind('\n')?.saturating_add(1)..)?;
    line.chars().all(|character| matches!(character, ' ' | '\t')).then_some(line)
}

/// The white space at the start of the line of `offset`.
fn line_indentation(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.get(before.rfind('\n').map_or(0, |newline| newline.saturating_add(1))..).unwrap_or_default();
    line.get(..line.len().saturating_sub(line.trim_start_matches([' ', '\t']).len())).unwrap_or_default()
}
