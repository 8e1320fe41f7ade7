//! Fills the placeholders in the reason of a rule from the effect that it decides about.

use callgate_model::decision::{Decision, Ruling};
use callgate_model::description::{Description, Part};
use callgate_model::effect::{Effect, Mark};
use callgate_model::redact::Redactor;
use callgate_model::show::brief;
use callgate_model::wording;

use crate::policy::Judgement;

/// A wording of an effect.
type Wording = fn(&Part, &Effect) -> String;

/// The placeholders: the effect as a clause, its target, and its command.
const PLACEHOLDERS: [(&str, Wording); 3] = [
    ("{effect}", |_, effect| wording::clause(effect)),
    ("{target}", |_, effect| wording::target(effect, &Redactor::default())),
    ("{command}", |part, _| wording::command(part)),
];

/// What a rule says about files of this machine is not true of those in a container.
const ELSEWHERE: &str = "runs in a container or on another machine, where callgate cannot look: {command}";

/// Fills the placeholders in the reasons of every ruling that contains, asks or denies.
pub(super) fn fill(judgement: &mut Judgement, description: &Description, redactor: &Redactor) {
    if !is_template(&judgement.ruling) && !judgement.effects.iter().any(|of| is_template(&of.ruling)) {
        return;
    }
    let words = redactor.of_words(description);
    let mut speaking = None;
    for of in judgement.effects.iter_mut().filter(|of| is_template(&of.ruling)) {
        let part = description.parts.get(of.part);
        let Some((part, placed)) = part.and_then(|part| Some((part, part.effects.get(of.effect)?))) else { continue };
        let is_strictest = of.ruling == judgement.ruling;
        if of.ruling.doubt && placed.effect.marks.contains(&Mark::Elsewhere) {
            of.ruling.reason = ELSEWHERE.to_owned();
        }
        for (name, text) in PLACEHOLDERS {
            if of.ruling.reason.contains(name) {
                let shown = redactor.text(&text(part, &placed.effect));
                let shown = words.as_ref().map_or_else(|| shown.clone(), |words| words.text(&shown));
                of.ruling.reason = of.ruling.reason.replace(name, &brief(&shown));
            }
        }
        if is_strictest && speaking.is_none() {
            speaking = Some(of.ruling.reason.clone());
        }
    }
    if let Some(reason) = speaking {
        judgement.ruling.reason = reason;
    }
}

fn is_template(ruling: &Ruling) -> bool {
    ruling.decision > Decision::Allow && PLACEHOLDERS.iter().any(|(name, _)| ruling.reason.contains(name))
}
