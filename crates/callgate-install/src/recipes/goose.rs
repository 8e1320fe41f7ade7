//! Goose: a plugin directory with hooks. Only exit code 2 and an explicit block stop a call.

use std::path::PathBuf;

use serde_json::json;

use super::{Plan, Recipe, Request, TIME_LIMIT, group};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::json::Node;
use crate::sighting::CANARY_SESSION;
use crate::surroundings::{Scope, Surroundings};

const EVENTS: &[&str] = &["PreToolUse", "PostToolUse"];

/// Goose.
pub(super) struct Goose;

impl Recipe for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn title(&self) -> &'static str {
        "Goose"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["goose"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        surroundings.configuration.join("goose")
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let plugins = match request.scope {
            Scope::User => request.surroundings.home.join(".agents/plugins/callgate"),
            Scope::Project => request.surroundings.project.join(".agents/plugins/callgate"),
            Scope::Managed => return None,
        };
        let handler = || {
            Node::object([
                ("type", "command".into()),
                ("command", request.line(self.name(), None).into()),
                ("timeout", TIME_LIMIT.as_secs().into()),
            ])
        };
        let hooks = EVENTS.iter().map(|event| JsonEdit::element(&["hooks", event], group(Some(".*"), handler())));
        let manifest = vec![
            JsonEdit::member(&[], "name", "callgate".into()),
            JsonEdit::member(&[], "description", "Every tool call passes callgate".into()),
        ];
        Some(Plan {
            changes: vec![
                Change { path: plugins.join("plugin.json"), content: Content::Json(manifest) },
                Change { path: plugins.join("hooks/hooks.json"), content: Content::Json(hooks.collect()) },
            ],
            canary: Canary {
                start: Start::Shell("/bin/sh", request.line(self.name(), None)),
                environment: Vec::new(),
                payload: |probe| {
                    json!({
                        "event": "PreToolUse",
                        "session_id": CANARY_SESSION,
                        "matcher_context": "developer__shell",
                        "tool_name": "developer__shell",
                        "tool_input": { "command": probe.command },
                        "working_dir": probe.place(),
                    })
                },
                answers: Answers::ExitCode,
            },
            advice: vec![
                "Goose lets a call run when its hook is lost; set GOOSE_MODE=approve where that matters".to_owned(),
            ],
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![surroundings.data.join("goose/sessions")]
    }
}
