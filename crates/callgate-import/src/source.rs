//! Settings files as ordered trees: JSON with comments and TOML, read strictly.

use std::path::PathBuf;

use jsonc_parser::ast;
use toml_edit::{Document, Item, TableLike};

use super::{Around, ImportError};
use callgate_install::jsonc;

/// A settings file may be this long.
pub const MAXIMUM_SIZE: usize = 4 * 1024 * 1024;
/// A file may have this many values.
const MAXIMUM_VALUES: usize = 200_000;
/// How deep values may be nested.
const MAXIMUM_DEPTH: usize = 64;

/// Whose settings a file holds, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The user's.
    User,
    /// The project's, shared by everybody who works on it.
    Project,
    /// The user's for this project.
    Local,
    /// The machine's owner's.
    Managed,
}

/// A settings file.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is called in comments and notes.
    pub name: String,
    /// Whose it is.
    pub layer: Layer,
    /// What it says.
    pub text: String,
}

impl Source {
    /// A file, called by its path below the project or the home directory.
    pub fn new(path: impl Into<PathBuf>, layer: Layer, text: impl Into<String>, around: &Around) -> Self {
        let path = path.into();
        let name = match (path.strip_prefix(&around.project), path.strip_prefix(&around.home)) {
            (Ok(inside), _) => inside.display().to_string(),
            (_, Ok(below)) => format!("~/{}", below.display()),
            _ => path.display().to_string(),
        };
        Source { path, name, layer, text: text.into() }
    }

    /// The file and something in it, as comments and notes name it.
    pub(super) fn origin(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }

    pub(super) fn unusable(&self, why: impl Into<String>) -> ImportError {
        ImportError::Unusable { path: self.path.display().to_string(), why: why.into() }
    }

    /// The directory it lies in.
    pub(super) fn directory(&self) -> PathBuf {
        self.path.parent().map(PathBuf::from).unwrap_or_default()
    }

    fn check_size(&self) -> Result<(), ImportError> {
        if self.text.len() > MAXIMUM_SIZE {
            return Err(self.unusable(format!("it is larger than {MAXIMUM_SIZE} bytes")));
        }
        Ok(())
    }

    /// The file as JSON; comments and trailing commas are read over.
    pub(super) fn json(&self) -> Result<Node, ImportError> {
        self.check_size()?;
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        if text.trim().is_empty() {
            return Ok(Node::Table(Vec::new()));
        }
        let parsed = jsonc::parse(text).map_err(|error| self.unusable(format!("it is no JSON: {error}")))?;
        let mut reader = Reader { left: MAXIMUM_VALUES };
        match parsed {
            Some(value) => reader.json(&value, 0).map_err(|why| self.unusable(why)),
            None => Ok(Node::Table(Vec::new())),
        }
    }

    /// The file as TOML.
    pub(super) fn toml(&self) -> Result<Node, ImportError> {
        self.check_size()?;
        let document = Document::parse(self.text.as_str()).map_err(|error| {
            let message = error.message().trim();
            self.unusable(format!("it is no TOML: {message}"))
        })?;
        let mut reader = Reader { left: MAXIMUM_VALUES };
        reader.table(document.as_table(), 0).map_err(|why| self.unusable(why))
    }
}

