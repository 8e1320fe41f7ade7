use std::sync::Arc;

use callgate::Gate;
use callgate::approvals::{ApprovalDecision, AskError, Question};
use callgate::call::Call;
use callgate::policy::{Decision, Policy};
use callgate_model::effect::Action;
use serde_json::json;

use super::*;
use crate::entry::Body;
use crate::settings::Settings;
use crate::sink::AuditSink;
use crate::{Log, verify};
use callgate::policy::SyncMode;

/// A log that a gate has written: what a developer's session looks like.
pub(crate) fn session() -> (tempfile::TempDir, Settings) {
    let base = tempfile::tempdir().unwrap();
    let project = base.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let settings = Settings::at(base.path().join("audit")).sync(SyncMode::Os);
    let log = Arc::new(Log::open(settings.clone()).unwrap());
    let yes = |question: &Question| {
        if question.request.to_string().contains("push") {
            Err(AskError::TimedOut)
        } else {
            Ok(ApprovalDecision::Approved)
        }
    };
    let gate =
        Gate::builder().policy(Policy::bundled("standard").unwrap()).approver(yes).events(AuditSink::new(log)).build();
    for command in ["ls", "cat ~/.ssh/id_rsa", "git push", "curl https://api.example.com/x", "rm -rf ~"] {
        let call = Call::new("Bash", json!({"command": command})).session("s-1").agent("claude").directory(&project);
        if let Ok(permit) = gate.check(call) {
            permit.run(|_| Ok::<(), ()>(())).unwrap();
        }
    }
    let call = Call::new("Read", json!({"file_path": "notes.md"})).session("s-2").directory(&project);
    if let Ok(permit) = gate.check(call) {
        let _ = permit.run(|_| Err::<(), ()>(()));
    }
    (base, settings)
}

fn found(settings: &Settings, filter: &Filter) -> Vec<String> {
    Entries::open(&settings.directory)
        .unwrap()
        .map(|line| line.unwrap().entry)
        .filter(|entry| filter.wants(entry))
        .map(|entry| format!("{} {}", entry.record.body.kind(), crate::export::summary(&entry)))
        .collect()
}

#[test]
fn the_timeline_of_a_call_is_in_order() {
    let (_base, settings) = session();
    let entries: Vec<Entry> = Entries::open(&settings.directory).unwrap().map(|line| line.unwrap().entry).collect();
    let of = |command: &str| {
        let call = entries
            .iter()
            .find(
                |entry| matches!(&entry.record.body, Body::ToolAttempt(attempt) if attempt.input["command"] == command),
            )
            .and_then(|entry| entry.record.call.clone())
            .unwrap();
        let lines = super::call(&settings.directory, &call).unwrap();
        lines.iter().filter_map(|line| timeline(&line.entry)).map(|step| step.step).collect::<Vec<_>>()
    };
    use StepName::*;
    assert_eq!(of("ls"), [ToolCallRequested, ToolCallStarted, ToolCallFinished]);
    let asked = of("curl https://api.example.com/x");
    assert_eq!(asked, [ToolCallRequested, ApprovalRequested, ApprovalDecided, ToolCallStarted, ToolCallFinished]);
    let timed_out = of("git push");
    assert_eq!(timed_out, [ToolCallRequested, ApprovalRequested, ApprovalDecided, ToolCallFinished]);
    assert!(verify::verify(&verify::Options::of(&settings)).unwrap().is_intact());
    assert_eq!(super::call(&settings.directory, "nobody").unwrap_err().kind(), "not_found");
}

#[test]
fn entries_are_found_by_what_they_say() {
    let (_base, settings) = session();
    let query = |filter: Filter| found(&settings, &filter);
    assert_eq!(
        query(Filter { session: Some("s-2".into()), kind: Some("tool_attempt".into()), ..Filter::default() }).len(),
        1
    );
    assert_eq!(query(Filter { tool: Some("Re*".into()), ..Filter::default() }).len(), 3);
    assert_eq!(query(Filter { decision: Some(Decision::Deny), ..Filter::default() }).len(), 2);
    let by_rule = query(Filter { rule: Some("no-secrets".into()), ..Filter::default() });
    assert_eq!(by_rule[0], "tool_attempt cat ~/.ssh/id_rsa");
    assert!(by_rule[1].starts_with("security_violation critical: "), "{by_rule:?}");
    let secret = query(Filter { effect: Some(Action::Read), path: Some("*/.ssh/*".into()), ..Filter::default() });
    assert_eq!(secret, ["tool_attempt cat ~/.ssh/id_rsa"]);
    let host = query(Filter { host: Some("example.com".into()), ..Filter::default() });
    assert_eq!(host, ["tool_attempt curl https://api.example.com/x"]);
    assert!(query(Filter { until: Some(crate::entry::Time(std::time::UNIX_EPOCH)), ..Filter::default() }).is_empty());
    assert!(query(Filter { since: Some(crate::entry::Time::now()), ..Filter::default() }).is_empty());
    let all = query(Filter { housekeeping: true, ..Filter::default() }).len();
    assert_eq!(all, query(Filter::default()).len() + 1, "the beginning of the segment");
}

#[test]
fn a_follower_sees_what_is_added_across_segments() {
    let (_base, settings) = session();
    let mut follow = Follow::from_end(&settings.directory).unwrap();
    assert!(follow.poll().unwrap().is_empty());
    let log = Log::open(Settings { compress: false, ..settings.clone() }).unwrap();
    let started = |call: &str| {
        let body = Body::Started(crate::entry::Started { tool: "Bash".into(), sandbox: None });
        log.append(&crate::entry::Record::new(body).call(call)).unwrap();
    };
    started("a");
    assert_eq!(follow.poll().unwrap().len(), 1);
    started("b");
    log.rotate().unwrap();
    started("c");
    let calls: Vec<Option<String>> = follow.poll().unwrap().into_iter().map(|line| line.entry.record.call).collect();
    assert_eq!(calls, [Some("b".into()), None, None, Some("c".into())]);
    log.maintain().unwrap();
    assert!(follow.poll().unwrap().is_empty());
}

#[test]
fn statistics_count_prompts_answers_and_rules() {
    let (_base, settings) = session();
    let mut stats = Stats::default();
    for line in Entries::open(&settings.directory).unwrap() {
        stats.add(&line.unwrap().entry);
    }
    stats.finish(["no-secrets", "never-fires"], 10);
    assert_eq!(stats.calls, 6);
    assert_eq!((stats.decisions["ask"], stats.decisions["deny"]), (2, 2));
    assert_eq!((stats.answered, stats.approved, stats.timed_out), (2, 1, 1));
    assert_eq!(stats.silent_rules, ["never-fires"]);
    assert!(stats.median_answer_ms.is_some());
    let asked: Vec<&str> = stats.most_asked.iter().map(|counted| counted.what.as_str()).collect();
    assert_eq!(asked, ["curl", "git push"]);
    let chart = stats.chart(20);
    assert!(chart.contains("████████████████████") && chart.contains("2 of 6"), "{chart}");
}
