//! What a project's policy file would decide if somebody trusted it.

use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{Decision, FoundFile, LayerKind, Locations, PolicyCache};
use callgate::show::visible;
use callgate::{Call, Gate};

/// Says that a rule of a project file that nobody trusts would decide a call more leniently than it was decided.
pub fn missing(locations: &Locations, files: &[FoundFile], call: &Call, decided: Decision) -> Option<String> {
    let untrusted = files.iter().find(|file| file.kind == LayerKind::Project && !file.trusted)?;
    let path = untrusted.path.as_deref()?;
    let trusting = locations.trusted.as_ref()?.as_if(path).ok()?;
    let locations = Locations { trusted: Some(trusting), ..locations.clone() };
    let policy = load_policy(
        PolicyChoice::Layers(&locations),
        PolicyCache::of_user_outside(locations.workspace.as_deref()).as_ref(),
    )
    .ok()?
    .policy;
    let gate = Gate::builder().policy(policy).build();
    let assessment = gate.assess(call).ok()?;
    let ruling = assessment.ruling();
    // a default that would apply in place of the user's rules is no rule of the file
    let rule = ruling.rule.as_deref().filter(|_| ruling.decision < decided && ruling.decision < Decision::Ask)?;
    let (rule, path) = (visible(rule), visible(&path.display().to_string()));
    Some(format!("the rule {rule} of {path}, which nobody trusts, would {} this", ruling.decision.as_str()))
}
