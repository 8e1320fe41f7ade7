//! The policy: an ordered list of rules and a default.
//!
//! A file goes through `yaml`, `decode` and `model` to `compile`; a call goes through `layers`, `judge` and
//! `index` to `matching`. Rules can also be built in Rust (`builder`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod boundary;
mod builder;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "keeps compiled policies in files")]
mod cache;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "finds the user's directories")]
pub mod directories;
mod examples;
mod file;
mod layers;
mod lint;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "finds policy files")]
mod load;
mod roots;
mod rules;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads policy files")]
mod source;
#[cfg(test)]
mod tests;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "remembers trusted files")]
mod trust;

pub use boundary::{BUILT_IN_SETS, BoundarySettings};
pub use builder::{
    IntoMatch, PermissionHandler, PermissionPolicy, PermissionRequest, PermissionResult, PermissionRule,
};
pub use cache::PolicyCache;
pub use examples::{CheckedExamples, ExampleCall, FailedExample};
pub use file::approval_rules::{ApprovalRuleText, ApprovalRules, CommandPattern, RulesError};
pub use file::audit::{AuditSettings, NoSync, Sync, expand_home};
pub use file::mistake::{Mistake, Mistakes, PolicyError, Position};
pub use file::model::{Example, ExecInput, Timeouts};
pub use file::schema::schema;
pub use layers::{LayerKind, Policy};
pub use lint::{FindRoot, Finding, Severity};
pub use load::{CompiledLayers, FILE_NAME, FoundFile, Locations, MANAGED_FILE};
pub use roots::{HostDirectories, PLANS, RelativeTo, Root, Roots, TEMPORARY};
pub use trust::TrustStore;

pub use callgate_model::claims::{Annotations, Claims};
pub use callgate_model::decision::{Decision, EffectRuling, Ruling};
use serde::Serialize;

use callgate_model::call::Call;
use callgate_model::description::Description;

/// What a policy judges: a call and what it would do.
#[derive(Debug, Clone, Copy)]
pub struct JudgeRequest<'a> {
    /// The call.
    pub call: &'a Call,
    /// What it would do.
    pub description: &'a Description,
    /// Claims about the tool (tags and annotations) by whoever registered it.
    pub claims: &'a Claims,
}

/// The whole judgement of a call: the strictest ruling, and that of every effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest ruling.
    pub ruling: Ruling,
    /// One for every effect, in their order.
    pub effects: Vec<EffectRuling>,
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
