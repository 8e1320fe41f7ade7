//! Policies for tool calls of AI agents: an ordered list of rules about effects, and a default.
//!
//! A policy judges a [`Call`] by its [`Description`]: what the call would read, write, run or
//! connect to. The first rule that matches an effect decides about it, and the strictest decision is the decision about the
//! call. Rules are compared with three values (yes, no, maybe): unknown facts never make an allow rule match and never hide a
//! deny rule.
//!
//! # Examples
//!
//! Load a policy, and judge a command:
//!
//! ```
//! use callgate_model::call::Call;
//! use callgate_model::description::{Description, Part};
//! use callgate_model::effect::Coverage;
//! use callgate_model::word::Word;
//! use callgate_policy::{Claims, Decision, JudgeRequest, Policy, SandboxSupport};
//!
//! let policy = Policy::from_yaml(
//!     "rules:\n  - {name: tests, commands: [cargo test **], action: allow, reason: tests are fine}",
//!     "inline",
//! )?;
//! let call = Call::new("Bash", serde_json::json!({ "command": "cargo test" }));
//! let words = ["cargo", "test"].map(|word| Word::Known(word.to_owned())).to_vec();
//! let description = Description {
//!     category: "shell".to_owned(),
//!     parts: vec![Part { words, ..Part::default() }],
//!     coverage: Coverage::Complete,
//! };
//! let request = JudgeRequest { call: &call, description: &description, claims: &Claims::default(), sandbox: SandboxSupport::Missing };
//! assert_eq!(policy.judge(&request).ruling.decision, Decision::Allow);
//! # Ok::<(), callgate_policy::PolicyError>(())
//! ```
//!
//! Mistakes in a policy file are reported with their position and what to write instead:
//!
//! ```
//! use callgate_policy::{Policy, PolicyError};
//!
//! let Err(PolicyError::Mistakes(mistakes)) = Policy::from_yaml("rules:\n  - {action: allwo}", "callgate.yaml") else {
//!     panic!("the action is misspelled");
//! };
//! let [mistake] = mistakes.list() else { panic!("there is one mistake") };
//! assert_eq!(mistake.position.line, 2);
//! assert_eq!(mistake.help.as_deref(), Some("did you mean `allow`?"));
//! ```
//!
//! Policies can also be written in Rust: see [`PermissionPolicy`].
//!
//! # Features
//!
//! All features are enabled by default.
//!
//! - `annotated-errors`: show mistakes with the source line, in the style of `rustc`.
//! - `conditions`: support `when:` conditions in CEL.
//! - `look-around`: support look-around and back-references in regular expressions.
//! - `legacy`: support the sections `safety:`, `sandbox:` and `run:` of earlier formats.
//!
//! # What this crate does not do
//!
//! It does not analyze commands, resolve paths or look at the file system of a call: the caller provides the description. It
//! does not ask anyone and does not enforce its decisions. A decision is only as good as the description it is based on.
//!
//! # Where to find what
//!
//! A file goes through `file::yaml`, `file::decode` and `file::model` to `rules::compile`. A call goes through `layers`,
//! `rules::judge` and `rules::index` to `rules::matching`.

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
pub use file::approval_rules::{
    ApprovalRuleText, ApprovalRules, ApprovalRulesError, ApproverKind, ApproverText, CommandPattern, NotifyText,
};
pub use file::audit::{AuditSettings, ParseSyncModeError, SyncMode, expand_home};
pub use file::mistake::{
    Mistake, Mistakes, PolicyError, Position, Severity, UnknownPolicy, UnreadableFile, UnwritableFile,
};
pub use file::model::{AgentAnswers, ExecInput, RuleExample, SandboxMode, SandboxSettings, Timeouts};
pub use file::schema::schema;
pub use layers::{FenceGlobs, LayerKind, Policy};
pub use lint::{FindRoot, LintFinding};
pub use load::{CompiledLayers, FILE_NAME, FoundFile, Locations, MANAGED_FILE};
pub use roots::{HostDirectories, PLANS, RelativeTo, Root, Roots, TEMPORARY};
pub use rules::path_list::PathList;
pub use trust::TrustStore;

pub use callgate_model::claims::{Annotations, Claims};
pub use callgate_model::decision::{Decision, EffectRuling, Ruling};
use serde::Serialize;

use callgate_model::call::Call;
use callgate_model::description::Description;
use callgate_model::fence::{Limits, Network, Protections};

/// A call to judge, with what it would do.
#[derive(Debug, Clone, Copy)]
pub struct JudgeRequest<'a> {
    /// The call.
    pub call: &'a Call,
    /// What it would do.
    pub description: &'a Description,
    /// Claims about the tool (tags and annotations).
    pub claims: &'a Claims,
    /// Whether the call can run inside a sandbox.
    pub sandbox: SandboxSupport,
}

impl JudgeRequest<'_> {
    /// Whether the call can be contained: only commands can.
    pub fn is_containable(&self) -> bool {
        self.sandbox == SandboxSupport::Available && self.description.category == "shell"
    }
}

/// Whether the caller that runs permits has a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxSupport {
    /// There is no sandbox: calls that need one are refused.
    #[default]
    Missing,
    /// There is one that holds everything.
    Available,
    /// There is one that holds only this: it is enough for calls of which the policy says so.
    Partial(Protections),
}

/// The judgement of a call: the strictest ruling, and the ruling of every effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest ruling.
    pub ruling: Ruling,
    /// The rulings of all effects, in their order.
    pub effects: Vec<EffectRuling>,
    /// The category and the risk of the call.
    pub classification: Classification,
    /// What the rules say about the fence, if the call is contained.
    #[serde(skip)]
    pub terms: FenceTerms,
}

/// What rules say about the fence of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FenceTerms {
    /// The network: what all rules that decided open together.
    pub network: Network,
    /// The limits: the lowest of all rules that decided.
    pub limits: Limits,
    /// What must be held: what the rules that contain anything require together, or everything. Empty if no rule does.
    pub required: Protections,
    /// The effects, by part and effect, that a rule allows and opens the network for.
    pub opened: Vec<(usize, usize)>,
    /// The effects that run code which calls may write.
    pub code: Vec<(usize, usize)>,
}

/// The category and the risk of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Classification {
    /// The matched rule's name or the tool's category.
    pub category: String,
    /// `low`, `medium`, `high`, `critical`.
    pub risk_level: String,
    /// The description of the rule.
    pub description: String,
    /// Why the call is denied, if it is.
    pub deny_reason: Option<String>,
    /// The matched rule's name.
    pub matched_rule: Option<String>,
}
