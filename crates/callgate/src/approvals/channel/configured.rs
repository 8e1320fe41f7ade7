//! The approvers that a policy's `approvals: {ask: […]}` names.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use callgate_policy::{ApproverKind, Policy};

use super::{Approver, AskError, CommandApprover, InOrder, TerminalApprover};
use crate::approvals::Question;

/// The approvers that only the process that asks can provide.
pub struct Asking {
    /// Asks at its terminal.
    pub terminal: Arc<dyn Approver>,
    /// Waits for whoever watches its store.
    pub watch: Arc<dyn Approver>,
    /// The words that start approver commands: see [`CommandApprover::guarded`].
    pub guard: Vec<OsString>,
}

impl Default for Asking {
    /// The controlling terminal, and nobody who watches.
    fn default() -> Self {
        let unwatched = |_: &Question| {
            Err::<crate::approvals::Answer, _>(AskError::Unavailable(
                "nobody watches the questions of this process".into(),
            ))
        };
        Asking { terminal: Arc::new(TerminalApprover::new()), watch: Arc::new(unwatched), guard: Vec::new() }
    }
}

callgate_model::debug_fields!(Asking);

/// Those whom a policy's trusted files say to ask, in their order and without the agent; `None` if they name nobody. One that
/// cannot be used is unavailable when it is asked, so that the next one is.
pub fn configured(policy: &Policy, asking: &Asking) -> Option<InOrder> {
    let section = policy.approval_rules().filter(|section| !section.ask.is_empty())?;
    let channels = section.ask.into_iter().filter_map(|approver| {
        let who: Arc<dyn Approver> = match approver.who {
            ApproverKind::Agent => return None,
            ApproverKind::Terminal => Arc::clone(&asking.terminal),
            ApproverKind::Watch => Arc::clone(&asking.watch),
            ApproverKind::Command(words) => {
                let mut words = words.into_iter();
                let command = CommandApprover::new(words.next().unwrap_or_default(), words);
                Arc::new(command.guarded(asking.guard.clone()))
            }
            ApproverKind::Webhook { address, secret_file } => webhook(&address, &secret_file),
        };
        Some((who, approver.seconds.map(Duration::from_secs)))
    });
    Some(InOrder::new(channels.collect()))
}

#[cfg(feature = "webhook")]
fn webhook(address: &str, secret_file: &str) -> Arc<dyn Approver> {
    let opened = std::fs::read(secret_file)
        .map_err(|error| format!("cannot read the secret of the webhook in {secret_file}: {error}"))
        .and_then(|secret| {
            super::WebhookApprover::new(address, secret.trim_ascii()).map_err(|error| error.to_string())
        });
    match opened {
        Ok(webhook) => Arc::new(webhook),
        Err(why) => unusable(why),
    }
}

#[cfg(not(feature = "webhook"))]
fn webhook(_: &str, _: &str) -> Arc<dyn Approver> {
    unusable("this callgate was built without webhooks (feature `webhook`)".to_owned())
}

fn unusable(why: String) -> Arc<dyn Approver> {
    Arc::new(move |_: &Question| Err::<crate::approvals::Answer, _>(AskError::Unavailable(why.clone())))
}
