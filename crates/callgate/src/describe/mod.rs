//! The first step: describes what a call would do, as a list of effects. Pure.
//!
//! [`Registry::describe`] finds the [`Descriptor`] of the tool: a registered one, or one of the table of built-in tools
//! (`tools.txt`, read by `tools.rs` in the vocabulary of `role.rs`). `built_in.rs` reads the parameters by that table and
//! passes them to a collector (`collect.rs`), which turns paths, globs and URLs (`uri.rs`) into effects. Commands go to
//! `callgate-shell` (`shell.rs`), patches to `patch.rs`. A tool without descriptor (`unknown.rs`) is
//! [opaque](callgate_model::effect::Action::Opaque), and what its parameters suggest counts as well.
//!
//! Beside the road: [`typed_into`] and [`TypedInput`] deal with text typed into running programs.

mod built_in;
mod collect;
mod edits;
mod input;
mod parameters;
mod registry;
mod role;
mod shell;
mod tools;
mod typed;
mod unknown;
mod uri;

use std::path::Path;
use std::sync::Arc;

pub use callgate_model::description::{Description, Part, PlacedEffect};
pub use callgate_model::wording as words;
use callgate_shell::programs::Programs;
use callgate_shell::{Dialect, ShellState};
use thiserror::Error;

use crate::path::boundary::HostDirectories;
use callgate_model::call::Call;
use callgate_model::redact::{Redacted, Redactor};
use callgate_model::risk::Risk;

pub(crate) use built_in::OUTSIDE_THE_SANDBOX;
pub use built_in::built_in_tools;
pub use input::{TypedInput, is_interactive_shell};
pub use registry::{AlreadyRegistered, Registry};
pub use typed::typed_into;
pub use unknown::UnknownTool;

/// Describes the calls of one tool.
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
    /// The category of the tool.
    fn category(&self) -> &str;

    /// Describes what a call would do. Uncertain effects must be opaque; an error refuses the call.
    fn describe(&self, call: &Call, context: &CallContext) -> Result<Described, DescribeError>;

    /// The input as an approver sees it.
    fn for_approval(&self, call: &Call, redactor: &Redactor) -> Redacted;

    /// The input as events and logs contain it.
    fn for_event(&self, call: &Call, redactor: &Redactor) -> Redacted {
        self.for_approval(call, redactor)
    }

    /// The text that the call types into a running program, if it does nothing else.
    fn typed_input(&self, _call: &Call) -> Option<TypedInput> {
        None
    }

    /// How risky a call is, given what it would do.
    fn risk(&self, _call: &Call, description: &Description) -> Risk {
        Risk::of(description)
    }
}

/// The result of describing a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// What the call would do.
    pub description: Description,
    /// The state of the caller's persistent shell after the call; `None` if there is no such shell.
    pub shell: Option<Box<ShellState>>,
}

impl From<Description> for Described {
    fn from(description: Description) -> Self {
        Described { description, shell: None }
    }
}

/// Why a call could not be described.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// The descriptor returned an error.
    #[error("the tool's descriptor failed: {0}")]
    Failed(String),
    /// The descriptor panicked.
    #[error("the tool's descriptor panicked")]
    Panicked,
}

/// The surroundings of a call.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The call's working directory, absolute.
    pub directory: Option<String>,
    /// The user's home directory.
    pub home: Option<String>,
    /// The program tables; the bundled ones if `None`.
    pub programs: Option<Arc<Programs>>,
    /// The state of the caller's persistent shell, if the call runs in one.
    pub shell: Option<Box<ShellState>>,
    /// The shell that runs commands, unless the call names one.
    pub dialect: Dialect,
}

impl CallContext {
    /// The context of `call`.
    pub fn of(call: &Call, shell: Option<&ShellState>, host: &HostDirectories) -> Self {
        let text = |path: &Path| path.to_str().filter(|_| path.is_absolute()).map(str::to_owned);
        CallContext {
            directory: call.origin.working_directory().and_then(text),
            home: host.home.as_deref().and_then(text),
            programs: None,
            shell: shell.cloned().map(Box::new),
            dialect: call.origin.shell.as_deref().map_or(Dialect::Any, shell::dialect_of_host),
        }
    }
}
