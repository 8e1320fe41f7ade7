//! Hook events: how agents name them, what a hook process is given, and what it means.

use std::fmt;
use std::path::{Path, PathBuf};

use callgate::call::{Call, Origin, Tool};
use serde_json::Value;

use crate::fields::absolute;

/// The purpose of an event, whatever an agent calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEventKind {
    /// A tool is about to run: the answer decides.
    Before,
    /// The agent is about to ask its user: the answer decides, and no answer leaves the decision to the agent's prompt.
    Permission,
    /// A tool has run.
    After,
    /// A session starts.
    SessionStart,
    /// The agent has finished what it was told, or is told something new: no question of its own prompt is open any more.
    TurnEnd,
    /// A session ends.
    SessionEnd,
    /// Any other event. It needs no answer.
    Notice,
}

/// An event of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HookEvent {
    /// The agent's name for it, such as `PreToolUse` or `BeforeTool`.
    pub name: &'static str,
    /// Its purpose.
    pub kind: HookEventKind,
    asks: bool,
    rewrites: bool,
}

impl HookEvent {
    pub(crate) const fn new(name: &'static str, kind: HookEventKind) -> Self {
        HookEvent { name, kind, asks: false, rewrites: false }
    }

    pub(crate) const fn asks(self) -> Self {
        HookEvent { asks: true, ..self }
    }

    pub(crate) const fn rewrites(self) -> Self {
        HookEvent { rewrites: true, ..self }
    }

    /// The same event of an agent that would ignore a rewritten input.
    pub(crate) const fn as_it_is(self) -> Self {
        HookEvent { rewrites: false, ..self }
    }

    /// Whether the answer decides if a tool runs.
    pub const fn decides(self) -> bool {
        matches!(self.kind, HookEventKind::Before | HookEventKind::Permission)
    }

    /// Whether the agent asks its user when the answer says so.
    pub const fn can_ask(self) -> bool {
        self.asks
    }

    /// Whether the agent runs a rewritten input instead of its own.
    pub const fn can_rewrite(self) -> bool {
        self.rewrites
    }
}

/// The input of a hook process.
pub struct HookInput<'a> {
    /// All of standard input.
    pub payload: &'a [u8],
    /// Looks up a variable of the hook's environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The event named on the hook's command line. Needed where an agent's payload does not name it; where it does, both
    /// must agree.
    pub event: Option<&'a str>,
    /// The working directory of the hook process, for agents whose payloads do not name one.
    pub directory: Option<&'a Path>,
    /// The MCP servers in the agent's configuration, as far as they are known. Some agents join the names of a server and
    /// its tool; such a tool is attributed to a server only if exactly one of these fits.
    pub servers: &'a [String],
}

impl<'a> HookInput<'a> {
    /// An input with nothing but a payload.
    pub fn of(payload: &'a [u8]) -> Self {
        HookInput { payload, environment: &|_| None, event: None, directory: None, servers: &[] }
    }

    /// The absolute directory that the agent names in an environment variable.
    pub(crate) fn directory_in(&self, variable: &str) -> Option<PathBuf> {
        (self.environment)(variable).as_deref().and_then(absolute)
    }
}

impl fmt::Debug for HookInput<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads hold file contents and commands, which do not belong in logs.
        formatter
            .debug_struct("HookInput")
            .field("bytes", &self.payload.len())
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

