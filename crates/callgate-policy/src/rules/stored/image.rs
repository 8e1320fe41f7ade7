//! The file that a compiled policy lies in: a head, and pages that are read and checked when they are first needed.
//!
//! Judging a call touches a few pages, however many rules there are. A page whose checksum is wrong gives nothing and marks the
//! image as damaged, and whoever judged with a damaged image must refuse.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::rules::matching::hash;

/// How many bytes a page has, at most. Only a text that is longer has a page of its own, as long as it needs.
pub(crate) const PAGE: usize = 4096;
const MAGIC: &[u8; 16] = b"callgate policy\n";
const SUM: usize = 8;
const SUM_FAMILY: u8 = 255;
/// Offset, length and checksum of a page.
const ENTRY: usize = 8 + SUM;
/// Magic, length of the head, number of pages, checksum of what lies before the pages.
const FRONT: usize = MAGIC.len() + 8 + SUM;
/// A head or table beyond this is not one of ours.
const MAXIMUM_HEAD: usize = 64 << 20;
/// So much is read at once: most policies' head and page table.
const FIRST_READ: usize = 12 << 10;

/// Where a list lies: its first page, and how many values it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub first: u32,
    pub length: u32,
}

/// A file that was opened.
#[derive(Debug)]
pub(crate) struct Image {
    file: File,
    /// The beginning of the file: its front, head and page table, and what was read with them.
    front: Vec<u8>,
    /// Where in it the page table begins.
    table: usize,
    /// Where that ends.
    end: usize,
    damaged: AtomicBool,
}

/// Collects the pages of a file.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pages: Vec<Vec<u8>>,
}

/// A checksum against accidents. It keeps nobody out: who can write the file could also write a checksum that fits, or the policy.
fn sum(bytes: &[u8]) -> [u8; SUM] {
    hash(SUM_FAMILY, bytes).to_le_bytes()
}

impl Writer {
    /// The number that the next page gets.
    pub(crate) fn next_page(&self) -> u32 {
        u32::try_from(self.pages.len()).unwrap_or(u32::MAX)
    }

    /// Adds a page.
    pub(crate) fn page(&mut self, bytes: Vec<u8>) {
        self.pages.push(bytes);
    }

    /// The whole file.
    pub(crate) fn finish(self, head: &[u8]) -> Vec<u8> {
        let mut table = Vec::with_capacity(self.pages.len().saturating_mul(ENTRY));
        let mut offset = FRONT.saturating_add(head.len()).saturating_add(self.pages.len().saturating_mul(ENTRY));
        for page in &self.pages {
            table.extend_from_slice(&u32::try_from(offset).unwrap_or(u32::MAX).to_le_bytes());
            table.extend_from_slice(&u32::try_from(page.len()).unwrap_or(u32::MAX).to_le_bytes());
            table.extend_from_slice(&sum(page));
            offset = offset.saturating_add(page.len());
        }
        let mut bytes = Vec::with_capacity(offset);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&self.next_page().to_le_bytes());
        let front = [head, &table].concat();
        bytes.extend_from_slice(&sum(&front));
        bytes.extend_from_slice(&front);
        for page in &self.pages {
            bytes.extend_from_slice(page);
        }
        bytes
    }
}

impl Image {
    /// Opens a file and checks its head. `None` if it is not one of ours, or not whole.
    pub(crate) fn open(file: File) -> Option<Self> {
        let mut front = vec![0; FIRST_READ];
        let read = file.read_at(&mut front, 0).ok()?;
        front.truncate(read);
        let mut rest = front.strip_prefix(MAGIC)?;
        let table = FRONT.checked_add(number(&mut rest)?)?;
        let end = table.checked_add(number(&mut rest)?.checked_mul(ENTRY)?).filter(|end| *end <= MAXIMUM_HEAD)?;
        let (expected, _) = rest.split_first_chunk::<SUM>()?;
        let expected = *expected;
        if front.len() < end {
            front.resize(end, 0);
            file.read_exact_at(&mut front, 0).ok()?;
        }
        (sum(front.get(FRONT..end)?) == expected).then_some(Self {
            file,
            front,
            table,
            end,
            damaged: AtomicBool::new(false),
        })
    }

    /// What stands before the pages.
    pub(crate) fn head(&self) -> &[u8] {
        self.front.get(FRONT..self.table).unwrap_or_default()
    }

    /// The bytes of page `number` of a section; none if they are not as they were written.
    pub(crate) fn page(&self, first: usize, number: usize) -> Vec<u8> {
        self.read(first.saturating_add(number)).unwrap_or_else(|| {
            self.damaged();
            Vec::new()
        })
    }

    fn read(&self, page: usize) -> Option<Vec<u8>> {
        let start = page.checked_mul(ENTRY)?;
        let table = self.front.get(self.table..self.end)?;
        let mut entry = table.get(start..start.checked_add(ENTRY)?)?;
        let offset = number(&mut entry)?;
        let length = number(&mut entry)?;
        let bytes = match self.front.get(offset..offset.checked_add(length)?) {
            Some(bytes) => bytes.to_vec(),
            None if length > MAXIMUM_HEAD => return None,
            None => {
                let mut bytes = vec![0; length];
                self.file.read_exact_at(&mut bytes, offset as u64).ok()?;
                bytes
            }
        };
        (sum(&bytes) == entry).then_some(bytes)
    }

    /// Something in the file is not as it was written.
    pub(crate) fn damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// Whether anything that was read so far was damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }
}

fn number(from: &mut &[u8]) -> Option<usize> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}
