//! Option lines: `NAMES [VALUES] [ends] [tree] [=> EFFECTS]`.

use super::effects;
use super::error::TableProblem;
use super::roles;
use super::tokens::{Commas, Kind, tokens};
use crate::programs::table::{OptionForm, Role, Text, Values};

pub(super) fn option<'a>(
    text: &'a str,
    column: usize,
    line: usize,
    keep: fn(&'a str) -> Text,
) -> Result<OptionForm, (usize, TableProblem)> {
    if let Some(names) = flag(text, keep) {
        return Ok(form(names, line));
    }
    let cut = tokens(text, column, Commas::Literal)?;
    let arrow = cut.iter().position(|token| token.kind == Kind::Arrow).unwrap_or(cut.len());
    let (front, back) = cut.split_at(arrow);
    let mut names: Vec<Text> = Vec::new();
    let mut words: Vec<Role> = Vec::new();
    let mut optional: Option<Role> = None;
    let (mut ends, mut tree, mut takes_rest, mut everywhere) = (false, false, false, false);
    for token in front {
        let at = |problem| (token.column, problem);
        match token.kind {
            Kind::Angle(text, None) => words.push(roles::role(text).map_err(at)?),
            Kind::Angle(..) => return Err(at(TableProblem::RepeatedValue)),
            Kind::Optional(text) if optional.is_none() => optional = Some(roles::role(text).map_err(at)?),
            Kind::Optional(_) => return Err(at(TableProblem::MixedValues)),
            Kind::Word("ends") if !names.is_empty() => ends = true,
            Kind::Word("tree") if !names.is_empty() => tree = true,
            Kind::Word("rest") if !names.is_empty() => takes_rest = true,
            Kind::Word("everywhere") if !names.is_empty() => everywhere = true,
            Kind::Word(name)
                if words.is_empty() && optional.is_none() && !(ends || tree || takes_rest || everywhere) =>
            {
                match both_forms(name) {
                    Some((with, without)) => names.extend([Text::Owned(with), Text::Owned(without)]),
                    None => names.push(keep(name)),
                }
            }
            ref other => return Err(at(TableProblem::NameAfterValue(other.shown()))),
        }
    }
    if names.is_empty() {
        return Err((column, TableProblem::NoName));
    }
    let values = match (optional, words.is_empty()) {
        (Some(_), false) => return Err((column, TableProblem::MixedValues)),
        (Some(role), true) => Values::Optional(role),
        (None, true) => Values::None,
        (None, false) => Values::Words(words),
    };
    let effects = match back.split_first() {
        Some((_, rest)) => effects::effects(rest, column + text.len())?,
        None => Vec::new(),
    };
    Ok(OptionForm { values, ends, tree, rest: takes_rest, everywhere, effects, ..form(names, line) })
}

/// An option of which nothing but its names is known.
fn form(names: Vec<Text>, line: usize) -> OptionForm {
    let fronts = names.iter().any(|name| name.ends_with(['*', '=']) || name.ends_with("NUMBER"));
    OptionForm { names, fronts, line, ..OptionForm::NOTHING }
}

/// The names of an option that is nothing but names. Most are, and a table is read whenever a hook needs it.
fn flag<'a>(text: &'a str, keep: fn(&'a str) -> Text) -> Option<Vec<Text>> {
    let plain = |byte: u8| !matches!(byte, b'<' | b'>' | b'[' | b'"');
    let names = || text.split(' ').filter(|name| !name.is_empty());
    let is_name = |name: &str| !matches!(name, "ends" | "tree" | "rest" | "everywhere");
    (text.bytes().all(plain) && names().next().is_some() && names().all(is_name)).then(|| names().map(keep).collect())
}

/// `--[no-]color` stands for `--color` and `--no-color`.
fn both_forms(name: &str) -> Option<(String, String)> {
    let (front, back) = name.split_once("[no-]").filter(|(_, back)| !back.is_empty())?;
    Some((format!("{front}{back}"), format!("{front}no-{back}")))
}
