//! The errors of reading a payload. Each of them ends in a refusal.

use callgate::json::JsonError;
use callgate::show;
use thiserror::Error;

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The payload is not JSON, or is JSON that readers could understand differently.
    #[error("cannot read the hook payload: {0}")]
    Unreadable(#[from] JsonError),
    /// The payload is JSON, but not an object.
    #[error("the hook payload is not a JSON object")]
    NotAnObject,
    /// A required field is missing.
    #[error("the hook payload has no field `{field}`")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field has the wrong type.
    #[error("the field `{field}` of the hook payload is not {expected}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// The agent has no event of this name.
    #[error("unknown event `{}` for agent `{agent}`", show::brief(name))]
    UnknownEvent {
        /// The agent.
        agent: &'static str,
        /// The name in the payload or on the command line.
        name: String,
    },
    /// The payload names another event than the hook's command line.
    #[error(
        "the hook was started for event `{}`, but the payload is for `{}`",
        show::brief(expected),
        show::brief(actual)
    )]
    EventMismatch {
        /// The name on the command line.
        expected: String,
        /// The name in the payload.
        actual: String,
    },
    /// The payload has an unsupported version.
    #[error("unsupported hook payload version {}", show::brief(version))]
    UnknownVersion {
        /// The version in the payload.
        version: String,
    },
    /// An environment variable that the agent sets for its hooks is missing.
    #[error("the agent did not set the environment variable {variable}")]
    MissingVariable {
        /// The variable.
        variable: &'static str,
    },
}
