//! Translates the permission rules that an agent already has into a policy that is never looser.
//!
//! Each agent is one file: it reads the agent's settings, writes them as a `draft` of a policy, and brings a small model of
//! how the agent decides. The `proof` judges example calls by both and compares: a call that was denied must not be allowed.
//!
//! ```
//! use callgate_import::{Importer, SettingsFile, SettingsLayer, import};
//! use callgate_install::HostEnvironment;
//!
//! let settings = r#"{"permissions": {"deny": ["Bash(git push:*)"], "allow": ["Bash(git:*)"]}}"#;
//! let mut environment = HostEnvironment::of_home("/home/ada".as_ref());
//! environment.project = "/home/ada/project".into();
//! let path = "/home/ada/project/.claude/settings.json";
//! let file = SettingsFile::new(path, SettingsLayer::Project, settings, &environment);
//! let imported = import(Importer::Claude, &[file], &environment)?;
//! assert!(imported.policy.contains("git push **"));
//! assert!(imported.proof.holds());
//! # Ok::<(), callgate_import::ImportError>(())
//! ```
//!
//! # Limits
//!
//! Only the rules in files are imported: not the answers that a person gave for one session, not command-line options, and
//! not what an agent hard-codes. A proof over examples is not a proof over all calls; the examples are derived from the rules
//! themselves, where mistakes would show.

mod claude;
mod codex;
mod command;
mod draft;
mod error;
mod families;
mod gemini;
mod importer;
mod opencode;
mod overridden;
mod path;
mod probe;
mod proof;
mod settings_file;
mod shell;
mod starlark;
#[cfg(test)]
mod tests;
mod translate;
mod wildcard;

use callgate::policy::Policy;
use callgate_install::HostEnvironment;

pub use draft::{ImportNote, Translation};
pub use error::ImportError;
pub use importer::{Importer, SettingsLocation, settings_locations};
pub use overridden::{OverriddenRule, allows_command, overridden};
pub use proof::{AgentDecision, ChangedDecision, ImportProof};
pub use settings_file::{MAXIMUM_SIZE, SettingsFile, SettingsLayer};

/// A policy translated from an agent's rules.
#[derive(Debug)]
pub struct ImportedPolicy {
    /// The text of the policy file.
    pub policy: String,
    /// The number of rules that were read.
    pub rules: usize,
    /// The rules that were not translated exactly.
    pub notes: Vec<ImportNote>,
    /// The comparison of the agent and the policy on example calls.
    pub proof: ImportProof,
}

/// Translates an agent's rules into a policy and compares both on example calls.
pub fn import(
    importer: Importer,
    files: &[SettingsFile],
    environment: &HostEnvironment,
) -> Result<ImportedPolicy, ImportError> {
    let reading = read(importer, files, environment)?;
    if reading.rules == 0 {
        let files = files.iter().map(|file| file.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(ImportError::Nothing { agent: importer.title(), files });
    }
    let text = reading.draft.render(importer, files);
    let policy = Policy::from_yaml(&text, "the imported policy")?.with_home(&environment.home);
    let proof = proof::compare(policy, &reading, environment);
    Ok(ImportedPolicy { policy: text, rules: reading.rules, notes: reading.draft.into_notes(), proof })
}

/// The rules of an agent as a policy, without comparing both; `None` if there are none.
pub fn rules(
    importer: Importer,
    files: &[SettingsFile],
    environment: &HostEnvironment,
) -> Result<Option<Policy>, ImportError> {
    let reading = read(importer, files, environment)?;
    if reading.rules == 0 {
        return Ok(None);
    }
    let text = reading.draft.render(importer, files);
    Ok(Some(Policy::from_yaml(&text, "the agent's own rules")?.with_home(&environment.home)))
}

fn read(
    importer: Importer,
    files: &[SettingsFile],
    environment: &HostEnvironment,
) -> Result<proof::Reading, ImportError> {
    match importer {
        Importer::Claude => claude::read(files, environment),
        Importer::Codex => codex::read(files, environment),
        Importer::Gemini => gemini::read(files, environment),
        Importer::OpenCode => opencode::read(files, environment),
    }
}
