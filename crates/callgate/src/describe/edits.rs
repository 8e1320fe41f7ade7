//! Reads the new contents of a file from a call that writes it, where the tool leaves no doubt about them.

use callgate_model::description::{FileChange, FileEdit, Part, Replacement};
use callgate_model::effect::{Action, Names, Target};
use callgate_shell::patch;
use serde_json::{Map, Value};

use super::collect::Collector;
use super::role::{Role, ToolEntry};

const CONTENTS: [&str; 3] = ["content", "contents", "file_text"];
const OLD: [&str; 4] = ["old_string", "oldString", "old_str", "old_text"];
const NEW: [&str; 4] = ["new_string", "newString", "new_str", "new_text"];
const ALL: [&str; 2] = ["replace_all", "replaceAll"];
/// Parameters that say nothing about the contents.
const NOTES: [&str; 5] = ["instruction", "instructions", "explanation", "description", "expected_replacements"];

/// The edit of the only file that a call writes; `None` if anything about it is unusual.
pub(super) fn read(entry: &ToolEntry, fields: &Map<String, Value>, part: &Part) -> Option<FileEdit> {
    if part.effects.iter().any(|placed| !matches!(placed.effect.action, Action::Read | Action::Write)) {
        return None;
    }
    let mut writes = part.effects.iter().filter(|placed| placed.effect.action == Action::Write);
    let (written, None) = (writes.next()?, writes.next()) else { return None };
    let Target::Path(target) = &written.effect.target else { return None };
    let Names::Exact(path) = &target.names else { return None };
    let says_nothing =
        |name: &&str| NOTES.contains(name) || *name == "command" || matches!(entry.role(name), Some(Role::Path(_)));
    let mut names: Vec<&str> = fields.keys().map(String::as_str).filter(|name| !says_nothing(name)).collect();
    names.sort_unstable();
    let command = fields.get("command").map(|command| command.as_str().unwrap_or_default());
    let change = match (names.as_slice(), command) {
        ([name], None | Some("create")) if CONTENTS.contains(name) => {
            FileChange::Whole(plain(fields.get(*name)?)?.to_owned())
        }
        (["edits"], None) => {
            let edits = fields.get("edits")?.as_array()?.iter();
            FileChange::Replaced(edits.map(|edit| replacement(edit.as_object()?, &[])).collect::<Option<_>>()?)
        }
        (_, None | Some("str_replace")) => FileChange::Replaced(vec![replacement(fields, &{
            let other = fields.keys().map(String::as_str).filter(says_nothing);
            other.collect::<Vec<_>>()
        })?]),
        _ => return None,
    };
    Some(FileEdit { path: path.clone(), change })
}

/// The edits of the files that a patch updates.
pub(super) fn of_patch(entry: &ToolEntry, fields: &Map<String, Value>, collector: &Collector<'_>) -> Vec<FileEdit> {
    let mut patches = fields.iter().filter(|(name, _)| entry.role(name) == Some(Role::Patch));
    let (Some((_, patch)), None) = (patches.next(), patches.next()) else { return Vec::new() };
    let updates = plain(patch).map(patch::updates).unwrap_or_default();
    let edit = |(name, blocks): (String, Vec<(String, String)>)| {
        let replacements = blocks.into_iter().map(|(old, new)| Replacement { old, new, all: false });
        FileEdit { path: collector.joined(&name), change: FileChange::Replaced(replacements.collect()) }
    };
    updates.into_iter().map(edit).collect()
}

/// One text in place of another; `None` if there is anything else beside `others`.
fn replacement(fields: &Map<String, Value>, others: &[&str]) -> Option<Replacement> {
    let mut old = None;
    let mut new = None;
    let mut all = false;
    for (name, value) in fields.iter().filter(|(name, _)| !others.contains(&name.as_str())) {
        match name.as_str() {
            name if OLD.contains(&name) && old.is_none() => old = Some(plain(value)?),
            name if NEW.contains(&name) && new.is_none() => new = Some(plain(value)?),
            name if ALL.contains(&name) => all |= value.as_bool()?,
            _ => return None,
        }
    }
    Some(Replacement { old: old?.to_owned(), new: new?.to_owned(), all })
}

/// Text that no tool changes: some repair escapes that they take for mistakes.
fn plain(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.contains('\\'))
}
