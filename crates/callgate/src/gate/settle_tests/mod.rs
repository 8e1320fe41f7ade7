//! The whole way with approvals: sessions, grants, automatic answers, and what they can never do.

mod always;
mod attacks;
mod instead_of_ask;
mod patience;
mod typed_input;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::approvals::{
    Answer, ApprovalDecision, ApprovalRule, Approvals, Approver, AskError, Extent, Mode, Question,
    RuleBasedApprovalProvider,
};
use crate::event::Event;
use crate::grant::{Terms, in_scope};
use crate::path::boundary::HostDirectories;
use crate::path::file_system::fake::Fake;
use crate::policy::{ExecInput, Policy};
use crate::store::{MemoryStore, Store};
use callgate_model::clock::Timestamp;

const POLICY: &str = r#"
version: 1
default: ask
boundary:
  roots: ["."]
rules:
  - name: no-secrets
    paths: ["**/.env"]
    action: deny
    reason: secrets stay secret
  - name: read-on
    effects: [list, read]
    action: allow
"#;

/// Says what it is told to and keeps what it was asked.
#[derive(Clone)]
struct Person {
    says: Arc<Mutex<Answer>>,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Approver for Person {
    fn ask(&self, question: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        self.asked.lock().unwrap().push(question.clone());
        Ok(self.says.lock().unwrap().clone())
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Event>>>);

impl EventSink for Log {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

impl Log {
    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap()).iter().map(|event| event.kind.name()).collect()
    }
}

struct Setting {
    gate: Gate,
    store: Arc<MemoryStore>,
    person: Person,
    approvals: Approvals,
    log: Log,
}

fn setting(decision: ApprovalDecision) -> Setting {
    setting_in(decision, Mode::Ask)
}

fn setting_in(decision: ApprovalDecision, mode: Mode) -> Setting {
    let store = Arc::new(MemoryStore::new());
    let says = Arc::new(Mutex::new(Answer::new(decision)));
    let person = Person { says, asked: Arc::default() };
    let approvals = Approvals::new(store.clone(), Arc::new(person.clone())).mode(mode);
    let log = Log::default();
    let policy = Policy::from_yaml(POLICY, "test.yaml").unwrap().with_home("/home/ada");
    let gate = Gate::builder()
        .policy(policy)
        .file_system(Fake::new().file("/ws/a.txt").file("/etc/passwd"))
        .host(HostDirectories { home: Some("/home/ada".into()), ..HostDirectories::default() })
        .approvals(approvals.clone())
        .events(log.clone())
        .build();
    Setting { gate, store, person, approvals, log }
}

impl Setting {
    fn passes(&self, call: Call) -> bool {
        self.gate.check(call).is_ok()
    }

    fn refusal(&self, call: Call) -> Refusal {
        self.gate.check(call).unwrap_err()
    }

