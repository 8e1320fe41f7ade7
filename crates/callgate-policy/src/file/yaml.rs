//! YAML as a tree in which every node has a position.
//!
//! Policies are read from a tree and not through `serde`, because serde stops at the
//! first mistake. Scalars stay text, so `no` is never `false`. Anchors and aliases are rejected: named sets
//! replace them, and without aliases a small file cannot expand to a huge one.

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};

use super::mistake::{Mistake, Position};

/// How much of a file is read before it is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Size in bytes.
    pub bytes: usize,
    /// Scalars, sequences and mappings.
    pub nodes: usize,
    /// Nesting.
    pub depth: usize,
}

impl Limits {
    /// Enough for 10,000 rules with examples.
    pub(crate) const POLICY: Self = Self { bytes: 16 * 1024 * 1024, nodes: 1_000_000, depth: 24 };
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub position: Position,
    pub value: NodeValue,
}

/// The three kinds of YAML values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeValue {
    /// Text; `plain` if it was written without quotes, so that `null`, numbers and booleans can be told from text.
    Scalar { text: String, plain: bool },
    /// A list.
    Sequence(Vec<Node>),
    /// Keys in the order they were written.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// What kind of value this is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::Scalar { .. } if self.is_null() => "nothing",
            NodeValue::Scalar { .. } => "text",
            NodeValue::Sequence(_) => "a list",
            NodeValue::Mapping(_) => "a mapping",
        }
    }

    /// Whether the value is empty or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, NodeValue::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// The items of a list; anything else counts as a list of itself.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            NodeValue::Sequence(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The same value as JSON, with YAML's core types.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            NodeValue::Scalar { text, plain } => scalar_to_json(text, *plain),
            NodeValue::Sequence(items) => items.iter().map(Node::to_json).collect(),
            NodeValue::Mapping(entries) => entries
                .iter()
                .map(|(key, value)| (key.text().unwrap_or_default().to_owned(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

fn scalar_to_json(text: &str, plain: bool) -> serde_json::Value {
    if !plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" => return serde_json::Value::Null,
        "true" => return true.into(),
        "false" => return false.into(),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => number.into(),
        _ => text.into(),
    }
}

/// Reads one document. An empty file is an empty mapping.
pub(crate) fn read(text: &str, limits: Limits) -> Result<Node, Mistake> {
    if text.len() > limits.bytes {
        return Err(Mistake::new(Position::default(), format!("file is larger than {} bytes", limits.bytes)));
    }
    let mut options = Options::default();
    options.disallow_directives = true;
    let mut reader = TreeBuilder { open: Vec::new(), root: None, nodes: 0, limits };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            Mistake::new(position_of(error.marker(), error.marker()), format!("invalid YAML: {}", error.info()))
        })?;
        reader.take(event, span)?;
    }
    Ok(reader.root.unwrap_or(Node { position: Position::default(), value: NodeValue::Mapping(Vec::new()) }))
}

fn position_of(start: &granit_parser::Marker, end: &granit_parser::Marker) -> Position {
    Position {
        line: start.line(),
        column: start.col().saturating_add(1),
        start: start.byte_offset().unwrap_or_default(),
        end: end.byte_offset().unwrap_or_default(),
    }
}

/// A list or mapping whose end was not read yet.
enum OpenCollection {
    Sequence(Position, Vec<Node>),
    Mapping(Position, Vec<(Node, Node)>, Option<Node>),
}

struct TreeBuilder {
    open: Vec<OpenCollection>,
    root: Option<Node>,
    nodes: usize,
    limits: Limits,
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        let position = position_of(&span.start, &span.end);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(position, anchor, tag.is_some())?;
                self.place(Node {
                    position,
                    value: NodeValue::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain },
                })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.count(position, anchor, tag.is_some())?;
                self.open.push(OpenCollection::Sequence(position, Vec::new()));
                Ok(())
            }
            Event::MappingStart(_, anchor, tag) => {
                self.count(position, anchor, tag.is_some())?;
                self.open.push(OpenCollection::Mapping(position, Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(OpenCollection::Sequence(position, items)) => {
                    self.place(Node { position, value: NodeValue::Sequence(items) })
                }
                Some(OpenCollection::Mapping(position, entries, _)) => {
                    self.place(Node { position, value: NodeValue::Mapping(entries) })
                }
                None => Ok(()),
            },
            Event::Alias(_) | Event::Anchor(..) | Event::UnresolvedAlias(_) => Err(no_aliases(position)),
            _ => Ok(()),
        }
    }

    fn count(&mut self, position: Position, anchor: usize, tagged: bool) -> Result<(), Mistake> {
        if anchor != 0 {
            return Err(no_aliases(position));
        }
        if tagged {
            return Err(
                Mistake::new(position, "YAML tags (`!name`) are not supported").help("quote text that starts with `!`")
            );
        }
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > self.limits.nodes {
            return Err(Mistake::new(position, format!("file has more than {} values", self.limits.nodes)));
        }
        if self.open.len() >= self.limits.depth {
            return Err(Mistake::new(position, format!("nested more than {} levels deep", self.limits.depth)));
        }
        Ok(())
    }

    fn place(&mut self, node: Node) -> Result<(), Mistake> {
        match self.open.last_mut() {
            None if self.root.is_some() => {
                Err(Mistake::new(node.position, "file contains a second document").help("remove the `---`"))
            }
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some(OpenCollection::Sequence(_, items)) => {
                items.push(node);
                Ok(())
            }
            Some(OpenCollection::Mapping(_, entries, waiting)) => {
                match waiting.take() {
                    Some(key) => entries.push((key, node)),
                    None => *waiting = Some(node),
                }
                Ok(())
            }
        }
    }
}

fn no_aliases(position: Position) -> Mistake {
    Mistake::new(position, "YAML anchors and aliases are not supported")
        .help("define a named set under `sets:` and use it as \"@name\"; quote text that starts with `*` or `&`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_place() {
        let node = read("a: 1\nb:\n  - x\n", Limits::POLICY).unwrap();
        let NodeValue::Mapping(entries) = node.value else { panic!() };
        assert_eq!((entries[1].0.position.line, entries[1].0.position.column), (2, 1));
        let NodeValue::Sequence(items) = &entries[1].1.value else { panic!() };
        assert_eq!((items[0].position.line, items[0].position.column), (3, 5));
    }

    #[test]
    fn scalars_stay_text() {
        assert_eq!(read("no", Limits::POLICY).unwrap().text(), Some("no"));
        assert!(read("~", Limits::POLICY).unwrap().is_null());
        assert_eq!(read("'~'", Limits::POLICY).unwrap().text(), Some("~"));
    }

    #[test]
    fn what_could_be_a_bomb_is_refused() {
        let bomb = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n";
        for text in [
            bomb.to_owned(),
            "[".repeat(100_000),
            "{a: ".repeat(100_000),
            "- ".repeat(100_000),
            "a: 1\n---\nb: 2\n".to_owned(),
            "%YAML 1.2\n---\na: 1\n".to_owned(),
            "!!python/object x".to_owned(),
        ] {
            assert!(read(&text, Limits::POLICY).is_err(), "{}", &text[..10]);
        }
    }
}
