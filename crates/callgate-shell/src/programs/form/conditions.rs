//! The conditions of a table's lines.

use crate::programs::scan::name_and_value;
use crate::programs::table::{Atom, Condition, Term, Text, ValueSet};

/// Reads what stands between `if` and the colon.
pub(super) fn condition<'a>(text: &'a str, keep: fn(&'a str) -> Text) -> Result<Condition, String> {
    let wrong = || {
        format!(
            "invalid condition `{text}`: write `-x`, `-x|-y`, `-x=VALUE|VALUE`, `-x not VALUE|VALUE`, `args`, `no args`, `arg1=VALUE`, `not …`, joined by `and`"
        )
    };
    let mut all = Vec::new();
    let mut words = text.split_whitespace().peekable();
    loop {
        let negated = words.next_if(|word| matches!(*word, "not" | "no")).is_some();
        let word = words.next().ok_or_else(wrong)?;
        if matches!(word, "and" | "or" | "not" | "no" | "if") {
            return Err(wrong());
        }
        let any = match words.next_if_eq(&"not") {
            Some(_) => others(word, words.next().ok_or_else(wrong)?, keep).map(|atom| vec![atom]),
            None => atoms(word, keep),
        };
        all.push(Term { negated, any: any.ok_or_else(wrong)? });
        match words.next() {
            None => return Ok(Condition { all }),
            Some("and") => {}
            Some(_) => return Err(wrong()),
        }
    }
}

/// `-X not GET|HEAD`: any value but these.
fn others<'a>(name: &'a str, values: &'a str, keep: fn(&'a str) -> Text) -> Option<Atom> {
    if name.contains(['=', '|']) {
        return None;
    }
    let globs = alternatives(values).into_iter().map(keep).collect();
    let values = ValueSet { globs, others: true };
    Some(match atom(name, keep)? {
        Atom::Option(name) => Atom::Value(name, values),
        Atom::Count(_) if name == "args" => Atom::AnyOperand(values),
        Atom::Count(place) => Atom::Operand(place, values),
        _ => return None,
    })
}

/// Atoms separated by `|`. Behind `-x=VALUE`, words that cannot be atoms are more values of the same option.
fn atoms<'a>(word: &'a str, keep: fn(&'a str) -> Text) -> Option<Vec<Atom>> {
    let mut atoms: Vec<Atom> = Vec::new();
    for text in alternatives(word) {
        match atoms.last_mut() {
            Some(Atom::Value(_, values) | Atom::Operand(_, values) | Atom::AnyOperand(values)) if is_value(text) => {
                values.globs.push(keep(text));
            }
            _ => atoms.push(atom(text, keep)?),
        }
    }
    Some(atoms)
}

/// An alternative that starts neither like an option nor like an operand.
fn is_value(text: &str) -> bool {
    !(text.is_empty() || text.starts_with(['-', '+']) || text == "args" || text.starts_with("args="))
        && operand(text).is_none()
}

/// Cuts at `|`, but not inside `[…]`.
fn alternatives(word: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut in_class) = (0, false);
    for (at, character) in word.char_indices() {
        match character {
            '[' => in_class = true,
            ']' => in_class = false,
            '|' if !in_class => {
                found.push(word.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(word.get(start..).unwrap_or_default());
    found
}

/// What stands behind `arg` if a number does.
fn operand(text: &str) -> Option<&str> {
    text.strip_prefix("arg").filter(|rest| rest.starts_with(|character: char| character.is_ascii_digit()))
}

fn atom<'a>(text: &'a str, keep: fn(&'a str) -> Text) -> Option<Atom> {
    let one = |glob: &'a str| ValueSet { globs: vec![keep(glob)], others: false };
    if let Some(rest) = text.strip_prefix("args") {
        match rest.strip_prefix('=') {
            Some(glob) => return Some(Atom::AnyOperand(one(glob))),
            None if rest.is_empty() => return Some(Atom::Count(1)),
            None => {}
        }
    }
    if let Some(rest) = operand(text) {
        let (number, glob) = name_and_value(rest);
        let number: usize = number.parse().ok().filter(|number| (1..=99).contains(number))?;
        return Some(match glob {
            Some(glob) => Atom::Operand(number, one(glob)),
            None => Atom::Count(number),
        });
    }
    // `if==/dev/zero` is about the option `if=`
    if let Some((name, glob)) = text.split_once("==").filter(|(name, _)| !name.is_empty() && !name.contains('=')) {
        return Some(Atom::Value(Text::Owned(format!("{name}=")), one(glob)));
    }
    match text.split_once('=') {
        _ if text.is_empty() => None,
        Some((name, "")) => Some(Atom::Option(Text::Owned(format!("{name}=")))),
        Some((name, glob)) if !name.is_empty() => Some(Atom::Value(keep(name), one(glob))),
        Some(_) => None,
        None => Some(Atom::Option(keep(text))),
    }
}
