//! What every store promises, checked for each of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use callgate::approvals::{
    Answer, AnswerError, ApprovalDecision, ApprovalId, ApprovalOutcome, Automatic, Coordinator, Exec, Question,
    Remembered,
};
use callgate::clock::Timestamp;
use callgate::grant::{Allowlist, Demand, Guard, Terms};
use callgate::key::ApprovalKey;
use callgate::store::{MemoryStore, SettleResult, Store, StoreError};
use callgate_store::SqliteStore;
use serde_json::json;

/// A store, and what it stands on.
struct Made {
    store: Arc<dyn Store>,
    _directory: Option<tempfile::TempDir>,
}

fn stores() -> [Made; 2] {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&directory.path().join("store.sqlite")).unwrap();
    [
        Made { store: Arc::new(MemoryStore::new()), _directory: None },
        Made { store: Arc::new(sqlite), _directory: Some(directory) },
    ]
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_milliseconds(1_700_000_000_000 + seconds * 1000)
}

fn key(byte: u8) -> ApprovalKey {
    ApprovalKey::from([byte; 32])
}

fn question() -> Question {
    let now = Timestamp::now();
    serde_json::from_value(json!({
        "id": ApprovalId::random().unwrap(), "tool": "Bash", "key": key(1), "session": "s", "agent": null, "scope": null,
        "directory": "/p", "request": {"command": "make"}, "effects": [], "risk_level": "low", "rule": null, "place": null,
        "reason": "why", "asked_at": now, "deadline": now.after(Duration::from_secs(60)),
    }))
    .unwrap()
}

#[test]
fn the_most_specific_grant_is_spent_whatever_the_order_of_granting() {
    for Made { store, .. } in stores() {
        let mut terms = Vec::new();
        for key in [None, Some(key(1))] {
            for target in [None, Some("a@x.com")] {
                for scope in [None, Some("t")] {
                    let mut term =
                        target.map_or_else(|| Terms::for_any("send"), |target| Terms::for_target("send", target));
                    term.key = key;
                    term.scope = scope.map(Into::into);
                    terms.push(term);
                }
            }
        }
        let demand = Demand::new("send", ["A@x.com "]).scope(Some("t".into())).request(Some(key(1)));
        // granted from the least to the most specific
        let mut ids: Vec<_> = terms.iter().map(|terms| store.grant(terms, at(0)).unwrap()).collect();
        while let Some(expected) = ids.pop() {
            assert_eq!(store.consume(&demand, at(1)).unwrap(), Some(vec![expected]));
        }
        assert_eq!(store.consume(&demand, at(1)).unwrap(), None);
    }
}

#[test]
fn scopes_actions_and_keys_are_strict() {
    for Made { store, .. } in stores() {
        store.grant(&Terms::for_any("send").scope("t"), at(0)).unwrap();
        store.grant(&Terms::for_any("send").request(key(1)), at(0)).unwrap();
        let demand = Demand::new("send", ["a"]);
        let refused = [
            demand.clone(),
            demand.clone().scope(Some("T".into())),
            demand.clone().scope(Some("".into())),
            demand.clone().request(Some(key(2))),
            Demand::new("Send", ["a"]).scope(Some("t".into())),
            Demand::new("send", [""; 0]).scope(Some("t".into())),
        ];
        for demand in refused {
            assert_eq!(store.consume(&demand, at(1)).unwrap(), None, "{demand:?}");
        }
        assert_eq!(store.grants().unwrap().len(), 2);
    }
}

#[test]
fn several_targets_are_spent_all_or_none() {
    for Made { store, .. } in stores() {
        store.grant(&Terms::for_target("send", "a"), at(0)).unwrap();
        let both = Demand::new("send", ["a", "b"]);
        assert_eq!(store.consume(&both, at(1)).unwrap(), None);
        let any = store.grant(&Terms::for_any("send").uses(NonZeroU32::new(2).unwrap()), at(0)).unwrap();
        assert_eq!(store.consume(&both, at(1)).unwrap().map(|ids| ids.len()), Some(2));
        let left = store.grants().unwrap();
        assert_eq!((left.len(), left[0].id, left[0].left.get()), (1, any, 1));
        assert_eq!(store.consume(&both, at(1)).unwrap(), None, "one use does not serve two targets");
    }
}

#[test]
fn expiry_and_a_clock_that_jumps() {
    for Made { store, .. } in stores() {
        let uses = NonZeroU32::new(9).unwrap();
        store.grant(&Terms::for_any("send").expires(at(60)).uses(uses), at(0)).unwrap();
        let served = |now| store.consume(&Demand::new("send", ["a"]), now).unwrap().is_some();
        assert!(served(at(59)) && !served(at(60)) && served(at(59)) && served(at(-3)) && !served(at(-3600)));
    }
}

#[test]
fn a_grant_comes_back_as_it_was_given_and_is_revoked_once() {
    for Made { store, .. } in stores() {
        let terms = Terms::for_target("send", " Zoë@X.com")
            .scope("t")
            .request(key(7))
            .uses(NonZeroU32::new(3).unwrap())
            .expires(at(60))
            .by("ada")
            .because("invoice");
        let id = store.grant(&terms, at(0)).unwrap();
        let listed = store.grants().unwrap();
        assert_eq!((listed.len(), &listed[0].terms, listed[0].granted_at), (1, &terms, at(0)));
        assert_eq!(store.revoke(id).unwrap().as_ref(), Some(&listed[0]));
        assert_eq!(store.revoke(id).unwrap(), None);
        let next = store.grant(&terms, at(0)).unwrap();
        assert!(next > id, "an id is never given twice");
    }
}

