//! What is installed for each agent, where, and how it is tested.

mod amp;
mod codex;
mod hook_lists;
mod opencode;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::canary::{AnswerForm, Canary, CanaryCall, HookStart};
use crate::content::{FileContent, SettingsChange};
use crate::environment::{HostEnvironment, InstallScope, Location, shell_quoted};
use crate::hard_denies::{HARD_DENIES, HardDeny};
use crate::json::JsonEdit;
use crate::settings::SettingsNode;

/// The timeout of hooks in agents' settings: long enough for a person to answer. The hook itself answers earlier.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Reads the text of a file.
pub(crate) type ReadText<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The parameters of an installation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstallRequest<'a> {
    /// For whom to install.
    pub scope: InstallScope,
    /// The callgate program that hooks start.
    pub program: &'a Path,
    /// The host.
    pub environment: &'a HostEnvironment,
    /// The denies to write into the agent's own rules.
    pub denies: &'a [HardDeny],
    /// Whether to mark the hook as trusted where the agent requires it.
    pub trust: bool,
}

impl InstallRequest<'_> {
    /// The words of the hook's command.
    fn words(&self, agent: &str, options: &[String]) -> Vec<String> {
        let mut words = vec![self.program.to_string_lossy().into_owned(), "hook".to_owned(), agent.to_owned()];
        words.extend_from_slice(options);
        words
    }
}

/// The hook's options for an agent with a timeout in its settings: the hook must know it too.
fn timeout_options() -> Vec<String> {
    vec!["--timeout".to_owned(), TIME_LIMIT.as_secs().to_string()]
}

/// A command line for a shell.
fn line(words: &[String]) -> String {
    words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The changes for one agent.
#[derive(Debug, Clone)]
pub(crate) struct InstallPlan {
    /// The files and their content.
    pub changes: Vec<SettingsChange>,
    /// How the hook is tested.
    pub canary: Canary,
    /// What the user has to do or know.
    pub advice: Vec<String>,
}

/// How callgate is installed for one agent.
pub struct Recipe {
    name: &'static str,
    /// The agent's programs.
    pub(crate) programs: &'static [&'static str],
    /// The agent's own directory, which exists once the agent was used.
    pub(crate) home: Location,
    /// The directories in which the agent keeps its sessions.
    pub(crate) sessions: &'static [Location],
    /// The changes; `None` if the agent does not support the scope.
    plan: fn(&InstallRequest<'_>) -> Option<InstallPlan>,
    /// The changes that depend on the new content of other files.
    pub(crate) afterwards: fn(&InstallRequest<'_>, ReadText<'_>) -> Vec<SettingsChange>,
    /// Why the agent would not call an installed hook, according to its settings.
    pub(crate) switched_off: fn(&InstallRequest<'_>, ReadText<'_>) -> Option<String>,
}

impl Recipe {
    const BASE: Recipe = Recipe {
        name: "",
        programs: &[],
        home: Location::Home(""),
        sessions: &[],
        plan: |_| None,
        afterwards: |_, _| Vec::new(),
        switched_off: |_, _| None,
    };

    /// The agent's name, as in `callgate hook NAME`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The agent's product name.
    pub fn title(&self) -> &'static str {
        callgate_hooks::find(self.name).map_or(self.name, |agent| agent.title())
    }

    /// Plans the changes; `None` if the agent does not support the scope.
    pub(crate) fn plan(&self, request: &InstallRequest<'_>) -> Option<InstallPlan> {
        (self.plan)(request)
    }

    /// The files that an installation writes in a scope.
    pub fn files(&self, scope: InstallScope, environment: &HostEnvironment) -> Vec<PathBuf> {
        let program = Path::new("callgate");
        let request = InstallRequest { scope, program, environment, denies: HARD_DENIES, trust: true };
        let Some(plan) = self.plan(&request) else { return Vec::new() };
        let afterwards = (self.afterwards)(&request, &|_| Some(String::new()));
        plan.changes.into_iter().chain(afterwards).map(|change| change.path).collect()
    }
}

