//! Policies written in Rust: rules with predicates, and ready-made rules.
//!
//! ```
//! use callgate_policy::{PermissionPolicy, PermissionResult, PermissionRule, Policy};
//!
//! let policy: Policy = PermissionPolicy::new()
//!     .rule(PermissionRule::deny_privileged())
//!     .rule(PermissionRule::new("small-mails", PermissionResult::Allow, |tool, _claims, input| {
//!         tool.name == "mail" && input["text"].as_str().is_some_and(|text| text.len() < 100)
//!     }))
//!     .into();
//! # let _ = policy;
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Claims, Decision, JudgeRequest, Ruling};
use callgate_model::call::Tool;

/// The decision of a rule or a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionResult {
    /// It may run.
    Allow,
    /// It may not run.
    Deny,
    /// A person must be asked.
    Ask,
}

impl From<PermissionResult> for Decision {
    fn from(result: PermissionResult) -> Self {
        match result {
            PermissionResult::Allow => Self::Allow,
            PermissionResult::Deny => Self::Deny,
            PermissionResult::Ask => Self::Ask,
        }
    }
}

/// A question to a handler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PermissionRequest {
    /// The tool.
    pub tool: Tool,
    /// Its arguments.
    pub parameters: Value,
    /// Why the rule asks.
    pub reason: String,
    /// The rule that asks; empty for the fallback.
    pub rule_name: String,
    /// The claims about the tool.
    pub claims: Claims,
}

/// Answers the questions of a policy. Anything but [`PermissionResult::Allow`] refuses.
pub trait PermissionHandler: Send + Sync {
    /// Decides about one request.
    fn handle(&self, request: &PermissionRequest) -> PermissionResult;
}

/// What a predicate may return: `bool`, or a `Result` of it.
pub trait IntoMatch {
    /// Whether the rule matches, or why the predicate failed.
    fn into_match(self) -> Result<bool, String>;
}

impl IntoMatch for bool {
    fn into_match(self) -> Result<bool, String> {
        Ok(self)
    }
}

impl<E: fmt::Display> IntoMatch for Result<bool, E> {
    fn into_match(self) -> Result<bool, String> {
        self.map_err(|error| error.to_string())
    }
}

type Predicate = dyn Fn(&Tool, &Claims, &Value) -> Result<bool, String> + Send + Sync;

/// A predicate and the decision if it holds.
#[derive(Clone)]
pub struct PermissionRule {
    name: String,
    result: PermissionResult,
    reason: String,
    predicate: Arc<Predicate>,
}

callgate_model::debug_fields!(PermissionRule, name, result, reason);

impl PermissionRule {
    /// Creates a rule. If the predicate panics or fails, a deny or ask rule denies and an allow rule does not match.
    pub fn new<M: IntoMatch>(
        name: impl Into<String>,
        result: PermissionResult,
        predicate: impl Fn(&Tool, &Claims, &Value) -> M + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        Self {
            reason: format!("rule {name}"),
            name,
            result,
            predicate: Arc::new(move |tool, claims, input| predicate(tool, claims, input).into_match()),
        }
    }

    /// Sets the reason, which is shown to the agent and to the person who is asked.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    fn tagged(name: &str, result: PermissionResult, tag: &'static str, reason: &str) -> Self {
        Self::new(name, result, move |_, claims, _| has(claims, tag)).reason(reason)
    }

    /// Allows tools that are tagged `read_only`. Tools of servers are excluded, because servers tag their own tools.
    pub fn allow_readonly() -> Self {
        Self::new("allow_readonly", PermissionResult::Allow, |tool, claims, _| {
            tool.server.is_none() && has(claims, "read_only") && !has(claims, "destructive")
        })
        .reason("the tool is tagged `read_only`")
    }

    /// Asks about tools that are tagged `destructive`.
    pub fn ask_destructive() -> Self {
        Self::tagged("ask_destructive", PermissionResult::Ask, "destructive", "the tool is tagged `destructive`")
    }

    /// Denies tools that are tagged `privileged`.
    pub fn deny_privileged() -> Self {
        Self::tagged("deny_privileged", PermissionResult::Deny, "privileged", "the tool is tagged `privileged`")
    }

    /// Asks about tools that are tagged `network`.
    pub fn ask_network() -> Self {
        Self::tagged("ask_network", PermissionResult::Ask, "network", "the tool is tagged `network`")
    }

    /// Asks about tools that are tagged `file_system`.
    pub fn ask_file_system() -> Self {
        Self::tagged("ask_file_system", PermissionResult::Ask, "file_system", "the tool is tagged `file_system`")
    }
}

fn has(claims: &Claims, tag: &str) -> bool {
    claims.tags.iter().any(|claim| claim == tag)
}

/// An ordered list of rules and a fallback: the first rule that matches decides about the whole call.
#[derive(Clone)]
pub struct PermissionPolicy {
    rules: Vec<PermissionRule>,
    fallback: PermissionResult,
    handler: Option<Arc<dyn PermissionHandler>>,
}

callgate_model::debug_fields!(PermissionPolicy, rules, fallback);

impl Default for PermissionPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl PermissionPolicy {
    /// Creates a policy without rules, which denies everything.
    pub fn new() -> Self {
        Self { rules: Vec::new(), fallback: PermissionResult::Deny, handler: None }
    }

    /// Adds a rule after the others.
    #[must_use]
    pub fn rule(mut self, rule: PermissionRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the decision if no rule matches; deny by default.
    #[must_use]
    pub fn fallback(mut self, fallback: PermissionResult) -> Self {
        self.fallback = fallback;
        self
    }

    /// Sets the handler that is asked first.
    #[must_use]
    pub fn with_handler(mut self, handler: Arc<dyn PermissionHandler>) -> Self {
        self.handler = Some(handler);
        self
    }

    pub(crate) fn handler(&self) -> Option<Arc<dyn PermissionHandler>> {
        self.handler.clone()
    }

    /// Predicates cannot be hashed, so the version covers names, results and reasons.
    pub(crate) fn version(&self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn evaluate(&self, request: &JudgeRequest<'_>) -> BuiltRuling {
        for rule in &self.rules {
            let held = catch_unwind(AssertUnwindSafe(|| {
                (rule.predicate)(&request.call.tool, request.claims, &request.call.input)
            }));
            let (decision, reason) = match (held, rule.result) {
                (Ok(Ok(true)), result) => (result.into(), rule.reason.clone()),
                (Ok(Ok(false)), _) | (Ok(Err(_)) | Err(_), PermissionResult::Allow) => continue,
                (Ok(Err(_)) | Err(_), PermissionResult::Deny | PermissionResult::Ask) => {
                    (Decision::Deny, format!("the predicate of rule {} failed", rule.name))
                }
            };
            let ruling = Ruling { decision, rule: Some(rule.name.clone()), place: None, reason, doubt: false };
            return BuiltRuling { ruling, by_rule: true };
        }
        let reason = "no rule matches".to_owned();
        BuiltRuling {
            ruling: Ruling { decision: self.fallback.into(), rule: None, place: None, reason, doubt: false },
            by_rule: false,
        }
    }
}

/// The ruling of a policy built in Rust.
#[derive(Debug, Clone)]
pub(crate) struct BuiltRuling {
    pub ruling: Ruling,
    pub by_rule: bool,
}
