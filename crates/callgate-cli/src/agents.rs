//! Agents by their names.

use callgate_agents::Agent;

/// The agent of this name.
pub fn find(name: &str) -> Result<&'static dyn Agent, String> {
    callgate_agents::find(name).ok_or_else(|| {
        let known: Vec<&str> = callgate_agents::all().iter().map(|agent| agent.name()).collect();
        format!("unknown agent `{name}`; expected one of {}", known.join(", "))
    })
}
