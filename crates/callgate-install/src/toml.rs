//! TOML, edited in place with `toml_edit`, which keeps comments, order and layout.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use crate::error::EditError;
use crate::settings::SyntaxError;

/// One key to set in a TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TomlEdit {
    /// The tables from the outside in, and the key.
    pub path: Vec<String>,
    /// The value: a text or a flag.
    pub value: Value,
    /// Whether it replaces another value.
    #[serde(default)]
    pub replaces: bool,
    /// Whether to leave it out if the file has another value.
    #[serde(default)]
    pub optional: bool,
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse::<DocumentMut>().map_err(|error| SyntaxError::of_toml(text, &error).into())
}

fn plain(item: &Item) -> Option<Value> {
    item.as_bool().map(Value::from).or_else(|| item.as_str().map(Value::from))
}

/// The value of a key, if it is a text or a flag.
pub(crate) fn get(text: &str, path: &[impl AsRef<str>]) -> Result<Option<Value>, EditError> {
    let document = parse(text)?;
    let mut found = document.as_item();
    for key in path {
        match found.as_table_like().and_then(|table| table.get(key.as_ref())) {
            Some(item) => found = item,
            None => return Ok(None),
        }
    }
    Ok(plain(found))
}

/// Sets a key and creates the tables on the way.
pub(crate) fn set(text: &str, edit: &TomlEdit) -> Result<String, EditError> {
    let taken = || EditError::Taken(edit.path.join("."));
    let mut document = parse(text)?;
    let (key, tables) = edit.path.split_last().ok_or_else(taken)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        let created = || {
            let mut table = Table::new();
            // Only written if it has keys of its own.
            table.set_implicit(true);
            Item::Table(table)
        };
        table = table.entry(name).or_insert_with(created).as_table_like_mut().ok_or_else(taken)?;
    }
    match table.get(key) {
        Some(item) if plain(item).as_ref() == Some(&edit.value) => return Ok(text.to_owned()),
        Some(item) if !edit.replaces || !item.is_value() => return Err(taken()),
        _ => {
            let item = match &edit.value {
                Value::Bool(truth) => value(*truth),
                other => value(other.as_str().unwrap_or_default()),
            };
            table.insert(key, item);
        }
    }
    Ok(written(&document, text))
}

/// Removes a key that has the value, and the tables around it that are empty then and have no comment. Returns `None` if
/// the key has another value.
pub(crate) fn unset(text: &str, edit: &TomlEdit) -> Result<Option<String>, EditError> {
    if get(text, &edit.path)?.as_ref() != Some(&edit.value) {
        return Ok(None);
    }
    let mut document = parse(text)?;
    if !remove_key(document.as_table_mut(), &edit.path) {
        return Ok(None);
    }
    let written = written(&document, text);
    Ok(Some(if written.trim().is_empty() { String::new() } else { written }))
}

/// The document with the line ends of `before`.
fn written(document: &DocumentMut, before: &str) -> String {
    let text = document.to_string();
    if before.contains("\r\n") { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text }
}

fn remove_key(table: &mut dyn TableLike, path: &[String]) -> bool {
    let Some((key, rest)) = path.split_first() else { return false };
    if rest.is_empty() {
        return table.remove(key).is_some();
    }
    let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) else { return false };
    if !remove_key(inner, rest) {
        return false;
    }
    // A table with a header of its own stays unless it is the innermost, which holds only the key that was set.
    let empty = inner.is_empty();
    let has_header = table.get(key).and_then(Item::as_table).is_some_and(|inner| !inner.is_implicit());
    if empty && (!has_header || rest.len() == 1 && !is_commented(table.get(key))) {
        table.remove(key);
    }
    true
}

fn is_commented(item: Option<&Item>) -> bool {
    item.and_then(Item::as_table)
        .and_then(|table| table.decor().prefix())
        .and_then(|prefix| prefix.as_str())
        .is_some_and(|prefix| prefix.contains('#'))
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;

    fn hash(replaces: bool) -> TomlEdit {
        let path = ["hooks", "state", "/a b/hooks.json:pre_tool_use:0:0", "trusted_hash"];
        TomlEdit { path: path.map(str::to_owned).to_vec(), value: "sha256:1".into(), replaces, optional: false }
    }

    fn flag(path: &[&str]) -> TomlEdit {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        TomlEdit { path, value: true.into(), replaces: false, optional: false }
    }

    #[test]
    fn everything_else_stays_and_taking_it_out_leads_back() {
        for before in [
            "",
            "# mine\nmodel = \"x\" # why\n\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n",
            "model = 'x'\r\n\r\n[a]\r\nb = 1\r\n",
            "[hooks]\n# mine\n\n[hooks.state.\"other\"]\ntrusted_hash = \"sha256:2\"\n\n# the end\n",
            "a = 1",
        ] {
            let after = set(before, &hash(true)).expect("TOML");
            assert_eq!(get(&after, &hash(true).path).expect("TOML"), Some(hash(true).value));
            for line in before.lines() {
                assert!(after.contains(line), "{line} in {after}");
            }
            assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
            assert_eq!(set(&after, &hash(false)).expect("TOML"), after);
            let removed = unset(&after, &hash(true)).expect("TOML").expect("is there");
            assert_eq!(removed.trim_end(), before.trim_end(), "{after}");
            assert_eq!(unset(&removed, &hash(true)).expect("TOML"), None);
        }
    }

    #[test]
    fn keys_before_all_tables_and_in_tables_that_are_there() {
        let before = "a = 1\n[features]\nx = true\n";
        let after = set(before, &flag(&["only"])).expect("TOML");
        let after = set(&after, &flag(&["features", "hooks"])).expect("TOML");
        assert_eq!(after, "a = 1\nonly = true\n[features]\nx = true\nhooks = true\n");
    }

    #[test]
    fn what_says_something_else_is_not_touched() {
        let taken = |text: &str| set(text, &flag(&["a", "b"])).is_err();
        assert!(taken("a = 1"));
        assert!(taken("[a]\nb = false"));
        assert!(taken("[a"));
        assert!(taken("[[a]]\nb = true"));
        assert!(!taken("a = { c = 1 }"));
        assert_eq!(unset("[a]\nb = false", &flag(&["a", "b"])).expect("TOML"), None);
    }
}
