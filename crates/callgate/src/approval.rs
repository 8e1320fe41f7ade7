//! Asking: who answers when a ruling is `ask`.
//!
//! The policy's own handler is asked if it has one, else the gate's approver, else the gate's fallback. Only one of them is
//! asked, its answer counts, and anything but an explicit yes refuses: no, an error, a panic, a handler that asks back.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;

use crate::call::{Origin, Tool};
use crate::redact::Redacted;
use crate::risk::Risk;

/// A question to an approver. Everything in it has gone through redaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApprovalRequest {
    /// The call's id, the same in all its events.
    pub id: String,
    /// Which tool.
    pub tool: Tool,
    /// From whom.
    pub origin: Origin,
    /// Its arguments without secrets.
    pub input: Redacted,
    /// What it would do, in words, the effects that are asked about first.
    pub effects: Vec<String>,
    /// The rule that asks.
    pub rule: Option<String>,
    /// Why it asks.
    pub reason: String,
    /// How much is at stake.
    pub risk: Risk,
    /// How long an answer may take, if the policy says.
    pub timeout: Option<Duration>,
}

/// What an approver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Approved,
    /// Yes, and for the rest of the session.
    ApprovedForSession,
    /// No.
    Denied,
    /// No, and stop the whole run.
    Abort,
    /// Nobody answered in time.
    TimedOut,
}

/// Why an approver has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApprovalError {
    /// It cannot reach anybody.
    #[error("nobody can be asked: {0}")]
    Unreachable(String),
    /// It broke.
    #[error("the approver failed: {0}")]
    Failed(String),
}

/// Answers questions.
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer.
    fn ask(&self, request: &ApprovalRequest) -> Result<Answer, ApprovalError>;
}

impl<F> Approver for F
where
    F: Fn(&ApprovalRequest) -> Answer + Send + Sync,
{
    fn ask(&self, request: &ApprovalRequest) -> Result<Answer, ApprovalError> {
        Ok(self(request))
    }
}

/// The future of an answer.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, ApprovalError>> + Send + 'a>>;

/// Answers questions without holding up a thread.
pub trait AsyncApprover: Send + Sync {
    /// Asks.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> AnswerFuture<'a>;
}

/// An approver of either kind.
#[derive(Clone)]
pub enum Channel {
    /// One that waits.
    Sync(Arc<dyn Approver>),
    /// One that is awaited. [`Gate::check`](crate::gate::Gate::check) cannot use it.
    Async(Arc<dyn AsyncApprover>),
}

impl Channel {
    /// Asks an approver that waits; one that panics has failed.
    pub(crate) fn ask(&self, request: &ApprovalRequest) -> Result<Answer, ApprovalError> {
        match self {
            Channel::Sync(approver) => ask_guarded(approver.as_ref(), request),
            Channel::Async(_) => {
                Err(ApprovalError::Unreachable("the approver is asynchronous, the check is not".to_owned()))
            }
        }
    }

    /// Asks an approver of either kind.
    pub(crate) async fn ask_async(&self, request: &ApprovalRequest) -> Result<Answer, ApprovalError> {
        match self {
            Channel::Sync(approver) => ask_guarded(approver.as_ref(), request),
            Channel::Async(approver) => {
                let panicked = || ApprovalError::Failed("it panicked".to_owned());
                let asked = catch_unwind(AssertUnwindSafe(|| approver.ask(request)));
                Guarded(asked.map_err(|_| panicked())?).await
            }
        }
    }
}

fn ask_guarded(approver: &dyn Approver, request: &ApprovalRequest) -> Result<Answer, ApprovalError> {
    catch_unwind(AssertUnwindSafe(|| approver.ask(request)))
        .unwrap_or_else(|_| Err(ApprovalError::Failed("it panicked".to_owned())))
}

/// A future whose panics are errors.
struct Guarded<'a>(AnswerFuture<'a>);

impl Future for Guarded<'_> {
    type Output = Result<Answer, ApprovalError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)))
            .unwrap_or_else(|_| std::task::Poll::Ready(Err(ApprovalError::Failed("it panicked".to_owned()))))
    }
}
