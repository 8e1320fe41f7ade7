//! Grants, approvals and session decisions that outlive a process and are shared by processes.
//!
//! [`SqliteStore`] keeps them in one file of the user, outside every workspace, so that an agent cannot edit what it is
//! allowed. What a method reports as done is on the disk: a grant that was spent stays spent, whatever is killed when.
//!
//! ```
//! use callgate::clock::Timestamp;
//! use callgate::grant::{Demand, Terms};
//! use callgate::store::Store;
//! use callgate_store::SqliteStore;
//!
//! # let directory = tempfile::tempdir()?;
//! let store = SqliteStore::open(&directory.path().join("store.sqlite"))?;
//! store.grant(&Terms::for_target("email_send", "a@x.com"), Timestamp::now())?;
//! let demand = Demand::new("email_send", ["a@x.com"]);
//! assert!(store.consume(&demand, Timestamp::now())?.is_some());
//! assert!(store.consume(&demand, Timestamp::now())?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! It does not protect the file from its owner: a process of the same user can change it. The gate's own policy keeps agents
//! away from it, and a sandbox holds them to that.

mod group;
mod open;
mod permits;
mod sqlite;
mod statements;

pub use open::default_path;
pub use permits::{PermitError, PermitState, PermitStore, PermitToken};
pub use sqlite::SqliteStore;
