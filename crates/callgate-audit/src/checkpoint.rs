//! Signed statements: how far the log goes, and what was taken out on purpose.

use serde::{Deserialize, Serialize};

use crate::entry::{Body, Checkpoint, Entry, Time, Tombstone};
use crate::error::AuditError;
use crate::hash::Hash;
use crate::key::{Key, signature_holds};
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
    pub time: Time,
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
    time: Time,
}

impl SignedCheckpoint {
    pub(crate) fn sign(key: &Key, log: &str, seq: u64, prev: Hash, time: Time) -> Result<Self, AuditError> {
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

    /// What of it stands in the log.
    pub(crate) fn body(&self) -> Body {
        let SignedCheckpoint { log, key, signature, .. } = self.clone();
        Body::Checkpoint(Checkpoint { log, key, signature })
    }

    /// The checkpoint that an entry is.
    pub fn of_entry(entry: &Entry) -> Option<Self> {
        match &entry.record.body {
            Body::Checkpoint(Checkpoint { log, key, signature }) => Some(SignedCheckpoint {
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

#[derive(Serialize)]
struct TombstoneStatement<'a> {
    log: &'a str,
    seq: u64,
    prev: Hash,
    time: Time,
    original: Hash,
    reason: &'a str,
    by: &'a str,
}

/// What a tombstone stands for.
pub(crate) struct Grave<'a> {
    pub log: &'a str,
    pub seq: u64,
    pub prev: Hash,
    pub time: Time,
    pub original: Hash,
    pub reason: &'a str,
    pub by: &'a str,
}

impl Grave<'_> {
    fn message(&self) -> Result<Vec<u8>, AuditError> {
        let Grave { log, seq, prev, time, original, reason, by } = *self;
        statement(TOMBSTONE, &TombstoneStatement { log, seq, prev, time, original, reason, by })
    }

    pub(crate) fn sign(&self, key: &Key) -> Result<Tombstone, AuditError> {
        Ok(Tombstone {
            log: self.log.to_owned(),
            original: self.original,
            reason: self.reason.to_owned(),
            by: self.by.to_owned(),
            key: key.public(),
            signature: key.sign(&self.message()?),
        })
    }
}

/// Whether a tombstone in the log is signed by the key it names.
pub(crate) fn tombstone_holds(entry: &Entry, tombstone: &Tombstone) -> bool {
    let grave = Grave {
        log: &tombstone.log,
        seq: entry.seq,
        prev: entry.prev,
        time: entry.time,
        original: tombstone.original,
        reason: &tombstone.reason,
        by: &tombstone.by,
    };
    grave.message().is_ok_and(|message| signature_holds(&tombstone.key, &message, &tombstone.signature))
}
