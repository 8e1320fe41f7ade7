//! Putting something into a list or an object.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use serde_json::{Map, Value};

use super::node::quoted;
use super::{Container, Document, Item, JsonError, Node, Position, Splices, after_trivia, line_of_trivia};

/// A text with something put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inserted {
    /// The new text.
    pub text: String,
    /// The outermost member that had to be made for it.
    pub created: Option<Vec<String>>,
}

/// Puts an item into the list or object at `path`; what is missing on the way is made.
pub fn insert(text: &str, path: &[String], item: &Item<'_>, position: Position) -> Result<Inserted, JsonError> {
    let document = Document::parse(text)?;
    let inserted = put(&document, path, item, position)?;
    let expected = meaning(document.value(), path, item, position);
    if Document::parse(&inserted.text)?.value() != expected {
        return Err(JsonError::Unfaithful);
    }
    Ok(inserted)
}

fn put(document: &Document<'_>, path: &[String], item: &Item<'_>, position: Position) -> Result<Inserted, JsonError> {
    let style = Style::of(document);
    let Some(root) = &document.root else {
        // An empty file, or one of comments alone.
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
                let text = style.put(document, found, &Item::Member(key, &inner), Position::Last)?;
                let created = done.iter().chain([key]).cloned().collect();
                return Ok(Inserted { text, created: Some(created) });
            }
        }
    }
    match (item, found) {
        (Item::Element(_), ast::Value::Array(_)) | (Item::Member(..), ast::Value::Object(_)) => {
            Ok(Inserted { text: style.put(document, found, item, position)?, created: None })
        }
        (Item::Element(_), _) => Err(document.wrong_shape(found.range(), path, "a list")),
        (Item::Member(..), _) => Err(document.wrong_shape(found.range(), path, "an object")),
    }
}

/// The item inside everything that `path` names.
fn wrapped(path: &[String], item: &Item<'_>) -> Node {
    let innermost = match item {
        Item::Element(node) => Node::List(vec![(*node).clone()]),
        Item::Member(key, node) => Node::Object(vec![((*key).to_owned(), (*node).clone())]),
    };
    path.iter().rev().fold(innermost, |inner, key| Node::Object(vec![(key.clone(), inner)]))
}

/// What the text must say afterwards.
fn meaning(before: Option<Value>, path: &[String], item: &Item<'_>, position: Position) -> Option<Value> {
    let mut root = before.unwrap_or_else(|| Value::Object(Map::new()));
    let mut place = &mut root;
    for (index, key) in path.iter().enumerate() {
        let last = index.saturating_add(1) == path.len();
        let empty =
            if last && matches!(item, Item::Element(_)) { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        place = place.as_object_mut()?.entry(key.clone()).or_insert(empty);
    }
    match item {
        Item::Element(node) => {
            let elements = place.as_array_mut()?;
            let index = if position == Position::First { 0 } else { elements.len() };
            elements.insert(index, node.value());
        }
        Item::Member(key, node) => drop(place.as_object_mut()?.insert((*key).to_owned(), node.value())),
    }
    Some(root)
}

/// How the file is written.
struct Style {
    newline: &'static str,
    unit: String,
    /// Everything is on one line.
    compact: bool,
}

impl Style {
    fn of(document: &Document<'_>) -> Self {
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
        document: &Document<'_>,
        container: &ast::Value<'_>,
        item: &Item<'_>,
        position: Position,
    ) -> Result<String, JsonError> {
        let text = document.text;
        let container = Container::of(container).ok_or(JsonError::Unfaithful)?;
        let mut splices = Splices::default();
        match (container.children.first(), container.children.last()) {
            (Some(first), Some(last)) => match (indentation(text, first.start), position) {
                // Children have lines of their own, and so has the new one.
                (Some(indent), Position::First) => {
                    let line = format!("{}{indent}", self.newline);
                    splices.insert(container.inside(), format!("{line}{},", self.over_lines(item, &line)));
                }
                (Some(indent), Position::Last) => {
                    let line = format!("{}{indent}", self.newline);
                    self.append(text, last.end, &line, item, &mut splices);
                }
                (None, Position::First) => {
                    splices.insert(first.start, format!("{},{}", self.on_one_line(item), self.gap()))
                }
                (None, Position::Last) => {
                    splices.insert(last.end, format!(",{}{}", self.gap(), self.on_one_line(item)))
                }
            },
            _ if self.compact => splices.insert(container.inside(), self.on_one_line(item)),
            _ => {
                let outer = format!("{}{}", self.newline, line_indentation(text, container.range.start));
                let line = format!("{outer}{}", self.unit);
                let interior = text.get(container.inside()..container.close()).unwrap_or_default();
                // Behind a comment, so that a comment to the end of the line does not swallow it.
                let at = container.inside().saturating_add(interior.trim_end().len());
                let closing = if interior.get(interior.trim_end().len()..).is_some_and(|rest| rest.contains('\n')) {
                    ""
                } else {
                    &outer
                };
                splices.insert(at, format!("{line}{}{closing}", self.over_lines(item, &line)));
            }
        }
        splices.apply(text).ok_or(JsonError::Unfaithful)
    }

    /// A line of its own behind the last child, which may have a comma already and a comment beside it.
    fn append(&self, text: &str, last: usize, line: &str, item: &Item<'_>, splices: &mut Splices) {
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

    fn over_lines(&self, item: &Item<'_>, line: &str) -> String {
        match item {
            Item::Element(node) => node.over_lines(line, &self.unit),
            Item::Member(key, node) => format!("{}: {}", quoted(key), node.over_lines(line, &self.unit)),
        }
    }

    fn on_one_line(&self, item: &Item<'_>) -> String {
        match item {
            Item::Element(node) => node.on_one_line(!self.compact),
            Item::Member(key, node) => format!("{}:{}{}", quoted(key), self.gap(), node.on_one_line(!self.compact)),
        }
    }
}

/// The white space between the start of the line and `offset`; `None` if there is more than that.
fn indentation(text: &str, offset: usize) -> Option<&str> {
    let before = text.get(..offset)?;
    let line = before.get(before.rfind('\n')?.saturating_add(1)..)?;
    line.chars().all(|character| matches!(character, ' ' | '\t')).then_some(line)
}

/// The white space at the start of the line that `offset` is in.
fn line_indentation(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.get(before.rfind('\n').map_or(0, |newline| newline.saturating_add(1))..).unwrap_or_default();
    line.get(..line.len().saturating_sub(line.trim_start_matches([' ', '\t']).len())).unwrap_or_default()
}
