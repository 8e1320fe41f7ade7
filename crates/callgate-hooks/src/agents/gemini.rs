//! Gemini CLI: `BeforeTool`, `AfterTool`.
//!
//! An `ask` without a terminal never returns, so it is never said. A rewrite is laid over the original input: what it does
//! not name stays as it was.

use std::time::Duration;

use callgate::call::Tool;
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::EventKind::{After, Before, Notice, SessionEnd, SessionStart};
use crate::{Agent, Event, EventName, Incoming, Outcome, Output, PayloadError, Received, Verdict, tool_events};

static EVENTS: &[EventName] = &[
    EventName::new("BeforeTool", Before),
    EventName::new("AfterTool", After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
    EventName::new("AfterAgent", Notice),
    EventName::new("AfterModel", Notice),
    EventName::new("BeforeAgent", Notice),
    EventName::new("BeforeModel", Notice),
    EventName::new("BeforeToolSelection", Notice),
    EventName::new("Notification", Notice),
    EventName::new("PreCompress", Notice),
];

/// Gemini CLI.
#[derive(Debug, Clone, Copy)]
pub struct Gemini;

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["gemini-cli"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, mut fields) = tool_events::read(self.name(), EVENTS, received)?;
        let project = received.directory_in("GEMINI_PROJECT_DIR");
        incoming.set_workspace(project.or_else(|| incoming.origin.directory.clone()));
        if let Some(mut server) = fields.optional_object("mcp_context")? {
            incoming.set_tool(Tool::of_server(server.text("server_name")?, server.text("tool_name")?));
        } else if let Some(tool) = incoming.call().map(|call| call.tool.clone())
            && tool.name.starts_with("mcp_")
        {
            incoming.set_tool(tool_events::run_together(&tool.name, received));
        }
        if let Event::After(after) = &incoming.event {
            let failed =
                after.result.as_ref().and_then(|result| result.get("error")).is_some_and(|error| !error.is_null());
            incoming.set_outcome(if failed { Outcome::Failed } else { Outcome::Succeeded });
        }
        Ok(incoming)
    }

    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output {
        match verdict {
            Verdict::Allow { rewritten, note } => {
                let changed = |input: &Value| json!({ "hookEventName": event.name, "tool_input": input });
                Output::json(&object([
                    ("decision", Some("allow".into())),
                    ("hookSpecificOutput", rewritten.map(changed)),
                    ("systemMessage", note.map(Value::from)),
                ]))
            }
            Verdict::Deny { reason } | Verdict::Ask { reason } => deny(&reason),
        }
    }

    fn complain(&self, event: EventName, reason: &str) -> Output {
        if event.kind == After { deny(reason) } else { Output::refusal(reason) }
    }

    fn can_ask(&self, _event: EventName) -> bool {
        false
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.kind == Before
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }
}

fn deny(reason: &str) -> Output {
    Output::json(&json!({ "decision": "deny", "reason": reason }))
}
