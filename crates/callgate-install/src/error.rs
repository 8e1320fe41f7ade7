//! The errors of editing a settings file.

use crate::settings::SyntaxError;

/// Why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file is not valid JSON (with comments and trailing commas) or TOML, or defines a key twice.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A value is not the list or object that is needed.
    #[error("line {line}, column {column}: `{path}` is not {expected}")]
    Shape {
        /// The line, counted from one.
        line: usize,
        /// The column, counted from one.
        column: usize,
        /// The path of the value.
        path: String,
        /// What is needed.
        expected: &'static str,
    },
    /// The key has another value.
    #[error("`{0}` is already set to another value")]
    Taken(String),
    /// A file with the name of one of callgate's own files was not written by callgate.
    #[error("the file exists and was not written by callgate; move it away first")]
    Foreign,
    /// The edit would change something else. Nothing is written.
    #[error("cannot edit the file without changing other settings")]
    Unfaithful,
}
