//! What the gate says, and what a hook process prints and returns for it.

use callgate::show;
use serde_json::Value;

use crate::{Agent, EventKind, EventName};

/// The most characters of a reason that an agent is given.
const LONGEST_REASON: usize = 2_000;
/// Said where no reason was given: some agents take a deny without one for a yes.
const NO_REASON: &str = "callgate refused this call";

/// What the gate says to an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The call may run.
    Allow {
        /// The whole input it must run with instead of its own. An agent that cannot take one is told no.
        rewritten: Option<Value>,
        /// What the agent is told beside, where it listens.
        note: Option<String>,
    },
    /// The call must not run.
    Deny {
        /// Why, and what would be allowed instead.
        reason: String,
    },
    /// The agent's own prompt shall decide. An agent that has none is told no.
    Ask {
        /// What is at stake.
        reason: String,
    },
    /// Nothing is said. Before a tool runs that is no decision, and so a no; where the agent would ask its user, it does.
    Silence,
}

impl Answer {
    /// The call may run as it is.
    pub fn allow() -> Self {
        Answer::Allow { rewritten: None, note: None }
    }

    /// The call may run with this input.
    pub fn rewrite(input: Value) -> Self {
        Answer::Allow { rewritten: Some(input), note: None }
    }

    /// The call must not run.
    pub fn deny(reason: impl Into<String>) -> Self {
        Answer::Deny { reason: reason.into() }
    }

    /// The agent's own prompt shall decide.
    pub fn ask(reason: impl Into<String>) -> Self {
        Answer::Ask { reason: reason.into() }
    }
}

/// An answer to an event that decides, as far as the agent can express it, with reasons as it may see them.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict<'a> {
    /// The call may run.
    Allow {
        /// An object, only where the agent takes one.
        rewritten: Option<&'a Value>,
        /// What the agent is told beside.
        note: Option<String>,
    },
    /// The call must not run.
    Deny {
        /// Why.
        reason: String,
    },
    /// The agent's own prompt decides, only where it has one.
    Ask {
        /// What is at stake.
        reason: String,
    },
}

impl<'a> Verdict<'a> {
    /// What is left of an answer to `agent`.
    pub(crate) fn settle<A: Agent + ?Sized>(agent: &A, event: EventName, answer: &'a Answer) -> Self {
        let deny = |reason: &str| Verdict::Deny { reason: plain(reason) };
        match answer {
            Answer::Allow { rewritten: Some(input), .. } if !input.is_object() || !agent.can_rewrite(event) => {
                deny(&format!("this call may only run changed, which {} cannot do here", agent.name()))
            }
            Answer::Allow { rewritten, note } => {
                Verdict::Allow { rewritten: rewritten.as_ref(), note: note.as_deref().map(plain) }
            }
            Answer::Deny { reason } => deny(reason),
            Answer::Ask { reason } if agent.can_ask(event) => Verdict::Ask { reason: plain(reason) },
            Answer::Ask { reason } => deny(reason),
            Answer::Silence if event.kind == EventKind::Permission && agent.can_ask(event) => {
                Verdict::Ask { reason: "callgate leaves this to you".to_owned() }
            }
            Answer::Silence => deny("callgate made no decision"),
        }
    }
}

/// What a hook process prints, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// One JSON document, or nothing.
    pub stdout: String,
    /// For agents that read reasons there; otherwise nothing.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

impl Output {
    /// Says nothing.
    pub fn silence() -> Self {
        Output { stdout: String::new(), stderr: String::new(), code: 0 }
    }

    /// The no that every agent understands: exit code 2 with a reason on standard error.
    pub fn refusal(reason: &str) -> Self {
        Output { stdout: String::new(), stderr: format!("{}\n", plain(reason)), code: 2 }
    }

    /// One JSON document.
    pub(crate) fn json(value: &Value) -> Self {
        Output { stdout: format!("{value}\n"), ..Output::silence() }
    }
}

/// An object of the entries that are there.
pub(crate) fn object<const COUNT: usize>(entries: [(&str, Option<Value>); COUNT]) -> Value {
    let present = entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// A reason as agents and their users may see it: one line, nothing hidden in it, never empty, not endless.
pub(crate) fn plain(reason: &str) -> String {
    let mut shown = String::new();
    for line in reason.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(&show::visible(line));
        if shown.len() > LONGEST_REASON.saturating_mul(4) {
            break;
        }
    }
    if shown.is_empty() {
        return NO_REASON.to_owned();
    }
    match shown.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{} […]", shown.get(..end).unwrap_or(NO_REASON)),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_visible_line() {
        let cases = [
            ("reads a key", "reads a key"),
            ("", NO_REASON),
            (" \n\t\n", NO_REASON),
            ("first\nsecond \r\n  third", "first second third"),
            ("a\u{1b}[2Jb\u{202e}c", "a\\u{1b}[2Jb\\u{202e}c"),
        ];
        for (reason, expected) in cases {
            assert_eq!(plain(reason), expected);
        }
    }

    #[test]
    fn a_reason_has_an_end() {
        let long = plain(&"é".repeat(1_000_000));
        assert!(long.ends_with("é […]"));
        assert_eq!(long.chars().count(), LONGEST_REASON + 4);
        let hidden = plain(&"\u{202e}".repeat(100_000));
        assert!(hidden.chars().count() <= LONGEST_REASON + 4);
    }

    #[test]
    fn a_refusal_is_never_silent() {
        let refusal = Output::refusal("");
        assert_eq!((refusal.code, refusal.stdout.as_str()), (2, ""));
        assert!(!refusal.stderr.trim().is_empty());
    }
}
