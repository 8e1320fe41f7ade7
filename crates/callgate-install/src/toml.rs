//! TOML, edited in place with `toml_edit`, which keeps comments, order and layout.

use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

/// Why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TomlError {
    /// It is not TOML.
    #[error("{0}")]
    Broken(String),
    /// Something else is where a table is needed, or the value is another one.
    #[error("`{path}` is there already and says something else")]
    Taken {
        /// The key.
        path: String,
    },
}

/// A value that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// True or false.
    Truth(bool),
    /// A text.
    Text(String),
}

impl Scalar {
    fn item(&self) -> Item {
        match self {
            Scalar::Truth(truth) => value(*truth),
            Scalar::Text(text) => value(text.as_str()),
        }
    }

    fn is(&self, item: &Item) -> bool {
        match self {
            Scalar::Truth(truth) => item.as_bool() == Some(*truth),
            Scalar::Text(text) => item.as_str() == Some(text),
        }
    }
}

/// Whether another value may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// It stays, and that is an error.
    Stays,
    /// It is replaced.
    Replaced,
}

fn parse(text: &str) -> Result<DocumentMut, TomlError> {
    text.parse::<DocumentMut>().map_err(|error| TomlError::Broken(error.to_string().trim().to_owned()))
}

/// What a key says.
pub fn get(text: &str, path: &[String]) -> Result<Option<Scalar>, TomlError> {
    let document = parse(text)?;
    let mut found = document.as_item();
    for key in path {
        match found.as_table_like().and_then(|table| table.get(key)) {
            Some(item) => found = item,
            None => return Ok(None),
        }
    }
    Ok(found.as_bool().map(Scalar::Truth).or_else(|| found.as_str().map(|text| Scalar::Text(text.to_owned()))))
}

/// Sets a key; tables on the way are made.
pub fn set(text: &str, path: &[String], wanted: &Scalar, present: Present) -> Result<String, TomlError> {
    let taken = || TomlError::Taken { path: path.join(".") };
    let mut document = parse(text)?;
    let (key, tables) = path.split_last().ok_or_else(taken)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        let made = || {
            let mut table = Table::new();
            // Only written if it has keys of its own.
            table.set_implicit(true);
            Item::Table(table)
        };
        table = table.entry(name).or_insert_with(made).as_table_like_mut().ok_or_else(taken)?;
    }
    match table.get(key) {
        Some(item) if wanted.is(item) => return Ok(text.to_owned()),
        Some(item) if present == Present::Stays || !item.is_value() => return Err(taken()),
        _ => drop(table.insert(key, wanted.item())),
    }
    let mut written = document.to_string();
    if text.contains("\r\n") {
        written = written.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    Ok(written)
}

/// Takes a key out that says this, and the tables around it that are empty then and have no comment. `None` if it does not.
pub fn unset(text: &str, path: &[String], wanted: &Scalar) -> Result<Option<String>, TomlError> {
    if get(text, path)?.as_ref() != Some(wanted) {
        return Ok(None);
    }
    let mut document = parse(text)?;
    if !drop_key(document.as_table_mut(), path) {
        return Ok(None);
    }
    let mut written = document.to_string();
    if text.contains("\r\n") {
        written = written.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    Ok(Some(if written.trim().is_empty() { String::new() } else { written }))
}

fn drop_key(table: &mut dyn TableLike, path: &[String]) -> bool {
    let Some((key, rest)) = path.split_first() else { return false };
    if rest.is_empty() {
        return table.remove(key).is_some();
    }
    let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) else { return false };
    if !drop_key(inner, rest) {
        return false;
    }
    // A table that was written out stays unless it is the innermost, which holds nothing but what was set.
    let empty = inner.is_empty();
    let written_out = table.get(key).and_then(Item::as_table).is_some_and(|it| !it.is_implicit());
    if empty && (!written_out || rest.len() == 1 && !is_commented(table.get(key))) {
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

    fn path() -> Vec<String> {
        ["hooks", "state", "/a b/hooks.json:pre_tool_use:0:0", "trusted_hash"].map(str::to_owned).to_vec()
    }

    fn hash() -> Scalar {
        Scalar::Text("sha256:1".into())
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
            let after = set(before, &path(), &hash(), Present::Replaced).expect("TOML");
            assert_eq!(get(&after, &path()).expect("TOML"), Some(hash()));
            for line in before.lines() {
                assert!(after.contains(line), "{line} in {after}");
            }
            assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
            assert_eq!(set(&after, &path(), &hash(), Present::Stays).expect("TOML"), after);
            let removed = unset(&after, &path(), &hash()).expect("TOML").expect("is there");
            assert_eq!(removed.trim_end(), before.trim_end(), "{after}");
            assert_eq!(unset(&removed, &path(), &hash()).expect("TOML"), None);
        }
    }

    #[test]
    fn keys_before_all_tables_and_in_tables_that_are_there() {
        let before = "a = 1\n[features]\nx = true\n";
        let after = set(before, &["only".into()], &Scalar::Truth(true), Present::Stays).expect("TOML");
        let after =
            set(&after, &["features".into(), "hooks".into()], &Scalar::Truth(true), Present::Stays).expect("TOML");
        assert_eq!(after, "a = 1\nonly = true\n[features]\nx = true\nhooks = true\n");
    }

    #[test]
    fn what_says_something_else_is_not_touched() {
        let taken = |text: &str| set(text, &["a".into(), "b".into()], &Scalar::Truth(true), Present::Stays).is_err();
        assert!(taken("a = 1"));
        assert!(taken("[a]\nb = false"));
        assert!(taken("[a"));
        assert!(taken("[[a]]\nb = true"));
        assert!(!taken("a = { c = 1 }"));
        assert_eq!(unset("[a]\nb = false", &["a".into(), "b".into()], &Scalar::Truth(true)).expect("TOML"), None);
    }
}
