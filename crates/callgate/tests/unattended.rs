//! Runs without anybody to ask: every promise of an unattended run, and both recipes for one, through the public interface.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use callgate::approvals::{ApprovalDecision, ApprovalRule, Approvals, Question, RuleBasedApprovalProvider};
use callgate::event::{Event, EventError, EventSink};
use callgate::gate::SandboxSupport;
use callgate::permit::{Containment, Sandbox};
use callgate::refusal::{Refusal, RefusalKind};
use callgate::{Call, Gate, Policy};
use serde_json::{Value, json};

/// "Safe by default": what is frequent and safe runs, in the sandbox; obvious mistakes are blocked early; the wait is bounded.
const RECIPE_A: &str = r#"
config_version: 1

safety:
  mode: "ask"
  allowlist: ["pwd", "ls", "cat", "rg", "pytest"]
  denylist: ["sudo", "rm -rf", "mkfs", "dd", "shutdown", "reboot"]
  approval_timeout_ms: 5000

sandbox:
  default_policy: "restricted"
  os:
    mode: "auto"

run:
  human_timeout_ms: 3000
"#;

/// "No humans": everything that is not listed is asked, and code answers.
const RECIPE_B: &str = r#"
config_version: 1
safety:
  mode: "ask"
  allowlist: ["ls", "pwd", "cat", "rg"]
  denylist: ["sudo", "rm -rf", "shutdown", "reboot"]
  tool_allowlist: ["weather"]
  tool_denylist: ["self_destruct"]
  approval_timeout_ms: 60000
"#;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Event>>>);

impl EventSink for Log {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

impl Log {
    fn names(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap()).iter().map(|event| event.kind.name()).collect()
    }

    fn text(&self) -> String {
        serde_json::to_string(&*self.0.lock().unwrap()).unwrap()
    }
}

struct Run {
    gate: Gate,
    log: Log,
    directory: tempfile::TempDir,
}

/// Only `pytest` and `python` may run; what is typed into a running program is approved once.
fn rules() -> RuleBasedApprovalProvider {
    let first = |question: &Question| question.request["argv"][0].as_str().map(str::to_owned);
    RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved)
            .when(move |question| matches!(first(question).as_deref(), Some("pytest" | "python"))),
        ApprovalRule::new("write_stdin", ApprovalDecision::ApprovedForSession),
    ])
}

fn run(policy: &str, provider: RuleBasedApprovalProvider) -> Run {
    let log = Log::default();
    let gate = Gate::builder()
        .policy(Policy::from_yaml(policy, "recipe.yaml").unwrap())
        .approvals(Approvals::in_memory(provider))
        .sandbox(SandboxSupport::Available)
        .events(log.clone())
        .build();
    Run { gate, log, directory: tempfile::tempdir().unwrap() }
}

impl Run {
    fn call(&self, tool: &str, input: Value) -> Call {
        Call::new(tool, input).session("run-1").directory(self.directory.path())
    }

    fn shell(&self, command: &str) -> Result<Containment, Refusal> {
        self.check(self.call("shell_command", json!({ "command": command })))
    }

    fn argv(&self, argv: &[&str]) -> Result<Containment, Refusal> {
        self.check(self.call("shell_exec", json!({ "argv": argv })))
    }

    fn check(&self, call: Call) -> Result<Containment, Refusal> {
        self.gate.check(call).map(|permit| permit.plan().containment())
    }
}

fn refused(result: Result<Containment, Refusal>) -> RefusalKind {
    result.unwrap_err().kind
}

#[test]
fn in_mode_ask_what_no_list_names_is_asked() {
    let run = run(RECIPE_B, rules());
    assert_eq!(refused(run.argv(&["make"])), RefusalKind::Permission);
    assert!(run.log.names().contains(&"approval_requested"));
}

#[test]
fn the_allow_list_saves_the_question() {
    let run = run(RECIPE_B, rules());
    assert!(run.argv(&["pwd"]).is_ok());
    assert_eq!(run.log.names(), ["requested", "gated", "allowed"]);
}

#[test]
fn the_deny_list_blocks_before_anybody_is_asked() {
    let everything = RuleBasedApprovalProvider::new(vec![ApprovalRule::new("shell_exec", ApprovalDecision::Approved)]);
    let run = run(RECIPE_B, everything);
    for argv in [&["sudo", "pytest"][..], &["rm", "-rf", "x"], &["rm", "-fr", "x"], &["reboot"]] {
        assert_eq!(refused(run.argv(argv)), RefusalKind::Permission, "{argv:?}");
        assert_eq!(run.log.names(), ["requested", "gated", "denied"], "{argv:?}");
    }
}

