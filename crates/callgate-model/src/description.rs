//! What a call would do: its parts and their effects.

use serde::{Deserialize, Serialize};

use crate::effect::{Action, Coverage, Effect, Mark};
use crate::place::Place;
use crate::word::Word;

/// What a call would do: the parts it consists of and whether they are all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// What kind of tool this is: `shell`, `file_read`, `file_write`, `network`, `agent`, `plan`, `unknown` …
    pub category: String,
    /// The simple commands of a shell call in the order they run; one part without words for any other tool.
    pub parts: Vec<Part>,
    /// Whether the effects are all there are.
    pub coverage: Coverage,
}

/// One simple command, or the whole of a call that is no shell command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The command's words as they will run; empty if this is no shell command.
    pub words: Vec<Word>,
    /// Programs that were peeled off, outermost first (`sudo`, `env`).
    pub wrappers: Vec<String>,
    /// The machine or container it runs in, if not here.
    pub elsewhere: Option<String>,
    /// Its working directory, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What it would do.
    pub effects: Vec<PlacedEffect>,
}

impl Part {
    /// Notes that files of the project may run something else than the words say.
    pub fn doubt_project(&mut self, doubt: String, because: &str) {
        let marks = vec![Mark::ProjectCode];
        let effect = Effect { marks, because: because.to_owned(), ..Effect::opaque(doubt) };
        self.effects.push(effect.into());
    }
}

/// An effect together with where its path really lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedEffect {
    /// The effect as described.
    pub effect: Effect,
    /// Where its path lies; `None` if it has no path.
    pub place: Option<Place>,
}

impl From<Effect> for PlacedEffect {
    /// An effect whose path has not been resolved yet.
    fn from(effect: Effect) -> Self {
        PlacedEffect { effect, place: None }
    }
}

impl From<Vec<Effect>> for Part {
    /// The effects of a call that is not a shell command.
    fn from(effects: Vec<Effect>) -> Self {
        Part { effects: effects.into_iter().map(PlacedEffect::from).collect(), ..Part::default() }
    }
}

impl Description {
    /// Describes a call by its parts. The coverage is partial if an effect is opaque.
    pub fn of_parts(category: &str, parts: Vec<Part>) -> Self {
        let opaque = parts.iter().flat_map(|part| &part.effects).any(|placed| placed.effect.action == Action::Opaque);
        let coverage = if opaque { Coverage::Partial } else { Coverage::Complete };
        Description { category: category.to_owned(), parts, coverage }
    }

    /// Describes a call that is not a shell command. The coverage is partial if an effect is opaque.
    pub fn of_effects(category: &str, effects: Vec<Effect>) -> Self {
        Description::of_parts(category, vec![effects.into()])
    }

    /// Every effect of every part.
    pub fn effects(&self) -> impl Iterator<Item = &PlacedEffect> {
        self.parts.iter().flat_map(|part| &part.effects)
    }
}
