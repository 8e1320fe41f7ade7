//! The content that a file must have, and how it is added and removed again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::EditError;
use crate::json::{self, JsonEdit};
use crate::settings::BYTE_ORDER_MARK;
use crate::toml::{self, TomlEdit};

/// A line in each of callgate's own files, by which they are recognized.
pub(crate) const OWN_FILE: &str = "Written by `callgate install`";

/// A change to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SettingsChange {
    /// The file.
    pub path: PathBuf,
    /// The content it must have.
    pub content: FileContent,
}

/// The content that a file must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileContent {
    /// Values in a JSON file, with or without comments.
    Json(Vec<JsonEdit>),
    /// Keys in a TOML file.
    Toml(Vec<TomlEdit>),
    /// The whole file: it is callgate's own.
    Whole {
        /// The text.
        text: String,
        /// Whether it is a program.
        executable: bool,
    },
}

/// A file after its content was added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AppliedContent {
    /// The new text.
    pub text: String,
    /// What was added, without values that were already there or have no place.
    pub put: FileContent,
    /// The paths of the members that had to be created.
    pub created: Vec<Vec<String>>,
    /// The values that have no place.
    pub left_out: Vec<String>,
}

fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (BYTE_ORDER_MARK, body),
        None => ("", text),
    }
}

impl FileContent {
    /// Adds the content to a text.
    pub(crate) fn apply(&self, before: Option<&str>) -> Result<AppliedContent, EditError> {
        let given = before.unwrap_or_default();
        let (mark, body) = split_mark(given);
        let mut text = body.to_owned();
        let (mut created, mut left_out) = (Vec::new(), Vec::new());
        let put = match self {
            FileContent::Whole { text: wanted, .. } => {
                if !given.is_empty() && given != wanted && !given.contains(OWN_FILE) {
                    return Err(EditError::Foreign);
                }
                return Ok(AppliedContent { text: wanted.clone(), put: self.clone(), created, left_out });
            }
            FileContent::Json(edits) => {
                let mut put = Vec::new();
                for edit in edits {
                    if json::contains(&text, edit)? {
                        put.extend((!edit.is_ambiguous()).then(|| edit.clone()));
                        continue;
                    }
                    match json::insert(&text, edit) {
                        Ok(inserted) => {
                            text = inserted.text;
                            created.extend(inserted.created);
                            put.push(edit.clone());
                        }
                        Err(EditError::Shape { .. } | EditError::Taken(_)) if edit.optional => {
                            left_out.push(edit.to_string());
                        }
                        Err(error) => return Err(error),
                    }
                }
                FileContent::Json(put)
            }
            FileContent::Toml(edits) => {
                let mut put = Vec::new();
                for edit in edits {
                    if toml::get(&text, &edit.path)?.as_ref() == Some(&edit.value) {
                        continue;
                    }
                    match toml::set(&text, edit) {
                        Ok(set) => {
                            text = set;
                            put.push(edit.clone());
                        }
                        Err(EditError::Taken(path)) if edit.optional => left_out.push(path),
                        Err(error) => return Err(error),
                    }
                }
                FileContent::Toml(put)
            }
        };
        Ok(AppliedContent { text: format!("{mark}{text}"), put, created, left_out })
    }

    /// Removes the content from a text. Returns `None` if there is nothing to remove, and an empty text if nothing is left.
    pub(crate) fn remove(&self, given: &str, created: &[Vec<String>]) -> Result<Option<String>, EditError> {
        let (mark, body) = split_mark(given);
        let mut text = body.to_owned();
        match self {
            FileContent::Whole { text: wanted, .. } => {
                return Ok((given == wanted || given.contains(OWN_FILE)).then(String::new));
            }
            // In reverse order, so that the member that was created first is empty last.
            FileContent::Json(edits) => {
                for edit in edits.iter().rev() {
                    text = json::remove(&text, edit, created)?.unwrap_or(text);
                }
                text = json::sweep(&text, created)?.unwrap_or(text);
            }
            FileContent::Toml(edits) => {
                for edit in edits.iter().rev() {
                    text = toml::unset(&text, edit)?.unwrap_or(text);
                }
            }
        }
        let emptied = text.is_empty();
        Ok((text != body).then(|| if emptied { String::new() } else { format!("{mark}{text}") }))
    }

    /// Whether a text still starts callgate's hook.
    pub(crate) fn is_left_in(&self, text: &str) -> bool {
        let (_, text) = split_mark(text);
        match self {
            FileContent::Json(_) => json::left(text).unwrap_or_else(|_| json::says_hook(text)),
            FileContent::Toml(_) | FileContent::Whole { .. } => json::says_hook(text),
        }
    }

    /// Describes what a text lacks of the content.
    pub(crate) fn missing(&self, text: &str) -> Result<Vec<String>, EditError> {
        let (_, text) = split_mark(text);
        let mut missing = Vec::new();
        match self {
            FileContent::Whole { text: wanted, .. } if text != wanted => missing.push("its content differs".to_owned()),
            FileContent::Whole { .. } => {}
            FileContent::Json(edits) => {
                for edit in edits {
                    if !json::contains(text, edit)? {
                        missing.push(format!("{edit} is missing"));
                    }
                }
            }
            FileContent::Toml(edits) => {
                for edit in edits {
                    if toml::get(text, &edit.path)?.as_ref() != Some(&edit.value) {
                        missing.push(format!("{} has another value", edit.path.join(".")));
                    }
                }
            }
        }
        Ok(missing)
    }

    /// Whether `other` has all of this content.
    pub(crate) fn is_part_of(&self, other: &FileContent) -> bool {
        match (self, other) {
            (FileContent::Json(these), FileContent::Json(those)) => these.iter().all(|edit| those.contains(edit)),
            (FileContent::Toml(these), FileContent::Toml(those)) => these.iter().all(|edit| those.contains(edit)),
            (these, those) => these == those,
        }
    }

    /// The part of the content that nobody else would have written.
    pub(crate) fn unambiguous(self) -> FileContent {
        match self {
            FileContent::Json(edits) => {
                FileContent::Json(edits.into_iter().filter(|edit| !edit.is_ambiguous()).collect())
            }
            FileContent::Toml(edits) => FileContent::Toml(edits.into_iter().filter(|edit| edit.replaces).collect()),
            whole => whole,
        }
    }
}
