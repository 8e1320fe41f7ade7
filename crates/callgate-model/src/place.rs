//! Where a path really lies.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A path that has been resolved against the file system. Later stages use this, never the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// As named: absolute, `.` and `..` folded lexically, links not followed. For a pattern or an unknown name below a
    /// directory: the fixed part.
    pub named: PathBuf,
    /// As it really lies: links of the deepest existing ancestor followed.
    pub resolved: PathBuf,
    /// What may follow the fixed part: nothing for an exact name.
    pub rest: Rest,
    /// Everything below is meant too.
    pub tree: bool,
    /// Where it lies.
    pub zone: Zone,
    /// It left a root by `..` or by a link.
    pub traversal: bool,
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

/// Where a path lies relative to the boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// Below a root: may be read and written.
    Root,
    /// In an area that may only be read.
    Readable,
    /// Elsewhere.
    Outside,
    /// Could not be resolved (loop, NUL byte, unreadable parent, unknown name), and why.
    Unresolved(String),
}
