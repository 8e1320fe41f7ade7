//! Ways to ask: a terminal, another command, a webhook, several of them.

mod chain;
mod command;
mod reply;
mod terminal;
mod webhook;

pub use chain::{AllAgree, FirstAnswer};
pub use command::CommandApprover;
pub use reply::{MAXIMUM_REPLY, read_reply};
pub use terminal::{Terminal, TerminalApprover, prompt};
pub use webhook::{SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookApprover, WebhookError, signature};

use std::time::Duration;

use thiserror::Error;

use super::{Answer, Question};
use crate::clock::Timestamp;

/// Why there is no answer. All of them are refusals; the first two leave the question open for others until its time is over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AskError {
    /// Somebody else has answered meanwhile.
    #[error("the question was settled elsewhere")]
    Closed,
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// There is nobody to ask: no terminal, no such program, no connection.
    #[error("nobody can be asked: {0}")]
    Unavailable(String),
    /// Something came back that is no answer.
    #[error("the approver's answer cannot be used: {0}")]
    Unusable(String),
}

/// Asks somebody, or something.
pub trait Channel: Send + Sync {
    /// Puts a question and waits for its answer, not longer than its deadline. `open` says whether it still matters.
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError>;
}

/// Asks nobody: waits for those who look into the store, a second terminal or a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elsewhere;

impl Channel for Elsewhere {
    fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        Err(AskError::Closed)
    }
}

/// Nobody is there to answer: every question is refused at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Channel for Nobody {
    fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        Err(AskError::Unavailable("this run has no approver".into()))
    }
}

/// How much time a question has left.
fn time_left(question: &Question) -> Duration {
    Timestamp::now().until(question.deadline)
}
