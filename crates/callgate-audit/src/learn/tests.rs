use std::sync::Arc;

use callgate::approvals::{ApprovalDecision, Question};
use callgate::assess::Assessor;
use callgate::gate::Gate;
use callgate::policy::Policy;
use serde_json::json;

use super::*;
use crate::read::Entries;
use crate::settings::Settings;
use crate::{AuditSink, Log};
use callgate::policy::SyncMode;

/// The calls of a session that ran under a policy in which little is allowed.
fn recorded(commands: &[&str]) -> (tempfile::TempDir, Settings) {
    let base = tempfile::tempdir().unwrap();
    let project = base.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let settings = Settings::at(base.path().join("audit")).sync(SyncMode::Os);
    let log = Arc::new(Log::open(settings.clone()).unwrap());
    let policy = Policy::from_yaml(BASE, "base").unwrap();
    let gate = Gate::builder()
        .policy(policy)
        .approver(|_: &Question| ApprovalDecision::Approved)
        .events(AuditSink::new(log))
        .build();
    for command in commands {
        let call = callgate::call::Call::new("Bash", json!({"command": command})).directory(&project);
        let _ = gate.check(call);
    }
    (base, settings)
}

const BASE: &str = "version: 1\ndefault: ask\nrules:\n  - name: no-ssh\n    effects: [read]\n    paths: ['~/.ssh/**']\n    action: deny\n    reason: keys\n";

fn entries(settings: &Settings) -> Vec<crate::entry::Entry> {
    Entries::open(&settings.directory).unwrap().map(|line| line.unwrap().entry).collect()
}

fn replayed(settings: &Settings, policy: &str) -> Replay {
    let judge = Assessor::new(Policy::from_yaml(policy, "new").unwrap());
    let mut done = 0;
    let replay = Replay::of(entries(settings).into_iter().map(Ok::<_, ()>), &judge, &mut |count| done = count).unwrap();
    assert_eq!(done, entries(settings).len() as u64);
    replay
}

#[test]
fn the_same_policy_changes_nothing() {
    let commands = ["ls", "git status", "cat ~/.ssh/id_rsa", "rm x", "curl https://example.com", "echo \"$X\" | sh"];
    let (_base, settings) = recorded(&commands);
    let replay = replayed(&settings, BASE);
    assert_eq!(replay.calls, 6);
    assert!(!replay.changes_anything(), "{replay:#?}");
    assert_eq!((replay.prompts_before, replay.prompts_saved()), (5, 0));
}

#[test]
fn what_a_new_policy_would_change_is_told_with_examples() {
    let (_base, settings) = recorded(&["ls", "git status", "git push", "cat ~/.ssh/id_rsa"]);
    let new = "version: 1\ndefault: ask\nrules:\n  - {name: status, commands: ['git status'], action: allow}\n  - {name: no-push, commands: ['git push **'], action: deny}\n";
    let replay = replayed(&settings, new);
    assert_eq!(replay.newly_allowed.count, 1);
    assert_eq!(replay.newly_allowed.examples[0].call, "Bash: git status");
    assert_eq!(replay.newly_refused.examples[0].rule.as_deref(), Some("no-push"));
    // the rule against keys is gone
    assert!(replay.newly_asked.count + replay.newly_allowed.count >= 1);
    assert!(replay.prompts_saved() >= 1, "{replay:#?}");
}

#[test]
fn suggestions_are_narrow_and_never_for_what_is_secret_or_not_understood() {
    let mut commands = vec!["git status"; 6];
    commands.extend(["git log --oneline", "git log -n 3", "git log -p"]);
    commands.extend(["sudo ls"; 5]);
    commands.extend(["echo $(cat x) | sh"; 5]);
    commands.extend(["curl -H 'Authorization: Bearer abcdefgh12345678' https://example.com"; 5]);
    let (_base, settings) = recorded(&commands);
    let asked: Vec<(RecordedCall, bool)> =
        entries(&settings).iter().filter_map(RecordedCall::of).map(|recorded| (recorded, true)).collect();
    let file = settings.directory.parent().unwrap().join("base.yaml");
    std::fs::write(&file, BASE).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        let path = directory.path().join("try.yaml");
        std::fs::write(&path, text).unwrap();
        Policy::from_file(&path)
    };
    let suggestions = suggest(&asked, file.to_str().unwrap(), &load, 5).unwrap();
    assert!(!suggestions.is_empty());
    assert!(suggestions[0].rule.contains("\"git status\""), "{suggestions:#?}");
    assert_eq!((suggestions[0].saves, suggestions[0].also.as_str()), (6, "nothing but this command"));
    let all: String = suggestions.iter().map(|suggestion| suggestion.rule.as_str()).collect();
    for never in ["sudo", "sh", "curl", "Bearer"] {
        assert!(!all.contains(&format!("\"{never}")), "{all}");
    }
    for suggestion in &suggestions {
        let text = format!("version: 1\nextends: {:?}\nrules:\n{}", file.to_str().unwrap(), suggestion.rule);
        load(&text).unwrap();
    }
}

#[test]
fn a_difference_between_policies_has_witnesses() {
    let directory = tempfile::tempdir().unwrap();
    let [strict, standard] = ["strict", "standard"].map(|name| Assessor::new(Policy::bundled(name).unwrap()));
    let same = compare(&standard, &standard, directory.path(), &[]);
    assert!(same.looser.is_empty() && same.tighter.is_empty() && same.compared > 60, "{same:#?}");
    let difference = compare(&strict, &standard, directory.path(), &[]);
    assert!(!difference.looser.is_empty());
    let back = compare(&standard, &strict, directory.path(), &[]);
    assert_eq!(back.tighter.len(), difference.looser.len());
    let only = Assessor::new(
        Policy::from_yaml(
            "version: 1\nextends: standard\nrules:\n  - {name: p, commands: ['git push'], action: allow}\n",
            "x",
        )
        .unwrap(),
    );
    let looser = compare(&standard, &only, directory.path(), &[]).looser;
    assert!(
        looser.iter().any(|witness| witness.call == "git push" && witness.rule.as_deref() == Some("p")),
        "{looser:#?}"
    );
}
