//! When the policy says ask: who answers, how long that may take, and what need not be asked again.
//!
//! [`Approvals`] is the whole of it: it looks whether the question is answered already (by the mode, by the session, by a
//! grant) and otherwise puts it to a [`Channel`] and, at the same time, into the [`Store`](crate::store::Store), where a second terminal or a
//! server can answer it too. Whoever is first counts; nobody means no.
//!
//! Nothing here is looked at unless the ruling is ask, so nothing here overturns a deny or the boundary.

mod always;
pub mod channel;
mod coordinator;
mod desk;
mod future;
mod proposal;
mod question;
mod rules;
mod session;
pub mod timeout;

pub use always::{AlwaysError, add_rule, insert_rule};
pub use channel::{AskError, Channel};
pub use coordinator::{Coordinator, ResolveError};
pub use desk::{Approvals, How, Settlement};
pub use future::Settling;
pub use proposal::{Asked, Extent, NoProposal, Proposal, candidates, narrowest};
pub use question::{
    Answer, ApprovalDecision, ApprovalId, NoApprovalId, Outcome, Question, QuestionCommand, QuestionEffect,
};
pub use rules::{ApprovalRule, RuleBasedApprovalProvider, RulesError};
pub use session::{Automatic, Mode, Remembered};

#[cfg(test)]
mod tests;