#[test]
fn a_question_is_settled_once() {
    for Made { store, .. } in stores() {
        let question = question();
        store.open(&question).unwrap();
        assert!(store.open(&question).is_err());
        assert_eq!(store.pending().unwrap(), std::slice::from_ref(&question));
        let yes = ApprovalOutcome::from(ApprovalDecision::Approved);
        assert_eq!(store.settle(&question.id, &yes).unwrap(), SettleResult::Settled);
        assert_eq!(store.settle(&question.id, &ApprovalOutcome::TimedOut).unwrap(), SettleResult::Before(yes.clone()));
        assert!(store.pending().unwrap().is_empty());
        assert_eq!(store.question(&question.id).unwrap().unwrap().outcome, Some(yes));
        let unknown: ApprovalId = "0000000000000000".parse().unwrap();
        assert_eq!(store.settle(&unknown, &ApprovalOutcome::Cancelled).unwrap(), SettleResult::Unknown);
        assert_eq!(store.question(&unknown).unwrap(), None);
    }
}

#[test]
fn sessions_remember_count_and_forget() {
    for Made { store, .. } in stores() {
        let (one, other) = (Remembered::Request(key(1)), Remembered::Exec(Exec { id: "7".into(), shell: true }));
        for what in [&one, &other, &one] {
            store.remember("s", what).unwrap();
        }
        assert_eq!(store.remembered("s").unwrap(), [one, other]);
        assert!(store.remembered("t").unwrap().is_empty());
        assert_eq!([1, 2].map(|_| store.add_denial("s", &key(1)).unwrap()), [1, 2]);
        assert_eq!((store.denials("s", &key(1)).unwrap(), store.denials("s", &key(2)).unwrap()), (2, 0));
        let automatic = Automatic { blanket: true, tools: ["Write".to_owned()].into() };
        store.set_automatic("u", &automatic).unwrap();
        assert_eq!(store.automatic("u").unwrap(), automatic);
        assert_eq!(store.automatic("s").unwrap(), Automatic::default());
        assert_eq!(store.sessions().unwrap(), ["s", "u"]);
        store.reset_session("s").unwrap();
        assert_eq!(store.sessions().unwrap(), ["u"]);
        assert_eq!(store.denials("s", &key(1)).unwrap(), 0);
    }
}

#[test]
fn two_hundred_uses_are_spent_once_each_by_eight_threads() {
    for Made { store, .. } in stores() {
        for _ in 0..50 {
            store.grant(&Terms::for_any("send").uses(NonZeroU32::new(4).unwrap()), at(0)).unwrap();
        }
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let store = Arc::clone(&store);
                thread::spawn(move || {
                    let demand = Demand::new("send", ["a"]);
                    std::iter::repeat_with(|| store.consume(&demand, at(1)).unwrap())
                        .take_while(Option::is_some)
                        .count()
                })
            })
            .collect();
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>(), 200);
        assert!(store.grants().unwrap().is_empty());
    }
}

#[test]
fn a_store_is_the_second_key_of_a_guard() {
    for Made { store, .. } in stores() {
        let guard = Guard::new(Allowlist::of(["a".into()]), Arc::clone(&store));
        assert!(guard.open("send", vec!["a".into()], None).is_err());
        store.grant(&Terms::for_any("send"), Timestamp::now()).unwrap();
        assert!(guard.open("send", vec!["b".into()], None).is_err());
        assert_eq!(guard.open("send", vec!["a".into()], None).unwrap().grants().len(), 1);
    }
}

#[test]
fn a_second_process_answers_what_the_first_one_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.sqlite");
    // two stores on one file stand in for two processes: they share nothing else
    let first = Coordinator::new(Arc::new(SqliteStore::open(&path).unwrap()));
    let second = Coordinator::new(Arc::new(SqliteStore::open(&path).unwrap()));
    let question = question();
    first.open(&question).unwrap();
    let waiter = {
        let (first, id) = (first.clone(), question.id.clone());
        thread::spawn(move || first.wait(&id, Duration::from_secs(30)))
    };
    let [seen] = second.pending().unwrap().try_into().unwrap();
    assert_eq!(seen, question);
    let begin = Instant::now();
    second.resolve(&seen.id, Answer::new(ApprovalDecision::Denied).because("no")).unwrap();
    let outcome = waiter.join().unwrap().unwrap();
    assert_eq!(outcome, ApprovalOutcome::Answered(Answer::new(ApprovalDecision::Denied).because("no")));
    assert!(begin.elapsed() < Duration::from_secs(60));
    let again = second.resolve(&seen.id, Answer::new(ApprovalDecision::Approved));
    assert!(matches!(again, Err(AnswerError::Settled { .. })));
}

#[test]
fn what_was_stored_is_there_when_the_store_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.sqlite");
    let open = || SqliteStore::open(&path).unwrap();
    let question = question();
    open().grant(&Terms::for_any("send"), at(0)).unwrap();
    open().open(&question).unwrap();
    open().remember("s", &Remembered::Request(key(1))).unwrap();
    let store = open();
    assert_eq!(store.pending().unwrap(), [question]);
    assert_eq!(store.remembered("s").unwrap(), [Remembered::Request(key(1))]);
    assert!(store.consume(&Demand::new("send", ["a"]), at(1)).unwrap().is_some());
    drop(store);
    assert_eq!(
        open().consume(&Demand::new("send", ["a"]), at(1)),
        Ok(None::<Vec<_>>).map_err(|error: StoreError| error)
    );
}
