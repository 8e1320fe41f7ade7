//! The Agent Client Protocol's `session/request_permission`: the request as a call, the answer as one of its options.
//!
//! Reads both forms in use: `toolCall` (version 1), and `title` with a `subject` (version 2). Only the calls that an agent
//! chooses to ask about pass here.
//!
//! ```
//! use callgate_hooks::{HookAnswer, acp};
//! use serde_json::json;
//!
//! let request = acp::read(json!({
//!     "sessionId": "s-1",
//!     "toolCall": {"toolCallId": "c-1", "kind": "execute", "title": "make", "rawInput": {"command": "make"}},
//!     "options": [
//!         {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
//!         {"optionId": "no", "name": "Reject", "kind": "reject_once"},
//!     ],
//! }))?;
//! assert_eq!(request.call.tool.name, "Bash");
//! let outcome = acp::outcome(&request, &HookAnswer::allow());
//! assert_eq!(outcome, Some(json!({"outcome": {"outcome": "selected", "optionId": "yes"}})));
//! # Ok::<(), callgate_hooks::PayloadError>(())
//! ```

use callgate::call::{Call, Origin, Tool};
use callgate::json;
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use crate::{HookAnswer, PayloadError};

/// A permission request of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AcpPermissionRequest {
    /// The call. Where the request holds only a title for people, the tool is an unknown one: a title does not prove what
    /// will run.
    pub call: Call,
    /// The agent's id of the call.
    pub call_id: Option<String>,
    options: Vec<(OptionKind, String)>,
}

/// The meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionKind {
    AllowOnce,
    RejectOnce,
    /// `allow_always`, `reject_always` and unknown kinds. Never chosen.
    Other,
}

/// Reads the parameters of a request.
pub fn read(parameters: Value) -> Result<AcpPermissionRequest, PayloadError> {
    json::measure(&parameters)?;
    let mut fields = Fields::of(parameters)?;
    let origin = Origin { session: Some(fields.text("sessionId")?), ..Origin::default() };
    let options = options(&mut fields)?;
    let title = fields.optional_text("title")?;
    let (call, call_id) = match (fields.optional_object("toolCall")?, fields.optional_object("subject")?) {
        (Some(_), Some(_)) => {
            return Err(PayloadError::WrongType { field: "subject", expected: "allowed beside `toolCall`" });
        }
        (Some(tool_call), None) => of_tool_call(tool_call, origin)?,
        (None, Some(mut subject)) => match subject.text("type")?.as_str() {
            "tool_call" => of_tool_call(subject.object("toolCall")?, origin)?,
            "command" => of_command(subject, origin)?,
            kind => (named(&format!("acp_{kind}"), subject.into_value(), origin), None),
        },
        (None, None) => (named("acp_request", json!({ "title": title }), origin), None),
    };
    Ok(AcpPermissionRequest { call, call_id, options })
}

/// The result to answer with: the request's own option of the same meaning. `None` leaves the decision to the client. An
/// input cannot be changed here, so a call that may only run with a changed input is rejected.
pub fn outcome(request: &AcpPermissionRequest, answer: &HookAnswer) -> Option<Value> {
    let wanted = match answer {
        HookAnswer::Allow { rewritten: None, .. } => OptionKind::AllowOnce,
        HookAnswer::Allow { rewritten: Some(_), .. } | HookAnswer::Deny { .. } => OptionKind::RejectOnce,
        HookAnswer::Ask { .. } => return None,
    };
    let option = request.options.iter().find(|(kind, _)| *kind == wanted);
    Some(option.map_or_else(cancelled, |(_, id)| json!({ "outcome": { "outcome": "selected", "optionId": id } })))
}

/// The result that allows nothing, also for requests that cannot be read.
pub fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

fn options(fields: &mut Fields) -> Result<Vec<(OptionKind, String)>, PayloadError> {
    let field = "options";
    let wrong = || PayloadError::WrongType { field, expected: "a list of options with unique ids" };
    let Some(Value::Array(items)) = fields.take(field) else {
        return Err(wrong());
    };
    let mut options: Vec<(OptionKind, String)> = Vec::new();
    for item in items {
        let mut item = Fields::of(item)?;
        let id = item.text("optionId")?;
        // If two options had the same id, the agent could choose what it means.
        if options.iter().any(|(_, other)| *other == id) || options.len() >= MAXIMUM_OPTIONS {
            return Err(wrong());
        }
        let kind = match item.text("kind")?.as_str() {
            "allow_once" => OptionKind::AllowOnce,
            "reject_once" => OptionKind::RejectOnce,
            _ => OptionKind::Other,
        };
        options.push((kind, id));
    }
    Ok(options)
}

/// More options than any agent offers.
const MAXIMUM_OPTIONS: usize = 64;

fn named(tool: &str, input: Value, origin: Origin) -> Call {
    Call::new(Tool::own(tool), input).origin(origin)
}

/// Reads a command.
fn of_command(mut subject: Fields, mut origin: Origin) -> Result<(Call, Option<String>), PayloadError> {
    let call_id = subject.optional_text("toolCallId")?;
    origin.directory = subject.optional_directory("cwd")?;
    let input = json!({ "command": subject.text("command")? });
    Ok((named("Bash", input, origin), call_id))
}

/// Reads a tool call, as far as the agent describes it.
fn of_tool_call(mut tool_call: Fields, origin: Origin) -> Result<(Call, Option<String>), PayloadError> {
    let call_id = Some(tool_call.text("toolCallId")?);
    let kind = tool_call.optional_text("kind")?.unwrap_or_else(|| "other".to_owned());
    let input = tool_call.optional_object("rawInput")?;
    let call = match (tool_call.optional_text("name")?.filter(|name| !name.is_empty()), input) {
        (Some(name), Some(input)) => Call::new(Tool::parse(&name), input.into_value()).origin(origin),
        (None, Some(input)) if kind == "execute" => of_execution(input, origin)?,
        (_, input) => {
            // Keep the title for people, and the locations because they are paths.
            let mut described = match input.map(Fields::into_value) {
                Some(Value::Object(input)) => input,
                _ => Map::new(),
            };
            for (field, name) in [("title", "title"), ("locations", "paths")] {
                if let Some(value) = tool_call.take(field) {
                    described.entry(name).or_insert(value);
                }
            }
            named(&format!("acp_{kind}"), Value::Object(described), origin)
        }
    };
    Ok((call, call_id))
}

/// Fields beside a command that do not change what it does.
const NOTES: &str = "available_decisions call_id commands description parsed_cmd proposed_execpolicy_amendment reason \
                     started_at_ms turn_id";

/// Reads a command with the notes that agents add.
fn of_execution(mut input: Fields, mut origin: Origin) -> Result<Call, PayloadError> {
    if let Some(directory) = input.optional_directory("cwd")? {
        origin.directory = Some(directory);
    }
    for note in NOTES.split(' ') {
        input.take(note);
    }
    let Value::Object(input) = input.into_value() else {
        return Err(PayloadError::NotAnObject);
    };
    let tool = match input.get("command") {
        Some(Value::String(_)) => "Bash",
        Some(Value::Array(_)) => "shell",
        Some(_) => return Err(PayloadError::WrongType { field: "command", expected: "a string or a list of words" }),
        None => "acp_execute",
    };
    Ok(named(tool, Value::Object(input), origin))
}

#[cfg(test)]
#[path = "acp_tests.rs"]
mod tests;
