//! How conditions of rules are compared with what a call would do.
//!
//! Every comparison is three-valued. What is unknown about a call must never let an allow rule fire, and must never keep a
//! deny rule from being noticed.

pub(crate) mod glob;
pub(crate) mod hosts;
pub(crate) mod name;
pub(crate) mod pattern;
pub(crate) mod place;
pub(crate) mod table;
pub(crate) mod tools;
pub(crate) mod words;

use serde::{Deserialize, Serialize};

/// Whether a condition holds, from the least to the most certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It does not hold.
    No,
    /// It may hold; what would decide it is not known.
    Maybe,
    /// It holds.
    Yes,
}

impl Fit {
    /// Certain or not at all.
    pub(crate) fn certain(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// From which side a condition is looked at: doubt counts for restricting rules and against permitting ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The rule is `allow` or `contain`.
    Permits,
    /// The rule is `ask` or `deny`.
    Restricts,
}

/// A piece of the text that all rules of a policy share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Text {
    start: u32,
    length: u32,
}

/// All text of a compiled policy, in one piece.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Pool(String);

impl Pool {
    /// Adds a text. A pool beyond 4 GB gives empty texts; files are limited to far less.
    pub(crate) fn add(&mut self, text: &str) -> Text {
        let (Ok(start), Ok(length)) = (u32::try_from(self.0.len()), u32::try_from(text.len())) else {
            return Text::default();
        };
        self.0.push_str(text);
        Text { start, length }
    }

    pub(crate) fn get(&self, text: Text) -> &str {
        let start = text.start as usize;
        self.0.get(start..start.saturating_add(text.length as usize)).unwrap_or_default()
    }
}

/// A range of one of the policy's lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Appends `items` to `list` and says where they are.
    pub(crate) fn append<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Self {
        let start = u32::try_from(list.len()).unwrap_or(u32::MAX);
        list.extend(items);
        Self { start, end: u32::try_from(list.len()).unwrap_or(u32::MAX) }
    }

    pub(crate) fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.start as usize..self.end as usize).unwrap_or_default()
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
    for chunk in bytes.chunks(8) {
        let mut word = [0_u8; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 29;
    }
    (state ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
