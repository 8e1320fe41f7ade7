//! From a call to what it would do.
//!
//! A [`Descriptor`] says how one tool is understood. Those of the tools that coding agents have are built in as a table
//! (`tools.rs`: to add a tool, add a line there); others are registered with a [`Registry`]. A tool without descriptor is
//! [opaque](callgate_shell::effect::Action::Opaque), and what its parameters tell is used all the same.

mod built_in;
mod collect;
pub mod git;
mod input;
mod parameters;
mod patch;
mod registry;
mod role;
mod shell;
mod tools;
mod typed;
mod unknown;
mod uri;
pub mod words;

use std::sync::Arc;

use callgate_shell::ShellState;
use callgate_shell::effect::{Action, Coverage, Effect, Mark, Target};
use callgate_shell::programs::Programs;
use callgate_shell::word::Word;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::call::Call;
use crate::path::Place;
use crate::path::boundary::Surroundings;
use crate::redact::{Redacted, Redactor};
use crate::risk::Risk;

pub use built_in::built_in_tools;
pub use input::{TypedInput, is_interactive_shell};
pub use registry::Registry;
pub use typed::typed_into;
pub use unknown::UnknownTool;

/// How one tool is understood.
///
/// ```
/// use callgate::call::Call;
/// use callgate::describe::{Context, DescribeError, Description, Descriptor};
/// use callgate::redact::{Redacted, Redactor};
/// use callgate_shell::effect::{Action, Effect, Host, Target};
///
/// struct Weather;
///
/// impl Descriptor for Weather {
///     fn category(&self) -> &str {
///         "network"
///     }
///
///     fn describe(&self, _call: &Call, _context: &Context) -> Result<Description, DescribeError> {
///         let host = Host { name: Some("weather.example".into()), shown: "weather.example".into() };
///         let effect = Effect { action: Action::Connect, target: Target::Host(host), marks: vec![], because: String::new() };
///         Ok(Description::of_effects(self.category(), vec![effect]))
///     }
///
///     fn for_approval(&self, call: &Call, redactor: &Redactor) -> Redacted {
///         redactor.anything(&call.input)
///     }
/// }
/// ```
pub trait Descriptor: Send + Sync {
    /// What kind of tool this is.
    fn category(&self) -> &str;

    /// What a call would do. Effects of which it is not sure must be opaque; an error refuses the call.
    fn describe(&self, call: &Call, context: &Context) -> Result<Description, DescribeError>;

    /// What an approver sees of the input.
    fn for_approval(&self, call: &Call, redactor: &Redactor) -> Redacted;

    /// What events and logs hold of the input.
    fn for_event(&self, call: &Call, redactor: &Redactor) -> Redacted {
        self.for_approval(call, redactor)
    }

    /// What the call types into a program that runs already, if it does that and nothing else.
    fn typed_input(&self, _call: &Call) -> Option<TypedInput> {
        None
    }

    /// How risky a call is, given what it would do.
    fn risk(&self, _call: &Call, description: &Description) -> Risk {
        Risk::of(description)
    }
}

/// Why a call could not be described.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DescribeError {
    /// The descriptor says so.
    #[error("the tool's descriptor failed: {0}")]
    Failed(String),
    /// The descriptor panicked.
    #[error("the tool's descriptor panicked")]
    Panicked,
}

/// Where a call is made.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The call's working directory, absolute.
    pub directory: Option<String>,
    /// The user's home directory.
    pub home: Option<String>,
    /// What programs do; those that are compiled in if not said.
    pub programs: Option<Arc<Programs>>,
    /// The state of the shell that the caller keeps, if the call runs in one.
    pub shell: Option<Box<ShellState>>,
}

impl Context {
    /// That of a call.
    pub fn of(call: &Call, surroundings: &Surroundings) -> Self {
        let origin = &call.origin;
        let directory = origin.directory.as_ref().or(origin.workspace.as_ref());
        let text = |path: &std::path::PathBuf| path.is_absolute().then(|| path.to_str().map(str::to_owned)).flatten();
        Context {
            directory: directory.and_then(text),
            home: surroundings.home.as_ref().and_then(text),
            programs: None,
            shell: call.shell.clone(),
        }
    }
}

impl Description {
    /// A description of a call that is no shell command. Partial if one of the effects is opaque.
    pub fn of_effects(category: &str, effects: Vec<Effect>) -> Self {
        let part = Part { effects: collect::placed(effects), ..Part::default() };
        collect::description(category, vec![part])
    }
}

/// What a call would do: the parts it consists of and whether they are all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// What kind of tool this is: `shell`, `file_read`, `file_write`, `network`, `agent`, `plan`, `unknown` …
    pub category: String,
    /// The simple commands of a shell call in the order they run; one part without words for any other tool.
    pub parts: Vec<Part>,
    /// Whether the effects are all there are.
    pub coverage: Coverage,
    /// The state in which a shell that lives on is left; `None` if there is none, or if nothing can be said of it.
    #[serde(skip)]
    pub shell: Option<Box<ShellState>>,
}

/// One simple command, or the whole of a call that is no shell command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The command's words as they will run; empty if this is no shell command.
    pub words: Vec<Word>,
    /// Programs that were peeled off, outermost first (`sudo`, `env`).
    pub wrappers: Vec<String>,
    /// The machine or container it runs in, if not here.
    pub elsewhere: Option<String>,
    /// Its working directory, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What it would do.
    pub effects: Vec<PlacedEffect>,
}

impl Part {
    /// Notes that files of the project may run something else than the words say.
    pub(crate) fn doubt_project(&mut self, doubt: String, because: &str) {
        let effect = Effect {
            action: Action::Opaque,
            target: Target::Text(doubt),
            marks: vec![Mark::ProjectCode],
            because: because.to_owned(),
        };
        self.effects.push(PlacedEffect { effect, place: None });
    }
}

/// An effect together with where its path really lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedEffect {
    /// The effect as described.
    pub effect: Effect,
    /// Where its path lies; `None` if it has no path.
    pub place: Option<Place>,
}
