//! What is installed for each agent, where, and how it is told that it works: one file each.

mod amp;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod goose;
mod opencode;
mod qwen;
mod windsurf;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::canary::Canary;
use super::change::Change;
use super::json::{Document, Node};
use super::mirror::HardDeny;
use super::surroundings::{Scope, Surroundings, quoted};

/// How long agents are told to wait for a hook: long enough for a person to answer. The hook itself answers earlier.
pub const TIME_LIMIT: Duration = Duration::from_secs(600);

/// What is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// For whom.
    pub scope: Scope,
    /// The callgate program that hooks start.
    pub program: &'a Path,
    /// Where things are.
    pub surroundings: &'a Surroundings,
    /// What is written into the agent's own rules as well.
    pub mirror: &'a [HardDeny],
    /// Whether the hook is recorded as trusted where an agent wants that.
    pub trust: bool,
}

impl Request<'_> {
    /// The words of the hook's command.
    fn words(&self, agent: &str, event: Option<&str>) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        let mut words = vec![program, "hook".to_owned(), agent.to_owned()];
        if let Some(event) = event {
            words.extend(["--event".to_owned(), event.to_owned()]);
        }
        words
    }

    /// The hook's command for a shell.
    fn line(&self, agent: &str, event: Option<&str>) -> String {
        self.words(agent, event).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// What is to be done for one agent.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What must be in which files.
    pub changes: Vec<Change>,
    /// How it is tried out.
    pub canary: Canary,
    /// What the user has to do or know beside.
    pub advice: Vec<String>,
}

/// One agent: what is installed for it.
pub trait Recipe: Sync {
    /// Its name, as in `callgate hook NAME`.
    fn name(&self) -> &'static str;

    /// Its name for people.
    fn title(&self) -> &'static str;

    /// Its programs.
    fn programs(&self) -> &'static [&'static str];

    /// Its own directory, which is there once it was used.
    fn home(&self, surroundings: &Surroundings) -> PathBuf;

    /// What is to be done; `None` if it has no place for this scope.
    fn plan(&self, request: &Request<'_>) -> Option<Plan>;

    /// What is to be done once the files' new texts are known.
    fn afterwards(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Vec<Change> {
        let _ = (request, texts);
        Vec::new()
    }

    /// Where it keeps its sessions.
    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf>;

    /// Why it would not call the hook although it is installed, as far as its files say.
    fn switched_off(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
        let _ = (request, texts);
        None
    }
}

static RECIPES: &[&dyn Recipe] = &[
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &copilot::Copilot,
    &cursor::Cursor,
    &opencode::OpenCode,
    &qwen::Qwen,
    &windsurf::Windsurf,
    &amp::Amp,
    &goose::Goose,
];

/// Every agent that callgate can be installed for.
pub fn all() -> &'static [&'static dyn Recipe] {
    RECIPES
}

/// The one of this name, or of another name that its dialect goes by.
pub fn find(name: &str) -> Option<&'static dyn Recipe> {
    let name = crate::find(name).map_or(name, |agent| agent.name());
    RECIPES.iter().copied().find(|recipe| recipe.name() == name)
}

/// What a member of a JSON text says.
fn setting(text: &str, path: &[&str]) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut value = Document::parse(text).ok()?.value()?;
    for key in path {
        value = value.get_mut(key)?.take();
    }
    Some(value)
}

/// A group of one hook, as most agents have it.
fn group(matcher: Option<&str>, handler: Node) -> Node {
    let mut members = Vec::new();
    if let Some(matcher) = matcher {
        members.push(("matcher".to_owned(), matcher.into()));
    }
    members.push(("hooks".to_owned(), Node::list_of(handler)));
    Node::Object(members)
}
