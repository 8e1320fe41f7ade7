//! The wording of effects. No other module turns effects into text.

use std::path::Path;

use crate::description::{Part, PlacedEffect};
use crate::effect::{Action, CodeOrigin, Effect, Mark, Names, PathTarget, Program, Target, TreeNames};
use crate::place::{Rest, Zone};
use crate::quote::shell_word;
use crate::redact::Redactor;
use crate::show::{brief, visible};
use crate::word::Word;

/// One effect in a line: `delete /home/ada/x and everything below (cannot be undone)`, redacted and without hidden characters.
pub fn effect(placed: &PlacedEffect, redactor: &Redactor) -> String {
    let Effect { action, .. } = placed.effect;
    brief(&redactor.text(&format!("{} {}{}", action.as_str(), target_text(&placed.effect), remarks(placed))))
}

/// One effect as a clause that fits after "this call": `deletes /home/ada/x`, `connects to example.com`, `runs project code: npm
/// test → package.json`. Not redacted.
pub fn clause(effect: &Effect) -> String {
    let target = target_text(effect);
    match (effect.action, &effect.target) {
        (Action::List, _) => format!("lists {target}"),
        (Action::Read, _) => format!("reads {target}"),
        (Action::Write, _) => match effect.because.strip_prefix("changes ") {
            Some(keys) => format!("changes {keys} in {target}"),
            None => format!("writes {target}"),
        },
        (Action::Delete, _) => match program(effect).filter(|_| effect.marks.contains(&Mark::Destructive)) {
            // The table says where, not what: `git branch -D` deletes no file.
            Some(program) => format!("{program} may discard changes or history in {target}"),
            None => format!("deletes {target}"),
        },
        (Action::Run, Target::Program(Program { name, origin })) => match origin {
            CodeOrigin::Known | CodeOrigin::Defined => format!("runs {name}"),
            CodeOrigin::Unknown => format!("runs {name}, a program that callgate does not know"),
            CodeOrigin::File => format!("runs the file {name}"),
            CodeOrigin::Project => match effect.because.strip_suffix(": running it") {
                Some(command) => format!("runs project code: {command} → {name}"),
                None => format!("runs project code: {name}"),
            },
            CodeOrigin::Inline => format!("runs {name} with code in the command"),
            CodeOrigin::Fetched => format!("runs downloaded code: {name}"),
        },
        (Action::Run, _) => format!("runs {target}"),
        (Action::Connect, _) => {
            service(effect).map_or_else(|| format!("connects to {target}"), |service| format!("queries {service}"))
        }
        (Action::Send, Target::Host(_)) => match (service(effect), effect.because.strip_suffix(": running it")) {
            (None, _) => format!("sends data to {target}"),
            (Some("processes"), _) => "sends a signal to processes".to_owned(),
            (Some(service), Some(command)) => format!("{command} acts on {service}"),
            (Some(service), None) => format!("acts on {service}"),
        },
        (Action::Send, _) => format!("sends {target}"),
        (Action::Privilege, _) => format!("uses or changes privileges: {target}"),
        (Action::Opaque, _) => format!("cannot be analyzed: {target}"),
    }
}

/// The program that has an effect, with the option that it is about, if none of its operands says more.
fn program(effect: &Effect) -> Option<String> {
    match effect.because.split_once(": ")? {
        (command, "running it" | "--") => Some(command.to_owned()),
        (command, option) if option.starts_with('-') => Some(format!("{command} {option}")),
        _ => None,
    }
}

/// The name of a service that is not a host: `kubernetes` for `<kubernetes>`.
fn service(effect: &Effect) -> Option<&str> {
    let Target::Host(host) = &effect.target else { return None };
    host.name.as_deref()?.strip_prefix('<')?.strip_suffix('>')
}

/// The target of an effect, redacted and with hidden characters made visible.
pub fn target(effect: &Effect, redactor: &Redactor) -> String {
    visible(&redactor.text(&target_text(effect)))
}

fn target_text(effect: &Effect) -> String {
    match &effect.target {
        Target::Path(path) => path_text(path),
        Target::Program(program) => match program.origin {
            CodeOrigin::Known | CodeOrigin::Unknown | CodeOrigin::Defined | CodeOrigin::File => program.name.clone(),
            CodeOrigin::Project => format!("project code ({})", program.name),
            CodeOrigin::Inline => format!("code in the command ({})", program.name),
            CodeOrigin::Fetched => format!("downloaded code ({})", program.name),
        },
        Target::Host(host) => host.shown.clone(),
        Target::Text(text) => text.clone(),
    }
}

fn path_text(path: &PathTarget) -> String {
    let below = below(path.tree);
    match (&path.names, &path.below) {
        (Names::Exact(name) | Names::Glob(name) | Names::Below(name), TreeNames::Any(why)) => {
            format!("any file below {name} ({why})")
        }
        (names, _) => match names {
            Names::Exact(name) => format!("{name}{below}"),
            Names::Glob(pattern) => format!("files matching {pattern}{below}"),
            Names::Below(directory) => format!("files below {directory}"),
            Names::Unknown(why) => format!("an unknown path ({why})"),
        },
    }
}

fn below(tree: bool) -> &'static str {
    if tree { " and everything below" } else { "" }
}

/// The exact target of an effect: a path as it was resolved. Grants are bound to this text.
pub fn exact_target(placed: &PlacedEffect) -> String {
    let PlacedEffect { effect, place } = placed;
    match (&effect.target, place) {
        (Target::Path(target), Some(place)) if place.rest == Rest::Nothing => {
            format!("{}{}", lossless(&place.resolved), below(target.tree))
        }
        (Target::Path(target), _) => path_text(target),
        (Target::Program(program), _) => program.name.clone(),
        (Target::Host(host), _) => host.name.clone().unwrap_or_else(|| host.shown.clone()),
        (Target::Text(text), _) => text.clone(),
    }
}

/// A path as text, different for different paths.
fn lossless(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

/// The special properties of an effect in brackets; empty if there are none.
pub fn remarks(placed: &PlacedEffect) -> String {
    let mut remarks: Vec<&str> = placed.effect.marks.iter().filter_map(|mark| remark(*mark)).collect();
    match placed.place.as_ref().map(|place| (&place.zone, place.traversal)) {
        Some((_, true)) => remarks.push("leaves the project"),
        Some((Zone::Outside, false)) => remarks.push("outside the project"),
        _ => {}
    }
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) }
}

fn remark(mark: Mark) -> Option<&'static str> {
    match mark {
        Mark::Destructive => Some("cannot be undone"),
        Mark::Elsewhere => Some("on another machine or in a container"),
        Mark::Credentials => Some("shows secrets"),
        Mark::Environment => Some("environment variable changes what runs"),
        Mark::Shared => Some("directory is writable by everyone"),
        Mark::Redirection
        | Mark::ProjectCode
        | Mark::OwnFiles
        | Mark::Inside
        | Mark::Recoverable
        | Mark::Expendable
        | Mark::Metadata => None,
    }
}

/// The words of a command as they will run, quoted for a shell, with unknown parts in angle brackets.
pub fn command(part: &Part) -> String {
    let shown: Vec<String> = part
        .words
        .iter()
        .map(|word| match word {
            Word::Known(text) => shell_word(text).into_owned(),
            Word::Glob(pattern) => pattern.clone(),
            Word::Below { directory, .. } => format!("⟨below {directory}⟩"),
            Word::Partly { prefix, why, .. } => format!("{prefix}⟨{why}⟩"),
            Word::Unknown { why, .. } => format!("⟨{why}⟩"),
        })
        .collect();
    visible(&shown.join(" "))
}
