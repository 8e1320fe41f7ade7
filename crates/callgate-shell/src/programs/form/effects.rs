//! Effects as tables state them.

use super::Problem;
use super::lines::named;
use super::tokens::{Kind, TableToken};
use crate::effect::{Action, CodeOrigin, Mark};
use crate::programs::table::{EffectForm, EffectTarget};

/// A mark of an effect.
pub(super) fn mark(word: &str) -> Option<Mark> {
    match word {
        "!destructive" => Some(Mark::Destructive),
        "!credentials" => Some(Mark::Credentials),
        "!elsewhere" => Some(Mark::Elsewhere),
        "!project" => Some(Mark::ProjectCode),
        _ => None,
    }
}

/// Reads effects separated by commas.
pub(super) fn effects(tokens: &[TableToken<'_>], end: usize) -> Result<Vec<EffectForm>, Problem> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    tokens.split(|token| token.kind == Kind::Comma).map(|part| effect(part, end)).collect()
}

fn effect(tokens: &[TableToken<'_>], end: usize) -> Result<EffectForm, Problem> {
    let mut rest = tokens.iter().peekable();
    let Some(first) = rest.next() else {
        return Err((end, unknown_action("")));
    };
    let Kind::Word(word) = first.kind else {
        return Err((first.column, unknown_action(&first.kind.shown())));
    };
    let needs = |what| (first.column, format!("`{word}` needs {what}"));
    let is_target = |token: &&TableToken<'_>| match token.kind {
        Kind::Word(word) => word != "tree" && !word.starts_with('!'),
        Kind::Quoted(_) | Kind::Angle(..) => true,
        _ => false,
    };
    let action = named(word).ok_or_else(|| (first.column, unknown_action(word)))?;
    let target = match action {
        Action::List | Action::Read | Action::Write | Action::Delete => {
            let path = rest.next_if(is_target).ok_or_else(|| needs("a path"))?;
            EffectTarget::Path(plain(path))
        }
        Action::Run => {
            let kind =
                rest.next_if(is_target).ok_or_else(|| needs("`project NAME`, `file PATH`, `fetched` or `inline`"))?;
            let origin = match plain(kind).as_str() {
                "project" => CodeOrigin::Project,
                "fetched" => CodeOrigin::Fetched,
                "inline" => CodeOrigin::Inline,
                "file" => CodeOrigin::File,
                _ => CodeOrigin::Known,
            };
            let name = match origin {
                CodeOrigin::Known => plain(kind),
                CodeOrigin::Project | CodeOrigin::File => {
                    rest.next_if(is_target).map(plain).ok_or_else(|| needs("a name behind `project` or `file`"))?
                }
                _ => rest.next_if(is_target).map(plain).unwrap_or_default(),
            };
            EffectTarget::Program(origin, name)
        }
        Action::Connect | Action::Send => EffectTarget::Host(rest.next_if(is_target).map(|token| match token.kind {
            Kind::Angle(name, _) => format!("<{name}>"),
            _ => plain(token),
        })),
        Action::Privilege | Action::Opaque => EffectTarget::Words(rest.next_if(is_target).map(plain)),
    };
    let mut effect = EffectForm { action, target, tree: false, marks: Vec::new() };
    for token in rest {
        match token.kind {
            Kind::Word("tree") => effect.tree = true,
            Kind::Word(word) => {
                let mark = mark(word).ok_or_else(|| (token.column, unknown_mark(word)))?;
                effect.marks.push(mark);
            }
            ref other => return Err((token.column, unknown_mark(&other.shown()))),
        }
    }
    effect.marks.sort_unstable();
    effect.marks.dedup();
    Ok(effect)
}

fn unknown_action(word: &str) -> String {
    format!("unknown action `{word}`: write list, read, write, delete, run, connect, send, privilege or opaque")
}

fn unknown_mark(word: &str) -> String {
    format!("unexpected `{word}` after an effect: write tree, !destructive or !credentials")
}

fn plain(token: &TableToken<'_>) -> String {
    match token.kind {
        Kind::Word(text) | Kind::Quoted(text) => text.to_owned(),
        ref other => other.shown(),
    }
}
