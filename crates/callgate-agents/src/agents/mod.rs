//! The agents, one file each.

mod claude;

pub use claude::Claude;

use crate::Agent;

static AGENTS: &[&dyn Agent] = &[&Claude];

/// Every agent whose dialect is known.
pub fn all() -> &'static [&'static dyn Agent] {
    AGENTS
}

/// The agent of this name.
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    AGENTS.iter().copied().find(|agent| agent.name() == name || agent.aliases().contains(&name))
}
