//! A policy file as it was written: every value with its place.

use callgate_model::call::Call;
use callgate_model::effect::{Action, CodeOrigin, Mark};
use serde_json::{Value, json};

use super::audit::AuditText;
use super::mistake::Position;
use crate::Decision;

/// A value and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub value: T,
    pub position: Position,
}

pub(crate) type Texts = Vec<At<String>>;

/// One file.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    pub extends: Option<At<String>>,
    pub default: Option<Decision>,
    pub boundary: BoundaryText,
    pub sets: Vec<(At<String>, Texts)>,
    pub programs: Option<At<String>>,
    pub trusted_tags: Texts,
    pub trusted_servers: Texts,
    pub rules: Vec<RuleText>,
    pub timeouts: Timeouts,
    /// Who answers without being asked: `rules` and `default` of the `approvals:` section, checked.
    pub approvals: Option<Value>,
    pub exec_input: Option<ExecInput>,
    pub audit: AuditText,
    pub sandbox: Option<bool>,
    /// Keys that are checked and have no effect yet.
    pub without_effect: Vec<At<String>>,
    /// Keys of earlier formats that are read and not used.
    pub unused: Vec<At<String>>,
}

/// How long approvers may take, where the file says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Timeouts {
    /// Milliseconds for an approval.
    pub approval_ms: Option<u64>,
    /// Milliseconds for anything else a person is asked.
    pub human_ms: Option<u64>,
}

/// How far a program that was started with a permit covers what is typed into it later. From the most lenient to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecInput {
    /// Wholly: nobody is asked again.
    Covered,
    /// What is typed into a shell is judged as the command that it is; anything else is asked about.
    Judged,
    /// Not at all.
    #[default]
    Asked,
}

/// The `boundary:` section.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoundaryText {
    pub roots: Option<Texts>,
    pub readable: Option<Texts>,
    pub outside: Option<Decision>,
    pub list_outside: Option<Decision>,
}

/// One rule. An empty list is a condition that was not written.
#[derive(Debug, Clone)]
pub(crate) struct RuleText {
    pub position: Position,
    pub name: Option<At<String>>,
    pub tools: Vec<At<ToolText>>,
    pub effects: Vec<At<Action>>,
    pub marks: Vec<At<(Mark, bool)>>,
    pub zones: Vec<At<ZoneText>>,
    pub traversal: Option<At<bool>>,
    pub recursive: Option<bool>,
    pub paths: Texts,
    pub code: Vec<At<CodeOrigin>>,
    pub runs: Texts,
    pub run_by: Texts,
    pub commands: Texts,
    pub hosts: Texts,
    pub command_patterns: Texts,
    pub path_patterns: Texts,
    pub when: Option<At<String>>,
    pub action: Decision,
    /// Tried only where everything else says ask.
    pub instead_of_ask: bool,
    pub reason: Option<String>,
    pub description: Option<String>,
    pub risk_level: Option<String>,
    pub matches: Vec<At<Example>>,
    pub misses: Vec<At<Example>>,
    /// Only for calls that are no simple command (pipes, redirections, several commands, substitutions).
    pub complex_only: bool,
    /// Only for tools that have no descriptor.
    pub custom_only: bool,
}

impl RuleText {
    /// A rule without conditions.
    pub(crate) fn new(position: Position, action: Decision) -> Self {
        Self {
            position,
            name: None,
            tools: Vec::new(),
            effects: Vec::new(),
            marks: Vec::new(),
            zones: Vec::new(),
            traversal: None,
            recursive: None,
            paths: Vec::new(),
            code: Vec::new(),
            runs: Vec::new(),
            run_by: Vec::new(),
            commands: Vec::new(),
            hosts: Vec::new(),
            command_patterns: Vec::new(),
            path_patterns: Vec::new(),
            when: None,
            action,
            instead_of_ask: false,
            reason: None,
            description: None,
            risk_level: None,
            matches: Vec::new(),
            misses: Vec::new(),
            complex_only: false,
            custom_only: false,
        }
    }
}

/// One entry under `tools:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolText {
    /// A name or glob: `Bash`, `github/*`, `mcp__github__search`.
    Name(String),
    /// `{server: github}`: every tool of that server.
    Server(String),
    /// `@tag:read_only`.
    Tag(String),
    /// `!@tag:read_only`.
    NotTag(String),
}

/// Zones as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZoneText {
    Root,
    Readable,
    Outside,
    Unresolved,
}

/// An example under `matches:` or `misses:`.
#[derive(Debug, Clone, PartialEq)]
pub enum Example {
    /// A shell command.
    Command(String),
    /// A call of some tool.
    Call {
        /// The tool as agents name it.
        tool: String,
        /// Its input.
        input: Value,
    },
}

impl Example {
    /// The example as a call.
    pub fn call(&self) -> Call {
        match self {
            Example::Command(command) => Call::new("Bash", json!({ "command": command })),
            Example::Call { tool, input } => Call::new(tool.as_str(), input.clone()),
        }
    }
}
