//! Amp's permission delegate: arguments on standard input, the tool's name in the environment, an exit code as the answer.
//!
//! 0 allows, 1 asks, everything from 2 on rejects.

use std::time::Duration;

use callgate::call::{Call, Origin, Tool};

use crate::event::EventKind::Before;
use crate::fields::Fields;
use crate::{Agent, Event, EventName, Incoming, Output, PayloadError, Received, Verdict, tool_events};

/// The exit code that makes Amp ask its user.
const ASK: u8 = 1;
const DELEGATE: &str = "delegate";
static EVENTS: &[EventName] = &[EventName::new(DELEGATE, Before)];

/// Amp.
#[derive(Debug, Clone, Copy)]
pub struct Amp;

impl Agent for Amp {
    fn name(&self) -> &'static str {
        "amp"
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let told = received.event.is_none().then(|| DELEGATE.to_owned());
        let name = tool_events::event_named(self.name(), EVENTS, told, received)?;
        let variable = |variable: &'static str| (received.environment)(variable).filter(|value| !value.is_empty());
        let tool = variable("AGENT_TOOL_NAME").ok_or(PayloadError::NoVariable { variable: "AGENT_TOOL_NAME" })?;
        let input = Fields::read(received.payload)?.into_value();
        // it starts delegates in the workspace, whatever directory a command names
        let directory = received.directory.filter(|path| path.is_absolute()).map(std::path::Path::to_owned);
        let origin = Origin {
            agent: Some(self.name().to_owned()),
            session: variable("AGENT_THREAD_ID").or_else(|| variable("AMP_THREAD_ID")),
            workspace: directory.clone(),
            directory,
            ..Origin::default()
        };
        let call = Call::new(Tool::parse(&tool), input).origin(origin.clone());
        Ok(Incoming::new(name, Event::Before(call), origin))
    }

    fn decide(&self, _event: EventName, verdict: Verdict<'_>) -> Output {
        match verdict {
            Verdict::Allow { .. } => Output::silence(),
            Verdict::Deny { reason } => Output::refusal(&reason),
            Verdict::Ask { reason } => Output { stdout: String::new(), stderr: format!("{reason}\n"), code: ASK },
        }
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.decides()
    }

    fn can_rewrite(&self, _event: EventName) -> bool {
        false
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}
