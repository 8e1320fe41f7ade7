//! Claude Code: `PreToolUse`, `PermissionRequest`, `PostToolUse`.
//!
//! Standard output that is not JSON, or JSON without `hookEventName`, lets the tool run. Exit code 2 stops it.

use std::time::Duration;

use callgate::call::Tool;
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::HookEventKind::{After, Before, Permission, SessionEnd, SessionStart, TurnEnd};
use crate::reading::{self, FAILURE};
use crate::{Agent, ContainedCalls, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError};

pub(super) static CLAUDE: Agent = Agent {
    name: "claude",
    title: "Claude Code",
    aliases: &["claude-code"],
    events: &[
        HookEvent::new("PreToolUse", Before).asks().rewrites(),
        HookEvent::new("PermissionRequest", Permission).asks().rewrites(),
        HookEvent::new("PostToolUse", After),
        HookEvent::new(FAILURE, After),
        HookEvent::new("SessionStart", SessionStart),
        // A call that its user refuses is reported by nothing else.
        HookEvent::new("Stop", TurnEnd),
        HookEvent::new("UserPromptSubmit", TurnEnd),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    notices: "ConfigChange CwdChanged Elicitation ElicitationResult FileChanged InstructionsLoaded Notification \
              PermissionDenied PostCompact PostToolBatch PreCompact Setup StopFailure SubagentStart SubagentStop \
              TaskCompleted TaskCreated TeammateIdle UserPromptExpansion",
    default_timeout: Duration::from_secs(600),
    contained: ContainedCalls::RewrittenKeepingDirectory,
    asking_modes: &["default"],
    read,
    decide,
    complain,
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let (mut request, mut fields) = reading::common(agent, input)?;
    // `cwd` follows `cd` from call to call.
    request.directory_moves = true;
    request.set_workspace(input.directory_in("CLAUDE_PROJECT_DIR"));
    if let Some(mut server) = fields.optional_object("mcp_server")? {
        let name = server.text("name")?;
        request.server_source = server.optional_text("source")?;
        request.correct_tool(|tool| Some(of_server(&name, tool)));
    }
    Ok(request)
}

/// The tool of a server that the payload names separately. In the tool's name Claude Code replaces special characters of
/// the server's name by `_`.
fn of_server(server: &str, tool: &Tool) -> Tool {
    let written: String = server
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
        .collect();
    let whole = tool.to_string();
    match whole.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(written.as_str())?.strip_prefix("__")) {
        Some(name) if !name.is_empty() => Tool::of_server(written, name),
        // It is never one of the agent's own tools, whatever its name.
        _ if tool.server.is_none() => Tool::of_server(written, whole),
        _ => tool.clone(),
    }
}

/// The output for one event. Claude Code ignores it without `hookEventName`.
fn specific<const COUNT: usize>(event: HookEvent, entries: [(&str, Option<Value>); COUNT]) -> HookOutput {
    let mut entries = object(entries);
    if let Value::Object(map) = &mut entries {
        map.insert("hookEventName".to_owned(), event.name.into());
    }
    HookOutput::json(&json!({ "hookSpecificOutput": entries }))
}

/// Writes an answer for Claude Code and the agents that adopted its contract.
pub(super) fn decide(event: HookEvent, answer: HookAnswer) -> HookOutput {
    if event.kind == Permission {
        let decision = match answer {
            HookAnswer::Allow { rewritten, .. } => {
                object([("behavior", Some("allow".into())), ("updatedInput", rewritten)])
            }
            HookAnswer::Deny { reason } => json!({ "behavior": "deny", "message": reason }),
            // Without an answer the agent asks.
            HookAnswer::Ask { .. } => return HookOutput::silence(),
        };
        return specific(event, [("decision", Some(decision))]);
    }
    let (decision, reason, rewritten, note) = match answer {
        HookAnswer::Allow { rewritten, note } => ("allow", None, rewritten, note),
        HookAnswer::Deny { reason } => ("deny", Some(reason), None, None),
        HookAnswer::Ask { reason } => ("ask", Some(reason), None, None),
    };
    specific(
        event,
        [
            ("permissionDecision", Some(decision.into())),
            ("permissionDecisionReason", reason.map(Value::from)),
            ("updatedInput", rewritten),
            ("additionalContext", note.map(Value::from)),
        ],
    )
}

/// Tells the model about a problem after a tool has run. This stops nothing.
pub(super) fn complain(event: HookEvent, reason: &str) -> HookOutput {
    match event.kind {
        After => HookOutput::json(&json!({ "decision": "block", "reason": reason })),
        _ => HookOutput::refusal(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_tool_is_never_one_of_the_agents_own() {
        let cases = [
            ("fs", "mcp__fs__write_file", Tool::of_server("fs", "write_file")),
            ("my server", "mcp__my_server__read", Tool::of_server("my_server", "read")),
            ("a__b", "mcp__a__b__read", Tool::of_server("a__b", "read")),
            ("fs", "Read", Tool::of_server("fs", "Read")),
            ("fs", "mcp__other__read", Tool::of_server("other", "read")),
        ];
        for (server, name, expected) in cases {
            assert_eq!(of_server(server, &Tool::parse(name)), expected, "{server} {name}");
        }
    }
}
