//! `list_dir`: the names in a directory and below.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::files::{self, EntryKind};
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

/// The most names that are looked at.
const MAXIMUM: usize = 2_000_000;

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "dir_path": {"type": "string", "minLength": 1, "description": "The directory"},
        "depth": {"type": "integer", "minimum": 1, "description": "How many levels; 2 unless said"},
        "offset": {"type": "integer", "minimum": 1, "description": "The first entry to return, counted from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many entries to return; 25 unless said"},
    });
    ToolSpec::new("list_dir", "List the names in a directory, hidden ones left out", object(properties, &["dir_path"]))
        .claims(false, Idempotency::Safe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    dir_path: String,
    #[serde(default)]
    depth: Option<u64>,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { dir_path, depth, offset, limit } = run.arguments()?;
    let (depth, offset, limit) = (depth.unwrap_or(2), offset.unwrap_or(1), limit.unwrap_or(25));
    let root = run.path(&dir_path)?;
    let opened = files::directory(&root).map_err(|error| match files::failed("open", &root, error) {
        missing if missing.kind == ErrorKind::NotFound && root.symlink_metadata().is_ok() => {
            ToolError::validation(format!("not a directory: {dir_path}"))
        }
        missing if missing.kind == ErrorKind::NotFound => {
            ToolError::new(ErrorKind::NotFound, format!("directory not found: {dir_path}"))
        }
        other => other,
    });
    let opened = opened.map_err(|error| error.data(json!({"dir_path": dir_path})))?;
    let mut found = collect(opened, depth)?;
    found.sort_unstable();
    let total = found.len();
    let first = offset.saturating_sub(1);
    if first > 0 && first >= total {
        let data = json!({"dir_path": root, "offset": offset, "total": total});
        return Err(ToolError::validation("offset exceeds directory entry count").data(data));
    }
    let truncated = first.saturating_add(limit) < total;
    let shown: Vec<&(String, EntryKind)> = found.iter().skip(first).take(limit).collect();
    let mut text = format!("Absolute path: {}\n", root.display());
    for (path, kind) in &shown {
        text.push_str(path);
        text.push_str(match kind {
            EntryKind::File => "\n",
            EntryKind::Directory => "/\n",
            EntryKind::Symlink => "@\n",
            EntryKind::Other => "?\n",
        });
    }
    if truncated {
        text.push_str(&format!("More than {limit} entries found\n"));
    }
    let entries: Vec<_> = shown
        .iter()
        .map(|(path, kind)| json!({"rel_path": path, "abs_path": root.join(path), "type": kind.as_str()}))
        .collect();
    let data = json!({
        "dir_path": root, "depth": depth, "offset": offset, "limit": limit, "total": total, "entries": entries,
    });
    Ok(ToolResult::text(text).truncated(truncated).data(data))
}

/// The names down to a depth, with `/` between the levels. What cannot be read is left out, as by every other program.
fn collect(root: OwnedFd, depth: u64) -> Result<Vec<(String, EntryKind)>, ToolError> {
    let mut found = Vec::new();
    // Inner directories are opened when it is their turn, so that few are open at once.
    let mut waiting: Vec<(Arc<OwnedFd>, Option<OsString>, PathBuf, u64)> =
        vec![(Arc::new(root), None, PathBuf::new(), 1)];
    while let Some((above, name, path, level)) = waiting.pop() {
        let directory = match name {
            None => above,
            Some(name) => match files::inner(&above, &name) {
                Ok(inner) => Arc::new(inner),
                Err(_) => continue,
            },
        };
        for entry in files::entries(&*directory).unwrap_or_default() {
            if entry.is_hidden() {
                continue;
            }
            let path = path.join(&entry.name);
            found.push((path.to_string_lossy().into_owned(), entry.kind));
            if entry.kind == EntryKind::Directory && level < depth {
                waiting.push((Arc::clone(&directory), Some(entry.name), path, level.saturating_add(1)));
            }
            if found.len() > MAXIMUM {
                return Err(ToolError::validation(format!("there are more than {MAXIMUM} names; list a part of it")));
            }
        }
    }
    Ok(found)
}