    fn asked(&self) -> usize {
        self.person.asked.lock().unwrap().len()
    }
}

fn call(tool: &str, input: Value) -> Call {
    Call::new(tool, input).agent("claude").session("s-1").directory("/ws")
}

fn write(path: &str, content: &str) -> Call {
    call("Write", json!({"file_path": path, "content": content}))
}

#[test]
fn the_first_call_is_asked_about_and_the_next_identical_one_only_recorded() {
    let setting = setting(ApprovalDecision::ApprovedForSession);
    assert!(setting.passes(write("/ws/a.txt", "x")));
    assert_eq!(setting.log.take(), ["requested", "gated", "approval_requested", "approval_decided", "allowed"]);
    assert!(setting.passes(write("/ws/a.txt", "x")));
    assert_eq!(setting.log.take(), ["requested", "gated", "approval_decided", "allowed"]);
    assert_eq!(setting.asked(), 1);
    assert!(setting.passes(write("/ws/a.txt", "y")), "other contents are another request");
    assert_eq!(setting.asked(), 2);
}

#[test]
fn a_reason_typed_by_the_person_reaches_the_agent() {
    let setting = setting(ApprovalDecision::Denied);
    *setting.person.says.lock().unwrap() = Answer::new(ApprovalDecision::Denied).because("use b.txt instead");
    let refusal = setting.refusal(write("/ws/a.txt", "x"));
    assert_eq!(refusal.kind, RefusalKind::Permission);
    assert_eq!(refusal.reason, "denied by the approver: use b.txt instead");
}

#[test]
fn denied_twice_ends_the_loop() {
    let setting = setting(ApprovalDecision::Denied);
    for _ in 0..5 {
        assert!(!setting.passes(write("/ws/a.txt", "x")));
    }
    assert_eq!(setting.asked(), 2);
    let refusal = setting.refusal(write("/ws/a.txt", "x"));
    assert!(refusal.reason.contains("denied twice"), "{}", refusal.reason);
}

#[test]
fn nothing_overturns_a_deny_or_the_boundary() {
    for mode in [Mode::Ask, Mode::Allow] {
        let setting = setting_in(ApprovalDecision::ApprovedForSession, mode);
        setting.approvals.set_auto_approve("s-1", true).unwrap();
        let terms = Terms::for_any("Write").uses(9.try_into().unwrap());
        setting.store.grant(&terms, Timestamp::now()).unwrap();
        for path in ["/ws/.env", "/etc/passwd"] {
            assert_eq!(setting.refusal(write(path, "x")).kind, RefusalKind::Permission, "{path}");
        }
        assert_eq!(setting.store.grants().unwrap()[0].left.get(), 9, "a refused call burns no grant");
        assert_eq!(setting.asked(), 0);
    }
}

#[test]
fn only_a_person_answers_where_a_deny_may_apply() {
    // what `$x` is decides whether this reads `.env`, which is denied
    let doubtful = || call("Bash", json!({"command": "cat $x"}));
    for mode in [Mode::Ask, Mode::Allow] {
        let setting = setting_in(ApprovalDecision::ApprovedForSession, mode);
        setting.approvals.set_auto_approve("s-1", true).unwrap();
        setting.store.grant(&Terms::for_any("Bash").uses(9.try_into().unwrap()), Timestamp::now()).unwrap();
        for asked in 1..4 {
            assert!(setting.passes(doubtful()));
            assert_eq!(setting.asked(), asked, "neither a mode nor a grant nor an earlier answer counts");
        }
        let question = setting.person.asked.lock().unwrap()[0].clone();
        assert_eq!(question.answerable, crate::approvals::Answerable::ByAPerson);
        assert!(question.proposals.is_empty() && question.no_proposal.is_some_and(|why| why.contains("person")));
        assert_eq!(setting.store.grants().unwrap()[0].left.get(), 9);
    }
}

#[test]
fn a_grant_lets_one_call_pass_and_is_spent_before_it_runs() {
    let setting = setting(ApprovalDecision::Denied);
    let grant = |terms: Terms| setting.store.grant(&terms, Timestamp::now()).unwrap();
    grant(Terms::for_target("Write", "/ws/a.txt"));
    assert!(setting.passes(write("/ws/a.txt", "x")));
    assert!(setting.store.grants().unwrap().is_empty());
    assert!(!setting.passes(write("/ws/a.txt", "x")));
    grant(Terms::for_target("Write", "/ws/a.txt"));
    assert!(!setting.passes(write("/ws/b.txt", "x")), "another target");
    assert!(!setting.passes(call("Edit", json!({"file_path": "/ws/a.txt", "old_string": "a", "new_string": "b"}))));
    assert_eq!(setting.store.grants().unwrap().len(), 1);
}

#[test]
fn a_grant_for_one_task_serves_that_task_only() {
    let setting = setting(ApprovalDecision::Denied);
    setting.store.grant(&Terms::for_any("Write").scope("task-a"), Timestamp::now()).unwrap();
    assert!(!setting.passes(write("/ws/a.txt", "1")));
    assert!(!setting.passes(write("/ws/a.txt", "2").scope("task-b")));
    assert!(!in_scope("task-b", || setting.passes(write("/ws/a.txt", "3"))));
    assert!(in_scope("task-a", || setting.passes(write("/ws/a.txt", "4"))));
    assert!(!in_scope("task-a", || setting.passes(write("/ws/a.txt", "5"))));
}

#[test]
fn a_grant_for_one_exact_request_is_bound_to_its_contents() {
    let setting = setting(ApprovalDecision::Denied);
    assert!(!setting.passes(write("/ws/a.txt", "good")));
    let key = setting.person.asked.lock().unwrap()[0].key.unwrap();
    setting.store.grant(&Terms::for_any("Write").request(key), Timestamp::now()).unwrap();
    assert!(!setting.passes(write("/ws/a.txt", "evil")));
    assert!(setting.passes(write("/ws/a.txt", "good")));
    assert!(!setting.passes(write("/ws/a.txt", "good")));
}

#[test]
fn words_for_people_do_not_change_a_request_of_a_known_tool_but_of_an_unknown_one() {
    let setting = setting(ApprovalDecision::ApprovedForSession);
    let shell = |description: &str| call("Bash", json!({"command": "make", "description": description}));
    assert!(setting.passes(shell("build")) && setting.passes(shell("compile")));
    assert_eq!(setting.asked(), 1);
    let issue = |description: &str| call("mcp__tracker__create", json!({"description": description}));
    assert!(setting.passes(issue("one")) && setting.passes(issue("two")));
    assert_eq!(setting.asked(), 3);
}

#[test]
fn the_question_names_everything_and_holds_no_secret() {
    let setting = setting(ApprovalDecision::Denied);
    setting.passes(write("/ws/a.txt", "TOPSECRET"));
    let question = setting.person.asked.lock().unwrap()[0].clone();
    let text = serde_json::to_string(&question).unwrap();
    assert!(!text.contains("TOPSECRET"));
    assert!(question.effects.iter().any(|effect| effect.asked && effect.target == "/ws/a.txt"));
    let extents: Vec<&Extent> = question.proposals.iter().map(|proposal| &proposal.extent).collect();
    assert!(matches!(extents[..], [Extent::File { .. }, ..]), "{extents:?}");
}

#[test]
fn a_proposal_chosen_for_the_session_covers_what_it_says() {
    let setting = setting(ApprovalDecision::Denied);
    let answer = Answer { proposal: Some(0), ..Answer::new(ApprovalDecision::ApprovedForSession) };
    *setting.person.says.lock().unwrap() = answer;
    assert!(setting.passes(write("/ws/a.txt", "1")));
    *setting.person.says.lock().unwrap() = Answer::new(ApprovalDecision::Denied);
    assert!(setting.passes(write("/ws/a.txt", "2")), "the same file with other contents");
    assert!(!setting.passes(write("/ws/b.txt", "3")));
}

#[test]
fn timed_out_is_told_apart_from_denied() {
    let store = Arc::new(MemoryStore::new());
    let policy = format!("{POLICY}\nsettings:\n  approval_timeout_seconds: 0\n");
    let policy = Policy::from_yaml(&policy, "test.yaml").unwrap();
    let approvals = Approvals::new(store, Arc::new(crate::approvals::channel::Elsewhere));
    let gate = Gate::builder().policy(policy).file_system(Fake::new()).approvals(approvals).build();
    let refusal = gate.check(write("/ws/a.txt", "x")).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Timeout);
}

