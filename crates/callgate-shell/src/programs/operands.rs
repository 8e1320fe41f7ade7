//! Which operand has which role.

use super::scan::is_many;
use super::table::{Repeat, Role, RoleKind, Slot};
use crate::word::Word;
use std::borrow::Cow;

/// What the operands of an `args` line are.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Placement<'t> {
    /// Operands and a role each may have, in the order of the operands; one may be there several times.
    roles: Vec<(usize, &'t Role)>,
    /// Where a command starts that takes all that follows.
    pub(super) rest: Option<(usize, &'t Role)>,
    /// What is wrong with them.
    pub(super) doubt: Option<&'static str>,
}

impl<'t> Placement<'t> {
    /// The roles that an operand may have.
    pub(super) fn roles(&self, operand: usize) -> impl Iterator<Item = &'t Role> {
        let from = self.roles.partition_point(|(place, _)| *place < operand);
        let rest = self.roles.get(from..).unwrap_or_default();
        rest.iter().take_while(move |(place, _)| *place == operand).map(|(_, role)| *role)
    }

    /// The operands that may have this role.
    pub(super) fn operands(&self, role: &Role) -> impl Iterator<Item = usize> {
        self.roles.iter().filter(move |(_, other)| std::ptr::eq(*other, role)).map(|(place, _)| *place)
    }
}

