//! OpenCode, through a plugin that hands every call to a hook and reads Claude Code's answers.
//!
//! OpenCode joins the names of a server and its tool with `_`, so a tool that is not its own belongs to a server.

use std::time::Duration;

use super::claude;
use crate::event::HookEventKind::{After, Before, SessionEnd, SessionStart};
use crate::{Agent, ContainedCalls, HookEvent, reading};

/// OpenCode's own tools, separated by spaces.
const OWN_TOOLS: &str = "apply_patch bash batch codesearch edit glob grep invalid list lsp multiedit patch plan_enter plan_exit \
                         question read skill task todoread todowrite webfetch websearch write";

pub(super) static OPENCODE: Agent = Agent {
    name: "opencode",
    title: "OpenCode",
    // The plugin has no way to ask.
    events: &[
        HookEvent::new("PreToolUse", Before).rewrites(),
        HookEvent::new("PostToolUse", After),
        HookEvent::new("SessionStart", SessionStart),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    default_timeout: Duration::from_secs(60),
    contained: ContainedCalls::Rewritten,
    read: |agent, input| {
        let (mut request, mut fields) = reading::common(agent, input)?;
        // A plugin that replaces the arguments, instead of changing them, is ignored; one that changes them says so.
        if fields.take("changes_input") != Some(true.into()) {
            request.event = request.event.as_it_is();
        }
        request.set_workspace(request.origin.directory.clone());
        request.correct_tool(|tool| {
            let own = OWN_TOOLS.split(' ').any(|name| name == tool.name);
            (!own).then(|| reading::server_tool(&tool.to_string(), input))
        });
        Ok(request)
    },
    decide: claude::decide,
    complain: claude::complain,
    ..Agent::BASE
};
