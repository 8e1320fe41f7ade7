//! Permission given in advance and spent when it is used.
//!
//! A dangerous action passes two independent checks: its targets are on an [`Allowlist`], and there is an outstanding grant
//! for each of them, which is spent. Either can be used alone. [`Guard`] composes them for a [`GuardedAction`], whose harmless companion
//! (a draft beside a send) is never gated.
//!
//! Two concurrent tasks, each with its own grant:
//!
//! ```
//! use callgate::grant::ConfirmationGate;
//!
//! let gate = ConfirmationGate::new();
//! gate.grant_in("customer@x.com", "task-a");
//! gate.grant_in("customer@x.com", "task-b");
//!
//! assert!(gate.consume_in("customer@x.com", "task-b"));
//! assert!(!gate.consume_in("customer@x.com", "task-b")); // spent
//! assert!(!gate.consume("customer@x.com")); // nobody without a scope spends a task's grant
//! assert!(gate.consume_in("customer@x.com", "task-a"));
//! ```

mod allowlist;
mod blocked;
#[cfg(feature = "grants")]
mod confirmation;
mod guard;
mod ledger;
mod model;
mod scope;
mod target;

pub use allowlist::Allowlist;
pub use blocked::{ActionBlocked, BlockReason};
#[cfg(feature = "grants")]
pub use confirmation::ConfirmationGate;
pub use guard::{Grants, Guard, GuardedAction, Spent};
pub use ledger::Ledger;
pub use model::{Demand, Grant, GrantId, Terms};
pub use scope::{InScope, Scoped, carry, current_scope, in_scope, without_scope};
pub use target::{GrantReach, GrantTarget, Scope};

#[cfg(test)]
#[cfg(feature = "grants")]
mod tests;
