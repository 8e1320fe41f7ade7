//! callgate's own dialect, for agents without a file here. `docs/hook-protocol.md` describes it.

use std::time::Duration;

use callgate::call::{Origin, Tool};
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::HookEventKind::{After, Before, Permission, SessionEnd, SessionStart, TurnEnd};
use crate::fields::Fields;
use crate::reading;
use crate::{
    Agent, CallOutcome, ContainedCalls, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError,
};

/// The version of the dialect.
const VERSION: u64 = 1;
/// The exit code of a deny, as in every dialect.
const DENIED: u8 = 2;
/// The exit code of an ask: not zero, so that a caller that checks nothing else does not treat it as a yes.
const ASKED: u8 = 3;

pub(super) static GENERIC: Agent = Agent {
    name: "generic",
    title: "Any other agent",
    aliases: &["json"],
    events: &[
        HookEvent::new("before", Before).asks().rewrites(),
        HookEvent::new("permission", Permission).asks().rewrites(),
        HookEvent::new("after", After),
        HookEvent::new("session_start", SessionStart),
        HookEvent::new("turn_end", TurnEnd),
        HookEvent::new("session_end", SessionEnd),
    ],
    default_timeout: Duration::from_secs(60),
    contained: ContainedCalls::Rewritten,
    asking_modes: &["default"],
    read,
    decide,
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let mut fields = Fields::read(input.payload)?;
    match fields.take("version") {
        Some(version) if version == VERSION => {}
        Some(version) => return Err(PayloadError::UnknownVersion { version: version.to_string() }),
        None => return Err(PayloadError::Missing { field: "version" }),
    }
    let name = fields.optional_text("event")?;
    let event = reading::find_event(agent, name, input)?;
    let directory = fields.optional_directory("directory")?;
    let origin = Origin {
        agent: Some(fields.optional_text("agent")?.unwrap_or_else(|| agent.name.to_owned())),
        session: fields.optional_text("session")?,
        scope: fields.optional_text("scope")?,
        workspace: fields.optional_directory("workspace")?.or_else(|| directory.clone()),
        directory,
        ..Origin::default()
    };
    let mut request = reading::request(event, origin, &mut fields, tool_and_input, |fields| {
        Ok((outcome(fields)?, fields.take("result")))
    })?;
    request.call_id = fields.optional_text("call_id")?;
    request.mode = fields.optional_text("mode")?;
    request.subagent = fields.optional_text("subagent")?;
    request.shell = fields.optional_text("shell")?;
    Ok(request)
}

fn tool_and_input(fields: &mut Fields) -> Result<(Tool, Value), PayloadError> {
    let tool = fields.text("tool")?;
    let tool = match fields.optional_text("server")? {
        Some(server) => Tool::of_server(server, tool),
        None => Tool::parse(&tool),
    };
    Ok((tool, fields.object("input")?.into_value()))
}

fn outcome(fields: &mut Fields) -> Result<CallOutcome, PayloadError> {
    match fields.take("outcome") {
        None => Ok(CallOutcome::Unknown),
        Some(Value::String(text)) if text == "succeeded" => Ok(CallOutcome::Succeeded),
        Some(Value::String(text)) if text == "failed" => Ok(CallOutcome::Failed),
        Some(_) => Err(PayloadError::WrongType { field: "outcome", expected: "`succeeded` or `failed`" }),
    }
}

fn decide(_event: HookEvent, answer: HookAnswer) -> HookOutput {
    let refused = |decision: &str, reason: String, code: u8| {
        let document = json!({ "version": VERSION, "decision": decision, "reason": reason });
        HookOutput { stdout: format!("{document}\n"), stderr: format!("{reason}\n"), code }
    };
    match answer {
        HookAnswer::Allow { rewritten, note } => HookOutput::json(&object([
            ("version", Some(VERSION.into())),
            ("decision", Some("allow".into())),
            ("input", rewritten),
            ("note", note.map(Value::from)),
        ])),
        HookAnswer::Deny { reason } => refused("deny", reason, DENIED),
        HookAnswer::Ask { reason } => refused("ask", reason, ASKED),
    }
}
