//! Agents by their names.

use callgate_hooks::Agent;

/// The agent of this name.
pub fn find(name: &str) -> Result<&'static Agent, String> {
    callgate_hooks::find(name).ok_or_else(|| {
        let known: Vec<&str> = callgate_hooks::all().iter().map(|agent| agent.name()).collect();
        format!("unknown agent `{name}`; expected one of {}", known.join(", "))
    })
}
