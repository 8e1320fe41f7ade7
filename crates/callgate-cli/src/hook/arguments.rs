//! What can be said behind `callgate hook`. Read by hand, because a hook starts with every call.

use std::ffi::OsString;
use std::time::Duration;

use callgate_hooks::Agent;

use crate::agents;

/// Who is asked where the policy says ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskWhom {
    /// The agent's own prompt where it has one; else whoever watches with `callgate approvals watch`; else nobody.
    #[default]
    Auto,
    /// The agent's own prompt.
    Agent,
    /// Whoever answers with `callgate approvals`, in the time that there is.
    Approvers,
    /// Nobody: refused, with how to allow it.
    Nobody,
}

/// The arguments of `callgate hook`.
pub struct HookArguments {
    /// Whose hook it is.
    pub agent: &'static Agent,
    /// The event, where the agent's payload does not name it.
    pub event: Option<String>,
    /// How long the agent waits for this hook, as its configuration says.
    pub timeout: Option<Duration>,
    /// Who is asked.
    pub ask: AskWhom,
    /// A policy instead of those that apply to the directory.
    pub policy: Option<String>,
}

impl HookArguments {
    /// Reads the words behind `callgate hook`.
    pub fn read(words: &[OsString]) -> Result<Self, String> {
        let mut words = words.iter().map(|word| word.to_str().ok_or("a word of its command line is not UTF-8"));
        let mut next = || words.next().transpose();
        let name = next()?.ok_or("missing agent name, as in `callgate hook claude`")?;
        let agent = agents::find(name)?;
        let mut arguments = Self { agent, event: None, timeout: None, ask: AskWhom::Auto, policy: None };
        while let Some(word) = next()? {
            let (option, glued) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word, None),
            };
            let value = match glued {
                Some(value) => value,
                None => next()?.ok_or_else(|| format!("{option} needs a value"))?,
            };
            match option {
                "--event" => arguments.event = Some(value.to_owned()),
                "--policy" => arguments.policy = Some(value.to_owned()),
                "--timeout" => {
                    let seconds: u64 =
                        value.parse().map_err(|_| format!("--timeout is a number of seconds: {value}"))?;
                    arguments.timeout = Some(Duration::from_secs(seconds));
                }
                "--ask" => {
                    arguments.ask = match value {
                        "auto" => AskWhom::Auto,
                        "agent" => AskWhom::Agent,
                        "approvers" => AskWhom::Approvers,
                        "nobody" => AskWhom::Nobody,
                        _ => return Err(format!("--ask is auto, agent, approvers or nobody: {value}")),
                    };
                }
                _ => return Err(format!("unknown option {option}; see `callgate hook --help`")),
            }
        }
        Ok(arguments)
    }

    /// How long this may take: less than the agent waits, because it takes a hook that it had to stop for a yes.
    pub fn time(&self) -> Duration {
        let patience = self.timeout.unwrap_or_else(|| self.agent.default_timeout());
        let margin = (patience / 10).clamp(Duration::from_millis(500), Duration::from_secs(5));
        patience.saturating_sub(margin).max(Duration::from_millis(100))
    }
}
