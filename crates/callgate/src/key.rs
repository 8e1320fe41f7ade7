//! The approval key: equal for two requests that run the same.
//!
//! The key is the SHA-256 of a canonical JSON document (RFC 8785) with everything that changes what runs and nothing else.
//! `docs/approval-key.md` defines it, with test vectors. This is the only implementation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use callgate_model::digest::{from_hex, hex, sha256, sha256_hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use callgate_model::call::Tool;
use callgate_model::json::{self, JsonError};

/// The version of the hashed document. It is part of the document, so keys of two versions are never equal.
const VERSION: u32 = 1;

/// Identifies a request: equal only for equal requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalKey([u8; 32]);

impl ApprovalKey {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for ApprovalKey {
    fn from(bytes: [u8; 32]) -> Self {
        ApprovalKey(bytes)
    }
}

impl fmt::Display for ApprovalKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ApprovalKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A text that is not an approval key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("invalid approval key; expected 64 hexadecimal digits")]
pub struct InvalidKey;

impl FromStr for ApprovalKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        from_hex(text.as_bytes()).map(ApprovalKey).ok_or(InvalidKey)
    }
}

impl Serialize for ApprovalKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ApprovalKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Why a request has no key. It can still be asked about, but the answer is not remembered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A whole number beyond ±(2⁵³ − 1): different numbers would have the same canonical form.
    #[error("the input contains an integer beyond 2^53, which has no exact canonical form")]
    ImpreciseNumber,
    /// Too large, or too deep.
    #[error(transparent)]
    Input(#[from] JsonError),
    /// Two names of the request are equal after redaction.
    #[error("the request cannot be written in canonical form")]
    NotCanonical,
}

/// The hashed request: everything that changes what runs.
#[derive(Debug, Clone)]
pub struct KeyedRequest<'a> {
    /// Which tool.
    pub tool: &'a Tool,
    /// Its input as it came, secrets included: only its digest enters the document.
    pub input: &'a Value,
    /// The parameters of this tool that are notes for people (`description`, `justification`) and do not change what runs.
    pub texts: &'a [&'a str],
    /// The request as approvers see it.
    pub redacted: &'a Value,
    /// The paths it touches, as they were resolved.
    pub paths: Vec<&'a Path>,
    /// The files it runs as programs, as they were resolved, each with the SHA-256 of its contents in hexadecimal.
    pub scripts: Vec<(&'a Path, String)>,
    /// The working directory, as it was resolved.
    pub directory: Option<&'a Path>,
    /// How it would be contained: `none`, or the sandbox's own words.
    pub sandbox: &'a str,
    /// Everything that the call would do in a persistent shell, if that shell is not in its initial state.
    pub shell: Option<&'a Value>,
}

/// The key of a request.
///
/// ```
/// use callgate::call::Tool;
/// use callgate::key::{KeyedRequest, approval_key};
/// use serde_json::json;
///
/// let tool = Tool::own("Bash");
/// let key = |input: serde_json::Value| {
///     approval_key(&KeyedRequest {
///         tool: &tool,
///         redacted: &input,
///         input: &input,
///         texts: &["description"],
///         paths: vec![],
///         scripts: vec![],
///         directory: None,
///         sandbox: "none",
///         shell: None,
///     })
/// };
/// let first = key(json!({"command": "make", "timeout": 5, "description": "Build it"}))?;
/// assert_eq!(first, key(json!({"timeout": 5, "command": "make"}))?);
/// assert_ne!(first, key(json!({"timeout": 6, "command": "make"}))?);
/// # Ok::<(), callgate::key::KeyError>(())
/// ```
pub fn approval_key(request: &KeyedRequest<'_>) -> Result<ApprovalKey, KeyError> {
    Ok(ApprovalKey(sha256(&canonical_document(request)?)))
}

/// The canonical text that is hashed. It contains no secrets beyond the redacted view.
pub fn canonical_document(request: &KeyedRequest<'_>) -> Result<Vec<u8>, KeyError> {
    json::measure(request.input)?;
    json::measure(request.redacted)?;
    let input = without(request.input, request.texts);
    let redacted = without(request.redacted, request.texts);
    if json::has_imprecise_numbers(&input) || json::has_imprecise_numbers(&redacted) {
        return Err(KeyError::ImpreciseNumber);
    }
    let mut paths: Vec<String> = request.paths.iter().map(path_text).collect();
    paths.sort();
    paths.dedup();
    let scripts: BTreeMap<String, &String> =
        request.scripts.iter().map(|(path, digest)| (path_text(path), digest)).collect();
    let mut document = json!({
        "version": VERSION,
        "tool": {"server": request.tool.server, "name": request.tool.name},
        "request": redacted,
        "digests": digests(&input)?,
        "paths": paths,
        "directory": request.directory.map(path_text),
        "sandbox": request.sandbox,
        "scripts": scripts,
    });
    if let (Some(shell), Value::Object(fields)) = (request.shell, &mut document) {
        fields.insert("shell".to_owned(), json!(sha256_hex(&canonical(shell)?)));
    }
    canonical(&document)
}

/// The digests of the input's top-level parameters: environment values, contents and patches count, but are not in the
/// document.
fn digests(input: &Value) -> Result<Value, KeyError> {
    match input {
        Value::Object(fields) => {
            let digests: Result<BTreeMap<&String, String>, KeyError> =
                fields.iter().map(|(name, value)| Ok((name, sha256_hex(&canonical(value)?)))).collect();
            Ok(json!(digests?))
        }
        other => Ok(json!(sha256_hex(&canonical(other)?))),
    }
}

