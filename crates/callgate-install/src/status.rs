//! What is in front of which agent: installed, proven, active, silently skipped, or altered.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::file;
use crate::receipt::Receipt;
use crate::recipes::{Recipe, Request};
use crate::sighting::{Sighting, last_change};
use crate::surroundings::{Scope, Surroundings};

/// A session may go on for a while without calling a tool before that says anything.
const LEEWAY: u64 = 300;

/// How things stand with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The agent is not on this machine.
    NotFound,
    /// It is, and callgate is not in front of it.
    NotInstalled,
    /// callgate is in front of it, and was never shown to work.
    Installed,
    /// It was shown to work, and the agent has not called it yet.
    Proven,
    /// The agent calls it.
    Active,
    /// The agent was used and did not call it.
    Skipped,
    /// It is not as it was installed, or it is switched off.
    Altered,
}

impl State {
    /// Whether somebody should look at it.
    pub fn is_wrong(self) -> bool {
        matches!(self, State::Installed | State::Skipped | State::Altered)
    }

    /// For people.
    pub fn in_words(self) -> &'static str {
        match self {
            State::NotFound => "not found",
            State::NotInstalled => "not installed",
            State::Installed => "installed, not proven",
            State::Proven => "installed and proven",
            State::Active => "active",
            State::Skipped => "silently skipped",
            State::Altered => "altered",
        }
    }
}

/// How things stand with one agent in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The agent.
    pub agent: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// How things stand.
    pub state: State,
    /// For whom it is installed.
    pub scope: Option<Scope>,
    /// By what the agent was found: its program, or its directory.
    pub found: Option<PathBuf>,
    /// What is wrong.
    pub problems: Vec<String>,
    /// The version that installed it.
    pub version: Option<String>,
    /// When it was installed, in seconds since 1970.
    pub installed: Option<u64>,
    /// When it was last shown to work.
    pub proven: Option<u64>,
    /// When the agent last called.
    pub seen: Option<Sighting>,
    /// When the agent was last used, as far as its own files say.
    pub used: Option<u64>,
}

/// By what an agent is found: its program, else its directory.
pub fn detect(recipe: &dyn Recipe, surroundings: &Surroundings) -> Option<PathBuf> {
    let home = recipe.home(surroundings);
    recipe.programs().iter().find_map(|name| surroundings.program(name)).or_else(|| home.is_dir().then_some(home))
}

/// How things stand with an agent: one report for each scope it is installed in, or one that says that it is not.
pub fn report(recipe: &dyn Recipe, surroundings: &Surroundings) -> Vec<Report> {
    let installed: Vec<Report> = [Scope::Managed, Scope::User, Scope::Project]
        .into_iter()
        .filter_map(|scope| {
            let receipt = Receipt::load(surroundings, recipe.name(), scope)?;
            Some(of_receipt(recipe, surroundings, &receipt))
        })
        .collect();
    if !installed.is_empty() {
        return installed;
    }
    let found = detect(recipe, surroundings);
    let state = if found.is_some() { State::NotInstalled } else { State::NotFound };
    vec![Report { found, ..Report::new(recipe, state) }]
}

impl Report {
    fn new(recipe: &dyn Recipe, state: State) -> Self {
        Report {
            agent: recipe.name(),
            title: recipe.title(),
            state,
            scope: None,
            found: None,
            problems: Vec::new(),
            version: None,
            installed: None,
            proven: None,
            seen: None,
            used: None,
        }
    }
}

fn of_receipt(recipe: &dyn Recipe, surroundings: &Surroundings, receipt: &Receipt) -> Report {
    let mut problems = alterations(recipe, surroundings, receipt);
    let seen = Sighting::last(surroundings, recipe.name());
    let used = last_change(&recipe.sessions(surroundings));
    let called = seen.as_ref().is_some_and(|seen| seen.time >= receipt.installed);
    let known = seen.as_ref().map_or(0, |seen| seen.time).max(receipt.installed);
    let skipped = used.is_some_and(|used| used > known.saturating_add(LEEWAY));
    let state = if !problems.is_empty() {
        State::Altered
    } else if skipped {
        problems.push("the agent was used since, and has not called callgate".to_owned());
        State::Skipped
    } else if called {
        State::Active
    } else if receipt.proven.is_some() {
        State::Proven
    } else {
        State::Installed
    };
    Report {
        scope: Some(receipt.scope),
        found: detect(recipe, surroundings),
        problems,
        version: Some(receipt.version.clone()),
        installed: Some(receipt.installed),
        proven: receipt.proven,
        seen,
        used,
        ..Report::new(recipe, state)
    }
}

/// What is not as it was installed.
fn alterations(recipe: &dyn Recipe, surroundings: &Surroundings, receipt: &Receipt) -> Vec<String> {
    let scope = receipt.scope;
    let mut problems = Vec::new();
    let runs = std::fs::metadata(&receipt.program)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    if !runs {
        problems.push(format!("{} is not there any more, or cannot be run", receipt.program.display()));
    }
    let read = |path: &Path| file::read(path, scope.owner(), &surroundings.ground(scope, path));
    for written in &receipt.files {
        let shown = written.path.display();
        match read(&written.path) {
            Err(error) => problems.push(error.to_string()),
            Ok(found) => match found.text {
                None => problems.push(format!("{shown} is gone")),
                Some(text) => match written.put.missing(&text) {
                    Err(error) => problems.push(format!("{shown}: {error}")),
                    Ok(missing) => problems.extend(missing.into_iter().map(|what| format!("{shown}: {what}"))),
                },
            },
        }
    }
    let request = Request { scope, program: &receipt.program, surroundings, mirror: &[], trust: true };
    problems.extend(recipe.switched_off(&request, &|path| std::fs::read_to_string(path).ok()));
    problems
}
