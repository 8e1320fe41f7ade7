//! "Always" is written after the yes is recorded, and only then: wherever a process ends, no rule stands to which nobody is known to have
//! agreed.

use super::*;

/// What happened, in order: events by their names, and rules.
#[derive(Clone, Default)]
struct Story {
    told: Arc<Mutex<Vec<String>>>,
    /// The event at which everything ends.
    ends_at: Option<&'static str>,
}

impl EventSink for Story {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        let name = event.kind.name();
        if self.ends_at == Some(name) {
            return Err(EventError("the disk is full".into()));
        }
        self.told.lock().unwrap().push(name.to_owned());
        Ok(())
    }
}

fn always() -> Answer {
    Answer { always: Some(0), ..Answer::new(ApprovalDecision::Approved) }
}

/// What is told of a call to which somebody answers this; whether it may run.
fn story(answer: Answer, ends_at: Option<&'static str>) -> (bool, Vec<String>) {
    let story = Story { ends_at, ..Story::default() };
    let store: Arc<MemoryStore> = Arc::new(MemoryStore::new());
    let told = Arc::clone(&story.told);
    let kept: Arc<MemoryStore> = Arc::clone(&store);
    let asked: Arc<Mutex<Option<crate::approvals::ApprovalId>>> = Arc::default();
    let person = {
        let asked = Arc::clone(&asked);
        move |question: &Question| {
            *asked.lock().unwrap() = Some(question.id.clone());
            answer.clone()
        }
    };
    let approvals = Approvals::new(store, Arc::new(person)).always(move |proposal| {
        let id = asked.lock().unwrap().clone().unwrap();
        let settled = kept.question(&id).unwrap().unwrap().outcome.is_some_and(|outcome| outcome.is_yes());
        told.lock().unwrap().push(format!("rule for {}, the store has the yes: {settled}", proposal.extent));
    });
    let gate = Gate::builder()
        .policy(Policy::from_yaml(POLICY, "test.yaml").unwrap())
        .file_system(Fake::new().file("/ws/a.txt"))
        .approvals(approvals)
        .events(story.clone())
        .build();
    let permitted = gate.check(write("/ws/a.txt", "x")).is_ok();
    let told = story.told.lock().unwrap().clone();
    (permitted, told)
}

fn rules(told: &[String]) -> Vec<usize> {
    told.iter().enumerate().filter(|(_, name)| name.starts_with("rule")).map(|(place, _)| place).collect()
}

#[test]
fn the_rule_comes_after_the_yes_in_store_and_log() {
    let (permitted, told) = story(always(), None);
    assert!(permitted);
    let decided = told.iter().position(|name| name == "approval_decided").expect("recorded");
    assert_eq!(rules(&told), [decided + 1], "{told:?}");
    assert!(told[decided + 1].ends_with("the store has the yes: true"), "{told:?}");
}

#[test]
fn where_everything_ends_before_the_yes_is_recorded_there_is_no_rule() {
    let (permitted, told) = story(always(), Some("approval_decided"));
    assert!(!permitted);
    assert!(told.iter().any(|name| name == "approval_requested") && rules(&told).is_empty(), "{told:?}");
}

#[test]
fn no_rule_is_written_for_a_no_for_another_question_or_for_a_proposal_that_was_never_made() {
    for answer in [
        Answer::new(ApprovalDecision::Approved),
        Answer { decision: ApprovalDecision::Denied, ..always() },
        Answer { always: Some(99), ..always() },
    ] {
        let (_, told) = story(answer.clone(), None);
        assert!(rules(&told).is_empty(), "{answer:?} {told:?}");
    }
}

#[test]
fn an_answer_that_came_too_late_writes_no_rule() {
    let written = Arc::new(AtomicUsize::new(0));
    let store = Arc::new(MemoryStore::new());
    let (counted, early) = (Arc::clone(&written), store.clone());
    // somebody else says no while the terminal is still being typed into
    let person = move |question: &Question| {
        early.settle(&question.id, &ApprovalDecision::Denied.into()).unwrap();
        always()
    };
    let approvals = Approvals::new(store, Arc::new(person)).always(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let gate = Gate::builder()
        .policy(Policy::from_yaml(POLICY, "test.yaml").unwrap())
        .file_system(Fake::new().file("/ws/a.txt"))
        .approvals(approvals)
        .build();
    assert!(gate.check(write("/ws/a.txt", "x")).is_err());
    assert_eq!(written.load(Ordering::Relaxed), 0);
}
