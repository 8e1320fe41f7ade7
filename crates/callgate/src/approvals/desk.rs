//! Settles a question: by what is known already, else by asking an approver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::store::{MemoryStore, Store, StoreError};
use super::{
    Answerable, ApprovalDecision, ApprovalId, ApprovalOutcome, Approver, AsyncApprover, Automatic, Coordinator, Exec,
    MAXIMUM_QUESTION, Mode, Proposal, Question, Remembered, RememberedBy,
};
use crate::grant::{Demand, GrantId};
use callgate_model::clock::Timestamp;

/// How many questions are kept at a time: an agent that tries everything must not bury those that matter.
const MOST_KEPT: usize = 100;

/// How often the same request is denied in a session before it is not asked again.
const DENIED_ENOUGH: u32 = 2;

/// How a question was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledBy {
    /// By the mode, without asking.
    Mode,
    /// It was approved for the session before.
    Session,
    /// By auto-approve of the session.
    Automatic,
    /// Grants were spent.
    Grants(Vec<GrantId>),
    /// It was denied twice in this session: it is not asked again.
    DeniedBefore,
    /// A rule of the policy's `approvals:` section answered.
    Rule,
    /// An approver was asked.
    Asked,
    /// The store failed.
    Store(StoreError),
}

/// What became of a question, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledQuestion {
    /// What became of it.
    pub outcome: ApprovalOutcome,
    /// How.
    pub how: SettledBy,
}

impl SettledQuestion {
    pub(super) fn unanswerable(why: &str) -> Self {
        SettledQuestion { outcome: ApprovalOutcome::Unanswerable(why.to_owned()), how: SettledBy::Asked }
    }

    fn of_error(error: StoreError) -> Self {
        SettledQuestion { outcome: ApprovalOutcome::Unanswerable(error.to_string()), how: SettledBy::Store(error) }
    }
}

/// Settles questions.
///
/// In this order: the mode; what the session approved; auto-approve; grants; a request denied
/// twice is refused; an approver is asked. So a grant is spent only instead of asking.
#[derive(Clone)]
pub struct Approvals {
    store: Arc<dyn Store>,
    coordinator: Coordinator,
    asks: Asks,
    mode: Mode,
    left_to_agent: bool,
    kept_for: Option<Duration>,
    always: Option<Arc<WriteRule>>,
}

/// Makes a proposal a rule.
type WriteRule = dyn Fn(&Proposal) + Send + Sync;

/// Who is asked.
#[derive(Clone)]
pub(super) enum Asks {
    /// One that waits.
    Waiting(Arc<dyn Approver>),
    /// One that is awaited.
    Awaited(Arc<dyn AsyncApprover>),
}

impl Approvals {
    /// Asks an approver and keeps decisions in a store.
    pub fn new(store: Arc<dyn Store>, approver: Arc<dyn Approver>) -> Self {
        Approvals::asking(store, Asks::Waiting(approver))
    }

    /// The same with an approver that is awaited, for [`Gate::check_async`](crate::gate::Gate::check_async).
    pub fn awaiting(store: Arc<dyn Store>, approver: Arc<dyn AsyncApprover>) -> Self {
        Approvals::asking(store, Asks::Awaited(approver))
    }

    fn asking(store: Arc<dyn Store>, asks: Asks) -> Self {
        Approvals {
            coordinator: Coordinator::new(Arc::clone(&store)),
            store,
            asks,
            mode: Mode::default(),
            left_to_agent: false,
            kept_for: None,
            always: None,
        }
    }

    /// Asks an approver and keeps decisions in memory.
    ///
    /// ```
    /// use callgate::approvals::{Approvals, RuleBasedApprovalProvider};
    /// use callgate::{Gate, Policy};
    ///
    /// // an unattended run: what the policy would ask about is denied, at once
    /// let approvals = Approvals::in_memory(RuleBasedApprovalProvider::new(vec![]));
    /// let gate = Gate::builder().policy(Policy::bundled("standard")?).approvals(approvals).build();
    /// # drop(gate);
    /// # Ok::<(), callgate::policy::PolicyError>(())
    /// ```
    pub fn in_memory(channel: impl Approver + 'static) -> Self {
        Approvals::new(Arc::new(MemoryStore::new()), Arc::new(channel))
    }

    /// In another mode than ask.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Leaves every question to the prompt of the agent that makes the call: the gate refuses the call, records that somebody is
    /// asked and not what they said, and returns the question ([`CheckedCall::left`](crate::gate::CheckedCall::left)). What is
    /// known without asking is used as always. If the answer becomes known later, [`learn`](Self::learn) remembers it.
    #[must_use]
    pub fn left_to_agent(mut self) -> Self {
        self.left_to_agent = true;
        self
    }

    pub(crate) fn leaves_to_agent(&self) -> bool {
        self.left_to_agent
    }

    /// Keeps a question that nobody could answer, or nobody answered in time, for so long. The call is refused; a yes afterwards lets
    /// the same request pass once, when it is made again.
    #[must_use]
    pub fn keeping(mut self, time: Duration) -> Self {
        self.kept_for = Some(time);
        self
    }

