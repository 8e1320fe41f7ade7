//! Running the examples of tables.

use super::collect::IF_DIRECTORY;
use super::table::{EffectForm, EffectTarget, Example};
use super::{Programs, paths};
use crate::effect::{Action, CodeOrigin, Effect, Mark, Names, Target};
use crate::{Dialect, Limits, ShellContext, analyze};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Where examples run.
const DIRECTORY: &str = "/example/directory";
const HOME: &str = "/home/someone";

/// What differs between the effects of an example's command and what it says.
pub(super) fn difference(programs: &Programs, example: &Example) -> Option<String> {
    let variables = BTreeMap::new();
    let context = ShellContext {
        directory: Some(DIRECTORY),
        home: Some(HOME),
        variables: &variables,
        programs,
        dialect: Dialect::Bash,
        limits: Limits::default(),
        state: None,
    };
    let analysis = analyze(&example.command, &context);
    let found: Vec<(EffectForm, &Effect)> =
        analysis.effects().filter(|effect| counts(effect)).map(|effect| (as_stated(effect), effect)).collect();
    let expected: Vec<EffectForm> = example.expected.iter().map(in_place).collect();
    let surplus = found.iter().filter(|(form, _)| !expected.iter().any(|wanted| agrees(wanted, form)));
    let missing = expected.iter().filter(|wanted| !found.iter().any(|(form, _)| agrees(wanted, form)));
    let surplus = surplus.map(|(form, effect)| format!("has `{}` ({})", shown(form), effect.because));
    let lines: Vec<String> = surplus.chain(missing.map(|form| format!("lacks `{}`", shown(form)))).collect();
    (!lines.is_empty()).then(|| format!("example `{}`: {}", example.command, lines.join("; ")))
}

/// Examples leave out what goes without saying.
fn counts(effect: &Effect) -> bool {
    match &effect.target {
        Target::Program(program) => {
            !matches!(program.origin, CodeOrigin::Known | CodeOrigin::Unknown | CodeOrigin::Defined)
        }
        // Beside it stands an opaque effect.
        Target::Path(path) if matches!(path.names, Names::Unknown(_)) => false,
        _ => !effect.because.ends_with(IF_DIRECTORY),
    }
}

/// An effect as a table would state it, with whole paths.
fn as_stated(effect: &Effect) -> EffectForm {
    let (target, tree) = match &effect.target {
        Target::Path(path) => match &path.names {
            // On another machine, paths are relative to a directory that nobody knows.
            Names::Exact(name) | Names::Glob(name) => {
                (EffectTarget::Path(plain_path(&paths::absolute(Some(DIRECTORY), name))), path.tree)
            }
            Names::Below(folder) => (EffectTarget::Path(format!("{}/**", plain_path(folder))), false),
            Names::Unknown(why) => (EffectTarget::Path(why.clone()), path.tree),
        },
        Target::Program(program) => (EffectTarget::Program(program.origin, program.name.clone()), false),
        Target::Host(host) => (EffectTarget::Host(host.name.clone()), false),
        Target::Text(text) => (EffectTarget::Words(Some(text.clone())), false),
    };
    EffectForm { action: effect.action, target, tree, marks: told(&effect.marks) }
}

/// What an example expects, with whole paths.
fn in_place(form: &EffectForm) -> EffectForm {
    let whole = |path: &str| match path.strip_prefix('~') {
        Some(rest) => plain_path(&format!("{HOME}{rest}")),
        None => plain_path(&paths::absolute(Some(DIRECTORY), path)),
    };
    let target = match &form.target {
        EffectTarget::Path(path) => EffectTarget::Path(whole(path)),
        EffectTarget::Program(CodeOrigin::File, path) => EffectTarget::Program(CodeOrigin::File, whole(path)),
        other => other.clone(),
    };
    EffectForm { target, marks: told(&form.marks), ..form.clone() }
}

/// The marks that examples mention.
fn told(marks: &[Mark]) -> Vec<Mark> {
    let is_told = |mark: &Mark| matches!(mark, Mark::Destructive | Mark::Credentials | Mark::Elsewhere);
    marks.iter().filter(|mark| is_told(mark)).copied().collect()
}

/// A path without escapes and slashes at its end.
fn plain_path(path: &str) -> String {
    let path = path.replace('\\', "");
    if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path }
}

fn agrees(wanted: &EffectForm, found: &EffectForm) -> bool {
    let same_target = match (&wanted.target, &found.target) {
        (EffectTarget::Words(None), _) => true,
        (EffectTarget::Program(origin, name), EffectTarget::Program(other, _)) if name.is_empty() => origin == other,
        (one, other) => one == other,
    };
    let opaque = wanted.action == Action::Opaque;
    wanted.action == found.action && same_target && (opaque || wanted.marks == found.marks && wanted.tree == found.tree)
}

fn shown(form: &EffectForm) -> String {
    let short = |path: &str| match path.strip_prefix(DIRECTORY) {
        Some("") => ".".to_owned(),
        Some(rest) => rest.trim_start_matches('/').to_owned(),
        None => path.replace(HOME, "~"),
    };
    let lower = |name: &dyn Debug| format!("{name:?}").to_lowercase();
    let target = match &form.target {
        EffectTarget::Path(path) => short(path),
        EffectTarget::Program(origin, name) => format!("{} {}", lower(origin), short(name)),
        EffectTarget::Host(host) => host.clone().unwrap_or_default(),
        EffectTarget::Words(words) => words.as_ref().map(|words| format!("\"{words}\"")).unwrap_or_default(),
    };
    let tree = if form.tree { " tree" } else { "" };
    let marks: String = form.marks.iter().map(|mark| format!(" !{}", lower(mark))).collect();
    format!("{} {target}{tree}{marks}", lower(&form.action)).trim_end().to_owned()
}
