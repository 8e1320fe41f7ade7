//! Option lines: `NAMES [VALUES] [ends] [tree] [rest] [everywhere] [first] [together] [=> EFFECTS]`.

use super::Problem;
use super::effects;
use super::roles;
use super::tokens::{Commas, Kind, tokens};
use crate::programs::table::{OptionForm, Role, Text, Values};

const MIXED: &str = "an option takes either one optional value `[<role>]` or required ones";

pub(super) fn option<'a>(
    text: &'a str,
    column: usize,
    line: usize,
    keep: fn(&'a str) -> Text,
) -> Result<OptionForm, Problem> {
    if let Some(names) = flag(text, keep) {
        return Ok(OptionForm { fronts: has_fronts(&names), names, line, ..OptionForm::NOTHING });
    }
    let cut = tokens(text, column, Commas::Literal)?;
    let arrow = cut.iter().position(|token| token.kind == Kind::Arrow).unwrap_or(cut.len());
    let (front, back) = cut.split_at(arrow);
    let mut found = OptionForm { line, ..OptionForm::NOTHING };
    let mut marked = false;
    let mut words: Vec<Role> = Vec::new();
    let mut optional: Option<Role> = None;
    for token in front {
        let at = |problem| (token.column, problem);
        match token.kind {
            Kind::Angle(text, None) => words.push(roles::role(text).map_err(at)?),
            Kind::Angle(..) => {
                return Err(at("an option's value cannot repeat: write one role for each word".to_owned()));
            }
            Kind::Optional(text) if optional.is_none() => optional = Some(roles::role(text).map_err(at)?),
            Kind::Optional(_) => return Err(at(MIXED.to_owned())),
            Kind::Word(word) if !found.names.is_empty() && mark(&mut found, word) => marked = true,
            Kind::Word(name) if words.is_empty() && optional.is_none() && !marked => match both_forms(name) {
                Some((with, without)) => found.names.extend([Text::Owned(with), Text::Owned(without)]),
                None => found.names.push(keep(name)),
            },
            ref other => {
                let form = "write `NAMES VALUES ends tree => EFFECTS`";
                return Err(at(format!("unexpected `{}` after the values: {form}", other.shown())));
            }
        }
    }
    if found.names.is_empty() {
        return Err((column, "an option line starts with the option's names".to_owned()));
    }
    found.values = match (optional, words.is_empty()) {
        (Some(_), false) => return Err((column, MIXED.to_owned())),
        (Some(role), true) => Values::Optional(role),
        (None, true) => Values::None,
        (None, false) => Values::Words(words),
    };
    if let Some((_, rest)) = back.split_first() {
        found.effects = effects::effects(rest, column + text.len())?;
    }
    found.fronts = has_fronts(&found.names);
    Ok(found)
}

/// Whether the word is a mark; the option has it then.
fn mark(form: &mut OptionForm, word: &str) -> bool {
    match word {
        "ends" => form.ends = true,
        "tree" => form.tree = true,
        "rest" => form.rest = true,
        "everywhere" => form.everywhere = true,
        "together" => form.together = true,
        _ => return false,
    }
    true
}

fn has_fronts(names: &[Text]) -> bool {
    names.iter().any(|name| name.ends_with(['*', '=']) || name.ends_with("NUMBER"))
}

/// The names of an option that is nothing but names. Most are, and a table is read whenever a hook needs it.
fn flag<'a>(text: &'a str, keep: fn(&'a str) -> Text) -> Option<Vec<Text>> {
    let mut names = Vec::new();
    for name in text.split_ascii_whitespace() {
        let special = name.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'[' | b'"'));
        if special || matches!(name, "ends" | "tree" | "rest" | "everywhere" | "together") {
            return None;
        }
        names.push(keep(name));
    }
    (!names.is_empty()).then_some(names)
}

/// `--[no-]color` stands for `--color` and `--no-color`.
fn both_forms(name: &str) -> Option<(String, String)> {
    let (front, back) = name.split_once("[no-]").filter(|(_, back)| !back.is_empty())?;
    Some((format!("{front}{back}"), format!("{front}no-{back}")))
}
