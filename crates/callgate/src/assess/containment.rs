//! What follows for a whole call if parts of it are contained. Pure.
//!
//! The policy decides which effects are contained. A fence settles some doubts of the boundary, and some effects it does not give: no
//! yes opens it for code of the project, so a call that needs both is split, or judged as if there were no sandbox.

use callgate_model::call::Call;
use callgate_model::decision::{Decision, EffectRuling, Ruling};
use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::effect::{Action, Effect, Host, Mark, Target};
use callgate_model::place::Zone;
use callgate_model::redact::Redactor;
use callgate_model::word::Word;
use callgate_model::wording;

use crate::describe::OUTSIDE_THE_SANDBOX;
use crate::path::watched::Settled;
use crate::policy::{Judgement, PathList};

/// The name of the rule that refuses a call because it must be split.
pub const MIXED_RULE: &str = "mixed";

/// The name of the rule for calls that are judged while a contained call may change what they rest on.
pub const UNSETTLED_RULE: &str = "contained-call-runs";

/// Whether a call needs both a fence and what a fence does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mixed {
    No,
    /// It cannot be split.
    InOneCommand,
    /// It can be split: the commands.
    InSeveralCommands {
        /// The one that is contained.
        code: String,
        /// The one that cannot be.
        other: String,
    },
}

/// A ruling on one effect, by the index of its part and its index there.
fn of(rulings: &[EffectRuling], part: usize, effect: usize) -> Option<&Ruling> {
    let place = rulings.binary_search_by_key(&(part, effect), |of| (of.part, of.effect)).ok()?;
    rulings.get(place).map(|of| &of.ruling)
}

/// Contains what the boundary asks about only because it does not know which file is read, if the policy lets the rest pass. A fence
/// holds reads everywhere; what is written or deleted must be known.
pub(super) fn settle_boundary(boundary: &mut [EffectRuling], description: &Description, judgement: &Judgement) {
    for EffectRuling { part, effect, ruling } in boundary {
        let Some(placed) = description.parts.get(*part).and_then(|part| part.effects.get(*effect)) else { continue };
        let allowed = of(&judgement.effects, *part, *effect).is_some_and(|policy| policy.decision < Decision::Ask);
        let is_read = matches!(placed.effect.action, Action::List | Action::Read | Action::Run);
        if allowed && ruling.decision == Decision::Ask && ruling.doubt && is_read {
            ruling.decision = Decision::Contain;
        }
    }
}

/// Whether a call mixes what is contained with what a fence does not give. `globs` are what the fence hides and protects.
pub(super) fn mixed(
    boundary: &[EffectRuling],
    description: &Description,
    judgement: &Judgement,
    globs: impl FnOnce() -> PathList,
) -> Mixed {
    let rulings = boundary.iter().chain(&judgement.effects);
    let contained: Vec<(usize, usize)> =
        rulings.filter(|of| of.ruling.decision == Decision::Contain).map(|of| (of.part, of.effect)).collect();
    let terms = &judgement.terms;
    if contained.is_empty() && terms.code.is_empty() {
        return Mixed::No;
    }
    if wants_out(description) {
        return Mixed::InOneCommand;
    }
    let globs = std::cell::LazyCell::new(globs);
    let is_asked = |at: (usize, usize)| {
        [boundary, &judgement.effects]
            .iter()
            .any(|rulings| of(rulings, at.0, at.1).is_some_and(|of| of.decision >= Decision::Ask))
    };
    let is_refused = |at: (usize, usize), placed: &PlacedEffect, part: &Part| {
        let closed = |placed: &PlacedEffect| {
            placed.place.as_ref().is_some_and(|place| globs.matches(&place.resolved) || globs.matches(&place.named))
        };
        !is_given(placed, part) && !terms.opened.contains(&at) && !contained.contains(&at)
            || !contained.contains(&at) && is_asked(at) && closed(placed)
    };
    let refused: Vec<usize> = description
        .parts
        .iter()
        .enumerate()
        .filter(|(number, part)| {
            part.effects.iter().enumerate().any(|(effect, placed)| is_refused((*number, effect), placed, part))
        })
        .map(|(number, _)| number)
        .collect();
    let Some(other) = refused.first().and_then(|part| description.parts.get(*part)) else { return Mixed::No };
    // `sudo make` is one command, though it has two parts
    let program = |part: &usize| match description.parts.get(*part)?.words.first() {
        Some(Word::Known(program)) => Some(program.as_str()),
        _ => None,
    };
    let programs: Vec<&str> = refused.iter().filter_map(program).collect();
    let is_wrapped = |part: &Part| part.wrappers.iter().any(|wrapper| programs.contains(&wrapper.as_str()));
    let code = terms.code.iter().filter(|(part, _)| !refused.contains(part));
    match code.filter_map(|(part, _)| description.parts.get(*part)).find(|part| !is_wrapped(part)) {
        Some(code) => Mixed::InSeveralCommands { code: wording::command(code), other: wording::command(other) },
        None => Mixed::InOneCommand,
    }
}

