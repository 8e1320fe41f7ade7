//! `view_image`: a picture as data.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use serde::Deserialize;
use serde_json::json;

use super::file_read::missing;
use crate::files;
use crate::result::{ToolError, ToolResult, io_error};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

/// The largest picture.
const MAXIMUM: u64 = 5 * 1024 * 1024;

pub(super) fn spec() -> ToolSpec {
    let properties = json!({"path": {"type": "string", "minLength": 1, "description": "The picture"}});
    ToolSpec::new("view_image", "Look at a picture (png, jpeg, gif, webp)", object(properties, &["path"]))
        .claims(false, Idempotency::Safe)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { path } = run.arguments()?;
    let place = run.path(&path)?;
    let file = files::regular(&place).map_err(|error| missing(error, "path", &path))?;
    let mut bytes = Vec::new();
    file.take(MAXIMUM.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| io_error("read", Path::new(&path), &error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAXIMUM) {
        let data = json!({"path": path, "bytes": bytes.len(), "max_bytes": MAXIMUM});
        return Err(ToolError::validation(format!("the picture is larger than {MAXIMUM} bytes")).data(data));
    }
    let suffix = place.extension().map(|suffix| suffix.to_ascii_lowercase());
    let mime = match suffix.as_ref().and_then(|suffix| suffix.to_str()) {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ => "application/octet-stream",
    };
    let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(ToolResult::text("").data(json!({"path": path, "mime": mime, "base64": encoded, "bytes": bytes.len()})))
}
