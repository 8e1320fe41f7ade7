//! A table from hashes to rule or glob numbers: flat, so that it can be stored, and constant in time.
//!
//! Keys with the same hash share an entry. That costs only a comparison, because callers compare what they find.

use std::borrow::Cow;

use super::Span;
use crate::rules::stored::{StoredList, flat_struct, stored_struct};

flat_struct! {
    #[derive(Debug, Clone, Copy, Default)]
    struct Slot {
        hash: u64,
        values: Span,
    }
}

stored_struct! {
    /// The table. Build it once with [`Table::new`].
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Table {
        /// A Bloom filter: each key sets three bits of one word. Most keys that are looked up are in no rule.
        filter: StoredList<u64>,
        /// A power of two, at most half full, so that a search ends.
        slots: StoredList<Slot>,
        values: StoredList<u32>,
    }
}

/// How many words of the filter there are for each key: sixteen bits let one key in fifty pass that is not there.
const KEYS_PER_WORD: usize = 4;

/// The word of the filter that a key sets bits in, and which.
fn bits(hash: u64, words: usize) -> (usize, u64) {
    let word = (hash >> 40) as usize & words.saturating_sub(1);
    (word, 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63))
}

/// The slot of `hash`, or the free slot where it would be.
fn find(hash: u64, length: usize, slot: impl Fn(usize) -> Option<Slot>) -> usize {
    let mask = length.saturating_sub(1);
    // The upper bits are the better mixed ones.
    let mut index = (hash >> 32) as usize & mask;
    // A damaged table may be full.
    for _ in 0..length {
        match slot(index) {
            Some(slot) if slot.hash != hash && !slot.values.is_empty() => index = index.wrapping_add(1) & mask,
            _ => break,
        }
    }
    index
}

impl Table {
    /// Builds the table; the values of one key keep their order.
    pub(crate) fn new(mut entries: Vec<(u64, u32)>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let keys = entries.chunk_by(|left, right| left.0 == right.0).count();
        let mut slots = vec![Slot::default(); keys.saturating_mul(2).next_power_of_two().max(2)];
        let mut values = StoredList::default();
        let mut filter = vec![0_u64; keys.div_ceil(KEYS_PER_WORD).next_power_of_two()];
        for group in entries.chunk_by(|left, right| left.0 == right.0) {
            let Some((hash, _)) = group.first() else { continue };
            let values = values.append(group.iter().map(|(_, value)| *value));
            let (word, mask) = bits(*hash, filter.len());
            if let Some(word) = filter.get_mut(word) {
                *word |= mask;
            }
            let place = find(*hash, slots.len(), |index| slots.get(index).copied());
            if let Some(slot) = slots.get_mut(place) {
                *slot = Slot { hash: *hash, values };
            }
        }
        Self { filter: filter.into(), slots: slots.into(), values }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of a key.
    pub(crate) fn get(&self, hash: u64) -> Cow<'_, [u32]> {
        let (word, mask) = bits(hash, self.filter.len());
        if self.filter.get(word).is_none_or(|word| word & mask != mask) {
            return Cow::Borrowed(&[]);
        }
        match self.slots.get(find(hash, self.slots.len(), |index| self.slots.get(index))) {
            Some(slot) if slot.hash == hash => slot.values.of(&self.values),
            _ => Cow::Borrowed(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out() {
        let entries: Vec<(u64, u32)> =
            (0..1000_u32).map(|n| (super::super::hash(1, &(n % 300).to_le_bytes()), n)).collect();
        let table = Table::new(entries);
        assert_eq!(*table.get(super::super::hash(1, &7_u32.to_le_bytes())), [7, 307, 607, 907]);
        assert!(table.get(super::super::hash(2, &7_u32.to_le_bytes())).is_empty());
        assert!(Table::default().get(5).is_empty());
        for number in 0..300_u32 {
            assert!(!table.get(super::super::hash(1, &number.to_le_bytes())).is_empty(), "{number}");
        }
        let passing = (1000..11_000_u32).map(|number| super::super::hash(1, &number.to_le_bytes())).filter(|hash| {
            let (word, mask) = bits(*hash, table.filter.len());
            table.filter.get(word).is_some_and(|word| word & mask == mask)
        });
        assert!(passing.count() < 500, "the filter keeps most of what is not there out");
    }
}
