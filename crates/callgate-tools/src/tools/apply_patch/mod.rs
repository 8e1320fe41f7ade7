//! `apply_patch`: adds, updates, moves and deletes files, all of them or none.

mod commit;
mod patch;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::files;
use crate::result::{ErrorKind, ToolError, ToolResult, io_error};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

use commit::{Step, commit};
use patch::{Operation, Section};

/// The largest file that is changed.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(super) fn spec() -> ToolSpec {
    let about = "The patch: sections `*** Add File: P`, `*** Update File: P` (`*** Move to: Q`, hunks behind `@@`) and `*** Delete File: P` between `*** Begin Patch` and `*** End Patch`";
    let properties = json!({"input": {"type": "string", "description": about}});
    ToolSpec::new(
        "apply_patch",
        "Change files with a patch: all of it is applied, or nothing",
        object(properties, &["input"]),
    )
    .claims(true, Idempotency::Unsafe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    input: String,
}

/// The files of the patch as they will be: their text, or nothing where they are gone.
#[derive(Default)]
struct Tree {
    files: BTreeMap<PathBuf, Option<String>>,
    /// What was there before, for those that were read.
    before: BTreeMap<PathBuf, commit::Seen>,
}

impl Tree {
    /// The text of a file, after what the patch has done so far.
    fn text(&mut self, path: &Path, named: &str) -> Result<String, ToolError> {
        let gone = || ToolError::new(ErrorKind::NotFound, format!("file not found: {named}"));
        if let Some(text) = self.files.get(path) {
            return text.clone().ok_or_else(gone);
        }
        let mut file =
            files::regular(path).map_err(|error| if error.kind == ErrorKind::NotFound { gone() } else { error })?;
        let failed = |error: std::io::Error| io_error("read", Path::new(named), &error);
        let seen = commit::Seen::of(&file).map_err(failed)?;
        let mut bytes = Vec::new();
        file.by_ref().take(LARGEST.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
            return Err(ToolError::validation(format!("{named} is larger than {LARGEST} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| ToolError::validation(format!("{named} is not UTF-8 text")))?;
        self.before.insert(path.to_owned(), seen);
        Ok(text)
    }

    /// Whether there is something at a path, whatever it is.
    fn exists(&self, path: &Path) -> bool {
        self.files.get(path).map_or_else(|| path.symlink_metadata().is_ok(), Option::is_some)
    }
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { input } = run.arguments()?;
    let sections = patch::parse(&input).map_err(ToolError::validation)?;
    let mut tree = Tree::default();
    let mut steps = Vec::new();
    let mut changes = Vec::new();
    for Section { path: named, operation } in sections {
        let path = run.path(named)?;
        match operation {
            Operation::Add(text) => {
                if tree.exists(&path) {
                    return Err(ToolError::validation(format!("file already exists: {named}")));
                }
                steps.push(Step::Add(path.clone()));
                tree.files.insert(path, Some(text));
                changes.push(json!({"kind": "add", "path": named}));
            }
            Operation::Delete => {
                tree.text(&path, named)?;
                steps.push(Step::Delete(path.clone()));
                tree.files.insert(path, None);
                changes.push(json!({"kind": "delete", "path": named}));
            }
            Operation::Update { hunks, moved } => {
                let text = tree.text(&path, named)?;
                let text =
                    patch::apply(&text, &hunks).map_err(|why| ToolError::validation(format!("{named}: {why}")))?;
                match moved {
                    None => {
                        steps.push(Step::Update(path.clone()));
                        tree.files.insert(path, Some(text));
                        changes.push(json!({"kind": "update", "path": named}));
                    }
                    Some(target) => {
                        let to = run.path(target)?;
                        if tree.exists(&to) {
                            return Err(ToolError::validation(format!("move target already exists: {target}")));
                        }
                        steps.push(Step::Move(path.clone(), to.clone()));
                        tree.files.insert(path, None);
                        tree.files.insert(to.clone(), Some(text));
                        changes.push(json!({"kind": "update", "path": named, "moved_to": to}));
                        changes.push(json!({"kind": "move", "path": named, "moved_to": to}));
                    }
                }
            }
        }
    }
    commit(steps, &tree)?;
    let count = |kind: &str| {
        let is_kind = |change: &&Value| change.get("kind").and_then(Value::as_str) == Some(kind);
        changes.iter().filter(is_kind).count()
    };
    let text = format!(
        "apply_patch ok: add={} update={} delete={} move={}\n",
        count("add"),
        count("update"),
        count("delete"),
        count("move")
    );
    Ok(ToolResult::text(text).data(json!({"changes": changes})))
}
