//! Checks the examples of rules by assessing them like real calls.

use std::sync::{Arc, Mutex};

use callgate_model::description::Description;
use callgate_model::effect::Effect;

use super::Assessor;
use crate::path::boundary::HostDirectories;
use crate::path::file_system::EmptyFileSystem;
use crate::policy::{CheckedExamples, ExampleCall, RuleExample};

/// The project and home of examples, both without files, on every machine.
const WORKSPACE: &str = "/project";
const HOME: &str = "/home/user";

impl Assessor {
    /// Checks the `matches` and `misses` of the policy's rules. Each example is a call in an empty project, so the result is the
    /// same on every machine.
    pub fn check_examples(&self) -> Vec<CheckedExamples> {
        let Some(policy) = &self.policy else { return Vec::new() };
        let examples = Assessor {
            policy: Some(policy.clone()),
            boundary: self.boundary.clone(),
            registry: self.registry.clone(),
            redactor: self.redactor.clone(),
            host: HostDirectories {
                home: Some(HOME.into()),
                temporary: vec!["/tmp".into(), "/var/tmp".into()],
                programs: vec![],
            },
            file_system: Arc::new(EmptyFileSystem),
            sandbox: crate::policy::SandboxSupport::Missing,
            hardening: self.hardening,
            programs: self.programs.clone(),
            boundaries: Mutex::default(),
        };
        policy.check_examples(&|example| examples.example(example))
    }

    fn example(&self, example: &RuleExample) -> ExampleCall {
        let call = example.call().directory(WORKSPACE).workspace(WORKSPACE);
        let description = match self.assess(&call) {
            Ok(assessment) => assessment.description,
            Err(refusal) => Description::of_effects("unknown", vec![Effect::opaque(refusal.reason)]),
        };
        let claims = self.registry.claims(&call.tool).clone();
        ExampleCall { call, description, claims }
    }
}
