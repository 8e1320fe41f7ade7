//! Asking at the terminal on behalf of the command: the user's store, and "always" written to the user's policy file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate::approvals::channel::TerminalApprover;
use callgate::approvals::{Approvals, Proposal, add_rule};
use callgate::clock::Timestamp;
use callgate::policy::Policy;
use callgate::store::Store;
use callgate_store::SqliteStore;

use crate::grant::user;
use crate::outcome::Trouble;

/// Approvals that ask at this terminal and keep what is decided in the user's store. With a policy file, "always" is offered.
pub fn run(policy_file: Option<PathBuf>) -> Result<Approvals, Trouble> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::of_user()?);
    let mut terminal = TerminalApprover::new();
    if let Some(file) = policy_file {
        terminal = terminal.always(move |proposal| always(&file, proposal));
    }
    Ok(Approvals::new(store, Arc::new(terminal)))
}

/// Writes the rule; says where, or why not.
fn always(file: &Path, proposal: &Proposal) -> Result<String, String> {
    let now = Timestamp::now();
    let rule = proposal.rule(&format!("always-{}", now.milliseconds()), now, &user());
    let shown = file.display().to_string();
    let check = |text: &str| Policy::from_yaml(text, &shown).map(|_| ()).map_err(|error| error.to_string());
    add_rule(file, &rule, &check).map(|()| shown.clone()).map_err(|error| error.to_string())
}
