//! Questions that a tool puts to a person.

use std::time::Duration;

use serde_json::Value;

use crate::result::{ErrorKind, ToolError};

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HumanQuestion {
    /// Its id: that of the call, and of the question if the call has several.
    pub id: String,
    /// What is asked.
    pub question: String,
    /// Answers to choose from; any text is an answer if there are none.
    pub choices: Vec<String>,
    /// More about it.
    pub context: Option<Value>,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nobody answered in time.
    TimedOut,
    /// Nobody can be asked.
    Unavailable,
    /// The person stopped the call.
    Cancelled,
}

impl From<NoAnswer> for ToolError {
    fn from(none: NoAnswer) -> Self {
        match none {
            NoAnswer::TimedOut => ToolError::new(ErrorKind::Timeout, "nobody answered in time"),
            NoAnswer::Unavailable => ToolError::new(ErrorKind::HumanRequired, "nobody can be asked"),
            NoAnswer::Cancelled => ToolError::new(ErrorKind::Cancelled, "the person who was asked stopped this call"),
        }
    }
}

/// Answers questions of tools. A function is one, too.
pub trait Human: Send + Sync {
    /// Puts a question and waits for the answer, not longer than its time.
    fn ask(&self, question: &HumanQuestion) -> Result<String, NoAnswer>;
}

impl<F: Fn(&HumanQuestion) -> Result<String, NoAnswer> + Send + Sync> Human for F {
    fn ask(&self, question: &HumanQuestion) -> Result<String, NoAnswer> {
        self(question)
    }
}
