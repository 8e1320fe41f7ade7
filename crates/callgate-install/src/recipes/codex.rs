//! Codex CLI: `hooks.json`, and the record that its user trusts these hooks. Hooks without it are skipped silently.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Plan, Recipe, Request, TIME_LIMIT, group, setting};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit, TomlEdit};
use crate::file;
use crate::json::Node;
use crate::mirror;
use crate::surroundings::{Scope, Surroundings};
use crate::toml::{self, Scalar};

/// The events, what the trust record calls them, and what they are matched with.
const EVENTS: &[(&str, &str, Option<&str>)] = &[
    ("PreToolUse", "pre_tool_use", Some("*")),
    ("PermissionRequest", "permission_request", Some("*")),
    ("PostToolUse", "post_tool_use", Some("*")),
    ("SessionStart", "session_start", None),
];

/// Codex CLI.
pub(super) struct Codex;

fn directory(surroundings: &Surroundings) -> PathBuf {
    let directory = surroundings.agent_home("CODEX_HOME", ".codex");
    // Codex resolves the directory that the variable names, and the record is by name.
    if surroundings.variables.contains_key("CODEX_HOME") {
        directory.canonicalize().unwrap_or(directory)
    } else {
        directory
    }
}

fn layer(scope: Scope, surroundings: &Surroundings) -> PathBuf {
    match scope {
        Scope::User => directory(surroundings),
        Scope::Project => surroundings.project.join(".codex"),
        Scope::Managed => surroundings.machine.join("etc/codex"),
    }
}

fn hook_group(request: &Request<'_>, matcher: Option<&str>) -> Node {
    let handler = Node::object([
        ("type", "command".into()),
        ("command", request.line("codex", None).into()),
        ("timeout", TIME_LIMIT.as_secs().into()),
    ]);
    group(matcher, handler)
}

/// The hash by which Codex knows a hook again: of the sorted, compact JSON of its normal form.
fn trust_hash(label: &str, matcher: Option<&str>, command: &str) -> String {
    let handler = json!({ "async": false, "command": command, "timeout": TIME_LIMIT.as_secs(), "type": "command" });
    let mut identity = Map::new();
    identity.insert("event_name".into(), label.into());
    identity.insert("hooks".into(), Value::Array(vec![handler]));
    if let Some(matcher) = matcher {
        identity.insert("matcher".into(), matcher.into());
    }
    // Members of a map are sorted.
    format!("sha256:{}", file::hash(&Value::Object(identity).to_string()))
}

/// The records that make Codex run the hooks that are in `text` at `path`.
fn trust_records(request: &Request<'_>, path: &Path, text: &str) -> Vec<TomlEdit> {
    let command = request.line("codex", None);
    EVENTS
        .iter()
        .filter_map(|(event, label, matcher)| {
            let groups = setting(text, &["hooks", event])?;
            let ours = hook_group(request, *matcher).value();
            let index = groups.as_array()?.iter().rposition(|group| *group == ours)?;
            let key = format!("{}:{label}:{index}:0", path.display());
            Some(TomlEdit {
                path: vec!["hooks".into(), "state".into(), key, "trusted_hash".into()],
                value: Scalar::Text(trust_hash(label, *matcher, &command)),
                replaces: true,
                optional: false,
            })
        })
        .collect()
}

impl Recipe for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex CLI"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["codex"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        directory(surroundings)
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let layer = layer(request.scope, request.surroundings);
        let edits = EVENTS
            .iter()
            .map(|(event, _, matcher)| JsonEdit::element(&["hooks", event], hook_group(request, *matcher)));
        let mut changes = vec![Change { path: layer.join("hooks.json"), content: Content::Json(edits.collect()) }];
        if !request.mirror.is_empty() && request.scope != Scope::Managed {
            let text = mirror::codex(request.mirror, &request.surroundings.home.to_string_lossy());
            changes.push(Change {
                path: layer.join("rules/callgate.rules"),
                content: Content::Whole { text, executable: false },
            });
        }
        let mut advice = Vec::new();
        if request.scope == Scope::Managed {
            let pinned = |path: &[&str]| TomlEdit {
                path: path.iter().map(|key| (*key).to_owned()).collect(),
                value: Scalar::Truth(true),
                replaces: false,
                optional: true,
            };
            changes.push(Change {
                path: layer.join("requirements.toml"),
                content: Content::Toml(vec![pinned(&["allow_managed_hooks_only"]), pinned(&["features", "hooks"])]),
            });
        } else if !request.trust {
            advice.push(
                "Codex skips hooks that you have not trusted, without a word: type /hooks in Codex and trust them, or install with --trust"
                    .to_owned(),
            );
        }
        advice.push(
            "what is typed into a running program (write_stdin) reaches no hook: keep Codex's own sandbox on (workspace-write)"
                .to_owned(),
        );
        Some(Plan {
            changes,
            canary: Canary {
                start: Start::Shell("/bin/sh", request.line(self.name(), None)),
                environment: Vec::new(),
                payload: |probe| probe.tool_event("PreToolUse", "Bash"),
                answers: Answers::ClaudeLike,
            },
            advice,
        })
    }

    fn afterwards(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Vec<Change> {
        if !request.trust || request.scope == Scope::Managed {
            return Vec::new();
        }
        let hooks = layer(request.scope, request.surroundings).join("hooks.json");
        let records = texts(&hooks).map(|text| trust_records(request, &hooks, &text)).unwrap_or_default();
        vec![Change { path: directory(request.surroundings).join("config.toml"), content: Content::Toml(records) }]
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![directory(surroundings).join("sessions")]
    }

    fn switched_off(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
        if request.scope == Scope::Managed {
            return None;
        }
        let configuration = directory(request.surroundings).join("config.toml");
        let text = texts(&configuration).unwrap_or_default();
        let get = |path: &[&str]| {
            toml::get(&text, &path.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()).ok().flatten()
        };
        if get(&["features", "hooks"]) == Some(Scalar::Truth(false)) {
            return Some(format!("`features.hooks` is false in {}", configuration.display()));
        }
        let hooks = layer(request.scope, request.surroundings).join("hooks.json");
        let records = trust_records(request, &hooks, &texts(&hooks)?);
        for record in records {
            let key = record.path.get(2)?;
            if get(&["hooks", "state", key, "enabled"]) == Some(Scalar::Truth(false)) {
                return Some("the hook is switched off in Codex (/hooks)".to_owned());
            }
            if toml::get(&text, &record.path).ok().flatten() != Some(record.value) {
                return Some("the hook is not trusted in Codex: type /hooks there, or install with --trust".to_owned());
            }
        }
        None
    }
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
