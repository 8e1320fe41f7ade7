//! State that outlives a call: grants, pending questions and session decisions.
//!
//! The trait is what databases implement; [`MemoryStore`] is for those who embed the gate and need nothing to survive.
//! `callgate-store` keeps it in SQLite. Every method is one transaction: when it returns, what it did is durable, and of two
//! callers who want the same thing one gets it.

mod memory;

pub use memory::MemoryStore;

use std::sync::Arc;

use thiserror::Error;

use crate::approvals::{ApprovalId, ApprovalOutcome, Automatic, Question, Remembered};
use crate::grant::{ActionBlocked, BlockReason, Demand, Grant, GrantId, Grants, Spent, Terms};
use crate::key::ApprovalKey;
use callgate_model::clock::Timestamp;

/// Why a store cannot be used. The call that needs it is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be opened or reached.
    #[error("cannot open the store: {0}")]
    Unavailable(String),
    /// Another process holds it for too long.
    #[error("another process holds the lock of the store")]
    Locked,
    /// It is read-only.
    #[error("the store is read-only")]
    ReadOnly,
    /// The disk is full.
    #[error("the disk of the store is full")]
    Full,
    /// The file is damaged or not a store.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// It was made by a newer callgate.
    #[error("the store has version {found}; this callgate supports up to {known}")]
    Newer {
        /// The version it has.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// Something else went wrong.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// What became of an attempt to settle a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleResult {
    /// This attempt settled it.
    Settled,
    /// It had been settled before; this is how, and this attempt changed nothing.
    Before(ApprovalOutcome),
    /// The question is unknown.
    Unknown,
}

/// A question and, if it is settled, its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredQuestion {
    /// What was asked.
    pub question: Question,
    /// What became of it.
    pub outcome: Option<ApprovalOutcome>,
}

/// A question that waits and cannot be read: damaged, or put by another version of callgate. Nobody can answer it, and whoever waits for it
/// is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The id that it was put with.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

/// Keeps grants, questions and sessions' decisions.
pub trait Store: Send + Sync {
    /// Adds a grant.
    fn grant(&self, terms: &Terms, now: Timestamp) -> Result<GrantId, StoreError>;
    /// Every outstanding grant, expired ones included, the oldest first.
    fn grants(&self) -> Result<Vec<Grant>, StoreError>;
    /// Revokes a grant; `None` if it does not exist.
    fn revoke(&self, id: GrantId) -> Result<Option<Grant>, StoreError>;
    /// Spends one use for each target of a demand, from the most to the least specific grant; `None`, and nothing is spent, if one has none.
    fn consume(&self, demand: &Demand, now: Timestamp) -> Result<Option<Vec<GrantId>>, StoreError>;

    /// Adds a question that waits for an answer.
    fn open(&self, question: &Question) -> Result<(), StoreError>;
    /// Settles a question, the first time only.
    fn settle(&self, id: &ApprovalId, outcome: &ApprovalOutcome) -> Result<SettleResult, StoreError>;
    /// A question and what became of it.
    fn question(&self, id: &ApprovalId) -> Result<Option<StoredQuestion>, StoreError>;
    /// The questions that wait and can be read, the oldest first.
    fn pending(&self) -> Result<Vec<Question>, StoreError>;
    /// The questions that wait and cannot be read, unless their time is over.
    fn unreadable(&self, now: Timestamp) -> Result<Vec<Unreadable>, StoreError>;

    /// What a session was told to remember, the oldest first.
    fn remembered(&self, session: &str) -> Result<Vec<Remembered>, StoreError>;
    /// Remembers something for a session; once is enough.
    fn remember(&self, session: &str, what: &Remembered) -> Result<(), StoreError>;
    /// How often a request was denied in a session.
    fn denials(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError>;
    /// Counts one more denial and returns how many there are now.
    fn add_denial(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError>;
    /// What a session approves without asking.
    fn automatic(&self, session: &str) -> Result<Automatic, StoreError>;
    /// Sets what a session approves without asking.
    fn set_automatic(&self, session: &str, automatic: &Automatic) -> Result<(), StoreError>;
    /// Forgets everything that a session decided.
    fn reset_session(&self, session: &str) -> Result<(), StoreError>;
    /// The sessions of which something is remembered, by name.
    fn sessions(&self) -> Result<Vec<String>, StoreError>;
}

/// A store as a keeper of grants: a refusal if it cannot be used.
impl<S: Store + ?Sized> Grants for Arc<S> {
    fn spend(&self, demand: &Demand) -> Result<Spent, ActionBlocked> {
        match self.consume(demand, Timestamp::now()) {
            Ok(Some(grants)) => Ok(Spent::of(grants)),
            Ok(None) => Err(ActionBlocked::new(&demand.action, BlockReason::NotGranted)),
            Err(error) => Err(ActionBlocked::new(&demand.action, BlockReason::Store(error.to_string()))),
        }
    }
}
