//! The policy: an ordered list of rules and a default.
//!
//! A file goes through `yaml`, `decode` and `model` to `compile`; a call goes through `layers`, `judge` and
//! `index` to `matching`. Rules can also be built in Rust (`builder`).

mod audit;
mod boundary;
mod builder;
mod cache;
mod compile;
mod decode;
mod examples;
mod index;
mod judge;
mod keys;
mod layers;
mod legacy;
mod lint;
mod load;
mod matching;
mod mistake;
mod model;
mod raw;
mod schema;
mod source;
mod stored;
#[cfg(test)]
mod tests;
mod trust;
mod when;
mod yaml;

pub use audit::{AuditSettings, NoSync, Sync, expand_home};
pub use boundary::{BUILT_IN_SETS, BoundarySettings};
pub use builder::{
    IntoMatch, PermissionHandler, PermissionPolicy, PermissionRequest, PermissionResult, PermissionRule,
};
pub use cache::PolicyCache;
pub use examples::{CheckedExamples, Described, FailedExample};
pub use layers::{LayerKind, Policy};
pub use lint::{Finding, Severity};
pub use load::{CachedPolicy, FILE_NAME, FoundFile, Locations, MANAGED_FILE};
pub use mistake::{Mistake, Mistakes, PolicyError, Position};
pub use model::{Example, ExecInput, Timeouts};
pub use schema::schema;
pub use trust::TrustStore;

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
    /// What an MCP server says of its own tool. Whoever registers the tool turns them into tags.
    #[serde(default)]
    pub annotations: Annotations,
}

/// The hints of an MCP tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The tool changes nothing.
    #[serde(default)]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something.
    #[serde(default)]
    pub destructive_hint: Option<bool>,
    /// Calling it again changes nothing more.
    #[serde(default)]
    pub idempotent_hint: Option<bool>,
    /// The tool deals with the world outside.
    #[serde(default)]
    pub open_world_hint: Option<bool>,
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
