//! The contents of a policy file, with positions.

use callgate_model::call::Call;
use callgate_model::effect::{Action, CodeOrigin, Mark};
use callgate_model::fence::{Limits, Protections};
use serde_json::{Value, json};

use super::audit::AuditText;
use super::mistake::Position;
use crate::Decision;

/// A value and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub position: Position,
}

pub(crate) type Texts = Vec<Spanned<String>>;

/// One file.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyFile {
    pub extends: Option<Spanned<String>>,
    pub default: Option<Decision>,
    pub boundary: BoundaryText,
    pub sets: Vec<(Spanned<String>, Texts)>,
    pub programs: Option<Spanned<String>>,
    pub trusted_tags: Texts,
    pub trusted_servers: Texts,
    pub rules: Vec<RuleText>,
    pub timeouts: Timeouts,
    /// `rules` and `default` of the `approvals:` section, checked.
    pub approvals: Option<Value>,
    pub exec_input: Option<ExecInput>,
    pub agent_answers: Option<AgentAnswers>,
    pub audit: AuditText,
    pub sandbox: SandboxSettings,
    /// `sandbox.profiles`.
    pub profiles: Vec<(Spanned<String>, Profile)>,
    /// Keys that have no effect in this version.
    pub without_effect: Vec<Spanned<String>>,
    /// Keys of earlier formats that are read and not used.
    pub unused: Vec<Spanned<String>>,
}

/// Timeouts for people, if the file sets them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Timeouts {
    /// Milliseconds for an approval.
    pub approval_ms: Option<u64>,
    /// Milliseconds for any other question.
    pub human_ms: Option<u64>,
}

impl Timeouts {
    /// The shortest of several timeouts.
    pub(crate) fn shortest(all: impl Iterator<Item = Self>) -> Self {
        let shorter = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        all.fold(Self::default(), |one, other| Self {
            approval_ms: shorter(one.approval_ms, other.approval_ms),
            human_ms: shorter(one.human_ms, other.human_ms),
        })
    }
}

/// How input to a program that is already running is treated, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecInput {
    /// The permit for the program covers its input.
    Covered,
    /// Input to a shell is judged as a command; other input is asked about.
    Judged,
    /// Every input is asked about.
    #[default]
    Asked,
}

/// How long a yes at the agent's own prompt counts, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAnswers {
    /// For the same request until the session ends.
    #[default]
    Session,
    /// For this call.
    Once,
}

/// The `sandbox:` section. `None` means that the policy does not set the value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SandboxSettings {
    /// Whether every command runs in the sandbox.
    pub restricted: Option<bool>,
    /// Which sandbox to use.
    pub mode: Option<SandboxMode>,
    /// Whether commands that run in the sandbox only because every command does may use the network.
    pub network: Option<bool>,
    /// The limits of all contained commands.
    #[serde(default)]
    pub limits: Limits,
    /// What must be held of commands that run in the sandbox only because every command does; empty for everything.
    #[serde(default)]
    pub requires: Protections,
}

/// A profile: what rules that name it say by default about the fence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub network: Texts,
    pub limits: Limits,
    /// What must be held; empty for everything.
    pub requires: Protections,
}

impl SandboxSettings {
    /// The settings of a chain: what an earlier file sets counts.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            restricted: self.restricted.or(other.restricted),
            mode: self.mode.or(other.mode),
            network: self.network.or(other.network),
            limits: self.limits.or(other.limits),
            requires: if self.requires.is_empty() { other.requires } else { self.requires },
        }
    }
}

/// The sandbox of the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// The best that the machine has.
    #[default]
    Auto,
    /// None: commands that need a sandbox are refused.
    None,
    /// macOS.
    Seatbelt,
    /// bubblewrap.
    Bubblewrap,
}

/// The `boundary:` section.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoundaryText {
    pub roots: Option<Texts>,
    pub readable: Option<Texts>,
    pub outside: Option<Decision>,
    pub list_outside: Option<Decision>,
}

/// One rule. An empty list means that the condition is absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleText {
    pub position: Position,
    pub name: Option<Spanned<String>>,
    pub tools: Vec<Spanned<ToolText>>,
    pub effects: Vec<Spanned<Action>>,
    pub marks: Vec<Spanned<(Mark, bool)>>,
    pub zones: Vec<Spanned<ZoneText>>,
    pub traversal: Option<Spanned<bool>>,
    pub recursive: Option<bool>,
    pub paths: Texts,
    pub code: Vec<Spanned<CodeOrigin>>,
    pub runs: Texts,
    pub run_by: Texts,
    pub commands: Texts,
    pub hosts: Texts,
    pub command_patterns: Texts,
    pub path_patterns: Texts,
    pub when: Option<Spanned<String>>,
    pub action: Decision,
    /// Used only if all other rules together decide so.
    pub instead_of: Option<Decision>,
    /// After all others with the same `instead_of`.
    pub last: bool,
    /// Only where there is a sandbox.
    pub needs_sandbox: bool,
    /// Only where the question is a doubt of the analysis.
    pub doubt: bool,
    /// Code that the rule allows runs outside the sandbox.
    pub free: Option<Position>,
    pub network: Texts,
    pub limits: Limits,
    pub profile: Option<Spanned<String>>,
    /// What must be held of a contained call; empty for everything.
    pub requires: Protections,
    pub reason: Option<String>,
    pub description: Option<String>,
    pub risk_level: Option<String>,
    pub matches: Vec<Spanned<RuleExample>>,
    pub misses: Vec<Spanned<RuleExample>>,
    /// Only for calls that are not a simple command (pipes, redirections, several commands, substitutions).
    pub complex_only: bool,
    /// Only for tools that have no descriptor.
    pub custom_only: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ZoneText {
    Root,
    Readable,
    Outside,
    Unresolved,
}

/// An example under `matches:` or `misses:`.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleExample {
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

impl RuleExample {
    /// The example as a call.
    pub fn call(&self) -> Call {
        match self {
            RuleExample::Command(command) => Call::new("Bash", json!({ "command": command })),
            RuleExample::Call { tool, input } => Call::new(tool.as_str(), input.clone()),
        }
    }
}