/// One hook call, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct HookRequest {
    /// The event. The answer is written for it.
    pub event: HookEvent,
    /// The content of the event.
    pub details: HookDetails,
    /// Agent, session, working directory and project. The event's call carries the same origin.
    ///
    /// `workspace` is only what the agent says about its project. Where it is `None`, check
    /// [`HookRequest::directory_moves`] before using the directory instead.
    pub origin: Origin,
    /// Whether the working directory is that of the shell or the call, so that the model chooses it. Such a directory
    /// resolves relative paths but must not set the boundary: that is the directory in which the session started.
    pub directory_moves: bool,
    /// The agent's id of the call, the same before and after it runs.
    pub call_id: Option<String>,
    /// The agent's permission mode, such as `default`, `plan`, `bypassPermissions` or `yolo`.
    pub mode: Option<String>,
    /// The sub-agent that makes the call, if it is not the main agent.
    pub subagent: Option<String>,
    /// Where the MCP server of the tool was configured: `user`, `project`, `plugin` and so on. Unlike the server's name,
    /// the person who configures the server cannot choose this.
    pub server_source: Option<String>,
    /// The interpreter that would keep reading input which this agent shows to no hook. Allowing the call allows
    /// everything that is typed into it later.
    pub unseen_input: Option<String>,
    /// The persistent shell that the call runs in or types into; `None` if the call gets a new shell. Agents with a
    /// single persistent shell use the empty name.
    pub shell: Option<String>,
}

impl HookRequest {
    pub(crate) fn new(event: HookEvent, details: HookDetails, origin: Origin) -> Self {
        HookRequest {
            event,
            details,
            origin,
            directory_moves: false,
            call_id: None,
            mode: None,
            subagent: None,
            server_source: None,
            unseen_input: None,
            shell: None,
        }
    }

    /// The call that the event is about, if any.
    pub fn call(&self) -> Option<&Call> {
        match &self.details {
            HookDetails::Before(call) | HookDetails::Permission(call) => Some(call),
            HookDetails::After(completed) => Some(&completed.call),
            HookDetails::SessionStart | HookDetails::TurnEnd | HookDetails::SessionEnd | HookDetails::Notice => None,
        }
    }

    pub(crate) fn call_mut(&mut self) -> Option<&mut Call> {
        match &mut self.details {
            HookDetails::Before(call) | HookDetails::Permission(call) => Some(call),
            HookDetails::After(completed) => Some(&mut completed.call),
            HookDetails::SessionStart | HookDetails::TurnEnd | HookDetails::SessionEnd | HookDetails::Notice => None,
        }
    }

    /// Sets the project, in the event's call too.
    pub(crate) fn set_workspace(&mut self, workspace: Option<PathBuf>) {
        if let Some(call) = self.call_mut() {
            call.origin.workspace.clone_from(&workspace);
        }
        self.origin.workspace = workspace;
    }

    /// Sets the project to the directory in an environment variable, or else to the working directory.
    pub(crate) fn set_workspace_from(&mut self, variable: &str, input: &HookInput<'_>) {
        self.set_workspace(input.directory_in(variable).or_else(|| self.origin.directory.clone()));
    }

    /// Replaces the tool of the event's call where `tool` returns another one.
    pub(crate) fn correct_tool(&mut self, tool: impl FnOnce(&Tool) -> Option<Tool>) {
        if let Some(call) = self.call_mut()
            && let Some(tool) = tool(&call.tool)
        {
            call.tool = tool;
        }
    }
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum HookDetails {
    /// This call is about to run.
    Before(Call),
    /// The agent is about to ask its user about this call.
    Permission(Call),
    /// This call has run.
    After(CompletedCall),
    /// A session starts.
    SessionStart,
    /// No question of the agent's own prompt is open any more.
    TurnEnd,
    /// A session ends.
    SessionEnd,
    /// Nothing that needs an answer.
    Notice,
}

/// A call that has run.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedCall {
    /// The call, with the input it ran with.
    pub call: Call,
    /// Whether it succeeded.
    pub outcome: CallOutcome,
    /// Its result, as the agent reports it.
    pub result: Option<Value>,
}

/// Whether a call succeeded, according to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call succeeded.
    Succeeded,
    /// The call failed.
    Failed,
    /// The agent does not say.
    Unknown,
}

impl CallOutcome {
    pub(crate) fn failed_if(failed: bool) -> Self {
        if failed { CallOutcome::Failed } else { CallOutcome::Succeeded }
    }
}
