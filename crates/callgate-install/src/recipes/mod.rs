//! What is installed for each agent, where, and how it is tested. `agents.toml` describes most of it.

mod amp;
mod codex;
mod opencode;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use callgate_hooks::Agent;
use callgate_model::quote::shell_words;
use serde_json::Value;

use crate::canary::{AnswerForm, Canary};
use crate::content::{FileContent, SettingsChange};
use crate::environment::{HostEnvironment, InstallScope};
use crate::hard_denies::{self, HARD_DENIES, HardDeny};
use crate::json::JsonEdit;
use crate::settings::SettingsNode;
use crate::sighting::CANARY_SESSION;

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
    /// The value of `callgate hook --ask`.
    pub ask: Option<&'a str>,
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

impl InstallPlan {
    /// Adds edits to the JSON file of the first change.
    fn edit_first(&mut self, edits: impl IntoIterator<Item = JsonEdit>) {
        if let Some(SettingsChange { content: FileContent::Json(first), .. }) = self.changes.first_mut() {
            first.extend(edits);
        }
    }

    /// Adds one of callgate's own files.
    fn add_file(&mut self, path: PathBuf, text: String, executable: bool) {
        self.changes.push(SettingsChange { path, content: FileContent::Whole { text, executable } });
    }
}

/// How callgate is installed for one agent.
pub struct Recipe {
    agent: &'static Agent,
    /// The agent's table in `agents.toml`.
    table: SettingsNode,
}

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let tables = SettingsNode::read_toml(include_str!("agents.toml"));
    let recipe = |(name, table): &(String, SettingsNode)| {
        Some(Recipe { agent: callgate_hooks::find(name)?, table: table.clone() })
    };
    tables.iter().flat_map(SettingsNode::entries).filter_map(recipe).collect()
});

/// All agents that callgate can be installed for.
pub fn all() -> &'static [Recipe] {
    &RECIPES
}

/// Finds an agent by its name or one of its aliases.
pub fn find(name: &str) -> Option<&'static Recipe> {
    let agent = callgate_hooks::find(name)?;
    RECIPES.iter().find(|recipe| recipe.name() == agent.name())
}

impl fmt::Debug for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Recipe").field(&self.name()).finish()
    }
}

