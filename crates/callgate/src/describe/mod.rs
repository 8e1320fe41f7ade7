//! From a call to what it would do.
//!
//! A [`Descriptor`] says how one tool is understood. Those of the tools that coding agents have are built in as a table
//! (`tools.txt`: to add a tool, add a block there); others are registered with a [`Registry`]. A tool without descriptor is
//! [opaque](callgate_model::effect::Action::Opaque), and what its parameters tell is used all the same.

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

use std::sync::Arc;

pub use callgate_model::description::{Description, Part, PlacedEffect};
pub use callgate_model::wording as words;
use callgate_shell::ShellState;
use callgate_shell::programs::Programs;
use thiserror::Error;

use crate::path::boundary::HostDirectories;
use callgate_model::call::Call;
use callgate_model::redact::{Redacted, Redactor};
use callgate_model::risk::Risk;

pub use built_in::built_in_tools;
pub use input::{TypedInput, is_interactive_shell};
pub use registry::{AlreadyRegistered, Registry};
pub use typed::typed_into;
pub use unknown::UnknownTool;

/// How one tool is understood.
///
/// ```
/// use callgate::call::Call;
/// use callgate::describe::{CallContext, DescribeError, Described, Description, Descriptor};
/// use callgate::redact::{Redacted, Redactor};
/// use callgate_model::effect::{Action, Effect, Host, Target};
///
/// struct Weather;
///
/// impl Descriptor for Weather {
///     fn category(&self) -> &str {
///         "network"
///     }
///
///     fn describe(&self, _call: &Call, _context: &CallContext) -> Result<Described, DescribeError> {
///         let host = Host { name: Some("weather.example".into()), shown: "weather.example".into() };
///         let effect = Effect { action: Action::Connect, target: Target::Host(host), marks: vec![], because: String::new() };
///         Ok(Description::of_effects(self.category(), vec![effect]).into())
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
    fn describe(&self, call: &Call, context: &CallContext) -> Result<Described, DescribeError>;

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

/// What a descriptor says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// What the call would do.
    pub description: Description,
    /// The state in which the call leaves a shell that the caller keeps; `None` if there is no such shell.
    pub shell: Option<Box<ShellState>>,
}

impl From<Description> for Described {
    fn from(description: Description) -> Self {
        Described { description, shell: None }
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
pub struct CallContext {
    /// The call's working directory, absolute.
    pub directory: Option<String>,
    /// The user's home directory.
    pub home: Option<String>,
    /// What programs do; those that are compiled in if not said.
    pub programs: Option<Arc<Programs>>,
    /// The state of the shell that the caller keeps, if the call runs in one.
    pub shell: Option<Box<ShellState>>,
}

impl CallContext {
    /// That of a call.
    pub fn of(call: &Call, shell: Option<&ShellState>, host: &HostDirectories) -> Self {
        let origin = &call.origin;
        let directory = origin.directory.as_ref().or(origin.workspace.as_ref());
        let text = |path: &std::path::PathBuf| path.is_absolute().then(|| path.to_str().map(str::to_owned)).flatten();
        CallContext {
            directory: directory.and_then(text),
            home: host.home.as_ref().and_then(text),
            programs: None,
            shell: shell.cloned().map(Box::new),
        }
    }
}
