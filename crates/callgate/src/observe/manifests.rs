//! Compares edits of manifests with what is there, key by key: a new version or description runs nothing.

use std::collections::BTreeSet;
use std::path::Path;

use callgate_model::description::{Description, FileEdit};
use callgate_model::effect::{Action, Mark, Names, Target};
use callgate_shell::programs::matches_glob;
use serde_json::Value;

use super::recoverable::is_plain;
use super::settings_keys::{document, part_of_key};
use crate::path::file_system::FileSystem;

/// The keys that only describe a package.
const DESCRIBING: &str = include_str!("manifests.txt");
/// Longer files are not compared.
const LONGEST_FILE: usize = 1 << 20;
/// How many keys a reason names.
const SHOWN_KEYS: usize = 3;

/// Marks the edits that only describe a package, and notes the keys that others change.
pub(super) fn examine(description: &mut Description, file_system: &dyn FileSystem) {
    for part in &mut description.parts {
        for edit in std::mem::take(&mut part.edits) {
            let is_written = |target: &Target| matches!(target, Target::Path(target) if target.names == Names::Exact(edit.path.clone()));
            let mut writes = part.effects.iter_mut().filter(|placed| placed.effect.action == Action::Write);
            let Some(placed) = writes.find(|placed| is_written(&placed.effect.target)) else { continue };
            let Some(place) = placed.place.as_ref().filter(|place| is_plain(place)) else { continue };
            let Some(changed) = changed_keys(&place.resolved, &edit, file_system) else { continue };
            if changed.is_empty() {
                placed.effect.marks.push(Mark::Metadata);
                placed.effect.marks.sort();
            } else {
                let shown: Vec<&str> = changed.iter().take(SHOWN_KEYS).map(String::as_str).collect();
                let more = if changed.len() > SHOWN_KEYS { ", …" } else { "" };
                placed.effect.because = format!("changes {}{more}", shown.join(", "));
            }
        }
    }
}

/// The keys that an edit of a manifest changes beside those that describe the package; `None` if that is not known.
fn changed_keys(path: &Path, edit: &FileEdit, file_system: &dyn FileSystem) -> Option<BTreeSet<String>> {
    let name = path.file_name()?.to_str()?;
    let lines = DESCRIBING.lines().filter(|line| !line.starts_with('#'));
    let known: Vec<&str> = lines
        .filter_map(|line| line.split_once(' ').filter(|(file, _)| *file == name))
        .flat_map(|(_, keys)| keys.split(' '))
        .collect();
    if known.is_empty() {
        return None;
    }
    let old = String::from_utf8(file_system.read(path, LONGEST_FILE).ok()??).ok()?;
    let new = edit.change.apply(&old).filter(|new| new.len() <= LONGEST_FILE)?;
    let mut changed = BTreeSet::new();
    compare(&document(path, &old)?, &document(path, &new)?, &mut changed)?;
    changed.retain(|key| !known.iter().any(|glob| matches_glob(glob, key)));
    Some(changed)
}

