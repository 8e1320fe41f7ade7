//! Ways to get more than was approved.

use super::*;

fn shell(command: &str) -> Call {
    call("Bash", json!({"command": command}))
}

#[test]
fn a_sessions_rule_for_a_command_covers_neither_redirections_nor_a_changed_environment() {
    let setting = setting(ApprovalDecision::Denied);
    *setting.person.says.lock().unwrap() =
        Answer { proposal: Some(0), ..Answer::new(ApprovalDecision::ApprovedForSession) };
    assert!(setting.passes(shell("make all")));
    *setting.person.says.lock().unwrap() = Answer::new(ApprovalDecision::Denied);
    assert!(setting.passes(shell("make all")));
    for more in [
        "make all > a.txt",
        "make all 2>> a.txt",
        "LD_PRELOAD=./x.so make all",
        "PATH=.:$PATH make all",
        "make all; make clean",
        "make all $(rm x)",
        "sudo make all",
        "env make all",
        "cd sub && make all && ./x",
        "make all -f evil.mk",
    ] {
        assert!(!setting.passes(shell(more)), "{more}");
    }
}

#[test]
fn a_rule_that_would_write_a_secret_down_is_not_proposed() {
    let setting = setting(ApprovalDecision::Denied);
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for command in [
        format!("make TOKEN={secret}"),
        format!("curl -H 'Authorization: Bearer {secret}' https://x.example"),
        "mysql --password hunter2secret db".to_owned(),
        format!("touch /ws/{secret}"),
    ] {
        let _ = setting.gate.check(shell(&command));
        let question = setting.person.asked.lock().unwrap().pop().unwrap();
        let text = serde_json::to_string(&question).unwrap();
        assert!(!text.contains(secret) && !text.contains("hunter2secret"), "{text}");
        assert!(!question.proposals.iter().any(|proposal| matches!(proposal.extent, Extent::Words(_))), "{text}");
    }
}

#[test]
fn why_no_rule_can_help_is_said() {
    let setting = setting(ApprovalDecision::Denied);
    let outside = POLICY.replace("roots: [\".\"]", "roots: [\".\"]\n  outside: ask");
    let gate = under(&outside, &setting.person, &setting.store);
    let said = |gate: &Gate, call: Call| {
        let _ = gate.check(call);
        let question = setting.person.asked.lock().unwrap().pop().unwrap();
        assert!(question.proposals.is_empty(), "{question:?}");
        question.no_proposal.unwrap()
    };
    assert!(said(&gate, write("/srv/x", "x")).contains("boundary"));
    assert!(said(&setting.gate, shell("make; touch x")).contains("several commands"));
    assert!(said(&setting.gate, shell("make $x")).contains("known only at run time"));
    assert!(said(&setting.gate, shell("env make")).contains("wrapper"));
    assert!(said(&setting.gate, shell("make PASSWORD=hunter2secret")).contains("secret"));
}

#[test]
fn a_call_that_no_sandbox_can_contain_burns_no_grant_and_asks_nobody() {
    let policy = POLICY
        .replace("rules:\n", "rules:\n  - {name: contained, commands: ['make **'], effects: [run], action: contain}\n");
    let (person, store) = (person(ApprovalDecision::Approved), Arc::new(MemoryStore::new()));
    let gate = under(&policy, &person, &store);
    store.grant(&Terms::for_any("Bash").uses(9.try_into().unwrap()), Timestamp::now()).unwrap();
    let refused = gate.check(shell("make all > a.txt")).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::SandboxDenied);
    assert_eq!(store.grants().unwrap()[0].left.get(), 9);
    assert!(person.asked.lock().unwrap().is_empty());
}

#[test]
fn what_nobody_can_read_is_not_asked() {
    let setting = setting(ApprovalDecision::Approved);
    let fields: serde_json::Map<String, Value> =
        (0..8).map(|number| (format!("text{number}"), json!("a ".repeat(100_000)))).collect();
    let refused = setting.refusal(call("mcp__x__y", Value::Object(fields)));
    assert_eq!(refused.kind, RefusalKind::HumanRequired);
    assert_eq!(setting.asked(), 0);
    assert!(setting.passes(write("/ws/a.txt", "x")), "the next call works");
}

#[test]
fn an_answer_that_names_a_proposal_that_is_none_remembers_the_exact_request_only() {
    let setting = setting(ApprovalDecision::Denied);
    *setting.person.says.lock().unwrap() =
        Answer { proposal: Some(99), ..Answer::new(ApprovalDecision::ApprovedForSession) };
    assert!(setting.passes(write("/ws/a.txt", "x")));
    *setting.person.says.lock().unwrap() = Answer::new(ApprovalDecision::Denied);
    assert!(setting.passes(write("/ws/a.txt", "x")));
    assert!(!setting.passes(write("/ws/a.txt", "y")));
}

#[test]
fn a_policy_that_got_stricter_is_not_overturned_by_what_the_session_remembers() {
    let (person, store) = (person(ApprovalDecision::ApprovedForSession), Arc::new(MemoryStore::new()));
    let lenient = under(POLICY, &person, &store);
    assert!(lenient.check(shell("make all")).is_ok());
    let strict = POLICY.replace("rules:\n", "rules:\n  - {name: no-make, commands: ['make **'], action: deny}\n");
    assert!(under(&strict, &person, &store).check(shell("make all")).is_err());
}

#[test]
fn a_script_that_was_changed_after_it_was_approved_is_asked_about_again() {
    let directory = tempfile::tempdir().unwrap();
    let person = person(ApprovalDecision::ApprovedForSession);
    let gate = Gate::builder()
        .policy(Policy::from_yaml(POLICY, "test.yaml").unwrap())
        .approvals(Approvals::in_memory(person.clone()))
        .build();
    let script = directory.path().join("build.sh");
    for command in ["./build.sh", "bash build.sh", "cd . && bash ./build.sh"] {
        std::fs::write(&script, "echo hi\n").unwrap();
        person.asked.lock().unwrap().clear();
        let run = || {
            let call = Call::new("Bash", json!({"command": command})).session("s-1").directory(directory.path());
            assert!(gate.check(call).is_ok());
            person.asked.lock().unwrap().len()
        };
        assert_eq!((run(), run()), (1, 1), "{command}: unchanged");
        std::fs::write(&script, "rm -rf ~\n").unwrap();
        assert_eq!(run(), 2, "{command}: changed");
        std::fs::remove_file(&script).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&script).status().unwrap().success());
        assert_eq!((run(), run()), (3, 4), "{command}: what cannot be read is never remembered");
        std::fs::remove_file(&script).unwrap();
    }
}
