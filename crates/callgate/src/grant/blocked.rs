//! The error of a dangerous action that was not permitted.

use std::io;

use thiserror::Error;

use super::GrantTarget;

/// Why an action was blocked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlockReason {
    /// The request names no target.
    #[error("the request names no target")]
    NoTarget,
    /// A target is not on the allow list.
    #[error("target {position} of {count} is not on the allow list")]
    NotListed {
        /// Which one, counted from 1.
        position: usize,
        /// How many there are.
        count: usize,
        /// The target itself; not part of the message.
        target: GrantTarget,
    },
    /// No outstanding grant covers the targets.
    #[error("no outstanding grant covers it in this scope")]
    NotGranted,
    /// Whether there is a grant could not be found out.
    #[error("cannot use the store of grants: {0}")]
    Store(String),
}

/// A dangerous action that was not permitted. Names the action and the reason, never what would have been sent, nor to whom.
///
/// A connector can wrap it in its own error type:
///
/// ```
/// use callgate::grant::{ActionBlocked, BlockReason};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error(transparent)]
/// struct MailSendBlocked(#[from] ActionBlocked);
///
/// let blocked = MailSendBlocked::from(ActionBlocked::new("mail_send", BlockReason::NotGranted));
/// assert_eq!(blocked.to_string(), "mail_send is blocked: no outstanding grant covers it in this scope");
/// ```
///
/// Code that handles [`io::Error`] of kind `PermissionDenied` goes on working: the error converts into one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{action} is blocked: {reason}")]
pub struct ActionBlocked {
    action: String,
    reason: BlockReason,
}

impl ActionBlocked {
    /// An action that was blocked for a reason.
    pub fn new(action: impl Into<String>, reason: BlockReason) -> Self {
        ActionBlocked { action: action.into(), reason }
    }

    /// Which action.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Why.
    pub fn reason(&self) -> &BlockReason {
        &self.reason
    }
}

impl From<ActionBlocked> for io::Error {
    fn from(blocked: ActionBlocked) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, blocked)
    }
}
