//! Reads which keys a configuration file sets: TOML, JSON, and INI in the plain form in which people write it. Anything else is not
//! understood.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Map, Value};
use toml_edit::{Document, Item, TableLike};

/// The keys that a file sets, written `section.key`; `None` if it is not understood.
pub(super) fn keys(path: &Path, text: &str) -> Option<Vec<String>> {
    // Some programs begin a new line there, others do not.
    if text.replace("\r\n", "\n").contains('\r') {
        return None;
    }
    if matches!(path.extension().and_then(OsStr::to_str), Some("json" | "toml")) {
        return value_keys(&document(path, text)?);
    }
    // The older form of a toolchain file: one word.
    let mut words = text.split_whitespace();
    if path.extension().is_none()
        && let (Some(word), None) = (words.next(), words.next())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
    {
        return Some(vec!["toolchain.channel".to_owned()]);
    }
    sections(text)
}

/// A JSON or TOML document as one value; `None` if it is neither, is invalid or names a key twice.
pub(super) fn document(path: &Path, text: &str) -> Option<Value> {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => callgate_model::json::read(text.as_bytes()).ok(),
        Some("toml") => Document::parse(text).ok().map(|document| of_table(document.as_table())),
        _ => None,
    }
}

// INVARIANT: the parser limits how deep tables and arrays are nested, so that these two come to an end.
fn of_table(table: &dyn TableLike) -> Value {
    table.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect::<Map<String, Value>>().into()
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Table(table) => of_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| of_table(table)).collect(),
        Item::Value(value) => of_value(value),
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Array(items) => items.iter().map(of_value).collect(),
        toml_edit::Value::InlineTable(table) => of_table(table),
        // Numbers, dates and truth values, as they are written.
        other => other.to_string().trim().into(),
    }
}

/// A key as it stands between dots, quoted if it is not a plain one; `None` if it could be taken for several.
pub(super) fn part_of_key(key: &str) -> Option<String> {
    match is_key(key) && !key.contains('.') {
        true => Some(key.to_owned()),
        false => (!key.contains('"')).then(|| format!("\"{key}\"")),
    }
}

/// The keys of a document, those of nested objects with dots; `None` if a name could be taken for several.
fn value_keys(document: &Value) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), document)];
    while let Some((front, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let key = part_of_key(key)?;
                    open.push((if front.is_empty() { key } else { format!("{front}.{key}") }, value));
                }
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                open.extend(items.iter().map(|item| (front.clone(), item)));
            }
            _ => found.push(front),
        }
    }
    Some(found)
}

/// The keys of a file of sections, without inline tables, escapes and text over several lines.
fn sections(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut in_array = false;
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if in_array {
            let (items, rest) = line.split_once(']').map_or((line, None), |(items, rest)| (items, Some(rest)));
            is_plain(items).then_some(())?;
            in_array = rest.is_none();
            rest.is_none_or(is_end).then_some(())?;
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let (name, rest) = header.split_once(']')?;
            // mypy's sections are named after modules: `[mypy-a.*,b]`.
            (is_key(&name.replace(['*', ','], "")) && is_end(rest)).then_some(())?;
            section = format!("{name}.");
            continue;
        }
        let (key, value) = line.split_once('=')?;
        let (key, value) = (key.trim_end(), value.trim_start());
        is_key(key).then_some(())?;
        found.push(format!("{section}{key}"));
        match value.strip_prefix('[') {
            Some(items) => {
                let (items, rest) = items.split_once(']').map_or((items, None), |(items, rest)| (items, Some(rest)));
                is_plain(items).then_some(())?;
                in_array = rest.is_none();
                rest.is_none_or(is_end).then_some(())?;
            }
            None => is_plain(value).then_some(())?,
        }
    }
    (!in_array).then_some(found)
}

/// A bare key, possibly with dots.
fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Values without anything that could hide a key: no tables, no escapes, quotes in pairs on one line, not three in a row.
fn is_plain(values: &str) -> bool {
    let paired = |quote: char| values.matches(quote).count().is_multiple_of(2);
    !values.contains(['{', '}', '[', ']', '\\'])
        && !values.contains("\"\"\"")
        && !values.contains("'''")
        && paired('"')
        && paired('\'')
}

/// Nothing, or a comment.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with('#')
}

/// Whether a text contains one of these words, or may hide one behind an escape.
pub(super) fn contains_word(text: &str, words: &[String]) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    text.contains("\\u")
        || text.contains("\\U")
        || text.contains("\\x")
        || text.split(|character| !is_part(character)).any(|token| words.iter().any(|word| word == token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> Option<Vec<String>> {
        keys(Path::new("x.toml"), text)
    }

    #[test]
    fn keys_of_plain_files() {
        let found = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(toml("# x\n[net]\nretry = 2 # y\n\n[a.b]\nc.d = \"e\"\n"), found(&["net.retry", "a.b.c.d"]));
        assert_eq!(toml("[toolchain]\ncomponents = [\n  \"clippy\",\n]\n"), found(&["toolchain.components"]));
        assert_eq!(keys(Path::new("rust-toolchain"), "1.81.0\n"), found(&["toolchain.channel"]));
        assert_eq!(
            toml("[a]\nx = [{ \"p\\u0061th\" = 1 }, { y = 2 }]\n[[b]]\nc = 1\n"),
            found(&["b.c", "a.x.y", "a.x.path"])
        );
        assert_eq!(toml("[a.\"b.c/*\"]\nd = 1\n"), found(&["a.\"b.c/*\".d"]));
        assert_eq!(
            keys(Path::new("mypy.ini"), "[mypy]\nstrict = True\n[mypy-a.*]\nx=1\n"),
            found(&["mypy.strict", "mypy-a.*.x"])
        );
        assert_eq!(keys(Path::new("x.json"), r#"{"a":{"b":1},"c":[]}"#), found(&["c", "a.b"]));
    }

    #[test]
    fn what_may_hide_a_key_is_not_understood() {
        for text in ["x", "a b", "x = [\n1", "x = 'a", "x = 1\rpath = 2", "x = 1\nx = 2", "'a\"b' = 1"] {
            assert_eq!(toml(text), None, "{text}");
        }
        for text in [
            "[net]\nx = { path = 1 }",
            "\"pa\\u0074h\" = 1",
            "x = \"\"\"\n[a]\n\"\"\"",
            "[[a]]\nx = 1",
            "x",
            "plugins: a",
            "plugins =\n  a",
            "[\"a\"]\nb = 1",
        ] {
            assert_eq!(keys(Path::new("x.ini"), text), None, "{text}");
        }
        // Nesting is limited.
        assert_eq!(toml(&format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000))), None);
        assert_eq!(toml(&format!("a{} = 1", ".a".repeat(100_000))), None);
        assert_eq!(keys(Path::new("x.json"), "{"), None);
    }

    #[test]
    fn words_are_whole() {
        let words = ["git".to_owned(), "prepare".to_owned()];
        assert!(contains_word("x = { git = \"y\" }", &words) && contains_word("{\"prepare\": 1}", &words));
        assert!(contains_word("\"\\u0067it\"", &words));
        assert!(!contains_word("https://github.com/x prepared", &words));
    }
}
