//! Every row and sentence of the contract: allow list, one-shot grants, scopes, refusals.

use std::num::NonZeroU32;
use std::time::Duration;

use super::*;
use crate::key::ApprovalKey;
use callgate_model::clock::Timestamp;

const CUSTOMER: &str = "customer@x.com";

fn key(byte: u8) -> ApprovalKey {
    ApprovalKey::from([byte; 32])
}

mod allow_list {
    use super::*;

    #[test]
    fn no_list_permits_everything() {
        let list = Allowlist::from(None::<Vec<&str>>);
        assert!(list.permits("a@x.com") && list.permits("") && list.permits("*"));
    }

    #[test]
    fn an_empty_list_permits_nothing() {
        let list = Allowlist::from(Some(Vec::<&str>::new()));
        assert!(!list.permits("a@x.com") && !list.permits("") && !list.permits("*"));
    }

    #[test]
    fn a_list_permits_exactly_its_targets_as_text_in_any_case() {
        let list = Allowlist::of(["a@x.com".into(), 42.into()]);
        for permitted in ["42", "A@X.com", "a@x.com", " a@x.com"] {
            assert!(list.permits(permitted), "{permitted}");
        }
        for other in ["b@x.com", "4", "420", "a@x.co", "a@x.com.evil", "*", ""] {
            assert!(!list.permits(other), "{other}");
        }
    }
}

mod one_shot {
    use super::*;

    #[test]
    fn a_grant_authorises_one_action_and_is_spent() {
        let gate = ConfirmationGate::new();
        gate.grant("alice@x.com");
        assert!(gate.consume("alice@x.com"));
        assert!(!gate.consume("alice@x.com"));
    }

    #[test]
    fn an_any_target_grant_authorises_one_action_to_any_target() {
        let gate = ConfirmationGate::new();
        gate.grant_any();
        assert!(gate.consume("whoever@x.com"));
        assert!(!gate.consume("whoever@x.com"));
    }

    #[test]
    fn without_a_grant_nothing_is_permitted() {
        assert!(!ConfirmationGate::new().consume("alice@x.com"));
    }

    #[test]
    fn two_grants_authorise_two_actions() {
        let gate = ConfirmationGate::new();
        gate.grant("alice@x.com");
        gate.grant("Alice@X.com");
        assert!(gate.consume("alice@x.com") && gate.consume("alice@x.com"));
        assert!(!gate.consume("alice@x.com"));
    }

    #[test]
    fn a_disabled_gate_permits_everything_and_spends_nothing() {
        let gate = ConfirmationGate::disabled();
        assert!(!gate.enabled() && ConfirmationGate::new().enabled());
        gate.grant("alice@x.com");
        assert!(gate.consume("alice@x.com") && gate.consume("bob@x.com") && gate.consume_in("bob@x.com", "t"));
        assert_eq!(gate.outstanding().len(), 1);
    }

    #[test]
    fn gates_share_nothing() {
        let (one, other) = (ConfirmationGate::new(), ConfirmationGate::new());
        one.grant("alice@x.com");
        assert!(!other.consume("alice@x.com"));
        assert!(one.consume("alice@x.com"));
    }

    #[test]
    fn no_text_means_any_target() {
        let gate = ConfirmationGate::new();
        for text in ["*", "any", "**", "(any target)", "", "null", "None", "\"any\""] {
            gate.grant(text);
        }
        assert!(!gate.consume("alice@x.com"));
        gate.grant_any();
        assert!(gate.consume("*"));
        assert!(gate.consume("alice@x.com"), "the grant for the target called * was spent first");
    }
}

mod specificity {
    use super::*;

