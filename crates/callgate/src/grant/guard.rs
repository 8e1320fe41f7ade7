//! A dangerous action with a harmless companion.

use super::{ActionBlocked, Allowlist, BlockReason, Demand, GrantId, GrantTarget, current_scope};
use crate::key::ApprovalKey;

/// Where grants are spent: a [`ConfirmationGate`](super::ConfirmationGate), or a store that processes share.
pub trait Grants: Send + Sync {
    /// Spends one use for each target of a demand, or nothing at all.
    fn spend(&self, demand: &Demand) -> Result<Spent, ActionBlocked>;
}

/// Proof that grants were spent. Only a keeper of grants makes one, so an action that asks for it cannot be done without.
///
/// ```compile_fail
/// let forged = callgate::grant::Spent { grants: Vec::new() };
/// ```
///
/// It cannot be copied either, so it serves for one action:
///
/// ```compile_fail
/// fn twice(spent: callgate::grant::Spent) { drop(spent); drop(spent); }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Spent {
    grants: Vec<GrantId>,
}

impl Spent {
    pub(crate) fn of(grants: Vec<GrantId>) -> Self {
        Spent { grants }
    }

    /// By a gate that asks for no grants.
    #[cfg(feature = "grants")]
    pub(crate) fn nothing_needed() -> Self {
        Spent { grants: Vec::new() }
    }

    /// Which grants were spent, one for each target; none if the gate is disabled.
    pub fn grants(&self) -> &[GrantId] {
        &self.grants
    }
}

/// A dangerous action, and its harmless companion: a draft beside a send, a plan beside an apply.
///
/// The companion is never gated, the action always is: it can only be done with proof that grants were spent, which a [`Guard`] obtains.
/// An asynchronous connector chooses a future as its outcome; the grant is spent before the future exists.
pub trait GuardedAction {
    /// What is asked for.
    type Request;
    /// What the companion makes of it.
    type Preview;
    /// What the action results in.
    type Outcome;
    /// How it fails; refusals are part of it, refined as the connector likes.
    type Error: From<ActionBlocked>;

    /// The action's name, as grants and refusals say it.
    fn name(&self) -> &str;

    /// Everyone whom a request reaches. A request that cannot be carried out for another reason (a malformed address, a missing
    /// body) fails here, before any grant is spent.
    fn targets(&self, request: &Self::Request) -> Result<Vec<GrantTarget>, Self::Error>;

    /// The harmless companion.
    fn preview(&self, request: &Self::Request) -> Result<Self::Preview, Self::Error>;

    /// The action itself.
    fn perform(&self, request: Self::Request, spent: Spent) -> Result<Self::Outcome, Self::Error>;
}

/// The two keys of an action: an allow list and grants.
pub struct Guard<G> {
    allowlist: Allowlist,
    grants: G,
}

impl<G: Grants> Guard<G> {
    /// Both keys are needed.
    pub fn new(allowlist: Allowlist, grants: G) -> Self {
        Guard { allowlist, grants }
    }

    /// The second key, to grant with.
    pub fn grants(&self) -> &G {
        &self.grants
    }

    /// Does an action on behalf of the running task ([`current_scope`]).
    pub fn perform<A: GuardedAction>(&self, action: &A, request: A::Request) -> Result<A::Outcome, A::Error> {
        self.perform_keyed(action, request, None)
    }

    /// The same, with the request's key, so that grants for exactly this request count too.
    pub fn perform_keyed<A: GuardedAction>(
        &self,
        action: &A,
        request: A::Request,
        key: Option<ApprovalKey>,
    ) -> Result<A::Outcome, A::Error> {
        let targets = action.targets(&request)?;
        let spent = self.open(action.name(), targets, key)?;
        action.perform(request, spent)
    }

    /// Turns both keys: the allow list first, so that a target that is not on it burns no grant.
    pub fn open(
        &self,
        action: &str,
        targets: Vec<GrantTarget>,
        key: Option<ApprovalKey>,
    ) -> Result<Spent, ActionBlocked> {
        if targets.is_empty() {
            return Err(ActionBlocked::new(action, BlockReason::NoTarget));
        }
        let unlisted = targets.iter().enumerate().find(|(_, target)| !self.allowlist.permits(*target));
        if let Some((index, target)) = unlisted {
            let reason = BlockReason::NotListed {
                position: index.saturating_add(1),
                count: targets.len(),
                target: target.clone(),
            };
            return Err(ActionBlocked::new(action, reason));
        }
        self.grants.spend(&Demand::new(action, targets).scope(current_scope()).request(key))
    }
}
