//! The agents, one file each.

mod amp;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod generic;
mod goose;
mod opencode;
mod qwen;
mod windsurf;

pub use amp::Amp;
pub use claude::Claude;
pub use codex::Codex;
pub use copilot::Copilot;
pub use cursor::Cursor;
pub use gemini::Gemini;
pub use generic::Generic;
pub use goose::Goose;
pub use opencode::OpenCode;
pub use qwen::Qwen;
pub use windsurf::Windsurf;

use crate::Agent;

static AGENTS: &[&dyn Agent] =
    &[&Claude, &Codex, &Gemini, &Copilot, &Cursor, &OpenCode, &Qwen, &Windsurf, &Amp, &Goose, &Generic];

/// Every agent whose dialect is known.
pub fn all() -> &'static [&'static dyn Agent] {
    AGENTS
}

/// The agent of this name.
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    AGENTS.iter().copied().find(|agent| agent.name() == name || agent.aliases().contains(&name))
}
