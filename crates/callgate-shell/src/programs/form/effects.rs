//! Effects as tables state them.

use super::error::TableProblem;
use super::tokens::{Kind, Token};
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
pub(super) fn effects(tokens: &[Token<'_>], end: usize) -> Result<Vec<EffectForm>, (usize, TableProblem)> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    tokens.split(|token| token.kind == Kind::Comma).map(|part| effect(part, end)).collect()
}

fn effect(tokens: &[Token<'_>], end: usize) -> Result<EffectForm, (usize, TableProblem)> {
    let mut rest = tokens.iter().peekable();
    let Some(first) = rest.next() else {
        return Err((end, TableProblem::Action(String::new())));
    };
    let Kind::Word(word) = first.kind else {
        return Err((first.column, TableProblem::Action(first.kind.shown())));
    };
    let needs = |what| (first.column, TableProblem::Target(word.to_owned(), what));
    let is_target = |token: &&Token<'_>| match token.kind {
        Kind::Word(word) => word != "tree" && !word.starts_with('!'),
        Kind::Quoted(_) | Kind::Angle(..) => true,
        _ => false,
    };
    let action = action(word).ok_or_else(|| (first.column, TableProblem::Action(word.to_owned())))?;
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
                let mark = mark(word).ok_or_else(|| (token.column, TableProblem::Mark(word.to_owned())))?;
                effect.marks.push(mark);
            }
            ref other => return Err((token.column, TableProblem::Mark(other.shown()))),
        }
    }
    effect.marks.sort_unstable();
    effect.marks.dedup();
    Ok(effect)
}

fn action(word: &str) -> Option<Action> {
    Some(match word {
        "list" => Action::List,
        "read" => Action::Read,
        "write" => Action::Write,
        "delete" => Action::Delete,
        "run" => Action::Run,
        "connect" => Action::Connect,
        "send" => Action::Send,
        "privilege" => Action::Privilege,
        "opaque" => Action::Opaque,
        _ => return None,
    })
}

fn plain(token: &Token<'_>) -> String {
    match token.kind {
        Kind::Word(text) | Kind::Quoted(text) => text.to_owned(),
        ref other => other.shown(),
    }
}
