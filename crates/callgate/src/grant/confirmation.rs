//! One-shot confirmations in memory: the second of the two keys.

use super::{ActionBlocked, BlockReason, Demand, Grant, GrantId, GrantTarget, Grants, Ledger, Scope, Spent, Terms};
use crate::monitor::{Monitor, Monitors, Standard};
use callgate_model::clock::Timestamp;

/// Grants of one tool instance, each spent when it is used. Nothing is shared between instances, nothing is global.
///
/// Scopes are strict: only a caller with the same scope spends a grant bound to a scope, never one that
/// supplies none. Of several grants that cover an action the most specific is spent: the one for this target and scope,
/// then for this target, then for any target in this scope, then for any target.
///
/// ```
/// use callgate::grant::ConfirmationGate;
///
/// let gate = ConfirmationGate::new();
/// gate.grant("alice@x.com");
/// assert!(gate.consume("Alice@x.com"));
/// assert!(!gate.consume("alice@x.com")); // one grant, one action
/// ```
pub struct ConfirmationGate<M: Monitors = Standard> {
    enabled: bool,
    ledger: M::Of<Ledger>,
}

/// The gate belongs to one tool instance, so its grants need not name the action.
const ACTION: &str = "";

impl ConfirmationGate {
    /// A gate without grants: nothing may be done yet.
    pub fn new() -> Self {
        ConfirmationGate::with_primitives()
    }

    /// A gate that needs no grants, for callers that rely on the allow list alone.
    pub fn disabled() -> Self {
        ConfirmationGate { enabled: false, ..ConfirmationGate::new() }
    }
}

impl Default for ConfirmationGate {
    fn default() -> Self {
        ConfirmationGate::new()
    }
}

impl<M: Monitors> ConfirmationGate<M> {
    /// A gate on other primitives than the standard library's.
    pub fn with_primitives() -> Self {
        ConfirmationGate { enabled: true, ledger: M::Of::new(Ledger::default()) }
    }

    /// Whether it asks for grants at all.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Permits one action to a target.
    pub fn grant(&self, target: impl Into<GrantTarget>) -> GrantId {
        self.grant_on(Terms::for_target(ACTION, target))
    }

    /// Permits one action to a target, to one task.
    pub fn grant_in(&self, target: impl Into<GrantTarget>, scope: impl Into<Scope>) -> GrantId {
        self.grant_on(Terms::for_target(ACTION, target).scope(scope))
    }

    /// Permits one action to whichever target.
    pub fn grant_any(&self) -> GrantId {
        self.grant_on(Terms::for_any(ACTION))
    }

    /// Permits one action to whichever target, to one task.
    pub fn grant_any_in(&self, scope: impl Into<Scope>) -> GrantId {
        self.grant_on(Terms::for_any(ACTION).scope(scope))
    }

    /// Permits on any terms: several uses, an expiry, one exact request. The terms' action plays no part.
    pub fn grant_on(&self, terms: Terms) -> GrantId {
        let terms = Terms { action: ACTION.to_owned(), ..terms };
        self.ledger.with(|ledger| ledger.add(terms, Timestamp::now()))
    }

    /// Spends a grant for a target that any task may spend. Whether there was one.
    #[must_use = "an action may only be done if this is true"]
    pub fn consume(&self, target: impl Into<GrantTarget>) -> bool {
        self.consume_all(&Demand::new(ACTION, [target.into()]))
    }

    /// Spends a grant for a target on behalf of a task. Whether there was one.
    #[must_use = "an action may only be done if this is true"]
    pub fn consume_in(&self, target: impl Into<GrantTarget>, scope: impl Into<Scope>) -> bool {
        self.consume_all(&Demand::new(ACTION, [target.into()]).scope(Some(scope.into())))
    }

    /// Spends a grant for each of several targets, or none at all. The demand's action plays no part.
    #[must_use = "an action may only be done if this is true"]
    pub fn consume_all(&self, demand: &Demand) -> bool {
        !self.enabled || self.spend(demand).is_some()
    }

    fn spend(&self, demand: &Demand) -> Option<Vec<GrantId>> {
        let demand = Demand { action: ACTION.to_owned(), ..demand.clone() };
        let now = Timestamp::now();
        self.ledger.with(|ledger| ledger.consume(&demand, now))
    }

    /// Takes a grant back; `None` if it was spent, has been taken back, or never was.
    pub fn revoke(&self, id: GrantId) -> Option<Grant> {
        self.ledger.with(|ledger| ledger.revoke(id))
    }

    /// What is outstanding and has not expired, the oldest first.
    pub fn outstanding(&self) -> Vec<Grant> {
        let now = Timestamp::now();
        self.ledger.with(|ledger| {
            ledger.forget_expired(now);
            ledger.outstanding().cloned().collect()
        })
    }
}

impl<M: Monitors> Grants for ConfirmationGate<M> {
    fn spend(&self, demand: &Demand) -> Result<Spent, ActionBlocked> {
        if !self.enabled {
            return Ok(Spent::nothing_needed());
        }
        ConfirmationGate::spend(self, demand)
            .map(Spent::of)
            .ok_or_else(|| ActionBlocked::new(&demand.action, BlockReason::NotGranted))
    }
}

callgate_model::debug_fields!(<M: Monitors> ConfirmationGate, enabled);
