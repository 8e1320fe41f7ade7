//! Windsurf's Cascade: `pre_run_command`, `pre_read_code`, `pre_write_code`, `pre_mcp_tool_use`.
//!
//! Only the exit code counts: 2 blocks, everything else proceeds.

use std::time::Duration;

use callgate::call::{Origin, Tool};
use serde_json::Value;

use crate::event::HookEventKind::{After, Before};
use crate::fields::Fields;
use crate::reading;
use crate::{Agent, CallOutcome, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError};

/// The fields that hold the result of a call.
const RESULTS: [&str; 3] = ["mcp_result", "output", "content"];

pub(super) static WINDSURF: Agent = Agent {
    name: "windsurf",
    title: "Windsurf",
    aliases: &["cascade"],
    events: &[
        HookEvent::new("pre_run_command", Before),
        HookEvent::new("pre_read_code", Before),
        HookEvent::new("pre_write_code", Before),
        HookEvent::new("pre_mcp_tool_use", Before),
        HookEvent::new("post_run_command", After),
        HookEvent::new("post_read_code", After),
        HookEvent::new("post_write_code", After),
        HookEvent::new("post_mcp_tool_use", After),
    ],
    notices: "pre_user_prompt post_cascade_response post_setup_worktree",
    default_timeout: Duration::from_secs(30),
    read,
    decide: |_, answer| match answer {
        HookAnswer::Allow { .. } => HookOutput::silence(),
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } => HookOutput::refusal(&reason),
    },
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let mut fields = Fields::read(input.payload)?;
    let name = fields.optional_text("agent_action_name")?;
    let event = reading::find_event(agent, name, input)?;
    let session = fields.text("trajectory_id")?;
    let mut origin = Origin { agent: Some(agent.name.to_owned()), session: Some(session), ..Origin::default() };
    let mut details = match event.kind {
        Before | After => fields.object("tool_info")?,
        _ => Fields::default(),
    };
    // The model chooses the directory of a command. The other events name absolute paths.
    origin.directory = details.optional_directory("cwd")?;
    let mut request = reading::request(
        event,
        origin,
        &mut details,
        |details| tool_and_input(event, details),
        |details| {
            let outcome = match details.take("exit_code") {
                Some(code) => CallOutcome::failed_if(code != 0),
                None => CallOutcome::Unknown,
            };
            let results = RESULTS.map(|field| details.take(field));
            Ok((outcome, results.into_iter().flatten().next()))
        },
    )?;
    request.directory_moves = true;
    Ok(request)
}

/// The step as a tool of the same name (`run_command`, `read_code`, `write_code`) or of a server.
fn tool_and_input(event: HookEvent, details: &mut Fields) -> Result<(Tool, Value), PayloadError> {
    match event.name.split_once('_').map_or(event.name, |(_, step)| step) {
        "mcp_tool_use" => {
            let tool = Tool::of_server(details.text("mcp_server_name")?, details.text("mcp_tool_name")?);
            Ok((tool, details.optional_object("mcp_tool_arguments")?.unwrap_or_default().into_value()))
        }
        step => {
            details.must_have_text(if step == "run_command" { "command_line" } else { "file_path" })?;
            Ok((Tool::own(step), details.take_rest()))
        }
    }
}