#[test]
fn custom_tools_ask_unless_they_are_listed() {
    let run = run(RECIPE_B, rules());
    assert!(run.check(run.call("weather", json!({"city": "Oslo"}))).is_ok());
    assert!(run.check(run.call("self_destruct", json!({}))).is_err());
    assert_eq!(run.log.names().last(), Some(&"denied"));
    assert_eq!(refused(run.check(run.call("translate", json!({"text": "x"})))), RefusalKind::Permission);
    assert!(run.log.names().contains(&"approval_requested"), "neither list names it");
}

#[test]
fn code_decides_without_a_person_and_the_same_way_every_time() {
    let run = run(RECIPE_B, rules());
    for _ in 0..3 {
        assert!(run.argv(&["pytest", "-q"]).is_ok());
        assert!(run.argv(&["curl", "https://x.example"]).is_err());
    }
}

#[test]
fn what_no_rule_matches_is_denied() {
    let run = run(RECIPE_B, RuleBasedApprovalProvider::new(vec![]));
    let refusal = run.argv(&["pytest"]).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.reason.as_str()),
        (RefusalKind::Permission, "denied by the approver: no approval rule covers this")
    );
}

#[test]
fn a_condition_that_fails_is_no_match() {
    let broken = RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved).when_ok(|_| Err("no such field".into())),
        ApprovalRule::new("shell_exec", ApprovalDecision::Approved).when(|_| panic!("on purpose")),
    ]);
    assert_eq!(refused(run(RECIPE_B, broken).argv(&["pytest"])), RefusalKind::Permission);
}

#[test]
fn the_request_that_rules_see_and_events_hold_has_no_secrets() {
    let seen: Arc<Mutex<String>> = Arc::default();
    let keep = Arc::clone(&seen);
    let watching =
        RuleBasedApprovalProvider::new(vec![ApprovalRule::new("shell_exec", ApprovalDecision::Denied).when(
            move |question| {
                keep.lock().unwrap().push_str(&serde_json::to_string(question).unwrap());
                true
            },
        )]);
    let run = run(RECIPE_B, watching);
    let _ = run.check(run.call("shell_exec", json!({"argv": ["make"], "env": {"KEY": "sesame-open"}})));
    let _ = run.check(run.call("file_write", json!({"path": "a.txt", "content": "TOPSECRET"})));
    let text = run.log.text();
    assert!(!text.contains("sesame-open") && !text.contains("TOPSECRET"));
    let seen = seen.lock().unwrap();
    assert!(seen.contains("KEY") && !seen.contains("sesame-open"), "{seen}");
}

/// Recipe B wants every command in a sandbox, the approved ones too.
struct Cage;

impl callgate::permit::Sandbox for Cage {
    fn enforces(&self) -> String {
        "everything".to_owned()
    }
}

#[test]
fn the_events_of_a_call_come_in_a_stable_order_and_it_starts_only_if_it_was_approved() {
    let run = run(RECIPE_B, rules());
    let permit = run.gate.check(run.call("shell_exec", json!({"argv": ["pytest"]}))).unwrap();
    permit.run_with(Some(&Cage), |_, _| Ok::<(), ()>(())).unwrap();
    assert_eq!(
        run.log.names(),
        ["requested", "gated", "approval_requested", "approval_decided", "allowed", "started", "finished"]
    );
    assert!(run.argv(&["make"]).is_err());
    assert_eq!(run.log.names(), ["requested", "gated", "approval_requested", "approval_decided", "denied"]);
}

#[test]
fn approved_for_session_skips_the_next_identical_request_and_still_records_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let provider = RuleBasedApprovalProvider::new(vec![
        ApprovalRule::new("write_stdin", ApprovalDecision::ApprovedForSession).when(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            true
        }),
    ]);
    let run = run(RECIPE_B, provider);
    let poll = || run.check(run.call("write_stdin", json!({"session_id": 1, "chars": "status\n"})));
    assert!(poll().is_ok());
    assert_eq!(run.log.names(), ["requested", "gated", "approval_requested", "approval_decided", "allowed"]);
    assert!(poll().is_ok() && poll().is_ok());
    assert_eq!(run.log.names()[..4], ["requested", "gated", "approval_decided", "allowed"]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let other = run.check(run.call("write_stdin", json!({"session_id": 1, "chars": "rm x\n"})));
    assert!(other.is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 2, "other input is another request");
}

