//! Finding the options of a level by their names.

use super::names::hash;
use super::table::{Level, OptionForm, RoleKind};
use std::borrow::Borrow;

/// Where the options of one level are: a hash table of their names, made when the level is read.
///
/// Its slots hold the places of an option and of its name, each plus one; zero is free. At least half of them are free.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OptionIndex {
    slots: Vec<(u16, u16)>,
    /// The options with a name that stands for the front of a word.
    fronts: Vec<u16>,
    /// An operand or a value is a destination, into which others are copied.
    pub(super) copies: bool,
    /// The value of an option is a suffix for the old contents of files.
    pub(super) backs_up: bool,
}

impl OptionIndex {
    /// Indexes the options of a level. What does not fit is not found, which costs a question.
    pub(super) fn new(level: &Level) -> OptionIndex {
        let options = level.options.as_slice();
        let copies = level.args.iter().flat_map(|line| &line.then).any(|slot| slot.role.kind.is_destination())
            || level.values.iter().any(|(_, line)| line.then.kind.is_destination())
            || level.stdin.iter().any(|line| line.then.kind.is_destination());
        let count: usize = options.iter().map(|form| form.names.len()).sum();
        let size = count.saturating_mul(2).next_power_of_two();
        let mut index = OptionIndex { slots: vec![(0, 0); size], fronts: Vec::new(), copies, backs_up: false };
        for (place, form) in (1..=u16::MAX).zip(options) {
            if form.fronts {
                index.fronts.push(place);
            }
            let roles = form.values.roles();
            index.copies |= roles.iter().any(|role| role.kind.is_destination());
            index.backs_up |= roles.iter().any(|role| role.kind == RoleKind::BackupSuffix);
            for (number, name) in (1..=u16::MAX).zip(&form.names) {
                let mut at = hash(name) & size.saturating_sub(1);
                while let Some(slot) = index.slots.get_mut(at) {
                    if *slot == (0, 0) {
                        *slot = (place, number);
                        break;
                    }
                    at = at.wrapping_add(1) & size.saturating_sub(1);
                }
            }
        }
        index
    }

    /// The option of this name, and the name as the table has it.
    pub(super) fn find<'t>(&self, options: &'t [OptionForm], name: &str) -> Option<(&'t OptionForm, &'t str)> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash(name) & mask;
        // A slot is free somewhere, so this ends.
        loop {
            let (place, number) = *self.slots.get(at)?;
            let form = options.get(usize::from(place.checked_sub(1)?))?;
            let found: &'t str = form.names.get(usize::from(number.checked_sub(1)?))?.borrow();
            if found == name {
                return Some((form, found));
            }
            at = at.wrapping_add(1) & mask;
        }
    }

    /// The options with a name that stands for the front of a word.
    pub(super) fn fronts<'t>(&self, options: &'t [OptionForm]) -> impl Iterator<Item = &'t OptionForm> {
        self.fronts.iter().filter_map(|place| options.get(usize::from(place.checked_sub(1)?)))
    }
}

impl RoleKind {
    /// Something is copied or moved there.
    pub(super) fn is_destination(&self) -> bool {
        matches!(self, RoleKind::WriteInto | RoleKind::RemoteWrite)
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::Programs;

    #[test]
    fn options_are_found_by_each_of_its_names() {
        let git = Programs::bundled().get("git").expect("a table for git");
        let levels = std::iter::once(&git.level).chain(git.level.subs.iter().map(|sub| &*sub.level));
        let mut found = 0;
        for level in levels {
            for form in &level.options {
                for name in &form.names {
                    let (option, same) = level.index.find(&level.options, name).expect("an option");
                    assert!(std::ptr::eq(option, form) && same == name, "{name}");
                    found += 1;
                }
            }
            assert!(level.index.find(&level.options, "--no-such-option").is_none());
            assert!(level.index.find(&level.options, "").is_none());
        }
        assert!(found > 1000, "{found}");
    }
}
