//! OpenCode, through a plugin that hands every call to a hook and takes Claude Code's answers.
//!
//! OpenCode joins a server's name and its tool's with `_`, so a name that is none of its own tools belongs to a server.

use std::time::Duration;

use super::claude;
use crate::event::EventKind::{After, Before, SessionEnd, SessionStart};
use crate::{Agent, EventName, Incoming, Output, PayloadError, Received, Verdict, tool_events};

static EVENTS: &[EventName] = &[
    EventName::new("PreToolUse", Before),
    EventName::new("PostToolUse", After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
];

/// OpenCode's own tools.
static OWN_TOOLS: &[&str] = &[
    "apply_patch",
    "bash",
    "batch",
    "codesearch",
    "edit",
    "glob",
    "grep",
    "invalid",
    "list",
    "lsp",
    "multiedit",
    "patch",
    "plan_enter",
    "plan_exit",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
    "write",
];

/// OpenCode.
#[derive(Debug, Clone, Copy)]
pub struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, _) = tool_events::read(self.name(), EVENTS, received)?;
        incoming.set_workspace(incoming.origin.directory.clone());
        if let Some(tool) = incoming.call().map(|call| call.tool.clone())
            && !OWN_TOOLS.contains(&tool.name.as_str())
        {
            incoming.set_tool(tool_events::run_together(&tool.to_string(), received));
        }
        Ok(incoming)
    }

    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output {
        claude::decide(event, verdict)
    }

    fn complain(&self, event: EventName, reason: &str) -> Output {
        claude::complain(event, reason)
    }

    fn can_ask(&self, _event: EventName) -> bool {
        // the plugin has nobody to ask
        false
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.kind == Before
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }
}
