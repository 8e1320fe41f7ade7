//! Amp: a rule that delegates every tool to a program. Amp starts it without arguments, so there is a small script.

use super::{InstallPlan, InstallRequest, Recipe};
use callgate_model::quote::shell_words;

use crate::content::{FileContent, OWN_FILE, SettingsChange};
use crate::environment::InstallScope;
use crate::json::JsonEdit;
use crate::settings::SettingsNode;

pub(super) fn plan(recipe: &Recipe, request: &InstallRequest<'_>) -> Option<InstallPlan> {
    if request.scope != InstallScope::User {
        return None;
    }
    let script = request.environment.own_data().join("hooks/amp");
    let text = format!(
        "#!/bin/sh\n# {OWN_FILE}: Amp starts delegates without arguments.\nexec {}\n",
        shell_words(recipe.words(request, ""))
    );
    let to = script.to_string_lossy().into_owned();
    let rule = SettingsNode::object([("tool", "*".into()), ("action", "delegate".into()), ("to", to.as_str().into())]);
    let mut plan = recipe.plan_with(vec![to], Vec::new())?;
    plan.add_file(script, text, true);
    // The first rule that matches decides.
    let edit = JsonEdit::element(&["amp.permissions"], rule).before_others();
    plan.changes.push(SettingsChange {
        path: request.environment.path("config:amp/settings.json"),
        content: FileContent::Json(vec![edit]),
    });
    Some(plan)
}
