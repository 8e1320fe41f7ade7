//! A short list that does not allocate.

use std::ops::Deref;

/// At least one and at most `N` members.
#[derive(Clone, Copy)]
pub(in crate::programs) struct Short<T, const N: usize> {
    things: [T; N],
    count: usize,
}

impl<T: Copy, const N: usize> Short<T, N> {
    /// A list with one member, which also fills the unused places.
    pub(in crate::programs) fn new(first: T) -> Self {
        Short { things: [first; N], count: 1 }
    }

    /// Adds a member. Returns whether there was room.
    pub(in crate::programs) fn push(&mut self, thing: T) -> bool {
        match self.things.get_mut(self.count) {
            Some(place) => {
                *place = thing;
                self.count = self.count.saturating_add(1);
                true
            }
            None => false,
        }
    }
}

impl<T, const N: usize> Deref for Short<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.things.get(..self.count).unwrap_or(&self.things)
    }
}

#[cfg(test)]
mod tests {
    use super::Short;

    #[test]
    fn a_full_list_takes_nothing_more() {
        let mut list: Short<u8, 3> = Short::new(1);
        assert_eq!(*list, [1]);
        assert!(list.push(2) && list.push(3));
        assert!(!list.push(4));
        assert_eq!(*list, [1, 2, 3]);
    }
}
