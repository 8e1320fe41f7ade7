//! The outcome of a task and its exit code.

use std::fmt;
use std::process::ExitCode;

use callgate::policy::{Decision, PolicyError};

/// The exit code of usage errors and broken input.
pub const TROUBLE: u8 = 2;

/// The outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It found a problem.
    Found,
    /// It judged a call.
    Judged(Decision),
    /// It has its own exit code.
    Code(u8),
}

/// The outcome of a task that returns exit codes.
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

/// Why a task failed, for the user.
#[derive(Debug)]
pub struct Trouble(String);

impl Trouble {
    /// An error with this message.
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
