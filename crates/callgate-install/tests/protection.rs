//! What is installed is out of the agents' reach.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use std::path::{Path, PathBuf};

use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate};
use callgate_install::{HostEnvironment, InstallReceipt, InstallScope, all};
use serde_json::json;

/// Every file that is written for any agent in any scope, with its backup, and what callgate keeps itself.
fn written(environment: &HostEnvironment) -> Vec<PathBuf> {
    let mut paths = vec![
        environment.own_data().join("trusted"),
        environment.own_state().join("audit/000001.jsonl"),
        environment.own_state().join("receipts/claude.json"),
        environment.configuration.join("callgate/callgate.yaml"),
    ];
    for recipe in all() {
        for scope in InstallScope::ALL {
            for path in recipe.files(scope, environment) {
                let mut backup = path.clone().into_os_string();
                backup.push(".callgate-backup");
                paths.extend([path, backup.into()]);
            }
            paths.push(InstallReceipt::path(environment, recipe.name(), scope));
        }
    }
    paths
}

#[test]
fn no_agent_writes_or_removes_what_was_installed() {
    let mut environment = HostEnvironment::of_home(Path::new("/home/me"));
    environment.project = "/home/me/project".into();
    for name in ["strict", "standard", "relaxed", "permissive", "unattended"] {
        let gate = Gate::builder().policy(Policy::bundled(name).expect("bundled")).build();
        let decision = |call: Call| {
            let call = call.directory(&environment.project).workspace(&environment.project);
            gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
        };
        for path in written(&environment) {
            // A project's own settings for OpenCode hold more than what callgate puts in: a person is asked there, unless
            // everything in the project is the agent's.
            let wanted: &[Decision] = if path == environment.project.join("opencode.json") {
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
