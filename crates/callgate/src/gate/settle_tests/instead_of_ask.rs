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
fn a_rule_changes_the_decision_that_it_stands_in_for() {
    for (action, replaced) in [("ask", "ask"), ("allow", "allow"), ("contain", "allow"), ("allow", "deny")] {
        let policy = with(&format!("{{name: x, commands: [make], action: {action}, instead_of: {replaced}}}"));
        assert!(Policy::from_yaml(&policy, "test.yaml").is_err(), "{action} instead of {replaced}");
    }
}

#[test]
fn a_rule_that_tightens_hides_no_deny_and_always_answers_its_questions() {
    let with_allow = |policy: String| {
        policy.replace("rules:\n", "rules:\n  - {name: quiet, commands: ['git status **'], action: allow}\n")
    };
    assert_eq!(decision(&with_allow(POLICY.to_owned()), "git status"), Decision::Allow);
    let quiet = with_allow(with("{name: tight, commands: ['git **'], action: ask, instead_of: allow}"));
    assert_eq!(decision(&quiet, "git status"), Decision::Ask);
    assert_eq!(decision(&quiet, "git push --force"), Decision::Deny);
    let always = quiet.replace(
        "rules:\n",
        "rules:\n  - {name: always, commands: ['git status **'], action: allow, instead_of: ask}\n",
    );
    assert_eq!(decision(&always, "git status"), Decision::Allow);
}

#[test]
fn doubt_about_a_deny_is_answered_by_a_deny_only() {
    let doubtful = "git push $x";
    for (rule, expected) in [
        ("{name: always, commands: ['git push **'], action: allow, instead_of: ask}", Decision::Ask),
        ("{name: never, commands: ['git push **'], action: deny, instead_of: ask}", Decision::Deny),
    ] {
        assert_eq!(decision(&with(rule), doubtful), expected, "{rule}");
    }
}

#[test]
fn lint_finds_nothing_swallowed_by_it() {
    let policy = with("{name: always, commands: ['git push **'], action: allow, instead_of: ask}");
    let policy = Policy::from_yaml(&policy, "test.yaml").unwrap();
    assert_eq!(crate::policy::lint(&policy).iter().filter(|finding| finding.code == "swallowed").count(), 0);
}
