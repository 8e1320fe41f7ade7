//! Turning the permission rules that an agent already has into a policy, never looser than they were.
//!
//! Each agent is one file: it reads its own settings, writes them as a `draft` of a policy, and brings a small model of how
//! that agent decides. The `proof` judges example calls by both and compares: a call that was denied must not be allowed.
//!
//! ```
//! use callgate_import::{Around, Importer, Layer, Source, import};
//!
//! let settings = r#"{"permissions": {"deny": ["Bash(git push:*)"], "allow": ["Bash(git:*)"]}}"#;
//! let around = Around { home: "/home/ada".into(), project: "/home/ada/project".into() };
//! let source = Source::new("/home/ada/project/.claude/settings.json", Layer::Project, settings, &around);
//! let imported = import(Importer::Claude, &[source], &around)?;
//! assert!(imported.policy.contains("git push **"));
//! assert!(imported.proof.holds());
//! # Ok::<(), callgate_import::ImportError>(())
//! ```
//!
//! # What it does not do
//!
//! It reads rules, not habits: what a person answered for one session, command line switches and what an agent
//! hard-codes are not in these files. A proof over examples is not a proof over all calls; the examples are made from
//! the rules themselves, where mistakes would show.

mod claude;
mod codex;
mod command;
mod draft;
mod families;
mod gemini;
mod opencode;
mod path;
mod places;
mod probe;
mod proof;
mod shell;
mod source;
mod starlark;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use callgate::policy::{Policy, PolicyError};
use thiserror::Error;

pub use draft::{Note, Outcome};
pub use places::{Place, places};
pub use proof::{Change, Proof, Standing};
pub use source::{Layer, MAXIMUM_SIZE, Source};

/// An agent whose rules can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importer {
    /// Claude Code: `permissions` in its settings.
    Claude,
    /// Codex: `*.rules` and `config.toml`.
    Codex,
    /// Gemini CLI: its policy engine's TOML files and `tools` in its settings.
    Gemini,
    /// OpenCode: `permission` in its configuration.
    OpenCode,
}

impl Importer {
    /// The name on the command line and in the names of rules.
    pub fn name(self) -> &'static str {
        match self {
            Importer::Claude => "claude",
            Importer::Codex => "codex",
            Importer::Gemini => "gemini",
            Importer::OpenCode => "opencode",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Importer::Claude => "Claude Code",
            Importer::Codex => "Codex",
            Importer::Gemini => "Gemini CLI",
            Importer::OpenCode => "OpenCode",
        }
    }
}

/// Where the rules apply.
#[derive(Debug, Clone)]
pub struct Around {
    /// The user's home directory.
    pub home: PathBuf,
    /// The project's directory.
    pub project: PathBuf,
}

/// A policy made of an agent's rules.
#[derive(Debug)]
pub struct Import {
    /// The text of the policy file.
    pub policy: String,
    /// How many rules were read.
    pub rules: usize,
    /// What was not translated exactly, and why.
    pub notes: Vec<Note>,
    /// What the agent and the policy say about example calls.
    pub proof: Proof,
}

/// Why nothing was imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file could not be read as what it should be. It may have denied something, so it is not passed over.
    #[error("{path} cannot be used: {why}")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// There are no rules anywhere.
    #[error("{agent} has no permission rules in {looked}")]
    Nothing {
        /// The agent.
        agent: &'static str,
        /// The files that were read.
        looked: String,
    },
    /// The policy that was made is broken: a mistake of this program.
    #[error("the imported policy cannot be used: {0}")]
    Policy(Box<PolicyError>),
}

impl From<PolicyError> for ImportError {
    fn from(error: PolicyError) -> Self {
        ImportError::Policy(Box::new(error))
    }
}

/// Makes a policy of an agent's rules and compares both on example calls.
pub fn import(importer: Importer, sources: &[Source], around: &Around) -> Result<Import, ImportError> {
    let reading = match importer {
        Importer::Claude => claude::read(sources, around)?,
        Importer::Codex => codex::read(sources, around)?,
        Importer::Gemini => gemini::read(sources, around)?,
        Importer::OpenCode => opencode::read(sources, around)?,
    };
    if reading.rules == 0 {
        let looked = sources.iter().map(|source| source.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(ImportError::Nothing { agent: importer.title(), looked });
    }
    let text = reading.draft.render(importer, sources);
    let policy = Policy::from_yaml(&text, "the imported policy")?.with_home(&around.home);
    let proof = proof::compare(policy, &reading, around);
    Ok(Import { policy: text, rules: reading.rules, notes: reading.draft.into_notes(), proof })
}

/// What one agent's file makes of the settings.
struct Reading {
    draft: draft::Draft,
    /// How many rules the agent has.
    rules: usize,
    /// How the agent decides.
    model: Box<dyn proof::Model>,
    /// Calls that its rules are about.
    probes: Vec<probe::Probe>,
    /// The agent's own names for its tools.
    tools: &'static probe::ToolNames,
}
