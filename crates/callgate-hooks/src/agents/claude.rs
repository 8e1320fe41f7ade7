//! Claude Code: `PreToolUse`, `PermissionRequest`, `PostToolUse`.
//!
//! Standard output that is no JSON, or JSON without `hookEventName`, lets the tool run. Exit code 2 stops it.

use std::time::Duration;

use callgate::call::Tool;
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::tool_events::{self, FAILURE};
use crate::{Agent, EventName, Incoming, Output, PayloadError, Received, Verdict};

static EVENTS: &[EventName] = &[
    EventName::new("PreToolUse", Before),
    EventName::new("PermissionRequest", Permission),
    EventName::new("PostToolUse", After),
    EventName::new(FAILURE, After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
    EventName::new("ConfigChange", Notice),
    EventName::new("CwdChanged", Notice),
    EventName::new("Elicitation", Notice),
    EventName::new("ElicitationResult", Notice),
    EventName::new("FileChanged", Notice),
    EventName::new("InstructionsLoaded", Notice),
    EventName::new("Notification", Notice),
    EventName::new("PermissionDenied", Notice),
    EventName::new("PostCompact", Notice),
    EventName::new("PostToolBatch", Notice),
    EventName::new("PreCompact", Notice),
    EventName::new("Setup", Notice),
    EventName::new("Stop", Notice),
    EventName::new("StopFailure", Notice),
    EventName::new("SubagentStart", Notice),
    EventName::new("SubagentStop", Notice),
    EventName::new("TaskCompleted", Notice),
    EventName::new("TaskCreated", Notice),
    EventName::new("TeammateIdle", Notice),
    EventName::new("UserPromptExpansion", Notice),
    EventName::new("UserPromptSubmit", Notice),
];

/// Claude Code.
#[derive(Debug, Clone, Copy)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["claude-code"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, mut fields) = tool_events::read(self.name(), EVENTS, received)?;
        // `cwd` follows `cd` from call to call
        incoming.directory_moves = true;
        incoming.set_workspace(received.directory_in("CLAUDE_PROJECT_DIR"));
        if let Some(mut server) = fields.optional_object("mcp_server")? {
            let name = server.text("name")?;
            incoming.server_source = server.optional_text("source")?;
            if let Some(tool) = incoming.call().map(|call| of_server(&name, &call.tool)) {
                incoming.set_tool(tool);
            }
        }
        Ok(incoming)
    }

    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output {
        decide(event, verdict)
    }

    fn complain(&self, event: EventName, reason: &str) -> Output {
        complain(event, reason)
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.decides()
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.decides()
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// The tool of a server that the agent names beside the tool's name, in which it writes `_` for what is no letter.
fn of_server(server: &str, tool: &Tool) -> Tool {
    let written: String = server
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
        .collect();
    let whole = tool.to_string();
    match whole.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(written.as_str())?.strip_prefix("__")) {
        Some(name) if !name.is_empty() => Tool::of_server(written, name),
        // never one of the agent's own tools, whatever it is called
        _ if tool.server.is_none() => Tool::of_server(written, whole),
        _ => tool.clone(),
    }
}

/// What is said of one event. `hookEventName` is what makes it count.
fn specific<const COUNT: usize>(event: EventName, entries: [(&str, Option<Value>); COUNT]) -> Output {
    let mut entries = object(entries);
    if let Value::Object(map) = &mut entries {
        map.insert("hookEventName".to_owned(), event.name.into());
    }
    Output::json(&json!({ "hookSpecificOutput": entries }))
}

/// The answer as Claude Code, and those who took over its contract, read it.
pub(crate) fn decide(event: EventName, verdict: Verdict<'_>) -> Output {
    if event.kind == Permission {
        let decision = match verdict {
            Verdict::Allow { rewritten, .. } => {
                object([("behavior", Some("allow".into())), ("updatedInput", rewritten.cloned())])
            }
            Verdict::Deny { reason } => json!({ "behavior": "deny", "message": reason }),
            // without an answer the agent asks
            Verdict::Ask { .. } => return Output::silence(),
        };
        return specific(event, [("decision", Some(decision))]);
    }
    let (decision, reason, rewritten, note) = match verdict {
        Verdict::Allow { rewritten, note } => ("allow", None, rewritten.cloned(), note),
        Verdict::Deny { reason } => ("deny", Some(reason), None, None),
        Verdict::Ask { reason } => ("ask", Some(reason), None, None),
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

/// Tells the model after a tool has run, which stops nothing.
pub(crate) fn complain(event: EventName, reason: &str) -> Output {
    match event.kind {
        After => Output::json(&json!({ "decision": "block", "reason": reason })),
        _ => Output::refusal(reason),
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
