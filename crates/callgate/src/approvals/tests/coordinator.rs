//! Waiting, answering once, silence.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::approvals::channel::Elsewhere;
use crate::store::{MemoryStore, Store};

fn coordinator() -> Coordinator {
    Coordinator::new(Arc::new(MemoryStore::new()))
}

fn elsewhere() -> Arc<dyn Approver> {
    Arc::new(Elsewhere)
}

#[test]
fn an_answer_by_id_reaches_whoever_waits_with_its_reason() {
    let coordinator = coordinator();
    let question = question();
    let answerer = {
        let (coordinator, id) = (coordinator.clone(), question.id.clone());
        thread::spawn(move || {
            while coordinator.pending().unwrap().is_empty() {
                thread::yield_now();
            }
            coordinator.resolve(&id, Answer::new(ApprovalDecision::Denied).because("not on a Friday"))
        })
    };
    let outcome = coordinator.ask(&question, &elsewhere()).unwrap();
    assert_eq!(outcome, ApprovalOutcome::Answered(Answer::new(ApprovalDecision::Denied).because("not on a Friday")));
    assert_eq!(answerer.join().unwrap(), Ok(()));
    assert!(coordinator.pending().unwrap().is_empty());
}

#[test]
fn silence_is_timed_out_which_is_not_denied_and_is_a_no() {
    let coordinator = coordinator();
    let begin = Instant::now();
    let outcome = coordinator.ask(&question_for(Duration::from_millis(80)), &elsewhere()).unwrap();
    assert_eq!(outcome, ApprovalOutcome::TimedOut);
    assert!(!outcome.is_yes());
    assert!(begin.elapsed() >= Duration::from_millis(79) && begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_question_is_answered_once() {
    let coordinator = coordinator();
    let question = question();
    coordinator.open(&question).unwrap();
    coordinator.resolve(&question.id, Answer::new(ApprovalDecision::Denied)).unwrap();
    let again = coordinator.resolve(&question.id, Answer::new(ApprovalDecision::Approved));
    assert_eq!(again.unwrap_err().to_string(), format!("question {} is already settled: denied", question.id));
    assert_eq!(coordinator.wait(&question.id, Duration::ZERO).unwrap(), ApprovalDecision::Denied.into());
}

#[test]
fn an_unknown_id_is_said_to_be_unknown() {
    let id: ApprovalId = "0123456789abcdef".parse().unwrap();
    assert_eq!(
        coordinator().resolve(&id, Answer::new(ApprovalDecision::Approved)),
        Err(AnswerError::Unknown(id.clone()))
    );
    assert_eq!(coordinator().cancel(&id), Err(AnswerError::Unknown(id)));
    for text in ["", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "../../etc/passwd"]
    {
        assert_eq!(text.parse::<ApprovalId>(), Err(NoApprovalId), "{text}");
    }
}

#[test]
fn an_answer_that_comes_too_late_is_none() {
    let coordinator = coordinator();
    let question = question_for(Duration::ZERO);
    coordinator.open(&question).unwrap();
    assert!(coordinator.pending().unwrap().is_empty());
    assert!(coordinator.resolve(&question.id, Answer::new(ApprovalDecision::Approved)).is_err());
    assert_eq!(coordinator.wait(&question.id, Duration::ZERO).unwrap(), ApprovalOutcome::TimedOut);
}

#[test]
fn a_clock_that_jumps_neither_prolongs_the_wait_nor_lets_a_late_answer_count() {
    let coordinator = coordinator();
    let hour = Duration::from_secs(3600);
    // set back by an hour after the question was asked: its deadline seems far away
    let ahead = Timestamp::now().after(hour);
    let question = Question { asked_at: ahead, deadline: ahead.after(Duration::from_millis(50)), ..question() };
    assert_eq!(coordinator.ask(&question, &elsewhere()), Ok(ApprovalOutcome::TimedOut));
    assert!(coordinator.resolve(&question.id, Answer::new(ApprovalDecision::Approved)).is_err());
    // set forward: the deadline seems past, and who answers now is told so
    let past = Timestamp::from_milliseconds(Timestamp::now().milliseconds() - 3_600_000);
    let question = Question { asked_at: past, deadline: past.after(Duration::from_secs(60)), ..self::question() };
    coordinator.open(&question).unwrap();
    assert!(coordinator.resolve(&question.id, Answer::new(ApprovalDecision::Approved)).is_err());
    assert_eq!(coordinator.wait(&question.id, hour), Ok(ApprovalOutcome::TimedOut));
}

#[test]
fn an_answer_for_one_question_settles_no_other() {
    let coordinator = coordinator();
    let (one, other) = (question(), question());
    coordinator.open(&one).unwrap();
    coordinator.open(&other).unwrap();
    coordinator.resolve(&one.id, Answer::new(ApprovalDecision::Approved)).unwrap();
    assert_eq!(coordinator.pending().unwrap(), std::slice::from_ref(&other));
    assert_eq!(coordinator.wait(&other.id, Duration::ZERO), Ok(ApprovalOutcome::TimedOut));
}

#[test]
fn a_cancelled_question_is_a_no_and_cannot_be_answered() {
    let coordinator = coordinator();
    let question = question();
    coordinator.open(&question).unwrap();
    coordinator.cancel(&question.id).unwrap();
    assert!(coordinator.resolve(&question.id, Answer::new(ApprovalDecision::Approved)).is_err());
    assert_eq!(coordinator.wait(&question.id, Duration::from_secs(5)).unwrap(), ApprovalOutcome::Cancelled);
}

#[test]
fn an_approver_that_panics_or_is_not_there_is_a_no_and_the_next_question_works() {
    struct Panics;
    impl Approver for Panics {
        fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
            panic!("on purpose")
        }
    }
    let coordinator = coordinator();
    let panics: Arc<dyn Approver> = Arc::new(Panics);
    let nobody: Arc<dyn Approver> = Always::saying(None);
    let yes: Arc<dyn Approver> = Always::saying(Answer::new(ApprovalDecision::Approved));
    assert!(matches!(coordinator.ask(&question(), &panics), Ok(ApprovalOutcome::Unanswerable(_))));
    assert!(matches!(coordinator.ask(&question(), &nobody), Ok(ApprovalOutcome::Unanswerable(_))));
    assert_eq!(coordinator.ask(&question(), &yes), Ok(ApprovalDecision::Approved.into()));
}

#[test]
fn an_approver_that_hangs_does_not_hold_up_the_caller() {
    struct Hangs;
    impl Approver for Hangs {
        fn ask(&self, _: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
            while open() {
                thread::sleep(Duration::from_millis(5));
            }
            Ok(Answer::new(ApprovalDecision::Approved))
        }
    }
    let hangs: Arc<dyn Approver> = Arc::new(Hangs);
    let coordinator = coordinator();
    let question = question_for(Duration::from_millis(50));
    assert_eq!(coordinator.ask(&question, &hangs), Ok(ApprovalOutcome::TimedOut));
    thread::sleep(Duration::from_millis(50));
    assert_eq!(
        coordinator.wait(&question.id, Duration::ZERO),
        Ok(ApprovalOutcome::TimedOut),
        "the late yes changed nothing"
    );
}

#[test]
fn a_question_of_an_id_that_was_used_is_refused() {
    let store = MemoryStore::new();
    let question = question();
    store.open(&question).unwrap();
    assert!(store.open(&question).is_err());
}

/// Every interleaving that the model checker comes up with.
mod interleavings {
    use shuttle::thread;

    use super::*;
    use crate::monitor::shuttled::Shuttled;

    #[test]
    fn of_two_answers_one_counts_and_the_waiter_sees_that_one() {
        shuttle::check_random(
            || {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::<Shuttled>::with_primitives());
                let coordinator = Coordinator::<Shuttled>::with_primitives(store);
                let question = question();
                coordinator.open(&question).unwrap();
                let answerers: Vec<_> = [ApprovalDecision::Approved, ApprovalDecision::Denied]
                    .into_iter()
                    .map(|decision| {
                        let (coordinator, id) = (coordinator.clone(), question.id.clone());
                        thread::spawn(move || {
                            coordinator.resolve(&id, Answer::new(decision)).is_ok().then_some(decision)
                        })
                    })
                    .collect();
                let outcome = coordinator.wait(&question.id, Duration::from_secs(9)).unwrap();
                let counted: Vec<ApprovalDecision> =
                    answerers.into_iter().filter_map(|answerer| answerer.join().unwrap()).collect();
                let [decision] = counted.try_into().expect("exactly one answer counts");
                assert_eq!(outcome, decision.into());
            },
            500,
        );
    }

    #[test]
    fn time_running_out_and_an_answer_never_both_count() {
        shuttle::check_random(
            || {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::<Shuttled>::with_primitives());
                let coordinator = Coordinator::<Shuttled>::with_primitives(store);
                let question = question();
                coordinator.open(&question).unwrap();
                let answerer = {
                    let (coordinator, id) = (coordinator.clone(), question.id.clone());
                    thread::spawn(move || coordinator.resolve(&id, Answer::new(ApprovalDecision::Approved)).is_ok())
                };
                let outcome = coordinator.wait(&question.id, Duration::ZERO).unwrap();
                assert_eq!(outcome.is_yes(), answerer.join().unwrap());
            },
            500,
        );
    }
}
