//! Qwen Code: Claude's events in Gemini's form.

use std::path::{Path, PathBuf};

use super::gemini::handler;
use super::{Plan, Recipe, Request, group, setting};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::surroundings::{Scope, Surroundings};

const EVENTS: &[(&str, Option<&str>)] =
    &[("PreToolUse", Some("*")), ("PostToolUse", Some("*")), ("SessionStart", None), ("SessionEnd", None)];

/// Qwen Code.
pub(super) struct Qwen;

fn settings(scope: Scope, surroundings: &Surroundings) -> Option<PathBuf> {
    match scope {
        Scope::User => Some(surroundings.home.join(".qwen/settings.json")),
        Scope::Project => Some(surroundings.project.join(".qwen/settings.json")),
        Scope::Managed => None,
    }
}

impl Recipe for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn title(&self) -> &'static str {
        "Qwen Code"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["qwen"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        surroundings.home.join(".qwen")
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let edits = EVENTS.iter().map(|(event, matcher)| {
            JsonEdit::element(&["hooks", event], group(*matcher, handler(request, self.name())))
        });
        Some(Plan {
            changes: vec![Change {
                path: settings(request.scope, request.surroundings)?,
                content: Content::Json(edits.collect()),
            }],
            canary: Canary {
                start: Start::Shell("bash", request.line(self.name(), None)),
                environment: Vec::new(),
                payload: |probe| probe.tool_event("PreToolUse", "run_shell_command"),
                answers: Answers::ClaudeLike,
            },
            advice: Vec::new(),
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![surroundings.home.join(".qwen/projects")]
    }

    fn switched_off(&self, request: &Request<'_>, texts: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
        [Scope::User, Scope::Project].into_iter().find_map(|scope| {
            let path = settings(scope, request.surroundings)?;
            let text = texts(&path)?;
            [(["hooksConfig", "enabled"].as_slice(), false), (&["disableAllHooks"], true)].into_iter().find_map(
                |(key, off)| {
                    (setting(&text, key) == Some(off.into()))
                        .then(|| format!("hooks are switched off in {}", path.display()))
                },
            )
        })
    }
}
