//! Amp: a rule that delegates every tool to a program. Amp starts it without arguments, so there is a small script.

use std::path::PathBuf;

use serde_json::json;

use super::{Plan, Recipe, Request, line};
use crate::canary::{Answers, Canary, Start};
use crate::change::{Change, Content, JsonEdit, OWN_FILE};
use crate::json::Node;
use crate::sighting::CANARY_SESSION;
use crate::surroundings::{Scope, Surroundings};

/// Amp.
pub(super) struct Amp;

impl Recipe for Amp {
    fn name(&self) -> &'static str {
        "amp"
    }

    fn title(&self) -> &'static str {
        "Amp"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["amp"]
    }

    fn home(&self, surroundings: &Surroundings) -> PathBuf {
        surroundings.configuration.join("amp")
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        if request.scope != Scope::User {
            return None;
        }
        let script = request.surroundings.own_data().join("hooks/amp");
        let text = format!(
            "#!/bin/sh\n# {OWN_FILE}: Amp starts delegates without arguments.\nexec {}\n",
            line(&request.patient_words(self.name()))
        );
        let to = script.to_string_lossy().into_owned();
        let rule = Node::object([("tool", "*".into()), ("action", "delegate".into()), ("to", to.clone().into())]);
        Some(Plan {
            changes: vec![
                Change { path: script, content: Content::Whole { text, executable: true } },
                Change {
                    path: self.home(request.surroundings).join("settings.json"),
                    // The first rule that matches decides.
                    content: Content::Json(vec![JsonEdit::element(&["amp.permissions"], rule).before_others()]),
                },
            ],
            canary: Canary {
                start: Start::Program(vec![to]),
                environment: vec![("AGENT", "amp"), ("AGENT_TOOL_NAME", "Bash"), ("AGENT_THREAD_ID", CANARY_SESSION)],
                payload: |probe| json!({ "cmd": probe.command }),
                answers: Answers::Delegate,
            },
            advice: Vec::new(),
        })
    }

    fn sessions(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        vec![surroundings.data.join("amp/threads")]
    }
}
