//! `file_write`: puts a text in place of a file.

use serde::Deserialize;
use serde_json::json;

use crate::files::{self, Replacement};
use crate::result::{ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "path": {"type": "string", "minLength": 1, "description": "The file"},
        "content": {"type": "string", "description": "Its new contents"},
        "create_dirs": {"type": "boolean", "description": "Make directories that are missing; true unless said"},
        "mkdirs": {"type": "boolean", "description": "The same under another name"},
        "sandbox_permissions": {"type": "string", "enum": ["restricted", "require_escalated"], "description": "Ask for more rights than the sandbox gives"},
        "justification": {"type": "string", "description": "Why this is needed, for whoever is asked"},
    });
    ToolSpec::new("file_write", "Write a text file, all of it at once", object(properties, &["path", "content"]))
        .claims(true, Idempotency::Unsafe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default, alias = "mkdirs")]
    create_dirs: Option<bool>,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { path, content, create_dirs } = run.arguments()?;
    let place = run.path(&path)?;
    let (parent, name) =
        if create_dirs.unwrap_or(true) { files::parent_or_create(&place) } else { files::parent(&place) }?;
    Replacement::prepare(&parent, &name, &place, content.as_bytes())?.place(&name, &place)?;
    let bytes = content.len();
    Ok(ToolResult::text(format!("wrote {bytes} bytes\n")).data(json!({"path": path, "bytes": bytes})))
}
