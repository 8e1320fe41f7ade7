//! Running the examples of tables.

use super::collect::IF_DIRECTORY;
use super::table::{EffectForm, EffectTarget, Example};
use super::{Programs, paths};
use crate::effect::{Action, CodeOrigin, Effect, Mark, Names, Target};
use crate::{Context, Dialect, Limits, analyze};
use std::collections::BTreeMap;

/// Where examples run.
const DIRECTORY: &str = "/example/directory";
const HOME: &str = "/home/someone";

/// What differs between the effects of an example's command and what it says.
pub(super) fn difference(programs: &Programs, example: &Example) -> Option<String> {
    let variables = BTreeMap::new();
    let context = Context {
        directory: Some(DIRECTORY),
        home: Some(HOME),
        variables: &variables,
        programs,
        dialect: Dialect::Bash,
        limits: Limits::default(),
        state: None,
    };
    let analysis = analyze(&example.command, &context);
    let found: Vec<&Effect> = analysis.effects().filter(|effect| counts(effect)).collect();
    let mut lines = Vec::new();
    for effect in &found {
        if !example.expected.iter().any(|form| agrees(form, effect)) {
            lines.push(format!("has `{}` ({})", shown(effect), effect.because));
        }
    }
    for form in &example.expected {
        if !found.iter().any(|effect| agrees(form, effect)) {
            lines.push(format!("lacks `{}`", shown_form(form)));
        }
    }
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

fn agrees(form: &EffectForm, effect: &Effect) -> bool {
    if form.action != effect.action {
        return false;
    }
    let marks = |marks: &[Mark]| {
        let told = [Mark::Destructive, Mark::Credentials, Mark::Elsewhere];
        told.map(|mark| marks.contains(&mark))
    };
    if form.action == Action::Opaque {
        return match (&form.target, &effect.target) {
            (EffectTarget::Words(Some(wanted)), Target::Text(found)) => wanted == found,
            _ => true,
        };
    }
    if marks(&form.marks) != marks(&effect.marks) {
        return false;
    }
    match (&form.target, &effect.target) {
        (EffectTarget::Path(wanted), Target::Path(found)) => {
            let written = wanted;
            let wanted = expected_path(wanted);
            match &found.names {
                Names::Exact(path) => (same_path(path, &wanted) || path == written) && found.tree == form.tree,
                Names::Glob(pattern) => {
                    pattern.replace('\\', "") == wanted.replace('\\', "") && found.tree == form.tree
                }
                Names::Below(folder) => same_path(folder, wanted.strip_suffix("/**").unwrap_or(&wanted)),
                Names::Unknown(_) => false,
            }
        }
        (EffectTarget::Program(origin, name), Target::Program(found)) => {
            *origin == found.origin
                && match origin {
                    CodeOrigin::File => same_path(&expected_path(name), &found.name),
                    CodeOrigin::Project => *name == found.name,
                    _ => name.is_empty() || *name == found.name,
                }
        }
        (EffectTarget::Host(wanted), Target::Host(found)) => *wanted == found.name,
        (EffectTarget::Words(None), Target::Text(_)) => true,
        (EffectTarget::Words(Some(wanted)), Target::Text(found)) => wanted == found,
        _ => false,
    }
}

fn same_path(one: &str, other: &str) -> bool {
    let plain = |path: &str| {
        if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path.to_owned() }
    };
    plain(one) == plain(other)
}

fn expected_path(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) => format!("{HOME}{rest}"),
        None => paths::absolute(Some(DIRECTORY), path),
    }
}

fn shown(effect: &Effect) -> String {
    let action = format!("{:?}", effect.action).to_lowercase();
    let short = |path: &str| {
        let path = path.replace('\\', "");
        match path.strip_prefix(DIRECTORY) {
            Some("") => ".".to_owned(),
            Some(rest) => rest.trim_start_matches('/').to_owned(),
            None => path.replace(HOME, "~"),
        }
    };
    let target = match &effect.target {
        Target::Path(path) => {
            let names = match &path.names {
                Names::Exact(path) | Names::Glob(path) => short(path),
                Names::Below(folder) => format!("{}/**", short(folder)),
                Names::Unknown(why) => why.clone(),
            };
            if path.tree { format!("{names} tree") } else { names }
        }
        Target::Program(program) => {
            format!("{} {}", format!("{:?}", program.origin).to_lowercase(), short(&program.name))
        }
        Target::Host(host) => host.name.clone().unwrap_or_default(),
        Target::Text(text) => format!("\"{text}\""),
    };
    let marks: String = effect.marks.iter().map(|mark| format!(" !{}", format!("{mark:?}").to_lowercase())).collect();
    format!("{action} {target}{marks}")
}

fn shown_form(form: &EffectForm) -> String {
    let action = format!("{:?}", form.action).to_lowercase();
    let target = match &form.target {
        EffectTarget::Path(path) => path.clone(),
        EffectTarget::Program(origin, name) => {
            format!("{} {name}", format!("{origin:?}").to_lowercase())
        }
        EffectTarget::Host(host) => host.clone().unwrap_or_default(),
        EffectTarget::Words(words) => words.clone().unwrap_or_default(),
    };
    let tree = if form.tree { " tree" } else { "" };
    let marks: String = form.marks.iter().map(|mark| format!(" !{}", format!("{mark:?}").to_lowercase())).collect();
    format!("{action} {target}{tree}{marks}").trim_end().to_owned()
}
