//! The outstanding grants of one process, and how one is chosen. The owner of a ledger locks it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

use super::{Demand, Grant, GrantId, GrantReach, GrantTarget, Scope, Terms};
use crate::key::ApprovalKey;
use callgate_model::clock::Timestamp;

/// Grants that agree in everything that a demand is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shelf {
    action: String,
    reach: GrantReach,
    scope: Option<Scope>,
    key: Option<ApprovalKey>,
}

impl Shelf {
    fn of(terms: &Terms) -> Self {
        Shelf { action: terms.action.clone(), reach: terms.reach.clone(), scope: terms.scope.clone(), key: terms.key }
    }
}

/// Outstanding grants.
#[derive(Debug, Default)]
pub struct Ledger {
    last: u64,
    grants: BTreeMap<GrantId, Grant>,
    /// By shelf: the soonest to expire first, then the oldest.
    shelves: HashMap<Shelf, BTreeSet<(Timestamp, GrantId)>>,
}

fn position(grant: &Grant) -> (Timestamp, GrantId) {
    (grant.terms.expires.unwrap_or(Timestamp::from_milliseconds(i64::MAX)), grant.id)
}

impl Ledger {
    /// Adds a grant.
    pub fn add(&mut self, terms: Terms, now: Timestamp) -> GrantId {
        self.last = self.last.saturating_add(1);
        let id = GrantId(self.last);
        let grant = Grant { id, left: terms.uses, terms, granted_at: now };
        self.shelves.entry(Shelf::of(&grant.terms)).or_default().insert(position(&grant));
        self.grants.insert(id, grant);
        id
    }

    /// All that are outstanding, the oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// Revokes a grant; `None` if it does not exist.
    pub fn revoke(&mut self, id: GrantId) -> Option<Grant> {
        let grant = self.grants.remove(&id)?;
        self.unshelve(&grant);
        Some(grant)
    }

    fn unshelve(&mut self, grant: &Grant) {
        let shelf = Shelf::of(&grant.terms);
        if let Some(standing) = self.shelves.get_mut(&shelf) {
            standing.remove(&position(grant));
            if standing.is_empty() {
                self.shelves.remove(&shelf);
            }
        }
    }

    /// Spends one use for every target of a demand, from the most to the least specific grant; `None`, and nothing is
    /// spent, if one of them has none.
    pub fn consume(&mut self, demand: &Demand, now: Timestamp) -> Option<Vec<GrantId>> {
        let mut chosen: Vec<GrantId> = Vec::with_capacity(demand.targets.len());
        for target in &demand.targets {
            let id = self.choose(demand, target, &chosen, now)?;
            chosen.push(id);
        }
        if chosen.is_empty() {
            return None;
        }
        for id in &chosen {
            self.spend(*id);
        }
        Some(chosen)
    }

    /// The most specific grant that covers a target and has a use left after those already chosen.
    fn choose(&self, demand: &Demand, target: &GrantTarget, chosen: &[GrantId], now: Timestamp) -> Option<GrantId> {
        let mut shelf = Shelf {
            action: demand.action.clone(),
            reach: GrantReach::GrantTarget(target.clone()),
            scope: demand.scope.clone(),
            key: demand.key,
        };
        let keys = [demand.key, None];
        let keys = keys.iter().skip(usize::from(demand.key.is_none()));
        for key in keys {
            shelf.key = *key;
            for reach in [GrantReach::GrantTarget(target.clone()), GrantReach::Any] {
                shelf.reach = reach;
                for scope in [demand.scope.clone(), None].into_iter().skip(usize::from(demand.scope.is_none())) {
                    shelf.scope = scope;
                    if let Some(id) = self.on_shelf(&shelf, chosen, now) {
                        return Some(id);
                    }
                }
            }
        }
        None
    }

    fn on_shelf(&self, shelf: &Shelf, chosen: &[GrantId], now: Timestamp) -> Option<GrantId> {
        self.shelves.get(shelf)?.iter().map(|(_, id)| *id).find(|id| {
            let taken = chosen.iter().filter(|other| *other == id).count();
            self.grants.get(id).is_some_and(|grant| grant.is_valid(now) && u64::from(grant.left.get()) > taken as u64)
        })
    }

    fn spend(&mut self, id: GrantId) {
        let Some(grant) = self.grants.get_mut(&id) else { return };
        match NonZeroU32::new(grant.left.get().saturating_sub(1)) {
            Some(left) => grant.left = left,
            None => {
                self.revoke(id);
            }
        }
    }

    /// Forgets what has expired and returns it.
    pub fn forget_expired(&mut self, now: Timestamp) -> Vec<Grant> {
        let expired: Vec<GrantId> = self
            .grants
            .values()
            .filter(|grant| grant.terms.expires.is_some_and(|expires| expires <= now))
            .map(|grant| grant.id)
            .collect();
        expired.into_iter().filter_map(|id| self.revoke(id)).collect()
    }
}
