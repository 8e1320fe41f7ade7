//! When the policy says ask: who answers, how long that may take, and what need not be asked again.
//!
//! In the order of a question's life:
//!
//! | | |
//! |---|---|
//! | a [`Question`] | what is asked: a view of the call without secrets, with the rules that would have let it pass ([`Proposal`]) |
//! | [`Approvals`] | whether it is answered already: by the mode, by what the session approved or answers by itself, by a grant |
//! | the [`Coordinator`] | else it waits in the [`Store`](crate::store::Store), where a second terminal or a server can answer it, for as long as [`timeout`] says |
//! | an [`Approver`] | and is put to whoever answers: a person through some [`channel`], [rules](RuleBasedApprovalProvider), a function |
//! | an [`Answer`] | whoever is first counts; nobody means no. An [`Outcome`] is an answer, or that there was none |
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

pub use always::{AlwaysError, add_rule, insert_rule, try_rule};
pub use answer::{Answer, ApprovalDecision, Outcome, OutcomeKind};
pub use approver::{AnswerFuture, Approver, AskError, AsyncApprover, IntoAnswer};
pub use callgate_policy::ApprovalRulesError;
pub use coordinator::{AnswerError, Coordinator};
pub use desk::{Approvals, How, Settlement};
pub use future::Settling;
pub use proposal::{AskedCall, Extent, NoProposal, Proposal, candidates, narrowest};
pub use question::{ApprovalId, MAXIMUM_QUESTION, NoApprovalId, Question, QuestionCommand, QuestionEffect};
pub use rules::{ApprovalRule, RuleBasedApprovalProvider};
pub use session::{Automatic, Exec, Mode, Remembered};
pub use timeout::Patience;

#[cfg(test)]
mod tests;