static RECIPES: &[&Recipe] = &[
    &hook_lists::CLAUDE,
    &codex::CODEX,
    &hook_lists::GEMINI,
    &hook_lists::COPILOT,
    &hook_lists::CURSOR,
    &opencode::OPENCODE,
    &hook_lists::QWEN,
    &hook_lists::WINDSURF,
    &amp::AMP,
    &hook_lists::GOOSE,
];

/// All agents that callgate can be installed for.
pub fn all() -> &'static [&'static Recipe] {
    RECIPES
}

/// Finds an agent by its name or one of its aliases.
pub fn find(name: &str) -> Option<&'static Recipe> {
    let name = callgate_hooks::find(name).map_or(name, |agent| agent.name());
    RECIPES.iter().copied().find(|recipe| recipe.name == name)
}

/// An agent whose settings list hooks by event.
struct HookList {
    agent: &'static str,
    /// The settings files for the user, the project and the machine.
    files: [Option<Location>; 3],
    /// Whether the file needs `"version": 1`.
    versioned: bool,
    events: &'static [&'static str],
    /// The options of the hook's command for an event.
    options: fn(&str) -> Vec<String>,
    /// The entry for an event, with the words of the hook's command.
    entry: fn(&[String], &str) -> SettingsNode,
    /// The shell that runs the command; `None` if the agent starts the program itself.
    shell: Option<&'static str>,
    environment: &'static [(&'static str, &'static str)],
    /// The payload that the agent sends for a shell command.
    payload: fn(&CanaryCall<'_>) -> Value,
    answers: AnswerForm,
    advice: &'static [&'static str],
}

impl HookList {
    const BASE: HookList = HookList {
        agent: "",
        files: [None; 3],
        versioned: false,
        events: &[],
        options: |_| timeout_options(),
        entry: |_, _| SettingsNode::Table(Vec::new()),
        shell: None,
        environment: &[],
        payload: |_| Value::Null,
        answers: AnswerForm::ClaudeLike,
        advice: &[],
    };

    /// The settings file in a scope.
    fn file(&self, scope: InstallScope, environment: &HostEnvironment) -> Option<PathBuf> {
        let [user, project, managed] = self.files;
        let location = match scope {
            InstallScope::User => user,
            InstallScope::Project => project,
            InstallScope::Managed => managed,
        };
        location.map(|location| environment.path(location))
    }

    fn words(&self, request: &InstallRequest<'_>, event: &str) -> Vec<String> {
        request.words(self.agent, &(self.options)(event))
    }

    fn entry(&self, request: &InstallRequest<'_>, event: &str) -> SettingsNode {
        (self.entry)(&self.words(request, event), event)
    }

    fn plan(&self, request: &InstallRequest<'_>) -> Option<InstallPlan> {
        let path = self.file(request.scope, request.environment)?;
        let version = self.versioned.then(|| JsonEdit::member(&[], "version", 1_u64.into()));
        let hooks = self.events.iter().map(|event| JsonEdit::element(&["hooks", event], self.entry(request, event)));
        let words = self.words(request, self.events.first()?);
        let canary = Canary {
            start: match self.shell {
                Some(shell) => HookStart::Shell(shell, line(&words)),
                None => HookStart::Program(words),
            },
            environment: self.environment.to_vec(),
            payload: self.payload,
            answers: self.answers,
        };
        Some(InstallPlan {
            changes: vec![SettingsChange {
                path,
                content: FileContent::Json(version.into_iter().chain(hooks).collect()),
            }],
            canary,
            advice: self.advice.iter().map(|advice| (*advice).to_owned()).collect(),
        })
    }
}

impl InstallPlan {
    /// Adds edits to the JSON file of the first change.
    fn edit_first(&mut self, edits: impl IntoIterator<Item = JsonEdit>) {
        if let Some(SettingsChange { content: FileContent::Json(first), .. }) = self.changes.first_mut() {
            first.extend(edits);
        }
    }

    /// Adds one of callgate's own files.
    fn add_file(&mut self, path: PathBuf, text: String) {
        self.changes.push(SettingsChange { path, content: FileContent::Whole { text, executable: false } });
    }
}

