//! `file_read`: the contents of a file.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::files;
use crate::result::{ErrorKind, ToolError, ToolResult, io_error};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

const CUT: &str = "\n...<truncated>\n";

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "path": {"type": "string", "minLength": 1, "description": "The file"},
        "max_bytes": {"type": "integer", "minimum": 1, "description": "How much of it; of a longer file, the beginning and the end are returned"},
    });
    ToolSpec::new("file_read", "Read a text file", object(properties, &["path"])).claims(false, Idempotency::Safe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    #[serde(default)]
    max_bytes: Option<u64>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { path, max_bytes } = run.arguments()?;
    let place = run.path(&path)?;
    let limit = max_bytes.unwrap_or(run.settings().maximum_file).min(run.settings().maximum_file.max(64 << 20));
    let file = files::regular(&place).map_err(|error| missing(error, "path", &path))?;
    let (text, truncated) = ends(file, limit).map_err(|error| io_error("read", Path::new(&path), &error))?;
    Ok(ToolResult::text(text).truncated(truncated).data(json!({"path": path})))
}

/// Says which argument named the missing file.
pub(super) fn missing(error: ToolError, name: &str, path: &str) -> ToolError {
    match error.kind {
        ErrorKind::NotFound => {
            ToolError::new(ErrorKind::NotFound, format!("file not found: {path}")).data(json!({name: path}))
        }
        _ => error.data(json!({name: path})),
    }
}

/// All of a file, or its beginning and its end if it is longer than `limit`.
fn ends(mut file: std::fs::File, limit: u64) -> std::io::Result<(String, bool)> {
    let size = file.metadata()?.len();
    let mut start = Vec::new();
    if size <= limit {
        // it may be growing, and some files do not tell their size
        let length = file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut start)?;
        let whole = u64::try_from(length).is_ok_and(|length| length <= limit);
        start.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        return Ok((String::from_utf8_lossy(&start).into_owned(), !whole));
    }
    let first = limit.div_euclid(2);
    let last = limit.saturating_sub(first);
    file.by_ref().take(first).read_to_end(&mut start)?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(size.saturating_sub(last)))?;
    file.take(last).read_to_end(&mut end)?;
    Ok((format!("{}{CUT}{}", String::from_utf8_lossy(&start), String::from_utf8_lossy(&end)), true))
}
