//! Decisions of a session: what it approved, and what it approves without asking.

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
    /// Input to this running program, as far as the policy allows.
    Exec(Exec),
    /// Whatever this rule covers.
    Rule(Proposal),
}

/// A program that runs and takes input: started with a permit, typed into later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The id that the tool gave it.
    pub id: String,
    /// Whether it is a shell, whose input is commands.
    pub shell: bool,
}

/// What a session approves without asking. It never overturns a deny or the boundary, because it applies only if the policy asks.
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
    /// Ask an approver.
    #[default]
    Ask,
    /// Yes, without asking. A deny and the boundary stand.
    Allow,
    /// No, without asking.
    Deny,
}
