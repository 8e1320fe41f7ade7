//! How long an answer may take, by whose word.

use super::*;
use crate::approvals::channel::Elsewhere;

fn deadline_of(policy: &str, patience: Patience) -> Duration {
    let store = Arc::new(MemoryStore::new());
    let policy = Policy::from_yaml(policy, "test.yaml").unwrap();
    let seen: Arc<Mutex<Option<Duration>>> = Arc::default();
    let there = Arc::clone(&seen);
    let approver = move |question: &Question| {
        *there.lock().unwrap() = Some(question.time());
        ApprovalDecision::Denied
    };
    let approvals = Approvals::new(store, Arc::new(approver));
    let gate = Gate::builder().policy(policy).file_system(Fake::new()).approvals(approvals).build();
    let _ = gate.check_with(write("/ws/a.txt", "x"), CheckOptions::default().patience(patience));
    seen.lock().unwrap().take().unwrap()
}

#[test]
fn the_callers_word_the_policys_and_the_default_in_that_order() {
    let seconds = Duration::from_secs;
    let says = format!("{POLICY}approvals:\n  timeout_seconds: 60\n");
    let cases = [
        (POLICY, Patience::default(), 300),
        (&says, Patience::default(), 60),
        (&says, Patience::of(seconds(900)), 900),
        (&says, Patience::at_most(seconds(55)), 55),
        (&says, Patience::at_most(seconds(500)), 60),
    ];
    for (policy, patience, expected) in cases {
        assert_eq!(deadline_of(policy, patience), seconds(expected), "{patience:?}");
    }
    for older in ["settings:\n  approval_timeout_seconds: 7\n", "safety:\n  approval_timeout_ms: 7000\n"] {
        let policy = format!("version: 1\nboundary: {{roots: ['.']}}\n{older}");
        assert_eq!(deadline_of(&policy, Patience::default()), seconds(7), "{older}");
    }
    for none in ["-1", "soon", "99999999999999999999"] {
        let policy = format!("{POLICY}approvals:\n  timeout_seconds: {none}\n");
        assert!(Policy::from_yaml(&policy, "test.yaml").is_err(), "{none}");
    }
}

#[test]
fn a_caller_without_time_is_refused_in_time_and_no_answer_comes_through_later() {
    let store = Arc::new(MemoryStore::new());
    let gate = Gate::builder()
        .policy(Policy::from_yaml(POLICY, "test.yaml").unwrap())
        .file_system(Fake::new())
        .approvals(Approvals::new(store.clone(), Arc::new(Elsewhere)))
        .build();
    let refusal = gate
        .check_with(write("/ws/a.txt", "x"), CheckOptions::default().patience(Patience::at_most(Duration::ZERO)))
        .verdict
        .unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Timeout);
    assert!(store.pending().unwrap().is_empty());
}
