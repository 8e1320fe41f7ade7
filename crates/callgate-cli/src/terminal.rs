//! Asks on behalf of the command: at this terminal or another one, with the user's store.

use std::sync::Arc;

use callgate::Call;
use callgate::approvals::channel::{FirstAnswer, TerminalApprover};
use callgate::approvals::{Answer, Approvals, Approver, AskError, Question};
use callgate::policy::Locations;
use callgate::show::visible;
use callgate::store::Store;
use callgate_store::SqliteStore;

use crate::always;
use crate::outcome::Trouble;

/// Who answers a question of `callgate check --ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user at this terminal, or at another one meanwhile.
    Terminal,
    /// The same, or another terminal if this process has none.
    TerminalOrElsewhere,
}

/// Approvals that ask here and keep decisions in the user's store. Offers "always" if the user policy file applies.
pub fn approvals(who: Who, always: Option<(Locations, Call)>) -> Result<Approvals, Trouble> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::of_user()?);
    let mut terminal = TerminalApprover::new();
    if let Some((locations, call)) = always.clone() {
        terminal = terminal.always(move |proposal| always::try_out(&locations, proposal, Some(&call)));
    }
    let approver: Arc<dyn Approver> = match who {
        Who::Terminal => Arc::new(terminal),
        Who::TerminalOrElsewhere => Arc::new(FirstAnswer::new(vec![Arc::new(terminal), Arc::new(elsewhere)])),
    };
    let approvals = Approvals::new(store, approver);
    let Some((locations, call)) = always else { return Ok(approvals) };
    Ok(approvals.always(move |proposal| match always::write(&locations, proposal, Some(&call)) {
        Ok(place) => anstream::eprintln!("wrote a rule to {}", visible(&place)),
        Err(why) => anstream::eprintln!("no rule was written: {}", visible(&why)),
    }))
}

/// Prints how to answer the question, and defers to others.
fn elsewhere(question: &Question) -> Result<Answer, AskError> {
    anstream::eprintln!("waiting for: callgate approvals approve|deny {}", question.id);
    Err(AskError::Closed)
}
