//! The examples that rules carry, judged the way real calls are.

use super::Gate;
use crate::call::{Call, Origin};
use crate::describe::{Context, Description};
use crate::path::boundary::{Settled, Surroundings};
use crate::policy::{CheckedExamples, Described, Example};

/// Where examples happen, whoever checks them: a project and a home that need not exist.
const WORKSPACE: &str = "/project";
const HOME: &str = "/home/user";

impl Gate {
    /// Checks the `matches` and `misses` of the policy's own files, each as a call made in a project of its own.
    pub fn check_examples(&self) -> Vec<CheckedExamples> {
        match &self.policy {
            Some(policy) => {
                let surroundings =
                    Surroundings { home: Some(HOME.into()), temporary: vec!["/tmp".into(), "/var/tmp".into()] };
                let here = Origin { workspace: Some(WORKSPACE.into()), ..Origin::default() };
                let settled = self.boundary.settle(&here, &surroundings, self.file_system.as_ref());
                policy.check_examples(&|example| self.described(example, &surroundings, &settled))
            }
            None => Vec::new(),
        }
    }

    fn described(&self, example: &Example, surroundings: &Surroundings, settled: &Settled) -> Described {
        let call = match example {
            Example::Command(command) => Call::new("Bash", serde_json::json!({ "command": command })),
            Example::Call { tool, input } => Call::new(tool.as_str(), input.clone()),
        };
        let call = call.directory(WORKSPACE).workspace(WORKSPACE);
        let mut context = Context::of(&call, surroundings);
        context.programs.clone_from(&self.programs);
        let mut description = self
            .registry
            .describe(&call, &context)
            .unwrap_or_else(|error| Description::of_effects("unknown", vec![opaque(error.to_string())]));
        settled.apply(&mut description, self.file_system.as_ref());
        let claims = self.registry.claims(&call.tool).clone();
        Described { call, description, claims }
    }
}

fn opaque(why: String) -> callgate_shell::effect::Effect {
    callgate_shell::effect::Effect {
        action: callgate_shell::effect::Action::Opaque,
        target: callgate_shell::effect::Target::Text(why),
        marks: Vec::new(),
        because: String::new(),
    }
}
