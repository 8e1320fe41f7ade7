//! Which targets an action may reach at all.

use std::collections::HashSet;

use super::GrantTarget;

/// The targets that an action may reach: the first of two keys, the other being a grant.
///
/// No list permits everything, an empty list nothing. The two are easily confused, so they are made by different names here:
///
/// ```
/// use callgate::grant::Allowlist;
///
/// assert!(Allowlist::everything().permits("anyone@x.com"));
/// assert!(!Allowlist::nothing().permits("anyone@x.com"));
///
/// let list = Allowlist::of(["a@x.com".into(), 42.into()]);
/// assert!(list.permits("A@X.com") && list.permits("42") && list.permits(42));
/// assert!(!list.permits("b@x.com"));
/// ```
///
/// A list that may be missing, as in a configuration file, is read by `From<Option<…>>`: `None` is everything, `Some` of an
/// empty list is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowlist {
    targets: Option<HashSet<GrantTarget>>,
}

impl Allowlist {
    /// No list: every target is permitted.
    pub fn everything() -> Self {
        Allowlist { targets: None }
    }

    /// An empty list: no target is permitted.
    pub fn nothing() -> Self {
        Allowlist { targets: Some(HashSet::new()) }
    }

    /// Exactly these targets.
    pub fn of(targets: impl IntoIterator<Item = GrantTarget>) -> Self {
        Allowlist { targets: Some(targets.into_iter().collect()) }
    }

    /// Whether a target is permitted.
    pub fn permits(&self, target: impl Into<GrantTarget>) -> bool {
        self.targets.as_ref().is_none_or(|targets| targets.contains(&target.into()))
    }
}

impl<T: Into<GrantTarget>> From<Option<Vec<T>>> for Allowlist {
    fn from(targets: Option<Vec<T>>) -> Self {
        targets.map_or_else(Allowlist::everything, |targets| Allowlist::of(targets.into_iter().map(Into::into)))
    }
}
