//! The proof: example calls judged by the agent's model and by the new policy.

use std::collections::HashSet;

use callgate::Gate;
use callgate::policy::{Decision, Policy};
use serde::Serialize;

use super::probe::Probe;
use super::{Around, Reading, draft, probe};

/// More examples than this are not tried.
const MAXIMUM_PROBES: usize = 5_000;

/// What an agent would do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Run it.
    Allowed,
    /// Ask, because nothing says otherwise.
    Asked,
    /// Ask, because a rule says so.
    AskedByRule,
    /// Refuse it.
    Denied,
}

/// How an agent decides.
pub(super) trait Model {
    /// What the agent would do with a call.
    fn decide(&self, probe: &Probe) -> Standing;
}

/// A call that is judged differently now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The call in one line.
    pub call: String,
    /// What the agent did with it.
    pub before: Standing,
    /// What the policy says.
    pub after: Decision,
    /// The rule that says so.
    pub rule: Option<String>,
}

/// What comparing came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// How many calls were compared.
    pub examples: usize,
    /// How many more there would have been.
    pub left_out: usize,
    /// How many of them the agent denied.
    pub denied: usize,
    /// How many of them a rule of the agent asked about.
    pub asked: usize,
    /// Denied, or asked about by a rule, and allowed now. There must be none.
    pub loosened: Vec<Change>,
    /// Denied, and asked about now.
    pub softened: Vec<Change>,
    /// Allowed, and asked about or denied now.
    pub tightened: Vec<Change>,
    /// Asked about because nothing said otherwise, and allowed now because callgate knows what it does.
    pub quieter: Vec<Change>,
}

impl Proof {
    /// Whether nothing that was denied, or asked about by a rule, is allowed now.
    pub fn holds(&self) -> bool {
        self.loosened.is_empty()
    }
}

/// Compares an agent and a policy on common calls and on those that the rules are about.
pub(super) fn compare(policy: Policy, reading: &Reading, around: &Around) -> Proof {
    // Those made from rules come last, so that a cut leaves the common ones.
    let probes: Vec<Probe> = probe::common(around).into_iter().chain(reading.probes.iter().cloned()).collect();
    compare_on(&probes, policy, reading, around)
}

/// Compares an agent and a policy on these calls.
pub(super) fn compare_on(probes: &[Probe], policy: Policy, reading: &Reading, around: &Around) -> Proof {
    let gate = Gate::builder().policy(policy).build();
    let mut proof = Proof::default();
    let mut seen = HashSet::new();
    for probe in probes {
        if !seen.insert(probe) {
            continue;
        }
        let Some(call) = reading.tools.call(probe, around) else { continue };
        if proof.examples >= MAXIMUM_PROBES {
            proof.left_out = proof.left_out.saturating_add(1);
            continue;
        }
        proof.examples = proof.examples.saturating_add(1);
        let before = reading.model.decide(probe);
        // A call that cannot be judged is refused.
        let (after, rule) = match gate.assessor().assess(&call) {
            Ok(explained) => (explained.ruling().decision, explained.ruling().rule.clone()),
            Err(refusal) => (Decision::Deny, refusal.rule),
        };
        match before {
            Standing::Denied => proof.denied = proof.denied.saturating_add(1),
            Standing::AskedByRule => proof.asked = proof.asked.saturating_add(1),
            Standing::Allowed | Standing::Asked => {}
        }
        let list = match (before, after) {
            (Standing::Denied | Standing::AskedByRule, Decision::Allow | Decision::Contain) => &mut proof.loosened,
            (Standing::Denied, Decision::Ask) => &mut proof.softened,
            (Standing::Allowed, Decision::Ask | Decision::Deny) => &mut proof.tightened,
            (Standing::Asked, Decision::Allow) => &mut proof.quieter,
            _ => continue,
        };
        list.push(Change { call: probe.shown(reading.tools), before, after, rule });
    }
    proof
}

impl Change {
    /// In one line, for people.
    pub fn shown(&self) -> String {
        let rule = self.rule.as_deref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
        format!("{}: {}{rule}", callgate::show::brief(&self.call), draft::word(self.after))
    }
}
