//! Rates the risk of a call.

use crate::effect::{Action, CodeOrigin, Effect, Mark, Target};
use serde::{Deserialize, Serialize};

use crate::description::{Description, PlacedEffect};
use crate::place::Zone;

/// The risk of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Only reads, or runs known programs.
    #[default]
    Low,
    /// Changes files of the project, runs other code, or connects.
    Medium,
    /// Deletes, writes outside the boundary, sends, or cannot be analyzed.
    High,
    /// Several of these at once, or cannot be undone.
    Critical,
}

impl Risk {
    /// The name in policies and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
            Risk::Critical => "critical",
        }
    }

    /// The risk of a call: that of its worst effect, or critical if two kinds of effects are high.
    pub fn of(description: &Description) -> Risk {
        let mut worst = Risk::Low;
        let mut high: Vec<Action> = Vec::new();
        for placed in description.parts.iter().flat_map(|part| &part.effects) {
            let risk = Risk::of_effect(placed);
            worst = worst.max(risk);
            if risk == Risk::High && !high.contains(&placed.effect.action) {
                high.push(placed.effect.action);
            }
        }
        if high.len() > 1 { Risk::Critical } else { worst }
    }

    fn of_effect(placed: &PlacedEffect) -> Risk {
        let PlacedEffect { effect, place } = placed;
        let outside = place.as_ref().is_some_and(|place| place.traversal || place.zone != Zone::Root);
        let tree = place.as_ref().is_some_and(|place| place.tree);
        if effect.marks.contains(&Mark::Destructive) {
            return Risk::Critical;
        }
        if effect.marks.contains(&Mark::Credentials) {
            return Risk::High;
        }
        match effect.action {
            Action::List => Risk::Low,
            Action::Read if outside => Risk::Medium,
            Action::Read => Risk::Low,
            Action::Write if outside => Risk::High,
            Action::Write => Risk::Medium,
            Action::Delete if outside && tree => Risk::Critical,
            Action::Delete => Risk::High,
            Action::Run => Risk::of_program(effect),
            Action::Connect => Risk::Medium,
            Action::Send | Action::Privilege | Action::Opaque => Risk::High,
        }
    }

    fn of_program(effect: &Effect) -> Risk {
        let Target::Program(program) = &effect.target else {
            return Risk::Medium;
        };
        match program.origin {
            CodeOrigin::Known | CodeOrigin::Defined => Risk::Low,
            CodeOrigin::Unknown | CodeOrigin::File | CodeOrigin::Project | CodeOrigin::Inline => Risk::Medium,
            CodeOrigin::Fetched => Risk::Critical,
        }
    }
}
