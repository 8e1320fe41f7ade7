//! GitHub Copilot CLI: `preToolUse` and its own fields, or `PreToolUse` and Claude Code's.
//!
//! The form of the payload follows the spelling of the event in the configuration. The camel-case form does not name its
//! event: the hook's command line should, and otherwise the fields tell.

use std::time::Duration;

use callgate::call::{Call, Origin, Tool};
use callgate::json;
use serde_json::{Value, json};

use super::claude;
use crate::answer::object;
use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::fields::Fields;
use crate::tool_events::{self, run_together};
use crate::{Agent, Event, EventName, Incoming, Outcome, Output, PayloadError, Received, Verdict};

const BEFORE: EventName = EventName::new("preToolUse", Before);
const PERMISSION: EventName = EventName::new("permissionRequest", Permission);
const AFTER: EventName = EventName::new("postToolUse", After);
const FAILURE: EventName = EventName::new("postToolUseFailure", After);
const START: EventName = EventName::new("sessionStart", SessionStart);
const END: EventName = EventName::new("sessionEnd", SessionEnd);
const PROMPT: EventName = EventName::new("userPromptSubmitted", Notice);

static EVENTS: &[EventName] = &[
    BEFORE,
    PERMISSION,
    AFTER,
    FAILURE,
    START,
    END,
    PROMPT,
    EventName::new("agentStop", Notice),
    EventName::new("errorOccurred", Notice),
    EventName::new("notification", Notice),
    EventName::new("preCompact", Notice),
    EventName::new("subagentStart", Notice),
    EventName::new("subagentStop", Notice),
    EventName::new("userPromptTransformed", Notice),
    EventName::new("PreToolUse", Before),
    EventName::new("PermissionRequest", Permission),
    EventName::new("PostToolUse", After),
    EventName::new(tool_events::FAILURE, After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
    EventName::new("ErrorOccurred", Notice),
    EventName::new("Notification", Notice),
    EventName::new("PreCompact", Notice),
    EventName::new("Stop", Notice),
    EventName::new("SubagentStop", Notice),
    EventName::new("UserPromptSubmit", Notice),
];

/// GitHub Copilot CLI.
#[derive(Debug, Clone, Copy)]
pub struct Copilot;

impl Agent for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["copilot-cli", "github-copilot"]
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let fields = Fields::read(received.payload)?;
        let mut incoming = if fields.has("session_id") || (fields.has("hook_event_name") && !fields.has("sessionId")) {
            self.snake_case(fields, received)?
        } else {
            self.camel_case(fields, received)?
        };
        let project = received.directory_in("COPILOT_PROJECT_DIR");
        incoming.set_workspace(project.or_else(|| incoming.origin.directory.clone()));
        // servers' tools are `server-tool`; none of Copilot's own has a dash
        if let Some(tool) = incoming.call().map(|call| call.tool.clone())
            && tool.server.is_none()
            && tool.name.contains('-')
        {
            incoming.set_tool(run_together(&tool.name, received));
        }
        incoming.shell = incoming.call().and_then(shell);
        Ok(incoming)
    }

    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output {
        if is_pascal_case(event) {
            return claude::decide(event, verdict);
        }
        if event.kind == Permission {
            return match verdict {
                Verdict::Allow { .. } => Output::json(&json!({ "behavior": "allow" })),
                Verdict::Deny { reason } => Output::json(&json!({ "behavior": "deny", "message": reason })),
                // without an answer the agent asks
                Verdict::Ask { .. } => Output::silence(),
            };
        }
        let (decision, reason, rewritten) = match verdict {
            Verdict::Allow { rewritten, note } => ("allow", note, rewritten.cloned()),
            Verdict::Deny { reason } => ("deny", Some(reason), None),
            Verdict::Ask { reason } => ("ask", Some(reason), None),
        };
        Output::json(&object([
            ("permissionDecision", Some(decision.into())),
            ("permissionDecisionReason", reason.map(Value::from)),
            ("modifiedArgs", rewritten),
        ]))
    }

    fn complain(&self, event: EventName, reason: &str) -> Output {
        match event.kind {
            _ if is_pascal_case(event) => claude::complain(event, reason),
            After => Output::json(&json!({ "additionalContext": reason })),
            _ => Output::refusal(reason),
        }
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.decides()
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.kind == Before
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Whether the event is spelled, and so told and answered, as in Claude Code.
fn is_pascal_case(event: EventName) -> bool {
    event.name.starts_with(|first: char| first.is_ascii_uppercase())
}

impl Copilot {
    fn snake_case(&self, fields: Fields, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, mut rest) = tool_events::read_fields(self.name(), EVENTS, fields, received)?;
        if incoming.name.name != tool_events::FAILURE {
            incoming.set_result(rest.take("tool_result"));
        }
        Ok(incoming)
    }

    fn camel_case(&self, mut fields: Fields, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        // only notifications of this form name themselves
        let told = fields.optional_text("hook_event_name")?;
        let name = match (&told, received.event) {
            (None, None) => by_fields(&fields)?,
            _ => tool_events::event_named(self.name(), EVENTS, told, received)?,
        };
        let origin = Origin {
            agent: Some(self.name().to_owned()),
            session: Some(fields.text("sessionId")?),
            directory: Some(fields.directory("cwd")?),
            ..Origin::default()
        };
        let event = match name.kind {
            Before => Event::Before(call(&mut fields, &origin)?),
            Permission => Event::Permission(call(&mut fields, &origin)?),
            After => {
                let call = call(&mut fields, &origin)?;
                let (outcome, result) = if name == FAILURE {
                    (Outcome::Failed, fields.take("error"))
                } else {
                    (Outcome::Succeeded, fields.take("toolResult"))
                };
                Event::After(crate::After { call, outcome, result })
            }
            SessionStart => Event::SessionStart,
            SessionEnd => Event::SessionEnd,
            Notice => Event::Notice,
        };
        Ok(Incoming::new(name, event, origin))
    }
}

