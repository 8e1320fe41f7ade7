//! `write_stdin`: types into the terminal of a session, or only looks what it has printed.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::exec_command::{result, wait};
use crate::exec::output_bytes;
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::{Run, Shared};
use crate::spec::{Idempotency, ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "session_id": {"type": "integer", "minimum": 1, "description": "The session_id that exec_command returned"},
        "chars": {"type": "string", "description": "What to type; nothing only reads"},
        "yield_time_ms": {"type": "integer", "minimum": 0, "description": "How long to wait for output or the end; 50 unless said"},
        "max_output_tokens": {"type": "integer", "minimum": 1, "description": "How much output to return; the end of it is kept"},
    });
    ToolSpec::new(
        "write_stdin",
        "Type into a running command and read what it prints",
        object(properties, &["session_id"]),
    )
    .claims(true, Idempotency::Unknown)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    session_id: u64,
    #[serde(default)]
    chars: String,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<u64>,
}

/// Nobody is asked about a session that does not exist.
pub(super) fn check(input: &Value, shared: &Shared) -> Result<(), ToolError> {
    let id = input.get("session_id").and_then(Value::as_u64).unwrap_or_default();
    if shared.sessions.has(id) {
        return Ok(());
    }
    Err(ToolError::new(ErrorKind::NotFound, "session not found").data(json!({"session_id": id})))
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { session_id, chars, yield_time_ms, max_output_tokens } = run.arguments()?;
    let sessions = &run.shared().sessions;
    let output = sessions.exchange(session_id, &chars, wait(yield_time_ms), output_bytes(max_output_tokens))?;
    Ok(result(session_id, output, Map::new(), false))
}
