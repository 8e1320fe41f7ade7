//! The policy: an ordered list of rules and a default.

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::describe::Description;

/// What a policy says, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run inside the sandbox.
    Contain,
    /// Somebody must be asked.
    Ask,
    /// It may not run.
    Deny,
}

/// What a policy judges: a call and what it would do.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The call.
    pub call: &'a Call,
    /// What it would do.
    pub description: &'a Description,
    /// Claims about the tool (tags and annotations) by whoever registered it.
    pub claims: &'a Claims,
}

/// What whoever registered a tool claims of it. Trusted only where the policy says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// `read_only`, `destructive`, `network`, `file_system`, `slow`, `privileged`, or free ones.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A decision with its rule and reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ruling {
    /// What is decided.
    pub decision: Decision,
    /// The rule's name; `None` if the default decided.
    pub rule: Option<String>,
    /// Where the rule stands: `callgate.yaml:12`.
    pub place: Option<String>,
    /// Why, in words.
    pub reason: String,
}

/// The whole judgement of a call: the strictest ruling, and that of every effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest ruling.
    pub ruling: Ruling,
    /// One for every effect: `(part, effect, ruling)`.
    pub effects: Vec<(usize, usize, Ruling)>,
    /// The second view: category, risk and so on.
    pub classification: Classification,
}

/// A call in one line: what it is and how risky.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Classification {
    /// The matched rule's name or the tool's category.
    pub category: String,
    /// `low`, `medium`, `high`, `critical`.
    pub risk_level: String,
    /// What the rule says of itself.
    pub description: String,
    /// Why it is denied, if it is.
    pub deny_reason: Option<String>,
    /// The matched rule's name.
    pub matched_rule: Option<String>,
}
