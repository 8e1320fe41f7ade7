//! Redacts everything that leaves the gate: environment values, contents and credentials.
//!
//! A secret is recognized by its **field** (environment values, contents, patches, standard input, anything called a password)
//! or by its **shape** in text (keys and tokens of known services, private keys, passwords in URLs, flags and assignments).
//! Values that the caller names are always replaced.

mod description;
mod shapes;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::digest::sha256_hex;

/// The longest text that is searched; of a longer one, only size and digest are shown.
const MAXIMUM_TEXT: usize = 256 * 1024;
/// The shortest secret that a caller may name: shorter ones would hide half of every text.
const MINIMUM_SECRET: usize = 4;
/// The maximum nesting of a value.
const MAXIMUM_DEPTH: usize = 128;

/// A redacted value. Only a [`Redactor`] creates one, so that raw input cannot be mistaken for it.
///
/// ```compile_fail
/// let raw = serde_json::json!({"password": "hunter2"});
/// let view: callgate_model::redact::Redacted = callgate_model::redact::Redacted(raw);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Redacted(Value);

impl Redacted {
    /// The redacted value as JSON.
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
    /// Searched for credentials.
    Text,
    /// Size and SHA-256 only.
    Digest,
    /// An environment: its keys only.
    Keys,
}

/// What a value is called that the caller named.
const KNOWN: &str = "known secret";

