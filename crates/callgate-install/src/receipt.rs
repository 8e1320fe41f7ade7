//! The record of an installation, kept where agents cannot write, to undo it exactly and to check it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::content::FileContent;
use crate::environment::{HostEnvironment, InstallScope};
use crate::file::{self, FileError, FileOwner, FileSnapshot};

/// The version of the file format.
const FORM: u32 = 1;

/// The record of an installation for one agent in one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallReceipt {
    form: u32,
    /// The version of callgate.
    pub version: String,
    /// The agent.
    pub agent: String,
    /// The scope.
    pub scope: InstallScope,
    /// The program that the hooks start.
    pub program: PathBuf,
    /// The time of the installation, in seconds since 1970.
    pub installed: u64,
    /// The time of the last successful test.
    pub proven: Option<u64>,
    /// The files that were written.
    pub(crate) files: Vec<WrittenFile>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrittenFile {
    /// The file.
    pub path: PathBuf,
    /// The hash of its content before; `None` if it did not exist.
    pub before: Option<String>,
    /// The hash of its content after.
    pub after: String,
    /// What was added.
    pub put: FileContent,
    /// The members that had to be created.
    pub created: Vec<Vec<String>>,
}

impl InstallReceipt {
    /// A receipt for an installation that was not tested yet.
    pub(crate) fn new(agent: &str, scope: InstallScope, program: &Path, now: u64, files: Vec<WrittenFile>) -> Self {
        InstallReceipt {
            form: FORM,
            version: crate::sighting::VERSION.to_owned(),
            agent: agent.to_owned(),
            scope,
            program: program.to_owned(),
            installed: now,
            proven: None,
            files,
        }
    }

    /// Whether the hook was marked as trusted, for an agent that requires it.
    pub fn is_trusted(&self) -> bool {
        self.scope != InstallScope::Managed && self.files.iter().any(|file| matches!(file.put, FileContent::Toml(_)))
    }

    /// The path of the receipt.
    pub fn path(environment: &HostEnvironment, agent: &str, scope: InstallScope) -> PathBuf {
        match scope {
            InstallScope::User => environment.own_data().join(format!("installed/{agent}-user.json")),
            InstallScope::Project => {
                let project = file::hash(&environment.project.to_string_lossy());
                let short = project.get(..16).unwrap_or(&project);
                environment.own_data().join(format!("installed/{agent}-project-{short}.json"))
            }
            // Every user can read it there.
            InstallScope::Managed => environment.machine.join(format!("etc/callgate/installed/{agent}.json")),
        }
    }

    /// Finds the receipt and its file. An unreadable receipt counts as missing.
    pub(crate) fn find(
        environment: &HostEnvironment,
        agent: &str,
        scope: InstallScope,
    ) -> Result<(Option<Self>, FileSnapshot), FileError> {
        let path = Self::path(environment, agent, scope);
        let found = file::read(&path, owner(scope), &environment.ground(scope_of_file(scope), &path))?;
        let receipt = found.text.as_deref().and_then(|text| serde_json::from_str::<InstallReceipt>(text).ok());
        Ok((receipt.filter(|receipt| receipt.form == FORM && receipt.agent == agent), found))
    }

    /// The receipt of an agent, if callgate is installed in the scope.
    pub fn load(environment: &HostEnvironment, agent: &str, scope: InstallScope) -> Option<Self> {
        Self::find(environment, agent, scope).ok().and_then(|(receipt, _)| receipt)
    }

    pub(crate) fn save(&self, environment: &HostEnvironment) -> Result<(), FileError> {
        let (_, found) = Self::find(environment, &self.agent, self.scope)?;
        let path = Self::path(environment, &self.agent, self.scope);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        file::write(&path, &text, &found, owner(self.scope), false)
    }

    pub(crate) fn forget(environment: &HostEnvironment, agent: &str, scope: InstallScope) -> Result<(), FileError> {
        let (_, found) = Self::find(environment, agent, scope)?;
        let path = Self::path(environment, agent, scope);
        if found.text.is_none() {
            return Ok(());
        }
        file::delete(&path, &found, &environment.ground(scope_of_file(scope), &path))
    }
}

/// The receipts of projects are also in the user's directory.
fn scope_of_file(scope: InstallScope) -> InstallScope {
    if scope == InstallScope::Managed { InstallScope::Managed } else { InstallScope::User }
}

fn owner(scope: InstallScope) -> FileOwner {
    scope_of_file(scope).owner()
}
