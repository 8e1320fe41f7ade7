//! Goose: the hooks of a plugin, with `event` and `working_dir`.
//!
//! Exit code 2 with a reason, or `{"decision": "block"}`, denies; everything else allows.

use std::time::Duration;

use callgate::call::{Origin, Tool};
use serde_json::json;

use crate::event::HookEventKind::{After, Before, SessionEnd, SessionStart};
use crate::fields::Fields;
use crate::reading::{self, FAILURE};
use crate::{Agent, CallOutcome, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError};

pub(super) static GOOSE: Agent = Agent {
    name: "goose",
    title: "Goose",
    events: &[
        HookEvent::new("PreToolUse", Before),
        HookEvent::new("PostToolUse", After),
        HookEvent::new(FAILURE, After),
        HookEvent::new("SessionStart", SessionStart),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    // `BeforeReadFile` and its like repeat a call that `PreToolUse` decides.
    notices: "AfterFileEdit AfterShellExecution BeforeReadFile BeforeShellExecution PreToolUseResult Stop UserPromptSubmit",
    default_timeout: Duration::from_secs(30),
    read,
    decide: |_, answer| match answer {
        HookAnswer::Allow { .. } => HookOutput::silence(),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } => {
            HookOutput::json(&json!({ "decision": "block", "reason": reason }))
        }
    },
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let mut fields = Fields::read(input.payload)?;
    let name = fields.optional_text("event")?;
    let event = reading::find_event(agent, name, input)?;
    let directory = fields.optional_directory("working_dir")?;
    let origin = Origin {
        agent: Some(agent.name.to_owned()),
        session: Some(fields.text("session_id")?),
        workspace: directory.clone(),
        directory,
        ..Origin::default()
    };
    let outcome = CallOutcome::failed_if(event.name == FAILURE);
    let mut request = reading::request(
        event,
        origin,
        &mut fields,
        |fields| {
            let tool = parse_tool(&fields.text("tool_name")?);
            Ok((tool, fields.optional_object("tool_input")?.unwrap_or_default().into_value()))
        },
        |fields| Ok((outcome, fields.take("tool_output"))),
    )?;
    request.call_id = fields.optional_text("tool_call_id")?;
    Ok(request)
}

/// Parses `extension__tool`. The tools of the developer extension are Goose's own.
fn parse_tool(name: &str) -> Tool {
    match name.split_once("__") {
        Some((extension, tool)) if extension != "developer" && !extension.is_empty() && !tool.is_empty() => {
            Tool::of_server(extension, tool)
        }
        _ => Tool::own(name),
    }
}
