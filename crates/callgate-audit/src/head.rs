//! The head: how far the log was last written, sealed with the key.
//!
//! A chain alone does not tell when its end is cut off. The head does: two slots that are written in turn, so that a
//! torn write leaves the other one, each with a message authentication code. It also says what is known to be on the disk
//! and in which boot it was written, which distinguishes a power failure from tampering.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_model::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{AtPath, AuditError};
use crate::hash::Hash;
use crate::key::AuditKey;

const SLOT: usize = 1024;

/// A point in the current segment: everything before it is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// How many bytes of the segment.
    pub length: u64,
    /// The number of the last entry.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

/// How far the log goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub log: Arc<str>,
    pub generation: u64,
    pub segment: u64,
    pub written: Point,
    pub durable: Point,
    /// When the segment was begun.
    pub begun: Timestamp,
    /// The number and the time of the last checkpoint.
    pub checkpoint: u64,
    pub checkpoint_time: Timestamp,
    /// Which start of the machine this was written in; `None` if that cannot be known.
    pub boot: Option<Arc<str>>,
}

impl Head {
    /// Whether the machine has not rebooted since. Unknown counts as rebooted: then `verify` calls nothing tampering that a
    /// power failure could explain.
    pub(crate) fn same_boot(&self, boot: Option<&str>) -> bool {
        boot.is_some() && self.boot.as_deref() == boot
    }

    fn slot(&self, key: &AuditKey) -> Result<Vec<u8>, AuditError> {
        let mut slot = Vec::with_capacity(SLOT);
        serde_json::to_writer(&mut slot, self)?;
        let seal = key.seal(&slot);
        slot.push(b'\t');
        Hash::from_bytes(seal).write_to(&mut slot);
        if slot.len() >= SLOT {
            return Err(AuditError::Encode(serde::ser::Error::custom("the head is too large")));
        }
        slot.resize(SLOT.saturating_sub(1), b' ');
        slot.push(b'\n');
        Ok(slot)
    }

    fn of_slot(slot: &[u8], key: Option<&AuditKey>) -> Option<Self> {
        let tab = slot.iter().position(|byte| *byte == b'\t')?;
        let (json, rest) = slot.split_at_checked(tab)?;
        let (seal, padding) = rest.get(1..)?.split_at_checked(64)?;
        let (end, spaces) = padding.split_last()?;
        if slot.len() != SLOT || *end != b'\n' || spaces.iter().any(|byte| *byte != b' ') {
            return None;
        }
        let seal = Hash::parse(seal)?;
        if key.is_some_and(|key| !key.seal_holds(json, seal.as_bytes())) {
            return None;
        }
        serde_json::from_slice(json).ok()
    }
}

/// The state of the head file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// There is none.
    Absent,
    /// Both slots are whole; this is the newer one.
    Whole(Head),
    /// One slot is not; this is the other one.
    Half(Head),
    /// Neither slot can be trusted.
    Broken,
}

/// Reads a head file. Without a key the seal is not checked.
pub(crate) fn read(bytes: &[u8], key: Option<&AuditKey>) -> HeadState {
    let (first, second) = bytes.split_at_checked(SLOT).unwrap_or((bytes, &[]));
    match (Head::of_slot(first, key), Head::of_slot(second, key)) {
        (Some(even), Some(odd)) => {
            let in_turn = even.generation.is_multiple_of(2)
                && even.generation.abs_diff(odd.generation) == 1
                && even.log == odd.log;
            match (in_turn, even.generation > odd.generation) {
                (false, _) => HeadState::Broken,
                (true, true) => HeadState::Whole(even),
                (true, false) => HeadState::Whole(odd),
            }
        }
        (Some(head), None) | (None, Some(head)) => HeadState::Half(head),
        (None, None) => HeadState::Broken,
    }
}

/// The open head file. The caller holds the lock.
#[derive(Debug)]
pub(crate) struct HeadFile {
    file: File,
    path: PathBuf,
    /// The contents when they were last read or written here.
    known: Vec<u8>,
}

impl HeadFile {
    pub(crate) fn path_in(directory: &Path) -> PathBuf {
        directory.join("head")
    }

