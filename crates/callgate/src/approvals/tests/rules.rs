//! Unattended runs: answers by code, deterministic, closed by default.

use std::sync::Arc;

use super::*;
use crate::store::MemoryStore;

fn decision(provider: &RuleBasedApprovalProvider, question: &Question) -> ApprovalDecision {
    provider.decide(question).decision
}

fn using(tool: &str, argv: &[&str]) -> Question {
    let words = argv.iter().map(|word| (*word).to_owned()).collect();
    Question {
        tool: tool.into(),
        request: json!({"argv": argv}),
        commands: vec![QuestionCommand { words: Some(words), wrappers: vec![] }],
        ..question()
    }
}

/// Only `pytest` may run; everything else is denied.
fn only_pytest() -> RuleBasedApprovalProvider {
    RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved)
            .when(|question| question.request["argv"][0] == "pytest"),
    ])
}

#[test]
fn a_matching_rule_approves_and_everything_else_is_denied() {
    let provider = only_pytest();
    assert_eq!(decision(&provider, &using("shell_exec", &["pytest", "-q"])), ApprovalDecision::Approved);
    assert_eq!(decision(&provider, &using("shell_exec", &["rm", "-rf", "x"])), ApprovalDecision::Denied);
    assert_eq!(decision(&provider, &using("shell_exec", &[])), ApprovalDecision::Denied);
    assert_eq!(decision(&provider, &using("file_write", &["pytest"])), ApprovalDecision::Denied);
    assert_eq!(decision(&provider, &using("mcp__x__shell_exec", &["pytest"])), ApprovalDecision::Denied);
}

#[test]
fn the_first_matching_rule_decides() {
    let provider = RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("shell_exec", ApprovalDecision::Abort).when(|question| question.request["argv"][0] == "sudo"),
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved),
        ApprovalRule::new("shell_exec", ApprovalDecision::Denied),
    ]);
    assert_eq!(decision(&provider, &using("shell_exec", &["sudo"])), ApprovalDecision::Abort);
    assert_eq!(decision(&provider, &using("shell_exec", &["ls"])), ApprovalDecision::Approved);
}

#[test]
fn an_error_or_a_panic_in_a_condition_is_no_match() {
    let provider = RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved).when_ok(|_| Err("broken".into())),
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved).when(|_| panic!("on purpose")),
    ]);
    assert_eq!(decision(&provider, &using("shell_exec", &["ls"])), ApprovalDecision::Denied);
}

#[test]
fn polling_an_approved_session_is_asked_once() {
    let provider = RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved)
            .when(|question| question.request["argv"][0] == "pytest" || question.request["argv"][0] == "python"),
        ApprovalRule::new("write_stdin", ApprovalDecision::ApprovedForSession),
    ]);
    let approvals = Approvals::new(Arc::new(MemoryStore::new()), Arc::new(provider));
    let poll = || {
        let question = Question { tool: "write_stdin".into(), ..question() };
        approvals.settle(&question, &[], &|_| false)
    };
    assert_eq!(poll().how, SettledBy::Asked);
    assert_eq!(poll().how, SettledBy::Session);
}

#[test]
fn an_unattended_run_ends_in_clean_denials_and_never_waits() {
    let approvals = Approvals::new(Arc::new(MemoryStore::new()), Arc::new(only_pytest()));
    let settlement = approvals.settle(&using("shell_exec", &["curl", "x.example"]), &[], &|_| false);
    let ApprovalOutcome::Answered(answer) = settlement.outcome else { panic!("not answered") };
    assert_eq!(answer.decision, ApprovalDecision::Denied);
    assert_eq!(answer.reason.as_deref(), Some("no approval rule covers this"));
}

mod section {
    use super::*;

    fn provider(section: &serde_json::Value) -> RuleBasedApprovalProvider {
        RuleBasedApprovalProvider::from_section(section).unwrap()
    }

    #[test]
    fn commands_are_matched_on_words() {
        let provider = provider(&json!({"rules": [
            {"tools": ["shell_exec"], "commands": ["pytest **", "cargo test", "make * -k"], "decision": "approved"},
        ]}));
        let cases: &[(&[&str], bool)] = &[
            (&["pytest"], true),
            (&["pytest", "-q", "tests"], true),
            (&["cargo", "test"], true),
            (&["cargo", "test", "--", "x"], false),
            (&["make", "all", "-k"], true),
            (&["make", "-k"], false),
            (&["pytestx"], false),
            (&["sudo", "pytest"], false),
            (&[], false),
        ];
        for (words, approved) in cases {
            assert_eq!(decision(&provider, &using("shell_exec", words)).is_yes(), *approved, "{words:?}");
        }
    }

    #[test]
    fn the_whole_call_must_fit() {
        let provider =
            provider(&json!({"rules": [{"tools": ["shell_exec"], "commands": ["pytest **"], "decision": "approved"}]}));
        let pytest = || QuestionCommand { words: Some(vec!["pytest".into()]), wrappers: vec![] };
        let with = |commands: Vec<QuestionCommand>| Question { commands, ..question() };
        assert!(decision(&provider, &with(vec![pytest(), pytest()])).is_yes());
        let others = [
            vec![],
            vec![pytest(), QuestionCommand { words: Some(vec!["rm".into()]), wrappers: vec![] }],
            vec![pytest(), QuestionCommand { words: None, wrappers: vec![] }],
            vec![QuestionCommand { wrappers: vec!["sudo".into()], ..pytest() }],
        ];
        for commands in others {
            assert!(!decision(&provider, &with(commands.clone())).is_yes(), "{commands:?}");
        }
        for mark in ["redirection", "environment"] {
            let mut question = with(vec![pytest()]);
            question.effects[0].marks.push(mark.into());
            assert!(!decision(&provider, &question).is_yes(), "{mark}");
        }
    }

    #[test]
    fn mistakes_are_errors() {
        let mistakes = [
            json!([]),
            json!({"rule": []}),
            json!({"rules": [[["x"], null, "approved", null]]}),
            json!({"rules": [{"tools": [], "decision": "approved"}]}),
            json!({"rules": [{"tools": ["x"], "decision": "yes"}]}),
            json!({"rules": [{"tools": ["x"]}]}),
            json!({"rules": [{"tools": ["x"], "decision": "approved", "comands": []}]}),
            json!({"rules": [{"tools": ["x"], "decision": "approved", "commands": [""]}]}),
            json!({"rules": [{"tools": ["x"], "decision": "approved", "commands": ["** x"]}]}),
            json!({"rules": [{"tools": ["x"], "decision": "approved", "commands": ["* x"]}]}),
            json!({"default": "maybe"}),
        ];
        for section in mistakes {
            assert!(RuleBasedApprovalProvider::from_section(&section).is_err(), "{section}");
        }
    }
}
