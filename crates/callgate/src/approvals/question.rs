//! Questions to approvers.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use callgate_model::decision::Answerable;
use callgate_model::digest::hex;
use callgate_model::quote::shell_word;
use callgate_model::show::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::Proposal;
use crate::key::ApprovalKey;
use callgate_model::clock::Timestamp;

/// Names a question: 16 hexadecimal digits, drawn at random.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApprovalId(String);

/// A text that is not a question id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an approval id has 16 hexadecimal digits")]
pub struct NoApprovalId;

#[cfg(target_os = "linux")]
fn fill_randomly(bytes: &mut [u8]) -> std::io::Result<()> {
    let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled == bytes.len() { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(not(target_os = "linux"))]
fn fill_randomly(bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

impl ApprovalId {
    /// A random id; `None` if the machine has no randomness available.
    pub fn random() -> Option<Self> {
        let mut bytes = [0_u8; 8];
        fill_randomly(&mut bytes).ok()?;
        Some(ApprovalId(hex(&bytes)))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ApprovalId {
    type Err = NoApprovalId;

    fn from_str(text: &str) -> Result<Self, NoApprovalId> {
        let fits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if fits { Ok(ApprovalId(text.to_owned())) } else { Err(NoApprovalId) }
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = NoApprovalId;

    fn try_from(text: String) -> Result<Self, NoApprovalId> {
        text.parse()
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> String {
        id.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A question to an approver: a call without secrets, what it would do, and why callgate asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id.
    pub id: ApprovalId,
    /// The tool's name.
    pub tool: String,
    /// The request's key; `None` if it has none (then no answer is remembered).
    pub key: Option<ApprovalKey>,
    /// The session.
    pub session: Option<String>,
    /// The agent program.
    pub agent: Option<String>,
    /// The task.
    pub scope: Option<String>,
    /// The working directory.
    pub directory: Option<PathBuf>,
    /// The tool's input without secrets.
    pub request: Value,
    /// The simple commands of a shell call, in the order they run.
    #[serde(default)]
    pub commands: Vec<QuestionCommand>,
    /// What it would do.
    pub effects: Vec<QuestionEffect>,
    /// How risky it is: `low`, `medium`, `high`, `critical`.
    pub risk_level: String,
    /// The rule that asks; `None` if the default does.
    pub rule: Option<String>,
    /// The file and line of that rule.
    pub place: Option<String>,
    /// Why it is asked about.
    pub reason: String,
    /// Who can answer.
    #[serde(default)]
    pub answerable: Answerable,
    /// Rules that would have let this call pass, the narrowest first.
    #[serde(default)]
    pub proposals: Vec<Proposal>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proposal: Option<String>,
    /// Whether nobody waits for the answer any more: a yes lets the same request pass once, when it is made again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// From when it is too late to answer.
    pub deadline: Timestamp,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionCommand {
    /// Its words, without secrets; `None` if one of them is not known before it runs.
    pub words: Option<Vec<String>>,
    /// The programs around it, outermost first.
    #[serde(default)]
    pub wrappers: Vec<String>,
}

/// One effect, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionEffect {
    /// `read`, `write`, `run` …
    pub action: String,
    /// To what, without secrets.
    pub target: String,
    /// Its marks.
    #[serde(default)]
    pub marks: Vec<String>,
    /// Whether it is this effect that must be asked about.
    pub asked: bool,
}

/// The largest question, in bytes of JSON. Nobody can review a larger one.
pub const MAXIMUM_QUESTION: usize = 1024 * 1024;

/// What must be known of a question to remember its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedBy {
    /// The session; `None` if nothing is remembered.
    pub session: Option<String>,
    /// The request's key; `None` if it has none.
    pub key: Option<ApprovalKey>,
    /// Who can answer.
    pub answerable: Answerable,
}

/// The longest command that is repeated in a remedy, in characters.
const LONGEST_REPEATED: usize = 100;

/// The command that allows a call from now on. `request` is its input without secrets.
pub fn remedy(request: &Value) -> String {
    let command = request.get("command").and_then(Value::as_str);
    let short = |command: &&str| command.chars().count() <= LONGEST_REPEATED && *visible(command) == **command;
    match command.filter(short) {
        Some(command) if request.as_object().is_some_and(|fields| fields.len() == 1) => {
            format!("callgate allow {}", shell_word(command))
        }
        _ => "callgate allow --last".to_owned(),
    }
}

impl Question {
    /// What its answer is remembered by.
    pub fn remembered_by(&self) -> RememberedBy {
        RememberedBy { session: self.session.clone(), key: self.key, answerable: self.answerable }
    }

    /// The one command with which a person lets such calls pass from now on, or why no rule can.
    pub fn remedy(&self) -> Result<String, String> {
        match &self.no_proposal {
            None if !self.proposals.is_empty() => Ok(remedy(&self.request)),
            why => Err(why.clone().unwrap_or_else(|| "no rule can name anything in this call".to_owned())),
        }
    }

    /// How long it waits altogether.
    pub fn time(&self) -> Duration {
        self.asked_at.until(self.deadline)
    }

    /// Whether an answer can be remembered for exactly this request.
    pub fn can_be_remembered(&self) -> bool {
        self.session.is_some() && self.key.is_some()
    }
}
