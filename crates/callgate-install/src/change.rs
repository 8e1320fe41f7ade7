//! What must be in a file, and how it is put there and taken out again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::json::{self, Document, Item, JsonError, Node, Position};
use crate::toml::{self, Present, Scalar, TomlError};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What must be in one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which file.
    pub path: PathBuf,
    /// What must be in it.
    pub content: Content,
}

/// What must be in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Among other things, in JSON with or without comments.
    Json(Vec<JsonEdit>),
    /// Among other things, in TOML.
    Toml(Vec<TomlEdit>),
    /// Nothing else: the file is callgate's own.
    Whole {
        /// All of it.
        text: String,
        /// Whether it is a program.
        executable: bool,
    },
}

/// One thing in a JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JsonEdit {
    /// The members from the outside in.
    pub path: Vec<String>,
    /// What is put there.
    pub what: What,
    /// Whether it comes before others.
    #[serde(default)]
    pub first: bool,
    /// Whether it is left out where the file has no place for it.
    #[serde(default)]
    pub optional: bool,
}

/// What is put into a list or an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An element of a list.
    Element(Node),
    /// A member of an object.
    Member(String, Node),
}

impl JsonEdit {
    /// An element at the end of a list.
    pub fn element(path: &[&str], node: Node) -> Self {
        JsonEdit { path: owned(path), what: What::Element(node), first: false, optional: false }
    }

    /// A member of an object.
    pub fn member(path: &[&str], key: &str, node: Node) -> Self {
        JsonEdit { path: owned(path), what: What::Member(key.to_owned(), node), first: false, optional: false }
    }

    /// The same, left out where the file has no place for it.
    pub fn if_possible(self) -> Self {
        JsonEdit { optional: true, ..self }
    }

    /// The same, before all others.
    pub fn before_others(self) -> Self {
        JsonEdit { first: true, ..self }
    }

    fn item(&self) -> Item<'_> {
        match &self.what {
            What::Element(node) => Item::Element(node),
            What::Member(key, node) => Item::Member(key, node),
        }
    }

    /// In words, for messages.
    fn shown(&self) -> String {
        match &self.what {
            What::Element(node) => format!("{} in {}", node.value(), self.path.join(".")),
            What::Member(key, node) => format!("{}.{key} = {}", self.path.join("."), node.value()),
        }
    }

    /// Whether somebody could have put the very same there: then it is theirs.
    fn could_be_anybodys(&self) -> bool {
        match &self.what {
            What::Element(node) | What::Member(_, node) => !node.value().is_object(),
        }
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}

/// One key in a TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TomlEdit {
    /// The tables from the outside in, and the key.
    pub path: Vec<String>,
    /// What it says.
    pub value: Scalar,
    /// Whether it replaces another value.
    #[serde(default)]
    pub replaces: bool,
    /// Whether it is left out where the file says something else.
    #[serde(default)]
    pub optional: bool,
}

/// Why a file cannot be changed as wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// It is JSON, but not as needed, or not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It is TOML, but not as needed, or not TOML.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// A member is there and says something else.
    #[error("`{0}` is there already and says something else")]
    Taken(String),
    /// A file of callgate's own name that callgate did not write.
    #[error("is there already and was not written by callgate; move it away first")]
    Foreign,
}

/// A file's new text.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// What is in the file afterwards.
    pub text: String,
    /// What was put in: without what was there already by somebody else's hand, or had no place.
    pub put: Content,
    /// What had to be made for it.
    pub created: Vec<Vec<String>>,
    /// What had no place, in words.
    pub left_out: Vec<String>,
}

/// Said in every file of callgate's own, so that it is known again.
pub const OWN_FILE: &str = "Written by `callgate install`";

