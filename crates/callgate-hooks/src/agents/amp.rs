//! Amp's permission delegate: arguments on standard input, the tool's name in the environment, an exit code as the answer.
//!
//! 0 allows, 1 asks, 2 and above deny.

use std::path::Path;
use std::time::Duration;

use callgate::call::{Origin, Tool};

use crate::event::HookEventKind::Before;
use crate::fields::Fields;
use crate::reading;
use crate::{Agent, CallOutcome, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError};

/// The exit code that makes Amp ask its user.
const ASK: u8 = 1;
const DELEGATE: &str = "delegate";

pub(super) static AMP: Agent = Agent {
    name: "amp",
    title: "Amp",
    events: &[HookEvent::new(DELEGATE, Before).asks()],
    default_timeout: Duration::from_secs(30),
    read,
    decide: |_, answer| match answer {
        HookAnswer::Allow { .. } => HookOutput::silence(),
        HookAnswer::Deny { reason } => HookOutput::refusal(&reason),
        HookAnswer::Ask { reason } => HookOutput { stdout: String::new(), stderr: format!("{reason}\n"), code: ASK },
    },
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let name = input.event.is_none().then(|| DELEGATE.to_owned());
    let event = reading::find_event(agent, name, input)?;
    let variable = |variable: &'static str| (input.environment)(variable).filter(|value| !value.is_empty());
    let tool = variable("AGENT_TOOL_NAME").ok_or(PayloadError::MissingVariable { variable: "AGENT_TOOL_NAME" })?;
    // Amp starts delegates in the workspace, whatever directory a command names.
    let directory = input.directory.filter(|path| path.is_absolute()).map(Path::to_owned);
    let origin = Origin {
        agent: Some(agent.name.to_owned()),
        session: variable("AGENT_THREAD_ID").or_else(|| variable("AMP_THREAD_ID")),
        workspace: directory.clone(),
        directory,
        ..Origin::default()
    };
    let mut fields = Fields::read(input.payload)?;
    reading::request(
        event,
        origin,
        &mut fields,
        |fields| Ok((Tool::parse(&tool), fields.take_rest())),
        |_| Ok((CallOutcome::Unknown, None)),
    )
}
