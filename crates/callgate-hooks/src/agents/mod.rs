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

use crate::Agent;

static AGENTS: &[&Agent] = &[
    &claude::CLAUDE,
    &codex::CODEX,
    &gemini::GEMINI,
    &copilot::COPILOT,
    &cursor::CURSOR,
    &opencode::OPENCODE,
    &qwen::QWEN,
    &windsurf::WINDSURF,
    &amp::AMP,
    &goose::GOOSE,
    &generic::GENERIC,
];

/// All agents whose dialects are known.
pub fn all() -> &'static [&'static Agent] {
    AGENTS
}

/// Finds an agent by its name or one of its aliases.
pub fn find(name: &str) -> Option<&'static Agent> {
    AGENTS.iter().copied().find(|agent| agent.name() == name || agent.aliases().contains(&name))
}
