//! Reading payloads: what all dialects share, and the payload that Claude Code made common (`hook_event_name`, `tool_name`,
//! `tool_input`), which Codex, Gemini CLI, Qwen Code and others send with other names of events and tools.

use callgate::call::{Call, Origin, Tool};
use serde_json::Value;

use crate::fields::Fields;
use crate::{
    Agent, CallOutcome, CompletedCall, HookDetails, HookEvent, HookEventKind, HookInput, HookRequest, PayloadError,
};

/// The event of a failed tool call. Its payload describes the failure in `error`.
pub(crate) const FAILURE: &str = "PostToolUseFailure";

/// Finds an event of the agent by the name in the payload, or else on the hook's command line.
pub(crate) fn find_event(
    agent: &Agent,
    in_payload: Option<String>,
    input: &HookInput<'_>,
) -> Result<HookEvent, PayloadError> {
    let name = match (in_payload.as_deref(), input.event) {
        (Some(actual), Some(expected)) if !actual.eq_ignore_ascii_case(expected) => {
            return Err(PayloadError::EventMismatch { expected: expected.to_owned(), actual: actual.to_owned() });
        }
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => return Err(PayloadError::Missing { field: "hook_event_name" }),
    };
    let unknown = || PayloadError::UnknownEvent { agent: agent.name, name: name.to_owned() };
    agent.events().find(|event| event.name == name).ok_or_else(unknown)
}

/// Builds the request for an event. `call` reads the tool and its input, `completed` the outcome and result; both are only
/// used for events that have them.
pub(crate) fn request(
    event: HookEvent,
    origin: Origin,
    fields: &mut Fields,
    call: impl FnOnce(&mut Fields) -> Result<(Tool, Value), PayloadError>,
    completed: impl FnOnce(&mut Fields) -> Result<(CallOutcome, Option<Value>), PayloadError>,
) -> Result<HookRequest, PayloadError> {
    let read_call = |fields: &mut Fields| {
        let (tool, input) = call(fields)?;
        Ok::<_, PayloadError>(Call::new(tool, input).origin(origin.clone()))
    };
    let details = match event.kind {
        HookEventKind::Before => HookDetails::Before(read_call(fields)?),
        HookEventKind::Permission => HookDetails::Permission(read_call(fields)?),
        HookEventKind::After => {
            let (outcome, result) = completed(fields)?;
            HookDetails::After(CompletedCall { call: read_call(fields)?, outcome, result })
        }
        HookEventKind::SessionStart => HookDetails::SessionStart,
        HookEventKind::TurnEnd => HookDetails::TurnEnd,
        HookEventKind::SessionEnd => HookDetails::SessionEnd,
        HookEventKind::Notice => HookDetails::Notice,
    };
    Ok(HookRequest::new(event, details, origin))
}

/// Reads the common payload. Returns the remaining fields for what is special to the agent.
pub(crate) fn common(agent: &Agent, input: &HookInput<'_>) -> Result<(HookRequest, Fields), PayloadError> {
    let mut fields = Fields::read(input.payload)?;
    let request = common_fields(agent, &mut fields, "tool_response", input)?;
    Ok((request, fields))
}

/// Reads the common payload from parsed fields, with the result of a successful call in `result`.
pub(crate) fn common_fields(
    agent: &Agent,
    fields: &mut Fields,
    result: &str,
    input: &HookInput<'_>,
) -> Result<HookRequest, PayloadError> {
    let name = fields.optional_text("hook_event_name")?;
    let event = find_event(agent, name, input)?;
    let origin = Origin {
        agent: Some(agent.name.to_owned()),
        session: Some(fields.text("session_id")?),
        directory: Some(fields.directory("cwd")?),
        ..Origin::default()
    };
    let failed = event.name == FAILURE;
    let mut request = request(
        event,
        origin,
        fields,
        |fields| Ok((Tool::parse(&fields.text("tool_name")?), fields.object("tool_input")?.into_value())),
        |fields| Ok((CallOutcome::failed_if(failed), fields.take(if failed { "error" } else { result }))),
    )?;
    request.call_id = fields.optional_text("tool_use_id")?;
    request.mode = fields.optional_text("permission_mode")?;
    request.subagent = fields.optional_text("agent_id")?.filter(|id| !id.is_empty());
    Ok(request)
}

/// The server of a tool where the agent does not name it. No real server can have this name.
const UNKNOWN_SERVER: &str = "?";

/// Splits the joined names of a server and its tool. The result is never one of the agent's own tools, whatever its name;
/// it names a server only if exactly one of the known servers fits.
pub(crate) fn server_tool(name: &str, input: &HookInput<'_>) -> Tool {
    match Tool::parse_among(name, input.servers) {
        Tool { server: Some(server), name } => Tool::of_server(server, name),
        Tool { server: None, name } => Tool::of_server(UNKNOWN_SERVER, name),
    }
}
