//! A call: which tool, with what input, from whom.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

/// A tool's identity: the server that offers it, if any, and its name there.
///
/// Two servers may offer a tool of the same name; they are two tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Tool {
    /// The MCP server, `None` for the agent's own tools.
    pub server: Option<String>,
    /// The name within the server.
    pub name: String,
}

/// Who calls, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The agent program: `claude`, `codex` …
    pub agent: Option<String>,
    /// The session (one conversation or run).
    pub session: Option<String>,
    /// The chat the session belongs to, where there are several.
    pub chat: Option<String>,
    /// The task on whose behalf the call is made; grants may be bound to it.
    pub scope: Option<String>,
    /// The call's working directory, absolute.
    pub directory: Option<PathBuf>,
    /// The project the agent works on, absolute; the working directory if not said.
    pub workspace: Option<PathBuf>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// Which tool.
    pub tool: Tool,
    /// Its arguments.
    pub input: Value,
    /// From whom.
    pub origin: Origin,
}