/// The text with what was found replaced by what it is.
fn replaced(text: &str, mut found: Vec<shapes::FoundSecret>) -> String {
    found.sort_by_key(|found| (found.range.start, found.range.end));
    let mut shown = String::with_capacity(text.len());
    let mut end = 0_usize;
    for shapes::FoundSecret { range, what } in found {
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

/// Removes secrets from texts and inputs.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
}

impl Redactor {
    /// Creates a redactor that also replaces these values. Values shorter than four bytes are ignored.
    pub fn knowing<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets: Vec<String> = secrets
            .into_iter()
            .map(|secret| secret.as_ref().to_owned())
            .filter(|secret| secret.len() >= MINIMUM_SECRET)
            .collect();
        if secrets.is_empty() {
            return Redactor::default();
        }
        Redactor { known: AhoCorasick::builder().match_kind(MatchKind::Standard).build(&secrets).ok() }
    }

    /// Replaces everything that looks like a credential by `[redacted: what]`.
    ///
    /// ```
    /// use callgate_model::redact::Redactor;
    ///
    /// let redactor = Redactor::default();
    /// assert_eq!(
    ///     redactor.text("curl https://ada:hunter2@example.com"),
    ///     "curl https://ada:[redacted: password in a URL]@example.com"
    /// );
    /// ```
    pub fn text(&self, text: &str) -> String {
        self.changed(text).unwrap_or_else(|| text.to_owned())
    }

    /// The text without its secrets; `None` if it has none.
    fn changed(&self, text: &str) -> Option<String> {
        if text.len() > MAXIMUM_TEXT {
            return Some(format!("[{} bytes, sha256 {}]", text.len(), sha256_hex(text.as_bytes())));
        }
        let mut found = shapes::find(text);
        if let Some(known) = &self.known {
            let hits = known.find_overlapping_iter(text);
            found.extend(hits.map(|hit| shapes::FoundSecret { range: hit.range(), what: KNOWN }));
        }
        if found.is_empty() { None } else { Some(replaced(text, found)) }
    }

    /// Replaces only the values that the caller named, of any length of text, and leaves whatever looks like a credential as it is: for
    /// results, which a model may write back to where they came from.
    ///
    /// ```
    /// use callgate_model::redact::Redactor;
    ///
    /// let redactor = Redactor::knowing(["hunter2"]);
    /// assert_eq!(redactor.known_values("password=hunter2 token=abc"), "password=[redacted: known secret] token=abc");
    /// ```
    pub fn known_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(known) = &self.known else { return Cow::Borrowed(text) };
        let found = known.find_overlapping_iter(text);
        let found: Vec<_> = found.map(|hit| shapes::FoundSecret { range: hit.range(), what: KNOWN }).collect();
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, found)) }
    }

    /// Redacts an input, each field in the way that `shown` returns for its name.
    pub fn input(&self, input: &Value, shown: &dyn Fn(&str) -> Shown) -> Redacted {
        let Value::Object(fields) = input else { return self.anything(input) };
        let field = |(name, value): (&String, &Value)| {
            let mut value = value.clone();
            match shown(name) {
                Shown::Text => self.field(name, &mut value, 0),
                Shown::Digest => value = digests(&value, 0),
                Shown::Keys => value = keys(&value),
            }
            (self.text(name), value)
        };
        Redacted(Value::Object(fields.iter().map(field).collect()))
    }

    /// Redacts any value, by field name and by shape.
    pub fn anything(&self, value: &Value) -> Redacted {
        self.owned(value.clone())
    }

    /// Redacts an owned value, without a copy.
    pub fn owned(&self, mut value: Value) -> Redacted {
        self.value(&mut value, 0);
        Redacted(value)
    }

    fn value(&self, value: &mut Value, depth: usize) {
        if depth >= MAXIMUM_DEPTH {
            *value = json!("[nested too deeply]");
            return;
        }
        let deeper = depth.saturating_add(1);
        match value {
            Value::String(text) => {
                if let Some(shown) = self.changed(text) {
                    *text = shown;
                }
            }
            Value::Array(items) => self.items(items, deeper),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    self.field(name, value, deeper);
                }
                let renamed: Vec<(String, String)> = fields
                    .keys()
                    .filter(|name| self.known.is_some() || !is_plain_name(name))
                    .filter_map(|name| Some((name.clone(), self.changed(name)?)))
                    .collect();
                for (name, shown) in renamed {
                    if let Some(value) = fields.remove(&name) {
                        fields.insert(shown, value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Redacts the items of a list, including the value after a flag such as `--password`.
    fn items(&self, items: &mut [Value], depth: usize) {
        let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        let vanished: HashSet<String> = self.vanished(&texts).into_iter().map(str::to_owned).collect();
        let mut after_flag = false;
        for item in items {
            let hide = std::mem::take(&mut after_flag);
            match item {
                Value::String(_) if hide => *item = json!("[redacted: value of a flag]"),
                Value::String(text) if vanished.contains(text.as_str()) => *item = json!("[redacted: argument]"),
                Value::String(text) => {
                    after_flag = text.starts_with('-') && !text.contains('=') && is_telling(text);
                    self.value(item, depth);
                }
                other => self.value(other, depth),
            }
        }
    }

    fn field(&self, name: &str, value: &mut Value, depth: usize) {
        const ENVIRONMENTS: [&str; 4] = ["env", "environment", "env_vars", "environment_variables"];
        const CONTENTS: [&str; 3] = ["stdin", "patch", "diff"];
        let is_one_of = |names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
        let hidden = match value {
            _ if is_one_of(&ENVIRONMENTS) => Some(keys(value)),
            _ if is_one_of(&CONTENTS) => Some(digests(value, depth)),
            Value::String(text) if !text.is_empty() && is_telling(name) => {
                Some(json!("[redacted: field of that name]"))
            }
            Value::Array(items) if is_telling(name) && items.iter().any(Value::is_string) => {
                Some(json!("[redacted: field of that name]"))
            }
            _ => None,
        };
        match hidden {
            Some(hidden) => *value = hidden,
            None => self.value(value, depth),
        }
    }
}

/// Whether a name is too short and simple to be or to hold a secret, as those of callgate's own fields are.
fn is_plain_name(name: &str) -> bool {
    name.len() <= 16 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Whether the name of a field tells that its value is a secret.
fn is_telling(name: &str) -> bool {
    const ANYWHERE: [&[u8]; 11] = [
        b"password",
        b"passwd",
        b"passphrase",
        b"secret",
        b"apikey",
        b"accesskey",
        b"privatekey",
        b"authorization",
        b"credential",
        b"cookie",
        b"signingkey",
    ];
    const AT_THE_END: [&[u8]; 4] = [b"token", b"pwd", b"otp", b"pin"];
    const LONGEST: usize = 200;
    let mut letters = [0_u8; LONGEST];
    let mut length = 0_usize;
    for (place, byte) in letters.iter_mut().zip(name.bytes().filter(u8::is_ascii_alphanumeric)) {
        *place = byte.to_ascii_lowercase();
        length = length.saturating_add(1);
    }
    let plain = letters.get(..length).unwrap_or_default();
    let starts_one = |(start, byte): (usize, &u8)| {
        // the first letters of these words
        matches!(byte, b'a' | b'c' | b'p' | b's')
            && plain.get(start..).is_some_and(|rest| ANYWHERE.iter().any(|word| rest.starts_with(word)))
    };
    AT_THE_END.iter().any(|word| plain.ends_with(word)) || plain.iter().enumerate().any(starts_one)
}

/// Size and SHA-256 digest of a text.
pub fn digest(text: &str) -> Value {
    json!({"size": text.len(), "sha256": sha256_hex(text.as_bytes())})
}

/// Replaces every text in a value by its size and digest.
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
