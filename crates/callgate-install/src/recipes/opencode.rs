//! OpenCode: a plugin that hands every call to the hook and stops it unless the answer is a clear yes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{InstallPlan, Recipe, TIME_LIMIT, timeout_options};
use crate::canary::{AnswerForm, Canary, HookStart};
use crate::content::{FileContent, OWN_FILE, SettingsChange};
use crate::environment::InstallScope;
use crate::environment::Location::{Configuration, Data, Project};
use crate::hard_denies;
use crate::json::JsonEdit;

const PLUGIN: &str = include_str!("opencode.js");

/// The plugin for a hook command.
fn plugin(words: &[String]) -> String {
    PLUGIN
        .replace("OWN_FILE", OWN_FILE)
        .replace("[\"COMMAND\"]", &Value::from(words).to_string())
        .replace("\"TIME_LIMIT\"", &TIME_LIMIT.as_millis().to_string())
}

/// The existing settings file, or the usual one.
fn settings(directory: &Path) -> PathBuf {
    let (jsonc, json) = (directory.join("opencode.jsonc"), directory.join("opencode.json"));
    if jsonc.exists() { jsonc } else { json }
}

pub(super) static OPENCODE: Recipe = Recipe {
    name: "opencode",
    programs: &["opencode"],
    home: Configuration("opencode"),
    sessions: &[Data("opencode/storage/session")],
    plan: |request| {
        let (plugins, settings) = match request.scope {
            InstallScope::User => {
                let directory = request.environment.path(Configuration("opencode"));
                (directory.join("plugin"), settings(&directory))
            }
            InstallScope::Project => {
                (request.environment.path(Project(".opencode/plugin")), settings(&request.environment.project))
            }
            InstallScope::Managed => return None,
        };
        let words = request.words("opencode", &timeout_options());
        let mut plan = InstallPlan {
            changes: Vec::new(),
            canary: Canary {
                start: HookStart::Program(words.clone()),
                environment: vec![("OPENCODE", "1")],
                payload: |call| {
                    let mut payload = call.tool_event("PreToolUse", "bash");
                    if let Some(payload) = payload.as_object_mut() {
                        payload.insert("client".into(), "opencode".into());
                    }
                    payload
                },
                answers: AnswerForm::Explicit,
            },
            advice: vec!["`opencode --pure` starts without plugins, and so without callgate".to_owned()],
        };
        plan.add_file(plugins.join("callgate.js"), plugin(&words));
        if !request.denies.is_empty() {
            let edits = request.denies.iter().map(|deny| {
                let (permission, pattern) = hard_denies::opencode(deny);
                JsonEdit::member(&["permission", permission], &pattern, "deny".into()).if_possible()
            });
            plan.changes.push(SettingsChange { path: settings, content: FileContent::Json(edits.collect()) });
        }
        Some(plan)
    },
    ..Recipe::BASE
};
