//! Cursor: `hooks.json`, with `failClosed`, without which every failure lets the call run.

use std::path::PathBuf;

use serde_json::json;

use super::{Plan, Recipe, Request, TIME_LIMIT};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit};
use crate::json::Node;
use crate::sighting::CANARY_SESSION;
use crate::surroundings::{Scope, Surroundings};

const EVENTS: &[&str] = &["preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"];

/// Cursor.
pub(super) struct Cursor;

impl Recipe for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["cursor", "cursor-agent"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        surroundings.home.join(".cursor")
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let path = match request.scope {
            Scope::User => request.surroundings.home.join(".cursor/hooks.json"),
            Scope::Project => request.surroundings.project.join(".cursor/hooks.json"),
            Scope::Managed => request.surroundings.machine.join("etc/cursor/hooks.json"),
        };
        let mut edits = vec![JsonEdit::member(&[], "version", 1_u64.into())];
        edits.extend(EVENTS.iter().map(|event| {
            let handler = Node::object([
                ("command", request.line(self.name(), None).into()),
                ("timeout", TIME_LIMIT.as_secs().into()),
                ("failClosed", true.into()),
            ]);
            JsonEdit::element(&["hooks", event], handler)
        }));
        Some(Plan {
            changes: vec![Change { path, content: Content::Json(edits) }],
            canary: Canary {
                start: Start::Shell("/bin/sh", request.line(self.name(), None)),
                environment: Vec::new(),
                payload: |probe| {
                    json!({
                        "conversation_id": CANARY_SESSION,
                        "generation_id": "callgate-canary",
                        "model": "none",
                        "session_id": CANARY_SESSION,
                        "hook_event_name": "beforeShellExecution",
                        "cursor_version": "0",
                        "workspace_roots": [probe.place()],
                        "command": probe.command,
                        "cwd": probe.place(),
                        "sandbox": false,
                    })
                },
                answers: Answers::Permission,
            },
            advice: Vec::new(),
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![surroundings.home.join(".cursor/projects"), surroundings.home.join(".cursor/chats")]
    }
}
