//! Questions that wait, and their answers, each given once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::approver::ask_guarded;
use super::store::{SettleResult, Store, StoreError, Unreadable};
use super::{Answer, ApprovalDecision, ApprovalId, ApprovalOutcome, Approver, AskError, Question, Remembered};
use crate::grant::{Scope, Terms};
use crate::monitor::{Monitor, Monitors, Standard};
use callgate_model::clock::Timestamp;

/// How long a yes to a kept question waits for the call to be made again.
const GRANTED: Duration = Duration::from_secs(60 * 60);

/// How often the store is looked at for an answer that another process gave.
const LOOK: Duration = Duration::from_millis(100);

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The id is unknown.
    #[error("unknown question {0}")]
    Unknown(ApprovalId),
    /// It was settled before; the first answer counts.
    #[error("question {id} is already settled: {outcome}")]
    Settled {
        /// Which.
        id: ApprovalId,
        /// How.
        outcome: ApprovalOutcome,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Brings questions to those who answer, and answers to those who wait.
///
/// The store decides which answer is first. The coordinator wakes the waiting threads of this process and polls for answers of other processes.
pub struct Coordinator<M: Monitors = Standard> {
    store: Arc<dyn Store>,
    /// How many answers have passed through here.
    answers: Arc<M::Of<u64>>,
}

impl<M: Monitors> Clone for Coordinator<M> {
    fn clone(&self) -> Self {
        Coordinator { store: Arc::clone(&self.store), answers: Arc::clone(&self.answers) }
    }
}

callgate_model::debug_fields!(<M: Monitors> Coordinator);

impl Coordinator {
    /// A coordinator over a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Coordinator::with_primitives(store)
    }

    /// Asks an approver and everyone who reads the store; the first answer counts. Blocks until there
    /// is one or the deadline passes.
    pub fn ask(&self, question: &Question, approver: &Arc<dyn Approver>) -> Result<ApprovalOutcome, StoreError> {
        let begin = Instant::now();
        self.put(question, approver)?;
        self.wait(&question.id, question.time().saturating_sub(begin.elapsed()))
    }

    /// Puts a question, without waiting for the answer.
    ///
    /// A separate thread asks the approver, so that one that hangs or panics does not block the caller.
    pub fn put(&self, question: &Question, approver: &Arc<dyn Approver>) -> Result<(), StoreError> {
        self.open(question)?;
        let asking = {
            let (coordinator, approver, question) = (self.clone(), Arc::clone(approver), question.clone());
            move || coordinator.ask_here(&question, approver.as_ref())
        };
        let thread = std::thread::Builder::new().name("callgate-approver".into()).spawn(asking);
        if let Err(error) = thread {
            let outcome = ApprovalOutcome::Unanswerable(format!("cannot ask: {error}"));
            self.settle(&question.id, &outcome)?;
        }
        Ok(())
    }

    /// Asks an approver and settles the question with what it says.
    fn ask_here(&self, question: &Question, approver: &dyn Approver) {
        let open = || matches!(self.store.question(&question.id), Ok(Some(entry)) if entry.outcome.is_none());
        self.take(&question.id, ask_guarded(approver, question, &open));
    }

    /// Settles a question with the reply of an approver. If that fails, the waiting thread finds no outcome and refuses at the deadline.
    pub(super) fn take(&self, id: &ApprovalId, said: Result<Answer, AskError>) {
        let outcome = match said {
            Ok(answer) => ApprovalOutcome::Answered(answer),
            // Another approver may answer: the question stays pending until its deadline.
            Err(AskError::Closed) => return,
            Err(AskError::TimedOut) => ApprovalOutcome::TimedOut,
            Err(error) => ApprovalOutcome::Unanswerable(error.to_string()),
        };
        let _ = self.settle(id, &outcome);
    }
}

impl<M: Monitors> Coordinator<M> {
    /// A coordinator on other primitives than the standard library's.
    pub fn with_primitives(store: Arc<dyn Store>) -> Self {
        Coordinator { store, answers: Arc::new(M::Of::new(0)) }
    }

    /// Adds a question, without asking anybody in particular.
    pub fn open(&self, question: &Question) -> Result<(), StoreError> {
        self.store.open(question)
    }

