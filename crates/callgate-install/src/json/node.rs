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

    /// On one line: without blanks as minified files have it, or with them as people write it.
    pub(super) fn on_one_line(&self, blanks: bool) -> String {
        let (colon, comma, edge) = if blanks { (": ", ", ", " ") } else { (":", ",", "") };
        let joined = |parts: Vec<String>| parts.join(comma);
        match self {
            Node::Plain(value) => value.to_string(),
            Node::Words(words) => format!("[{}]", joined(words.iter().map(|word| quoted(word)).collect())),
            Node::List(elements) => {
                format!("[{}]", joined(elements.iter().map(|element| element.on_one_line(blanks)).collect()))
            }
            Node::Object(members) => {
                let member =
                    |(key, value): &(String, Node)| format!("{}{colon}{}", quoted(key), value.on_one_line(blanks));
                format!("{{{edge}{}{edge}}}", joined(members.iter().map(member).collect()))
            }
        }
    }

    /// Over several lines. `line` is the line break with the indentation of the first line, `unit` one step more.
    pub(super) fn over_lines(&self, line: &str, unit: &str) -> String {
        let inner = format!("{line}{unit}");
        let (open, close, parts): (char, char, Vec<String>) = match self {
            Node::Plain(_) | Node::Words(_) => return self.on_one_line(true),
            Node::List(elements) => {
                ('[', ']', elements.iter().map(|element| element.over_lines(&inner, unit)).collect())
            }
            Node::Object(members) => {
                let member =
                    |(key, value): &(String, Node)| format!("{}: {}", quoted(key), value.over_lines(&inner, unit));
                ('{', '}', members.iter().map(member).collect())
            }
        };
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        format!("{open}{inner}{}{line}{close}", parts.join(&format!(",{inner}")))
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
        assert_eq!(node.on_one_line(false), r#"{"type":"command","args":["a\"b",[]]}"#);
        assert_eq!(node.on_one_line(true), r#"{ "type": "command", "args": ["a\"b", []] }"#);
        assert_eq!(
            node.over_lines("\n  ", "\t"),
            "{\n  \t\"type\": \"command\",\n  \t\"args\": [\n  \t\t\"a\\\"b\",\n  \t\t[]\n  \t]\n  }"
        );
        assert_eq!(node, Node::from(node.value()));
        assert_eq!(Node::Words(vec!["a".into(), "b".into()]).over_lines("\n", " "), r#"["a", "b"]"#);
    }
}
