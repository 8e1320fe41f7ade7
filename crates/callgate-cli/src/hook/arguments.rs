//! The arguments of `callgate hook`, parsed by hand because a hook starts with every call.

use std::ffi::OsString;
use std::time::Duration;

use callgate_hooks::Agent;

use crate::agents;

/// Who answers when the policy says ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskWhom {
    /// The agent's own prompt if it has one, else a running `callgate approvals watch`, else nobody.
    #[default]
    Auto,
    /// The agent's own prompt.
    Agent,
    /// A person who answers with `callgate approvals` before the timeout.
    Approvers,
    /// Nobody: the call is refused.
    Nobody,
}

/// The arguments of `callgate hook`.
pub struct HookArguments {
    /// The agent.
    pub agent: &'static Agent,
    /// The event, if the agent's payload does not name it.
    pub event: Option<String>,
    /// The timeout of the hook in the agent's settings.
    pub timeout: Option<Duration>,
    /// Who answers questions.
    pub ask: AskWhom,
    /// A policy that replaces the files that apply to the project.
    pub policy: Option<String>,
}

impl HookArguments {
    /// Parses the words after `callgate hook`.
    pub fn read(words: &[OsString]) -> Result<Self, String> {
        let mut words = words.iter().map(|word| word.to_str().ok_or("an argument is not valid UTF-8"));
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
                None => next()?.ok_or_else(|| format!("missing value for {option}"))?,
            };
            match option {
                "--event" => arguments.event = Some(value.to_owned()),
                "--policy" => arguments.policy = Some(value.to_owned()),
                "--timeout" => {
                    let seconds: u64 = value
                        .parse()
                        .map_err(|_| format!("invalid value for --timeout: {value}; expected a number of seconds"))?;
                    arguments.timeout = Some(Duration::from_secs(seconds));
                }
                "--ask" => {
                    arguments.ask = match value {
                        "auto" => AskWhom::Auto,
                        "agent" => AskWhom::Agent,
                        "approvers" => AskWhom::Approvers,
                        "nobody" => AskWhom::Nobody,
                        _ => {
                            return Err(format!(
                                "invalid value for --ask: {value}; expected auto, agent, approvers or nobody"
                            ));
                        }
                    };
                }
                _ => return Err(format!("unknown option {option}; see `callgate hook --help`")),
            }
        }
        Ok(arguments)
    }

    /// How long the hook may take. Shorter than the agent's timeout, because agents treat a hook that timed out as a yes.
    pub fn time(&self) -> Duration {
        let patience = self.timeout.unwrap_or_else(|| self.agent.default_timeout());
        let margin = (patience / 10).clamp(Duration::from_millis(500), Duration::from_secs(5));
        patience.saturating_sub(margin).max(Duration::from_millis(100))
    }
}
