//! Gemini CLI: `hooks` in its settings, with time limits in milliseconds, and its own policy engine for hard denies.

use std::path::{Path, PathBuf};

use super::{Plan, Recipe, Request, TIME_LIMIT, group, setting};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::json::Node;
use crate::mirror;
use crate::surroundings::{Scope, Surroundings};

const EVENTS: &[(&str, Option<&str>)] =
    &[("BeforeTool", Some("*")), ("AfterTool", Some("*")), ("SessionStart", None), ("SessionEnd", None)];

/// Gemini CLI.
pub(super) struct Gemini;

fn layer(scope: Scope, surroundings: &Surroundings) -> PathBuf {
    match scope {
        Scope::User => surroundings.home.join(".gemini"),
        Scope::Project => surroundings.project.join(".gemini"),
        Scope::Managed => surroundings.machine.join("etc/gemini-cli"),
    }
}

/// A hook as Gemini CLI and its descendants have it.
pub(super) fn handler(request: &Request<'_>, agent: &str) -> Node {
    Node::object([
        ("type", "command".into()),
        ("name", "callgate".into()),
        ("command", request.line(agent, None).into()),
        ("timeout", u64::try_from(TIME_LIMIT.as_millis()).unwrap_or(u64::MAX).into()),
    ])
}

impl Recipe for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["gemini"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        surroundings.home.join(".gemini")
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let layer = layer(request.scope, request.surroundings);
        let edits = EVENTS.iter().map(|(event, matcher)| {
            JsonEdit::element(&["hooks", event], group(*matcher, handler(request, self.name())))
        });
        let mut changes = vec![Change { path: layer.join("settings.json"), content: Content::Json(edits.collect()) }];
        // Policies of a project are not read.
        if !request.mirror.is_empty() && request.scope != Scope::Project {
            changes.push(Change {
                path: layer.join("policies/callgate.toml"),
                content: Content::Whole { text: mirror::gemini(request.mirror), executable: false },
            });
        }
        Some(Plan {
            changes,
            canary: Canary {
                start: Start::Shell("bash", request.line(self.name(), None)),
                environment: Vec::new(),
                payload: |probe| probe.tool_event("BeforeTool", "run_shell_command"),
                answers: Answers::Decision,
            },
            advice: Vec::new(),
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![surroundings.home.join(".gemini/tmp")]
    }

    fn switched_off(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
        [Scope::User, Scope::Project, Scope::Managed].into_iter().find_map(|scope| {
            let path = layer(scope, request.surroundings).join("settings.json");
            let text = texts(&path)?;
            if setting(&text, &["hooksConfig", "enabled"]) == Some(false.into()) {
                return Some(format!("`hooksConfig.enabled` is false in {}", path.display()));
            }
            let disabled = setting(&text, &["hooksConfig", "disabled"])?;
            disabled
                .as_array()?
                .contains(&"callgate".into())
                .then(|| format!("the hook is in `hooksConfig.disabled` in {}", path.display()))
        })
    }
}
