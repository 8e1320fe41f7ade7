//! Signed statements: checkpoints of the log and tombstones of redacted entries.

use callgate_model::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entry::{Checkpoint, EntryBody, LogEntry, Tombstone};
use crate::error::AuditError;
use crate::hash::Hash;
use crate::key::{AuditKey, signature_holds};
use crate::line::statement;

const CHECKPOINT: &str = "callgate audit checkpoint 1";
const TOMBSTONE: &str = "callgate audit tombstone 1";

/// A checkpoint as it is sent elsewhere: the log `log` had an entry before `seq`, and its hash was `prev`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedCheckpoint {
    /// The log's id.
    pub log: String,
    /// The number of the checkpoint.
    pub seq: u64,
    /// The hash of the entry before it, and so of everything before.
    pub prev: Hash,
    /// When it was signed.
    #[serde(with = "callgate_model::clock::rfc3339")]
    pub time: Timestamp,
    /// The public key, hexadecimal.
    pub key: String,
    /// The signature, hexadecimal.
    pub signature: String,
}

#[derive(Serialize)]
struct CheckpointStatement<'a> {
    log: &'a str,
    seq: u64,
    prev: Hash,
    #[serde(with = "callgate_model::clock::rfc3339")]
    time: Timestamp,
}

impl SignedCheckpoint {
    pub(crate) fn sign(key: &AuditKey, log: &str, seq: u64, prev: Hash, time: Timestamp) -> Result<Self, AuditError> {
        let message = statement(CHECKPOINT, &CheckpointStatement { log, seq, prev, time })?;
        let signature = key.sign(&message);
        Ok(SignedCheckpoint { log: log.to_owned(), seq, prev, time, key: key.public(), signature })
    }

    /// Whether the signature is that of the key it names.
    pub fn holds(&self) -> bool {
        let SignedCheckpoint { log, seq, prev, time, key, signature } = self;
        statement(CHECKPOINT, &CheckpointStatement { log, seq: *seq, prev: *prev, time: *time })
            .is_ok_and(|message| signature_holds(key, &message, signature))
    }

    /// The entry body of the checkpoint.
    pub(crate) fn body(&self) -> EntryBody {
        let SignedCheckpoint { log, key, signature, .. } = self.clone();
        EntryBody::Checkpoint(Checkpoint { log, key, signature })
    }

    /// The checkpoint that an entry is.
    pub fn of_entry(entry: &LogEntry) -> Option<Self> {
        match &entry.record.body {
            EntryBody::Checkpoint(Checkpoint { log, key, signature }) => Some(SignedCheckpoint {
                log: log.clone(),
                seq: entry.seq,
                prev: entry.prev,
                time: entry.time,
                key: key.clone(),
                signature: signature.clone(),
            }),
            _ => None,
        }
    }
}

/// The statement that a tombstone signs. The order of the fields is part of the format.
#[derive(Serialize)]
pub(crate) struct TombstoneStatement<'a> {
    pub log: &'a str,
    pub seq: u64,
    pub prev: Hash,
    #[serde(with = "callgate_model::clock::rfc3339")]
    pub time: Timestamp,
    pub original: Hash,
    pub reason: &'a str,
    pub by: &'a str,
}

impl TombstoneStatement<'_> {
    pub(crate) fn sign(&self, key: &AuditKey) -> Result<Tombstone, AuditError> {
        Ok(Tombstone {
            log: self.log.to_owned(),
            original: self.original,
            reason: self.reason.to_owned(),
            by: self.by.to_owned(),
            key: key.public(),
            signature: key.sign(&statement(TOMBSTONE, self)?),
        })
    }
}

/// Whether a tombstone in the log is signed by the key it names.
pub(crate) fn tombstone_holds(entry: &LogEntry, tombstone: &Tombstone) -> bool {
    let Tombstone { log, original, reason, by, key, signature } = tombstone;
    let LogEntry { seq, prev, time, .. } = *entry;
    let signed = TombstoneStatement { log, seq, prev, time, original: *original, reason, by };
    statement(TOMBSTONE, &signed).is_ok_and(|message| signature_holds(key, &message, signature))
}
