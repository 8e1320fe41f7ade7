//! The file of a compiled policy: a head, and pages that are read and checked when they are first needed.
//!
//! Judging a call reads a few pages, however many rules there are. A page with a wrong checksum is treated as empty and marks
//! the image as damaged; calls that were judged with a damaged image must be refused.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::rules::matching::hash;

/// The largest size of a page. Only a longer text has a larger page of its own.
pub(crate) const PAGE: usize = 4096;
const MAGIC: &[u8; 16] = b"callgate policy\n";
const SUM: usize = 8;
const SUM_FAMILY: u8 = 255;
/// Offset, length and checksum of a page.
const ENTRY: usize = 8 + SUM;
/// Magic, length of the head, number of pages, checksum of what lies before the pages.
const FRONT: usize = MAGIC.len() + 8 + SUM;
/// The limit for the head and the page table together.
const MAXIMUM_HEAD: usize = 64 << 20;
/// The size of the first read, which covers the head and page table of most policies.
const FIRST_READ: usize = 12 << 10;

/// Where a list is stored: its first page and its number of values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageRange {
    pub first: u32,
    pub length: u32,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Image {
    file: File,
    /// The beginning of the file: its front, head and page table, and what was read with them.
    front: Vec<u8>,
    /// The offset of the page table in `front`.
    table: usize,
    /// The end of the page table.
    end: usize,
    damaged: AtomicBool,
}

/// Collects the pages of a file.
#[derive(Debug, Default)]
pub(crate) struct ImageWriter {
    pages: Vec<Vec<u8>>,
    /// The page ranges of the parts of the policy, in the order in which they were stored.
    pub sections: Vec<PageRange>,
}

/// Gives out the sections of a file in the order in which they were stored.
#[derive(Debug)]
pub(crate) struct ImageReader {
    pub image: Arc<Image>,
    sections: std::vec::IntoIter<PageRange>,
}

impl ImageReader {
    pub(crate) fn new(image: Arc<Image>, sections: Vec<PageRange>) -> Self {
        Self { image, sections: sections.into_iter() }
    }

    /// The next section. If there is none, the image is damaged.
    pub(crate) fn section(&mut self) -> PageRange {
        self.sections.next().unwrap_or_else(|| {
            self.image.damaged();
            PageRange::default()
        })
    }
}

/// A checksum against accidental damage. It does not protect against someone who can write the file.
fn sum(bytes: &[u8]) -> [u8; SUM] {
    hash(SUM_FAMILY, bytes).to_le_bytes()
}

impl ImageWriter {
    /// The number that the next page gets.
    pub(crate) fn next_page(&self) -> usize {
        self.pages.len()
    }

    /// Adds a section.
    pub(crate) fn section(&mut self, first: usize, length: usize) {
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.sections.push(PageRange { first: number(first), length: number(length) });
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
        bytes.extend_from_slice(&u32::try_from(self.pages.len()).unwrap_or(u32::MAX).to_le_bytes());
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
    /// Opens a file and checks its head; `None` if the file is invalid or incomplete.
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

    /// The head.
    pub(crate) fn head(&self) -> &[u8] {
        self.front.get(FRONT..self.table).unwrap_or_default()
    }

    /// The bytes of page `number` of a section; empty if they are damaged.
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

    /// Marks the file as damaged.
    pub(crate) fn damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// Whether anything read so far was damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }
}

fn number(from: &mut &[u8]) -> Option<usize> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}
