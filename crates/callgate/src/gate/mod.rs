//! The gate: takes a call from its arrival to a permit or a refusal.
//!
//! [`Gate::check`] records the request, assesses the call, refuses it if that is the decision, looks for an approval where one
//! is needed (`settle.rs`, with the question built in `question.rs`), and issues the permit. [`GateBuilder`] configures a gate.

mod builder;
mod question;
mod settle;

use std::sync::Arc;

use callgate_model::call::Call;
use callgate_model::decision::{Decision, Ruling};
use callgate_model::fence::{Fence, Protection};
use callgate_model::json;
use callgate_model::redact::Redactor;
use callgate_model::refusal::{Refusal, RefusalKind};
use callgate_shell::ShellState;

pub use builder::GateBuilder;
use settle::ApprovalState;

use crate::approvals::{Approvals, Patience, Question};
use crate::assess::{Assessment, Assessor, MIXED_RULE};
use crate::describe::Registry;
use crate::event::{AssessedCall, EventError, EventKind, EventSink, Recorder};
use crate::path::boundary::RULE as BOUNDARY_RULE;
use crate::permit::{Containment, Permit, Plan};

pub use crate::policy::SandboxSupport;

/// The gate's answer: a permit, which alone can run the call, or a refusal.
pub type Verdict = Result<Permit, Refusal>;

/// Options for checking one call.
#[derive(Clone, Default)]
pub struct CheckOptions {
    patience: Patience,
    shell: Option<ShellState>,
    contained: bool,
    fenced: bool,
    events: Option<Arc<dyn EventSink>>,
}

callgate_model::debug_fields!(CheckOptions, patience, contained, fenced);

impl CheckOptions {
    /// How long an approver may take.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// The state of the shell that the caller keeps between calls, if the call runs in one: the [`CheckedCall::shell`] of the
    /// previous call, never anything that the model says.
    #[must_use]
    pub fn shell(mut self, state: Option<ShellState>) -> Self {
        self.shell = state;
        self
    }

    /// The person who runs the call wants it contained, whatever the policy says: then nobody is asked, because the fence is the
    /// answer. A deny stays one. Never for what a model says.
    #[must_use]
    pub fn contained(mut self, contained: bool) -> Self {
        self.contained = contained;
        self
    }

    /// A sink that receives the events of this call only, beside the gate's own.
    #[must_use]
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events = Some(sink);
        self
    }

    /// The call runs inside the sandbox even if it could run anywhere. Who must be asked is asked.
    #[must_use]
    pub fn fenced(mut self, fenced: bool) -> Self {
        self.fenced = fenced;
        self
    }
}

/// A call that was checked with [`Gate::check_with`].
#[derive(Debug)]
#[must_use = "the call may only run if the verdict is a permit"]
pub struct CheckedCall {
    /// The gate's answer.
    pub verdict: Verdict,
    /// The state of the caller's shell after the call, as if it ran, even if it was refused.
    pub shell: Option<Box<ShellState>>,
    /// The question that was left to the agent's own prompt: the verdict is a refusal, and the agent's user may overturn it.
    pub left: Option<Box<LeftQuestion>>,
}

/// A question that was [left to the agent's own prompt](Approvals::left_to_agent).
#[derive(Debug, Clone, PartialEq)]
pub struct LeftQuestion {
    /// The id of the call in the events.
    pub call: String,
    /// The question.
    pub question: Question,
}

/// Decides whether tool calls may run.
///
/// ```
/// use callgate::{Call, Gate};
/// use serde_json::json;
///
/// // without a policy, everything is denied
/// let gate = Gate::builder().build();
/// let verdict = gate.check(Call::new("Read", json!({"file_path": "/etc/hostname"})));
/// assert!(verdict.is_err());
/// ```
pub struct Gate {
    assessor: Assessor,
    approvals: Approvals,
    sinks: Arc<[Arc<dyn EventSink>]>,
    containing: Option<Box<Containing>>,
}

/// Says whether a call can be contained, once there is one that has to be.
pub(crate) type Containing = dyn Fn(&Assessment) -> bool + Send + Sync;

/// A call that was assessed and not denied.
struct AdmittedCall {
    assessment: Assessment,
    containment: Containment,
    recorder: Arc<Recorder>,
}

