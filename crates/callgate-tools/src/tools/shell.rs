//! `shell`: `shell_exec` under the names of another agent.

use serde::Deserialize;
use serde_json::{Value, json};

use super::shell_exec::{Options, common, limits, to_end};
use crate::result::{ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let command = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The program and its arguments"});
    let schema = object(common(with_directory(command)), &["command"]);
    ToolSpec::new("shell", "Run a program with its arguments and wait for its end", schema)
        .claims(true, Idempotency::Unknown)
}

/// A command, where it runs, and what limits it.
pub(super) fn with_directory(command: Value) -> Value {
    let mut properties = json!({
        "command": command,
        "workdir": {"type": "string", "description": "The working directory; the workspace unless said"},
    });
    if let (Some(all), Value::Object(limits)) = (properties.as_object_mut(), limits()) {
        all.extend(limits);
    }
    properties
}

#[derive(Debug, Deserialize)]
struct Arguments {
    command: Vec<String>,
    #[serde(flatten)]
    options: Options,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { command, options } = run.arguments()?;
    to_end(run, command, &options)
}
