//! Codex CLI: `PreToolUse`, `PermissionRequest`, `PostToolUse`, with a strict reader that fails open.
//!
//! A field it does not know, `ask`, an `allow` without a rewrite or a deny without a reason is a failed hook, and the tool
//! runs. So to allow is to print nothing, and nothing is ever said that its schema does not have.

use std::time::Duration;

use callgate::call::Call;
use callgate::describe::typed_into;
use serde_json::{Value, json};

use super::claude;
use crate::answer::plain;
use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::{Agent, Answer, EventName, Incoming, Output, PayloadError, Received, tool_events};

static EVENTS: &[EventName] = &[
    EventName::new("PreToolUse", Before),
    EventName::new("PermissionRequest", Permission),
    EventName::new("PostToolUse", After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
    EventName::new("PostCompact", Notice),
    EventName::new("PreCompact", Notice),
    EventName::new("Stop", Notice),
    EventName::new("SubagentStart", Notice),
    EventName::new("SubagentStop", Notice),
    EventName::new("UserPromptSubmit", Notice),
];

/// Codex CLI.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, _) = tool_events::read(self.name(), EVENTS, received)?;
        // `cwd` is the call's own `workdir`, which the model chooses
        incoming.directory_moves = true;
        if incoming.name.decides() {
            incoming.unseen_input = incoming.call().and_then(goes_on_listening);
        }
        Ok(incoming)
    }

    fn write(&self, event: EventName, answer: &Answer) -> Output {
        match (event.kind, answer) {
            (Before, Answer::Allow { rewritten: None, note: None }) => Output::silence(),
            // nothing is said beside a rewrite: if it were not taken, the rewrite would not be either
            (Before, Answer::Allow { rewritten: None, note: Some(note) }) => {
                Output::json(&json!({ "systemMessage": plain(note) }))
            }
            (Before, Answer::Allow { rewritten, note: Some(_) }) => {
                claude::write(event, &Answer::Allow { rewritten: rewritten.clone(), note: None })
            }
            (Before, Answer::Ask { reason }) => claude::write(event, &Answer::deny(reason)),
            (Permission, Answer::Allow { rewritten: Some(_), .. }) => {
                claude::write(event, &Answer::deny("this call would have to be changed, which Codex cannot do here"))
            }
            _ => claude::write(event, answer),
        }
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.kind == Permission
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.kind == Before
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// The program of a command that would take what is typed into it later. Codex calls no hook for `write_stdin`, so whoever
/// allows a bare `bash` has allowed everything.
fn goes_on_listening(call: &Call) -> Option<String> {
    if call.tool.server.is_some() || call.tool.name != "Bash" {
        return None;
    }
    call.input.get("command").and_then(Value::as_str).and_then(typed_into)
}
