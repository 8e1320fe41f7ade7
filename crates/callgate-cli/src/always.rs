//! A rule in the user's policy file, written only if it really decides the call as wanted.

use std::path::Path;

use callgate::approvals::{AlwaysError, Proposal, add_rule, try_rule};
use callgate::assess::Assessor;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::Locations;
use callgate::{Call, Decision};
use callgate_model::clock::Timestamp;

use crate::grant::user;

/// Why a rule is written. Its name begins with this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// "Always" at a prompt.
    Always,
    /// `callgate allow`
    Allow,
    /// `callgate deny`
    Deny,
}

impl Wish {
    /// Every wish.
    pub const ALL: [Wish; 3] = [Wish::Always, Wish::Allow, Wish::Deny];

    /// What the names of its rules begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Wish::Always => "always-",
            Wish::Allow => "allow-",
            Wish::Deny => "deny-",
        }
    }

    /// The rule as it is written.
    pub fn rule(self, proposal: &Proposal) -> String {
        let now = Timestamp::now();
        let name = format!("{}{now}", self.prefix());
        let by = |what: &str| format!("{what} by {} on {}", user(), now.day());
        match self {
            Wish::Always => proposal.rule(&name, &by("always allowed")),
            Wish::Allow => proposal.rule(&name, &by("allowed")),
            Wish::Deny => proposal.denial(&name, &by("denied")),
        }
    }
}

/// Writes the rule and returns the path of the file. Checks first that all layers with the rule decide about `call` as wished.
pub fn write(locations: &Locations, proposal: &Proposal, wish: Wish, call: Option<&Call>) -> Result<String, String> {
    with_rule(locations, proposal, wish, call, add_rule)
}

/// Where the rule would be written, or why it cannot be; writes nothing.
pub fn try_out(locations: &Locations, proposal: &Proposal, wish: Wish, call: Option<&Call>) -> Result<String, String> {
    with_rule(locations, proposal, wish, call, try_rule)
}

type Check<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

fn with_rule(
    locations: &Locations,
    proposal: &Proposal,
    wish: Wish,
    call: Option<&Call>,
    act: impl Fn(&Path, &str, Check<'_>) -> Result<(), AlwaysError>,
) -> Result<String, String> {
    let file = locations.user.as_deref().ok_or("cannot determine where the user policy file is")?;
    let check = |new: &Path| flips(&Locations { user: Some(new.to_owned()), ..locations.clone() }, wish, call);
    act(file, &wish.rule(proposal), &check).map_err(|error| error.to_string())?;
    Ok(file.display().to_string())
}

fn flips(locations: &Locations, wish: Wish, call: Option<&Call>) -> Result<(), String> {
    let loaded = load_policy(PolicyChoice::Layers(locations), None).map_err(|error| error.to_string())?;
    let Some(call) = call else { return Ok(()) };
    let assessment = Assessor::new(loaded.policy).assess(call).map_err(|refusal| refusal.to_string())?;
    let ruling = assessment.ruling();
    let wanted = match wish {
        Wish::Always | Wish::Allow => ruling.decision < Decision::Ask,
        Wish::Deny => ruling.decision == Decision::Deny,
    };
    if wanted {
        return Ok(());
    }
    let rule = ruling.rule.as_deref().unwrap_or("the default");
    Err(format!("{rule} would still apply ({})", ruling.reason))
}
