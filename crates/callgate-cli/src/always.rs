//! "Always": a rule in the user's policy file, written only if it really lets the call pass.

use std::path::Path;

use callgate::approvals::{AlwaysError, Proposal, add_rule, try_rule};
use callgate::clock::Timestamp;
use callgate::policy::{Decision, Locations, Policy};
use callgate::{Call, Gate};

use crate::grant::user;

/// Writes the rule; says where, or why not. With a call it is judged again, by all layers, as if the rule were there.
pub fn write(locations: &Locations, proposal: &Proposal, call: Option<&Call>) -> Result<String, String> {
    with_rule(locations, proposal, call, add_rule)
}

/// Where the rule would be written, or why it cannot be; writes nothing.
pub fn try_out(locations: &Locations, proposal: &Proposal, call: Option<&Call>) -> Result<String, String> {
    with_rule(locations, proposal, call, try_rule)
}

type Check<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

fn with_rule(
    locations: &Locations,
    proposal: &Proposal,
    call: Option<&Call>,
    act: impl Fn(&Path, &str, Check<'_>) -> Result<(), AlwaysError>,
) -> Result<String, String> {
    let file = locations.user.as_deref().ok_or("it is not known where the user's policy file is")?;
    let now = Timestamp::now();
    let rule = proposal.rule(&format!("always-{now}"), now, &user());
    let check = |new: &Path| passes(&Locations { user: Some(new.to_owned()), ..locations.clone() }, call);
    act(file, &rule, &check).map_err(|error| error.to_string())?;
    Ok(file.display().to_string())
}

fn passes(locations: &Locations, call: Option<&Call>) -> Result<(), String> {
    let policy = Policy::layered(locations).map_err(|error| error.to_string())?;
    let gate = Gate::builder().policy(policy).build();
    for checked in gate.check_examples() {
        checked.into_result().map_err(|mistakes| callgate::policy::PolicyError::from(mistakes).to_string())?;
    }
    let Some(call) = call else { return Ok(()) };
    let explanation = gate.explain(call).map_err(|refusal| refusal.to_string())?;
    let ruling = explanation.ruling();
    if ruling.decision < Decision::Ask {
        return Ok(());
    }
    let rule = ruling.rule.as_deref().unwrap_or("the default");
    Err(format!("{rule} would still stand before it ({})", ruling.reason))
}
