//! Qwen Code: Claude Code's events and answers with Gemini CLI's tools.
//!
//! It ignores a rewritten input and runs the original, so a call that may only run with a changed input is refused.

use std::time::Duration;

use super::claude;
use crate::event::HookEventKind::{After, Before, Permission, SessionEnd, SessionStart, TurnEnd};
use crate::reading::{self, FAILURE};
use crate::{Agent, HookEvent};

pub(super) static QWEN: Agent = Agent {
    name: "qwen",
    title: "Qwen Code",
    aliases: &["qwen-code"],
    events: &[
        HookEvent::new("PreToolUse", Before).asks(),
        HookEvent::new("PermissionRequest", Permission).asks(),
        HookEvent::new("PostToolUse", After),
        HookEvent::new(FAILURE, After),
        HookEvent::new("SessionStart", SessionStart),
        HookEvent::new("Stop", TurnEnd),
        HookEvent::new("UserPromptSubmit", TurnEnd),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    notices: "Notification PreCompact SubagentStart SubagentStop",
    default_timeout: Duration::from_secs(60),
    asking_modes: &["default"],
    shell: Some("bash"),
    read: |agent, input| {
        let (mut request, _) = reading::common(agent, input)?;
        request.set_workspace_from("QWEN_PROJECT_DIR", input);
        Ok(request)
    },
    decide: claude::decide,
    complain: claude::complain,
    ..Agent::BASE
};
