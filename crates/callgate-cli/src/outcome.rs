//! What a task came to, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use callgate::policy::{Decision, PolicyError};

/// The exit code when nothing could be judged.
pub const TROUBLE: u8 = 2;

/// What a task came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was asked.
    Done,
    /// It looked for something wrong and found it.
    Found,
    /// It judged a call.
    Judged(Decision),
    /// It has something of its own to say.
    Code(u8),
}

/// What a task that speaks in exit codes came to.
pub fn coded(result: Result<u8, String>) -> Result<Outcome, Trouble> {
    result.map(Outcome::Code).map_err(Trouble::new)
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Done | Outcome::Judged(Decision::Allow) => 0,
            Outcome::Found => 1,
            Outcome::Judged(Decision::Ask) => 10,
            Outcome::Judged(Decision::Deny) => 11,
            Outcome::Judged(Decision::Contain) => 12,
            Outcome::Code(code) => code,
        })
    }
}

/// Why a task could not be done, in words for whoever called.
#[derive(Debug)]
pub struct Trouble(String);

impl Trouble {
    /// Trouble described in words.
    pub fn new(reason: impl Into<String>) -> Self {
        Trouble(format!("callgate: {}", reason.into()))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<PolicyError> for Trouble {
    fn from(error: PolicyError) -> Self {
        match error {
            PolicyError::Mistakes(mistakes) => Trouble(mistakes.coloured()),
            other => Trouble::new(other.to_string()),
        }
    }
}
