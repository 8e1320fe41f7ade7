use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};

use serde_json::{Value, json};

use super::*;
use crate::approvals::{AnswerFuture, ApprovalDecision, AskError, AsyncApprover, Question};
use crate::describe::{CallContext, DescribeError, Described, Descriptor};
use crate::event::Event;
use crate::path::boundary::HostDirectories;
use crate::path::file_system::fake::Fake;
use crate::permit::{RunError, Sandbox};
use crate::policy::{PermissionHandler, PermissionPolicy, PermissionRequest, PermissionResult, PermissionRule, Policy};
use callgate_model::redact::Redacted;

const POLICY: &str = r#"
version: 1
default: ask
boundary:
  roots: ["."]
  readable: ["/usr"]
rules:
  - name: no-secrets
    effects: [read, write, delete]
    paths: ["**/.env"]
    action: deny
    reason: secrets stay secret
  - name: contained
    tools: [Write]
    paths: ["**/contained"]
    action: contain
  - name: read-on
    effects: [list, read]
    action: allow
  - name: ask-writes
    effects: [write]
    action: ask
    reason: writing is asked about
"#;

fn file_system() -> Fake {
    Fake::new().file("/ws/a.txt").link("/ws/link", "/etc").file("/etc/passwd").file("/usr/share/x")
}

fn surroundings() -> HostDirectories {
    HostDirectories { home: Some("/home/ada".into()), temporary: vec!["/tmp".into()], programs: vec![] }
}

fn builder() -> GateBuilder {
    let policy = Policy::from_yaml(POLICY, "test.yaml").expect("a policy").with_home("/home/ada");
    Gate::builder().policy(policy).file_system(file_system()).host(surroundings())
}

fn call(tool: &str, input: Value) -> Call {
    Call::new(tool, input).session("s-1").directory("/ws")
}

fn read(path: &str) -> Call {
    call("Read", json!({"file_path": path}))
}

fn write(path: &str) -> Call {
    call("Write", json!({"file_path": path, "content": "TOPSECRET"}))
}

fn refusal(verdict: Verdict) -> Refusal {
    verdict.expect_err("this must be refused")
}

/// Keeps the names and texts of events.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    fn names(&self) -> Vec<&'static str> {
        self.0.lock().expect("the log").iter().map(|event| event.kind.name()).collect()
    }
}

