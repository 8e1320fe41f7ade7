//! `shell_exec`: runs a program with its arguments.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::exec::{Program, run_to_end, sandbox_data};
use crate::result::{ToolError, ToolResult};
use crate::run::Run;
use crate::spec::{Idempotency, ToolSpec, object};

/// The parameters that all tools have which start programs.
pub(super) fn common(mut properties: Value) -> Value {
    let shared = json!({
        "sandbox": {"type": "string", "enum": ["inherit", "restricted", "none"], "description": "Where it runs: as the policy says, only contained, or free (a right that is asked for)"},
        "sandbox_permissions": {"type": "string", "enum": ["restricted", "require_escalated"], "description": "Ask for more rights than the sandbox gives"},
        "justification": {"type": "string", "description": "Why this is needed, for whoever is asked"},
    });
    if let (Some(all), Value::Object(shared)) = (properties.as_object_mut(), shared) {
        all.extend(shared);
    }
    properties
}

/// The variables and the time limit of a program that runs to its end.
pub(super) fn limits() -> Value {
    json!({
        "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Variables beside those it gets anyway"},
        "timeout_ms": {"type": "integer", "minimum": 1, "description": "After how long it is ended; 60000 unless said"},
    })
}

pub(super) fn spec() -> ToolSpec {
    let mut properties = json!({
        "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The program and its arguments"},
        "cwd": {"type": "string", "description": "The working directory; the workspace unless said"},
        "tty": {"type": "boolean", "description": "Accepted and not used; exec_command has a terminal"},
    });
    if let (Some(all), Value::Object(limits)) = (properties.as_object_mut(), limits()) {
        all.extend(limits);
    }
    let schema = object(common(properties), &["argv"]);
    ToolSpec::new("shell_exec", "Run a program with its arguments, without a shell, and wait for its end", schema)
        .claims(true, Idempotency::Unknown)
}

/// What a program is started with, whatever the tool calls it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Options {
    #[serde(default, alias = "workdir")]
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub sandbox: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    argv: Vec<String>,
    #[serde(flatten)]
    options: Options,
}

pub(super) fn run(run: &Run<'_>) -> Result<ToolResult, ToolError> {
    let Arguments { argv, options } = run.arguments()?;
    to_end(run, argv, &options)
}

/// Runs words, or the text that must run in their place, to their end.
pub(super) fn to_end(run: &Run<'_>, words: Vec<String>, options: &Options) -> Result<ToolResult, ToolError> {
    let timeout = options.timeout_ms.map_or(run.settings().default_timeout, Duration::from_millis);
    let (program, data) = program(run, words, options, Some(timeout))?;
    run_to_end(program, timeout, data)
}

/// The program as it was judged, and what its result says about the sandbox.
pub(super) fn program(
    run: &Run<'_>,
    words: Vec<String>,
    options: &Options,
    time: Option<Duration>,
) -> Result<(Program, Map<String, Value>), ToolError> {
    let words = match run.plan().rewritten() {
        Some(text) => shell_words(text),
        None => words,
    };
    let directory = directory(run, options.cwd.as_deref())?;
    let mut environment = run.settings().environment.clone();
    environment.extend(options.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    if let Some((name, _)) =
        environment.iter().find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
    {
        return Err(ToolError::validation(format!("`{name}` cannot be set as a variable")));
    }
    let fence = run.plan().fence();
    let sandbox = |backend| sandbox_data(options.sandbox.as_deref(), fence, backend);
    let program = run.program(words, directory, environment, time);
    let program = program.map_err(|error| error.data(json!({"sandbox": sandbox(None)})))?;
    let data = Map::from_iter([("sandbox".to_owned(), sandbox(program.backend))]);
    Ok((program, data))
}

/// The words that run a text in a shell without start-up files.
pub(super) fn shell_words(text: &str) -> Vec<String> {
    ["/bin/sh", "-c", text].map(str::to_owned).to_vec()
}

/// The working directory, which must be one.
fn directory(run: &Run<'_>, named: Option<&str>) -> Result<PathBuf, ToolError> {
    let start = run.plan().directory().unwrap_or(&run.settings().workspace);
    let directory = match named {
        None => start.to_owned(),
        // as it was judged, where it was
        Some(named) => run.path(named).unwrap_or_else(|_| start.join(named)),
    };
    let directory = directory.canonicalize().ok().filter(|path| path.is_dir());
    directory.ok_or_else(|| {
        ToolError::validation(format!("the working directory `{}` does not exist", named.unwrap_or(".")))
    })
}
