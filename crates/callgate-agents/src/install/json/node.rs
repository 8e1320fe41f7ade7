//! JSON to be written: its members keep the order in which a person would write them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON value with ordered members. Compared by meaning, as [`Value`]s.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub enum Node {
    /// Anything without members.
    Plain(Value),
    /// A list, each element on a line of its own.
    List(Vec<Node>),
    /// A short list on one line.
    Words(Vec<String>),
    /// Members in this order.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// An object with these members.
    pub fn object<const N: usize>(members: [(&str, Node); N]) -> Self {
        Node::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// A list of one.
    pub fn list_of(element: Node) -> Self {
        Node::List(vec![element])
    }

    /// The value without an order.
    pub fn value(&self) -> Value {
        self.clone().into()
    }

    /// On one line, as minified files have it.
    pub(super) fn compact(&self) -> String {
        self.value_text(&mut |_| String::new(), 0, ":", ",")
    }

    /// Over several lines. `line` is the line break with the indentation of the first line, `unit` one step more.
    pub(super) fn lines(&self, line: &str, unit: &str) -> String {
        self.value_text(&mut |depth| format!("{line}{}", unit.repeat(depth)), 0, ": ", ",")
    }

    fn value_text(&self, line: &mut dyn FnMut(usize) -> String, depth: usize, colon: &str, comma: &str) -> String {
        let inner = depth.saturating_add(1);
        let (open, close, parts): (char, char, Vec<String>) = match self {
            Node::Plain(value) => return value.to_string(),
            Node::Words(words) => {
                let gap = if colon == ":" { "," } else { ", " };
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                return format!("[{}]", words.join(gap));
            }
            Node::List(elements) => {
                ('[', ']', elements.iter().map(|element| element.value_text(line, inner, colon, comma)).collect())
            }
            Node::Object(members) => (
                '{',
                '}',
                members
                    .iter()
                    .map(|(key, value)| {
                        format!("{}{colon}{}", quoted(key), value.value_text(line, inner, colon, comma))
                    })
                    .collect(),
            ),
        };
        let mut text = String::from(open);
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                text.push_str(comma);
            }
            text.push_str(&line(inner));
            text.push_str(part);
        }
        if !parts.is_empty() {
            text.push_str(&line(depth));
        }
        text.push(close);
        text
    }
}

/// A string as JSON has it.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl From<Node> for Value {
    fn from(node: Node) -> Self {
        match node {
            Node::Plain(value) => value,
            Node::List(elements) => Value::Array(elements.into_iter().map(Value::from).collect()),
            Node::Words(words) => words.into(),
            Node::Object(members) => {
                Value::Object(members.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(elements) => Node::List(elements.into_iter().map(Node::from).collect()),
            Value::Object(members) => {
                Node::Object(members.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
            plain => Node::Plain(plain),
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Node::Plain(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Node::Plain(text.into())
    }
}

impl From<bool> for Node {
    fn from(truth: bool) -> Self {
        Node::Plain(truth.into())
    }
}

impl From<u64> for Node {
    fn from(number: u64) -> Self {
        Node::Plain(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_in_their_order_compactly_or_over_lines() {
        let node =
            Node::object([("type", "command".into()), ("args", Node::List(vec!["a\"b".into(), Node::List(vec![])]))]);
        assert_eq!(node.compact(), r#"{"type":"command","args":["a\"b",[]]}"#);
        assert_eq!(
            node.lines("\n  ", "\t"),
            "{\n  \t\"type\": \"command\",\n  \t\"args\": [\n  \t\t\"a\\\"b\",\n  \t\t[]\n  \t]\n  }"
        );
        assert_eq!(node, Node::from(node.value()));
        let words = Node::Words(vec!["a".into(), "b".into()]);
        assert_eq!((words.compact().as_str(), words.lines("\n", " ").as_str()), (r#"["a","b"]"#, r#"["a", "b"]"#));
    }
}
