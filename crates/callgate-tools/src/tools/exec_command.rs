//! `exec_command`: starts a command in a terminal that later calls write to and read from.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::shell_exec::{Options, common, program, shell_words};
use crate::exec::{SessionOutput, output_bytes};
use crate::result::{ErrorKind, ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

/// How long a call waits for output unless it says.
pub(super) const YIELD: u64 = 50;
/// The longest time that a call waits for output.
const LONGEST_YIELD: u64 = 10 * 60 * 1000;

pub(super) fn spec() -> ToolSpec {
    let properties = json!({
        "cmd": {"type": "string", "minLength": 1, "description": "The command, as text for sh"},
        "workdir": {"type": "string", "description": "The working directory; the workspace unless said"},
        "yield_time_ms": {"type": "integer", "minimum": 0, "description": "How long to wait for output or the end; 50 unless said"},
        "max_output_tokens": {"type": "integer", "minimum": 1, "description": "How much output to return; the end of it is kept"},
        "tty": {"type": "boolean", "description": "Accepted and not used: there always is a terminal"},
    });
    let text = "Start a command in a terminal. Returns a session_id while it runs; write_stdin types into it and reads what it prints";
    ToolSpec::new("exec_command", text, object(common(properties), &["cmd"])).claims(true, Idempotency::Unknown)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    cmd: String,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<u64>,
    #[serde(flatten)]
    options: Options,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { cmd, yield_time_ms, max_output_tokens, options } = run.arguments()?;
    let (program, data) = program(run, shell_words(&cmd), &options, None)?;
    let shared = run.shared();
    let id = shared.sessions.start(program)?;
    // Whether this covers what is typed later is said in the policy.
    if let Err(error) = shared.gate.exec_started(run.plan(), id.to_string()) {
        shared.sessions.end(id);
        return Err(ToolError::new(ErrorKind::Unknown, format!("cannot record the session: {error}")));
    }
    let output = shared.sessions.exchange(id, "", wait(yield_time_ms), output_bytes(max_output_tokens))?;
    Ok(result(id, output, data, run.plan().fence().is_some()))
}

pub(super) fn wait(milliseconds: Option<u64>) -> Duration {
    Duration::from_millis(milliseconds.unwrap_or(YIELD).min(LONGEST_YIELD))
}

/// What a call about a session returns.
pub(super) fn result(id: u64, output: SessionOutput, mut data: Map<String, Value>, contained: bool) -> ToolResult {
    let running = output.ended.is_none();
    data.insert("session_id".to_owned(), if running { json!(id) } else { Value::Null });
    data.insert("running".to_owned(), json!(running));
    let mut result = ToolResult::text(output.text).truncated(output.truncated);
    result.exit_code = None;
    if let Some(report) = output.ended {
        result.exit_code = report.code;
        result.error_kind = report.error_kind(contained);
        result.held_back = report.held_back;
        if let Some((reason, _)) = report.denied {
            result.stderr = reason;
        }
        result.ok = result.error_kind.is_none();
    }
    result.data(Value::Object(data))
}
