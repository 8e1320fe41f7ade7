//! Asks on behalf of the command: at this terminal or another one, with the user's store.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use callgate::Call;
use callgate::approvals::channel::{Asking, FirstAnswer, TerminalApprover, configured};
use callgate::approvals::{Answer, Approvals, Approver, AskError, Question};
use callgate::policy::{Locations, Policy};
use callgate::show::visible;
use callgate::store::Store;
use callgate_store::SqliteStore;

use crate::always::{self, Wish};
use crate::guard;
use crate::notify::{Notifier, Notifying};
use crate::outcome::Trouble;
use crate::watching::Watched;

/// Whether the person at this terminal says yes; `None` without a terminal.
pub fn agrees(question: &str) -> Option<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    anstream::eprint!("{question} [y/N] ");
    drop(std::io::stderr().flush());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Some(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Who answers a question of `callgate check --ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user at this terminal, or at another one meanwhile.
    Terminal,
    /// The same, or another terminal if this process has none.
    TerminalOrElsewhere,
}

/// Approvals that ask here and keep decisions in the user's store. Offers "always" if the user policy file applies.
pub fn approvals(policy: &Policy, who: Who, always: Option<(Locations, Call)>) -> Result<Approvals, Trouble> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::of_user()?);
    let notifier = Notifier::of(policy);
    let asking = asking(&notifier, always.clone());
    let approver: Arc<dyn Approver> = match configured(policy, &asking) {
        Some(in_order) => Arc::new(in_order),
        None => asking.terminal,
    };
    let approver: Arc<dyn Approver> = match who {
        Who::Terminal => approver,
        Who::TerminalOrElsewhere => {
            let elsewhere = move |question: &Question| {
                notifier.notify(question);
                elsewhere(question)
            };
            Arc::new(FirstAnswer::new(vec![approver, Arc::new(elsewhere)]))
        }
    };
    Ok(writing(Approvals::new(store, approver), always))
}

/// Those whom only this process can ask. The terminal offers "always" if a rule in the user policy file can help.
pub fn asking(notifier: &Notifier, always: Option<(Locations, Call)>) -> Asking {
    let mut terminal = TerminalApprover::new();
    if let Some((locations, call)) = always {
        terminal = terminal.always(move |proposal| always::try_out(&locations, proposal, Wish::Always, Some(&call)));
    }
    let terminal = Notifying { who: Arc::new(terminal), notifier: notifier.clone() };
    Asking { terminal: Arc::new(terminal), watch: Arc::new(Watched(notifier.clone())), guard: guard::words() }
}

/// Approvals that write the rule of an "always", once the yes is recorded.
pub fn writing(approvals: Approvals, always: Option<(Locations, Call)>) -> Approvals {
    let Some((locations, call)) = always else { return approvals };
    approvals.always(move |proposal| match always::write(&locations, proposal, Wish::Always, Some(&call)) {
        Ok(place) => anstream::eprintln!("wrote a rule to {}", visible(&place)),
        Err(why) => anstream::eprintln!("no rule was written: {}", visible(&why)),
    })
}

/// Prints how to answer the question, and defers to others.
fn elsewhere(question: &Question) -> Result<Answer, AskError> {
    anstream::eprintln!("waiting for: callgate approvals approve|deny {}", question.id);
    Err(AskError::Closed)
}
