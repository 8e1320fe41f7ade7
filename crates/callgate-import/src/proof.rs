//! The proof: example calls judged by the agent's model and by the new policy.

use std::collections::HashSet;

use callgate::Gate;
use callgate::policy::{Decision, Policy};
use callgate_install::HostEnvironment;
use serde::Serialize;

use crate::draft::Draft;
use crate::probe::{self, Probe, ToolNames};

/// The most examples that are compared.
const MAXIMUM_PROBES: usize = 5_000;

/// The decision of an agent about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentDecision {
    /// Run it.
    Allowed,
    /// Ask by default.
    Asked,
    /// Ask because of a rule.
    AskedByRule,
    /// Refuse it.
    Denied,
}

/// A model of how an agent decides.
pub(crate) trait Model {
    /// The decision of the agent about a call.
    fn decide(&self, probe: &Probe) -> AgentDecision;
}

impl AgentDecision {
    /// The decision of a rule, if one matches.
    pub(crate) fn by_rule(rule: Option<Decision>) -> Option<AgentDecision> {
        rule.map(|decision| match decision {
            Decision::Deny => AgentDecision::Denied,
            Decision::Ask => AgentDecision::AskedByRule,
            Decision::Allow | Decision::Contain => AgentDecision::Allowed,
        })
    }
}

/// The rules of one agent, read and translated.
pub(crate) struct Reading {
    pub draft: Draft,
    /// The number of rules.
    pub rules: usize,
    pub model: Box<dyn Model>,
    /// The rules with calls that are derived from them.
    pub examples: Vec<RuleExamples>,
    pub tools: &'static ToolNames,
}

/// Calls derived from one rule.
pub(crate) struct RuleExamples {
    /// The file and the text of the rule.
    pub origin: String,
    /// Whether the rule allows.
    pub allows: bool,
    /// The plainest one first.
    pub probes: Vec<Probe>,
}

impl RuleExamples {
    pub(crate) fn new(origin: &str, decision: Decision, probes: Vec<Probe>) -> Self {
        RuleExamples { origin: origin.to_owned(), allows: decision == Decision::Allow, probes }
    }

    /// Whether the rule is about every call of a tool.
    pub(crate) fn is_broad(&self) -> bool {
        matches!(self.probes.last(), Some(Probe::Tool(_)))
    }
}

impl Reading {
    /// The calls derived from all rules.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.examples.iter().flat_map(|rule| &rule.probes)
    }
}

/// A call that is decided differently now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedDecision {
    /// The call in one line.
    pub call: String,
    /// The decision of the agent.
    pub before: AgentDecision,
    /// The decision of the policy.
    pub after: Decision,
    /// The rule of the policy.
    pub rule: Option<String>,
}

/// The comparison of an agent and a policy on example calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportProof {
    /// The number of calls that were compared.
    pub examples: usize,
    /// The number of calls above the limit.
    pub left_out: usize,
    /// The number of calls that the agent denied.
    pub denied: usize,
    /// The number of calls that a rule of the agent asked about.
    pub asked: usize,
    /// Calls that were denied, or asked about by a rule, and are allowed now. There must be none.
    pub loosened: Vec<ChangedDecision>,
    /// Calls that were denied and are asked about now.
    pub softened: Vec<ChangedDecision>,
    /// Calls that were allowed and are asked about or denied now.
    pub tightened: Vec<ChangedDecision>,
    /// Calls that were asked about by default and are allowed now, because callgate knows what they do.
    pub quieter: Vec<ChangedDecision>,
}

impl ImportProof {
    /// Whether no call that was denied, or asked about by a rule, is allowed now.
    pub fn holds(&self) -> bool {
        self.loosened.is_empty()
    }
}

/// Compares an agent and a policy on common calls and on those derived from the rules.
pub(crate) fn compare(policy: Policy, reading: &Reading, environment: &HostEnvironment) -> ImportProof {
    // The common calls come first, so that the limit never cuts them off.
    let probes: Vec<Probe> = probe::common(environment).into_iter().chain(reading.probes().cloned()).collect();
    compare_on(&probes, policy, reading, environment)
}

/// Compares an agent and a policy on these calls.
pub(crate) fn compare_on(
    probes: &[Probe],
    policy: Policy,
    reading: &Reading,
    environment: &HostEnvironment,
) -> ImportProof {
    let gate = Gate::builder().policy(policy).build();
    let mut proof = ImportProof::default();
    let mut seen = HashSet::new();
    for probe in probes {
        if !seen.insert(probe) {
            continue;
        }
        let Some(call) = reading.tools.call(probe, environment) else { continue };
        if proof.examples >= MAXIMUM_PROBES {
            proof.left_out = proof.left_out.saturating_add(1);
            continue;
        }
        proof.examples = proof.examples.saturating_add(1);
        let before = reading.model.decide(probe);
        // The gate refuses a call that it cannot judge.
        let (after, rule) = match gate.assessor().assess(&call) {
            Ok(explained) => (explained.ruling().decision, explained.ruling().rule.clone()),
            Err(refusal) => (Decision::Deny, refusal.rule),
        };
        match before {
            AgentDecision::Denied => proof.denied = proof.denied.saturating_add(1),
            AgentDecision::AskedByRule => proof.asked = proof.asked.saturating_add(1),
            AgentDecision::Allowed | AgentDecision::Asked => {}
        }
        let list = match (before, after) {
            (AgentDecision::Denied | AgentDecision::AskedByRule, Decision::Allow | Decision::Contain) => {
                &mut proof.loosened
            }
            (AgentDecision::Denied, Decision::Ask) => &mut proof.softened,
            (AgentDecision::Allowed, Decision::Ask | Decision::Deny) => &mut proof.tightened,
            (AgentDecision::Asked, Decision::Allow) => &mut proof.quieter,
            _ => continue,
        };
        list.push(ChangedDecision { call: probe.shown(reading.tools), before, after, rule });
    }
    proof
}

impl ChangedDecision {
    /// The change in one line.
    pub fn shown(&self) -> String {
        let rule = self.rule.as_deref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
        format!("{}: {}{rule}", callgate::show::brief(&self.call), self.after)
    }
}
