//! A store that is opened when it is first needed: most calls never ask anybody, and a hook starts with every call.

use std::path::PathBuf;
use std::sync::OnceLock;

use callgate::approvals::{ApprovalId, Automatic, Outcome, Question, Remembered};
use callgate::clock::Timestamp;
use callgate::grant::{Demand, Grant, GrantId, Terms};
use callgate::key::ApprovalKey;
use callgate::store::{Entry, SettleResult, Store, StoreError, Unreadable};

use crate::SqliteStore;

/// A [`SqliteStore`] that is opened with its first use.
#[derive(Debug, Default)]
pub struct LazyStore {
    /// `None`: the user's own.
    path: Option<PathBuf>,
    store: OnceLock<Result<SqliteStore, StoreError>>,
}

impl LazyStore {
    /// The user's own.
    pub fn of_user() -> Self {
        Self::default()
    }

    /// The one in this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), store: OnceLock::new() }
    }

    fn store(&self) -> Result<&SqliteStore, StoreError> {
        let open = || match &self.path {
            Some(path) => SqliteStore::open(path),
            None => SqliteStore::of_user(),
        };
        self.store.get_or_init(open).as_ref().map_err(Clone::clone)
    }
}

/// Every method as it is, on the store behind.
macro_rules! pass_on {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty;)*) => {
        impl Store for LazyStore {
            $(fn $name(&self $(, $argument: $kind)*) -> $result {
                self.store()?.$name($($argument),*)
            })*
        }
    };
}

pass_on! {
    fn grant(&self, terms: &Terms, now: Timestamp) -> Result<GrantId, StoreError>;
    fn grants(&self) -> Result<Vec<Grant>, StoreError>;
    fn revoke(&self, id: GrantId) -> Result<Option<Grant>, StoreError>;
    fn consume(&self, demand: &Demand, now: Timestamp) -> Result<Option<Vec<GrantId>>, StoreError>;
    fn open(&self, question: &Question) -> Result<(), StoreError>;
    fn settle(&self, id: &ApprovalId, outcome: &Outcome) -> Result<SettleResult, StoreError>;
    fn entry(&self, id: &ApprovalId) -> Result<Option<Entry>, StoreError>;
    fn pending(&self) -> Result<Vec<Question>, StoreError>;
    fn unreadable(&self, now: Timestamp) -> Result<Vec<Unreadable>, StoreError>;
    fn remembered(&self, session: &str) -> Result<Vec<Remembered>, StoreError>;
    fn remember(&self, session: &str, what: &Remembered) -> Result<(), StoreError>;
    fn denials(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError>;
    fn add_denial(&self, session: &str, key: &ApprovalKey) -> Result<u32, StoreError>;
    fn automatic(&self, session: &str) -> Result<Automatic, StoreError>;
    fn set_automatic(&self, session: &str, automatic: &Automatic) -> Result<(), StoreError>;
    fn reset_session(&self, session: &str) -> Result<(), StoreError>;
    fn sessions(&self) -> Result<Vec<String>, StoreError>;
}
