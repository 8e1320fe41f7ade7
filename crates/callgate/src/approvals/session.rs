//! What a session has decided: what need not be asked again, and what it answers by itself.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Proposal;
use crate::key::ApprovalKey;

/// Something that was approved for the rest of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remembered {
    /// Exactly this request.
    Request(ApprovalKey),
    /// What is typed into this running program, as far as the policy lets it.
    Exec(Exec),
    /// Whatever this rule covers.
    Rule(Proposal),
}

/// A program that runs and takes input: started with a permit, typed into later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// What the tool that started it calls it.
    pub id: String,
    /// Whether it is a shell, so that what is typed are commands.
    pub shell: bool,
}

/// What a session answers by itself instead of asking. Never overturns a deny or the boundary: it is only looked at where somebody would be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automatic {
    /// Yes to every tool.
    #[serde(default)]
    pub blanket: bool,
    /// Yes to these tools, by their whole names.
    #[serde(default)]
    pub tools: BTreeSet<String>,
}

impl Automatic {
    /// Whether it says yes to a tool.
    pub fn approves(&self, tool: &str) -> bool {
        self.blanket || self.tools.contains(tool)
    }
}

/// What happens where the policy says ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Somebody is asked.
    #[default]
    Ask,
    /// Yes, without asking. A deny and the boundary stand.
    Allow,
    /// No, without asking.
    Deny,
}