#[test]
fn complex_shell_is_asked_about_even_if_the_allow_list_matches() {
    let run = run(RECIPE_B, rules());
    assert!(run.shell("ls").is_ok());
    for command in ["ls | cat", "ls && pwd", "ls > out", "ls $(pwd)", "ls; ls", "ls & ls"] {
        assert_eq!(refused(run.shell(command)), RefusalKind::Permission, "{command}");
        assert!(run.log.names().contains(&"approval_requested"), "{command}");
    }
}

#[test]
fn narrow_rules_approve_what_they_name_and_nothing_beside_it() {
    let run = run(RECIPE_B, rules());
    assert!(run.argv(&["pytest", "-q"]).is_ok() && run.argv(&["python", "-m", "pytest"]).is_ok());
    for argv in [&["python3"][..], &["env", "pytest"], &["./pytest"], &["bash", "-lc", "pytest"]] {
        assert!(run.argv(argv).is_err(), "{argv:?}");
    }
}

#[test]
fn recipe_a_runs_what_is_listed_in_the_sandbox_and_ends_everything_else_in_clean_denials() {
    let run = run(RECIPE_A, rules());
    assert_eq!(run.argv(&["pytest", "-q"]), Ok(Containment::Required));
    assert_eq!(run.argv(&["ls"]), Ok(Containment::Required));
    for argv in [&["sudo", "ls"][..], &["dd", "if=/dev/zero"], &["mkfs", "/dev/sda"], &["make"], &["curl", "x.example"]]
    {
        assert_eq!(refused(run.argv(argv)), RefusalKind::Permission, "{argv:?}");
    }
    assert_eq!(refused(run.shell("pytest -q && make")), RefusalKind::Permission);
}

#[test]
fn recipe_a_bounds_every_wait() {
    let policy = Policy::from_yaml(RECIPE_A, "recipe.yaml").unwrap();
    assert_eq!(policy.approval_timeout(), Some(std::time::Duration::from_secs(5)));
    assert_eq!(policy.timeouts().human_ms, Some(3000));
    // nobody ever answers: still an end, and not that of a denial
    let patient = RECIPE_A.replace("approval_timeout_ms: 5000", "approval_timeout_ms: 50");
    let silent = Approvals::in_memory(callgate::approvals::channel::Elsewhere);
    let gate = Gate::builder().policy(Policy::from_yaml(&patient, "recipe.yaml").unwrap()).approvals(silent);
    let gate = gate.sandbox(SandboxSupport::Available).build();
    let call = Call::new("shell_exec", json!({"argv": ["make"]})).directory("/");
    assert_eq!(gate.check(call).unwrap_err().kind, RefusalKind::Timeout);
}

#[test]
fn recipe_b_ends_what_rules_do_not_cover_in_a_denial_with_its_reason() {
    let run = run(RECIPE_B, rules());
    let refusal = run.argv(&["make", "deploy"]).unwrap_err();
    assert!(refusal.reason.contains("no approval rule covers this") && refusal.hint.is_some(), "{refusal:?}");
}

#[test]
fn a_no_of_the_policy_of_an_approver_and_of_the_sandbox_are_told_apart() {
    let run = run(RECIPE_A, rules());
    let by_policy = run.argv(&["sudo", "ls"]).unwrap_err();
    let by_approver = run.argv(&["make"]).unwrap_err();
    let without = Gate::builder().policy(Policy::from_yaml(RECIPE_A, "recipe.yaml").unwrap()).build();
    let by_sandbox = without.check(run.call("shell_exec", json!({"argv": ["ls"]}))).unwrap_err();
    assert_eq!((by_policy.kind, by_policy.rule.as_deref()), (RefusalKind::Permission, Some("safety.denylist")));
    assert!(by_approver.reason.starts_with("denied by the approver"));
    assert_eq!(by_sandbox.kind, RefusalKind::SandboxDenied);
}

#[test]
fn what_must_be_contained_runs_nowhere_else() {
    struct Fence;
    impl Sandbox for Fence {
        fn enforces(&self) -> String {
            "everything".into()
        }
    }
    let run = run(RECIPE_A, rules());
    let permit = |argv: &[&str]| run.gate.check(run.call("shell_exec", json!({ "argv": argv }))).unwrap();
    assert!(permit(&["ls"]).run(|_| Ok::<(), ()>(())).is_err());
    assert!(permit(&["ls"]).run_with(Some(&Fence), |_, _| Ok::<(), ()>(())).is_ok());
}
