//! Words after expansion, as a program would receive them, as far as they are certain.

use serde::{Deserialize, Serialize};

/// One word as the program would receive it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Exactly this text.
    Known(String),
    /// The names a glob matches; the pattern in shell syntax, literal characters escaped by `\`.
    /// Zero, one or many words at run time.
    Glob(String),
    /// A path at or below this directory, from a stream of names (`find src | xargs …`, `{}` of `find -exec`).
    /// One word, unless `many`.
    Below {
        /// The directory, as the command names it.
        directory: String,
        /// May stand for any number of words.
        many: bool,
        /// Which names.
        names: ListedNames,
    },
    /// Known text around something unknown: `out-$x.txt`. `prefix` is certain.
    Partly {
        /// The text before the first unknown part. Never empty.
        prefix: String,
        /// Why the rest is unknown.
        why: String,
        /// May stand for any number of words.
        many: bool,
    },
    /// Unknown.
    Unknown {
        /// Why.
        why: String,
        /// May stand for any number of words (unquoted expansion).
        many: bool,
    },
}

/// Which names at or below a directory a word stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedNames {
    /// Names that exist.
    #[default]
    All,
    /// Names that exist and whose last component matches one of these globs.
    Matching(Vec<String>),
    /// Names of files that git tracks.
    Tracked,
    /// None: nothing was listed.
    Nothing,
    /// Names made out of those that exist, by text behind them or taken off: they need not exist.
    Changed,
}

impl Word {
    /// The text, if it is certain.
    pub fn known(&self) -> Option<&str> {
        match self {
            Word::Known(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it may stand for any number of words at run time.
    pub fn may_be_many(&self) -> bool {
        match self {
            Word::Known(_) => false,
            Word::Glob(_) => true,
            Word::Below { many, .. } | Word::Partly { many, .. } | Word::Unknown { many, .. } => *many,
        }
    }
}
