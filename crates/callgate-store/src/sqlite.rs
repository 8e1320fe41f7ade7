//! The store in SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
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
/// Write-ahead logging with full synchronization: what a method reports as done survives the death of the process and of the
/// machine. Writes of several threads share one commit.
#[derive(Debug)]
pub struct SqliteStore {
    /// `None` if neither `XDG_DATA_HOME` nor `HOME` names a directory.
    path: Option<PathBuf>,
    patience: Duration,
    database: OnceLock<Result<Database, StoreError>>,
}

#[derive(Debug)]
struct Database {
    group: Group,
    /// Reads neither wait for writers of this process nor lock out other processes.
    reader: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the store at `path` and creates it if it does not exist.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        SqliteStore::open_with(path, open::PATIENCE)
    }

    /// Opens the store at `path` and waits at most `patience` for another process that holds the database.
    pub fn open_with(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        SqliteStore { path: Some(path.to_owned()), patience, database: OnceLock::new() }.opened()
    }

    /// Opens the user's own store.
    pub fn of_user() -> Result<Self, StoreError> {
        SqliteStore::of_user_when_needed().opened()
    }

    /// The user's own store, opened by the first method that needs it: a hook starts with every call, and most calls ask nobody.
    pub fn of_user_when_needed() -> Self {
        SqliteStore { path: open::default_path(), patience: open::PATIENCE, database: OnceLock::new() }
    }

    fn opened(self) -> Result<Self, StoreError> {
        self.database().map(drop)?;
        Ok(self)
    }

    fn database(&self) -> Result<&Database, StoreError> {
        let open = || {
            let missing = || StoreError::Unavailable("neither XDG_DATA_HOME nor HOME names a directory".into());
            let path = self.path.as_deref().ok_or_else(missing)?;
            let group = Group::start(path, self.patience)?;
            Ok(Database { group, reader: Mutex::new(open::open(path, self.patience)?) })
        };
        self.database.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    fn read<R>(&self, action: impl FnOnce(&Connection) -> Result<R, StoreError>) -> Result<R, StoreError> {
        action(&self.database()?.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R: Send + 'static>(
        &self,
        action: impl FnOnce(&Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.database()?.group.run(action)
    }
}

impl Store for SqliteStore {
    fn grant(&self, terms: &Terms, now: Timestamp) -> Result<GrantId, StoreError> {
        let terms = terms.clone();
        self.write(move |connection| statements::grant(connection, &terms, now))
    }

    fn grants(&self) -> Result<Vec<Grant>, StoreError> {
        self.read(statements::grants)
    }

    fn revoke(&self, id: GrantId) -> Result<Option<Grant>, StoreError> {
        self.write(move |connection| statements::revoke(connection, id))
    }

    fn consume(&self, demand: &Demand, now: Timestamp) -> Result<Option<Vec<GrantId>>, StoreError> {
        let demand = demand.clone();
        self.write(move |connection| statements::consume(connection, &demand, now))
    }

    fn open(&self, question: &Question) -> Result<(), StoreError> {
        let question = question.clone();
        self.write(move |connection| statements::open(connection, &question))
    }

    fn settle(&self, id: &ApprovalId, outcome: &Outcome) -> Result<SettleResult, StoreError> {
        let (id, outcome) = (id.clone(), outcome.clone());
        self.write(move |connection| statements::settle(connection, &id, &outcome))
    }

    fn entry(&self, id: &ApprovalId) -> Result<Option<Entry>, StoreError> {
        self.read(|connection| statements::entry(connection, id))
    }

    fn pending(&self) -> Result<Vec<Question>, StoreError> {
        self.read(statements::pending)
    }

    fn unreadable(&self, now: Timestamp) -> Result<Vec<Unreadable>, StoreError> {
        self.read(|connection| statements::unreadable(connection, now))
    }

    fn remembered(&self, session: &str) -> Result<Vec<Remembered>, StoreError> {
        self.read(|connection| statements::remembered(connection, session))
    }

    fn remember(&self, session: &str, what: &Remembered) -> Result<(), StoreError> {
        let (session, what) = (session.to_owned(), what.clone());
        self.write(move |connection| statements::remember(connection, &session, &what))
    }

    fn denials(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError> {
        self.read(|connection| statements::denials(connection, session, key))
    }

    fn add_denial(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError> {
        let (session, key) = (session.to_owned(), *key);
        self.write(move |connection| statements::add_denial(connection, &session, &key))
    }

    fn automatic(&self, session: &str) -> Result<Automatic, StoreError> {
        self.read(|connection| statements::automatic(connection, session))
    }

    fn set_automatic(&self, session: &str, automatic: &Automatic) -> Result<(), StoreError> {
        let (session, automatic) = (session.to_owned(), automatic.clone());
        self.write(move |connection| statements::set_automatic(connection, &session, &automatic))
    }

    fn reset_session(&self, session: &str) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.write(move |connection| statements::reset_session(connection, &session))
    }

    fn sessions(&self) -> Result<Vec<String>, StoreError> {
        self.read(statements::sessions)
    }
}