impl EventSink for Log {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        self.0.lock().expect("the log").push(event.clone());
        Ok(())
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = TaskContext::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[test]
fn a_gate_without_a_policy_denies_everything() {
    let gate = Gate::builder().build();
    for tool in ["Read", "TodoWrite", "Bash", "whatever"] {
        let refusal = refusal(gate.check(call(tool, json!({"command": "ls", "file_path": "a"}))));
        assert_eq!(refusal.kind, RefusalKind::Permission);
    }
}

#[test]
fn what_the_policy_allows_is_permitted_and_runs_once() {
    let log = Log::default();
    let gate = builder().events(log.clone()).build();
    let permit = gate.check(read("a.txt")).expect("a permit");
    let resolved = permit.plan().resolved(std::path::Path::new("/ws/a.txt")).cloned();
    assert_eq!(resolved, Some("/ws/a.txt".into()));
    assert_eq!(permit.plan().directory(), Some(std::path::Path::new("/ws")));
    assert_eq!(permit.run(|plan| Ok::<_, ()>(plan.call().tool.name.clone())).ok().as_deref(), Some("Read"));
    assert_eq!(log.names(), ["requested", "gated", "allowed", "started", "finished"]);
}

#[test]
fn denies_name_the_rule_and_ask_nobody() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let log = Log::default();
    let gate = builder()
        .events(log.clone())
        .approver(move |_: &Question| {
            count.fetch_add(1, Ordering::SeqCst);
            ApprovalDecision::Approved
        })
        .build();
    let refused = refusal(gate.check(read(".env")));
    assert_eq!(refused.kind, RefusalKind::Permission);
    assert_eq!(refused.rule.as_deref(), Some("no-secrets"));
    assert!(refused.reason.contains("secrets stay secret"));
    assert!(refused.hint.is_some());
    assert_eq!(log.names(), ["requested", "gated", "denied"]);
    // an allow rule and a yes do not overturn the boundary
    for path in ["/etc/passwd", "../etc/passwd", "link/passwd", "/home/ada/x"] {
        let refused = refusal(gate.check(read(path)));
        assert_eq!(refused.rule.as_deref(), Some("boundary"), "{path}");
        assert!(!refused.reason.contains("/usr"), "the roots are not told: {}", refused.reason);
    }
    assert!(gate.check(read("/usr/share/x")).is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn only_an_explicit_yes_is_a_yes() {
    use ApprovalDecision::{Abort, Approved, ApprovedForSession, Denied};
    type Said = Result<ApprovalDecision, AskError>;
    let cases: [(Said, Option<RefusalKind>); 7] = [
        (Ok(Approved), None),
        (Ok(ApprovedForSession), None),
        (Ok(Denied), Some(RefusalKind::Permission)),
        (Ok(Abort), Some(RefusalKind::Cancelled)),
        (Err(AskError::TimedOut), Some(RefusalKind::Timeout)),
        (Err(AskError::Unusable("x".into())), Some(RefusalKind::HumanRequired)),
        (Err(AskError::Unavailable("x".into())), Some(RefusalKind::HumanRequired)),
    ];
    for (answer, expected) in cases {
        let log = Log::default();
        let says = answer.clone();
        let gate = builder().approver(move |_: &Question| says.clone()).events(log.clone()).build();
        let kind = gate.check(write("b.txt")).err().map(|refusal| refusal.kind);
        assert_eq!(kind, expected, "{answer:?}");
        let last = if expected.is_none() { "allowed" } else { "denied" };
        assert_eq!(log.names(), ["requested", "gated", "approval_requested", "approval_decided", last]);
    }
    let panics = builder().approver(|_: &Question| -> ApprovalDecision { panic!("on purpose") }).build();
    assert_eq!(refusal(panics.check(write("b.txt"))).kind, RefusalKind::HumanRequired);
    let nobody = builder().build();
    assert_eq!(refusal(nobody.check(write("b.txt"))).kind, RefusalKind::HumanRequired);
}

#[test]
fn the_approver_sees_effects_and_reasons_but_no_contents() {
    let seen: Arc<Mutex<Option<Question>>> = Arc::default();
    let store = Arc::clone(&seen);
    let gate = builder()
        .approver(move |request: &Question| {
            *store.lock().expect("a lock") = Some(request.clone());
            ApprovalDecision::Denied
        })
        .build();
    let _ = gate.check(write("b.txt"));
    let request = seen.lock().expect("a lock").take().expect("a question");
    let [effect] = request.effects.as_slice() else { panic!("{:?}", request.effects) };
    assert_eq!((effect.action.as_str(), effect.target.as_str(), effect.asked), ("write", "/ws/b.txt", true));
    assert_eq!(request.rule.as_deref(), Some("ask-writes"));
    assert!(request.reason.contains("writing is asked about"));
    assert!(!serde_json::to_string(&request).expect("JSON").contains("TOPSECRET"));
}

#[test]
fn the_policys_handler_comes_first_then_the_gates_then_the_fallback() {
    struct Handler(PermissionResult, Arc<AtomicUsize>);
    impl PermissionHandler for Handler {
        fn handle(&self, _: &PermissionRequest) -> PermissionResult {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0
        }
    }
    let rules = || PermissionPolicy::new().rule(PermissionRule::new("ask", PermissionResult::Ask, |_, _, _| true));
    let asked = Arc::new(AtomicUsize::new(0));
    for (result, permitted) in
        [(PermissionResult::Allow, true), (PermissionResult::Deny, false), (PermissionResult::Ask, false)]
    {
        let handler = Arc::new(Handler(result, Arc::clone(&asked)));
        let gate = Gate::builder()
            .policy(rules().with_handler(handler))
            .file_system(file_system())
            .host(surroundings())
            .approver(|_: &Question| -> ApprovalDecision { panic!("the gate's approver must not be asked") })
            .build();
        assert_eq!(gate.check(read("a.txt")).is_ok(), permitted, "{result:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let with = |builder: GateBuilder| builder.policy(rules()).file_system(file_system()).host(surroundings()).build();
    let gates = with(
        Gate::builder()
            .approver(|_: &Question| ApprovalDecision::Approved)
            .fallback(|_: &Question| -> ApprovalDecision { panic!("the fallback must not be asked") }),
    );
    assert!(gates.check(read("a.txt")).is_ok());
    let fallback = with(Gate::builder().fallback(|_: &Question| ApprovalDecision::Approved));
    assert!(fallback.check(read("a.txt")).is_ok());
}

#[test]
fn asynchronous_approvers_are_awaited() {
    struct Later(Option<ApprovalDecision>);
    impl AsyncApprover for Later {
        fn ask<'a>(&'a self, _: &'a Question) -> AnswerFuture<'a> {
            Box::pin(async {
                match self.0 {
                    Some(decision) => Ok(crate::approvals::Answer::new(decision)),
                    None => panic!("on purpose"),
                }
            })
        }
    }
    let gate = |answer| builder().async_approver(Later(answer)).build();
    let yes = gate(Some(ApprovalDecision::Approved));
    let permit = block_on(yes.check_async(write("b.txt"))).expect("a permit");
    assert!(block_on(permit.run_async(None, async |_, _| Ok::<_, ()>(1))).is_ok());
    assert!(block_on(gate(Some(ApprovalDecision::Denied)).check_async(write("b.txt"))).is_err());
    assert!(block_on(gate(None).check_async(write("b.txt"))).is_err());
    assert!(block_on(gate(None).check_async(read("a.txt"))).is_ok());
    assert!(block_on(gate(None).check_async(read(".env"))).is_err());
    // a check that cannot wait does not take the question for a yes
    assert_eq!(refusal(yes.check(write("b.txt"))).kind, RefusalKind::HumanRequired);
    assert_eq!(refusal(block_on(builder().build().check_async(write("b.txt")))).kind, RefusalKind::HumanRequired);
}

#[test]
fn what_must_be_contained_runs_in_a_sandbox_or_not_at_all() {
    struct Box;
    impl Sandbox for Box {
        fn enforces(&self) -> String {
            "everything".into()
        }
    }
    assert_eq!(refusal(builder().build().check(write("contained"))).kind, RefusalKind::SandboxDenied);
    let gate = builder().sandbox(SandboxSupport::Available).build();
    let permit = gate.check(write("contained")).expect("a permit");
    assert_eq!(permit.plan().containment(), Containment::Required);
    let Err(RunError::Refused(refused)) = permit.run(|_| Ok::<(), ()>(())) else {
        panic!("it ran outside the sandbox");
    };
    assert_eq!(refused.kind, RefusalKind::SandboxDenied);
    let permit = gate.check(write("contained")).expect("a permit");
    assert!(permit.run_with(Some(&Box), |_, _| Ok::<(), ()>(())).is_ok());
}

#[test]
fn what_cannot_be_recorded_does_not_run() {
    struct Fails(&'static str);
    impl EventSink for Fails {
        fn emit(&self, event: &Event) -> Result<(), EventError> {
            if event.kind.name() == self.0 { Err(EventError("disk full".into())) } else { Ok(()) }
        }
    }
    for name in ["requested", "gated", "allowed"] {
        assert!(builder().events(Fails(name)).build().check(read("a.txt")).is_err(), "{name}");
    }
    let permit = builder().events(Fails("started")).build().check(read("a.txt")).expect("a permit");
    let result = permit.run(|_| -> Result<(), ()> { panic!("it was started") });
    assert!(matches!(result, Err(RunError::Refused(_))));
    struct Panics;
    impl EventSink for Panics {
        fn emit(&self, _: &Event) -> Result<(), EventError> {
            panic!("on purpose")
        }
    }
    assert!(builder().events(Panics).build().check(read("a.txt")).is_err());
}

#[test]
fn events_hold_one_id_and_no_secrets() {
    let log = Log::default();
    let gate = builder()
        .events(log.clone())
        .approver(|_: &Question| ApprovalDecision::Approved)
        .secrets(["swordfish"])
        .build();
    let verdict = gate.check(call("Write", json!({"file_path": "swordfish.txt", "content": "TOPSECRET"})));
    let permit = verdict.expect("a permit");
    let id = permit.id().to_owned();
    assert!(permit.run(|_| Err::<(), _>("failed")).is_err());
    let events = log.0.lock().expect("the log").clone();
    let text = serde_json::to_string(&events).expect("JSON");
    assert!(!text.contains("TOPSECRET") && !text.contains("swordfish"), "{text}");
    assert!(events.iter().all(|event| event.call == id));
    assert!(matches!(events.last().map(|event| &event.kind), Some(EventKind::Finished { success: false, .. })));
    let names = ["requested", "gated", "approval_requested", "approval_decided", "allowed", "started", "finished"];
    assert_eq!(log.names(), names);
    assert_eq!(serde_json::to_value(&events[0]).expect("JSON")["event"], "requested");
}

#[test]
fn a_panic_while_running_is_still_the_end() {
    let log = Log::default();
    let permit = builder().events(log.clone()).build().check(read("a.txt")).expect("a permit");
    let result = catch_unwind(AssertUnwindSafe(|| permit.run(|_| -> Result<(), ()> { panic!("on purpose") })));
    assert!(result.is_err());
    assert_eq!(log.names().last(), Some(&"finished"));
}

#[test]
fn a_descriptor_that_fails_means_deny() {
    struct Fails;
    impl Descriptor for Fails {
        fn category(&self) -> &str {
            "custom"
        }
        fn describe(&self, call: &Call, _: &CallContext) -> Result<Described, DescribeError> {
            if call.input["panic"] == true {
                panic!("on purpose")
            }
            Err(DescribeError::Failed("no idea".into()))
        }
        fn for_approval(&self, call: &Call, redactor: &Redactor) -> Redacted {
            redactor.anything(&call.input)
        }
    }
    let mut registry = Registry::default();
    registry.register("custom", Fails).unwrap();
    let gate = builder().registry(registry).approver(|_: &Question| ApprovalDecision::Approved).build();
    assert_eq!(refusal(gate.check(call("custom", json!({})))).kind, RefusalKind::Unknown);
    assert_eq!(refusal(gate.check(call("custom", json!({"panic": true})))).kind, RefusalKind::Unknown);
}

#[test]
fn an_unknown_tool_and_another_servers_tool_are_asked_about() {
    let gate = builder().build();
    for tool in ["frobnicate", "mcp__evil__Read", "mcp_fs_read"] {
        assert_eq!(refusal(gate.check(call(tool, json!({"x": 1})))).kind, RefusalKind::HumanRequired, "{tool}");
    }
    let denied = refusal(gate.check(call("mcp__evil__Read", json!({"file_path": "/ws/.env"}))));
    assert_eq!(denied.rule.as_deref(), Some("no-secrets"));
}

#[test]
fn explaining_asks_nobody_and_shows_each_step() {
    let log = Log::default();
    let gate = builder().events(log.clone()).approver(|_: &Question| -> ApprovalDecision { panic!("asked") }).build();
    let assessment = gate.assess(&write("b.txt")).expect("an assessment");
    assert_eq!(assessment.ruling().decision, Decision::Ask);
    let steps: Vec<_> = assessment.steps().iter().map(|step| step.name).collect();
    assert_eq!(steps, ["describe", "observe", "judge"]);
    let effects = assessment.effects(gate.redactor());
    assert_eq!(effects[0].effect, "write /ws/b.txt");
    assert_eq!(effects[0].rule.as_deref(), Some("ask-writes"));
    assert_eq!(log.names(), Vec::<&str>::new());
}

#[test]
fn bad_input_is_refused() {
    let gate = builder().events(Log::default()).approver(|_: &Question| ApprovalDecision::Denied).build();
    let mut deep = json!("x");
    for _ in 0..500 {
        deep = json!([deep]);
    }
    let many: Vec<String> = (0..100_000).map(|number| format!("/ws/{number}")).collect();
    let long = "a".repeat(10_000_000);
    let cases = [
        call("Read", deep),
        call("Read", json!({"file_path": many})),
        call("Bash", json!({"command": long})),
        call("Bash", json!({"command": "a ".repeat(5_000_000)})),
        call("Read", json!({"file_path": format!("/ws/{long}")})),
        call("Read", json!({"file_path": "/ws/a\u{0}b"})),
        call("Read", json!({"file_path": 7})),
        call("Read", json!(null)),
        call("", json!({})),
        call("Bash", json!({"command": "x".repeat(17_000_000)})),
        call("frobnicate", json!({"list": many})),
    ];
    for case in cases {
        let shown = case.tool.name.clone();
        let refused = refusal(gate.check(case));
        assert!(refused.reason.len() < 2_000, "{shown}: {}", refused.reason.len());
    }
}
