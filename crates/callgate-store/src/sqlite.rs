//! The store in SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use callgate::approvals::{ApprovalId, ApprovalOutcome, Automatic, Question, Remembered};
use callgate::clock::Timestamp;
use callgate::grant::{Demand, Grant, GrantId, Terms};
use callgate::key::ApprovalKey;
use callgate::store::{SettleResult, Store, StoreError, StoredQuestion, Unreadable};
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

/// Implements each method with the statement of the same name: those that read at once, those that write as a job of the group.
macro_rules! store_methods {
    (
        read { $(fn $read:ident(&self $(, $read_by:ident: $read_kind:ty)*) -> $found:ty;)* }
        write { $(fn $write:ident(&self $(, $write_by:ident: $write_kind:ty)*) -> $done:ty;)* }
    ) => {
        impl Store for SqliteStore {
            $(fn $read(&self $(, $read_by: $read_kind)*) -> Result<$found, StoreError> {
                self.read(|connection| statements::$read(connection $(, $read_by)*))
            })*
            $(fn $write(&self $(, $write_by: $write_kind)*) -> Result<$done, StoreError> {
                $(let $write_by = $write_by.to_owned();)*
                self.write(move |connection| statements::$write(connection $(, &$write_by)*))
            })*
        }
    };
}

store_methods! {
    read {
        fn grants(&self) -> Vec<Grant>;
        fn question(&self, id: &ApprovalId) -> Option<StoredQuestion>;
        fn pending(&self) -> Vec<Question>;
        fn unreadable(&self, now: Timestamp) -> Vec<Unreadable>;
        fn remembered(&self, session: &str) -> Vec<Remembered>;
        fn denials(&self, session: &str, key: &ApprovalKey) -> u32;
        fn automatic(&self, session: &str) -> Automatic;
        fn sessions(&self) -> Vec<String>;
    }
    write {
        fn grant(&self, terms: &Terms, now: Timestamp) -> GrantId;
        fn revoke(&self, id: GrantId) -> Option<Grant>;
        fn consume(&self, demand: &Demand, now: Timestamp) -> Option<Vec<GrantId>>;
        fn open(&self, question: &Question) -> ();
        fn settle(&self, id: &ApprovalId, outcome: &ApprovalOutcome) -> SettleResult;
        fn remember(&self, session: &str, what: &Remembered) -> ();
        fn add_denial(&self, session: &str, key: &ApprovalKey) -> u32;
        fn set_automatic(&self, session: &str, automatic: &Automatic) -> ();
        fn reset_session(&self, session: &str) -> ();
    }
}
