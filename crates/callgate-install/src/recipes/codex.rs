//! Codex CLI: `hooks.json`, and the record that its user trusts these hooks. Codex silently skips hooks without it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{HookList, InstallRequest, Recipe, TIME_LIMIT, command_handler, group, line, setting, tool_matcher};
use crate::content::{FileContent, SettingsChange};
use crate::environment::Location::{Agent, Machine, Project};
use crate::environment::{HostEnvironment, InstallScope};
use crate::toml::{self, TomlEdit};
use crate::{file, hard_denies};

/// The events, and their names in the trust record.
const LABELS: &[(&str, &str)] = &[
    ("PreToolUse", "pre_tool_use"),
    ("PermissionRequest", "permission_request"),
    ("PostToolUse", "post_tool_use"),
    ("SessionStart", "session_start"),
];

const CODEX_HOOKS: HookList = HookList {
    agent: "codex",
    files: [
        Some(Agent("CODEX_HOME", ".codex", "hooks.json")),
        Some(Project(".codex/hooks.json")),
        Some(Machine("etc/codex/hooks.json")),
    ],
    events: &["PreToolUse", "PermissionRequest", "PostToolUse", "SessionStart"],
    entry: |words, event| group(tool_matcher(event), command_handler(words)),
    shell: Some("/bin/sh"),
    payload: |call| call.tool_event("PreToolUse", "Bash"),
    ..HookList::BASE
};

/// The user's directory. Codex resolves symlinks in the directory that the variable names, and trust is recorded by path.
fn directory(environment: &HostEnvironment) -> PathBuf {
    let directory = environment.path(Agent("CODEX_HOME", ".codex", ""));
    if environment.variables.contains_key("CODEX_HOME") {
        directory.canonicalize().unwrap_or(directory)
    } else {
        directory
    }
}

fn hooks_file(request: &InstallRequest<'_>) -> Option<PathBuf> {
    match request.scope {
        InstallScope::User => Some(directory(request.environment).join("hooks.json")),
        scope => CODEX_HOOKS.file(scope, request.environment),
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

/// The records that make Codex run callgate's hooks in the file `path` with this text.
fn trust_records(request: &InstallRequest<'_>, path: &Path, text: &str) -> Vec<TomlEdit> {
    let records = LABELS.iter().filter_map(|(event, label)| {
        let groups = setting(text, &["hooks", event])?;
        let ours = CODEX_HOOKS.entry(request, event).value();
        let index = groups.as_array()?.iter().rposition(|group| *group == ours)?;
        let command = line(&CODEX_HOOKS.words(request, event));
        let key = format!("{}:{label}:{index}:0", path.display());
        Some(TomlEdit {
            path: vec!["hooks".into(), "state".into(), key, "trusted_hash".into()],
            value: trust_hash(label, tool_matcher(event), &command).into(),
            replaces: true,
            optional: false,
        })
    });
    records.collect()
}

pub(super) static CODEX: Recipe = Recipe {
    name: "codex",
    programs: &["codex"],
    home: Agent("CODEX_HOME", ".codex", ""),
    sessions: &[Agent("CODEX_HOME", ".codex", "sessions")],
    plan: |request| {
        let mut plan = CODEX_HOOKS.plan(request)?;
        let hooks = hooks_file(request)?;
        if request.scope == InstallScope::Managed {
            let enabled = |path: &[&str]| TomlEdit {
                path: path.iter().map(|key| (*key).to_owned()).collect(),
                value: true.into(),
                replaces: false,
                optional: true,
            };
            plan.changes.push(SettingsChange {
                path: hooks.with_file_name("requirements.toml"),
                content: FileContent::Toml(vec![
                    enabled(&["allow_managed_hooks_only"]),
                    enabled(&["features", "hooks"]),
                ]),
            });
        } else {
            if !request.denies.is_empty() {
                let rules = hard_denies::codex(request.denies, &request.environment.home.to_string_lossy());
                plan.add_file(hooks.with_file_name("rules/callgate.rules"), rules);
            }
            if !request.trust {
                let advice = "Codex silently skips hooks that you have not trusted: type /hooks in Codex and trust \
                              them, or install with --trust";
                plan.advice.push(advice.to_owned());
            }
        }
        if let Some(change) = plan.changes.first_mut() {
            change.path = hooks;
        }
        let advice = "input typed into a running program (write_stdin) reaches no hook: keep Codex's own sandbox on \
                      (workspace-write)";
        plan.advice.push(advice.to_owned());
        Some(plan)
    },
    afterwards: |request, read| {
        if !request.trust || request.scope == InstallScope::Managed {
            return Vec::new();
        }
        let records = hooks_file(request)
            .and_then(|hooks| Some(trust_records(request, &hooks, &read(&hooks)?)))
            .unwrap_or_default();
        let path = directory(request.environment).join("config.toml");
        vec![SettingsChange { path, content: FileContent::Toml(records) }]
    },
    switched_off: |request, read| {
        if request.scope == InstallScope::Managed {
            return None;
        }
        let configuration = directory(request.environment).join("config.toml");
        let text = read(&configuration).unwrap_or_default();
        let get = |path: &[&str]| toml::get(&text, path).ok().flatten();
        if get(&["features", "hooks"]) == Some(false.into()) {
            return Some(format!("`features.hooks` is false in {}", configuration.display()));
        }
        let hooks = hooks_file(request)?;
        for record in trust_records(request, &hooks, &read(&hooks)?) {
            let key = record.path.get(2)?;
            if get(&["hooks", "state", key, "enabled"]) == Some(false.into()) {
                return Some("the hook is switched off in Codex (/hooks)".to_owned());
            }
            if toml::get(&text, &record.path).ok().flatten() != Some(record.value) {
                return Some("the hook is not trusted in Codex: type /hooks there, or install with --trust".to_owned());
            }
        }
        None
    },
};

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
