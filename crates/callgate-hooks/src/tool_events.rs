//! The payload that Claude Code made common: `hook_event_name`, `tool_name`, `tool_input`.
//!
//! Codex, Gemini CLI, Qwen Code and others send the same fields with other event and tool names.

use std::path::PathBuf;

use callgate::call::{Call, Origin, Tool};

use crate::fields::{Fields, absolute};
use crate::{After, Event, EventKind, EventName, Incoming, Outcome, PayloadError, Received};

/// The event of a tool that failed. What went wrong stands in `error`.
pub(crate) const FAILURE: &str = "PostToolUseFailure";

/// Finds an event in an agent's table by the name that the payload, or else the hook's command line, gives it.
pub(crate) fn event_named(
    agent: &'static str,
    events: &'static [EventName],
    told: Option<String>,
    received: &Received<'_>,
) -> Result<EventName, PayloadError> {
    let find = |name: &str| events.iter().find(|event| event.name == name).copied();
    let unknown = |name: &str| PayloadError::UnknownEvent { agent, name: name.to_owned() };
    match (told.as_deref(), received.event) {
        (Some(told), Some(expected)) if !told.eq_ignore_ascii_case(expected) => {
            Err(PayloadError::AnotherEvent { expected: expected.to_owned(), told: told.to_owned() })
        }
        (Some(name), _) | (None, Some(name)) => find(name).ok_or_else(|| unknown(name)),
        (None, None) => Err(PayloadError::Missing { field: "hook_event_name" }),
    }
}

/// Reads the common fields. What is left in the payload is handed back for what the agent has of its own.
pub(crate) fn read(
    agent: &'static str,
    events: &'static [EventName],
    received: &Received<'_>,
) -> Result<(Incoming, Fields), PayloadError> {
    read_fields(agent, events, Fields::read(received.payload)?, received)
}

/// The same of a payload that has been read.
pub(crate) fn read_fields(
    agent: &'static str,
    events: &'static [EventName],
    mut fields: Fields,
    received: &Received<'_>,
) -> Result<(Incoming, Fields), PayloadError> {
    let told = fields.optional_text("hook_event_name")?;
    let name = event_named(agent, events, told, received)?;
    let origin = Origin {
        agent: Some(agent.to_owned()),
        session: Some(fields.text("session_id")?),
        directory: Some(fields.directory("cwd")?),
        ..Origin::default()
    };
    let event = event_of(name, &mut fields, &origin)?;
    let mut incoming = Incoming::new(name, event, origin);
    incoming.call_id = fields.optional_text("tool_use_id")?;
    incoming.mode = fields.optional_text("permission_mode")?;
    incoming.subagent = fields.optional_text("agent_id")?.filter(|id| !id.is_empty());
    Ok((incoming, fields))
}

fn event_of(name: EventName, fields: &mut Fields, origin: &Origin) -> Result<Event, PayloadError> {
    let mut call = || -> Result<Call, PayloadError> {
        let tool = Tool::parse(&fields.text("tool_name")?);
        let input = fields.object("tool_input")?.into_value();
        Ok(Call::new(tool, input).origin(origin.clone()))
    };
    Ok(match name.kind {
        EventKind::Before => Event::Before(call()?),
        EventKind::Permission => Event::Permission(call()?),
        EventKind::After => {
            let call = call()?;
            let (outcome, result) = match name.name {
                FAILURE => (Outcome::Failed, fields.take("error")),
                _ => (Outcome::Succeeded, fields.take("tool_response")),
            };
            Event::After(After { call, outcome, result })
        }
        EventKind::SessionStart => Event::SessionStart,
        EventKind::SessionEnd => Event::SessionEnd,
        EventKind::Notice => Event::Notice,
    })
}

/// The server of a tool where the agent did not say which. No server can be called this.
const SOME_SERVER: &str = "?";

/// A server's tool whose name the agent ran together with the server's. It is never one of the agent's own tools, whatever
/// it looks like; which server's it is, is said only where exactly one fits.
pub(crate) fn run_together(name: &str, received: &Received<'_>) -> Tool {
    match Tool::parse_among(name, received.servers) {
        Tool { server: Some(server), name } => Tool::of_server(server, name),
        Tool { server: None, name } => Tool::of_server(SOME_SERVER, name),
    }
}

impl Received<'_> {
    /// The absolute directory that the agent names in a variable of the hook's environment.
    pub(crate) fn directory_in(&self, variable: &str) -> Option<PathBuf> {
        (self.environment)(variable).as_deref().and_then(absolute)
    }
}

impl Incoming {
    /// Says which project it is about, to the event's call too.
    pub(crate) fn set_workspace(&mut self, workspace: Option<PathBuf>) {
        if let Some(call) = self.call_mut() {
            call.origin.workspace.clone_from(&workspace);
        }
        self.origin.workspace = workspace;
    }

    /// Names the tool of the event's call.
    pub(crate) fn set_tool(&mut self, tool: Tool) {
        if let Some(call) = self.call_mut() {
            call.tool = tool;
        }
    }

    /// Corrects how the call went.
    pub(crate) fn set_outcome(&mut self, outcome: Outcome) {
        if let Event::After(after) = &mut self.event {
            after.outcome = outcome;
        }
    }

    /// Replaces what came out.
    pub(crate) fn set_result(&mut self, result: Option<serde_json::Value>) {
        if let Event::After(after) = &mut self.event {
            after.result = result;
        }
    }
}
