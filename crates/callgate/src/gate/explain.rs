//! How a ruling came about: every step with its time.

use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

use crate::describe::{Description, PlacedEffect, words};
use crate::path::Zone;
use crate::path::boundary::BoundaryRuling;
use crate::policy::{Classification, Decision, Judgement, Ruling};
use crate::redact::Redactor;
use crate::risk::Risk;

/// One step on the way to a ruling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which: `describe`, `boundary`, `policy`.
    pub name: &'static str,
    /// How long it took.
    #[serde(serialize_with = "microseconds")]
    pub duration: Duration,
}

fn microseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1e6)
}

/// Measures steps one after the other.
pub(super) struct Steps {
    steps: Vec<Step>,
    since: Instant,
}

impl Steps {
    pub(super) fn begin() -> Self {
        Steps { steps: Vec::with_capacity(3), since: Instant::now() }
    }

    pub(super) fn done(&mut self, name: &'static str) {
        let now = Instant::now();
        self.steps.push(Step { name, duration: now.duration_since(self.since) });
        self.since = now;
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.steps
    }
}

/// How a call was judged: pure, nobody was asked and nothing recorded.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub(super) ruling: Ruling,
    pub(super) description: Description,
    pub(super) boundary: Vec<BoundaryRuling>,
    pub(super) judgement: Judgement,
    pub(super) risk: Risk,
    pub(super) steps: Vec<Step>,
}

/// One effect with what was said of it, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedEffect {
    /// The place of its simple command in the call.
    pub part: usize,
    /// In words.
    pub effect: String,
    /// Where its path lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Zone>,
    /// It left a root by `..` or a link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub traversal: bool,
    /// What was decided about it.
    pub decision: Decision,
    /// By which rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Where the rule stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Why.
    pub reason: String,
}

impl Explanation {
    /// What was decided: the stricter of boundary and policy.
    pub fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// What the call would do. Not redacted: commands stand here as they are.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// What the boundary had to say.
    pub fn boundary(&self) -> &[BoundaryRuling] {
        &self.boundary
    }

    /// What the policy had to say.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// The call in one line.
    pub fn classification(&self) -> &Classification {
        &self.judgement.classification
    }

    /// How much is at stake.
    pub fn risk(&self) -> Risk {
        self.risk
    }

    /// The steps with their times.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Every effect with the stricter of what boundary and policy say of it, the strictest first.
    pub fn effects(&self, redactor: &Redactor) -> Vec<ExplainedEffect> {
        let mut effects: Vec<ExplainedEffect> = Vec::new();
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

    /// The effects that must be asked about, by part and place in it.
    pub(super) fn asked(&self) -> Vec<(usize, usize)> {
        let mut asked = Vec::new();
        for (part_index, part) in self.description.parts.iter().enumerate() {
            for effect_index in 0..part.effects.len() {
                if self.ruling_of(part_index, effect_index).is_none_or(|ruling| ruling.decision == Decision::Ask) {
                    asked.push((part_index, effect_index));
                }
            }
        }
        asked
    }

    /// The stricter of what boundary and policy say of one effect, by the place of its part and its own place there.
    pub fn ruling_of(&self, part: usize, effect: usize) -> Option<&Ruling> {
        let boundary = self
            .boundary
            .iter()
            .find(|ruling| (ruling.part, ruling.effect) == (part, effect))
            .map(|ruling| &ruling.ruling);
        let policy = self
            .judgement
            .effects
            .iter()
            .find(|(of_part, of_effect, _)| (*of_part, *of_effect) == (part, effect))
            .map(|(_, _, ruling)| ruling);
        match (boundary, policy) {
            (Some(boundary), Some(policy)) if boundary.decision > policy.decision => Some(boundary),
            (boundary, policy) => policy.or(boundary),
        }
    }
}

fn explained(part: usize, placed: &PlacedEffect, ruling: Option<&Ruling>, redactor: &Redactor) -> ExplainedEffect {
    ExplainedEffect {
        part,
        effect: words::effect(&placed.effect, redactor),
        zone: placed.place.as_ref().map(|place| place.zone.clone()),
        traversal: placed.place.as_ref().is_some_and(|place| place.traversal),
        decision: ruling.map_or(Decision::Deny, |ruling| ruling.decision),
        rule: ruling.and_then(|ruling| ruling.rule.clone()),
        place: ruling.and_then(|ruling| ruling.place.clone()),
        reason: ruling.map(|ruling| redactor.text(&ruling.reason)).unwrap_or_default(),
    }
}