impl Content {
    /// The text with everything in it.
    pub fn apply(&self, before: Option<&str>) -> Result<Applied, ChangeError> {
        let given = before.unwrap_or_default();
        let (mark, body) = match given.strip_prefix(BYTE_ORDER_MARK) {
            Some(body) => (BYTE_ORDER_MARK, body),
            None => ("", given),
        };
        let mut text = body.to_owned();
        let (mut created, mut left_out) = (Vec::new(), Vec::new());
        let put = match self {
            Content::Whole { text: wanted, .. } => {
                if !given.is_empty() && given != wanted && !given.contains(OWN_FILE) {
                    return Err(ChangeError::Foreign);
                }
                return Ok(Applied { text: wanted.clone(), put: self.clone(), created, left_out });
            }
            Content::Json(edits) => {
                let mut put = Vec::new();
                for edit in edits {
                    if json::contains(&text, &edit.path, &edit.item())? {
                        if !edit.could_be_anybodys() {
                            put.push(edit.clone());
                        }
                        continue;
                    }
                    if let Some(taken) = taken(&text, edit)? {
                        if edit.optional {
                            left_out.push(edit.shown());
                            continue;
                        }
                        return Err(ChangeError::Taken(taken));
                    }
                    let position = if edit.first { Position::First } else { Position::Last };
                    match json::insert(&text, &edit.path, &edit.item(), position) {
                        Ok(inserted) => {
                            text = inserted.text;
                            created.extend(inserted.created);
                            put.push(edit.clone());
                        }
                        Err(JsonError::Shape { .. }) if edit.optional => left_out.push(edit.shown()),
                        Err(error) => return Err(error.into()),
                    }
                }
                Content::Json(put)
            }
            Content::Toml(edits) => {
                let mut put = Vec::new();
                for edit in edits {
                    if toml::get(&text, &edit.path)?.as_ref() == Some(&edit.value) {
                        continue;
                    }
                    let present = if edit.replaces { Present::Replaced } else { Present::Stays };
                    match toml::set(&text, &edit.path, &edit.value, present) {
                        Ok(set) => {
                            text = set;
                            put.push(edit.clone());
                        }
                        Err(TomlError::Taken { path }) if edit.optional => left_out.push(path),
                        Err(error) => return Err(error.into()),
                    }
                }
                Content::Toml(put)
            }
        };
        Ok(Applied { text: format!("{mark}{text}"), put, created, left_out })
    }

    /// The text without what is in it of this. `None` if nothing is, and an empty text if nothing is left.
    pub fn remove(&self, given: &str, created: &[Vec<String>]) -> Result<Option<String>, ChangeError> {
        let (mark, body) = match given.strip_prefix(BYTE_ORDER_MARK) {
            Some(body) => (BYTE_ORDER_MARK, body),
            None => ("", given),
        };
        let mut text = body.to_owned();
        match self {
            Content::Whole { text: wanted, .. } => {
                return Ok((given == wanted || given.contains(OWN_FILE)).then(String::new));
            }
            // In the opposite order, so that what was made first is empty last.
            Content::Json(edits) => {
                for edit in edits.iter().rev() {
                    if let Some(removed) = json::remove(&text, &edit.path, &edit.item(), created)? {
                        text = removed;
                    }
                }
            }
            Content::Toml(edits) => {
                for edit in edits.iter().rev() {
                    if let Some(removed) = toml::unset(&text, &edit.path, &edit.value)? {
                        text = removed;
                    }
                }
            }
        }
        let emptied = text.is_empty();
        Ok((text != body).then(|| if emptied { String::new() } else { format!("{mark}{text}") }))
    }

    /// What of this is missing in a text, in words.
    pub fn missing(&self, text: &str) -> Result<Vec<String>, ChangeError> {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mut missing = Vec::new();
        match self {
            Content::Whole { text: wanted, .. } if text != wanted => missing.push("its contents differ".to_owned()),
            Content::Whole { .. } => {}
            Content::Json(edits) => {
                for edit in edits {
                    if !json::contains(text, &edit.path, &edit.item())? {
                        missing.push(format!("{} is missing", edit.shown()));
                    }
                }
            }
            Content::Toml(edits) => {
                for edit in edits {
                    if toml::get(text, &edit.path)?.as_ref() != Some(&edit.value) {
                        missing.push(format!("{} says something else", edit.path.join(".")));
                    }
                }
            }
        }
        Ok(missing)
    }
}

/// The member that an edit would set, if it is there already.
fn taken(text: &str, edit: &JsonEdit) -> Result<Option<String>, JsonError> {
    let What::Member(key, _) = &edit.what else { return Ok(None) };
    let path: Vec<String> = edit.path.iter().chain([key]).cloned().collect();
    Ok(Document::parse(text)?.at(&path)?.map(|_| path.join(".")))
}

impl Content {
    /// Whether everything in this is also in `other`.
    pub(crate) fn is_part_of(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Json(these), Content::Json(those)) => these.iter().all(|edit| those.contains(edit)),
            (Content::Toml(these), Content::Toml(those)) => these.iter().all(|edit| those.contains(edit)),
            (these, those) => these == those,
        }
    }

    /// What of this nobody else would have written.
    pub(crate) fn surely_ours(self) -> Content {
        match self {
            Content::Json(mut edits) => {
                edits.retain(|edit| !edit.could_be_anybodys());
                Content::Json(edits)
            }
            Content::Toml(mut edits) => {
                edits.retain(|edit| edit.replaces);
                Content::Toml(edits)
            }
            whole => whole,
        }
    }
}