/// Whether a fence gives an effect, as far as its kind and its zone say.
fn is_given(placed: &PlacedEffect, part: &Part) -> bool {
    if part.elsewhere.is_some() || placed.effect.marks.contains(&Mark::Elsewhere) {
        return false;
    }
    let own = placed.effect.marks.contains(&Mark::OwnFiles);
    let zone = placed.place.as_ref().map(|place| &place.zone);
    match placed.effect.action {
        Action::List | Action::Run | Action::Opaque => true,
        Action::Read => own || zone != Some(&Zone::Outside),
        Action::Write | Action::Delete => !matches!(zone, Some(Zone::Outside | Zone::Readable)),
        // what the same call serves
        Action::Connect => matches!(&placed.effect.target, Target::Host(host) if is_loopback(host)),
        Action::Send | Action::Privilege => false,
    }
}

fn is_loopback(host: &Host) -> bool {
    let name = host.name.as_deref().unwrap_or_default();
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether the call asks to run outside the sandbox. That is a right, which is asked for.
pub(super) fn wants_out(description: &Description) -> bool {
    let is_wish = |effect: &Effect| match (effect.action, &effect.target) {
        (Action::Privilege, Target::Text(text)) => text == OUTSIDE_THE_SANDBOX,
        _ => false,
    };
    description.effects().any(|placed| is_wish(&placed.effect))
}

/// Whether the call asks for the sandbox.
pub(super) fn wants_in(call: &Call) -> bool {
    call.input.get("sandbox").is_some_and(|value| value == "restricted" || value == true)
}

/// The ruling on an allowed call that runs in the sandbox like every other.
pub(super) fn forced(ruling: &Ruling) -> Ruling {
    let reason = format!("every command runs inside the sandbox; {}", ruling.reason);
    Ruling { decision: Decision::Contain, reason, ..ruling.clone() }
}

/// Whether a contained call that runs may change what the decision rests on. Of files, other tools than commands need only where they
/// are: they read and write what is there at that moment.
pub(super) fn is_unsettled(settled: Settled, description: &Description) -> bool {
    match settled {
        Settled::Yes => false,
        Settled::Paths => description.category == "shell",
        Settled::No => true,
    }
}

/// Whether a fence gives everything that the call does.
pub(super) fn is_all_given(description: &Description) -> bool {
    let is_given = |part: &Part| part.effects.iter().all(|placed| is_given(placed, part));
    !wants_out(description) && description.parts.iter().all(is_given)
}

/// The ruling on an allowed call, if what was observed may be different when it runs: the fence holds, or somebody is asked.
pub(super) fn unsettled(ruling: &Ruling, is_held: bool) -> Ruling {
    let reason = format!(
        "a contained call is running here and can change files while they are judged (see `callgate ps`); otherwise: {}",
        ruling.reason
    );
    let decision = if is_held { Decision::Contain } else { Decision::Ask };
    Ruling { decision, reason, rule: Some(UNSETTLED_RULE.to_owned()), place: None, doubt: true }
}

/// The ruling on a call that must be split.
pub(super) fn refused(code: &str, other: &str, redactor: &Redactor) -> Ruling {
    let reason = format!(
        "`{code}` runs in the sandbox, and `{other}` needs what the sandbox does not give: run them as two calls"
    );
    Ruling {
        decision: Decision::Deny,
        rule: Some(MIXED_RULE.to_owned()),
        place: None,
        reason: redactor.text(&reason),
        doubt: false,
    }
}