/// Gives operands their roles.
pub(super) fn place<'t>(slots: &'t [Slot], operands: &[Cow<'_, Word>]) -> Placement<'t> {
    if slots.iter().any(|slot| slot.role.takes_rest()) {
        return place_command(slots, operands);
    }
    if operands.iter().any(|word| is_many(word)) {
        return place_uncertain(slots, operands);
    }
    let mut placement = Placement::default();
    let required = slots.iter().filter(|slot| matches!(slot.repeat, Repeat::Once | Repeat::Some)).count();
    let mut extra = operands.len().saturating_sub(required);
    if !operands.is_empty() && operands.len() < required {
        placement.doubt = Some("an operand is missing");
    }
    let mut at: usize = 0;
    for slot in slots {
        let count = match slot.repeat {
            Repeat::Once => 1,
            Repeat::Optional => usize::from(extra > 0),
            Repeat::Any => extra,
            Repeat::Some => extra.saturating_add(1),
        };
        extra = match slot.repeat {
            Repeat::Once => extra,
            Repeat::Optional => extra.saturating_sub(count),
            Repeat::Any | Repeat::Some => 0,
        };
        for index in at..at.saturating_add(count).min(operands.len()) {
            placement.roles.push((index, &slot.role));
        }
        at = at.saturating_add(count);
    }
    if at < operands.len() {
        placement.doubt = Some("there are more operands than are known");
    }
    placement
}

/// Words that may be many shift those behind them: each operand gets every role it may have.
fn place_uncertain<'t>(slots: &'t [Slot], operands: &[Cow<'_, Word>]) -> Placement<'t> {
    let mut placement = Placement::default();
    let repeats = |slot: &Slot| matches!(slot.repeat, Repeat::Any | Repeat::Some);
    let certain = |slot: &Slot| slot.repeat == Repeat::Once;
    let matters = |slot: &Slot| slot.role.kind != RoleKind::Text;
    if !slots.iter().any(repeats) && slots.iter().any(matters) {
        placement.doubt = Some("there may be more operands than are known");
    }
    // How many words before and behind stand for exactly one.
    let singles = operands.iter().filter(|word| !is_many(word)).count();
    let mut least_before = 0usize;
    for (index, word) in operands.iter().enumerate() {
        crate::work::count(1);
        let single = !is_many(word);
        let before = index;
        let after = operands.len().saturating_sub(index).saturating_sub(1);
        let least_after = singles.saturating_sub(least_before).saturating_sub(usize::from(single));
        let sure_before = least_before == before;
        let sure_after = least_after == after;
        least_before = least_before.saturating_add(usize::from(single));
        let least_before = least_before.saturating_sub(usize::from(single));
        if single {
            let front = slots.get(..=index).unwrap_or_default();
            if sure_before && !front.is_empty() && front.iter().all(certain) {
                placement.roles.extend(front.last().map(|slot| (index, &slot.role)));
                continue;
            }
            let back = slots.len().checked_sub(after.saturating_add(1));
            let back = back.and_then(|from| slots.get(from..)).unwrap_or_default();
            if sure_after && !back.is_empty() && back.iter().all(certain) {
                placement.roles.extend(back.first().map(|slot| (index, &slot.role)));
                continue;
            }
        }
        for (place, slot) in slots.iter().enumerate() {
            let from_left = slots.get(..=place).unwrap_or_default();
            let from_right = slots.get(place..).unwrap_or_default();
            let too_early = !from_left.iter().any(repeats) && place < least_before;
            let too_late = !from_right.iter().any(repeats) && from_right.len() <= least_after;
            // Slots that must be filled leave no room for a word whose place is certain.
            let needed =
                |slots: &[Slot]| slots.iter().filter(|slot| certain(slot) || slot.repeat == Repeat::Some).count();
            let crowded_left = single && sure_before && needed(slots.get(..place).unwrap_or_default()) > before;
            let crowded_right = single && sure_after && needed(slots.get(place + 1..).unwrap_or_default()) > after;
            if !too_early && !too_late && !crowded_left && !crowded_right {
                placement.roles.push((index, &slot.role));
            }
        }
    }
    placement
}

/// The last slot is a command, which takes all words from its first one on.
fn place_command<'t>(slots: &'t [Slot], operands: &[Cow<'_, Word>]) -> Placement<'t> {
    let mut placement = Placement::default();
    let mut at: usize = 0;
    for slot in slots {
        if slot.role.takes_rest() {
            if at < operands.len() {
                placement.rest = Some((at, &slot.role));
            }
            return placement;
        }
        let remaining = operands.len().saturating_sub(at);
        let limit = match slot.repeat {
            Repeat::Once | Repeat::Some => 1,
            Repeat::Optional => usize::from(remaining > 1),
            Repeat::Any => 0,
        };
        let mut taken = 0;
        while let Some(word) = operands.get(at) {
            let assigns = slot.role.kind == RoleKind::Assign;
            let repeats = matches!(slot.repeat, Repeat::Any | Repeat::Some);
            let fits = if assigns { is_assignment(word) && (repeats || taken < limit) } else { taken < limit };
            if !fits {
                break;
            }
            if is_many(word) {
                placement.doubt = Some("where the command starts is not known");
                return placement;
            }
            placement.roles.push((at, &slot.role));
            taken += 1;
            at += 1;
        }
    }
    placement
}

/// `NAME=…`
pub(super) fn is_assignment(word: &Word) -> bool {
    let text = match word {
        Word::Known(text) | Word::Partly { prefix: text, .. } => text,
        _ => return false,
    };
    text.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::form::parse;

    fn roles(args: &str, words: &[Word]) -> Vec<(usize, RoleKind)> {
        let (tables, errors) = parse(&format!("x: x\n  args: {args}\n"), "test", &mut Default::default());
        assert_eq!(errors, []);
        let slots = &tables[0].level.args[0].then;
        let words: Vec<Cow<'_, Word>> = words.iter().map(Cow::Borrowed).collect();
        place(slots, &words).roles.into_iter().map(|(index, role)| (index, role.kind.clone())).collect()
    }

    fn known(text: &str) -> Word {
        Word::Known(text.into())
    }

    fn glob() -> Word {
        Word::Glob("*".into())
    }

    use RoleKind::{Read, Text, WriteInto};

    #[test]
    fn certain_operands_have_one_role_each() {
        assert_eq!(
            roles("<read>+ <write into>", &[known("a"), known("b"), known("c")]),
            [(0, Read), (1, Read), (2, WriteInto)]
        );
        assert_eq!(roles("<text> <read>*", &[known("a")]), [(0, Text)]);
        assert_eq!(roles("<text>? <read>", &[known("a")]), [(0, Read)]);
        assert_eq!(roles("<text>? <read>", &[known("a"), known("b")]), [(0, Text), (1, Read)]);
    }

    #[test]
    fn a_glob_in_front_leaves_the_last_operand_certain() {
        assert_eq!(roles("<read>+ <write into>", &[glob(), known("d")]), [(0, Read), (1, WriteInto)]);
    }

    #[test]
    fn a_glob_at_the_end_may_be_source_and_destination() {
        assert_eq!(roles("<read>+ <write into>", &[known("a"), glob()]), [(0, Read), (1, Read), (1, WriteInto)]);
        assert_eq!(roles("<read>+ <write into>", &[glob()]), [(0, Read), (0, WriteInto)]);
    }

    #[test]
    fn what_stands_before_a_glob_is_certain() {
        assert_eq!(roles("<text> <read>*", &[known("a"), glob()]), [(0, Text), (1, Read)]);
        assert_eq!(roles("<text> <read>*", &[glob(), known("a")]), [(0, Text), (0, Read), (1, Text), (1, Read)]);
    }
}