/// A value of a settings file. Tables keep the order in which they were written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Text(String),
    Flag(bool),
    Number(f64),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    Nothing,
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value behind several keys: `a.b`.
    pub(super) fn at(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(super) fn entries(&self) -> &[(String, Node)] {
        match self {
            Node::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Node] {
        match self {
            Node::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self {
            Node::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A text, or a list of texts; `None` if it is anything else.
    pub(super) fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Node::Text(text) => Some(vec![text]),
            Node::List(items) => items.iter().map(Node::text).collect(),
            _ => None,
        }
    }
}

struct Reader {
    left: usize,
}

impl Reader {
    fn enter(&mut self, depth: usize) -> Result<usize, String> {
        self.left = self.left.checked_sub(1).ok_or_else(|| format!("it has more than {MAXIMUM_VALUES} values"))?;
        if depth >= MAXIMUM_DEPTH {
            return Err(format!("it is nested more than {MAXIMUM_DEPTH} levels deep"));
        }
        Ok(depth.saturating_add(1))
    }

    fn json(&mut self, value: &ast::Value<'_>, depth: usize) -> Result<Node, String> {
        let inner = self.enter(depth)?;
        Ok(match value {
            ast::Value::StringLit(text) => Node::Text(text.value.to_string()),
            ast::Value::NumberLit(number) => Node::Number(number.value.parse().unwrap_or(f64::NAN)),
            ast::Value::BooleanLit(flag) => Node::Flag(flag.value),
            ast::Value::NullKeyword(_) => Node::Nothing,
            ast::Value::Array(list) => {
                Node::List(list.elements.iter().map(|element| self.json(element, inner)).collect::<Result<_, _>>()?)
            }
            ast::Value::Object(object) => {
                let mut seen = std::collections::HashSet::new();
                let mut entries = Vec::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    // Programs take one or the other; what it denies would be a guess.
                    if !seen.insert(name.to_owned()) {
                        return Err(format!("it names the key \"{name}\" twice"));
                    }
                    entries.push((name.to_owned(), self.json(&property.value, inner)?));
                }
                Node::Table(entries)
            }
        })
    }

    fn table(&mut self, table: &dyn TableLike, depth: usize) -> Result<Node, String> {
        let inner = self.enter(depth)?;
        let mut entries = Vec::new();
        for (name, item) in table.iter() {
            entries.push((name.to_owned(), self.item(item, inner)?));
        }
        Ok(Node::Table(entries))
    }

    fn item(&mut self, item: &Item, depth: usize) -> Result<Node, String> {
        if let Some(table) = item.as_table_like() {
            return self.table(table, depth);
        }
        let inner = self.enter(depth)?;
        Ok(match item {
            Item::ArrayOfTables(tables) => {
                Node::List(tables.iter().map(|table| self.table(table, inner)).collect::<Result<_, _>>()?)
            }
            Item::Value(value) => self.value(value, inner)?,
            Item::None | Item::Table(_) => Node::Nothing,
        })
    }

    fn value(&mut self, value: &toml_edit::Value, depth: usize) -> Result<Node, String> {
        let inner = self.enter(depth)?;
        Ok(match value {
            toml_edit::Value::String(text) => Node::Text(text.value().clone()),
            toml_edit::Value::Integer(number) => Node::Number(*number.value() as f64),
            toml_edit::Value::Float(number) => Node::Number(*number.value()),
            toml_edit::Value::Boolean(flag) => Node::Flag(*flag.value()),
            toml_edit::Value::Datetime(_) => Node::Nothing,
            toml_edit::Value::Array(list) => {
                Node::List(list.iter().map(|element| self.value(element, inner)).collect::<Result<_, _>>()?)
            }
            toml_edit::Value::InlineTable(table) => self.table(table, inner)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let around = Around { home: "/home/ada".into(), project: "/home/ada/project".into() };
        Source::new("settings", Layer::User, text, &around)
    }

    #[test]
    fn order_and_comments() {
        let node = source("{ // why\n \"z\": \"1\", \"a\": [true, 2, null,], }").json().unwrap();
        let names: Vec<&str> = node.entries().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        assert_eq!(source("").json().unwrap(), Node::Table(Vec::new()));
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": 1} {"b": 2}"#,
            "{'a': 1}",
            "{a: 1}",
            "{\"a\": ",
            &"[".repeat(100_000),
            &format!("{}1{}", "[".repeat(100), "]".repeat(100)),
            &format!("[{}1]", "1,".repeat(300_000)),
            &" ".repeat(MAXIMUM_SIZE + 1),
        ] {
            assert!(source(text).json().is_err(), "{}", text.chars().take(40).collect::<String>());
        }
        for text in ["a = 1\na = 2", "[a\n", "a = ", &format!("a = {}", "[".repeat(100_000))] {
            assert!(source(text).toml().is_err(), "{}", text.chars().take(40).collect::<String>());
        }
    }

    #[test]
    fn toml_tables() {
        let node = source("[a]\nb = [\"x\", {c = true}]\n[[rule]]\nn = 1\n[[rule]]\nn = 2.5").toml().unwrap();
        assert_eq!(node.at(&["a", "b"]).unwrap().items()[1].get("c"), Some(&Node::Flag(true)));
        assert_eq!(node.get("rule").unwrap().items()[1].get("n"), Some(&Node::Number(2.5)));
    }
}
