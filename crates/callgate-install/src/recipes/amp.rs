//! Amp: a rule that delegates every tool to a program. Amp starts it without arguments, so there is a small script.

use serde_json::json;

use super::{InstallPlan, Recipe, line};
use crate::canary::{AnswerForm, Canary, HookStart};
use crate::content::{FileContent, OWN_FILE, SettingsChange};
use crate::environment::InstallScope;
use crate::environment::Location::{Configuration, Data};
use crate::json::JsonEdit;
use crate::settings::SettingsNode;
use crate::sighting::CANARY_SESSION;

pub(super) static AMP: Recipe = Recipe {
    name: "amp",
    programs: &["amp"],
    home: Configuration("amp"),
    sessions: &[Data("amp/threads")],
    plan: |request| {
        if request.scope != InstallScope::User {
            return None;
        }
        let script = request.environment.own_data().join("hooks/amp");
        let text = format!(
            "#!/bin/sh\n# {OWN_FILE}: Amp starts delegates without arguments.\nexec {}\n",
            line(&request.words("amp", &[]))
        );
        let to = script.to_string_lossy().into_owned();
        let rule =
            SettingsNode::object([("tool", "*".into()), ("action", "delegate".into()), ("to", to.as_str().into())]);
        // The first rule that matches decides.
        let edit = JsonEdit::element(&["amp.permissions"], rule).before_others();
        Some(InstallPlan {
            changes: vec![
                SettingsChange { path: script, content: FileContent::Whole { text, executable: true } },
                SettingsChange {
                    path: request.environment.path(Configuration("amp/settings.json")),
                    content: FileContent::Json(vec![edit]),
                },
            ],
            canary: Canary {
                start: HookStart::Program(vec![to]),
                environment: vec![("AGENT", "amp"), ("AGENT_TOOL_NAME", "Bash"), ("AGENT_THREAD_ID", CANARY_SESSION)],
                payload: |call| json!({ "cmd": call.command }),
                answers: AnswerForm::Delegate,
            },
            advice: Vec::new(),
        })
    },
    ..Recipe::BASE
};
