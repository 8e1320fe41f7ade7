//! The conditions of a table's lines.

use super::error::TableProblem;
use crate::programs::table::{Atom, Condition, Term, Text};

/// Reads what stands between `if` and the colon.
pub(super) fn condition<'a>(text: &'a str, keep: fn(&'a str) -> Text) -> Result<Condition, TableProblem> {
    let wrong = || TableProblem::Condition(text.to_owned());
    let mut all = Vec::new();
    let mut words = text.split_whitespace().peekable();
    loop {
        let negated = words.next_if(|word| matches!(*word, "not" | "no")).is_some();
        let word = words.next().ok_or_else(wrong)?;
        if matches!(word, "and" | "or" | "not" | "no" | "if") {
            return Err(wrong());
        }
        let any = alternatives(word)
            .into_iter()
            .map(|text| atom(text, keep))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(wrong)?;
        all.push(Term { negated, any });
        match words.next() {
            None => return Ok(Condition { all }),
            Some("and") => {}
            Some(_) => return Err(wrong()),
        }
    }
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

fn atom<'a>(text: &'a str, keep: fn(&'a str) -> Text) -> Option<Atom> {
    if text == "args" {
        return Some(Atom::Count(1));
    }
    if let Some(rest) = text.strip_prefix("arg")
        && rest.starts_with(|character: char| character.is_ascii_digit())
    {
        let (number, glob) = match rest.split_once('=') {
            Some((number, glob)) => (number, Some(glob)),
            None => (rest, None),
        };
        let number: usize = number.parse().ok().filter(|number| (1..=99).contains(number))?;
        return Some(match glob {
            Some(glob) => Atom::Operand(number, keep(glob)),
            None => Atom::Count(number),
        });
    }
    match text.split_once('=') {
        _ if text.is_empty() => None,
        Some((name, "")) => Some(Atom::Option(Text::Owned(format!("{name}=")))),
        Some((name, glob)) if !name.is_empty() => Some(Atom::Value(keep(name), keep(glob))),
        Some(_) => None,
        None => Some(Atom::Option(keep(text))),
    }
}
