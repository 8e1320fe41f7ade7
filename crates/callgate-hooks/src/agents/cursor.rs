//! Cursor: `preToolUse`, and events before a command, a server's tool and a file.
//!
//! With `failClosed` an empty answer blocks, so a permission is always printed. In `preToolUse` Cursor ignores an `ask`.

use std::path::PathBuf;
use std::time::Duration;

use callgate::call::{Origin, Tool};
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::HookEventKind::{After, Before, Notice, SessionEnd, SessionStart};
use crate::fields::{Fields, absolute};
use crate::reading;
use crate::{Agent, CallOutcome, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError};

const TOOL: HookEvent = HookEvent::new("preToolUse", Before).rewrites();
const SHELL: HookEvent = HookEvent::new("beforeShellExecution", Before).asks();
const SERVER: HookEvent = HookEvent::new("beforeMCPExecution", Before).asks();
const FILE: HookEvent = HookEvent::new("beforeReadFile", Before);
const TAB: HookEvent = HookEvent::new("beforeTabFileRead", Before);
const SUBAGENT: HookEvent = HookEvent::new("subagentStart", Before);
const AFTER_SHELL: HookEvent = HookEvent::new("afterShellExecution", After);
const AFTER_SERVER: HookEvent = HookEvent::new("afterMCPExecution", After);
const AFTER_FAILURE: HookEvent = HookEvent::new("postToolUseFailure", After);
const SUBMIT: HookEvent = HookEvent::new("beforeSubmitPrompt", Notice);

pub(super) static CURSOR: Agent = Agent {
    name: "cursor",
    title: "Cursor",
    aliases: &["cursor-agent"],
    events: &[
        TOOL,
        SHELL,
        SERVER,
        FILE,
        TAB,
        SUBAGENT,
        HookEvent::new("postToolUse", After),
        AFTER_FAILURE,
        AFTER_SHELL,
        AFTER_SERVER,
        HookEvent::new("sessionStart", SessionStart),
        HookEvent::new("sessionEnd", SessionEnd),
        SUBMIT,
    ],
    // `afterFileEdit` repeats what `postToolUse` reports with the id of the call.
    notices: "afterAgentResponse afterAgentThought afterFileEdit afterTabFileEdit preCompact stop subagentStop",
    default_timeout: Duration::from_secs(60),
    read,
    decide,
    acknowledge: |event| {
        if event == SUBMIT { HookOutput::json(&json!({ "continue": true })) } else { HookOutput::silence() }
    },
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let mut fields = Fields::read(input.payload)?;
    let name = fields.optional_text("hook_event_name")?;
    let event = reading::find_event(agent, name, input)?;
    let session = match fields.optional_text("conversation_id")? {
        Some(conversation) if !conversation.is_empty() => conversation,
        _ => fields.text("session_id")?,
    };
    let workspace = workspace(&mut fields, input)?;
    // The model chooses the directory of a command. The other events have none.
    let own = if event == SHELL { fields.optional_directory("cwd")? } else { None };
    let moves = own.is_some();
    let origin = Origin {
        agent: Some(agent.name.to_owned()),
        session: Some(session),
        directory: own.or_else(|| workspace.clone()),
        workspace,
        ..Origin::default()
    };
    let outcome = if event == AFTER_FAILURE { CallOutcome::Failed } else { CallOutcome::Unknown };
    let mut request = reading::request(
        event,
        origin,
        &mut fields,
        |fields| tool_and_input(event, fields, input),
        |fields| {
            let results = ["tool_output", "output", "result_json", "error_message"];
            Ok((outcome, results.into_iter().find_map(|field| fields.take(field))))
        },
    )?;
    request.directory_moves = moves;
    // Commands share one shell. `preToolUse` reports the same command before this event.
    request.shell = (event == SHELL || event == AFTER_SHELL).then(String::new);
    request.call_id = fields.optional_text("tool_use_id")?;
    Ok(request)
}

fn decide(_event: HookEvent, answer: HookAnswer) -> HookOutput {
    let refused = |permission: &str, reason: String| {
        HookOutput::json(&json!({ "permission": permission, "user_message": reason, "agent_message": reason }))
    };
    match answer {
        HookAnswer::Allow { rewritten, note } => HookOutput::json(&object([
            ("permission", Some("allow".into())),
            ("updated_input", rewritten),
            ("agent_message", note.map(Value::from)),
        ])),
        HookAnswer::Deny { reason } => refused("deny", reason),
        HookAnswer::Ask { reason } => refused("ask", reason),
    }
}

/// The first folder of the project.
fn workspace(fields: &mut Fields, input: &HookInput<'_>) -> Result<Option<PathBuf>, PayloadError> {
    let field = "workspace_roots";
    let wrong = PayloadError::WrongType { field, expected: "a list of absolute paths" };
    match fields.take(field) {
        Some(Value::Array(roots)) if !roots.is_empty() => {
            let first = roots.first().and_then(Value::as_str).and_then(absolute);
            first.map(Some).ok_or(wrong)
        }
        None | Some(Value::Array(_)) => Ok(input.directory_in("CURSOR_PROJECT_DIR")),
        Some(_) => Err(wrong),
    }
}

fn tool_and_input(event: HookEvent, fields: &mut Fields, input: &HookInput<'_>) -> Result<(Tool, Value), PayloadError> {
    let tool = match event {
        SHELL | AFTER_SHELL => return Ok((Tool::own("Shell"), json!({ "command": fields.text("command")? }))),
        FILE | TAB => return Ok((Tool::own("Read"), files(fields)?)),
        SUBAGENT => return Ok((Tool::own("Task"), object([("prompt", fields.take("task"))]))),
        SERVER | AFTER_SERVER => {
            let tool = fields.text("tool_name")?;
            match fields.optional_text("mcp_server_name")?.filter(|server| !server.is_empty()) {
                Some(server) => Tool::of_server(server, tool),
                None => reading::server_tool(&tool, input),
            }
        }
        _ => {
            let tool = fields.text("tool_name")?;
            match tool.strip_prefix("MCP:") {
                Some(rest) => reading::server_tool(rest, input),
                None => Tool::parse(&tool),
            }
        }
    };
    // The arguments of a server's tool are JSON in a text.
    Ok((tool, fields.object_or_json("tool_input")?))
}

/// The file to read, and the files attached to it.
fn files(fields: &mut Fields) -> Result<Value, PayloadError> {
    let field = "attachments";
    let wrong = PayloadError::WrongType { field, expected: "a list of files" };
    let file = fields.text("file_path")?;
    let attached = match fields.take(field) {
        None => Vec::new(),
        Some(Value::Array(items)) => {
            let path = |item: &Value| {
                ["file_path", "filePath"].iter().find_map(|name| item.get(name)?.as_str().map(Value::from))
            };
            items.iter().map(path).collect::<Option<Vec<Value>>>().ok_or(wrong)?
        }
        Some(_) => return Err(wrong),
    };
    let attached = (!attached.is_empty()).then_some(Value::Array(attached));
    Ok(object([("file_path", Some(file.into())), ("path", attached)]))
}
