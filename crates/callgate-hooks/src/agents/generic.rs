//! callgate's own dialect, for whatever has no file here. Described in `docs/hook-protocol.md`.

use std::time::Duration;

use callgate::call::{Call, Origin, Tool};
use serde_json::{Value, json};

use crate::answer::object;
use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::fields::Fields;
use crate::{Agent, Event, EventName, Incoming, Outcome, Output, PayloadError, Received, Verdict, tool_events};

/// The version of the dialect.
const VERSION: u64 = 1;
/// The exit code of a deny, as everywhere.
const REFUSED: u8 = 2;
/// The exit code of an ask: not zero, so that whoever looks at nothing else does not take it for a yes.
const ASKED: u8 = 3;

static EVENTS: &[EventName] = &[
    EventName::new("before", Before),
    EventName::new("permission", Permission),
    EventName::new("after", After),
    EventName::new("session_start", SessionStart),
    EventName::new("session_end", SessionEnd),
];

/// Anything that speaks callgate's own dialect.
#[derive(Debug, Clone, Copy)]
pub struct Generic;

impl Agent for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["json"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let mut fields = Fields::read(received.payload)?;
        match fields.take("version") {
            Some(version) if version == VERSION => {}
            Some(version) => return Err(PayloadError::UnknownVersion { version: version.to_string() }),
            None => return Err(PayloadError::Missing { field: "version" }),
        }
        let told = fields.optional_text("event")?;
        let name = tool_events::event_named(self.name(), EVENTS, told, received)?;
        let directory = fields.optional_directory("directory")?;
        let origin = Origin {
            agent: Some(fields.optional_text("agent")?.unwrap_or_else(|| self.name().to_owned())),
            session: fields.optional_text("session")?,
            scope: fields.optional_text("scope")?,
            workspace: fields.optional_directory("workspace")?.or_else(|| directory.clone()),
            directory,
            ..Origin::default()
        };
        let mut call = || -> Result<Call, PayloadError> {
            let tool = fields.text("tool")?;
            let tool = match fields.optional_text("server")? {
                Some(server) => Tool::of_server(server, tool),
                None => Tool::parse(&tool),
            };
            Ok(Call::new(tool, fields.object("input")?.into_value()).origin(origin.clone()))
        };
        let event = match name.kind {
            Before => Event::Before(call()?),
            Permission => Event::Permission(call()?),
            After => {
                let call = call()?;
                Event::After(crate::After { call, outcome: outcome(&mut fields)?, result: fields.take("result") })
            }
            SessionStart => Event::SessionStart,
            SessionEnd => Event::SessionEnd,
            Notice => Event::Notice,
        };
        let mut incoming = Incoming::new(name, event, origin);
        incoming.call_id = fields.optional_text("call_id")?;
        incoming.mode = fields.optional_text("mode")?;
        incoming.subagent = fields.optional_text("subagent")?;
        incoming.shell = fields.optional_text("shell")?;
        Ok(incoming)
    }

    fn decide(&self, _event: EventName, verdict: Verdict<'_>) -> Output {
        let say = |decision: &str, reason: String, code: u8| {
            let said = json!({ "version": VERSION, "decision": decision, "reason": reason });
            Output { stdout: format!("{said}\n"), stderr: format!("{reason}\n"), code }
        };
        match verdict {
            Verdict::Allow { rewritten, note } => Output::json(&object([
                ("version", Some(VERSION.into())),
                ("decision", Some("allow".into())),
                ("input", rewritten.cloned()),
                ("note", note.map(Value::from)),
            ])),
            Verdict::Deny { reason } => say("deny", reason, REFUSED),
            Verdict::Ask { reason } => say("ask", reason, ASKED),
        }
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.decides()
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.decides()
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }
}

fn outcome(fields: &mut Fields) -> Result<Outcome, PayloadError> {
    match fields.take("outcome") {
        None => Ok(Outcome::Unknown),
        Some(Value::String(text)) if text == "succeeded" => Ok(Outcome::Succeeded),
        Some(Value::String(text)) if text == "failed" => Ok(Outcome::Failed),
        Some(_) => Err(PayloadError::WrongType { field: "outcome", expected: "`succeeded` or `failed`" }),
    }
}
