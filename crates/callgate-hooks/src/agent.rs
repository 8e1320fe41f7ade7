//! The description of one agent's hook dialect.

use std::fmt;
use std::time::Duration;

use crate::answer::plain;
use crate::event::HookEventKind::Notice;
use crate::{HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError};

/// What becomes of a call that may only run contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainedCalls {
    /// It is asked about: the agent takes no changed input, or it is not known that the process that calls the hook also starts the
    /// tool.
    Asked,
    /// Its command is replaced by one that runs it contained. The process that calls the hook starts the tool, too.
    Rewritten,
    /// The same, and the next call starts in the directory in which this one ends.
    RewrittenKeepingDirectory,
}

/// The hook dialect of one coding agent.
pub struct Agent {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The events that decide, report a call or mark a session.
    pub(crate) events: &'static [HookEvent],
    /// The names of all other known events, separated by spaces.
    pub(crate) notices: &'static str,
    pub(crate) default_timeout: Duration,
    /// The permission modes in which the agent shows its user what callgate asks, and runs the call only after a yes.
    pub(crate) asking_modes: &'static [&'static str],
    /// The shell that runs the agent's commands, if it is always the same; `None`: what `SHELL` says.
    pub(crate) shell: Option<&'static str>,
    pub(crate) contained: ContainedCalls,
    pub(crate) read: fn(&Agent, &HookInput<'_>) -> Result<HookRequest, PayloadError>,
    /// Writes an answer to an event that decides. The answer is settled: the agent can express it.
    pub(crate) decide: fn(HookEvent, HookAnswer) -> HookOutput,
    /// Reports a problem for an event that decides nothing.
    pub(crate) complain: fn(HookEvent, &str) -> HookOutput,
    /// Answers an event that needs no answer.
    pub(crate) acknowledge: fn(HookEvent) -> HookOutput,
}

impl Agent {
    /// What most agents have in common. It allows nothing.
    pub(crate) const BASE: Agent = Agent {
        name: "",
        title: "",
        aliases: &[],
        events: &[],
        notices: "",
        default_timeout: Duration::ZERO,
        asking_modes: &[],
        shell: None,
        contained: ContainedCalls::Asked,
        read: |_, _| Err(PayloadError::NotAnObject),
        decide: |_, _| HookOutput::refusal(""),
        complain: |_, reason| HookOutput::refusal(reason),
        acknowledge: |_| HookOutput::silence(),
    };

    /// The agent's name, as in `callgate hook NAME` and in the origin of its calls.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The agent's product name.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Other names for the agent.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// The agent's events that callgate knows.
    pub fn events(&self) -> impl Iterator<Item = HookEvent> {
        let notices = self.notices.split_whitespace().map(|name| HookEvent::new(name, Notice));
        self.events.iter().copied().chain(notices)
    }

    /// The shell that runs the agent's commands, if it is always the same. Otherwise it is the one that `SHELL` names.
    pub fn shell(&self) -> Option<&'static str> {
        self.shell
    }

    /// What becomes of this agent's calls that may only run contained.
    pub fn contained(&self) -> ContainedCalls {
        self.contained
    }

    /// Whether the agent's user answers what callgate leaves to its prompt. In every other mode, and in one that the agent does
    /// not name, a call may run without anybody having been asked.
    pub fn asks_its_user(&self, mode: Option<&str>) -> bool {
        mode.is_some_and(|mode| self.asking_modes.contains(&mode))
    }

    /// How long the agent waits for a hook whose configuration sets no timeout. Most agents then run the tool.
    pub fn default_timeout(&self) -> Duration {
        self.default_timeout
    }

    /// Reads one hook call. Answer an error with [`Agent::refuse`].
    pub fn read(&self, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
        let mut request = (self.read)(self, input)?;
        if let Some(shell) = self.shell.map(str::to_owned).or_else(|| (input.environment)("SHELL")) {
            if let Some(call) = request.call_mut() {
                call.origin.shell = Some(shell.clone());
            }
            request.origin.shell = Some(shell);
        }
        Ok(request)
    }

    /// Writes an answer in the agent's dialect; `None` means that nothing was decided. Total: an answer that the agent
    /// cannot express, or would treat as a yes, becomes a deny.
    pub fn write(&self, event: HookEvent, answer: Option<&HookAnswer>) -> HookOutput {
        match answer {
            _ if event.decides() => (self.decide)(event, HookAnswer::settle(answer, event, self.title)),
            Some(HookAnswer::Deny { reason }) => (self.complain)(event, &plain(reason)),
            Some(HookAnswer::Allow { .. } | HookAnswer::Ask { .. }) | None => (self.acknowledge)(event),
        }
    }

    /// Writes a refusal, also for an event that could not be read.
    pub fn refuse(&self, event: Option<HookEvent>, reason: &str) -> HookOutput {
        match event {
            Some(event) => self.write(event, Some(&HookAnswer::deny(reason))),
            None => HookOutput::refusal(reason),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Agent").field(&self.name).finish()
    }
}