    /// The four in the documented order; whichever are there, the first of them is spent.
    #[test]
    fn the_most_specific_grant_is_spent_first() {
        for present in 1_u8..16 {
            let gate = ConfirmationGate::new();
            let mut ids = Vec::new();
            // granted from the least to the most specific, so that age decides nothing
            for index in (0..4).rev().filter(|index| present & (1 << index) != 0) {
                ids.push(match index {
                    0 => gate.grant_in(CUSTOMER, "t"),
                    1 => gate.grant(CUSTOMER),
                    2 => gate.grant_any_in("t"),
                    _ => gate.grant_any(),
                });
            }
            while let Some(expected) = ids.pop() {
                assert!(gate.consume_in(CUSTOMER, "t"));
                assert_eq!(gate.revoke(expected), None, "the most specific of {present:04b} was not spent");
            }
            assert!(!gate.consume_in(CUSTOMER, "t"));
        }
    }

    #[test]
    fn a_grant_for_exactly_this_request_goes_before_all_others_and_serves_no_other() {
        let gate = ConfirmationGate::new();
        let broad = gate.grant_in(CUSTOMER, "t");
        let exact = gate.grant_on(Terms::for_any("").request(key(1)));
        let demand = |key| Demand::new("", [CUSTOMER]).scope(Some("t".into())).request(key);
        assert!(gate.consume_all(&demand(Some(key(1)))));
        assert_eq!(gate.revoke(exact), None);
        gate.revoke(broad);
        gate.grant_on(Terms::for_target("", CUSTOMER).request(key(1)));
        assert!(!gate.consume_all(&demand(Some(key(2)))));
        assert!(!gate.consume_all(&demand(None)));
        assert!(gate.consume_all(&demand(Some(key(1)))));
    }

    #[test]
    fn of_equals_the_soonest_to_expire_goes_first() {
        let gate = ConfirmationGate::new();
        let forever = gate.grant(CUSTOMER);
        let soon = gate.grant_on(Terms::for_target("", CUSTOMER).expires_in(Duration::from_secs(60)));
        assert!(gate.consume(CUSTOMER));
        assert_eq!(gate.revoke(soon), None);
        assert!(gate.revoke(forever).is_some());
    }
}

mod scopes {
    use super::*;

    #[test]
    fn concurrent_tasks_spend_each_their_own_grant() {
        let gate = ConfirmationGate::new();
        gate.grant_in(CUSTOMER, "task-A");
        gate.grant_in(CUSTOMER, "task-B");
        assert!(gate.consume_in(CUSTOMER, "task-B"));
        assert!(!gate.consume_in(CUSTOMER, "task-B"));
        assert!(gate.consume_in(CUSTOMER, "task-A"));
        gate.grant_in(CUSTOMER, "task-C");
        assert!(!gate.consume(CUSTOMER));
        assert!(gate.consume_in(CUSTOMER, "task-C"));
    }

    #[test]
    fn a_scoped_any_target_grant_is_never_spent_without_its_scope() {
        let gate = ConfirmationGate::new();
        gate.grant_any_in("task-A");
        assert!(!gate.consume(CUSTOMER));
        assert!(!gate.consume_in(CUSTOMER, "task-B"));
        assert!(!gate.consume_in(CUSTOMER, "TASK-A"), "scopes are identifiers, compared exactly");
        assert!(!gate.consume_in(CUSTOMER, ""), "an empty scope is a scope");
        assert!(gate.consume_in(CUSTOMER, "task-A"));
    }

    #[test]
    fn a_grant_without_a_scope_serves_every_task() {
        let gate = ConfirmationGate::new();
        gate.grant(CUSTOMER);
        assert!(gate.consume_in(CUSTOMER, "task-A"));
    }
}

/// What people stumble over, each as it is meant.
mod troubleshooting {
    use super::*;

    #[test]
    fn everything_is_allowed_because_there_is_no_list() {
        assert!(Allowlist::from(None::<Vec<&str>>).permits(CUSTOMER));
        assert!(!Allowlist::of(["other@x.com".into()]).permits(CUSTOMER), "an explicit list is the remedy");
    }

