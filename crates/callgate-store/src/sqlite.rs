//! The store in SQLite.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use callgate::approvals::{ApprovalId, Automatic, Outcome, Question, Remembered};
use callgate::clock::Timestamp;
use callgate::grant::{Demand, Grant, GrantId, Terms};
use callgate::key::ApprovalKey;
use callgate::store::{Entry, SettleResult, Store, StoreError, Unreadable};
use rusqlite::Connection;

use crate::group::Group;
use crate::{open, statements};

/// A store in one file, shared by threads and processes.
///
/// Write-ahead logging with full synchronisation: what a method reports as done survives the death of the process and of the
/// machine. What several threads want at once becomes durable by one commit.
#[derive(Debug)]
pub struct SqliteStore {
    group: Group,
    /// Looking takes no turn in the queue of those who change something, and no lock from other processes.
    reader: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the store at a path, and makes it if it is not there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        SqliteStore::open_with(path, open::PATIENCE)
    }

    /// The same for a caller who must answer in time: so long another process may hold the database before it counts as locked.
    pub fn open_with(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let group = Group::start(path, patience)?;
        Ok(SqliteStore { group, reader: Mutex::new(open::open(path, patience)?) })
    }

    fn look<R>(&self, action: impl FnOnce(&Connection) -> Result<R, StoreError>) -> Result<R, StoreError> {
        action(&self.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the user's own store.
    pub fn of_user() -> Result<Self, StoreError> {
        let path = open::default_path()
            .ok_or_else(|| StoreError::Unavailable("neither XDG_DATA_HOME nor HOME says where it is".into()))?;
        SqliteStore::open(&path)
    }
}

impl Store for SqliteStore {
    fn grant(&self, terms: &Terms, now: Timestamp) -> Result<GrantId, StoreError> {
        let terms = terms.clone();
        self.group.run(move |connection| statements::grant(connection, &terms, now))
    }

    fn grants(&self) -> Result<Vec<Grant>, StoreError> {
        self.look(statements::grants)
    }

    fn revoke(&self, id: GrantId) -> Result<Option<Grant>, StoreError> {
        self.group.run(move |connection| statements::revoke(connection, id))
    }

    fn consume(&self, demand: &Demand, now: Timestamp) -> Result<Option<Vec<GrantId>>, StoreError> {
        let demand = demand.clone();
        self.group.run(move |connection| statements::consume(connection, &demand, now))
    }

    fn open(&self, question: &Question) -> Result<(), StoreError> {
        let question = question.clone();
        self.group.run(move |connection| statements::open(connection, &question))
    }

    fn settle(&self, id: &ApprovalId, outcome: &Outcome) -> Result<SettleResult, StoreError> {
        let (id, outcome) = (id.clone(), outcome.clone());
        self.group.run(move |connection| statements::settle(connection, &id, &outcome))
    }

    fn entry(&self, id: &ApprovalId) -> Result<Option<Entry>, StoreError> {
        self.look(|connection| statements::entry(connection, id))
    }

    fn pending(&self) -> Result<Vec<Question>, StoreError> {
        self.look(statements::pending)
    }

    fn unreadable(&self, now: Timestamp) -> Result<Vec<Unreadable>, StoreError> {
        self.look(|connection| statements::unreadable(connection, now))
    }

    fn remembered(&self, session: &str) -> Result<Vec<Remembered>, StoreError> {
        self.look(|connection| statements::remembered(connection, session))
    }

    fn remember(&self, session: &str, what: &Remembered) -> Result<(), StoreError> {
        let (session, what) = (session.to_owned(), what.clone());
        self.group.run(move |connection| statements::remember(connection, &session, &what))
    }

    fn denials(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError> {
        self.look(|connection| statements::denials(connection, session, key))
    }

    fn add_denial(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError> {
        let (session, key) = (session.to_owned(), *key);
        self.group.run(move |connection| statements::add_denial(connection, &session, &key))
    }

    fn automatic(&self, session: &str) -> Result<Automatic, StoreError> {
        self.look(|connection| statements::automatic(connection, session))
    }

    fn set_automatic(&self, session: &str, automatic: &Automatic) -> Result<(), StoreError> {
        let (session, automatic) = (session.to_owned(), automatic.clone());
        self.group.run(move |connection| statements::set_automatic(connection, &session, &automatic))
    }

    fn reset_session(&self, session: &str) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.group.run(move |connection| statements::reset_session(connection, &session))
    }

    fn sessions(&self) -> Result<Vec<String>, StoreError> {
        self.look(statements::sessions)
    }
}