impl Gate {
    /// Configures a gate.
    pub fn builder() -> GateBuilder {
        GateBuilder::default()
    }

    /// The assessor of this gate. It decides as the gate does, but asks nobody, records nothing and permits nothing.
    pub fn assessor(&self) -> &Assessor {
        &self.assessor
    }

    /// Assesses a call. Asks nobody, records nothing and permits nothing.
    pub fn assess(&self, call: &Call) -> Result<Assessment, Refusal> {
        self.assessor.assess(call)
    }

    /// Removes secrets from texts that are shown.
    pub fn redactor(&self) -> &Redactor {
        &self.assessor.redactor
    }

    /// The registered tools.
    pub fn registry(&self) -> &Registry {
        &self.assessor.registry
    }

    /// Decides about a call. Blocks while an approver is asked.
    pub fn check(&self, call: Call) -> Verdict {
        self.check_with(call, CheckOptions::default()).verdict
    }

    /// Decides about a call, with options.
    ///
    /// ```
    /// # use callgate::{Call, Gate, approvals::Patience, gate::CheckOptions};
    /// # use std::time::Duration;
    /// # let gate = Gate::builder().build();
    /// # let call = Call::new("Read", serde_json::json!({}));
    /// let options = CheckOptions::default().patience(Patience::at_most(Duration::from_secs(55)));
    /// let verdict = gate.check_with(call, options).verdict;
    /// # drop(verdict);
    /// ```
    pub fn check_with(&self, call: Call, options: CheckOptions) -> CheckedCall {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks_of(&options)));
        let (mut shell, mut left) = (None, None);
        let decide = || {
            let admitted = self.enter(&call, &options, &recorder, &mut shell)?;
            match self.settle(&call, &admitted, &options)? {
                ApprovalState::NotNeeded => {}
                ApprovalState::Known(settlement) => self.heed(settlement, None, &admitted)?,
                ApprovalState::Pending(question) if self.approvals.leaves_to_agent() => {
                    return Err(leave(&recorder, *question, &mut left));
                }
                ApprovalState::Pending(question) => {
                    let settlement = self.approvals.ask(&question);
                    self.heed(settlement, Some(&question), &admitted)?;
                }
            }
            self.permit(call, admitted)
        };
        let verdict = decide();
        // what became of a question that was left to the agent is not known yet
        let verdict = if left.is_some() { verdict } else { self.conclude(&recorder, || verdict) };
        CheckedCall { verdict, shell, left }
    }

    /// Decides about a call without blocking a thread while an approver is asked. Dropping the future cancels the question.
    pub async fn check_async(&self, call: Call) -> Verdict {
        self.check_async_with(call, CheckOptions::default()).await.verdict
    }

    /// Decides about a call, with options, without blocking a thread.
    pub async fn check_async_with(&self, call: Call, options: CheckOptions) -> CheckedCall {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks_of(&options)));
        let (mut shell, mut left) = (None, None);
        let checked = async {
            let admitted = self.enter(&call, &options, &recorder, &mut shell)?;
            match self.settle(&call, &admitted, &options)? {
                ApprovalState::NotNeeded => {}
                ApprovalState::Known(settlement) => self.heed(settlement, None, &admitted)?,
                ApprovalState::Pending(question) if self.approvals.leaves_to_agent() => {
                    return Err(leave(&recorder, *question, &mut left));
                }
                ApprovalState::Pending(question) => {
                    let asked = question.clone();
                    self.heed(self.approvals.ask_async(*question).await, Some(&asked), &admitted)?;
                }
            }
            Ok(admitted)
        }
        .await;
        let verdict = match checked {
            Err(refusal) if left.is_some() => Err(refusal),
            checked => self.conclude(&recorder, || self.permit(call, checked?)),
        };
        CheckedCall { verdict, shell, left }
    }

    /// Judges a call once more that another process was permitted to run contained, under the id that it has in the log. It runs
    /// contained whatever is decided now, and what would be asked about or denied now is refused.
    pub fn redeem(&self, call: Call, id: &str) -> Verdict {
        let recorder = Arc::new(Recorder::continuing(id.to_owned(), &call.tool, &call.origin, &self.sinks));
        self.conclude(&recorder, || {
            let assessment = self.assessor.assess(&call)?;
            match assessment.ruling.decision {
                Decision::Allow | Decision::Contain => {}
                Decision::Ask => {
                    let reason = format!("it would be asked about now: {}", assessment.ruling.reason);
                    let refusal = Refusal::new(RefusalKind::HumanRequired, self.redactor().text(&reason));
                    return Err(refusal.hint("make the call again").rule(assessment.ruling.rule.clone()));
                }
                Decision::Deny => {
                    return Err(split_refusal(&assessment.ruling).unwrap_or_else(|| self.denied(&assessment.ruling)));
                }
            }
            self.containment(&assessment, true)?;
            let fence = self.assessor.fence_of(&call, &assessment);
            Ok(Permit::new(Plan::new(call, assessment, Some(fence)), Arc::clone(&recorder)))
        })
    }

    /// Refuses a call for a reason that only the caller knows, such as an agent that types into programs without asking the gate.
    /// The refusal is recorded like any other.
    pub fn refuse(&self, call: &Call, refusal: Refusal) -> Verdict {
        self.refuse_with(call, refusal, &CheckOptions::default())
    }

    /// Refuses a call, with options. See [`Gate::refuse`].
    pub fn refuse_with(&self, call: &Call, refusal: Refusal, options: &CheckOptions) -> Verdict {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks_of(options)));
        self.conclude(&recorder, || {
            self.record_request(call, &recorder)?;
            Err(refusal)
        })
    }

    /// Who hears of a call.
    fn sinks_of(&self, options: &CheckOptions) -> Arc<[Arc<dyn EventSink>]> {
        match &options.events {
            Some(sink) => self.sinks.iter().chain([sink]).map(Arc::clone).collect(),
            None => Arc::clone(&self.sinks),
        }
    }

    /// Records the request, before anything is decided.
    fn record_request(&self, call: &Call, recorder: &Recorder) -> Result<(), Refusal> {
        if !recorder.is_heard() {
            return Ok(());
        }
        let input = match json::measure(&call.input) {
            Ok(()) => self.registry().for_event(call, self.redactor()),
            Err(error) => Ok(self.redactor().owned(error.to_string().into())),
        };
        let input = input.map_err(|error| Refusal::new(RefusalKind::Unknown, error.to_string()))?;
        recorder.emit(EventKind::Requested { input }).map_err(unrecorded)
    }

    /// Records and assesses a call. Refuses it if it is denied or needs a sandbox that is missing.
    fn enter(
        &self,
        call: &Call,
        options: &CheckOptions,
        recorder: &Arc<Recorder>,
        shell: &mut Option<Box<ShellState>>,
    ) -> Result<AdmittedCall, Refusal> {
        self.record_request(call, recorder)?;
        let mut assessment = self.assessor.assess_in(call, options.shell.as_ref())?;
        if assessment.is_contained() && !self.contains(&assessment) {
            assessment = self.assessor.assess_without_sandbox(call, options.shell.as_ref())?;
        }
        shell.clone_from(&assessment.shell);
        if recorder.is_heard() {
            recorder.emit(self.gated(call, &assessment)).map_err(unrecorded)?;
        }
        if assessment.ruling.decision == Decision::Deny {
            match split_refusal(&assessment.ruling) {
                // all of it is contained, so nothing is mixed
                Some(_) if options.contained => {}
                Some(refusal) => return Err(refusal),
                None => return Err(self.denied(&assessment.ruling)),
            }
        }
        // checked before anybody is asked and any grant is spent
        let containment = self.containment(&assessment, options.contained || options.fenced)?;
        Ok(AdmittedCall { assessment, containment, recorder: Arc::clone(recorder) })
    }

    /// Whether a call that is to be contained will be.
    fn contains(&self, assessment: &Assessment) -> bool {
        self.containing.as_ref().is_none_or(|contains| contains(assessment))
    }

    fn gated(&self, call: &Call, assessment: &Assessment) -> EventKind {
        let redactor = self.redactor();
        // these types have no keys that JSON could not hold
        let shown = |value: Result<serde_json::Value, serde_json::Error>| redactor.owned(value.unwrap_or_default());
        let assessed = AssessedCall {
            rule_place: assessment.ruling.place.clone(),
            policy: self.assessor.policy().map(|policy| policy.version().to_owned()),
            classification: shown(serde_json::to_value(assessment.classification())),
            description: redactor.description(&assessment.description),
            claims: shown(serde_json::to_value(self.registry().claims(&call.tool))),
        };
        EventKind::Gated {
            decision: assessment.ruling.decision,
            rule: assessment.ruling.rule.clone(),
            reason: redactor.text(&assessment.ruling.reason),
            risk: assessment.risk,
            effects: assessment.effects(redactor).into_iter().map(|effect| effect.effect).collect(),
            assessed: Box::new(assessed),
        }
    }

    fn denied(&self, ruling: &Ruling) -> Refusal {
        let hint = match ruling.rule.as_deref() {
            Some(BOUNDARY_RULE) => {
                "stay inside the project; your user can add the directory to `boundary` in the policy"
            }
            Some(_) => {
                "find a way that does not need this; no answer and no `callgate allow` changes it, only your user can change the rule"
            }
            None => "your user can add a rule for this to the policy",
        };
        Refusal::new(RefusalKind::Permission, self.redactor().text(&ruling.reason)).hint(hint).rule(ruling.rule.clone())
    }

    /// What an assessed call could reach if it ran contained.
    pub fn fence(&self, call: &Call, assessment: &Assessment) -> Fence {
        self.assessor.fence_of(call, assessment)
    }

    /// Where the call may run; a refusal if it must be contained and there is no sandbox.
    fn containment(&self, assessment: &Assessment, wanted: bool) -> Result<Containment, Refusal> {
        match (assessment.is_contained() || wanted, self.assessor.sandbox) {
            (false, _) => Ok(Containment::Free),
            (true, SandboxSupport::Available) => Ok(Containment::Required),
            (true, SandboxSupport::Partial(held)) if held.includes(assessment.required()) => Ok(Containment::Required),
            (true, SandboxSupport::Partial(held)) => {
                let missing = assessment.required().iter().filter(|one| !held.includes([*one].into_iter().collect()));
                let missing: Vec<&str> = missing.map(Protection::as_str).collect();
                let missing = missing.join(", ");
                let reason = format!(
                    "this call may only run inside a sandbox, and the one of this machine cannot hold {missing}"
                );
                Err(Refusal::new(RefusalKind::SandboxDenied, reason)
                    .hint("run `callgate doctor` to see what is missing and how to get it")
                    .rule(assessment.ruling.rule.clone()))
            }
            (true, SandboxSupport::Missing) => Err(Refusal::new(
                RefusalKind::SandboxDenied,
                "this call may only run inside a sandbox, and no sandbox is available",
            )
            .rule(assessment.ruling.rule.clone())),
        }
    }

    fn permit(&self, call: Call, admitted: AdmittedCall) -> Verdict {
        let AdmittedCall { assessment, containment, recorder } = admitted;
        let contained = containment == Containment::Required;
        recorder.emit(EventKind::Allowed { contained }).map_err(unrecorded)?;
        let fence = contained.then(|| self.assessor.fence_of(&call, &assessment));
        Ok(Permit::new(Plan::new(call, assessment, fence), recorder))
    }

    fn conclude(&self, recorder: &Recorder, body: impl FnOnce() -> Verdict) -> Verdict {
        body().inspect_err(|refusal| recorder.emit_late(EventKind::Denied { refusal: refusal.clone() }))
    }
}

/// Keeps a question for the agent's own prompt.
fn leave(recorder: &Recorder, question: Question, left: &mut Option<Box<LeftQuestion>>) -> Refusal {
    *left = Some(Box::new(LeftQuestion { call: recorder.id().to_owned(), question }));
    Refusal::new(RefusalKind::HumanRequired, "left to the agent's own prompt")
}

/// The refusal of a call that mixes what must be contained with what cannot be.
fn split_refusal(ruling: &Ruling) -> Option<Refusal> {
    let split = ruling.rule.as_deref() == Some(MIXED_RULE);
    let refusal =
        || Refusal::new(RefusalKind::SandboxDenied, &ruling.reason).hint("make separate calls of these commands");
    split.then(|| refusal().rule(ruling.rule.clone()))
}

fn unrecorded(error: EventError) -> Refusal {
    Refusal::new(RefusalKind::Unknown, error.to_string())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod settle_tests;
