//! What leaves the gate: no environment values, no contents, no credentials. The one place that knows.
//!
//! Two ways to recognise a secret: by the **field** it stands in (values of an environment, contents, patches, standard
//! input, anything called a password) and by its **shape** in running text (keys and tokens of known services, private keys,
//! passwords in URLs, flags and assignments). Values that the caller names are always replaced.

mod description;
mod shapes;

use std::collections::HashSet;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The longest text that is looked through; a longer one is shown by size and digest only.
const MAXIMUM_TEXT: usize = 256 * 1024;
/// The shortest value that a caller may name as a secret: shorter ones would hide half of every text.
const MINIMUM_SECRET: usize = 4;
/// How deep a value is looked through.
const MAXIMUM_DEPTH: usize = 128;

/// A view without secrets. Only a [`Redactor`] makes one, so that the raw input cannot be mistaken for it.
///
/// ```compile_fail
/// let raw = serde_json::json!({"password": "hunter2"});
/// let view: callgate::redact::Redacted = callgate::redact::Redacted(raw);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Redacted(Value);

impl Redacted {
    /// The view as JSON.
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// How a field of an input is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Looked through for credentials.
    Text,
    /// Size and SHA-256 only.
    Digest,
    /// An environment: its keys only.
    Keys,
}

/// Takes secrets out of texts and inputs.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
}

impl Redactor {
    /// One that also replaces these values wherever they stand. Values shorter than four bytes are not taken.
    pub fn knowing<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets: Vec<String> = secrets
            .into_iter()
            .map(|secret| secret.as_ref().to_owned())
            .filter(|secret| secret.len() >= MINIMUM_SECRET)
            .collect();
        let known =
            AhoCorasick::builder().match_kind(MatchKind::Standard).build(&secrets).ok().filter(|_| !secrets.is_empty());
        Redactor { known }
    }

    /// The text with everything that looks like a credential replaced by `[redacted: what]`.
    ///
    /// ```
    /// use callgate::redact::Redactor;
    ///
    /// let redactor = Redactor::default();
    /// assert_eq!(
    ///     redactor.text("curl https://ada:hunter2@example.com"),
    ///     "curl https://ada:[redacted: password in a URL]@example.com"
    /// );
    /// ```
    pub fn text(&self, text: &str) -> String {
        if text.len() > MAXIMUM_TEXT {
            return format!("[{} bytes, sha256 {}]", text.len(), sha256(text.as_bytes()));
        }
        let mut found = shapes::find(text);
        if let Some(known) = &self.known {
            found.extend(
                known.find_overlapping_iter(text).map(|hit| shapes::Found { range: hit.range(), what: "known secret" }),
            );
        }
        if found.is_empty() {
            return text.to_owned();
        }
        found.sort_by_key(|found| (found.range.start, found.range.end));
        let mut shown = String::with_capacity(text.len());
        let mut end = 0_usize;
        for shapes::Found { range, what } in found {
            if range.start >= end {
                shown.push_str(text.get(end..range.start).unwrap_or_default());
                shown.push_str("[redacted: ");
                shown.push_str(what);
                shown.push(']');
            }
            end = end.max(range.end);
        }
        shown.push_str(text.get(end..).unwrap_or_default());
        shown
    }

    /// An input with each of its fields shown as `shown` says for its name.
    pub fn input(&self, input: &Value, shown: &dyn Fn(&str) -> Shown) -> Redacted {
        Redacted(match input {
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| {
                        let value = match shown(name) {
                            Shown::Text => self.field(name, value, 0),
                            Shown::Digest => digests(value, 0),
                            Shown::Keys => keys(value),
                        };
                        (self.text(name), value)
                    })
                    .collect(),
            ),
            other => self.value(other, 0),
        })
    }

    /// Any value: looked through by field name and by shape.
    pub fn anything(&self, value: &Value) -> Redacted {
        Redacted(self.value(value, 0))
    }

    fn value(&self, value: &Value, depth: usize) -> Value {
        if depth >= MAXIMUM_DEPTH {
            return json!("[nested too deeply]");
        }
        let deeper = depth.saturating_add(1);
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(self.items(items, deeper)),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| (self.text(name), self.field(name, value, deeper)))
                    .collect::<Map<_, _>>(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// The items of a list; what follows a flag such as `--password` is its value.
    fn items(&self, items: &[Value], depth: usize) -> Vec<Value> {
        let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        let vanished: HashSet<&str> = self.vanished(&texts).into_iter().collect();
        let mut after_flag = false;
        items
            .iter()
            .map(|item| {
                let hide = std::mem::take(&mut after_flag);
                match item {
                    Value::String(_) if hide => json!("[redacted: value of a flag]"),
                    Value::String(text) if vanished.contains(text.as_str()) => json!("[redacted: argument]"),
                    Value::String(text) => {
                        after_flag = text.starts_with('-') && !text.contains('=') && is_telling(text);
                        self.value(item, depth)
                    }
                    other => self.value(other, depth),
                }
            })
            .collect()
    }

    fn field(&self, name: &str, value: &Value, depth: usize) -> Value {
        match name.to_ascii_lowercase().as_str() {
            "env" | "environment" | "env_vars" | "environment_variables" => return keys(value),
            "stdin" | "patch" | "diff" => return digests(value, depth),
            _ => {}
        }
        match value {
            Value::String(text) if !text.is_empty() && is_telling(name) => {
                json!("[redacted: field of that name]")
            }
            Value::Array(items) if is_telling(name) && items.iter().any(Value::is_string) => {
                json!("[redacted: field of that name]")
            }
            other => self.value(other, depth),
        }
    }
}

/// Whether a name says that its value is a secret.
fn is_telling(name: &str) -> bool {
    const ANYWHERE: [&str; 12] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "accesskey",
        "privatekey",
        "authorization",
        "credential",
        "clientsecret",
        "cookie",
        "signingkey",
    ];
    const AT_THE_END: [&str; 4] = ["token", "pwd", "otp", "pin"];
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .take(200)
        .collect();
    ANYWHERE.iter().any(|word| plain.contains(word)) || AT_THE_END.iter().any(|word| plain.ends_with(word))
}

/// Size and SHA-256 of a text, in place of the text.
pub fn digest(text: &str) -> Value {
    json!({"size": text.len(), "sha256": sha256(text.as_bytes())})
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        use fmt::Write as _;
        // writing to a string does not fail
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Every text in a value by size and digest.
fn digests(value: &Value, depth: usize) -> Value {
    if depth >= MAXIMUM_DEPTH {
        return json!("[nested too deeply]");
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::String(text) => digest(text),
        Value::Array(items) => Value::Array(items.iter().map(|item| digests(item, deeper)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), digests(value, deeper))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The names of an environment: an object, or a list of `NAME=value`.
fn keys(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Array(fields.keys().map(|name| json!(name)).collect()),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| match item.as_str().and_then(|text| text.split_once('=')) {
                    Some((name, _)) => json!(name),
                    None => json!("[redacted: environment]"),
                })
                .collect(),
        ),
        Value::Null => Value::Null,
        _ => json!("[redacted: environment]"),
    }
}

#[cfg(test)]
mod tests;
