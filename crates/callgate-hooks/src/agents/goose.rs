//! Goose: hooks of a plugin, with `event` and `working_dir`.
//!
//! Exit code 2 with a reason, or `{"decision": "block"}`, denies; everything else allows.

use std::time::Duration;

use callgate::call::{Call, Origin, Tool};
use serde_json::json;

use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::fields::Fields;
use crate::{Agent, Event, EventName, Incoming, Outcome, Output, PayloadError, Received, Verdict, tool_events};

static EVENTS: &[EventName] = &[
    EventName::new("PreToolUse", Before),
    EventName::new("PostToolUse", After),
    EventName::new(tool_events::FAILURE, After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
    // these tell of a call that `PreToolUse` decides
    EventName::new("AfterFileEdit", Notice),
    EventName::new("AfterShellExecution", Notice),
    EventName::new("BeforeReadFile", Notice),
    EventName::new("BeforeShellExecution", Notice),
    EventName::new("PreToolUseResult", Notice),
    EventName::new("Stop", Notice),
    EventName::new("UserPromptSubmit", Notice),
];

/// Goose.
#[derive(Debug, Clone, Copy)]
pub struct Goose;

impl Agent for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let mut fields = Fields::read(received.payload)?;
        let told = fields.optional_text("event")?;
        let name = tool_events::event_named(self.name(), EVENTS, told, received)?;
        let directory = fields.optional_directory("working_dir")?;
        let origin = Origin {
            agent: Some(self.name().to_owned()),
            session: Some(fields.text("session_id")?),
            workspace: directory.clone(),
            directory,
            ..Origin::default()
        };
        let mut call = || -> Result<Call, PayloadError> {
            let tool = tool_of(&fields.text("tool_name")?);
            let input = fields.optional_object("tool_input")?.unwrap_or_else(Fields::empty).into_value();
            Ok(Call::new(tool, input).origin(origin.clone()))
        };
        let event = match name.kind {
            Before => Event::Before(call()?),
            Permission => Event::Permission(call()?),
            After => {
                let call = call()?;
                let outcome = if name.name == tool_events::FAILURE { Outcome::Failed } else { Outcome::Succeeded };
                Event::After(crate::After { call, outcome, result: fields.take("tool_output") })
            }
            SessionStart => Event::SessionStart,
            SessionEnd => Event::SessionEnd,
            Notice => Event::Notice,
        };
        let mut incoming = Incoming::new(name, event, origin);
        incoming.call_id = fields.optional_text("tool_call_id")?;
        Ok(incoming)
    }

    fn decide(&self, _event: EventName, verdict: Verdict<'_>) -> Output {
        match verdict {
            Verdict::Allow { .. } => Output::silence(),
            Verdict::Deny { reason } | Verdict::Ask { reason } => {
                Output::json(&json!({ "decision": "block", "reason": reason }))
            }
        }
    }

    fn can_ask(&self, _event: EventName) -> bool {
        false
    }

    fn can_rewrite(&self, _event: EventName) -> bool {
        false
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Tools are named `extension__tool`. Those of the developer extension are Goose's own.
fn tool_of(name: &str) -> Tool {
    match name.split_once("__") {
        Some((extension, tool)) if extension != "developer" && !extension.is_empty() && !tool.is_empty() => {
            Tool::of_server(extension, tool)
        }
        _ => Tool::own(name),
    }
}