fn without(value: &Value, texts: &[&str]) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(name, _)| !texts.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// A path as text. Bytes that are not UTF-8 are written in hexadecimal, so that different paths have different texts.
fn path_text(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", hex(path.as_os_str().as_encoded_bytes())),
    }
}

fn canonical(value: &Value) -> Result<Vec<u8>, KeyError> {
    serde_json_canonicalizer::to_vec(value).map_err(|_| KeyError::NotCanonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of `docs/approval-key.md`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Vector {
        name: String,
        tool: String,
        input: Value,
        #[serde(default)]
        texts: Vec<String>,
        redacted: Value,
        paths: Vec<String>,
        #[serde(default)]
        scripts: BTreeMap<String, String>,
        directory: Option<String>,
        sandbox: String,
        document: String,
        key: String,
    }

    #[test]
    fn the_documented_vectors_hold() {
        let page = include_str!("../../../docs/approval-key.md");
        let (_, rest) = page.split_once("```json\n").unwrap();
        let (vectors, _) = rest.split_once("```").unwrap();
        let vectors: Vec<Vector> = serde_json::from_str(vectors).unwrap();
        assert!(vectors.len() >= 4);
        for vector in vectors {
            let texts: Vec<&str> = vector.texts.iter().map(String::as_str).collect();
            let request = KeyedRequest {
                tool: &Tool::parse(&vector.tool),
                input: &vector.input,
                texts: &texts,
                redacted: &vector.redacted,
                paths: vector.paths.iter().map(Path::new).collect(),
                scripts: vector.scripts.iter().map(|(path, digest)| (Path::new(path), digest.clone())).collect(),
                directory: vector.directory.as_deref().map(Path::new),
                sandbox: &vector.sandbox,
                shell: None,
            };
            let document = String::from_utf8(canonical_document(&request).unwrap()).unwrap();
            assert_eq!(document, vector.document, "{}", vector.name);
            assert_eq!(approval_key(&request).unwrap().to_string(), vector.key, "{}", vector.name);
        }
    }

    fn base() -> KeyedRequest<'static> {
        use std::sync::LazyLock;
        static TOOL: LazyLock<Tool> = LazyLock::new(|| Tool::own("shell_exec"));
        static INPUT: LazyLock<Value> =
            LazyLock::new(|| json!({"argv": ["make"], "env": {"CC": "gcc"}, "description": "build"}));
        static REDACTED: LazyLock<Value> =
            LazyLock::new(|| json!({"argv": ["make"], "env": ["CC"], "description": "build"}));
        KeyedRequest {
            tool: &TOOL,
            input: &INPUT,
            texts: &["description"],
            redacted: &REDACTED,
            paths: vec![Path::new("/p/a"), Path::new("/p/b")],
            scripts: vec![(Path::new("/p/run.sh"), "00".into())],
            directory: Some(Path::new("/p")),
            sandbox: "none",
            shell: None,
        }
    }

    fn key_of(request: &KeyedRequest<'_>) -> ApprovalKey {
        approval_key(request).unwrap()
    }

    #[test]
    fn everything_that_changes_what_runs_changes_the_key() {
        let before = key_of(&base());
        let value = json!({"argv": ["make"], "env": {"CC": "evil"}});
        let words = json!({"argv": ["make", "x"], "env": {"CC": "gcc"}});
        let tool = Tool::of_server("x", "shell_exec");
        let changed = [
            KeyedRequest { input: &value, ..base() },
            KeyedRequest { input: &words, ..base() },
            KeyedRequest { tool: &tool, ..base() },
            KeyedRequest { paths: vec![Path::new("/p/a")], ..base() },
            KeyedRequest { scripts: vec![(Path::new("/p/run.sh"), "01".into())], ..base() },
            KeyedRequest { scripts: vec![], ..base() },
            KeyedRequest { directory: None, ..base() },
            KeyedRequest { directory: Some(Path::new("/q")), ..base() },
            KeyedRequest { sandbox: "restricted", ..base() },
            KeyedRequest { texts: &[], ..base() },
            KeyedRequest { shell: Some(&value), ..base() },
        ];
        for request in changed {
            assert_ne!(key_of(&request), before, "{request:?}");
        }
    }

    #[test]
    fn order_and_words_for_people_change_nothing() {
        let before = key_of(&base());
        let reordered = json!({"description": "compile it", "env": {"CC": "gcc"}, "argv": ["make"]});
        let redacted = json!({"env": ["CC"], "argv": ["make"]});
        let paths = vec![Path::new("/p/b"), Path::new("/p/a"), Path::new("/p/b")];
        assert_eq!(key_of(&KeyedRequest { input: &reordered, redacted: &redacted, paths, ..base() }), before);
    }

    #[test]
    fn numbers_without_an_exact_canonical_form_have_no_key() {
        for number in ["9007199254740992", "9007199254740993", "-9007199254740993", "18446744073709551615", "1e300"] {
            let input: Value = serde_json::from_str(&format!("{{\"n\": [{number}]}}")).unwrap();
            let request = KeyedRequest { input: &input, ..base() };
            assert_eq!(approval_key(&request), Err(KeyError::ImpreciseNumber), "{number}");
        }
        let input = json!({"n": 9_007_199_254_740_991_u64});
        assert!(approval_key(&KeyedRequest { input: &input, ..base() }).is_ok());
    }

    #[test]
    fn no_secret_is_in_the_document() {
        let document = String::from_utf8(canonical_document(&base()).unwrap()).unwrap();
        assert!(!document.contains("gcc") && !document.contains("build"));
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let key = key_of(&base());
        assert_eq!(key.to_string().parse(), Ok(key));
        for text in ["", "00", &"g".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert_eq!(text.parse::<ApprovalKey>(), Err(InvalidKey), "{text}");
        }
    }
}
