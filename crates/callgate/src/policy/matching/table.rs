//! A table from hashes to rule or glob numbers: flat, so that it can be stored, and constant in time.
//!
//! Two keys with the same hash share an entry. That costs a comparison and nothing else, because whoever looks something
//! up compares it afterwards.

use serde::{Deserialize, Serialize};

use super::Span;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Slot {
    hash: u64,
    values: Span,
}

/// The table. Build it once with [`Table::new`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Table {
    /// A power of two, at most half full, so that a search ends.
    slots: Vec<Slot>,
    values: Vec<u32>,
}

impl Table {
    /// Builds the table; the values of one key keep their order.
    pub(crate) fn new(mut entries: Vec<(u64, u32)>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let mut table = Self {
            slots: vec![Slot::default(); entries.len().saturating_mul(2).next_power_of_two().max(2)],
            values: Vec::with_capacity(entries.len()),
        };
        for group in entries.chunk_by(|left, right| left.0 == right.0) {
            let Some((hash, _)) = group.first() else { continue };
            let values = Span::append(&mut table.values, group.iter().map(|(_, value)| *value));
            let place = table.find(*hash);
            if let Some(slot) = table.slots.get_mut(place) {
                *slot = Slot { hash: *hash, values };
            }
        }
        table
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The slot that holds `hash`, or the free one where it would be.
    fn find(&self, hash: u64) -> usize {
        let mask = self.slots.len().saturating_sub(1);
        // The upper bits are the better mixed ones.
        let mut index = (hash >> 32) as usize & mask;
        while let Some(slot) = self.slots.get(index) {
            if slot.hash == hash || slot.values.is_empty() {
                break;
            }
            index = index.wrapping_add(1) & mask;
        }
        index
    }

    /// The values of a key.
    pub(crate) fn get(&self, hash: u64) -> &[u32] {
        match self.slots.get(self.find(hash)) {
            Some(slot) if slot.hash == hash => slot.values.of(&self.values),
            _ => &[],
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
        assert_eq!(table.get(super::super::hash(1, &7_u32.to_le_bytes())), [7, 307, 607, 907]);
        assert!(table.get(super::super::hash(2, &7_u32.to_le_bytes())).is_empty());
        assert!(Table::default().get(5).is_empty());
    }
}