impl Recipe {
    /// The agent's name, as in `callgate hook NAME`.
    pub fn name(&self) -> &'static str {
        self.agent.name()
    }

    /// The agent's product name.
    pub fn title(&self) -> &'static str {
        self.agent.title()
    }

    /// The agent's programs.
    pub(crate) fn programs(&self) -> Vec<&str> {
        self.texts("programs")
    }

    /// The agent's own directory, which exists once the agent was used.
    pub(crate) fn home(&self, environment: &HostEnvironment) -> Option<PathBuf> {
        self.path("home", environment)
    }

    /// The directories in which the agent keeps its sessions.
    pub(crate) fn sessions(&self, environment: &HostEnvironment) -> Vec<PathBuf> {
        self.texts("sessions").into_iter().map(|location| environment.path(location)).collect()
    }

    /// The files that an installation writes in a scope.
    pub fn files(&self, scope: InstallScope, environment: &HostEnvironment) -> Vec<PathBuf> {
        let program = Path::new("callgate");
        let request = InstallRequest { scope, program, environment, denies: HARD_DENIES, trust: true, ask: None };
        let Some(plan) = self.plan(&request) else { return Vec::new() };
        let afterwards = self.afterwards(&request, &|_| Some(String::new()));
        plan.changes.into_iter().chain(afterwards).map(|change| change.path).collect()
    }

    /// Plans the changes; `None` if the agent does not support the scope.
    pub(crate) fn plan(&self, request: &InstallRequest<'_>) -> Option<InstallPlan> {
        match self.name() {
            "amp" => return amp::plan(self, request),
            "opencode" => return opencode::plan(self, request),
            _ => {}
        }
        let path = self.settings_file(request.scope, request.environment)?;
        let members = self.table.get("members").map(SettingsNode::entries).unwrap_or_default();
        let members = members.iter().map(|(key, value)| JsonEdit::member(&[], key, value.clone()));
        let hooks = self.hooks(request).into_iter().map(|(event, entry)| JsonEdit::element(&["hooks", event], entry));
        let content = FileContent::Json(members.chain(hooks).collect());
        let words = self.words(request, self.hooks(request).first().map_or("", |(event, _)| event));
        let mut plan = self.plan_with(words, vec![SettingsChange { path: path.clone(), content }])?;
        match self.name() {
            "claude" => plan.edit_first(request.denies.iter().map(|deny| {
                JsonEdit::element(&["permissions", "deny"], hard_denies::claude(deny).as_str().into()).if_possible()
            })),
            "codex" => codex::extend(&mut plan, request)?,
            // Gemini CLI does not read the policies of a project.
            "gemini" if !request.denies.is_empty() && request.scope != InstallScope::Project => {
                let rules = hard_denies::gemini(request.denies);
                plan.add_file(path.with_file_name("policies/callgate.toml"), rules, false);
            }
            "goose" => {
                let manifest = FileContent::Json(vec![
                    JsonEdit::member(&[], "name", "callgate".into()),
                    JsonEdit::member(&[], "description", "Passes every tool call to callgate".into()),
                ]);
                let path = path.parent()?.with_file_name("plugin.json");
                plan.changes.insert(0, SettingsChange { path, content: manifest });
            }
            _ => {}
        }
        if request.scope == InstallScope::Managed
            && let Some(key) = self.text("managed_only")
        {
            plan.edit_first([JsonEdit::member(&[], key, true.into()).if_possible()]);
        }
        Some(plan)
    }

    /// The changes that depend on the new content of other files.
    pub(crate) fn afterwards(&self, request: &InstallRequest<'_>, read: ReadText<'_>) -> Vec<SettingsChange> {
        if self.name() == "codex" { codex::trust(self, request, read) } else { Vec::new() }
    }

    /// Why the agent would not call an installed hook, according to its settings.
    pub(crate) fn switched_off(&self, request: &InstallRequest<'_>, read: ReadText<'_>) -> Option<String> {
        if self.name() == "codex" {
            return codex::switched_off(self, request, read);
        }
        let managed_only = self.text("managed_only");
        if request.scope == InstallScope::Managed && managed_only.is_some() {
            return None;
        }
        let environment = request.environment;
        let files = InstallScope::ALL.map(|scope| self.settings_file(scope, environment));
        let managed = self.settings_file(InstallScope::Managed, environment);
        files.into_iter().chain([self.path("also_reads", environment)]).flatten().find_map(|path| {
            let settings = SettingsNode::read_json(&read(&path)?).ok()?;
            let place = path.display();
            for off in self.table.get("off").map(SettingsNode::items).unwrap_or_default() {
                let key = off.get("key").and_then(SettingsNode::texts)?;
                if settings.at(&key) == off.get("value") && off.get("value").is_some() {
                    let value = settings.at(&key).map(SettingsNode::value).unwrap_or_default();
                    return Some(format!("`{}` is {value} in {place}", key.join(".")));
                }
            }
            let listed = self.texts("off_list");
            let disabled = settings.at(&listed).and_then(SettingsNode::texts).unwrap_or_default();
            if !listed.is_empty() && disabled.contains(&"callgate") {
                return Some(format!("`{}` lists the hook in {place}", listed.join(".")));
            }
            let only = managed_only.filter(|_| Some(&path) == managed.as_ref())?;
            let set = settings.get(only).and_then(SettingsNode::flag) == Some(true);
            set.then(|| format!("{place} allows only managed hooks; install with --managed"))
        })
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.table.get(key).and_then(SettingsNode::text)
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        self.table.get(key).and_then(SettingsNode::texts).unwrap_or_default()
    }

    fn path(&self, key: &str, environment: &HostEnvironment) -> Option<PathBuf> {
        self.text(key).map(|location| environment.path(location))
    }

    /// The settings file in a scope.
    fn settings_file(&self, scope: InstallScope, environment: &HostEnvironment) -> Option<PathBuf> {
        self.path(scope.name(), environment)
    }

    /// The words of the hook's command for an event.
    fn words(&self, request: &InstallRequest<'_>, event: &str) -> Vec<String> {
        let options = match self.table.get("options") {
            Some(_) => self.texts("options"),
            None => vec!["--timeout", "$seconds"],
        };
        let program = request.program.to_string_lossy();
        let mut words = vec![program.into_owned(), "hook".to_owned(), self.name().to_owned()];
        words.extend(options.into_iter().map(|option| match option {
            "$event" => event.to_owned(),
            "$seconds" => TIME_LIMIT.as_secs().to_string(),
            option => option.to_owned(),
        }));
        words.extend(request.ask.into_iter().flat_map(|ask| ["--ask".to_owned(), ask.to_owned()]));
        words
    }

    /// The events to install, with their entries in the settings.
    fn hooks(&self, request: &InstallRequest<'_>) -> Vec<(&str, SettingsNode)> {
        let mut hooks = Vec::new();
        for group in self.table.get("hooks").map(SettingsNode::items).unwrap_or_default() {
            let entry = group.get("entry").and_then(SettingsNode::text).unwrap_or_default();
            let Ok(entry) = SettingsNode::read_json(entry) else { continue };
            for event in group.get("events").and_then(SettingsNode::texts).unwrap_or_default() {
                let words = self.words(request, event);
                let filled = entry.filled(&|text| match text {
                    "$program" => words.first().map(|program| program.as_str().into()),
                    "$arguments" => Some(SettingsNode::Words(words.get(1..).unwrap_or_default().to_vec())),
                    "$command" => Some(shell_words(&words).as_str().into()),
                    "$seconds" => Some(TIME_LIMIT.as_secs().into()),
                    "$milliseconds" => Some(TIME_LIMIT.as_secs().saturating_mul(1000).into()),
                    _ => None,
                });
                hooks.push((event, filled));
            }
        }
        hooks
    }

    /// A plan with these changes, and the test that the agent's table describes.
    fn plan_with(&self, words: Vec<String>, changes: Vec<SettingsChange>) -> Option<InstallPlan> {
        let session = |text: &str| if text == "$session" { CANARY_SESSION } else { text }.to_owned();
        let variables = self.table.get("variables").map(SettingsNode::entries).unwrap_or_default();
        let payload = SettingsNode::read_json(self.text("payload")?).ok()?;
        let answers: Value = self.table.get("answers")?.value();
        let canary = Canary {
            words,
            shell: self.text("shell").map(str::to_owned),
            environment: variables
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), session(value.text()?))))
                .collect(),
            payload: payload.filled(&|text| (text == "$session").then(|| CANARY_SESSION.into())),
            answers: serde_json::from_value::<AnswerForm>(answers).ok()?,
        };
        let advice = self.texts("advice").into_iter().map(str::to_owned).collect();
        Some(InstallPlan { changes, canary, advice })
    }
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
                let request =
                    InstallRequest { scope, program, environment: &environment, denies: &[], trust: false, ask: None };
                plans.extend(recipe.plan(&request).map(|plan| (recipe.name(), scope, plan)));
            }
        }
        plans
    }

    #[test]
    fn every_table_is_complete_and_has_only_known_keys() {
        let known = "programs home sessions user project managed options members hooks off off_list also_reads managed_only \
                     shell variables payload answers advice";
        let tables = SettingsNode::read_toml(include_str!("agents.toml")).expect("TOML");
        assert_eq!(tables.entries().len(), all().len());
        for (name, table) in tables.entries() {
            for (key, _) in table.entries() {
                assert!(known.split_whitespace().any(|known| known == key), "{name}: {key}");
            }
            for hook in table.get("hooks").map(SettingsNode::items).unwrap_or_default() {
                let entry = hook.get("entry").and_then(SettingsNode::text).expect("an entry");
                assert!(!SettingsNode::read_json(entry).expect("JSON").entries().is_empty(), "{name}");
            }
        }
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
            let payload = plan.canary.payload_for("ls", Path::new("/work")).to_string();
            let environment = |variable: &str| {
                plan.canary.environment.iter().find(|(key, _)| key == variable).map(|(_, value)| value.clone())
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
