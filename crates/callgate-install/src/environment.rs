//! The host: the user's directories, the project, the programs.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use crate::file::FileOwner;

/// For whom callgate is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstallScope {
    /// This user, in every project.
    User,
    /// Everybody who works on this project.
    Project,
    /// Everybody on this machine; users cannot switch it off. Needs root.
    Managed,
}

impl InstallScope {
    /// All scopes.
    pub const ALL: [InstallScope; 3] = [InstallScope::User, InstallScope::Project, InstallScope::Managed];

    /// The name, as in the command's options.
    pub fn name(self) -> &'static str {
        match self {
            InstallScope::User => "user",
            InstallScope::Project => "project",
            InstallScope::Managed => "managed",
        }
    }

    pub(crate) fn owner(self) -> FileOwner {
        match self {
            InstallScope::User => FileOwner::User,
            InstallScope::Project => FileOwner::Project,
            InstallScope::Managed => FileOwner::Machine,
        }
    }
}

/// The variables that move the directories of agents.
const AGENT_VARIABLES: &[&str] = &["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"];

/// The directories and programs of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEnvironment {
    /// The user's home directory.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub configuration: PathBuf,
    /// `$XDG_DATA_HOME`, or `~/.local/share`.
    pub data: PathBuf,
    /// `$XDG_STATE_HOME`, or `~/.local/state`.
    pub state: PathBuf,
    /// The project: the working directory of the command.
    pub project: PathBuf,
    /// The root of the file system.
    pub machine: PathBuf,
    /// The directories of `$PATH`.
    pub search: Vec<PathBuf>,
    /// The directories of agents that were moved, by variable.
    pub variables: BTreeMap<String, PathBuf>,
}

impl HostEnvironment {
    /// The environment of this process; `None` if there is no home directory or working directory.
    pub fn of_process() -> Option<Self> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").or_else(env::home_dir)?;
        let mut environment = HostEnvironment::of_home(&home);
        for (directory, variable) in [
            (&mut environment.configuration, "XDG_CONFIG_HOME"),
            (&mut environment.data, "XDG_DATA_HOME"),
            (&mut environment.state, "XDG_STATE_HOME"),
        ] {
            if let Some(path) = absolute(variable) {
                *directory = path;
            }
        }
        environment.project = env::current_dir().ok()?;
        environment.search = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        environment.variables =
            AGENT_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), absolute(name)?))).collect();
        Some(environment)
    }

    /// The environment of a user who moved no directory.
    pub fn of_home(home: &Path) -> Self {
        HostEnvironment {
            home: home.to_owned(),
            configuration: home.join(".config"),
            data: home.join(".local/share"),
            state: home.join(".local/state"),
            project: home.to_owned(),
            machine: PathBuf::from("/"),
            search: Vec::new(),
            variables: BTreeMap::new(),
        }
    }

    /// Resolves `BASE:path`, where the base is `home`, `config`, `data`, `project`, `machine`, or `VARIABLE=default` for an
    /// agent's directory that a variable can move. The default is below the home directory.
    pub fn path(&self, location: &str) -> PathBuf {
        let (base, below) = location.split_once(':').unwrap_or(("machine", location));
        let directory = match base.split_once('=') {
            Some((variable, default)) => {
                self.variables.get(variable).cloned().unwrap_or_else(|| self.home.join(default))
            }
            None => match base {
                "home" => self.home.clone(),
                "config" => self.configuration.clone(),
                "data" => self.data.clone(),
                "project" => self.project.clone(),
                _ => self.machine.clone(),
            },
        };
        if below.is_empty() { directory } else { directory.join(below) }
    }

    /// Finds a program on `$PATH`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.search.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
    }

    /// The directory below which the owner of the scope is responsible. Directories above it are not checked.
    pub(crate) fn ground(&self, scope: InstallScope, path: &Path) -> PathBuf {
        match scope {
            InstallScope::Project => self.project.clone(),
            InstallScope::Managed => self.machine.clone(),
            InstallScope::User if path.starts_with(&self.home) => self.home.clone(),
            // A variable moved it out of the home directory.
            InstallScope::User => path.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned(),
        }
    }

    /// callgate's own directory for data.
    pub fn own_data(&self) -> PathBuf {
        self.data.join("callgate")
    }

    /// callgate's own directory for state that may be lost.
    pub fn own_state(&self) -> PathBuf {
        self.state.join("callgate")
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;

    #[test]
    fn an_agents_variable_wins_over_the_home() {
        let mut environment = HostEnvironment::of_home(Path::new("/home/me"));
        let codex = "CODEX_HOME=.codex:rules";
        assert_eq!(environment.path(codex), Path::new("/home/me/.codex/rules"));
        environment.variables.insert("CODEX_HOME".into(), "/srv/codex".into());
        assert_eq!(environment.path(codex), Path::new("/srv/codex/rules"));
    }
}
