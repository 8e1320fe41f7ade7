//! What is installed is out of the agents' reach.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::path::{Path, PathBuf};

use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate};
use callgate_agents::install::{HARD_DENIES, Receipt, Request, Scope, Surroundings, all};
use serde_json::json;

/// Every file that is written for any agent in any scope, with its backup, and what callgate keeps itself.
fn written(surroundings: &Surroundings) -> Vec<PathBuf> {
    let mut paths = vec![
        surroundings.own_data().join("trusted"),
        surroundings.own_state().join("audit/000001.jsonl"),
        surroundings.own_state().join("receipts/claude.json"),
        surroundings.configuration.join("callgate/callgate.yaml"),
    ];
    for recipe in all() {
        for scope in [Scope::User, Scope::Project, Scope::Managed] {
            let program = Path::new("/usr/bin/callgate");
            let request = Request { scope, program, surroundings, mirror: HARD_DENIES, trust: true };
            let Some(plan) = recipe.plan(&request) else { continue };
            let afterwards = recipe.afterwards(&request, &|_| Some(String::new()));
            for change in plan.changes.into_iter().chain(afterwards) {
                let mut backup = change.path.clone().into_os_string();
                backup.push(".callgate-backup");
                paths.extend([change.path, backup.into()]);
            }
            paths.push(Receipt::path(surroundings, recipe.name(), scope));
        }
    }
    paths
}

#[test]
fn no_agent_writes_or_removes_what_was_installed() {
    let mut surroundings = Surroundings::of_home(Path::new("/home/me"));
    surroundings.project = "/home/me/project".into();
    for name in ["strict", "standard", "permissive", "unattended"] {
        let gate = Gate::builder().policy(Policy::bundled(name).expect("bundled")).build();
        let decision = |call: Call| {
            let call = call.directory(&surroundings.project).workspace(&surroundings.project);
            gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
        };
        for path in written(&surroundings) {
            // A project's own settings for OpenCode hold more than what callgate puts in: a person is asked there, unless
            // everything in the project is the agent's.
            let wanted: &[Decision] = if path == surroundings.project.join("opencode.json") {
                if name == "permissive" { continue } else { &[Decision::Ask, Decision::Deny] }
            } else {
                &[Decision::Deny]
            };
            let write = decision(Call::new("Write", json!({ "file_path": path, "content": "x" })));
            assert!(wanted.contains(&write), "{name}: write {}: {write:?}", path.display());
            let remove = decision(Call::new("Bash", json!({ "command": format!("rm '{}'", path.display()) })));
            assert!(wanted.contains(&remove), "{name}: rm {}: {remove:?}", path.display());
        }
    }
}
