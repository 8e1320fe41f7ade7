//! Who answers: a person through some channel, or code.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use thiserror::Error;

use super::{Answer, ApprovalDecision, Question};

/// Why there is no answer. All are refusals; only `Closed` leaves the question pending for others until its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AskError {
    /// Another approver answers or has answered.
    #[error("the question is already settled")]
    Closed,
    /// No answer in time.
    #[error("timed out")]
    TimedOut,
    /// The approver is unavailable: no terminal, no such program, no connection.
    #[error("{0}")]
    Unavailable(String),
    /// The reply is not a valid answer.
    #[error("invalid answer: {0}")]
    Unusable(String),
}

impl AskError {
    /// Of one that panicked.
    pub(super) fn panicked() -> Self {
        AskError::Unusable("the approver failed".into())
    }
}

/// Answers questions.
///
/// A function is an approver too. Anything but a clear yes refuses: no, an error, a panic, silence.
///
/// ```
/// use callgate::approvals::{ApprovalDecision, Question};
/// use callgate::{Gate, Policy};
///
/// let gate = Gate::builder()
///     .policy(Policy::bundled("standard")?)
///     .approver(|question: &Question| {
///         if question.tool == "Write" { ApprovalDecision::Approved } else { ApprovalDecision::Denied }
///     })
///     .build();
/// # drop(gate);
/// # Ok::<(), callgate::policy::PolicyError>(())
/// ```
pub trait Approver: Send + Sync {
    /// Puts a question and waits for its answer, not longer than its deadline. `open` says whether it still matters.
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError>;
}

impl<F, A> Approver for F
where
    F: Fn(&Question) -> A + Send + Sync,
    A: IntoAnswer,
{
    fn ask(&self, question: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        self(question).into_answer()
    }
}

/// What a function that is an approver may return: a decision, an answer, or a `Result` of them.
pub trait IntoAnswer {
    /// The answer, or why there is none.
    fn into_answer(self) -> Result<Answer, AskError>;
}

impl IntoAnswer for Answer {
    fn into_answer(self) -> Result<Answer, AskError> {
        Ok(self)
    }
}

impl IntoAnswer for ApprovalDecision {
    fn into_answer(self) -> Result<Answer, AskError> {
        Ok(Answer::new(self))
    }
}

impl<A: IntoAnswer> IntoAnswer for Result<A, AskError> {
    fn into_answer(self) -> Result<Answer, AskError> {
        self?.into_answer()
    }
}

/// Asks; an approver that panics has failed.
pub(super) fn ask_guarded(
    approver: &dyn Approver,
    question: &Question,
    open: &dyn Fn() -> bool,
) -> Result<Answer, AskError> {
    catch_unwind(AssertUnwindSafe(|| approver.ask(question, open))).unwrap_or_else(|_| Err(AskError::panicked()))
}

/// The future of an answer.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send + 'a>>;

/// Answers questions without holding up a thread. [`Gate::check`](crate::gate::Gate::check) cannot use one.
pub trait AsyncApprover: Send + Sync {
    /// Asks.
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a>;
}

/// A future whose panics are errors.
pub(super) struct Guarded(pub AnswerFuture<'static>);

impl Future for Guarded {
    type Output = Result<Answer, AskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(AskError::panicked())))
    }
}
