//! How conditions of rules are compared with what a call would do.
//!
//! Every comparison is three-valued. Unknown facts about a call must never make an allow rule match, and must never hide a
//! deny rule.

pub(crate) mod case;
pub(crate) mod glob;
pub(crate) mod hosts;
pub(crate) mod name;
pub(crate) mod pattern;
pub(crate) mod place;
pub(crate) mod relate;
pub(crate) mod table;
pub(crate) mod tools;
pub(crate) mod words;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::stored::{Flat, Image, ImageReader, ImageWriter, PageRange, Stored, StoredList, flat_struct};

/// Whether a condition holds, from the least to the most certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// It does not hold.
    No,
    /// It may hold; the facts that would decide it are unknown.
    Maybe,
    /// It holds.
    Yes,
}

impl Match {
    /// `Yes` or `No`.
    pub(crate) fn certain(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// Whether a rule permits or restricts. An uncertain match counts for restricting rules and against permitting ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polarity {
    /// The rule is `allow` or `contain`.
    Permits,
    /// The rule is `ask` or `deny`.
    Restricts,
}

flat_struct! {
    /// A piece of the text that all rules of a policy share.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct Text {
        /// The chunk it lies in, and where it starts there.
        start: u32,
        length: u32,
    }
}

/// All text of a compiled policy, in chunks, each of which is a page where it is stored. A text lies in one chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pool {
    chunks: Vec<OnceLock<String>>,
    /// Where chunks come from that are not read yet.
    stored: Option<(Arc<Image>, PageRange)>,
}

/// So many bits of [`Text::start`] say where in the chunk.
const OFFSET_BITS: u32 = 12;

impl Pool {
    /// Adds a text. A pool beyond 4 GB gives empty texts; files are limited to far less.
    pub(crate) fn add(&mut self, text: &str) -> Text {
        let used = self.chunks.last().and_then(OnceLock::get).map_or(usize::MAX, String::len);
        if used.saturating_add(text.len()) >= 1 << OFFSET_BITS {
            self.chunks.push(OnceLock::from(String::new()));
        }
        let chunk = u32::try_from(self.chunks.len().saturating_sub(1)).ok().filter(|chunk| *chunk < 1 << 20);
        let (Some(chunk), Ok(length), Some(last)) =
            (chunk, u32::try_from(text.len()), self.chunks.last_mut().and_then(OnceLock::get_mut))
        else {
            return Text::default();
        };
        let offset = u32::try_from(last.len()).unwrap_or_default();
        last.push_str(text);
        Text { start: chunk << OFFSET_BITS | offset, length }
    }

    pub(crate) fn get(&self, text: Text) -> &str {
        let number = (text.start >> OFFSET_BITS) as usize;
        let start = (text.start & ((1 << OFFSET_BITS) - 1)) as usize;
        let Some(chunk) = self.chunks.get(number) else { return "" };
        let chunk = chunk.get_or_init(|| self.read(number));
        chunk.get(start..start.saturating_add(text.length as usize)).unwrap_or_default()
    }

    fn read(&self, number: usize) -> String {
        let Some((image, section)) = &self.stored else { return String::new() };
        String::from_utf8(image.page(section.first as usize, number)).unwrap_or_else(|_| {
            image.damaged();
            String::new()
        })
    }
}

impl Stored for Pool {
    fn store(&self, writer: &mut ImageWriter) {
        writer.section(writer.next_page(), self.chunks.len());
        for (number, chunk) in self.chunks.iter().enumerate() {
            writer.page(chunk.get_or_init(|| self.read(number)).clone().into_bytes());
        }
    }

    fn open(reader: &mut ImageReader) -> Self {
        let section = reader.section();
        let chunks = (0..section.length).map(|_| OnceLock::new()).collect();
        Self { chunks, stored: Some((Arc::clone(&reader.image), section)) }
    }
}

flat_struct! {
    /// A range of one of the policy's lists.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct Span {
        start: u32,
        end: u32,
    }
}

impl Span {
    /// The range from `start` up to `end`. All empty ranges are equal.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        if start >= end {
            return Self::default();
        }
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { start: number(start), end: number(end) }
    }

    /// The values of the range.
    pub(crate) fn of<T: Flat>(self, list: &StoredList<T>) -> Cow<'_, [T]> {
        list.slice(self)
    }

    pub(crate) fn bounds(self) -> (usize, usize) {
        (self.start as usize, self.end as usize)
    }

    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The index in the list of the item at `offset`.
    pub(crate) fn index(self, offset: usize) -> usize {
        (self.start as usize).saturating_add(offset)
    }
}

/// A hash that stays the same between versions and machines, because compiled policies are stored.
pub(crate) fn hash(family: u8, bytes: &[u8]) -> u64 {
    let mut state = (0xcbf2_9ce4_8422_2325_u64 ^ u64::from(family)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut mix = |word: [u8; 8]| {
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 29;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        mix(*word);
    }
    if !rest.is_empty() {
        let mut word = [0_u8; 8];
        for (to, from) in word.iter_mut().zip(rest) {
            *to = *from;
        }
        mix(word);
    }
    (state ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
