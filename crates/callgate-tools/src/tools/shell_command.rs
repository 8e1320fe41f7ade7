//! `shell_command`: runs a text in a shell.

use serde::Deserialize;
use serde_json::json;

use super::shell::with_directory;
use super::shell_exec::{Options, common, shell_words, to_end};
use crate::result::{ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

pub(super) fn spec() -> ToolSpec {
    let command = json!({"type": "string", "minLength": 1, "description": "The command, as text for sh"});
    let schema = object(common(with_directory(command)), &["command"]);
    ToolSpec::new("shell_command", "Run a command in a shell and wait for its end", schema)
        .claims(true, Idempotency::Unknown)
}

#[derive(Debug, Deserialize)]
struct Arguments {
    command: String,
    #[serde(flatten)]
    options: Options,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { command, options } = run.arguments()?;
    to_end(run, shell_words(&command), &options)
}
