//! What an agent's hook tells.

use callgate::call::{Call, Origin};
use serde_json::Value;

/// What an event is for, whatever an agent calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A tool is about to run: the answer decides.
    Before,
    /// The agent would ask its user: the answer decides, and none leaves it to the agent's own prompt.
    Permission,
    /// A tool has run.
    After,
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// Something else that needs no answer.
    Notice,
}

/// An event as one agent names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventName {
    /// The agent's name for it: `PreToolUse`, `BeforeTool` …
    pub name: &'static str,
    /// What it is for.
    pub kind: EventKind,
}

impl EventName {
    /// Names an event. The agents' tables are made of these.
    pub const fn new(name: &'static str, kind: EventKind) -> Self {
        EventName { name, kind }
    }

    /// Whether an answer to it decides over a tool.
    pub const fn decides(self) -> bool {
        matches!(self.kind, EventKind::Before | EventKind::Permission)
    }
}

/// One call of a hook, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// Which event; the answer is written for it.
    pub name: EventName,
    /// What it tells.
    pub event: Event,
    /// Agent, session, working directory and project. A call of the event carries the same.
    ///
    /// `workspace` is only what the agent says of its project. Where it is `None`, do not take the directory for it before
    /// looking at [`Incoming::directory_moves`].
    pub origin: Origin,
    /// Whether the working directory is the shell's or the call's, so that the model chooses it. Then it says where relative
    /// paths lead, and must never say which directories may be touched: that is the directory in which the session began.
    pub directory_moves: bool,
    /// The agent's id of this call, by which events before and after belong together.
    pub call_id: Option<String>,
    /// The agent's permission mode: `default`, `plan`, `bypassPermissions`, `yolo` …
    pub mode: Option<String>,
    /// Which sub-agent calls, if not the main one.
    pub subagent: Option<String>,
    /// Where the agent has the tool's MCP server from: `user`, `project`, `plugin` … A server's name is chosen by whoever
    /// configures it, this is not.
    pub server_source: Option<String>,
    /// The interpreter that would go on to take input which this agent shows to no hook. Allowing the call would allow all
    /// that is typed later.
    pub unseen_input: Option<String>,
    /// The shell that the agent keeps from call to call and in which this call runs, or into which it types; `None` if the
    /// call gets a shell of its own. Agents with one shell only call it by the empty name.
    pub shell: Option<String>,
}

impl Incoming {
    /// An event of which no more is known yet.
    pub fn new(name: EventName, event: Event, origin: Origin) -> Self {
        Incoming {
            name,
            event,
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

    /// The call that it is about, if any.
    pub fn call(&self) -> Option<&Call> {
        match &self.event {
            Event::Before(call) | Event::Permission(call) => Some(call),
            Event::After(after) => Some(&after.call),
            Event::SessionStart | Event::SessionEnd | Event::Notice => None,
        }
    }

    pub(crate) fn call_mut(&mut self) -> Option<&mut Call> {
        match &mut self.event {
            Event::Before(call) | Event::Permission(call) => Some(call),
            Event::After(after) => Some(&mut after.call),
            Event::SessionStart | Event::SessionEnd | Event::Notice => None,
        }
    }
}

/// What an event tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// This call is about to run.
    Before(Call),
    /// The agent would ask its user about this call.
    Permission(Call),
    /// This call has run.
    After(After),
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// Something that needs no answer.
    Notice,
}

/// A call that has run.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// Which call, with the input it ran with.
    pub call: Call,
    /// How it went.
    pub outcome: Outcome,
    /// What came out, as the agent tells it.
    pub result: Option<Value>,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The agent says that it went well.
    Succeeded,
    /// The agent says that it did not.
    Failed,
    /// The agent does not say.
    Unknown,
}
