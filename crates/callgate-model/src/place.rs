//! Resolved paths.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A path resolved against the file system. Later steps use this, never the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// As named: absolute, `.` and `..` removed lexically, symlinks not followed. For a pattern or an unknown name below a
    /// directory: the fixed part.
    pub named: PathBuf,
    /// As resolved: symlinks of the deepest existing ancestor followed.
    pub resolved: PathBuf,
    /// What may follow the fixed part: nothing for an exact name.
    pub rest: Rest,
    /// Whether everything below is included.
    pub tree: bool,
    /// Its zone.
    pub zone: Zone,
    /// Whether it leaves a root through `..` or a symlink.
    pub traversal: bool,
    /// What is known about the names below it.
    #[serde(default, skip_serializing_if = "Contents::is_default")]
    pub contents: Contents,
}

/// What is known about the names that an effect touches below a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Only names that exist. Those that a rule protects have effects of their own.
    #[default]
    Existing,
    /// Names that exist, which have effects of their own, and names that earlier commands of the same call make.
    Made,
    /// Only names that other files or directories give. Those that a rule protects have effects of their own.
    Given,
    /// Any name.
    Any,
}

impl Contents {
    fn is_default(&self) -> bool {
        *self == Contents::default()
    }
}

/// What follows the fixed part of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// Nothing: the path is exact.
    Nothing,
    /// A shell pattern, relative to the fixed part.
    Glob(String),
    /// Any name at or below.
    Anything,
}

/// The part of the boundary that a path is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// Below a root: may be read and written.
    Root,
    /// In a read-only directory.
    Readable,
    /// Elsewhere.
    Outside,
    /// Cannot be resolved (loop, NUL byte, unreadable parent, unknown name), and why.
    Unresolved(String),
}