    /// Calls `write` with the proposal when an approver says "always", after the yes has been recorded: a crash never leaves a rule that
    /// nobody approved. The function reports errors itself.
    #[must_use]
    pub fn always(mut self, write: impl Fn(&Proposal) + Send + Sync + 'static) -> Self {
        self.always = Some(Arc::new(write));
        self
    }

    /// The yes to a question is recorded: if it was meant for ever, its rule is written now.
    pub(crate) fn recorded(&self, question: &Question, outcome: &ApprovalOutcome) {
        let ApprovalOutcome::Answered(answer) = outcome else { return };
        if answer.decision.is_yes()
            && let (Some(write), Some(index)) = (&self.always, answer.always)
            && let Some(proposal) = question.proposals.get(index)
        {
            write(proposal);
        }
    }

    /// The coordinator, for those who answer by id.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// Says yes to every tool in a session, or no longer does.
    pub fn set_auto_approve(&self, session: &str, blanket: bool) -> Result<(), StoreError> {
        let mut automatic = self.store.automatic(session)?;
        automatic.blanket = blanket;
        self.store.set_automatic(session, &automatic)
    }

    /// Says yes to one tool in a session.
    pub fn auto_approve_tool(&self, session: &str, tool: &str) -> Result<(), StoreError> {
        let mut automatic = self.store.automatic(session)?;
        automatic.tools.insert(tool.to_owned());
        self.store.set_automatic(session, &automatic)
    }

    /// Asks again about everything in a session, blanket and single tools alike.
    pub fn disable_auto_approve(&self, session: &str) -> Result<(), StoreError> {
        self.store.set_automatic(session, &Automatic::default())
    }

    /// What a session approves without asking.
    pub fn auto_approve_status(&self, session: &str) -> Result<Automatic, StoreError> {
        self.store.automatic(session)
    }

    /// Settles a question. A grant may be spent for one of `demands`, tried in order; `covered` says whether something that the
    /// session remembers covers the call.
    pub fn settle(
        &self,
        question: &Question,
        demands: &[Demand],
        covered: &dyn Fn(&Remembered) -> bool,
    ) -> SettledQuestion {
        self.known(question, demands, covered).unwrap_or_else(|| self.ask(question))
    }

    /// Settles a question without asking; `None` if an approver must be asked.
    pub fn known(
        &self,
        question: &Question,
        demands: &[Demand],
        covered: &dyn Fn(&Remembered) -> bool,
    ) -> Option<SettledQuestion> {
        self.look_up(question, demands, covered).unwrap_or_else(|error| Some(SettledQuestion::of_error(error)))
    }

    /// Asks the approver, waits, and remembers the decision.
    pub fn ask(&self, question: &Question) -> SettledQuestion {
        match &self.asks {
            Asks::Waiting(approver) => self
                .put(question, approver)
                .and_then(|asked| self.wait(question, asked))
                .unwrap_or_else(|refused| refused),
            Asks::Awaited(_) => SettledQuestion::unanswerable("the approver is asynchronous; call `check_async`"),
        }
    }

    pub(super) fn asks(&self) -> &Asks {
        &self.asks
    }

    /// From here on the question can be answered. When that was.
    pub(super) fn put(&self, question: &Question, approver: &Arc<dyn Approver>) -> Result<Instant, SettledQuestion> {
        let begin = Instant::now();
        if serde_json::to_vec(question).map_or(true, |text| text.len() > MAXIMUM_QUESTION) {
            return Err(SettledQuestion::unanswerable("the request is too large to be shown to an approver"));
        }
        self.coordinator.put(question, approver).map_err(SettledQuestion::of_error)?;
        Ok(begin)
    }

    /// Waits for the answer to a question that was asked then.
    pub(super) fn wait(&self, question: &Question, asked: Instant) -> Result<SettledQuestion, SettledQuestion> {
        let left = question.time().saturating_sub(asked.elapsed());
        let outcome = self.coordinator.wait(&question.id, left).map_err(SettledQuestion::of_error)?;
        self.remember(question, &outcome).map_err(SettledQuestion::of_error)?;
        let outcome = self.keep(question, outcome).map_err(SettledQuestion::of_error)?;
        Ok(SettledQuestion { outcome, how: SettledBy::Asked })
    }

