//! Qwen Code: Claude Code's events and answers with Gemini's tools.
//!
//! It ignores a rewritten input and runs the original, so a call that may only run changed is refused.

use std::time::Duration;

use super::claude;
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
    EventName::new("Notification", Notice),
    EventName::new("PreCompact", Notice),
    EventName::new("Stop", Notice),
    EventName::new("SubagentStart", Notice),
    EventName::new("SubagentStop", Notice),
    EventName::new("UserPromptSubmit", Notice),
];

/// Qwen Code.
#[derive(Debug, Clone, Copy)]
pub struct Qwen;

impl Agent for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["qwen-code"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, _) = tool_events::read(self.name(), EVENTS, received)?;
        let project = received.directory_in("QWEN_PROJECT_DIR");
        incoming.set_workspace(project.or_else(|| incoming.origin.directory.clone()));
        Ok(incoming)
    }

    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output {
        claude::decide(event, verdict)
    }

    fn complain(&self, event: EventName, reason: &str) -> Output {
        claude::complain(event, reason)
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.decides()
    }

    fn can_rewrite(&self, _event: EventName) -> bool {
        false
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }
}
