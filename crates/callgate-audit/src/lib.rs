//! The audit log.

pub mod checkpoint;
pub mod deliver;
pub mod entry;
mod error;
mod hash;
mod head;
pub mod key;
pub mod line;
mod log;
mod segment;
mod settings;
pub mod verify;

pub use error::AuditError;
pub use hash::Hash;
pub use log::{Log, Receipt};
pub use settings::{NoSync, Settings, Sync};
