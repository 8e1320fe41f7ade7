//! OpenCode: a plugin of our own, which hands every call to the hook and stops it whenever the answer is not a clear yes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Plan, Recipe, Request, TIME_LIMIT};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit, OWN_FILE};
use crate::mirror;
use crate::surroundings::{Scope, Surroundings};

const PLUGIN: &str = include_str!("opencode.js");

/// OpenCode.
pub(super) struct OpenCode;

fn directory(surroundings: &Surroundings) -> PathBuf {
    surroundings.configuration.join("opencode")
}

/// The plugin for this program.
fn plugin(words: &[String]) -> String {
    let command = Value::from(words).to_string();
    PLUGIN
        .replace("OWN_FILE", OWN_FILE)
        .replace("[\"COMMAND\"]", &command)
        .replace("\"TIME_LIMIT\"", &TIME_LIMIT.as_millis().to_string())
}

/// The settings file that is there, or the usual one.
fn settings(directory: &Path) -> PathBuf {
    ["opencode.jsonc", "opencode.json"]
        .into_iter()
        .map(|name| directory.join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| directory.join("opencode.json"))
}

impl Recipe for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn title(&self) -> &'static str {
        "OpenCode"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["opencode"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        directory(surroundings)
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        let (plugins, settings) = match request.scope {
            Scope::User => {
                let directory = directory(request.surroundings);
                (directory.join("plugin"), settings(&directory))
            }
            Scope::Project => {
                let project = &request.surroundings.project;
                (project.join(".opencode/plugin"), settings(project))
            }
            Scope::Managed => return None,
        };
        let words = request.words(self.name(), None);
        let content = Content::Whole { text: plugin(&words), executable: false };
        let mut changes = vec![Change { path: plugins.join("callgate.js"), content }];
        if !request.mirror.is_empty() {
            let edits = request.mirror.iter().map(|deny| {
                let (permission, pattern) = mirror::opencode(deny);
                JsonEdit::member(&["permission", permission], &pattern, "deny".into()).if_possible()
            });
            changes.push(Change { path: settings, content: Content::Json(edits.collect()) });
        }
        Some(Plan {
            changes,
            canary: Canary {
                start: Start::Program(words),
                environment: vec![("OPENCODE", "1")],
                payload: |probe| {
                    let mut payload = probe.tool_event("PreToolUse", "bash");
                    if let Some(payload) = payload.as_object_mut() {
                        payload.insert("client".into(), "opencode".into());
                    }
                    payload
                },
                answers: Answers::Explicit,
            },
            advice: vec!["`opencode --pure` starts without plugins, and so without callgate".to_owned()],
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![surroundings.data.join("opencode/storage/session")]
    }
}
