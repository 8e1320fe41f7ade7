//! Lists without duplicates, in linear time.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

/// Shorter lists are searched linearly.
pub(crate) const SHORT: usize = 16;

/// An index over a list that only grows, which finds duplicates without a linear search.
///
/// The hash has a random key, so that input cannot force collisions. Members that collide are still distinguished.
#[derive(Default)]
pub(crate) struct Distinct {
    /// Created when the list has become long.
    index: Option<Box<HashIndex>>,
}

#[derive(Default)]
struct HashIndex {
    places: HashMap<u64, usize>,
    random: RandomState,
    /// How much of the list is in it.
    seen: usize,
}

impl Distinct {
    /// Whether a member with this key is in the list. Always pass the same list and the same kind of key.
    pub(crate) fn contains<'l, T, K: Hash + Eq>(
        &mut self,
        list: &'l [T],
        key: &K,
        key_of: impl Fn(&'l T) -> K,
    ) -> bool {
        if list.len() < SHORT {
            crate::work::count(list.len());
            return list.iter().any(|other| key_of(other) == *key);
        }
        let index = self.index.get_or_insert_default();
        for (place, other) in list.iter().enumerate().skip(index.seen) {
            crate::work::count(1);
            index.places.entry(index.random.hash_one(key_of(other))).or_insert(place);
        }
        index.seen = list.len();
        crate::work::count(1);
        match index.places.get(&index.random.hash_one(key)).and_then(|place| list.get(*place)) {
            None => false,
            Some(other) if key_of(other) == *key => true,
            // Another member has the same hash.
            Some(_) => {
                crate::work::count(list.len());
                list.iter().any(|other| key_of(other) == *key)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Distinct;

    #[test]
    fn short_and_long_lists_have_no_repeats() {
        let mut distinct = Distinct::default();
        let mut list: Vec<String> = Vec::new();
        for number in (0..100).chain(0..100) {
            let text = format!("{number}");
            let there = distinct.contains(&list, &text.as_str(), String::as_str);
            assert_eq!(there, list.contains(&text), "{number}");
            if !there {
                list.push(text);
            }
        }
        assert_eq!(list.len(), 100);
    }
}
