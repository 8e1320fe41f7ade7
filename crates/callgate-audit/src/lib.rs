//! The audit log: what was tried, what was decided and by whom, what ran, with proof that nothing is missing.
//!
//! JSON Lines, one entry a line, each with the hash of the one before ([`entry`], [`mod@line`]). Several processes append to one
//! [`Log`]; a sealed head says where it ends, signed checkpoints say so to others ([`checkpoint`], [`deliver`]), and
//! [`verify`] finds every change, removal, insertion, reordering and truncation, and distinguishes them from traces of a crash.
//!
//! ```
//! use callgate::call::Call;
//! use callgate::gate::Gate;
//! use callgate::policy::Policy;
//! use callgate_audit::{AuditSink, Log, LogSettings, read::Entries, verify};
//!
//! let directory = tempfile::tempdir()?;
//! let settings = LogSettings::at(directory.path().join("audit"));
//! let sink = AuditSink::new(Log::open(settings.clone())?);
//! let gate = Gate::builder().policy(Policy::bundled("standard")?).events(sink).build();
//! let _ = gate.check(Call::new("Bash", serde_json::json!({"command": "cat ~/.ssh/id_rsa"})).directory("/tmp"));
//!
//! let kinds: Vec<&str> = Entries::open(&settings.directory)?
//!     .map(|line| line.map(|line| line.entry.record.body.kind()))
//!     .collect::<Result<_, _>>()?;
//! assert_eq!(kinds, ["segment", "tool_attempt", "security_violation", "refused"]);
//! assert!(verify::verify(&verify::VerifyOptions::of(&settings))?.is_intact());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not protect against
//!
//! Whoever has the key and may write the files can rewrite the log; only checkpoints that were sent elsewhere tell. Whoever
//! may write the files without the key can delete the whole log, or roll log and head back together to an earlier moment:
//! again only checkpoints sent elsewhere tell. Entries that are added after the last seal look like those of a killed writer;
//! `verify` reports them, but cannot say which it was.

pub mod checkpoint;
pub mod deliver;
pub mod entry;
mod error;
pub mod export;
pub mod feed;
mod hash;
mod head;
pub mod key;
pub mod learn;
pub mod line;
mod log;
mod observed;
pub mod read;
mod segment;
mod settings;
mod sink;
#[cfg(feature = "tracing")]
pub mod spans;
pub mod verify;

pub use callgate::policy::{ParseSyncModeError, SyncMode};
pub use error::AuditError;
pub use hash::Hash;
pub use log::{Log, Receipt};
pub use observed::{ObservedAnswer, ObservedEnd};
pub use settings::LogSettings;
pub use sink::AuditSink;

/// What writes: the program's name and version.
pub(crate) const WRITER: &str = concat!("callgate ", env!("CARGO_PKG_VERSION"));