    /// Waits for the outcome of a question. Settles it as timed out after `at_most`.
    pub fn wait(&self, id: &ApprovalId, at_most: Duration) -> Result<ApprovalOutcome, StoreError> {
        let begin = Instant::now();
        let mut seen = self.answers.with(|answers| *answers);
        loop {
            match self.store.question(id)? {
                None => return Err(StoreError::Failed("the question is missing from the store".into())),
                Some(entry) => {
                    if let Some(outcome) = entry.outcome {
                        return Ok(outcome);
                    }
                }
            }
            let left = at_most.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return match self.settle(id, &ApprovalOutcome::TimedOut)? {
                    SettleResult::Before(outcome) => Ok(outcome),
                    SettleResult::Settled | SettleResult::Unknown => Ok(ApprovalOutcome::TimedOut),
                };
            }
            let changed = self.answers.wait(left.min(LOOK), |answers| (*answers != seen).then_some(*answers));
            seen = changed.unwrap_or(seen);
        }
    }

    /// Answers a question, the first time only. Rejects an answer after the deadline.
    pub fn resolve(&self, id: &ApprovalId, answer: Answer) -> Result<(), AnswerError> {
        let question = self.store.question(id)?.map(|entry| entry.question);
        let late = question.as_ref().is_some_and(|question| question.deadline <= Timestamp::now());
        let outcome = if late { ApprovalOutcome::TimedOut } else { ApprovalOutcome::Answered(answer.clone()) };
        self.settle_first(id, &outcome)?;
        if late {
            return Err(AnswerError::Settled { id: id.clone(), outcome });
        }
        match question.filter(|question| question.kept) {
            Some(question) => Ok(self.answer_kept(&question, answer)?),
            None => Ok(()),
        }
    }

    /// Nobody waits for the answer: a yes is a grant for one more attempt, or what the session remembers.
    fn answer_kept(&self, question: &Question, answer: Answer) -> Result<(), StoreError> {
        let Some(key) = question.key else { return Ok(()) };
        let session = question.session.as_deref();
        match (answer.decision, session) {
            (ApprovalDecision::ApprovedForSession, Some(session)) => {
                let proposal = answer.proposal.and_then(|index| question.proposals.get(index)).cloned();
                self.store.remember(session, &proposal.map_or(Remembered::Request(key), Remembered::Rule))
            }
            (ApprovalDecision::Approved | ApprovalDecision::ApprovedForSession, _) => {
                let terms = Terms {
                    key: Some(key),
                    scope: question.scope.as_deref().map(Scope::new),
                    ..Terms::for_any(question.tool.as_str())
                };
                let terms = terms
                    .expires_in(GRANTED)
                    .by(answer.by.unwrap_or_else(|| "approver".to_owned()))
                    .because(format!("answer to question {}", question.id));
                self.store.grant(&terms, Timestamp::now()).map(drop)
            }
            (ApprovalDecision::Denied, Some(session)) => self.store.add_denial(session, &key).map(drop),
            (ApprovalDecision::Denied, None) | (ApprovalDecision::Abort, _) => Ok(()),
        }
    }

    fn settle_first(&self, id: &ApprovalId, outcome: &ApprovalOutcome) -> Result<(), AnswerError> {
        match self.settle(id, outcome)? {
            SettleResult::Settled => Ok(()),
            SettleResult::Before(outcome) => Err(AnswerError::Settled { id: id.clone(), outcome }),
            SettleResult::Unknown => Err(AnswerError::Unknown(id.clone())),
        }
    }

    /// Cancels a question. The waiting call is refused.
    pub fn cancel(&self, id: &ApprovalId) -> Result<(), AnswerError> {
        self.settle_first(id, &ApprovalOutcome::Cancelled)
    }

    /// The questions that can still be answered, the oldest first. Leaves out those that cannot be read ([`unreadable`](Self::unreadable)).
    pub fn pending(&self) -> Result<Vec<Question>, StoreError> {
        let now = Timestamp::now();
        Ok(self.store.pending()?.into_iter().filter(|question| now < question.deadline).collect())
    }

    /// The pending questions that cannot be read, and so cannot be answered.
    pub fn unreadable(&self) -> Result<Vec<Unreadable>, StoreError> {
        self.store.unreadable(Timestamp::now())
    }

    fn settle(&self, id: &ApprovalId, outcome: &ApprovalOutcome) -> Result<SettleResult, StoreError> {
        let settling = self.store.settle(id, outcome)?;
        self.answers.with(|answers| *answers = answers.wrapping_add(1));
        self.answers.notify();
        Ok(settling)
    }
}
