//! Rules that stand in for a question.

use super::*;

fn of(policy: &str, call: &Call) -> Decision {
    let gate = under(policy, &person(ApprovalDecision::Denied), &Arc::new(MemoryStore::new()));
    gate.assess(call).unwrap().ruling().decision
}

fn decision(policy: &str, command: &str) -> Decision {
    of(policy, &call("Bash", json!({"command": command})))
}

fn with(rule: &str) -> String {
    POLICY.replace(
        "rules:\n",
        &format!("rules:\n  - {rule}\n  - {{name: no-force, commands: ['git push ** --force **'], action: deny}}\n"),
    )
}

#[test]
fn a_rule_in_front_of_a_deny_answers_questions_and_overturns_nothing() {
    let broad = with("{name: always, commands: ['git push **'], action: allow, instead_of: ask}");
    assert_eq!(decision(POLICY, "git push"), Decision::Ask);
    assert_eq!(decision(&broad, "git push"), Decision::Allow);
    assert_eq!(decision(&broad, "git push --force"), Decision::Deny);
    assert_eq!(decision(&broad, "git push; make"), Decision::Ask);
    let plain = with("{name: always, commands: ['git push **'], action: allow}");
    assert_eq!(decision(&plain, "git push --force"), Decision::Allow, "this is what it is for");
    let files = with("{name: always, effects: [write], paths: ['/ws/**'], action: allow, instead_of: ask}");
    let writing = |path: &str| of(&files, &write(path, "x"));
    assert_eq!(of(POLICY, &write("/ws/a.txt", "x")), Decision::Ask);
    assert_eq!(writing("/ws/a.txt"), Decision::Allow);
    assert_eq!(writing("/ws/.env"), Decision::Deny);
    assert_eq!(writing("/srv/a.txt"), Decision::Deny, "the boundary stands");
}

#[test]
fn only_an_answer_can_stand_in_for_a_question() {
    for action in ["ask", "deny"] {
        let policy = with(&format!("{{name: x, commands: [make], action: {action}, instead_of: ask}}"));
        assert!(Policy::from_yaml(&policy, "test.yaml").is_err(), "{action}");
    }
    let policy = with("{name: x, commands: [make], action: allow, instead_of: deny}");
    assert!(Policy::from_yaml(&policy, "test.yaml").is_err());
}

#[test]
fn lint_finds_nothing_swallowed_by_it() {
    let policy = with("{name: always, commands: ['git push **'], action: allow, instead_of: ask}");
    let policy = Policy::from_yaml(&policy, "test.yaml").unwrap();
    assert_eq!(crate::policy::lint(&policy).iter().filter(|finding| finding.code == "swallowed").count(), 0);
}
