//! Ways to ask: a terminal, another command, a webhook, several of them.

mod chain;
mod command;
mod configured;
mod prompt;
mod reply;
mod terminal;
#[cfg(feature = "webhook")]
mod webhook;

pub use chain::{AllAgree, FirstAnswer, InOrder};
pub use command::CommandApprover;
pub use configured::{Asking, configured};
pub use prompt::{Look, prompt};
pub use reply::{MAXIMUM_REPLY, read_reply};
pub use terminal::{Terminal, TerminalApprover, controlling_terminal};
#[cfg(feature = "webhook")]
pub use webhook::{SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookApprover, WebhookError, signature};

use std::time::Duration;

use super::{Answer, Approver, AskError, Question};
use callgate_model::clock::Timestamp;

/// Defers to those who read the store: a second terminal or a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elsewhere;

impl Approver for Elsewhere {
    fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        Err(AskError::Closed)
    }
}

/// Refuses every question at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        Err(AskError::Unavailable("no approver is configured for this session".into()))
    }
}

/// How much time a question has left.
fn time_left(question: &Question) -> Duration {
    Timestamp::now().until(question.deadline)
}
