//! Reasons that are true of the very call: placeholders in the reason of a rule, filled from the effect it decides.

use callgate_model::decision::{Decision, Ruling};
use callgate_model::description::{Description, Part};
use callgate_model::effect::Effect;
use callgate_model::redact::Redactor;
use callgate_model::show::brief;
use callgate_model::wording;

use crate::policy::Judgement;

/// Words for an effect of a part.
type Wording = fn(&Part, &Effect) -> String;

/// What a reason may refer to: the effect as a clause, what it is about, and the command it belongs to.
const PLACEHOLDERS: [(&str, Wording); 3] = [
    ("{effect}", |_, effect| wording::clause(effect)),
    ("{target}", |_, effect| wording::target(effect, &Redactor::default())),
    ("{command}", |part, _| wording::command(part)),
];

/// Fills the placeholders in the reasons of everything that is not silent.
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
    ruling.decision >= Decision::Ask && PLACEHOLDERS.iter().any(|(name, _)| ruling.reason.contains(name))
}
