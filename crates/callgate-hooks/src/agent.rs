//! What a dialect is.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::answer::{Verdict, plain};
use crate::{Answer, EventName, Incoming, Output, PayloadError};

/// What a hook process was given.
pub struct Received<'a> {
    /// Standard input, all of it.
    pub payload: &'a [u8],
    /// The variables of the hook's environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The event as the hook's own command line names it. Needed where an agent's payload does not say it; where it does,
    /// the two must agree.
    pub event: Option<&'a str>,
    /// The hook process's working directory, for agents whose payloads do not say one.
    pub directory: Option<&'a Path>,
    /// The MCP servers that the agent is configured with, as far as they are known. Some agents run a server's name and its
    /// tool's together; then a tool is taken for a server's only if exactly one of these fits.
    pub servers: &'a [String],
}

impl<'a> Received<'a> {
    /// A payload alone.
    pub fn of(payload: &'a [u8]) -> Self {
        Received { payload, environment: &|_| None, event: None, directory: None, servers: &[] }
    }
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // payloads hold file contents and commands: they are not for logs
        formatter
            .debug_struct("Received")
            .field("bytes", &self.payload.len())
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

/// One coding agent's hook: how it tells, and how it wants to be told.
pub trait Agent: Sync {
    /// Its name: `callgate hook NAME`, and the agent of the calls it makes.
    fn name(&self) -> &'static str;

    /// Other names it goes by.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// The events it has that are known here.
    fn events(&self) -> &'static [EventName];

    /// Understands one call of the hook. Whatever is not understood is an error, to be answered with [`Agent::refuse`].
    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError>;

    /// Says it in the agent's dialect. Total: what the agent cannot express, or would take for a yes, becomes a no.
    fn write(&self, event: EventName, answer: &Answer) -> Output {
        match answer {
            _ if event.decides() => self.decide(event, Verdict::settle(self, event, answer)),
            Answer::Deny { reason } => self.complain(event, &plain(reason)),
            Answer::Allow { .. } | Answer::Ask { .. } | Answer::Silence => self.acknowledge(event),
        }
    }

    /// A no that can always be said, also to an event that could not be read.
    fn refuse(&self, event: Option<EventName>, reason: &str) -> Output {
        match event {
            Some(event) => self.write(event, &Answer::deny(reason)),
            None => Output::refusal(reason),
        }
    }

    /// The part of [`Agent::write`] that is the agent's own: an answer to an event that decides.
    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output;

    /// The same for something that is wrong where nothing is left to decide.
    fn complain(&self, _event: EventName, reason: &str) -> Output {
        Output::refusal(reason)
    }

    /// The same for an event that needs no answer.
    fn acknowledge(&self, _event: EventName) -> Output {
        Output::silence()
    }

    /// Whether the agent asks its user when told to, for this event.
    fn can_ask(&self, event: EventName) -> bool;

    /// Whether the agent runs a rewritten input instead of its own, for this event.
    fn can_rewrite(&self, event: EventName) -> bool;

    /// How long it waits for a hook whose configuration does not say. Most agents then run the tool.
    fn patience(&self) -> Duration;
}
