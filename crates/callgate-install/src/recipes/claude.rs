//! Claude Code: `hooks` in its settings, started without a shell, blocking when they fail.

use std::path::{Path, PathBuf};

use super::{Plan, Recipe, Request, TIME_LIMIT, group, setting};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::json::Node;
use crate::mirror;
use crate::surroundings::{Scope, Surroundings};

/// The events, and whether a hook that fails must block.
const EVENTS: &[(&str, bool)] = &[
    ("PreToolUse", true),
    ("PermissionRequest", true),
    ("PostToolUse", false),
    ("PostToolUseFailure", false),
    ("SessionStart", false),
    ("SessionEnd", false),
];

/// Claude Code.
pub(super) struct Claude;

fn directory(surroundings: &Surroundings) -> PathBuf {
    surroundings.agent_home("CLAUDE_CONFIG_DIR", ".claude")
}

fn settings(scope: Scope, surroundings: &Surroundings) -> PathBuf {
    match scope {
        Scope::User => directory(surroundings).join("settings.json"),
        // The personal file: the path of a program on this machine does not belong into a repository.
        Scope::Project => surroundings.project.join(".claude/settings.local.json"),
        Scope::Managed => surroundings.machine.join("etc/claude-code/managed-settings.json"),
    }
}

impl Recipe for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["claude"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        directory(surroundings)
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let words = request.words(self.name(), None);
        let (program, arguments) = words.split_first()?;
        let mut edits = Vec::new();
        for (event, blocks) in EVENTS {
            let mut handler = vec![
                ("type".to_owned(), "command".into()),
                ("command".to_owned(), program.as_str().into()),
                ("args".to_owned(), Node::Words(arguments.to_vec())),
                ("timeout".to_owned(), TIME_LIMIT.as_secs().into()),
            ];
            if *blocks {
                handler.push(("onFailure".to_owned(), "block".into()));
            }
            edits.push(JsonEdit::element(&["hooks", event], group(Some("*"), Node::Object(handler))));
        }
        for deny in request.mirror {
            edits.push(JsonEdit::element(&["permissions", "deny"], mirror::claude(deny).into()).if_possible());
        }
        if request.scope == Scope::Managed {
            edits.push(JsonEdit::member(&[], "allowManagedHooksOnly", true.into()).if_possible());
        }
        Some(Plan {
            changes: vec![Change {
                path: settings(request.scope, request.surroundings),
                content: Content::Json(edits),
            }],
            canary: Canary {
                start: Start::Program(words),
                environment: vec![("CLAUDECODE", "1")],
                payload: |probe| probe.tool_event("PreToolUse", "Bash"),
                answers: Answers::ClaudeLike,
            },
            advice: Vec::new(),
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![directory(surroundings).join("projects")]
    }

    fn switched_off(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
        // Managed hooks do not listen to this.
        if request.scope == Scope::Managed {
            return None;
        }
        let project = request.surroundings.project.join(".claude");
        let managed = settings(Scope::Managed, request.surroundings);
        [
            settings(Scope::User, request.surroundings),
            project.join("settings.json"),
            project.join("settings.local.json"),
            managed.clone(),
        ]
        .into_iter()
        .find_map(|path| {
            let text = texts(&path)?;
            let on = |key: &str| setting(&text, &[key]) == Some(true.into());
            if on("disableAllHooks") {
                return Some(format!("`disableAllHooks` is set in {}", path.display()));
            }
            (path == managed && on("allowManagedHooksOnly"))
                .then(|| format!("{} allows managed hooks only; install with --managed", path.display()))
        })
    }
}