    /// Opens the file if there is one.
    pub(crate) fn open(directory: &Path) -> Result<Option<Self>, AuditError> {
        let path = Self::path_in(directory);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => Ok(Some(HeadFile { file, path, known: Vec::new() })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).at("open", &path),
        }
    }

    /// Makes the file with both slots: it appears whole or not at all.
    pub(crate) fn create(directory: &Path, head: &Head, key: &AuditKey) -> Result<Self, AuditError> {
        let path = Self::path_in(directory);
        let made = directory.join("head.new");
        let even = Head { generation: 0, ..head.clone() };
        let odd = Head { generation: 1, ..head.clone() };
        let mut bytes = even.slot(key)?;
        bytes.extend(odd.slot(key)?);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&made)
            .at("create", &made)?;
        file.write_all(&bytes).at("write", &made)?;
        file.sync_all().at("write", &made)?;
        std::fs::rename(&made, &path).at("create", &path)?;
        Ok(HeadFile { file, path, known: bytes })
    }

    /// The head if the file was changed since it was last read or written here; `None` if not.
    pub(crate) fn changed(&mut self, key: &AuditKey) -> Result<Option<HeadState>, AuditError> {
        let mut bytes = [0_u8; 2 * SLOT];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) if bytes.as_slice() == self.known.as_slice() => Ok(None),
            Ok(()) => {
                self.known = bytes.to_vec();
                Ok(Some(read(&bytes, Some(key))))
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(HeadState::Broken)),
            Err(error) => Err(error).at("read", &self.path),
        }
    }

    /// Lets the next look at the file count as a change, after a write that did not go through.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Writes a head of the next generation.
    pub(crate) fn write(&mut self, head: &mut Head, key: &AuditKey) -> Result<(), AuditError> {
        head.generation = head.generation.saturating_add(1);
        let slot = head.slot(key)?;
        let offset = if head.generation.is_multiple_of(2) { 0 } else { SLOT };
        self.file.write_all_at(&slot, offset as u64).at("write", &self.path)?;
        if let Some(known) = self.known.get_mut(offset..offset.saturating_add(SLOT)) {
            known.copy_from_slice(&slot);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let point = Point { length: 10, seq: 2, hash: Hash::of(b"x") };
        Head {
            log: "a".repeat(32).into(),
            generation: 0,
            segment: 1,
            written: point,
            durable: point,
            begun: Timestamp::from_milliseconds(5),
            checkpoint: 0,
            checkpoint_time: Timestamp::from_milliseconds(5),
            boot: Some("b".repeat(36).into()),
        }
    }

    #[test]
    fn the_newer_slot_counts_and_any_changed_byte_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let key = AuditKey::from_secret(&[7; 32]);
        let mut file = HeadFile::create(directory.path(), &head(), &key).unwrap();
        let mut head = head();
        head.generation = 1;
        for seq in 3..20 {
            head.written.seq = seq;
            file.write(&mut head, &key).unwrap();
            assert_eq!(file.changed(&key).unwrap(), None);
            let bytes = std::fs::read(HeadFile::path_in(directory.path())).unwrap();
            assert_eq!(read(&bytes, Some(&key)), HeadState::Whole(head.clone()));
        }
        let bytes = std::fs::read(HeadFile::path_in(directory.path())).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            assert!(!matches!(read(&changed, Some(&key)), HeadState::Whole(_)), "byte {index}");
        }
        assert_eq!(read(&bytes[..SLOT], Some(&key)), HeadState::Half(read_half(&bytes, &key)));
        assert_eq!(read(&bytes, Some(&AuditKey::from_secret(&[8; 32]))), HeadState::Broken);
        assert_eq!(read(&[], Some(&key)), HeadState::Broken);
    }

    fn read_half(bytes: &[u8], key: &AuditKey) -> Head {
        Head::of_slot(&bytes[..SLOT], Some(key)).unwrap()
    }

    #[test]
    fn an_old_slot_in_place_of_the_newer_one_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let key = AuditKey::from_secret(&[7; 32]);
        let mut file = HeadFile::create(directory.path(), &head(), &key).unwrap();
        let mut head = head();
        head.generation = 1;
        file.write(&mut head, &key).unwrap();
        let old = std::fs::read(HeadFile::path_in(directory.path())).unwrap();
        for _ in 0..3 {
            file.write(&mut head, &key).unwrap();
        }
        let new = std::fs::read(HeadFile::path_in(directory.path())).unwrap();
        let mixed = [&new[..SLOT], &old[SLOT..]].concat();
        assert_eq!(read(&mixed, Some(&key)), HeadState::Broken);
        let swapped = [&new[SLOT..], &new[..SLOT]].concat();
        assert_eq!(read(&swapped, Some(&key)), HeadState::Broken);
    }
}
