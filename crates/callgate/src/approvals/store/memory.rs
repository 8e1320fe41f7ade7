//! A store that lives and dies with its process.

use std::collections::{BTreeMap, HashMap};

use super::{SettleResult, Store, StoreError, StoredQuestion, Unreadable};
use crate::approvals::{ApprovalId, ApprovalOutcome, Automatic, Question, Remembered};
use crate::grant::{Demand, Grant, GrantId, Ledger, Terms};
use crate::key::ApprovalKey;
use crate::monitor::{Monitor, Monitors, Standard};
use callgate_model::clock::Timestamp;

/// Settled questions that are kept for those who ask what became of them.
const SETTLED_KEPT: usize = 200;

#[derive(Default)]
struct Session {
    remembered: Vec<Remembered>,
    denials: HashMap<ApprovalKey, u32>,
    automatic: Automatic,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    /// By the order in which they were asked.
    questions: BTreeMap<u64, StoredQuestion>,
    numbers: HashMap<ApprovalId, u64>,
    last: u64,
    sessions: BTreeMap<String, Session>,
}

/// Keeps everything in memory, shared by the threads of one process.
pub struct MemoryStore<M: Monitors = Standard> {
    state: M::Of<State>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::with_primitives()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl<M: Monitors> MemoryStore<M> {
    /// A store on other primitives than the standard library's.
    pub fn with_primitives() -> Self {
        MemoryStore { state: M::Of::new(State::default()) }
    }

    fn with<R>(&self, action: impl FnOnce(&mut State) -> R) -> Result<R, StoreError> {
        Ok(self.state.with(action))
    }

    fn with_session<R>(&self, session: &str, action: impl FnOnce(&mut Session) -> R) -> Result<R, StoreError> {
        self.with(|state| action(state.sessions.entry(session.to_owned()).or_default()))
    }

    fn of_session<R: Default>(&self, session: &str, action: impl FnOnce(&Session) -> R) -> Result<R, StoreError> {
        self.with(|state| state.sessions.get(session).map(action).unwrap_or_default())
    }
}

callgate_model::debug_fields!(<M: Monitors> MemoryStore);

impl State {
    fn question(&mut self, id: &ApprovalId) -> Option<&mut StoredQuestion> {
        let number = self.numbers.get(id)?;
        self.questions.get_mut(number)
    }

    /// Forgets the oldest settled questions when there are too many.
    fn tidy(&mut self) {
        let settled = self.questions.iter().filter(|(_, entry)| entry.outcome.is_some());
        let excess = settled.clone().count().saturating_sub(SETTLED_KEPT);
        let old: Vec<u64> = settled.map(|(number, _)| *number).take(excess).collect();
        for number in old {
            if let Some(entry) = self.questions.remove(&number) {
                self.numbers.remove(&entry.question.id);
            }
        }
    }
}

impl<M: Monitors> Store for MemoryStore<M> {
    fn grant(&self, terms: &Terms, now: Timestamp) -> Result<GrantId, StoreError> {
        self.with(|state| state.ledger.add(terms.clone(), now))
    }

    fn grants(&self) -> Result<Vec<Grant>, StoreError> {
        self.with(|state| state.ledger.outstanding().cloned().collect())
    }

    fn revoke(&self, id: GrantId) -> Result<Option<Grant>, StoreError> {
        self.with(|state| state.ledger.revoke(id))
    }

    fn consume(&self, demand: &Demand, now: Timestamp) -> Result<Option<Vec<GrantId>>, StoreError> {
        self.with(|state| state.ledger.consume(demand, now))
    }

    fn open(&self, question: &Question) -> Result<(), StoreError> {
        self.with(|state| {
            if state.numbers.contains_key(&question.id) {
                return Err(StoreError::Failed("a question with this id exists already".into()));
            }
            state.tidy();
            state.last = state.last.saturating_add(1);
            state.numbers.insert(question.id.clone(), state.last);
            state.questions.insert(state.last, StoredQuestion { question: question.clone(), outcome: None });
            Ok(())
        })?
    }

    fn settle(&self, id: &ApprovalId, outcome: &ApprovalOutcome) -> Result<SettleResult, StoreError> {
        self.with(|state| match state.question(id) {
            None => SettleResult::Unknown,
            Some(StoredQuestion { outcome: Some(before), .. }) => SettleResult::Before(before.clone()),
            Some(entry) => {
                entry.outcome = Some(outcome.clone());
                SettleResult::Settled
            }
        })
    }

    fn question(&self, id: &ApprovalId) -> Result<Option<StoredQuestion>, StoreError> {
        self.with(|state| state.question(id).cloned())
    }

    fn pending(&self) -> Result<Vec<Question>, StoreError> {
        self.with(|state| {
            let waiting = state.questions.values().filter(|entry| entry.outcome.is_none());
            waiting.map(|entry| entry.question.clone()).collect()
        })
    }

    fn unreadable(&self, _: Timestamp) -> Result<Vec<Unreadable>, StoreError> {
        Ok(Vec::new())
    }

    fn remembered(&self, session: &str) -> Result<Vec<Remembered>, StoreError> {
        self.of_session(session, |session| session.remembered.clone())
    }

    fn remember(&self, session: &str, what: &Remembered) -> Result<(), StoreError> {
        self.with_session(session, |session| {
            if !session.remembered.contains(what) {
                session.remembered.push(what.clone());
            }
        })
    }

    fn denials(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError> {
        self.of_session(session, |session| session.denials.get(key).copied().unwrap_or(0))
    }

    fn add_denial(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError> {
        self.with_session(session, |session| {
            let count = session.denials.entry(*key).or_default();
            *count = count.saturating_add(1);
            *count
        })
    }

    fn automatic(&self, session: &str) -> Result<Automatic, StoreError> {
        self.of_session(session, |session| session.automatic.clone())
    }

    fn set_automatic(&self, session: &str, automatic: &Automatic) -> Result<(), StoreError> {
        self.with_session(session, |session| session.automatic = automatic.clone())
    }

    fn reset_session(&self, session: &str) -> Result<(), StoreError> {
        self.with(|state| {
            state.sessions.remove(session);
        })
    }

    fn sessions(&self) -> Result<Vec<String>, StoreError> {
        self.with(|state| state.sessions.keys().cloned().collect())
    }
}