/// Copilot keeps its shells, each under an id that the model chooses. Where it chooses none, the calls are taken to share one.
fn shell(call: &Call) -> Option<String> {
    let shells = call.tool.server.is_none() && matches!(call.tool.name.as_str(), "bash" | "Bash" | "write_bash");
    let id = || ["sessionId", "shellId"].iter().find_map(|name| call.input.get(name)?.as_str());
    shells.then(|| id().unwrap_or_default().to_owned())
}

/// Which event has these fields.
fn by_fields(fields: &Fields) -> Result<EventName, PayloadError> {
    const TELLING: &[(&[&str], EventName)] = &[
        (&["toolName", "toolResult"], AFTER),
        (&["toolName", "error"], FAILURE),
        (&["toolName", "toolArgs"], BEFORE),
        (&["toolName", "toolInput"], PERMISSION),
        (&["source"], START),
        (&["reason"], END),
        (&["prompt"], PROMPT),
    ];
    let telling = TELLING.iter().find(|(names, _)| names.iter().all(|name| fields.has(name)));
    telling.map(|(_, event)| *event).ok_or(PayloadError::Missing { field: "toolName" })
}

fn call(fields: &mut Fields, origin: &Origin) -> Result<Call, PayloadError> {
    let tool = fields.text("toolName")?;
    let field = if fields.has("toolArgs") { "toolArgs" } else { "toolInput" };
    let input = match fields.take(field) {
        Some(Value::Object(input)) => Value::Object(input),
        // a tool whose argument is free text
        Some(Value::String(patch)) if tool == "apply_patch" && patch.trim_start().starts_with("***") => {
            json!({ "input": patch })
        }
        // some releases send the arguments as they came from the model
        Some(Value::String(text)) => match json::read(text.as_bytes())? {
            Value::Object(input) => Value::Object(input),
            _ => return Err(PayloadError::WrongType { field, expected: "an object" }),
        },
        Some(_) => return Err(PayloadError::WrongType { field, expected: "an object" }),
        None => return Err(PayloadError::Missing { field }),
    };
    Ok(Call::new(Tool::parse(&tool), input).origin(origin.clone()))
}
