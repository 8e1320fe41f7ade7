//! GitHub Copilot CLI: `preToolUse` with its own fields, or `PreToolUse` with Claude Code's.
//!
//! The form of the payload follows the spelling of the event in the configuration. The camel-case form does not name its
//! event: the hook's command line should; otherwise the fields identify it.

use std::time::Duration;

use callgate::call::{Call, Origin, Tool};
use serde_json::{Value, json};

use super::claude;
use crate::answer::object;
use crate::event::HookEventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::fields::Fields;
use crate::reading;
use crate::{
    Agent, CallOutcome, ContainedCalls, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError,
};

const BEFORE: HookEvent = HookEvent::new("preToolUse", Before).asks().rewrites();
const PERMISSION: HookEvent = HookEvent::new("permissionRequest", Permission).asks();
const AFTER: HookEvent = HookEvent::new("postToolUse", After);
const FAILURE: HookEvent = HookEvent::new("postToolUseFailure", After);
const START: HookEvent = HookEvent::new("sessionStart", SessionStart);
const END: HookEvent = HookEvent::new("sessionEnd", SessionEnd);
const PROMPT: HookEvent = HookEvent::new("userPromptSubmitted", Notice);

pub(super) static COPILOT: Agent = Agent {
    name: "copilot",
    title: "GitHub Copilot CLI",
    aliases: &["copilot-cli", "github-copilot"],
    events: &[
        BEFORE,
        PERMISSION,
        AFTER,
        FAILURE,
        START,
        END,
        PROMPT,
        HookEvent::new("PreToolUse", Before).asks().rewrites(),
        HookEvent::new("PermissionRequest", Permission).asks(),
        HookEvent::new("PostToolUse", After),
        HookEvent::new(reading::FAILURE, After),
        HookEvent::new("SessionStart", SessionStart),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    notices: "agentStop errorOccurred notification preCompact subagentStart subagentStop userPromptTransformed \
              ErrorOccurred Notification PreCompact Stop SubagentStop UserPromptSubmit",
    default_timeout: Duration::from_secs(30),
    contained: ContainedCalls::RewrittenKeepingDirectory,
    read,
    decide,
    complain: |event, reason| match event.kind {
        _ if is_pascal_case(event) => claude::complain(event, reason),
        After => HookOutput::json(&json!({ "additionalContext": reason })),
        _ => HookOutput::refusal(reason),
    },
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let mut fields = Fields::read(input.payload)?;
    let mut request = if fields.has("session_id") || (fields.has("hook_event_name") && !fields.has("sessionId")) {
        reading::common_fields(agent, &mut fields, "tool_result", input)?
    } else {
        camel_case(agent, fields, input)?
    };
    request.set_workspace_from("COPILOT_PROJECT_DIR", input);
    // The tools of servers are named `server-tool`. None of Copilot's own tools has a dash.
    request.correct_tool(|tool| {
        let joined = tool.server.is_none() && tool.name.contains('-');
        joined.then(|| reading::server_tool(&tool.name, input))
    });
    request.shell = request.call().and_then(shell);
    Ok(request)
}

fn camel_case(agent: &Agent, mut fields: Fields, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    // In this form only notifications name their event.
    let name = fields.optional_text("hook_event_name")?;
    let event = match (&name, input.event) {
        (None, None) => by_fields(&fields)?,
        _ => reading::find_event(agent, name, input)?,
    };
    let origin = Origin {
        agent: Some(agent.name.to_owned()),
        session: Some(fields.text("sessionId")?),
        directory: Some(fields.directory("cwd")?),
        ..Origin::default()
    };
    let failed = event == FAILURE;
    reading::request(event, origin, &mut fields, tool_and_input, |fields| {
        Ok((CallOutcome::failed_if(failed), fields.take(if failed { "error" } else { "toolResult" })))
    })
}

fn decide(event: HookEvent, answer: HookAnswer) -> HookOutput {
    if is_pascal_case(event) {
        return claude::decide(event, answer);
    }
    if event.kind == Permission {
        return match answer {
            HookAnswer::Allow { .. } => HookOutput::json(&json!({ "behavior": "allow" })),
            HookAnswer::Deny { reason } => HookOutput::json(&json!({ "behavior": "deny", "message": reason })),
            // Without an answer the agent asks.
            HookAnswer::Ask { .. } => HookOutput::silence(),
        };
    }
    let (decision, reason, rewritten) = match answer {
        HookAnswer::Allow { rewritten, note } => ("allow", note, rewritten),
        HookAnswer::Deny { reason } => ("deny", Some(reason), None),
        HookAnswer::Ask { reason } => ("ask", Some(reason), None),
    };
    HookOutput::json(&object([
        ("permissionDecision", Some(decision.into())),
        ("permissionDecisionReason", reason.map(Value::from)),
        ("modifiedArgs", rewritten),
    ]))
}

/// Whether the event is spelled, and so reported and answered, as in Claude Code.
fn is_pascal_case(event: HookEvent) -> bool {
    event.name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// The persistent shell of a call. The model chooses its id; calls without an id are taken to share one shell.
fn shell(call: &Call) -> Option<String> {
    let shells = call.tool.server.is_none() && matches!(call.tool.name.as_str(), "bash" | "Bash" | "write_bash");
    let id = || ["sessionId", "shellId"].iter().find_map(|name| call.input.get(name)?.as_str());
    shells.then(|| id().unwrap_or_default().to_owned())
}

/// Identifies the event by the fields of its payload.
fn by_fields(fields: &Fields) -> Result<HookEvent, PayloadError> {
    const IDENTIFYING: &[(&[&str], HookEvent)] = &[
        (&["toolName", "toolResult"], AFTER),
        (&["toolName", "error"], FAILURE),
        (&["toolName", "toolArgs"], BEFORE),
        (&["toolName", "toolInput"], PERMISSION),
        (&["source"], START),
        (&["reason"], END),
        (&["prompt"], PROMPT),
    ];
    let found = IDENTIFYING.iter().find(|(names, _)| names.iter().all(|name| fields.has(name)));
    found.map(|(_, event)| *event).ok_or(PayloadError::Missing { field: "toolName" })
}

fn tool_and_input(fields: &mut Fields) -> Result<(Tool, Value), PayloadError> {
    let tool = fields.text("toolName")?;
    let field = if fields.has("toolArgs") { "toolArgs" } else { "toolInput" };
    let input = match fields.take(field) {
        // The argument of this tool is free text.
        Some(Value::String(patch)) if tool == "apply_patch" && patch.trim_start().starts_with("***") => {
            json!({ "input": patch })
        }
        // Some releases send the arguments as the model wrote them: as JSON in a text.
        value => Fields::single(field, value).object_or_json(field)?,
    };
    Ok((Tool::parse(&tool), input))
}
