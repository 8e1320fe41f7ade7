//! YAML as a tree in which every node knows where it stands.
//!
//! Policies are read from a tree and not through `serde`, because a reader that stops at the first mistake shows a person
//! one mistake at a time. Scalars stay text, so `no` is never `false`. Anchors and aliases are refused: a policy has named
//! sets for that, and without aliases there is no bomb.

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
    /// Enough for 10,000 rules with examples, far too little to hurt.
    pub(crate) const POLICY: Self = Self { bytes: 16 * 1024 * 1024, nodes: 1_000_000, depth: 24 };
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub position: Position,
    pub value: Value,
}

/// The three kinds of YAML values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
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
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { .. } => "text",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// Whether nothing was written here.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// The same value as JSON, with YAML's core types.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Scalar { text, plain } => scalar_to_json(text, *plain),
            Value::Sequence(items) => items.iter().map(Node::to_json).collect(),
            Value::Mapping(entries) => entries
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
        return Err(Mistake::new(Position::default(), format!("the file is larger than {} bytes", limits.bytes)));
    }
    let mut options = Options::default();
    options.disallow_directives = true;
    let mut reader = Reader { open: Vec::new(), root: None, nodes: 0, limits };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            Mistake::new(position_of(error.marker(), error.marker()), format!("this is not YAML: {}", error.info()))
        })?;
        reader.take(event, span)?;
    }
    Ok(reader.root.unwrap_or(Node { position: Position::default(), value: Value::Mapping(Vec::new()) }))
}

fn position_of(start: &granit_parser::Marker, end: &granit_parser::Marker) -> Position {
    Position {
        line: start.line(),
        column: start.col().saturating_add(1),
        start: start.byte_offset().unwrap_or_default(),
        end: end.byte_offset().unwrap_or_default(),
    }
}

/// A collection that is not closed yet.
enum Open {
    Sequence(Position, Vec<Node>),
    Mapping(Position, Vec<(Node, Node)>, Option<Node>),
}

struct Reader {
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
    limits: Limits,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        let position = position_of(&span.start, &span.end);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(position, anchor, tag.is_some())?;
                self.place(Node {
                    position,
                    value: Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain },
                })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.count(position, anchor, tag.is_some())?;
                self.open.push(Open::Sequence(position, Vec::new()));
                Ok(())
            }
            Event::MappingStart(_, anchor, tag) => {
                self.count(position, anchor, tag.is_some())?;
                self.open.push(Open::Mapping(position, Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::Sequence(position, items)) => self.place(Node { position, value: Value::Sequence(items) }),
                Some(Open::Mapping(position, entries, _)) => {
                    self.place(Node { position, value: Value::Mapping(entries) })
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
            return Err(Mistake::new(position, "tags (`!name`) are not used in policy files")
                .help("put the text in quotes if it starts with `!`"));
        }
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > self.limits.nodes {
            return Err(Mistake::new(position, format!("the file has more than {} values", self.limits.nodes)));
        }
        if self.open.len() >= self.limits.depth {
            return Err(Mistake::new(position, format!("nested more than {} levels deep", self.limits.depth)));
        }
        Ok(())
    }

    fn place(&mut self, node: Node) -> Result<(), Mistake> {
        match self.open.last_mut() {
            None if self.root.is_some() => Err(Mistake::new(node.position, "a second document")
                .help("a policy file holds one document; remove the `---`")),
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some(Open::Sequence(_, items)) => {
                items.push(node);
                Ok(())
            }
            Some(Open::Mapping(_, entries, waiting)) => {
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
    Mistake::new(position, "anchors and aliases are not used in policy files")
        .help("write a named set (`sets:`) and refer to it as \"@name\"; quote text that starts with `*` or `&`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_place() {
        let node = read("a: 1\nb:\n  - x\n", Limits::POLICY).unwrap();
        let Value::Mapping(entries) = node.value else { panic!() };
        assert_eq!((entries[1].0.position.line, entries[1].0.position.column), (2, 1));
        let Value::Sequence(items) = &entries[1].1.value else { panic!() };
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
