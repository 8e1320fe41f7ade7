//! What programs do with their words: the program tables and how they are read.
//!
//! See `docs/program-tables.md` for the form of a table.

mod check;
mod collect;
mod custom;
mod examples;
mod form;
mod host;
mod index;
mod languages;
#[cfg(test)]
mod lessons;
mod lint;
mod matching;
mod names;
mod operands;
pub(crate) mod paths;
mod read;
mod scan;
mod store;
pub mod table;
mod traits;

pub use check::check;
pub use form::TableError;
pub use languages::python_may_import;
pub use matching::matches_glob;
pub use store::Programs;

use crate::effect::Effect;
use crate::stream::Stream;
use crate::word::Word;
use callgate_model::description::{GitUse, Loads};

/// One program about to run: its words after expansion, and where it runs.
#[derive(Debug, Clone)]
pub struct Invocation<'a> {
    /// The words, the program's name first. Never empty.
    pub words: &'a [Word],
    /// The working directory, absolute, if known.
    pub directory: Option<&'a str>,
    /// The home directory, if known.
    pub home: Option<&'a str>,
    /// What is connected to standard input.
    pub stdin: &'a Stream,
}

/// What the tables say about one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAnalysis {
    /// The effects of the program itself, starting with its own `run`. If one is `opaque`, there may be others.
    pub effects: Vec<Effect>,
    /// What it runs.
    pub nested: Vec<Nested>,
    /// What comes out.
    pub stdout: Stream,
    /// The table that was used, e.g. `git stash drop`.
    pub table: Option<String>,
    /// The files of the project that it would load.
    pub loads: Vec<Loads>,
    /// What it does with the files of a git repository.
    pub git: Vec<GitUse>,
}

/// Something that a program runs: the words of a wrapper, or shell source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// What runs.
    pub body: NestedBody,
    /// Variables the program puts into its environment.
    pub environment: Vec<(String, Word)>,
    /// Its working directory, if the program changes it; `Some(None)`: changed to an unknown one.
    pub directory: Option<Option<String>>,
    /// The machine or container it runs in, if not here.
    pub elsewhere: Option<String>,
    /// What is connected to its standard input; `None`: the same as the program's.
    pub stdin: Option<Stream>,
}

/// The two forms in which programs take something to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NestedBody {
    /// A command as words.
    Words(Vec<Word>),
    /// Shell source, with its `$0` and positional parameters.
    Shell {
        /// The source text.
        source: Word,
        /// `$0`, `$1` …
        parameters: Vec<Word>,
    },
}
