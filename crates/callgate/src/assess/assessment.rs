//! The result of assessing a call.

use callgate_model::decision::{Answerable, Decision, EffectRuling, Ruling};
use callgate_model::description::{Description, PlacedEffect};
use callgate_model::fence::Protections;
use callgate_model::place::Zone;
use callgate_model::redact::Redactor;
use callgate_model::risk::Risk;
use callgate_model::wording;
use callgate_shell::ShellState;
use serde::Serialize;

use super::steps::StepTime;
use crate::policy::{Classification, Judgement};

/// Everything that is known about a call before anybody is asked.
#[derive(Debug, Clone)]
pub struct Assessment {
    pub(crate) ruling: Ruling,
    pub(crate) description: Description,
    pub(crate) shell: Option<Box<ShellState>>,
    pub(crate) boundary: Vec<EffectRuling>,
    pub(crate) judgement: Judgement,
    pub(crate) risk: Risk,
    pub(crate) rewritten: Option<String>,
    pub(crate) steps: Vec<StepTime>,
    /// Whether a yes lets code run outside the sandbox that there is, because one command also does what a fence does not give.
    pub(crate) opens_fence: bool,
    /// Whether the policy or the call wants every command in the sandbox.
    pub(crate) forced: bool,
    /// Whether a contained call that runs may change what was observed.
    pub(crate) unsettled: bool,
}

/// One effect with the ruling on it, in words and without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuledEffect {
    /// The index of its simple command in the call.
    pub part: usize,
    /// The effect in words.
    pub effect: String,
    /// The zone of its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Zone>,
    /// Whether it leaves a root through `..` or a symlink.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub traversal: bool,
    /// The decision about it.
    pub decision: Decision,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file and line of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The reason.
    pub reason: String,
}

impl Assessment {
    /// The decision: the stricter one of boundary and policy.
    pub fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// What the call would do, not redacted.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The state of the caller's persistent shell after the call.
    pub fn shell(&self) -> Option<&ShellState> {
        self.shell.as_deref()
    }

    /// The command that must run in place of the call's own, if the decision depends on it: git with the repository's own
    /// settings switched off.
    pub fn rewritten(&self) -> Option<&str> {
        self.rewritten.as_deref()
    }

    /// Whether a part of the call may only run inside a sandbox.
    pub fn is_contained(&self) -> bool {
        // an approval covers what was asked about, not the containment of the rest
        let effects = self.judgement.effects.iter().map(|of| &of.ruling);
        let code = !self.opens_fence && !self.judgement.terms.code.is_empty();
        code || self.forced
            || effects
                .chain(self.boundary.iter().map(|of| &of.ruling))
                .chain([&self.ruling])
                .any(|ruling| ruling.decision == Decision::Contain)
    }

    /// What must be held if the call is contained.
    pub fn required(&self) -> Protections {
        Some(self.judgement.terms.required).filter(|required| !required.is_empty()).unwrap_or_else(Protections::all)
    }

    /// Whether the boundary asks about an effect or denies one. Rules cannot override that.
    pub fn is_held_by_boundary(&self) -> bool {
        self.boundary.iter().any(|of| of.ruling.decision >= Decision::Ask)
    }

    /// Who can answer a question about the call.
    pub fn answerable(&self) -> Answerable {
        let policy = self.judgement.effects.iter().map(|of| &of.ruling).chain([&self.judgement.ruling]);
        if self
            .boundary
            .iter()
            .map(|of| &of.ruling)
            .chain(policy)
            .any(|ruling| ruling.doubt && ruling.decision >= Decision::Ask)
            || self.opens_fence
            || self.unsettled
        {
            Answerable::ByAPerson
        } else if self.is_held_by_boundary() {
            Answerable::ForThisRequest
        } else {
            Answerable::InAdvance
        }
    }

    /// The classification of the call.
    pub fn classification(&self) -> &Classification {
        &self.judgement.classification
    }

    /// The risk of the call.
    pub fn risk(&self) -> Risk {
        self.risk
    }

    /// The duration of each step.
    pub fn steps(&self) -> &[StepTime] {
        &self.steps
    }

    /// Every effect with the stricter ruling of boundary and policy, strictest first.
    pub fn effects(&self, redactor: &Redactor) -> Vec<RuledEffect> {
        let mut effects: Vec<RuledEffect> = Vec::new();
        for (part_index, part) in self.description.parts.iter().enumerate() {
            for (effect_index, placed) in part.effects.iter().enumerate() {
                let ruling = self.ruling_of(part_index, effect_index);
                effects.push(explained(part_index, placed, ruling, redactor));
            }
        }
        if let Some(words) = redactor.of_words(&self.description) {
            for effect in &mut effects {
                effect.effect = words.text(&effect.effect);
            }
        }
        effects.sort_by_key(|effect| std::cmp::Reverse(effect.decision));
        effects
    }

    /// The effects whose ruling is at least `decision`, as `(part, effect)`.
    pub fn effects_from(&self, decision: Decision) -> Vec<(usize, usize)> {
        let parts = self.description.parts.iter().enumerate();
        let all = parts.flat_map(|(part, effects)| (0..effects.effects.len()).map(move |effect| (part, effect)));
        all.filter(|(part, effect)| self.ruling_of(*part, *effect).is_none_or(|ruling| ruling.decision >= decision))
            .collect()
    }

    /// The stricter ruling of boundary and policy on one effect, by the index of its part and its index there.
    pub fn ruling_of<'a>(&'a self, part: usize, effect: usize) -> Option<&'a Ruling> {
        let of = |rulings: &'a [EffectRuling]| {
            // INVARIANT: rulings are listed in the order of parts and effects.
            let place = rulings.binary_search_by_key(&(part, effect), |of| (of.part, of.effect)).ok()?;
            rulings.get(place).map(|of| &of.ruling)
        };
        let (boundary, policy) = (of(&self.boundary), of(&self.judgement.effects));
        match (boundary, policy) {
            (Some(boundary), Some(policy)) if boundary.decision > policy.decision => Some(boundary),
            (boundary, policy) => policy.or(boundary),
        }
    }
}

fn explained(part: usize, placed: &PlacedEffect, ruling: Option<&Ruling>, redactor: &Redactor) -> RuledEffect {
    RuledEffect {
        part,
        effect: wording::effect(placed, redactor),
        zone: placed.place.as_ref().map(|place| place.zone.clone()),
        traversal: placed.place.as_ref().is_some_and(|place| place.traversal),
        decision: ruling.map_or(Decision::Deny, |ruling| ruling.decision),
        rule: ruling.and_then(|ruling| ruling.rule.clone()),
        place: ruling.and_then(|ruling| ruling.place.clone()),
        reason: ruling.map(|ruling| redactor.text(&ruling.reason)).unwrap_or_default(),
    }
}
