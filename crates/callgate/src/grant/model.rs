//! Grants and the demands that spend them.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{GrantReach, GrantTarget, Scope};
use crate::key::ApprovalKey;
use callgate_model::clock::Timestamp;

/// How much earlier than its making a grant that expires may be used: clocks are corrected by small amounts all the time.
/// A clock that was set back further makes the grant unusable rather than longer.
const CORRECTION: Duration = Duration::from_secs(5);

/// Names a grant within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(pub u64);

impl fmt::Display for GrantId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// What is granted, to whom, for how long, by whom and why.
///
/// ```
/// use std::time::Duration;
/// use callgate::grant::Terms;
///
/// let terms = Terms::for_target("email_send", "a@x.com")
///     .scope("task-7")
///     .uses(3.try_into()?)
///     .expires_in(Duration::from_secs(600))
///     .by("ada")
///     .because("the invoice she was promised");
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The action, usually a tool's name. Compared exactly.
    pub action: String,
    /// Which targets.
    pub reach: GrantReach,
    /// The only task that may spend it; `None` if any may.
    pub scope: Option<Scope>,
    /// The only request that it covers; `None` if it covers every request for its target.
    pub key: Option<ApprovalKey>,
    /// How many actions it permits.
    pub uses: NonZeroU32,
    /// From when it permits nothing any more.
    pub expires: Option<Timestamp>,
    /// Who granted it.
    pub granted_by: String,
    /// Why.
    pub reason: String,
}

impl Terms {
    /// One action to one target.
    pub fn for_target(action: impl Into<String>, target: impl Into<GrantTarget>) -> Self {
        Terms::new(action.into(), GrantReach::GrantTarget(target.into()))
    }

    /// One action to whichever target.
    pub fn for_any(action: impl Into<String>) -> Self {
        Terms::new(action.into(), GrantReach::Any)
    }

    fn new(action: String, reach: GrantReach) -> Self {
        Terms {
            action,
            reach,
            scope: None,
            key: None,
            uses: NonZeroU32::MIN,
            expires: None,
            granted_by: String::new(),
            reason: String::new(),
        }
    }

    /// Only for this task.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Scope>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Only for exactly this request.
    #[must_use]
    pub fn request(mut self, key: ApprovalKey) -> Self {
        self.key = Some(key);
        self
    }

    /// For that many actions.
    #[must_use]
    pub fn uses(mut self, uses: NonZeroU32) -> Self {
        self.uses = uses;
        self
    }

    /// Only until then.
    #[must_use]
    pub fn expires(mut self, expires: Timestamp) -> Self {
        self.expires = Some(expires);
        self
    }

    /// Only for so long from now.
    #[must_use]
    pub fn expires_in(self, duration: Duration) -> Self {
        self.expires(Timestamp::now().after(duration))
    }

    /// Who grants it.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.granted_by = who.into();
        self
    }

    /// Why it is granted.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}

/// An outstanding grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name in its store.
    pub id: GrantId,
    /// What was granted.
    pub terms: Terms,
    /// When.
    pub granted_at: Timestamp,
    /// How many actions it still permits.
    pub left: NonZeroU32,
}

impl Grant {
    /// Whether it permits anything at that time.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.terms.expires.is_none_or(|expires| now < expires && self.granted_at <= now.after(CORRECTION))
    }

    /// The latest `granted_at` that [`Grant::is_valid`] accepts at `now`, for stores that compare in SQL.
    pub fn not_before(now: Timestamp) -> Timestamp {
        now.after(CORRECTION)
    }

    /// How specific it is: a grant for one request before one for one target before one for one task. What `false` means is broader.
    pub fn specificity(&self) -> (bool, bool, bool) {
        (self.terms.key.is_some(), matches!(self.terms.reach, GrantReach::GrantTarget(_)), self.terms.scope.is_some())
    }
}

/// The demand of an action: one use for each of its targets, all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The action.
    pub action: String,
    /// Its targets, each once. A recipient list is several targets. An action without a target is granted nothing.
    pub targets: Vec<GrantTarget>,
    /// The task on whose behalf it is done.
    pub scope: Option<Scope>,
    /// The exact request.
    pub key: Option<ApprovalKey>,
}

impl Demand {
    /// For these targets; one that is named twice counts once.
    pub fn new<T: Into<GrantTarget>>(action: impl Into<String>, targets: impl IntoIterator<Item = T>) -> Self {
        let mut targets: Vec<GrantTarget> = targets.into_iter().map(Into::into).collect();
        targets.sort();
        targets.dedup();
        Demand { action: action.into(), targets, scope: None, key: None }
    }

    /// On behalf of a task.
    #[must_use]
    pub fn scope(mut self, scope: Option<Scope>) -> Self {
        self.scope = scope;
        self
    }

    /// As exactly this request.
    #[must_use]
    pub fn request(mut self, key: Option<ApprovalKey>) -> Self {
        self.key = key;
        self
    }
}
