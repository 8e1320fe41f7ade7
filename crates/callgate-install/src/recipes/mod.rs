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
    /// The words of the hook's command, for an agent that is told how long to wait. The hook is told the same.
    fn words(&self, agent: &str, event: Option<&str>) -> Vec<String> {
        let mut words = self.patient_words(agent);
        if let Some(event) = event {
            words.extend(["--event".to_owned(), event.to_owned()]);
        }
        words.extend(["--timeout".to_owned(), TIME_LIMIT.as_secs().to_string()]);
        words
    }

    /// The words of the hook's command, for an agent that waits as long as it wants to.
    fn patient_words(&self, agent: &str) -> Vec<String> {
        vec![self.program.to_string_lossy().into_owned(), "hook".to_owned(), agent.to_owned()]
    }

    /// The hook's command for a shell.
    fn line(&self, agent: &str, event: Option<&str>) -> String {
        line(&self.words(agent, event))
    }
}

/// Words for a shell.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
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
    let name = callgate_hooks::find(name).map_or(name, |agent| agent.name());
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

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;
    use crate::canary::Probe;
    use crate::change::{Content, What};
    use callgate_hooks::{HookAnswer, HookDetails, HookInput};

    fn plans() -> Vec<(&'static str, Scope, Plan)> {
        let surroundings = Surroundings::of_home(Path::new("/home/me"));
        let mut plans = Vec::new();
        for recipe in all() {
            for scope in [Scope::User, Scope::Project, Scope::Managed] {
                let program = Path::new("/usr/bin/callgate");
                let request = Request { scope, program, surroundings: &surroundings, mirror: &[], trust: false };
                plans.extend(recipe.plan(&request).map(|plan| (recipe.name(), scope, plan)));
            }
        }
        plans
    }

    #[test]
    fn every_agent_has_a_dialect_and_a_place_for_the_user() {
        for recipe in all() {
            assert!(callgate_hooks::find(recipe.name()).is_some(), "{}", recipe.name());
            assert!(plans().iter().any(|(name, scope, _)| (*name, *scope) == (recipe.name(), Scope::User)));
        }
        assert_eq!(find("claude-code").map(|recipe| recipe.name()), Some("claude"));
        assert!(find("nobody").is_none());
    }

    #[test]
    fn the_dialect_understands_what_is_tried_and_the_trial_understands_the_dialect() {
        for (name, _, plan) in plans() {
            let agent = callgate_hooks::find(name).expect("a dialect");
            let probe = Probe { command: "ls", directory: Path::new("/work") };
            let payload = (plan.canary.payload)(&probe).to_string();
            let environment = |variable: &str| {
                plan.canary.environment.iter().find(|(key, _)| *key == variable).map(|(_, value)| (*value).to_owned())
            };
            let received = HookInput { environment: &environment, ..HookInput::of(payload.as_bytes()) };
            let incoming = agent.read(&received).unwrap_or_else(|error| panic!("{name}: {error}"));
            let HookDetails::Before(call) = &incoming.details else { panic!("{name}: {:?}", incoming.details) };
            assert!(call.input.to_string().contains("\"ls\""), "{name}: {}", call.input);
            let allowed = agent.write(incoming.event, Some(&HookAnswer::allow()));
            assert!(plan.canary.would_allow(&allowed), "{name}: {allowed:?}");
            for denied in [agent.write(incoming.event, Some(&HookAnswer::deny("no"))), agent.refuse(None, "no")] {
                assert!(plan.canary.would_deny(&denied), "{name}: {denied:?}");
            }
        }
    }

    #[test]
    fn only_events_that_the_dialect_knows_are_installed() {
        for (name, _, plan) in plans() {
            let known: Vec<&str> =
                callgate_hooks::find(name).expect("a dialect").events().map(|event| event.name).collect();
            for change in &plan.changes {
                let Content::Json(edits) = &change.content else { continue };
                for edit in edits.iter().filter(|edit| matches!(edit.what, What::Element(_))) {
                    if let [hooks, event] = edit.path.as_slice()
                        && hooks == "hooks"
                    {
                        assert!(known.contains(&event.as_str()), "{name}: {event}");
                    }
                }
            }
        }
    }
}