    #[test]
    fn everything_is_denied_because_the_list_is_empty() {
        assert!(!Allowlist::from(Some(Vec::<&str>::new())).permits(CUSTOMER));
        assert!(Allowlist::from(Some(vec![CUSTOMER])).permits(CUSTOMER));
    }

    #[test]
    fn consume_is_false_right_after_grant_because_the_scopes_differ() {
        let gate = ConfirmationGate::new();
        gate.grant_in(CUSTOMER, "task-A");
        assert!(!gate.consume(CUSTOMER));
        assert!(gate.consume_in(CUSTOMER, "task-A"), "the same scope is the remedy");
    }

    #[test]
    fn a_grant_works_only_once_because_it_is_one_shot() {
        let gate = ConfirmationGate::new();
        for _ in 0..2 {
            gate.grant(CUSTOMER);
        }
        assert_eq!((0..5).filter(|_| gate.consume(CUSTOMER)).count(), 2, "one grant for each action is the remedy");
    }

    #[test]
    fn the_gate_seems_to_do_nothing_because_it_is_disabled() {
        assert!(ConfirmationGate::disabled().consume(CUSTOMER));
        assert!(!ConfirmationGate::new().consume(CUSTOMER));
    }
}

mod beyond_one_use {
    use super::*;

    fn uses(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn a_grant_of_three_uses_serves_three_times() {
        let gate = ConfirmationGate::new();
        gate.grant_on(Terms::for_target("", CUSTOMER).uses(uses(3)));
        let served = (0..5).filter(|_| gate.consume(CUSTOMER)).count();
        assert_eq!(served, 3);
    }

    #[test]
    fn a_revoked_grant_serves_nobody_and_is_revoked_once() {
        let gate = ConfirmationGate::new();
        let id = gate.grant(CUSTOMER);
        assert_eq!(gate.revoke(id).map(|grant| grant.id), Some(id));
        assert_eq!(gate.revoke(id), None);
        assert!(!gate.consume(CUSTOMER));
    }

    #[test]
    fn what_is_outstanding_says_who_granted_it_and_why() {
        let gate = ConfirmationGate::new();
        gate.grant_on(Terms::for_target("", CUSTOMER).uses(uses(2)).by("ada").because("invoice"));
        assert!(gate.consume(CUSTOMER));
        let [grant] = gate.outstanding().try_into().unwrap();
        assert_eq!(
            (grant.left.get(), grant.terms.granted_by.as_str(), grant.terms.reason.as_str()),
            (1, "ada", "invoice")
        );
    }

    #[test]
    fn an_expired_grant_serves_nobody() {
        let mut ledger = Ledger::default();
        let start = Timestamp::from_milliseconds(1_000_000);
        let at = |seconds: i64| Timestamp::from_milliseconds(1_000_000 + seconds * 1000);
        ledger.add(Terms::for_any("send").expires(at(60)).uses(uses(9)), start);
        let demand = Demand::new("send", [CUSTOMER]);
        assert!(ledger.consume(&demand, at(59)).is_some());
        assert!(ledger.consume(&demand, at(60)).is_none());
        assert!(
            ledger.consume(&demand, at(59)).is_some(),
            "a clock that jumped forward and was corrected lost nothing"
        );
        assert!(ledger.consume(&demand, at(-3)).is_some(), "a small correction of the clock is harmless");
        assert!(ledger.consume(&demand, at(-3600)).is_none(), "a clock that was set back makes no grant longer");
        assert_eq!(ledger.forget_expired(at(60)).len(), 1);
        assert_eq!(ledger.outstanding().count(), 0);
    }
}

mod several_targets {
    use super::*;

    #[test]
    fn a_recipient_list_needs_a_grant_for_each_and_spends_all_or_none() {
        let gate = ConfirmationGate::new();
        gate.grant("a@x.com");
        let both = Demand::new("", ["a@x.com", "evil@y.com"]);
        assert!(!gate.consume_all(&both));
        assert!(!gate.consume("a@x.com, evil@y.com"));
        gate.grant("evil@y.com");
        assert!(gate.consume_all(&both), "the refused attempt spent nothing");
        assert!(!gate.consume("a@x.com") && !gate.consume("evil@y.com"));
    }

