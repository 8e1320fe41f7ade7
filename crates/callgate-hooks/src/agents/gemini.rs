//! Gemini CLI: `BeforeTool`, `AfterTool`.
//!
//! An `ask` without a terminal never returns, so it is never sent. A rewrite is merged into the original input: fields that
//! it does not name keep their values.

use std::time::Duration;

use callgate::call::Tool;
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::HookEventKind::{After, Before, SessionEnd, SessionStart};
use crate::{
    Agent, CallOutcome, ContainedCalls, HookAnswer, HookDetails, HookEvent, HookInput, HookOutput, HookRequest,
    PayloadError, reading,
};

pub(super) static GEMINI: Agent = Agent {
    name: "gemini",
    title: "Gemini CLI",
    aliases: &["gemini-cli"],
    events: &[
        HookEvent::new("BeforeTool", Before).rewrites(),
        HookEvent::new("AfterTool", After),
        HookEvent::new("SessionStart", SessionStart),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    notices: "AfterAgent AfterModel BeforeAgent BeforeModel BeforeToolSelection Notification PreCompress",
    default_timeout: Duration::from_secs(60),
    contained: ContainedCalls::Rewritten,
    shell: Some("bash"),
    read,
    decide,
    complain: |event, reason| if event.kind == After { deny(reason) } else { HookOutput::refusal(reason) },
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let (mut request, mut fields) = reading::common(agent, input)?;
    request.set_workspace_from("GEMINI_PROJECT_DIR", input);
    match fields.optional_object("mcp_context")? {
        Some(mut server) => {
            let tool = Tool::of_server(server.text("server_name")?, server.text("tool_name")?);
            request.correct_tool(|_| Some(tool));
        }
        None => {
            request.correct_tool(|tool| tool.name.starts_with("mcp_").then(|| reading::server_tool(&tool.name, input)))
        }
    }
    if let HookDetails::After(completed) = &mut request.details {
        let error = completed.result.as_ref().and_then(|result| result.get("error"));
        completed.outcome = CallOutcome::failed_if(error.is_some_and(|error| !error.is_null()));
    }
    Ok(request)
}

fn decide(event: HookEvent, answer: HookAnswer) -> HookOutput {
    match answer {
        HookAnswer::Allow { rewritten, note } => {
            let changed = |input: Value| json!({ "hookEventName": event.name, "tool_input": input });
            HookOutput::json(&object([
                ("decision", Some("allow".into())),
                ("hookSpecificOutput", rewritten.map(changed)),
                ("systemMessage", note.map(Value::from)),
            ]))
        }
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } => deny(&reason),
    }
}

fn deny(reason: &str) -> HookOutput {
    HookOutput::json(&json!({ "decision": "deny", "reason": reason }))
}
