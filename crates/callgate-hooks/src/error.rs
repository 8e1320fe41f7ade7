//! Why a payload is not understood. Each of these ends in a refusal.

use callgate::json::JsonError;
use callgate::show;
use thiserror::Error;

/// Why a payload is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PayloadError {
    /// It is no JSON, or none that every reader understands alike.
    #[error("the hook's payload cannot be read: {0}")]
    Unreadable(#[from] JsonError),
    /// It is JSON, but no object.
    #[error("the hook's payload is not an object")]
    NotAnObject,
    /// A field is not there.
    #[error("the hook's payload has no `{field}`")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// A field holds something else.
    #[error("`{field}` of the hook's payload is not {expected}")]
    WrongType {
        /// Its name.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// An event that this dialect does not have.
    #[error("`{}` is no event that callgate knows of {agent}", show::brief(name))]
    UnknownEvent {
        /// Whose.
        agent: &'static str,
        /// As the agent names it.
        name: String,
    },
    /// The payload names another event than the hook's command line.
    #[error("the hook was started for `{}` and was given `{}`", show::brief(expected), show::brief(told))]
    AnotherEvent {
        /// As the command line names it.
        expected: String,
        /// As the payload names it.
        told: String,
    },
    /// A version of the payload that is not known.
    #[error("version {} of the payload is not known", show::brief(version))]
    UnknownVersion {
        /// As it was given.
        version: String,
    },
    /// A variable that the agent sets for its hooks is not there.
    #[error("the agent did not set {variable}")]
    NoVariable {
        /// Which.
        variable: &'static str,
    },
}
