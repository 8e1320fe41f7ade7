//! What was installed: kept where agents do not write, so that it can be undone exactly, and compared with what is there.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::change::Content;
use crate::file::{self, FileError, Found, Owner};
use crate::surroundings::{Scope, Surroundings};

/// The form of receipts.
const FORM: u32 = 1;

/// What was installed for one agent in one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    form: u32,
    /// By which version of callgate.
    pub version: String,
    /// For which agent.
    pub agent: String,
    /// For whom.
    pub scope: Scope,
    /// The program that the hooks start.
    pub program: PathBuf,
    /// When, in seconds since 1970.
    pub installed: u64,
    /// When it was last shown to work.
    pub proven: Option<u64>,
    /// In which files.
    pub files: Vec<Written>,
}

/// One file that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// Which.
    pub path: PathBuf,
    /// The hash of what was in it before; `None` if it was not there.
    pub before: Option<String>,
    /// The hash of what was written.
    pub after: String,
    /// What was put in.
    pub put: Content,
    /// What had to be made for it.
    pub created: Vec<Vec<String>>,
}

impl Receipt {
    /// A receipt of now, before anything is proven.
    pub(crate) fn new(agent: &str, scope: Scope, program: &Path, now: u64, files: Vec<Written>) -> Self {
        Receipt {
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

    /// Whether the hook was recorded as trusted, with an agent that wants that.
    pub fn is_trusted(&self) -> bool {
        self.scope != Scope::Managed && self.files.iter().any(|file| matches!(file.put, Content::Toml(_)))
    }

    /// Where the receipt is.
    pub fn path(surroundings: &Surroundings, agent: &str, scope: Scope) -> PathBuf {
        match scope {
            Scope::User => surroundings.own_data().join(format!("installed/{agent}-user.json")),
            Scope::Project => {
                let project = file::hash(&surroundings.project.to_string_lossy());
                let short = project.get(..16).unwrap_or(&project);
                surroundings.own_data().join(format!("installed/{agent}-project-{short}.json"))
            }
            // Where every user can see it.
            Scope::Managed => surroundings.machine.join(format!("etc/callgate/installed/{agent}.json")),
        }
    }

    /// The receipt, and the file it is in. One that cannot be read counts as none.
    pub(crate) fn find(
        surroundings: &Surroundings,
        agent: &str,
        scope: Scope,
    ) -> Result<(Option<Self>, Found), FileError> {
        let path = Self::path(surroundings, agent, scope);
        let found = file::read(&path, owner(scope), &surroundings.ground(scope_of_file(scope), &path))?;
        let receipt = found.text.as_deref().and_then(|text| serde_json::from_str::<Receipt>(text).ok());
        Ok((receipt.filter(|receipt| receipt.form == FORM && receipt.agent == agent), found))
    }

    /// The receipt of an agent in a scope, if it is installed there.
    pub fn load(surroundings: &Surroundings, agent: &str, scope: Scope) -> Option<Self> {
        Self::find(surroundings, agent, scope).ok().and_then(|(receipt, _)| receipt)
    }

    pub(crate) fn save(&self, surroundings: &Surroundings) -> Result<(), FileError> {
        let (_, found) = Self::find(surroundings, &self.agent, self.scope)?;
        let path = Self::path(surroundings, &self.agent, self.scope);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        file::write(&path, &text, &found, owner(self.scope), false)
    }

    pub(crate) fn forget(surroundings: &Surroundings, agent: &str, scope: Scope) -> Result<(), FileError> {
        let (_, found) = Self::find(surroundings, agent, scope)?;
        let path = Self::path(surroundings, agent, scope);
        if found.text.is_none() {
            return Ok(());
        }
        file::delete(&path, &found, &surroundings.ground(scope_of_file(scope), &path))
    }
}

/// The user's receipts lie in the user's own directory, also those about a project.
fn scope_of_file(scope: Scope) -> Scope {
    if scope == Scope::Managed { Scope::Managed } else { Scope::User }
}

fn owner(scope: Scope) -> Owner {
    scope_of_file(scope).owner()
}