    #[test]
    fn one_any_target_grant_does_not_serve_two_targets() {
        let gate = ConfirmationGate::new();
        gate.grant_any();
        assert!(!gate.consume_all(&Demand::new("", ["a@x.com", "b@x.com"])));
        gate.grant_any();
        assert!(gate.consume_all(&Demand::new("", ["a@x.com", "b@x.com"])));
    }

    #[test]
    fn a_target_named_twice_counts_once_and_nobody_is_granted_nothing() {
        let gate = ConfirmationGate::new();
        gate.grant("a@x.com");
        assert!(!gate.consume_all(&Demand::new("", Vec::<&str>::new())));
        assert!(gate.consume_all(&Demand::new("", ["a@x.com", "A@X.COM "])));
    }
}

mod two_keys {
    use super::*;

    /// Sends nothing; says what it would have done.
    struct Letter;

    #[derive(Debug, PartialEq, thiserror::Error)]
    enum LetterError {
        #[error(transparent)]
        Blocked(#[from] ActionBlocked),
        #[error("no body")]
        Empty,
    }

    impl GuardedAction for Letter {
        type Request = (Vec<&'static str>, &'static str);
        type Preview = String;
        type Outcome = usize;
        type Error = LetterError;

        fn name(&self) -> &str {
            "letter_send"
        }

        fn targets(&self, (to, body): &Self::Request) -> Result<Vec<GrantTarget>, LetterError> {
            if body.is_empty() {
                Err(LetterError::Empty)
            } else {
                Ok(to.iter().map(|to| GrantTarget::new(to)).collect())
            }
        }

        fn preview(&self, (to, body): &Self::Request) -> Result<String, LetterError> {
            Ok(format!("{to:?}: {body}"))
        }

        fn perform(&self, _: Self::Request, spent: Spent) -> Result<usize, LetterError> {
            Ok(spent.grants().len())
        }
    }

    fn guard(allowlist: Allowlist) -> Guard<ConfirmationGate> {
        Guard::new(allowlist, ConfirmationGate::new())
    }

    #[test]
    fn both_keys_are_needed() {
        let guard = guard(Allowlist::of(["a@x.com".into()]));
        let send = |to| guard.perform(&Letter, (vec![to], "secret body"));
        assert!(send("a@x.com").is_err(), "listed, not granted");
        guard.grants().grant("b@x.com");
        assert!(send("b@x.com").is_err(), "granted, not listed");
        guard.grants().grant("a@x.com");
        assert_eq!(send("a@x.com"), Ok(1));
        assert!(send("a@x.com").is_err(), "spent");
    }

    #[test]
    fn a_request_refused_for_another_reason_burns_no_grant() {
        let guard = guard(Allowlist::of(["a@x.com".into()]));
        guard.grants().grant("a@x.com");
        assert_eq!(guard.perform(&Letter, (vec!["a@x.com"], "")), Err(LetterError::Empty));
        assert!(guard.perform(&Letter, (vec!["a@x.com", "b@x.com"], "hi")).is_err());
        assert!(guard.perform(&Letter, (vec![], "hi")).is_err());
        assert_eq!(guard.perform(&Letter, (vec!["a@x.com"], "hi")), Ok(1));
    }

    #[test]
    fn the_companion_is_never_gated() {
        assert!(Letter.preview(&(vec!["anyone@x.com"], "hi")).is_ok());
    }

    #[test]
    fn a_refusal_names_action_and_reason_and_nothing_else() {
        let guard = guard(Allowlist::of(["a@x.com".into()]));
        let refusals = [
            guard.perform(&Letter, (vec!["a@x.com"], "secret body")).unwrap_err().to_string(),
            guard.perform(&Letter, (vec!["a@x.com", "b@x.com"], "secret body")).unwrap_err().to_string(),
            guard.perform(&Letter, (vec![], "secret body")).unwrap_err().to_string(),
        ];
        assert_eq!(
            refusals,
            [
                "letter_send is blocked: no outstanding grant covers it in this scope",
                "letter_send is blocked: target 2 of 2 is not on the allow list",
                "letter_send is blocked: the request names no target",
            ]
        );
    }

