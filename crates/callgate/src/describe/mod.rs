//! From a call to what it would do.

pub mod git;

use callgate_shell::effect::{Coverage, Effect};
use callgate_shell::word::Word;
use serde::Serialize;

use crate::path::Place;

/// What a call would do: the parts it consists of and whether they are all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Description {
    /// What kind of tool this is: `shell`, `file_read`, `file_write`, `network`, `agent`, `plan`, `unknown` …
    pub category: String,
    /// The simple commands of a shell call in the order they run; one part without words for any other tool.
    pub parts: Vec<Part>,
    /// Whether the effects are all there are.
    pub coverage: Coverage,
}

/// One simple command, or the whole of a call that is no shell command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The command's words as they will run; empty if this is no shell command.
    pub words: Vec<Word>,
    /// Programs that were peeled off, outermost first (`sudo`, `env`).
    pub wrappers: Vec<String>,
    /// The machine or container it runs in, if not here.
    pub elsewhere: Option<String>,
    /// What it would do.
    pub effects: Vec<PlacedEffect>,
}

/// An effect together with where its path really lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedEffect {
    /// The effect as described.
    pub effect: Effect,
    /// Where its path lies; `None` if it has no path.
    pub place: Option<Place>,
}
