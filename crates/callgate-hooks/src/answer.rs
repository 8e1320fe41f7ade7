//! The answer to a hook event, and the output that a hook process prints for it.

use callgate::show;
use serde_json::Value;

use crate::{HookEvent, HookEventKind};

/// The longest reason that an agent is given, in characters.
const LONGEST_REASON: usize = 2_000;
/// Stands in for a missing reason: some agents treat a deny without one as a yes.
const NO_REASON: &str = "callgate refused this call";

/// The answer to a hook event.
#[derive(Debug, Clone, PartialEq)]
pub enum HookAnswer {
    /// The call may run.
    Allow {
        /// The input that replaces the call's own. An agent that cannot replace it is told no.
        rewritten: Option<Value>,
        /// A note for the agent, where it reads one.
        note: Option<String>,
    },
    /// The call must not run.
    Deny {
        /// Why, and what would be allowed instead.
        reason: String,
    },
    /// The agent's own prompt decides. An agent without one is told no.
    Ask {
        /// What is at stake.
        reason: String,
    },
}

impl HookAnswer {
    /// Allows the call as it is.
    pub fn allow() -> Self {
        HookAnswer::Allow { rewritten: None, note: None }
    }

    /// Allows the call with this input.
    pub fn rewrite(input: Value) -> Self {
        HookAnswer::Allow { rewritten: Some(input), note: None }
    }

    /// Denies the call.
    pub fn deny(reason: impl Into<String>) -> Self {
        HookAnswer::Deny { reason: reason.into() }
    }

    /// Leaves the decision to the agent's own prompt.
    pub fn ask(reason: impl Into<String>) -> Self {
        HookAnswer::Ask { reason: reason.into() }
    }

    /// Applies the limits of an agent's event, with reasons made fit to show: the one place where something that the
    /// agent cannot express, or the lack of a decision, becomes a no.
    pub(crate) fn settle(answer: Option<&HookAnswer>, event: HookEvent, title: &str) -> HookAnswer {
        match answer {
            Some(HookAnswer::Allow { rewritten: Some(input), .. }) if !input.is_object() || !event.can_rewrite() => {
                let reason =
                    format!("this call may only run with a changed input, which {title} does not support here");
                HookAnswer::Deny { reason }
            }
            Some(HookAnswer::Allow { rewritten, note }) => {
                HookAnswer::Allow { rewritten: rewritten.clone(), note: note.as_deref().map(plain) }
            }
            Some(HookAnswer::Ask { reason }) if event.can_ask() => HookAnswer::Ask { reason: plain(reason) },
            Some(HookAnswer::Deny { reason } | HookAnswer::Ask { reason }) => {
                HookAnswer::Deny { reason: plain(reason) }
            }
            None if event.kind == HookEventKind::Permission && event.can_ask() => {
                HookAnswer::ask("callgate leaves this decision to you")
            }
            None => HookAnswer::deny("callgate made no decision"),
        }
    }
}

/// What a hook process prints, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOutput {
    /// One JSON document, or empty.
    pub stdout: String,
    /// The reason, for agents that read it there; otherwise empty.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

impl HookOutput {
    /// Prints nothing and exits with 0.
    pub fn silence() -> Self {
        HookOutput { stdout: String::new(), stderr: String::new(), code: 0 }
    }

    /// The refusal that every agent understands: exit code 2 with a reason on standard error.
    pub fn refusal(reason: &str) -> Self {
        HookOutput { stdout: String::new(), stderr: format!("{}\n", plain(reason)), code: 2 }
    }

    /// Prints one JSON document.
    pub(crate) fn json(value: &Value) -> Self {
        HookOutput { stdout: format!("{value}\n"), ..HookOutput::silence() }
    }
}

/// Builds an object from the entries that have a value.
pub(crate) fn object<const COUNT: usize>(entries: [(&str, Option<Value>); COUNT]) -> Value {
    let present = entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// Makes a reason fit to show: one line, no hidden characters, never empty, of limited length.
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
        let refusal = HookOutput::refusal("");
        assert_eq!((refusal.code, refusal.stdout.as_str()), (2, ""));
        assert!(!refusal.stderr.trim().is_empty());
    }
}