    /// Keeps a question without an answer, once for each request.
    fn keep(&self, question: &Question, outcome: ApprovalOutcome) -> Result<ApprovalOutcome, StoreError> {
        let unanswered = matches!(outcome, ApprovalOutcome::Unanswerable(_) | ApprovalOutcome::TimedOut);
        let (Some(time), true) = (self.kept_for, unanswered) else { return Ok(outcome) };
        // what is in doubt now may be something else the next time
        if question.key.is_none() || question.answerable == Answerable::ByAPerson {
            return Ok(outcome);
        }
        let mut pending = self.coordinator.pending()?;
        pending.retain(|other| other.kept);
        let same = |other: &&Question| other.key == question.key && other.session == question.session;
        let id = match pending.iter().find(same) {
            Some(known) => known.id.clone(),
            None if pending.len() >= MOST_KEPT => return Ok(outcome),
            None => {
                let Some(id) = ApprovalId::random() else { return Ok(outcome) };
                let asked_at = Timestamp::now();
                let deadline = asked_at.after(time);
                self.store.open(&Question { id: id.clone(), kept: true, asked_at, deadline, ..question.clone() })?;
                id
            }
        };
        Ok(match outcome {
            ApprovalOutcome::Unanswerable(why) => ApprovalOutcome::Unanswerable(format!(
                "{why}; the question is kept, and after `callgate approvals approve {id}` by your user one retry passes"
            )),
            other => other,
        })
    }

    fn look_up(
        &self,
        question: &Question,
        demands: &[Demand],
        covered: &dyn Fn(&Remembered) -> bool,
    ) -> Result<Option<SettledQuestion>, StoreError> {
        let yes = |how| Some(SettledQuestion { outcome: ApprovalDecision::Approved.into(), how });
        match self.mode {
            Mode::Allow if question.answerable == Answerable::InAdvance => return Ok(yes(SettledBy::Mode)),
            Mode::Deny => {
                return Ok(Some(SettledQuestion { outcome: ApprovalDecision::Denied.into(), how: SettledBy::Mode }));
            }
            Mode::Allow | Mode::Ask => {}
        }
        let by_a_person = question.answerable == Answerable::ByAPerson;
        if let Some(session) = question.session.as_ref().filter(|_| !by_a_person) {
            let same = |what: &Remembered| match what {
                Remembered::Request(key) => question.key.as_ref() == Some(key),
                Remembered::Exec(_) | Remembered::Rule(_) => covered(what),
            };
            if self.store.remembered(session)?.iter().any(same) {
                return Ok(yes(SettledBy::Session));
            }
            if question.answerable == Answerable::InAdvance && self.store.automatic(session)?.approves(&question.tool) {
                return Ok(yes(SettledBy::Automatic));
            }
        }
        for demand in demands.iter().filter(|_| !by_a_person) {
            if let Some(grants) = self.store.consume(demand, Timestamp::now())? {
                return Ok(yes(SettledBy::Grants(grants)));
            }
        }
        if let (Some(session), Some(key)) = (&question.session, &question.key)
            && self.store.denials(session, key)? >= DENIED_ENOUGH
        {
            return Ok(Some(SettledQuestion {
                outcome: ApprovalDecision::Denied.into(),
                how: SettledBy::DeniedBefore,
            }));
        }
        Ok(None)
    }

    /// Stores what an answer means for the rest of the session. An error here is a refusal.
    fn remember(&self, question: &Question, outcome: &ApprovalOutcome) -> Result<(), StoreError> {
        let ApprovalOutcome::Answered(answer) = outcome else { return Ok(()) };
        let proposal: Option<Proposal> = answer.proposal.and_then(|index| question.proposals.get(index)).cloned();
        self.store_answer(&question.remembered_by(), answer.decision, proposal)
    }

    /// Stores the answer to a question that was [left to the agent](Self::left_to_agent), as if it had been asked here.
    pub fn learn(&self, question: &RememberedBy, decision: ApprovalDecision) -> Result<(), StoreError> {
        self.store_answer(question, decision, None)
    }

    fn store_answer(
        &self,
        question: &RememberedBy,
        decision: ApprovalDecision,
        proposal: Option<Proposal>,
    ) -> Result<(), StoreError> {
        let Some(session) = &question.session else { return Ok(()) };
        match decision {
            // what is in doubt now may be something else the next time
            ApprovalDecision::ApprovedForSession if question.answerable == Answerable::ByAPerson => Ok(()),
            ApprovalDecision::ApprovedForSession => {
                match proposal.map(Remembered::Rule).or(question.key.map(Remembered::Request)) {
                    Some(what) => self.store.remember(session, &what),
                    None => Ok(()),
                }
            }
            ApprovalDecision::Denied => match &question.key {
                Some(key) => self.store.add_denial(session, key).map(|_| ()),
                None => Ok(()),
            },
            ApprovalDecision::Approved | ApprovalDecision::Abort => Ok(()),
        }
    }

    /// Remembers a program that was started with a permit. The policy says how far that covers later input to it.
    pub fn cover_exec(&self, session: &str, exec: Exec) -> Result<(), StoreError> {
        self.store.remember(session, &Remembered::Exec(exec))
    }

    /// Whether input to a running program is commands: every program with this id is a shell.
    pub fn is_shell(&self, session: &str, id: &str) -> Result<bool, StoreError> {
        let remembered = self.store.remembered(session)?;
        let mut running = remembered.iter().filter_map(|what| match what {
            Remembered::Exec(exec) if exec.id == id => Some(exec.shell),
            _ => None,
        });
        Ok(running.next() == Some(true) && running.all(|shell| shell))
    }
}
