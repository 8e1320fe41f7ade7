//! Codex CLI: the record that its user trusts the hooks. Codex silently skips hooks without it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{InstallPlan, InstallRequest, ReadText, Recipe, TIME_LIMIT};
use callgate_model::quote::shell_words;

use crate::content::{FileContent, SettingsChange};
use crate::environment::{HostEnvironment, InstallScope};
use crate::settings::SettingsNode;
use crate::toml::{self, TomlEdit};
use crate::{file, hard_denies};

/// The user's directory. Codex resolves symlinks in the directory that the variable names, and trust is recorded by path.
fn directory(environment: &HostEnvironment) -> PathBuf {
    let directory = environment.path("CODEX_HOME=.codex:");
    if environment.variables.contains_key("CODEX_HOME") {
        directory.canonicalize().unwrap_or(directory)
    } else {
        directory
    }
}

fn hooks_file(recipe: &Recipe, request: &InstallRequest<'_>) -> Option<PathBuf> {
    match request.scope {
        InstallScope::User => Some(directory(request.environment).join("hooks.json")),
        scope => recipe.settings_file(scope, request.environment),
    }
}

/// The hash by which Codex recognizes a hook: that of the sorted, compact JSON of its normal form.
fn trust_hash(label: &str, matcher: Option<&str>, command: &str) -> String {
    let handler = json!({ "async": false, "command": command, "timeout": TIME_LIMIT.as_secs(), "type": "command" });
    let mut identity = Map::new();
    identity.insert("event_name".into(), label.into());
    identity.insert("hooks".into(), Value::Array(vec![handler]));
    if let Some(matcher) = matcher {
        identity.insert("matcher".into(), matcher.into());
    }
    // The members of a map are sorted.
    format!("sha256:{}", file::hash(&Value::Object(identity).to_string()))
}

/// The name of an event in the trust record: `PreToolUse` is `pre_tool_use`.
fn label(event: &str) -> String {
    event.chars().enumerate().fold(String::new(), |mut label, (index, character)| {
        if character.is_ascii_uppercase() && index > 0 {
            label.push('_');
        }
        label.push(character.to_ascii_lowercase());
        label
    })
}

/// The records that make Codex run callgate's hooks in the file `path` with this text.
fn trust_records(recipe: &Recipe, request: &InstallRequest<'_>, path: &Path, text: &str) -> Vec<TomlEdit> {
    let settings = SettingsNode::read_json(text).unwrap_or_else(|_| SettingsNode::Table(Vec::new()));
    let records = recipe.hooks(request).into_iter().filter_map(|(event, entry)| {
        let index = settings.at(&["hooks", event])?.items().iter().rposition(|group| *group == entry)?;
        let label = label(event);
        let matcher = entry.get("matcher").and_then(SettingsNode::text);
        let command = shell_words(recipe.words(request, event));
        let key = format!("{}:{label}:{index}:0", path.display());
        Some(TomlEdit {
            path: vec!["hooks".into(), "state".into(), key, "trusted_hash".into()],
            value: trust_hash(&label, matcher, &command).into(),
            replaces: true,
            optional: false,
        })
    });
    records.collect()
}

/// Adds the rules and settings beside the hooks.
pub(super) fn extend(plan: &mut InstallPlan, request: &InstallRequest<'_>) -> Option<()> {
    let hooks = plan.changes.first_mut()?;
    if request.scope == InstallScope::User {
        hooks.path = directory(request.environment).join("hooks.json");
    }
    let hooks = hooks.path.clone();
    if request.scope == InstallScope::Managed {
        let enabled = |path: &[&str]| TomlEdit {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            value: true.into(),
            replaces: false,
            optional: true,
        };
        plan.changes.push(SettingsChange {
            path: hooks.with_file_name("requirements.toml"),
            content: FileContent::Toml(vec![enabled(&["allow_managed_hooks_only"]), enabled(&["features", "hooks"])]),
        });
    } else {
        if !request.denies.is_empty() {
            let rules = hard_denies::codex(request.denies, &request.environment.home.to_string_lossy());
            plan.add_file(hooks.with_file_name("rules/callgate.rules"), rules, false);
        }
        if !request.trust {
            let advice = "Codex silently skips hooks that you have not trusted: type /hooks in Codex and trust them, or \
                          install with --trust";
            plan.advice.push(advice.to_owned());
        }
    }
    let advice = "input typed into a running program (write_stdin) reaches no hook: keep Codex's own sandbox on \
                  (workspace-write)";
    plan.advice.push(advice.to_owned());
    Some(())
}

/// Records that the user trusts the hooks.
pub(super) fn trust(recipe: &Recipe, request: &InstallRequest<'_>, read: ReadText<'_>) -> Vec<SettingsChange> {
    if !request.trust || request.scope == InstallScope::Managed {
        return Vec::new();
    }
    let records = hooks_file(recipe, request)
        .and_then(|hooks| Some(trust_records(recipe, request, &hooks, &read(&hooks)?)))
        .unwrap_or_default();
    let path = directory(request.environment).join("config.toml");
    vec![SettingsChange { path, content: FileContent::Toml(records) }]
}

/// Why Codex would not call the hooks.
pub(super) fn switched_off(recipe: &Recipe, request: &InstallRequest<'_>, read: ReadText<'_>) -> Option<String> {
    if request.scope == InstallScope::Managed {
        return None;
    }
    let configuration = directory(request.environment).join("config.toml");
    let text = read(&configuration).unwrap_or_default();
    let get = |path: &[&str]| toml::get(&text, path).ok().flatten();
    if get(&["features", "hooks"]) == Some(false.into()) {
        return Some(format!("`features.hooks` is false in {}", configuration.display()));
    }
    let hooks = hooks_file(recipe, request)?;
    for record in trust_records(recipe, request, &hooks, &read(&hooks)?) {
        let key = record.path.get(2)?;
        if get(&["hooks", "state", key, "enabled"]) == Some(false.into()) {
            return Some("the hook is switched off in Codex (/hooks)".to_owned());
        }
        if toml::get(&text, &record.path).ok().flatten() != Some(record.value) {
            return Some("the hook is not trusted in Codex: type /hooks there, or install with --trust".to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_codex_reports() {
        // Of {"event_name":"pre_tool_use","hooks":[{"async":false,"command":"/usr/bin/callgate hook codex","timeout":600,
        // "type":"command"}],"matcher":"*"}, by sha256sum.
        assert_eq!(
            trust_hash("pre_tool_use", Some("*"), "/usr/bin/callgate hook codex"),
            "sha256:ae21ff97d7d3f98188c8526bff323ade860b758d427f7112e7fc3cd54f89cbad"
        );
    }
}
