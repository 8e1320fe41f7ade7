//! Windsurf's Cascade: `pre_run_command`, `pre_read_code`, `pre_write_code`, `pre_mcp_tool_use`.
//!
//! It listens to the exit code alone: 2 blocks, everything else proceeds.

use std::time::Duration;

use callgate::call::{Call, Origin, Tool};
use serde_json::Value;

use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::fields::Fields;
use crate::{Agent, Event, EventName, Incoming, Outcome, Output, PayloadError, Received, Verdict, tool_events};

static EVENTS: &[EventName] = &[
    EventName::new("pre_run_command", Before),
    EventName::new("pre_read_code", Before),
    EventName::new("pre_write_code", Before),
    EventName::new("pre_mcp_tool_use", Before),
    EventName::new("post_run_command", After),
    EventName::new("post_read_code", After),
    EventName::new("post_write_code", After),
    EventName::new("post_mcp_tool_use", After),
    EventName::new("pre_user_prompt", Notice),
    EventName::new("post_cascade_response", Notice),
    EventName::new("post_setup_worktree", Notice),
];

/// What tells how a call went, and is no part of it.
static RESULTS: &[&str] = &["mcp_result", "output", "content"];

/// Windsurf.
#[derive(Debug, Clone, Copy)]
pub struct Windsurf;

impl Agent for Windsurf {
    fn name(&self) -> &'static str {
        "windsurf"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["cascade"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let mut fields = Fields::read(received.payload)?;
        let told = fields.optional_text("agent_action_name")?;
        let name = tool_events::event_named(self.name(), EVENTS, told, received)?;
        let session = fields.text("trajectory_id")?;
        let mut origin = Origin { agent: Some(self.name().to_owned()), session: Some(session), ..Origin::default() };
        let mut details = match name.kind {
            Before | After => fields.object("tool_info")?,
            _ => Fields::empty(),
        };
        // a command's own directory, which the model chooses; the other steps name whole paths
        origin.directory = details.optional_directory("cwd")?;
        let event = match name.kind {
            Before => Event::Before(call(name, details, &origin)?),
            Permission => Event::Permission(call(name, details, &origin)?),
            After => {
                let failed = details.take("exit_code").map(|code| code != 0);
                let outcome = match failed {
                    Some(true) => Outcome::Failed,
                    Some(false) => Outcome::Succeeded,
                    None => Outcome::Unknown,
                };
                let results: Vec<Value> = RESULTS.iter().filter_map(|field| details.take(field)).collect();
                let result = results.into_iter().next();
                Event::After(crate::After { call: call(name, details, &origin)?, outcome, result })
            }
            SessionStart => Event::SessionStart,
            SessionEnd => Event::SessionEnd,
            Notice => Event::Notice,
        };
        let mut incoming = Incoming::new(name, event, origin);
        incoming.directory_moves = true;
        Ok(incoming)
    }

    fn decide(&self, _event: EventName, verdict: Verdict<'_>) -> Output {
        match verdict {
            Verdict::Allow { .. } => Output::silence(),
            Verdict::Deny { reason } | Verdict::Ask { reason } => Output::refusal(&reason),
        }
    }

    fn can_ask(&self, _event: EventName) -> bool {
        false
    }

    fn can_rewrite(&self, _event: EventName) -> bool {
        false
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// The step as a tool of that name: `run_command`, `read_code`, `write_code`, or a server's.
fn call(name: EventName, mut details: Fields, origin: &Origin) -> Result<Call, PayloadError> {
    let step = name.name.split_once('_').map_or(name.name, |(_, step)| step);
    let (tool, input) = match step {
        "mcp_tool_use" => {
            let tool = Tool::of_server(details.text("mcp_server_name")?, details.text("mcp_tool_name")?);
            let field = "mcp_tool_arguments";
            match details.take(field) {
                Some(Value::Object(arguments)) => (tool, Value::Object(arguments)),
                Some(_) => return Err(PayloadError::WrongType { field, expected: "an object" }),
                None => (tool, Value::Object(serde_json::Map::new())),
            }
        }
        step => {
            details.must_have_text(if step == "run_command" { "command_line" } else { "file_path" })?;
            (Tool::own(step), details.into_value())
        }
    };
    Ok(Call::new(tool, input).origin(origin.clone()))
}
