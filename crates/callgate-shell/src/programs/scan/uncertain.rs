//! Partly known words that may be options.

use super::Scanner;
use super::options::Abbreviation;
use crate::effect::Action;
use crate::programs::table::{Atom, EffectForm, Level, Role, RoleKind, Style, Values, conditions};
use crate::word::{DIGITS, INTEGER, Word, with_some_numbers};
use std::borrow::Cow;

impl<'t> Scanner<'t> {
    /// Reads a word with a known prefix: an option if the prefix starts like one.
    pub(super) fn partly(&mut self, word: &'t Word, prefix: &'t str, why: &str, many: bool) {
        let value = |rest: &str| match rest {
            "" => Word::Unknown { why: why.to_owned(), many },
            _ => Word::Partly { prefix: rest.to_owned(), why: why.to_owned(), many },
        };
        let shown = format!("`{prefix}…` ({why})");
        if let Some((level, form, rest)) = self.at_front(prefix)
            && form.values != Values::None
        {
            return self.give(level, form, prefix, Some(value(rest)));
        }
        if !prefix.starts_with('-') {
            let may_become = self.active().any(|(_, level)| {
                level.options.iter().flat_map(|form| &form.names).any(|name| name.starts_with(prefix))
            });
            if may_become && self.options_matter() {
                self.doubt(|program| format!("{shown} may be an option of {program}"));
            }
            return self.operand(Cow::Borrowed(word));
        }
        if let Some((name, rest)) = prefix.split_once('=') {
            let exact = self.exact(name).map(|(level, form, _)| (level, form));
            let found = exact.or_else(|| match self.abbreviated(name) {
                Abbreviation::Option(level, form) if self.style() != &Style::Long => Some((level, form)),
                _ => None,
            });
            if let Some((level, form)) = found.filter(|(_, form)| form.values != Values::None) {
                return self.give(level, form, name, Some(value(rest)));
            }
        } else if !prefix.starts_with("--") && !matches!(self.style(), Style::Single | Style::SingleFirst) {
            let body = prefix.get(1..).unwrap_or_default();
            for (at, letter) in body.char_indices() {
                let Some((level, form, name)) = self.letter(letter) else {
                    break;
                };
                if form.values == Values::None {
                    self.give(level, form, name, None);
                    continue;
                }
                let rest = body.get(at + letter.len_utf8()..).unwrap_or_default();
                return self.give(level, form, name, Some(value(rest)));
            }
        }
        if !many && !self.options_matter() {
            self.found.unseen_options = true;
            return;
        }
        self.doubt(|program| format!("{shown} may be any option of {program}"));
    }

    /// Handles `--include=*.c` without quotes: any file that matches is this option with some text.
    pub(super) fn text_option(&mut self, prefix: &str, pattern: &str) -> bool {
        // `-DNAME*`, where the table has `-D*`.
        if let Some((level, form, _)) = self.at_front(prefix)
            && form.names.iter().all(|name| name.starts_with('-') && !name.ends_with("NUMBER"))
            && (&form.effects, form.ends, form.tree, form.rest) == (&Vec::new(), false, false, false)
        {
            let value = match form.values.roles() {
                [] => Some(None),
                [role] if role.kind.is_text() => Some(Some(file_names())),
                _ => None,
            };
            if let Some(value) = value {
                self.give(level, form, prefix.to_owned(), value);
                return true;
            }
        }
        let Some((name, _)) = prefix.split_once('=').filter(|(name, _)| name.starts_with("--")) else {
            return false;
        };
        let Some((level, form, _)) = self.exact(name) else {
            return false;
        };
        let [role] = form.values.roles() else { return false };
        if !role.kind.is_text() {
            return false;
        }
        // Whatever names the pattern stands for, they match it.
        let value = match (&role.kind, pattern.split_once('=')) {
            (RoleKind::Only, Some((_, glob))) => Word::Known(glob.to_owned()),
            _ => file_names(),
        };
        self.give(level, form, name.to_owned(), Some(value));
        true
    }

    /// Whether a word starts with a number that the program does not take for an option, even if it is negative.
    pub(super) fn starts_with_number(&self, pattern: &str) -> bool {
        let is_number = pattern.starts_with(DIGITS) || pattern.starts_with(INTEGER);
        let takes_numbers = |name: &str| {
            let body = name.trim_start_matches('-');
            body.starts_with("NUMBER") || body.starts_with(|first: char| first.is_ascii_digit())
        };
        let text = with_some_numbers(pattern);
        is_number
            && text.is_some_and(|text| text.get(1..).is_some_and(|rest| !rest.starts_with('-')))
            && !self.forms().any(|(_, form)| form.names.iter().any(|name| takes_numbers(name)))
    }

    /// File names that a program may take for options.
    pub(super) fn perhaps_names(&mut self, prefix: &str, shown: &str) {
        let is_unsafe = self.active().any(|(_, level)| level.globs_unsafe);
        if prefix.starts_with('-') || (prefix.is_empty() && is_unsafe) {
            let shown = shown.to_owned();
            self.doubt(|program| format!("a file name that matches {shown} may be read as an option of {program}"));
        }
    }

    /// Whether an unseen option could change the effects.
    pub(super) fn options_matter(&self) -> bool {
        if self.active().all(|(_, level)| only_lists(level)) {
            return false;
        }
        self.active().any(|(_, level)| {
            let conditions = conditions(&level.args)
                .chain(conditions(&level.none))
                .chain(conditions(&level.does))
                .chain(conditions(&level.stdin))
                .chain(&level.tree);
            let mut atoms = conditions.flat_map(|condition| &condition.all).flat_map(|term| &term.any);
            atoms.any(|atom| matches!(atom, Atom::Option(_) | Atom::Value(..)))
                || level.options.iter().any(|form| {
                    let harmless = form.values.roles().iter().all(|role| role.kind.is_text());
                    !harmless || form.tree || !form.effects.is_empty()
                })
        })
    }
}

/// The value of an option that a pattern matches together with the option.
fn file_names() -> Word {
    Word::Unknown { why: "names of files".to_owned(), many: false }
}

/// Whether a program only sees names, whatever its options and operands are.
fn only_lists(level: &Level) -> bool {
    let sees_names = |role: &Role| role.kind.is_text() || matches!(role.kind, RoleKind::List | RoleKind::Revision);
    let lists = |effects: &[EffectForm]| effects.iter().all(|effect| effect.action == Action::List);
    level.options.iter().all(|form| form.values.roles().iter().all(sees_names) && lists(&form.effects))
        && level.args.iter().flat_map(|when| &when.then).all(|slot| sees_names(&slot.role))
        && level.none.iter().chain(&level.does).all(|when| lists(&when.then))
        && level.stdin.iter().all(|when| when.then.kind == RoleKind::Text)
        && level.values.iter().all(|(_, when)| sees_names(&when.then))
        && level.subs.is_empty()
}
