//! A tool call: the tool, its input and its origin.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool's identity: the server that offers it, if any, and its name there.
///
/// Tools of the same name from two servers are different tools.
///
/// ```
/// use callgate_model::call::Tool;
///
/// assert_eq!(Tool::parse("mcp__files__Read"), Tool::of_server("files", "Read"));
/// assert_ne!(Tool::parse("mcp__files__Read"), Tool::parse("Read"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tool {
    /// The MCP server, `None` for the agent's own tools.
    pub server: Option<String>,
    /// The name within the server.
    pub name: String,
}

impl Tool {
    /// One of the agent's own tools.
    pub fn own(name: impl Into<String>) -> Self {
        Tool { server: None, name: name.into() }
    }

    /// A tool that a server offers.
    pub fn of_server(server: impl Into<String>, name: impl Into<String>) -> Self {
        Tool { server: Some(server.into()), name: name.into() }
    }

    /// Reads `mcp__server__tool` (Claude Code, Codex, Qwen); anything else is an agent's own tool of that name.
    ///
    /// The server ends at the first `__`, as in the agents that write this form. The other spellings in use,
    /// `mcp_server_tool` (Gemini), `server-tool` (Copilot) and `server_tool` (OpenCode), do not say where the server ends:
    /// use [`Tool::parse_among`] with the names of the servers. Without them, the whole name is the tool's name, which has no
    /// descriptor.
    pub fn parse(name: &str) -> Self {
        name.strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
            .map_or_else(|| Tool::own(name), |(server, tool)| Tool::of_server(server, tool))
    }

    /// Like [`Tool::parse`], and reads the ambiguous spellings if exactly one of the known servers fits.
    ///
    /// ```
    /// use callgate_model::call::Tool;
    ///
    /// let servers = ["fs", "mail"];
    /// assert_eq!(Tool::parse_among("mcp_fs_write_file", &servers), Tool::of_server("fs", "write_file"));
    /// assert_eq!(Tool::parse_among("fs-write_file", &servers), Tool::of_server("fs", "write_file"));
    /// assert_eq!(Tool::parse_among("write_file", &servers), Tool::own("write_file"));
    /// ```
    pub fn parse_among<S: AsRef<str>>(name: &str, servers: &[S]) -> Self {
        let tool = Tool::parse(name);
        if tool.server.is_some() {
            return tool;
        }
        let stripped = name.strip_prefix("mcp_").unwrap_or(name);
        let mut fitting = servers.iter().filter_map(|server| {
            let server = server.as_ref();
            [name, stripped]
                .into_iter()
                .find_map(|text| text.strip_prefix(server)?.strip_prefix(['_', '-', '.', '/']))
                .filter(|rest| !rest.is_empty() && !server.is_empty())
                .map(|rest| Tool::of_server(server, rest))
        });
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => only,
            _ => tool,
        }
    }
}

impl From<&str> for Tool {
    fn from(name: &str) -> Self {
        Tool::parse(name)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(formatter, "mcp__{server}__{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// Who makes a call, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The agent program: `claude`, `codex` …
    pub agent: Option<String>,
    /// The session (one conversation or run).
    pub session: Option<String>,
    /// The chat that the session belongs to, if there are several.
    pub chat: Option<String>,
    /// The task of the call; grants may be bound to it.
    pub scope: Option<String>,
    /// The call's working directory, absolute.
    pub directory: Option<PathBuf>,
    /// The project that the agent works on, absolute; the working directory if `None`.
    pub workspace: Option<PathBuf>,
    /// The shell that runs the agent's commands, by name or path: `bash`, `/bin/zsh`. If `None`, a command must mean the same
    /// in bash and in zsh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

impl Origin {
    /// The directory that relative paths of the call start from: the working directory, else the project.
    pub fn working_directory(&self) -> Option<&Path> {
        self.directory.as_deref().or(self.workspace.as_deref())
    }

    /// The directory of the project: the workspace, else the working directory.
    pub fn project(&self) -> Option<&Path> {
        self.workspace.as_deref().or(self.directory.as_deref())
    }
}

/// One tool call.
///
/// ```
/// use callgate_model::call::Call;
/// use serde_json::json;
///
/// let call = Call::new("Read", json!({"file_path": "notes.md"}))
///     .agent("claude")
///     .session("s-1")
///     .directory("/home/ada/project");
/// assert_eq!(call.tool.name, "Read");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool.
    pub tool: Tool,
    /// Its arguments.
    pub input: Value,
    /// Who makes the call.
    pub origin: Origin,
}

impl Call {
    /// Creates a call of a tool, without an origin.
    pub fn new(tool: impl Into<Tool>, input: Value) -> Self {
        Call { tool: tool.into(), input, origin: Origin::default() }
    }

    /// Sets the shell that runs the agent's commands.
    #[must_use]
    pub fn shell(mut self, shell: impl Into<String>) -> Self {
        self.origin.shell = Some(shell.into());
        self
    }

    /// Sets the origin.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the agent program.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.origin.agent = Some(agent.into());
        self
    }

    /// Sets the session.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.origin.session = Some(session.into());
        self
    }

    /// Sets the chat.
    #[must_use]
    pub fn chat(mut self, chat: impl Into<String>) -> Self {
        self.origin.chat = Some(chat.into());
        self
    }

    /// Sets the task.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.origin.scope = Some(scope.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.origin.directory = Some(directory.into());
        self
    }

    /// Sets the project.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.origin.workspace = Some(workspace.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_says_its_server_only_in_the_unambiguous_form() {
        let cases: &[(&str, Option<&str>, &str)] = &[
            ("Read", None, "Read"),
            ("mcp__fs__read", Some("fs"), "read"),
            ("mcp__fs__read__all", Some("fs"), "read__all"),
            ("mcp__plugin_a_b__read", Some("plugin_a_b"), "read"),
            ("mcp__fs", None, "mcp__fs"),
            ("mcp____read", None, "mcp____read"),
            ("mcp__fs__", None, "mcp__fs__"),
            ("MCP__fs__read", None, "MCP__fs__read"),
            ("mcp_fs_read", None, "mcp_fs_read"),
            ("fs-read", None, "fs-read"),
            ("developer__shell", None, "developer__shell"),
            ("", None, ""),
        ];
        for (text, server, name) in cases {
            let tool = Tool::parse(text);
            assert_eq!((tool.server.as_deref(), tool.name.as_str()), (*server, *name), "{text}");
            assert_eq!(tool.to_string(), *text);
        }
    }

    #[test]
    fn a_spelling_that_fits_two_servers_is_left_alone() {
        let servers = ["fs", "fs_remote"];
        assert_eq!(Tool::parse_among("fs_remote_read", &servers), Tool::own("fs_remote_read"));
        assert_eq!(Tool::parse_among("fs_read", &servers), Tool::of_server("fs", "read"));
        assert_eq!(Tool::parse_among("fs_", &servers), Tool::own("fs_"));
        assert_eq!(Tool::parse_among("mcp__x__read", &servers), Tool::of_server("x", "read"));
    }
}
