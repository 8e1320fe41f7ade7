//! Where things are on this machine: the user's directories, the project, the programs.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use crate::file::Owner;

/// For whom callgate is put in front of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This user, in every project.
    User,
    /// Whoever works on this project.
    Project,
    /// Everybody on this machine; users cannot switch it off. Needs root.
    Managed,
}

impl Scope {
    /// As in the name of an option.
    pub fn name(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Managed => "managed",
        }
    }

    pub(crate) fn owner(self) -> Owner {
        match self {
            Scope::User => Owner::User,
            Scope::Project => Owner::Project,
            Scope::Managed => Owner::Machine,
        }
    }
}

/// The variables by which agents are told that their files are elsewhere.
const AGENTS_VARIABLES: &[&str] = &["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"];

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The user's home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub configuration: PathBuf,
    /// `$XDG_DATA_HOME`, or `~/.local/share`.
    pub data: PathBuf,
    /// `$XDG_STATE_HOME`, or `~/.local/state`.
    pub state: PathBuf,
    /// The project: where the command was started.
    pub project: PathBuf,
    /// The root of the file system.
    pub machine: PathBuf,
    /// Where programs are looked for.
    pub search: Vec<PathBuf>,
    /// Where agents were told to keep their files.
    pub variables: BTreeMap<String, PathBuf>,
}

impl Surroundings {
    /// Those of this process; `None` if there is no home directory.
    pub fn of_process() -> Option<Self> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").or_else(env::home_dir)?;
        let mut surroundings = Surroundings::of_home(&home);
        for (directory, variable) in [
            (&mut surroundings.configuration, "XDG_CONFIG_HOME"),
            (&mut surroundings.data, "XDG_DATA_HOME"),
            (&mut surroundings.state, "XDG_STATE_HOME"),
        ] {
            if let Some(path) = absolute(variable) {
                *directory = path;
            }
        }
        surroundings.project = env::current_dir().ok()?;
        surroundings.search = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        surroundings.variables =
            AGENTS_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), absolute(name)?))).collect();
        Some(surroundings)
    }

    /// A home where nothing was told otherwise.
    pub fn of_home(home: &Path) -> Self {
        Surroundings {
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

    /// An agent's own directory: where its variable says, else in the home.
    pub fn agent_home(&self, variable: &str, below_home: &str) -> PathBuf {
        self.variables.get(variable).cloned().unwrap_or_else(|| self.home.join(below_home))
    }

    /// The program of this name that a shell would start.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.search.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
    }

    /// Where the ground of a scope begins: what is above is not ours to judge.
    pub(crate) fn ground(&self, scope: Scope, path: &Path) -> PathBuf {
        match scope {
            Scope::Project => self.project.clone(),
            Scope::Managed => self.machine.clone(),
            Scope::User if path.starts_with(&self.home) => self.home.clone(),
            // Where a variable led outside the home.
            Scope::User => path.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned(),
        }
    }

    /// callgate's own directory for data.
    pub fn own_data(&self) -> PathBuf {
        self.data.join("callgate")
    }

    /// callgate's own directory for what may be lost.
    pub fn own_state(&self) -> PathBuf {
        self.state.join("callgate")
    }
}

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_words_back_as_they_were() {
        for word in ["/usr/bin/callgate", "/my dir/it's \"x\" $HOME `id` \\ *", "", "~/x", "-n", "ü", "a\nb"] {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output()
                .expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), if word == "-n" { "-n" } else { word });
        }
    }

    #[test]
    fn an_agents_variable_wins_over_the_home() {
        let mut surroundings = Surroundings::of_home(Path::new("/home/me"));
        assert_eq!(surroundings.agent_home("CODEX_HOME", ".codex"), Path::new("/home/me/.codex"));
        surroundings.variables.insert("CODEX_HOME".into(), "/srv/codex".into());
        assert_eq!(surroundings.agent_home("CODEX_HOME", ".codex"), Path::new("/srv/codex"));
    }
}
