//! "Always": a rule in the user's policy file, written only if it really lets the call pass.

use std::path::Path;

use callgate::approvals::{AlwaysError, Proposal, add_rule, try_rule};
use callgate::assess::Assessor;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::Locations;
use callgate::{Call, Decision};
use callgate_model::clock::Timestamp;

use crate::grant::user;

/// Writes the rule and returns the path of the file. Checks first that all layers with the rule allow `call`.
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
    let file = locations.user.as_deref().ok_or("cannot determine where the user policy file is")?;
    let now = Timestamp::now();
    let reason = format!("always allowed by {} on {}", user(), now.day());
    let rule = proposal.rule(&format!("always-{now}"), &reason);
    let check = |new: &Path| passes(&Locations { user: Some(new.to_owned()), ..locations.clone() }, call);
    act(file, &rule, &check).map_err(|error| error.to_string())?;
    Ok(file.display().to_string())
}

fn passes(locations: &Locations, call: Option<&Call>) -> Result<(), String> {
    let loaded = load_policy(PolicyChoice::Layers(locations), None).map_err(|error| error.to_string())?;
    let Some(call) = call else { return Ok(()) };
    let assessment = Assessor::new(loaded.policy).assess(call).map_err(|refusal| refusal.to_string())?;
    let ruling = assessment.ruling();
    if ruling.decision < Decision::Ask {
        return Ok(());
    }
    let rule = ruling.rule.as_deref().unwrap_or("the default");
    Err(format!("{rule} would still apply ({})", ruling.reason))
}
