//! Windsurf: hooks before and after what Cascade does. Exit code 2 blocks, everything else lets it run.

use std::path::PathBuf;

use serde_json::json;

use super::{Plan, Recipe, Request, line};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::json::Node;
use crate::sighting::CANARY_SESSION;
use crate::surroundings::{Scope, Surroundings};

const EVENTS: &[&str] = &[
    "pre_read_code",
    "pre_write_code",
    "pre_run_command",
    "pre_mcp_tool_use",
    "post_read_code",
    "post_write_code",
    "post_run_command",
    "post_mcp_tool_use",
];

/// Windsurf.
pub(super) struct Windsurf;

impl Recipe for Windsurf {
    fn name(&self) -> &'static str {
        "windsurf"
    }

    fn title(&self) -> &'static str {
        "Windsurf"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["windsurf"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        surroundings.home.join(".codeium/windsurf")
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let path = match request.scope {
            Scope::User => self.home(request.surroundings).join("hooks.json"),
            Scope::Project => request.surroundings.project.join(".windsurf/hooks.json"),
            Scope::Managed => request.surroundings.machine.join("etc/windsurf/hooks.json"),
        };
        let edits = EVENTS.iter().map(|event| {
            let handler = Node::object([
                ("command", line(&request.patient_words(self.name())).into()),
                ("show_output", event.starts_with("pre_").into()),
            ]);
            JsonEdit::element(&["hooks", event], handler)
        });
        Some(Plan {
            changes: vec![Change { path, content: Content::Json(edits.collect()) }],
            canary: Canary {
                start: Start::Shell("bash", line(&request.patient_words(self.name()))),
                environment: Vec::new(),
                payload: |probe| {
                    json!({
                        "agent_action_name": "pre_run_command",
                        "trajectory_id": CANARY_SESSION,
                        "execution_id": "callgate-canary",
                        "timestamp": "1970-01-01T00:00:00Z",
                        "tool_info": { "command_line": probe.command, "cwd": probe.place() },
                    })
                },
                answers: Answers::ExitCode,
            },
            advice: vec![
                "Windsurf has no time limit to set and no rules of its own: a lost hook lets the call run".to_owned(),
            ],
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![self.home(surroundings).join("cascade")]
    }
}