#[test]
fn an_asynchronous_check_waits_without_its_thread_and_takes_the_question_back_when_dropped() {
    use std::task::{Context, Poll, Waker};
    let setting = setting(ApprovalDecision::Approved);
    let mut check = Box::pin(setting.gate.check_async(write("/ws/a.txt", "x")));
    let verdict = loop {
        if let Poll::Ready(verdict) = check.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            break verdict;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(verdict.is_ok());

    let store = Arc::new(MemoryStore::new());
    let approvals = Approvals::new(store.clone(), Arc::new(crate::approvals::channel::Elsewhere));
    let policy = Policy::from_yaml(POLICY, "test.yaml").unwrap();
    let gate = Gate::builder().policy(policy).file_system(Fake::new()).approvals(approvals).build();
    let mut check = Box::pin(gate.check_async(write("/ws/a.txt", "x")));
    while store.pending().unwrap().is_empty() {
        assert!(check.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(check);
    assert!(store.pending().unwrap().is_empty());
}

/// The unattended recipes: nobody is there, everything ends at once.
#[test]
fn an_unattended_run_with_rules_never_hangs() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let provider =
        RuleBasedApprovalProvider::new(vec![ApprovalRule::new("shell_exec", ApprovalDecision::Approved).when(
            move |question| {
                counted.fetch_add(1, Ordering::SeqCst);
                question.request["argv"][0] == "pytest"
            },
        )]);
    let recipe = r#"
config_version: 1
safety:
  mode: "ask"
  allowlist: ["pwd", "ls", "cat", "rg"]
  denylist: ["sudo", "rm -rf", "mkfs", "dd", "shutdown", "reboot"]
  approval_timeout_ms: 5000
"#;
    let approvals = Approvals::new(Arc::new(MemoryStore::new()), Arc::new(provider));
    let policy = Policy::from_yaml(recipe, "recipe.yaml").unwrap();
    let gate = Gate::builder().policy(policy).file_system(Fake::new().file("/ws/a.txt")).approvals(approvals).build();
    let run = |argv: &[&str]| gate.check(call("shell_exec", json!({"argv": argv})));
    assert!(run(&["pytest", "-q"]).is_ok());
    assert_eq!(run(&["make", "install"]).unwrap_err().kind, RefusalKind::Permission);
    assert_eq!(run(&["sudo", "pytest"]).unwrap_err().kind, RefusalKind::Permission);
    assert_eq!(asked.load(Ordering::SeqCst), 2, "what is denied is not asked about");
}

/// The same as a section of the policy file, without a line of code.
#[test]
fn a_policy_file_answers_by_itself_where_nobody_can_be_asked() {
    let file = r#"
version: 1
default: ask
boundary:
  roots: ["."]
approvals:
  rules:
    - {tools: [shell_exec, Bash], commands: ["pytest **"], decision: approved}
    - {tools: [write_stdin], decision: approved_for_session}
  default: denied
"#;
    let policy = Policy::from_yaml(file, "callgate.yaml").unwrap();
    let approvals = Approvals::in_memory(RuleBasedApprovalProvider::from(policy.approval_rules().unwrap()));
    let gate = Gate::builder().policy(policy).file_system(Fake::new()).approvals(approvals).build();
    let passes = |command: &str| gate.check(call("Bash", json!({"command": command}))).is_ok();
    assert!(passes("pytest -q tests"));
    for command in [
        "pytest; make",
        "pytest > out",
        "LD_PRELOAD=x pytest",
        "PATH=x pytest",
        "PATH=x; pytest",
        "export PATH=x; pytest",
        "pytest() { make; }; pytest",
        "alias pytest=make; pytest",
        ". ./x; pytest",
        "cd /srv && pytest",
        "./pytest",
        "sudo pytest",
        "pytest $(make)",
        "make",
    ] {
        assert!(!passes(command), "{command}");
    }
    assert!(gate.check(call("write_stdin", json!({"session_id": 1, "chars": "x"}))).is_ok());
    let mistake = file.replace("decision: approved}", "decision: yes}");
    assert!(Policy::from_yaml(&mistake, "callgate.yaml").is_err());
}

/// The gate of [`setting`] under another policy.
fn under(policy: &str, person: &Person, store: &Arc<MemoryStore>) -> Gate {
    let policy = Policy::from_yaml(policy, "test.yaml").unwrap().with_home("/home/ada");
    Gate::builder()
        .policy(policy)
        .file_system(Fake::new().file("/ws/a.txt").file("/ws/.env"))
        .host(HostDirectories { home: Some("/home/ada".into()), ..HostDirectories::default() })
        .approvals(Approvals::new(store.clone(), Arc::new(person.clone())))
        .build()
}

fn person(decision: ApprovalDecision) -> Person {
    Person { says: Arc::new(Mutex::new(Answer::new(decision))), asked: Arc::default() }
}
