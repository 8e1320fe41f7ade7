//! OpenCode: a plugin that hands every call to the hook and stops it unless the answer is a clear yes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{InstallPlan, InstallRequest, Recipe, TIME_LIMIT};
use crate::content::{FileContent, OWN_FILE, SettingsChange};
use crate::environment::InstallScope;
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

pub(super) fn plan(recipe: &Recipe, request: &InstallRequest<'_>) -> Option<InstallPlan> {
    let environment = request.environment;
    let (plugins, settings) = match request.scope {
        InstallScope::User => {
            (environment.path("config:opencode/plugin"), settings(&environment.path("config:opencode")))
        }
        InstallScope::Project => (environment.path("project:.opencode/plugin"), settings(&environment.project)),
        InstallScope::Managed => return None,
    };
    let words = recipe.words(request, "");
    let text = plugin(&words);
    let mut plan = recipe.plan_with(words, Vec::new())?;
    plan.add_file(plugins.join("callgate.js"), text, false);
    if !request.denies.is_empty() {
        let edits = request.denies.iter().map(|deny| {
            let (permission, pattern) = hard_denies::opencode(deny);
            JsonEdit::member(&["permission", permission], &pattern, "deny".into()).if_possible()
        });
        plan.changes.push(SettingsChange { path: settings, content: FileContent::Json(edits.collect()) });
    }
    Some(plan)
}
