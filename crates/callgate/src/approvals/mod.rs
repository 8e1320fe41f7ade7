//! When the policy says ask: who answers, how long that may take, and what need not be asked again.
//!
//! In the order of a question's life:
//!
//! | | |
//! |---|---|
//! | a [`Question`] | what is asked: a view of the call without secrets, with the rules that would have let it pass ([`Proposal`]) |
//! | [`Approvals`] | answers without asking: by the mode, the session, auto-approve or a grant |
//! | the [`Coordinator`] | else it waits in the [`Store`](crate::store::Store), where a second terminal or a server can answer it, for as long as [`timeout`] says |
//! | an [`Approver`] | which is asked: a person through some [`channel`], [rules](RuleBasedApprovalProvider), a function |
//! | an [`Answer`] | the first answer counts; no answer is a no. An [`ApprovalOutcome`] is an answer, or that there was none |
//! | what remains | the session remembers ([`Remembered`]), or a rule is written ([`add_rule`]) |
//!
//! Nothing here is looked at unless the ruling is ask, so nothing here overturns a deny or the boundary.

#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "writes a rule into a file")]
mod always;
mod answer;
mod approver;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "asks people and programs")]
pub mod channel;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "waits for answers")]
mod coordinator;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "waits for answers")]
mod desk;
mod future;
mod proposal;
mod question;
mod rules;
mod session;
pub mod store;
pub mod timeout;

pub use always::{AlwaysError, add_rule, insert_rule, remove_rule, take_rule, try_rule};
pub use answer::{Answer, Answerable, ApprovalDecision, ApprovalOutcome, OutcomeKind};
pub use approver::{AnswerFuture, Approver, AskError, AsyncApprover, IntoAnswer};
pub use callgate_policy::ApprovalRulesError;
pub use coordinator::{AnswerError, Coordinator};
pub use desk::{Approvals, SettledBy, SettledQuestion};
pub use future::SettleFuture;
pub use proposal::{AskedCall, Extent, NoProposal, Proposal, candidates, narrowest};
pub use question::{
    ApprovalId, MAXIMUM_QUESTION, NoApprovalId, Question, QuestionCommand, QuestionEffect, RememberedBy, remedy,
};
pub use rules::{ApprovalRule, RuleBasedApprovalProvider};
pub use session::{Automatic, Exec, Mode, Remembered};
pub use timeout::Patience;

#[cfg(test)]
mod tests;
