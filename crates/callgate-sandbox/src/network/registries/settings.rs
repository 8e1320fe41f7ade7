//! What in the settings files of package managers names a registry.

use toml_edit::{Document, Item, Table, TableLike, Value};

/// A setting that names registries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Its name, with the names of the tables around it.
    pub(super) key: String,
    /// Its value, which may be a list of URLs.
    pub(super) value: String,
}

/// How a file is read, and which keys of it count.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    /// Lines with a key and a value, behind which indented lines go on.
    Lines(fn(&str) -> bool),
    /// TOML, by the path of a key with dots.
    Toml(fn(&str) -> bool),
    /// JSON, by the path of a key with dots.
    Json(fn(&str) -> bool),
    /// XML: the text of these elements.
    Elements(&'static str),
    /// XML: the value of every `<add>` in this element.
    Added(&'static str),
}

pub(super) const NPM: Format = Format::Lines(|key| key == "registry" || key.ends_with(":registry"));
pub(super) const YARN: Format = Format::Lines(|key| key == "npmRegistryServer");
pub(super) const BUN: Format =
    Format::Toml(|key| key.starts_with("install.registry") || key.starts_with("install.scopes."));
pub(super) const PIP: Format = Format::Lines(|key| {
    matches!(
        key,
        "index-url" | "index_url" | "extra-index-url" | "extra_index_url" | "find-links" | "find_links" | "index"
    )
});
pub(super) const UV: Format = Format::Toml(|key| {
    let last = key.rsplit('.').next().unwrap_or_default();
    matches!(last, "index-url" | "extra-index-url" | "find-links")
        || matches!(key, "index.url" | "pip.index.url" | "pypi.url")
});
pub(super) const POETRY: Format = Format::Toml(|key| key.starts_with("repositories.") && key.ends_with(".url"));
pub(super) const CONDA: Format = Format::Lines(|key| matches!(key, "channels" | "default_channels" | "channel_alias"));
pub(super) const CARGO: Format = Format::Toml(|key| {
    let table = |name: &str| key.starts_with(name);
    table("registries.") && key.ends_with(".index")
        || table("source.") && (key.ends_with(".registry") || key.ends_with(".git"))
        || key == "registry.index"
});
pub(super) const GO: Format = Format::Lines(|key| matches!(key, "GOPROXY" | "GOSUMDB"));
pub(super) const GEM: Format = Format::Lines(|key| matches!(key, ":sources" | "sources"));
pub(super) const BUNDLER: Format = Format::Lines(|key| key.starts_with("BUNDLE_MIRROR__"));
pub(super) const MAVEN: Format = Format::Elements("url");
pub(super) const COMPOSER: Format =
    Format::Json(|key| key.starts_with("repositories.") && (key == "repositories.url" || key.ends_with(".url")));
pub(super) const NUGET: Format = Format::Added("packageSources");

impl Format {
    /// The settings of a file that name registries. What is not well-formed has none.
    pub(super) fn settings(self, text: &str) -> Vec<Setting> {
        let mut found = Vec::new();
        match self {
            Self::Lines(counts) => lines(text, counts, &mut found),
            Self::Toml(counts) => {
                if let Ok(document) = text.parse::<Document<String>>() {
                    table(document.as_table(), "", counts, &mut found);
                }
            }
            Self::Json(counts) => {
                if let Ok(value) = serde_json::from_str(text) {
                    json(&value, "", counts, &mut found);
                }
            }
            Self::Elements(name) => {
                let text = without_comments(text);
                found.extend(
                    elements(&text, name).map(|value| Setting { key: name.to_owned(), value: value.to_owned() }),
                );
            }
            Self::Added(name) => {
                let text = without_comments(text);
                for element in elements(&text, name) {
                    for tag in element.split("<add").skip(1) {
                        let tag = tag.split('>').next().unwrap_or_default();
                        let value = tag.split_once("value=").map(|(_, value)| value).unwrap_or_default();
                        // Only the value itself: what follows it may be another attribute.
                        let quote = value.chars().next().filter(|char| matches!(char, '"' | '\''));
                        let value = quote.and_then(|quote| value.split(quote).nth(1)).unwrap_or_default();
                        found.push(Setting { key: name.to_owned(), value: value.to_owned() });
                    }
                }
            }
        }
        found
    }
}

fn lines(text: &str, counts: fn(&str) -> bool, found: &mut Vec<Setting>) {
    let mut current = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let separator = |char: char| matches!(char, '=' | ' ' | '\t');
        let (key, value) = if let Some(item) = trimmed.strip_prefix("- ") {
            (current.clone(), item)
        } else if line.starts_with([' ', '\t']) && (trimmed.starts_with("http") || !trimmed.contains([':', '='])) {
            (current.clone(), trimmed)
        } else {
            // `key = value`, `key: value`, `"key" "value"`; a key of npm may contain colons.
            let (key, value) = trimmed
                .split_once(": ")
                .filter(|(key, _)| !key.contains(separator))
                .or_else(|| trimmed.split_once(separator))
                .unwrap_or((trimmed, ""));
            current = key.trim_matches(['"', '\'', ' ']).trim_end_matches(':').to_owned();
            (current.clone(), value)
        };
        if counts(&key) {
            found.push(Setting { key, value: value.to_owned() });
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn table(table: &Table, path: &str, counts: fn(&str) -> bool, found: &mut Vec<Setting>) {
    entries(table, path, counts, found);
}

fn entries(table: &dyn TableLike, path: &str, counts: fn(&str) -> bool, found: &mut Vec<Setting>) {
    for (key, item) in table.iter() {
        let path = joined(path, key);
        match item {
            Item::None => {}
            Item::Value(item) => value(item, &path, counts, found),
            Item::Table(inner) => entries(inner, &path, counts, found),
            Item::ArrayOfTables(tables) => tables.iter().for_each(|inner| entries(inner, &path, counts, found)),
        }
    }
}

fn value(item: &Value, path: &str, counts: fn(&str) -> bool, found: &mut Vec<Setting>) {
    match item {
        Value::String(text) if counts(path) => {
            found.push(Setting { key: path.to_owned(), value: text.value().clone() });
        }
        Value::Array(items) => items.iter().for_each(|item| value(item, path, counts, found)),
        Value::InlineTable(inner) => entries(inner, path, counts, found),
        _ => {}
    }
}

fn json(item: &serde_json::Value, path: &str, counts: fn(&str) -> bool, found: &mut Vec<Setting>) {
    match item {
        serde_json::Value::String(text) if counts(path) => {
            found.push(Setting { key: path.to_owned(), value: text.clone() });
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| json(item, path, counts, found)),
        serde_json::Value::Object(entries) => {
            entries.iter().for_each(|(key, item)| json(item, &joined(path, key), counts, found));
        }
        _ => {}
    }
}

/// XML without its comments, in which distributions ship examples.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once("-->").map(|(_, rest)| rest).unwrap_or_default());
    }
    plain
}

/// What is inside the elements with this name.
fn elements<'text>(text: &'text str, name: &str) -> impl Iterator<Item = &'text str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts: Vec<&str> = text.split(open.as_str()).skip(1).collect();
    parts.into_iter().filter_map(move |part| part.split_once(close.as_str()).map(|(inside, _)| inside))
}
