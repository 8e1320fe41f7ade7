//! The state of callgate's hook in each agent: installed, proven, active, silently skipped, or altered.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::environment::{HostEnvironment, InstallScope};
use crate::file;
use crate::receipt::InstallReceipt;
use crate::recipes::{InstallRequest, Recipe};
use crate::sighting::{Sighting, last_change};

/// How long a session may go on without calling a tool, in seconds.
const LEEWAY: u64 = 300;

/// The state of callgate's hook in an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookState {
    /// The agent is not on this machine.
    NotFound,
    /// The agent is on this machine without the hook.
    NotInstalled,
    /// The hook is installed, but it never passed its test.
    Installed,
    /// The hook passed its test, and the agent has not called it yet.
    Proven,
    /// The agent calls the hook.
    Active,
    /// The agent was used and did not call the hook.
    Skipped,
    /// The hook was changed or switched off.
    Altered,
}

impl HookState {
    /// Whether the state needs attention.
    pub fn is_wrong(self) -> bool {
        matches!(self, HookState::Installed | HookState::Skipped | HookState::Altered)
    }

    /// The state in words.
    pub fn in_words(self) -> &'static str {
        match self {
            HookState::NotFound => "not found",
            HookState::NotInstalled => "not installed",
            HookState::Installed => "installed, not proven",
            HookState::Proven => "installed and proven",
            HookState::Active => "active",
            HookState::Skipped => "silently skipped",
            HookState::Altered => "altered",
        }
    }
}

/// The state of callgate's hook in one agent and scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusReport {
    /// The agent.
    pub agent: &'static str,
    /// The agent's product name.
    pub title: &'static str,
    /// The state.
    pub state: HookState,
    /// The scope of the installation.
    pub scope: Option<InstallScope>,
    /// The agent's program, or else its directory.
    pub found: Option<PathBuf>,
    /// What is wrong.
    pub problems: Vec<String>,
    /// The version that installed the hook.
    pub version: Option<String>,
    /// The time of the installation, in seconds since 1970.
    pub installed: Option<u64>,
    /// The time of the last successful test.
    pub proven: Option<u64>,
    /// The agent's last call.
    pub seen: Option<Sighting>,
    /// The agent's last use, according to its own files.
    pub used: Option<u64>,
}

/// Finds an agent: its program, or else its directory.
pub fn detect(recipe: &Recipe, environment: &HostEnvironment) -> Option<PathBuf> {
    let program = recipe.programs().into_iter().find_map(|name| environment.program(name));
    program.or_else(|| recipe.home(environment).filter(|home| home.is_dir()))
}

/// Reports on an agent: one report for each scope with an installation, or one that there is none.
pub fn report(recipe: &Recipe, environment: &HostEnvironment) -> Vec<StatusReport> {
    let found = detect(recipe, environment);
    let installed: Vec<StatusReport> = [InstallScope::Managed, InstallScope::User, InstallScope::Project]
        .into_iter()
        .filter_map(|scope| InstallReceipt::load(environment, recipe.name(), scope))
        .map(|receipt| of_receipt(recipe, environment, receipt, found.clone()))
        .collect();
    if !installed.is_empty() {
        return installed;
    }
    let left = left(recipe, environment);
    let state = match (&left, &found) {
        (Some(_), _) => HookState::Altered,
        (None, Some(_)) => HookState::NotInstalled,
        (None, None) => HookState::NotFound,
    };
    let problem = |(_, path): &(InstallScope, PathBuf)| {
        format!(
            "{} starts callgate, and no installation is known; to remove it, run: callgate uninstall {}",
            path.display(),
            recipe.name()
        )
    };
    vec![StatusReport {
        agent: recipe.name(),
        title: recipe.title(),
        state,
        scope: left.as_ref().map(|(scope, _)| *scope),
        found,
        problems: left.iter().map(problem).collect(),
        version: None,
        installed: None,
        proven: None,
        seen: None,
        used: None,
    }]
}

/// A file with a hook of callgate that no receipt is about.
fn left(recipe: &Recipe, environment: &HostEnvironment) -> Option<(InstallScope, PathBuf)> {
    [InstallScope::User, InstallScope::Project].into_iter().find_map(|scope| {
        let program = Path::new("callgate");
        let request = InstallRequest { scope, program, environment, denies: &[], trust: false, ask: None };
        let changes = recipe.plan(&request)?.changes.into_iter();
        let mut left = changes.filter(|change| {
            let found = file::read(&change.path, scope.owner(), &environment.ground(scope, &change.path));
            found.ok().and_then(|found| found.text).is_some_and(|text| change.content.is_left_in(&text))
        });
        left.next().map(|change| (scope, change.path))
    })
}

fn of_receipt(
    recipe: &Recipe,
    environment: &HostEnvironment,
    receipt: InstallReceipt,
    found: Option<PathBuf>,
) -> StatusReport {
    let mut problems = problems(recipe, environment, &receipt);
    let seen = Sighting::last(environment, recipe.name());
    let used = last_change(recipe.sessions(environment));
    let called = seen.as_ref().is_some_and(|seen| seen.time >= receipt.installed);
    let known = seen.as_ref().map_or(0, |seen| seen.time).max(receipt.installed);
    let state = if !problems.is_empty() {
        HookState::Altered
    } else if used.is_some_and(|used| used > known.saturating_add(LEEWAY)) {
        problems.push("the agent has been used since then without calling callgate".to_owned());
        HookState::Skipped
    } else if called {
        HookState::Active
    } else if receipt.proven.is_some() {
        HookState::Proven
    } else {
        HookState::Installed
    };
    StatusReport {
        agent: recipe.name(),
        title: recipe.title(),
        state,
        scope: Some(receipt.scope),
        found,
        problems,
        version: Some(receipt.version),
        installed: Some(receipt.installed),
        proven: receipt.proven,
        seen,
        used,
    }
}

/// Compares the files with the installation.
fn problems(recipe: &Recipe, environment: &HostEnvironment, receipt: &InstallReceipt) -> Vec<String> {
    let scope = receipt.scope;
    let mut problems = Vec::new();
    let runs = std::fs::metadata(&receipt.program)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    if !runs {
        problems.push(format!("{} does not exist any more or is not executable", receipt.program.display()));
    }
    let read = |path: &Path| file::read(path, scope.owner(), &environment.ground(scope, path));
    for written in &receipt.files {
        let path = written.path.display();
        match read(&written.path).map(|found| found.text) {
            Err(error) => problems.push(error.to_string()),
            Ok(None) => problems.push(format!("{path} does not exist any more")),
            Ok(Some(text)) => match written.put.missing(&text) {
                Err(error) => problems.push(format!("{path}: {error}")),
                Ok(missing) => problems.extend(missing.into_iter().map(|what| format!("{path}: {what}"))),
            },
        }
    }
    let request = InstallRequest { scope, program: &receipt.program, environment, denies: &[], trust: true, ask: None };
    problems.extend(recipe.switched_off(&request, &|path| std::fs::read_to_string(path).ok()));
    problems
}
