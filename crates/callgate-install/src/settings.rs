//! Settings as ordered trees, read from JSON with comments or from TOML, and written as JSON.

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml_edit::{Document, Item, TableLike, TomlError};

/// A mark that some editors put at the start of a file.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The place where a text is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct SyntaxError {
    /// The line, counted from one.
    pub line: usize,
    /// The column, counted from one.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

impl SyntaxError {
    pub(crate) fn of_toml(text: &str, error: &TomlError) -> Self {
        SyntaxError::at(text, error.span().map_or(0, |span| span.start), error.message().trim().to_owned())
    }

    pub(crate) fn at(text: &str, offset: usize, what: String) -> Self {
        let (line, column) = line_and_column(text, offset);
        SyntaxError { line, column, what }
    }
}

/// Line and column, both counted from one, of an offset in a text.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let column = before.get(line_start..).unwrap_or_default().chars().count();
    (before.matches('\n').count().saturating_add(1), column.saturating_add(1))
}

/// A JSON or TOML value with ordered members. Values are compared by meaning, without the order of members.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub enum SettingsNode {
    /// A value without members.
    Plain(Value),
    /// A list, written with one element per line.
    List(Vec<SettingsNode>),
    /// A short list, written on one line.
    Words(Vec<String>),
    /// Members in their order.
    Table(Vec<(String, SettingsNode)>),
}

/// Parses JSON with comments and trailing commas; `None` if there is no value.
pub(crate) fn parse_json(text: &str) -> Result<Option<ast::Value<'_>>, SyntaxError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| SyntaxError {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })?;
    Ok(parsed.value)
}