/// A member of a JSON text.
fn setting(text: &str, path: &[&str]) -> Option<Value> {
    SettingsNode::read_json(text).ok()?.at(path).map(SettingsNode::value)
}

/// A group with one hook, as in the settings of most agents.
fn group(matcher: Option<&str>, handler: SettingsNode) -> SettingsNode {
    let matcher = matcher.map(|matcher| ("matcher".to_owned(), matcher.into()));
    let hooks = ("hooks".to_owned(), SettingsNode::List(vec![handler]));
    SettingsNode::Table(matcher.into_iter().chain([hooks]).collect())
}

/// The matcher for events about tools; the events of sessions have none.
fn tool_matcher(event: &str) -> Option<&'static str> {
    (!event.starts_with("Session")).then_some("*")
}

/// A hook with a command line and a timeout in seconds.
fn command_handler(words: &[String]) -> SettingsNode {
    SettingsNode::object([
        ("type", "command".into()),
        ("command", line(words).as_str().into()),
        ("timeout", TIME_LIMIT.as_secs().into()),
    ])
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, reason = "a test says what is missing by failing")]
mod tests {
    use callgate_hooks::{HookAnswer, HookDetails, HookInput};

    use super::*;
    use crate::json::JsonItem;

    fn plans() -> Vec<(&'static str, InstallScope, InstallPlan)> {
        let environment = HostEnvironment::of_home(Path::new("/home/me"));
        let mut plans = Vec::new();
        for recipe in all() {
            for scope in InstallScope::ALL {
                let program = Path::new("/usr/bin/callgate");
                let request = InstallRequest { scope, program, environment: &environment, denies: &[], trust: false };
                plans.extend(recipe.plan(&request).map(|plan| (recipe.name(), scope, plan)));
            }
        }
        plans
    }

    #[test]
    fn every_agent_has_a_dialect_and_a_place_for_the_user() {
        for recipe in all() {
            assert!(callgate_hooks::find(recipe.name()).is_some(), "{}", recipe.name());
            assert!(plans().iter().any(|(name, scope, _)| (*name, *scope) == (recipe.name(), InstallScope::User)));
        }
        assert_eq!(find("claude-code").map(|recipe| recipe.name()), Some("claude"));
        assert!(find("nobody").is_none());
    }

    #[test]
    fn the_dialect_understands_what_is_tried_and_the_trial_understands_the_dialect() {
        for (name, _, plan) in plans() {
            let agent = callgate_hooks::find(name).expect("a dialect");
            let call = CanaryCall { command: "ls", directory: Path::new("/work") };
            let payload = (plan.canary.payload)(&call).to_string();
            let environment = |variable: &str| {
                plan.canary.environment.iter().find(|(key, _)| *key == variable).map(|(_, value)| (*value).to_owned())
            };
            let input = HookInput { environment: &environment, ..HookInput::of(payload.as_bytes()) };
            let request = agent.read(&input).unwrap_or_else(|error| panic!("{name}: {error}"));
            let HookDetails::Before(call) = &request.details else { panic!("{name}: {:?}", request.details) };
            assert!(call.input.to_string().contains("\"ls\""), "{name}: {}", call.input);
            let allowed = agent.write(request.event, Some(&HookAnswer::allow()));
            assert!(plan.canary.would_allow(&allowed), "{name}: {allowed:?}");
            for denied in [agent.write(request.event, Some(&HookAnswer::deny("no"))), agent.refuse(None, "no")] {
                assert!(plan.canary.would_deny(&denied), "{name}: {denied:?}");
            }
        }
    }

    #[test]
    fn only_events_that_the_dialect_knows_are_installed() {
        for (name, _, plan) in plans() {
            let agent = callgate_hooks::find(name).expect("a dialect");
            let known: Vec<&str> = agent.events().map(|event| event.name).collect();
            for change in &plan.changes {
                let FileContent::Json(edits) = &change.content else { continue };
                for edit in edits.iter().filter(|edit| matches!(edit.what, JsonItem::Element(_))) {
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