/// Adds the keys in which two documents differ; `None` if a name could be taken for several.
fn compare(old: &Value, new: &Value, changed: &mut BTreeSet<String>) -> Option<()> {
    let mut open = vec![(String::new(), Some(old), Some(new))];
    while let Some((front, old, new)) = open.pop() {
        if old == new {
            continue;
        }
        let members =
            |value: Option<&Value>| value.and_then(Value::as_object).filter(|members| !members.is_empty()).is_some();
        // An object in place of nothing, or the other way round, is all of its keys.
        let both = old.is_none_or(Value::is_object) && new.is_none_or(Value::is_object);
        if !both || !members(old) && !members(new) {
            changed.insert(front);
            continue;
        }
        let keys = [old, new].into_iter().flatten().filter_map(Value::as_object).flat_map(serde_json::Map::keys);
        for key in keys.collect::<BTreeSet<_>>() {
            let name = part_of_key(key)?;
            let name = if front.is_empty() { name } else { format!("{front}.{name}") };
            open.push((name, old.and_then(|old| old.get(key)), new.and_then(|new| new.get(key))));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::path::file_system::fake::Fake;
    use crate::policy::{Decision, Policy};
    use crate::{Call, Gate};

    const PACKAGE: &str = r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "a"}, "author": {"name": "b"}}"#;
    const CARGO: &str = "[package]\nname = \"x\"\nversion = \"1.0.0\"\n\n[dependencies]\na = \"1.0.0\"\n";
    const PYTHON: &str =
        "[project]\nversion = \"1.0.0\"\n[project.scripts]\nx = \"a:b\"\n[build-system]\nrequires = []\n";

    fn assess(tool: &str, input: Value) -> (Decision, String) {
        let files = Fake::new().contents("/w/package.json", PACKAGE).contents("/w/Cargo.toml", CARGO);
        let files = files.contents("/w/pyproject.toml", PYTHON).contents("/w/composer.json", PACKAGE);
        let files = files.link("/w/link/package.json", "/w/package.json").contents("/w/Makefile", "version: x\n");
        let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).file_system(files).build();
        let assessment = gate.assess(&Call::new(tool, input).directory("/w").workspace("/w")).unwrap();
        (assessment.ruling().decision, assessment.ruling().reason.clone())
    }

    fn edit(file: &str, old: &str, new: &str) -> Value {
        json!({"file_path": format!("/w/{file}"), "old_string": old, "new_string": new})
    }

    #[test]
    fn what_only_describes_a_package_is_silent() {
        for (tool, input) in [
            ("Edit", edit("package.json", "1.0.0", "1.0.1")),
            ("Edit", edit("package.json", r#""name": "b""#, r#""name": "c""#)),
            ("Edit", edit("package.json", r#""version""#, r#""description": "y", "license": "MIT", "version""#)),
            ("Edit", edit("Cargo.toml", "version = \"1.0.0\"", "version = \"1.0.1\"\ndescription = \"y\"")),
            ("Edit", edit("pyproject.toml", "1.0.0", "2.0.0")),
            ("Edit", edit("composer.json", "1.0.0", "1.0.1")),
            ("Write", json!({"file_path": "/w/package.json", "content": PACKAGE.replace("1.0.0", "2.0.0")})),
            (
                "MultiEdit",
                json!({"file_path": "/w/package.json", "edits": [{"old_string": "1.0.0", "new_string": "1.1.0"},
                {"old_string": "1.1.0", "new_string": "1.2.0"}]}),
            ),
            (
                "str_replace_editor",
                json!({"command": "str_replace", "path": "/w/package.json", "old_str": "1.0.0", "new_str": "1.1.0"}),
            ),
            (
                "apply_patch",
                json!({"input": "*** Begin Patch\n*** Update File: Cargo.toml\n@@\n name = \"x\"\n-version = \"1.0.0\"\n+version = \"1.1.0\"\n*** End Patch"}),
            ),
        ] {
            assert_eq!(
                assess(tool, input.clone()).0,
                Decision::Allow,
                "{tool} {input}: {:?}",
                assess(tool, input.clone())
            );
        }
    }

    #[test]
    fn other_keys_are_asked_about_by_name() {
        for (tool, input, key) in [
            ("Edit", edit("package.json", r#""test": "a""#, r#""test": "curl x""#), "changes scripts.test in"),
            ("Edit", edit("package.json", r#""version""#, r#""scripts2": 1, "version""#), "changes scripts2 in"),
            (
                "Edit",
                edit("package.json", r#""version": "1.0.0""#, r#""version": "2", "main": "x""#),
                "changes main in",
            ),
            (
                "Edit",
                edit("package.json", r#", "author": {"name": "b"}"#, r#", "bin": {"x": "y"}"#),
                "changes bin.x in",
            ),
            ("Edit", edit("Cargo.toml", "a = \"1.0.0\"", "a = \"1.0.1\""), "changes dependencies.a in"),
            ("Edit", edit("Cargo.toml", "name = \"x\"", "name = \"x\"\nbuild = \"x.rs\""), "changes package.build in"),
            ("Edit", edit("pyproject.toml", "requires = []", "requires = [\"x\"]"), "changes build-system.requires in"),
            ("Write", json!({"file_path": "/w/package.json", "content": "{}"}), "changes name, scripts.test in"),
            (
                "apply_patch",
                json!({"input": "*** Begin Patch\n*** Update File: Cargo.toml\n@@\n-a = \"1.0.0\"\n+a = \"2\"\n*** End Patch"}),
                "changes dependencies.a",
            ),
            // what is not certain to become of the file
            ("Edit", edit("Cargo.toml", "1.0.0", "1.0.1"), "writes"),
            ("Edit", edit("package.json", "none", "1.0.1"), "writes"),
            ("Edit", edit("package.json", "1.0.0", "1\\u0022"), "writes"),
            ("Edit", edit("package.json", "1.0.0", "1\", \"version\": \"2"), "writes"),
            ("Edit", edit("package.json", "{\"name\"", "\"name\""), "writes"),
            ("Edit", edit("link/package.json", "1.0.0", "1.0.1"), "writes"),
            ("Edit", edit("Makefile", "version", "x"), "writes"),
            ("edit_file", json!({"target_file": "/w/package.json", "code_edit": PACKAGE}), "writes"),
            (
                "Edit",
                json!({"file_path": "/w/package.json", "old_string": "1.0.0", "new_string": "1", "code_edit": "x"}),
                "writes",
            ),
            ("Write", json!({"file_path": "/w/sub/package.json", "content": "{}"}), "writes"),
        ] {
            let (decision, reason) = assess(tool, input.clone());
            assert_eq!(decision, Decision::Ask, "{tool} {input}");
            assert!(reason.starts_with(key), "{tool} {input}: {reason}");
        }
    }
}