impl SettingsNode {
    /// Reads JSON with comments and trailing commas. An empty text is an empty object. Members that are defined twice are
    /// both kept.
    pub fn read_json(text: &str) -> Result<Self, SyntaxError> {
        let value = parse_json(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))?;
        Ok(value.as_ref().map_or(SettingsNode::Table(Vec::new()), SettingsNode::from))
    }

    /// Reads TOML. Dates are read as null.
    pub fn read_toml(text: &str) -> Result<Self, SyntaxError> {
        let document = Document::parse(text).map_err(|error| SyntaxError::of_toml(text, &error))?;
        Ok(SettingsNode::of_table(document.as_table()))
    }

    fn of_table(table: &dyn TableLike) -> Self {
        SettingsNode::Table(table.iter().map(|(name, item)| (name.to_owned(), SettingsNode::of_item(item))).collect())
    }

    fn of_item(item: &Item) -> Self {
        match item {
            Item::None => SettingsNode::Plain(Value::Null),
            Item::Table(table) => SettingsNode::of_table(table),
            Item::ArrayOfTables(tables) => {
                SettingsNode::List(tables.iter().map(|table| SettingsNode::of_table(table)).collect())
            }
            Item::Value(value) => SettingsNode::of_toml_value(value),
        }
    }

    fn of_toml_value(value: &toml_edit::Value) -> Self {
        match value {
            toml_edit::Value::String(text) => text.value().as_str().into(),
            toml_edit::Value::Integer(number) => SettingsNode::Plain((*number.value()).into()),
            toml_edit::Value::Float(number) => SettingsNode::Plain((*number.value()).into()),
            toml_edit::Value::Boolean(truth) => (*truth.value()).into(),
            toml_edit::Value::Datetime(_) => SettingsNode::Plain(Value::Null),
            toml_edit::Value::Array(list) => SettingsNode::List(list.iter().map(SettingsNode::of_toml_value).collect()),
            toml_edit::Value::InlineTable(table) => SettingsNode::of_table(table),
        }
    }

    /// Builds an object with these members.
    pub fn object<const N: usize>(members: [(&str, SettingsNode); N]) -> Self {
        SettingsNode::Table(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&SettingsNode> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value at a path of members.
    pub fn at(&self, keys: &[&str]) -> Option<&SettingsNode> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The members of an object; empty for any other value.
    pub fn entries(&self) -> &[(String, SettingsNode)] {
        match self {
            SettingsNode::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The elements of a list; empty for any other value.
    pub fn items(&self) -> &[SettingsNode] {
        match self {
            SettingsNode::List(items) => items,
            _ => &[],
        }
    }

    /// The value, if it is a text.
    pub fn text(&self) -> Option<&str> {
        self.plain().and_then(Value::as_str)
    }

    /// The value, if it is true or false.
    pub fn flag(&self) -> Option<bool> {
        self.plain().and_then(Value::as_bool)
    }

    /// The value, if it is a number.
    pub fn number(&self) -> Option<f64> {
        self.plain().and_then(Value::as_f64)
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        self.plain().is_some_and(Value::is_null)
    }

    /// A text as a list of one, or a list of texts; `None` for any other value.
    pub fn texts(&self) -> Option<Vec<&str>> {
        match self {
            SettingsNode::Plain(value) => value.as_str().map(|text| vec![text]),
            SettingsNode::List(items) => items.iter().map(SettingsNode::text).collect(),
            SettingsNode::Words(_) | SettingsNode::Table(_) => None,
        }
    }

    /// Replaces the texts for which `fill` has a value.
    pub(crate) fn filled(&self, fill: &dyn Fn(&str) -> Option<SettingsNode>) -> SettingsNode {
        match self {
            SettingsNode::Plain(Value::String(text)) => fill(text).unwrap_or_else(|| self.clone()),
            SettingsNode::Plain(_) | SettingsNode::Words(_) => self.clone(),
            SettingsNode::List(elements) => SettingsNode::List(elements.iter().map(|it| it.filled(fill)).collect()),
            SettingsNode::Table(members) => {
                SettingsNode::Table(members.iter().map(|(key, value)| (key.clone(), value.filled(fill))).collect())
            }
        }
    }

    fn plain(&self) -> Option<&Value> {
        match self {
            SettingsNode::Plain(value) => Some(value),
            _ => None,
        }
    }

    /// The value without the order of its members.
    pub(crate) fn value(&self) -> Value {
        self.clone().into()
    }

    /// Writes the value on one line: compact as in minified files, or spaced.
    pub(crate) fn on_one_line(&self, spaced: bool) -> String {
        let (colon, comma, edge) = if spaced { (": ", ", ", " ") } else { (":", ",", "") };
        let list = |parts: Vec<String>| format!("[{}]", parts.join(comma));
        match self {
            SettingsNode::Plain(value) => value.to_string(),
            SettingsNode::Words(words) => list(words.iter().map(|word| quoted(word)).collect()),
            SettingsNode::List(elements) => list(elements.iter().map(|element| element.on_one_line(spaced)).collect()),
            SettingsNode::Table(members) => {
                let member = |(key, value): &(String, SettingsNode)| {
                    format!("{}{colon}{}", quoted(key), value.on_one_line(spaced))
                };
                format!("{{{edge}{}{edge}}}", members.iter().map(member).collect::<Vec<_>>().join(comma))
            }
        }
    }

    /// Writes the value on several lines. `line` is a line break with the indentation of the first line, `unit` one step of
    /// indentation.
    pub(crate) fn over_lines(&self, line: &str, unit: &str) -> String {
        let inner = format!("{line}{unit}");
        let (open, close, parts): (char, char, Vec<String>) = match self {
            SettingsNode::Plain(_) | SettingsNode::Words(_) => return self.on_one_line(true),
            SettingsNode::List(elements) => {
                ('[', ']', elements.iter().map(|element| element.over_lines(&inner, unit)).collect())
            }
            SettingsNode::Table(members) => {
                let member = |(key, value): &(String, SettingsNode)| {
                    format!("{}: {}", quoted(key), value.over_lines(&inner, unit))
                };
                ('{', '}', members.iter().map(member).collect())
            }
        };
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        format!("{open}{inner}{}{line}{close}", parts.join(&format!(",{inner}")))
    }
}

/// Writes a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl PartialEq for SettingsNode {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl From<&ast::Value<'_>> for SettingsNode {
    fn from(value: &ast::Value<'_>) -> Self {
        match value {
            ast::Value::StringLit(text) => text.value.as_ref().into(),
            ast::Value::NumberLit(number) => {
                SettingsNode::Plain(serde_json::from_str(number.value).unwrap_or_default())
            }
            ast::Value::BooleanLit(truth) => truth.value.into(),
            ast::Value::NullKeyword(_) => SettingsNode::Plain(Value::Null),
            ast::Value::Array(array) => SettingsNode::List(array.elements.iter().map(SettingsNode::from).collect()),
            ast::Value::Object(object) => {
                let member = |member: &ast::ObjectProp<'_>| (member.name.as_str().to_owned(), (&member.value).into());
                SettingsNode::Table(object.properties.iter().map(member).collect())
            }
        }
    }
}

impl From<SettingsNode> for Value {
    fn from(node: SettingsNode) -> Self {
        match node {
            SettingsNode::Plain(value) => value,
            SettingsNode::List(elements) => Value::Array(elements.into_iter().map(Value::from).collect()),
            SettingsNode::Words(words) => words.into(),
            SettingsNode::Table(members) => {
                Value::Object(members.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}

impl From<Value> for SettingsNode {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(elements) => SettingsNode::List(elements.into_iter().map(SettingsNode::from).collect()),
            Value::Object(members) => {
                SettingsNode::Table(members.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
            plain => SettingsNode::Plain(plain),
        }
    }
}

impl From<&str> for SettingsNode {
    fn from(text: &str) -> Self {
        SettingsNode::Plain(text.into())
    }
}

impl From<bool> for SettingsNode {
    fn from(truth: bool) -> Self {
        SettingsNode::Plain(truth.into())
    }
}

impl From<u64> for SettingsNode {
    fn from(number: u64) -> Self {
        SettingsNode::Plain(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_in_their_order_compactly_or_over_lines() {
        let node = SettingsNode::object([
            ("type", "command".into()),
            ("args", SettingsNode::List(vec!["a\"b".into(), SettingsNode::List(vec![])])),
        ]);
        assert_eq!(node.on_one_line(false), r#"{"type":"command","args":["a\"b",[]]}"#);
        assert_eq!(node.on_one_line(true), r#"{ "type": "command", "args": ["a\"b", []] }"#);
        assert_eq!(
            node.over_lines("\n  ", "\t"),
            "{\n  \t\"type\": \"command\",\n  \t\"args\": [\n  \t\t\"a\\\"b\",\n  \t\t[]\n  \t]\n  }"
        );
        assert_eq!(node, SettingsNode::from(node.value()));
        assert_eq!(SettingsNode::Words(vec!["a".into(), "b".into()]).over_lines("\n", " "), r#"["a", "b"]"#);
    }

    #[test]
    fn comments_and_trailing_commas_and_nothing_else() {
        for text in ["", "// nothing", "{}", "/* a */ {\"a\": [1, 2,], // b\n}"] {
            assert!(parse_json(text).is_ok(), "{text}");
        }
        let loose = [
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 0x1}",
            "{\"a\": +1}",
            "{\"a\": .5}",
            "{\"a\": NaN}",
            "[1 2]",
            "[1,,2]",
            "{} {}",
            "{",
        ];
        for text in loose {
            assert!(parse_json(text).is_err(), "{text}");
        }
        let broken = parse_json("{\n  \"a\": ,\n}").map(|_| ()).unwrap_err();
        assert_eq!((broken.line, broken.column), (2, 8));
    }

    #[test]
    fn json_and_toml_keep_their_order() {
        let node = SettingsNode::read_json("{ // why\n \"z\": \"1\", \"a\": [true, 2, null,], }").unwrap();
        let names: Vec<&str> = node.entries().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        let node = SettingsNode::read_toml("[a]\nb = [\"x\", {c = true}]\n[[rule]]\nn = 1\n[[rule]]\nn = 2.5").unwrap();
        assert_eq!(node.at(&["a", "b"]).unwrap().items()[1].get("c").and_then(SettingsNode::flag), Some(true));
        assert_eq!(node.get("rule").unwrap().items()[1].get("n").and_then(SettingsNode::number), Some(2.5));
        assert_eq!(SettingsNode::read_toml("a = 1\nb = ").unwrap_err().line, 2);
    }
}
