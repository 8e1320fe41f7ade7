//! Cursor: `preToolUse`, and the steps before a command, a server's tool and a file.
//!
//! With `failClosed` an empty answer blocks, so a permission is always printed. In `preToolUse` an `ask` is not acted on.

use std::path::PathBuf;
use std::time::Duration;

use callgate::call::{Call, Origin, Tool};
use callgate::json;
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::fields::{Fields, absolute};
use crate::tool_events::{self, run_together};
use crate::{Agent, Event, EventName, Incoming, Outcome, Output, PayloadError, Received, Verdict};

const TOOL: EventName = EventName::new("preToolUse", Before);
const SHELL: EventName = EventName::new("beforeShellExecution", Before);
const SERVER: EventName = EventName::new("beforeMCPExecution", Before);
const FILE: EventName = EventName::new("beforeReadFile", Before);
const TAB: EventName = EventName::new("beforeTabFileRead", Before);
const SUBAGENT: EventName = EventName::new("subagentStart", Before);
const AFTER_SHELL: EventName = EventName::new("afterShellExecution", After);
const AFTER_SERVER: EventName = EventName::new("afterMCPExecution", After);
const AFTER_FAILURE: EventName = EventName::new("postToolUseFailure", After);
const SUBMIT: EventName = EventName::new("beforeSubmitPrompt", Notice);

static EVENTS: &[EventName] = &[
    TOOL,
    SHELL,
    SERVER,
    FILE,
    TAB,
    SUBAGENT,
    EventName::new("postToolUse", After),
    AFTER_FAILURE,
    AFTER_SHELL,
    AFTER_SERVER,
    EventName::new("sessionStart", SessionStart),
    EventName::new("sessionEnd", SessionEnd),
    SUBMIT,
    EventName::new("afterAgentResponse", Notice),
    EventName::new("afterAgentThought", Notice),
    // `postToolUse` tells of the same, with the id of the call
    EventName::new("afterFileEdit", Notice),
    EventName::new("afterTabFileEdit", Notice),
    EventName::new("preCompact", Notice),
    EventName::new("stop", Notice),
    EventName::new("subagentStop", Notice),
];

/// Cursor.
#[derive(Debug, Clone, Copy)]
pub struct Cursor;

impl Agent for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["cursor-agent"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let mut fields = Fields::read(received.payload)?;
        let told = fields.optional_text("hook_event_name")?;
        let name = tool_events::event_named(self.name(), EVENTS, told, received)?;
        let session = match fields.optional_text("conversation_id")? {
            Some(conversation) if !conversation.is_empty() => conversation,
            _ => fields.text("session_id")?,
        };
        let workspace = workspace(&mut fields, received)?;
        // a command's own directory is chosen by the model, the other steps have none
        let own = if name == SHELL { fields.optional_directory("cwd")? } else { None };
        let moves = own.is_some();
        let origin = Origin {
            agent: Some(self.name().to_owned()),
            session: Some(session),
            directory: own.or_else(|| workspace.clone()),
            workspace,
            ..Origin::default()
        };
        let event = match name.kind {
            Before => Event::Before(call(name, &mut fields, &origin, received)?),
            Permission => Event::Permission(call(name, &mut fields, &origin, received)?),
            After => {
                let call = call(name, &mut fields, &origin, received)?;
                let outcome = if name == AFTER_FAILURE { Outcome::Failed } else { Outcome::Unknown };
                let result = ["tool_output", "output", "result_json", "error_message"]
                    .into_iter()
                    .find_map(|field| fields.take(field));
                Event::After(crate::After { call, outcome, result })
            }
            SessionStart => Event::SessionStart,
            SessionEnd => Event::SessionEnd,
            Notice => Event::Notice,
        };
        let mut incoming = Incoming::new(name, event, origin);
        incoming.directory_moves = moves;
        // what one command leaves in the shell is there for the next; `preToolUse` tells of the same command before
        incoming.shell = (name == SHELL || name == AFTER_SHELL).then(String::new);
        incoming.call_id = fields.optional_text("tool_use_id")?;
        Ok(incoming)
    }

    fn decide(&self, _event: EventName, verdict: Verdict<'_>) -> Output {
        let refused = |permission: &str, reason: String| {
            Output::json(&json!({ "permission": permission, "user_message": reason, "agent_message": reason }))
        };
        match verdict {
            Verdict::Allow { rewritten, note } => Output::json(&object([
                ("permission", Some("allow".into())),
                ("updated_input", rewritten.cloned()),
                ("agent_message", note.map(Value::from)),
            ])),
            Verdict::Deny { reason } => refused("deny", reason),
            Verdict::Ask { reason } => refused("ask", reason),
        }
    }

    fn acknowledge(&self, event: EventName) -> Output {
        if event == SUBMIT { Output::json(&json!({ "continue": true })) } else { Output::silence() }
    }

    fn can_ask(&self, event: EventName) -> bool {
        event == SHELL || event == SERVER
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event == TOOL
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// The first of the project's folders.
fn workspace(fields: &mut Fields, received: &Received<'_>) -> Result<Option<PathBuf>, PayloadError> {
    let field = "workspace_roots";
    let wrong = PayloadError::WrongType { field, expected: "a list of absolute paths" };
    match fields.take(field) {
        Some(Value::Array(roots)) if !roots.is_empty() => {
            let first = roots.first().and_then(Value::as_str).and_then(absolute);
            first.map(Some).ok_or(wrong)
        }
        None | Some(Value::Array(_)) => Ok(received.directory_in("CURSOR_PROJECT_DIR")),
        Some(_) => Err(wrong),
    }
}

fn call(name: EventName, fields: &mut Fields, origin: &Origin, received: &Received<'_>) -> Result<Call, PayloadError> {
    let (tool, input) = match name {
        SHELL | AFTER_SHELL => (Tool::own("Shell"), json!({ "command": fields.text("command")? })),
        FILE | TAB => (Tool::own("Read"), files(fields)?),
        SUBAGENT => (Tool::own("Task"), object([("prompt", fields.take("task"))])),
        SERVER | AFTER_SERVER => {
            let tool = fields.text("tool_name")?;
            let server = fields.optional_text("mcp_server_name")?.filter(|server| !server.is_empty());
            let tool = match server {
                Some(server) => Tool::of_server(server, tool),
                None => run_together(&tool, received),
            };
            (tool, input(fields)?)
        }
        _ => {
            let tool = fields.text("tool_name")?;
            let tool = match tool.strip_prefix("MCP:") {
                Some(rest) => run_together(rest, received),
                None => Tool::parse(&tool),
            };
            (tool, input(fields)?)
        }
    };
    Ok(Call::new(tool, input).origin(origin.clone()))
}

/// The arguments, which for a server's tool are JSON in a text.
fn input(fields: &mut Fields) -> Result<Value, PayloadError> {
    let field = "tool_input";
    let wrong = PayloadError::WrongType { field, expected: "an object" };
    let value = match fields.take(field) {
        Some(Value::String(text)) => json::read(text.as_bytes())?,
        Some(value) => value,
        None => return Err(PayloadError::Missing { field }),
    };
    if value.is_object() { Ok(value) } else { Err(wrong) }
}

/// The file that is read, and those that come along with it.
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
