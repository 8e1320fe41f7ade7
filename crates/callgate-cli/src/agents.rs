//! Agents by their names, and where they keep their files.

use callgate_hooks::Agent;
use callgate_install::HostEnvironment;

use crate::outcome::Trouble;

/// The agent of this name.
pub fn find(name: &str) -> Result<&'static Agent, String> {
    callgate_hooks::find(name).ok_or_else(|| {
        let known: Vec<&str> = callgate_hooks::all().iter().map(|agent| agent.name()).collect();
        format!("unknown agent `{name}`; expected one of {}", known.join(", "))
    })
}

/// The directories of this machine.
pub fn environment() -> Result<HostEnvironment, Trouble> {
    HostEnvironment::of_process()
        .ok_or_else(|| Trouble::new("cannot determine the home directory or the current directory"))
}
