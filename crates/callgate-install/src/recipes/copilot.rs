//! GitHub Copilot CLI: a file of hooks of its own. A failed hook blocks; only a hook that is too slow does not.

use std::path::PathBuf;

use serde_json::json;

use super::{Plan, Recipe, Request, TIME_LIMIT};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::json::Node;
use crate::sighting::CANARY_SESSION;
use crate::surroundings::{Scope, Surroundings};

const EVENTS: &[&str] = &["preToolUse", "postToolUse", "sessionStart", "sessionEnd"];

/// GitHub Copilot CLI.
pub(super) struct Copilot;

fn directory(surroundings: &Surroundings) -> PathBuf {
    surroundings.agent_home("COPILOT_HOME", ".copilot")
}

impl Recipe for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn title(&self) -> &'static str {
        "GitHub Copilot CLI"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["copilot"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        directory(surroundings)
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let path = match request.scope {
            Scope::User => directory(request.surroundings).join("hooks/callgate.json"),
            Scope::Project => request.surroundings.project.join(".github/hooks/callgate.json"),
            Scope::Managed => request.surroundings.machine.join("etc/github-copilot/policy.d/callgate.json"),
        };
        let mut edits = vec![JsonEdit::member(&[], "version", 1_u64.into())];
        // Its payload does not say which event it is.
        edits.extend(EVENTS.iter().map(|event| {
            let handler = Node::object([
                ("type", "command".into()),
                ("bash", request.line(self.name(), Some(event)).into()),
                ("timeoutSec", TIME_LIMIT.as_secs().into()),
            ]);
            JsonEdit::element(&["hooks", event], handler)
        }));
        Some(Plan {
            changes: vec![Change { path, content: Content::Json(edits) }],
            canary: Canary {
                start: Start::Shell("bash", request.line(self.name(), Some("preToolUse"))),
                environment: Vec::new(),
                payload: |probe| {
                    json!({
                        "sessionId": CANARY_SESSION,
                        "timestamp": 0,
                        "cwd": probe.place(),
                        "toolName": "bash",
                        "toolArgs": { "command": probe.command, "description": "callgate" },
                    })
                },
                answers: Answers::PermissionDecision,
            },
            advice: Vec::new(),
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        let home = directory(surroundings);
        vec![home.join("session-state"), home.join("history-session-state")]
    }
}