    #[test]
    fn a_refusal_is_a_permission_error_to_those_who_know_only_those() {
        let error = std::io::Error::from(ActionBlocked::new("letter_send", BlockReason::NotGranted));
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn the_running_task_spends_its_own_grant() {
        let guard = guard(Allowlist::everything());
        guard.grants().grant_in("a@x.com", "task-a");
        let send = || guard.perform(&Letter, (vec!["a@x.com"], "hi"));
        assert!(send().is_err());
        assert!(in_scope("task-b", send).is_err());
        assert_eq!(in_scope("task-a", send), Ok(1));
    }
}

/// Every interleaving that the model checker comes up with, not only those that this machine happens to have.
mod interleavings {
    use std::sync::Arc;

    use shuttle::thread;

    use super::*;
    use crate::monitor::shuttled::Shuttled;

    type Gate = ConfirmationGate<Shuttled>;

    fn spenders(gate: &Arc<Gate>, count: usize, spend: fn(&Gate, usize) -> bool) -> usize {
        let threads: Vec<_> = (0..count)
            .map(|index| {
                let gate = Arc::clone(gate);
                thread::spawn(move || spend(&gate, index))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|spent| *spent).count()
    }

    #[test]
    fn one_grant_is_never_spent_twice() {
        shuttle::check_random(
            || {
                let gate = Arc::new(Gate::with_primitives());
                gate.grant(CUSTOMER);
                assert_eq!(spenders(&gate, 3, |gate, _| gate.consume(CUSTOMER)), 1);
            },
            500,
        );
    }

    #[test]
    fn several_uses_and_a_revocation_add_up() {
        shuttle::check_random(
            || {
                let gate = Arc::new(Gate::with_primitives());
                let id = gate.grant_on(Terms::for_any("").uses(NonZeroU32::new(3).unwrap()));
                let revoker = {
                    let gate = Arc::clone(&gate);
                    thread::spawn(move || gate.revoke(id).map_or(0, |grant| grant.left.get()))
                };
                let spent = spenders(&gate, 4, |gate, _| gate.consume(CUSTOMER));
                let revoked = revoker.join().unwrap();
                assert_eq!(spent + usize::try_from(revoked).unwrap(), 3);
            },
            500,
        );
    }

    #[test]
    fn no_task_spends_the_grant_of_another() {
        shuttle::check_random(
            || {
                let gate = Arc::new(Gate::with_primitives());
                gate.grant_in(CUSTOMER, "task-0");
                gate.grant_any_in("task-1");
                let spent = spenders(&gate, 4, |gate, index| match index {
                    0 | 1 => gate.consume_in(CUSTOMER, format!("task-{index}")),
                    2 => gate.consume(CUSTOMER),
                    _ => gate.consume_in(CUSTOMER, "task-9"),
                });
                assert_eq!(spent, 2);
                assert!(gate.outstanding().is_empty());
            },
            500,
        );
    }

    #[test]
    fn a_list_of_recipients_is_spent_as_a_whole() {
        shuttle::check_random(
            || {
                let gate = Arc::new(Gate::with_primitives());
                gate.grant("a@x.com");
                gate.grant("b@x.com");
                let spent = spenders(&gate, 3, |gate, index| match index {
                    0 => gate.consume_all(&Demand::new("", ["a@x.com", "b@x.com"])),
                    1 => gate.consume("a@x.com"),
                    _ => gate.consume("b@x.com"),
                });
                assert!(matches!((spent, gate.outstanding().len()), (1, 0) | (2, 0)), "{spent}");
            },
            500,
        );
    }
}
