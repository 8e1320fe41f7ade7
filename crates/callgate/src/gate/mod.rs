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
use callgate_model::json;
use callgate_model::redact::Redactor;
use callgate_model::refusal::{Refusal, RefusalKind};
use callgate_shell::ShellState;

pub use builder::GateBuilder;
use settle::ApprovalState;

use crate::approvals::{Approvals, Patience};
use crate::assess::{Assessment, Assessor};
use crate::describe::Registry;
use crate::event::{AssessedCall, EventError, EventKind, EventSink, Recorder};
use crate::path::boundary::RULE as BOUNDARY_RULE;
use crate::permit::{Containment, Permit, Plan};

/// Whether the caller that runs permits has a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxSupport {
    /// There is no sandbox: calls that need one are refused.
    #[default]
    Missing,
    /// There is one.
    Available,
}

/// The gate's answer: a permit, which alone can run the call, or a refusal.
pub type Verdict = Result<Permit, Refusal>;

/// Options for checking one call.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    patience: Patience,
    shell: Option<ShellState>,
}

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
}

/// A call that was checked with [`Gate::check_with`].
#[derive(Debug)]
#[must_use = "the call may only run if the verdict is a permit"]
pub struct CheckedCall {
    /// The gate's answer.
    pub verdict: Verdict,
    /// The state of the caller's shell after the call, as if it ran, even if it was refused.
    pub shell: Option<Box<ShellState>>,
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
    sandbox: SandboxSupport,
}

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
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks));
        let mut shell = None;
        let verdict = self.conclude(&recorder, || {
            let admitted = self.enter(&call, &options, &recorder, &mut shell)?;
            match self.settle(&call, &admitted, &options)? {
                ApprovalState::NotNeeded => {}
                ApprovalState::Known(settlement) => self.heed(settlement, None, &admitted)?,
                ApprovalState::Pending(question) => {
                    let settlement = self.approvals.ask(&question);
                    self.heed(settlement, Some(&question), &admitted)?;
                }
            }
            self.permit(call, admitted)
        });
        CheckedCall { verdict, shell }
    }

    /// Decides about a call without blocking a thread while an approver is asked. Dropping the future cancels the question.
    pub async fn check_async(&self, call: Call) -> Verdict {
        self.check_async_with(call, CheckOptions::default()).await.verdict
    }

    /// Decides about a call, with options, without blocking a thread.
    pub async fn check_async_with(&self, call: Call, options: CheckOptions) -> CheckedCall {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks));
        let mut shell = None;
        let checked = async {
            let admitted = self.enter(&call, &options, &recorder, &mut shell)?;
            match self.settle(&call, &admitted, &options)? {
                ApprovalState::NotNeeded => {}
                ApprovalState::Known(settlement) => self.heed(settlement, None, &admitted)?,
                ApprovalState::Pending(question) => {
                    let asked = question.clone();
                    self.heed(self.approvals.ask_async(*question).await, Some(&asked), &admitted)?;
                }
            }
            Ok(admitted)
        }
        .await;
        let verdict = self.conclude(&recorder, || self.permit(call, checked?));
        CheckedCall { verdict, shell }
    }

    /// Refuses a call for a reason that only the caller knows, such as an agent that types into programs without asking the gate.
    /// The refusal is recorded like any other.
    pub fn refuse(&self, call: &Call, refusal: Refusal) -> Verdict {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks));
        self.conclude(&recorder, || {
            self.record_request(call, &recorder)?;
            Err(refusal)
        })
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
        let assessment = self.assessor.assess_in(call, options.shell.as_ref())?;
        shell.clone_from(&assessment.shell);
        if recorder.is_heard() {
            recorder.emit(self.gated(call, &assessment)).map_err(unrecorded)?;
        }
        if assessment.ruling.decision == Decision::Deny {
            return Err(self.denied(&assessment.ruling));
        }
        // checked before anybody is asked and any grant is spent
        let containment = self.containment(&assessment)?;
        Ok(AdmittedCall { assessment, containment, recorder: Arc::clone(recorder) })
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
                "stay inside the project, or ask the user to add the directory to `boundary` in the policy"
            }
            Some(_) => "find a way that does not need this, or ask the user to change the rule",
            None => "ask the user to add a rule for this",
        };
        Refusal::new(RefusalKind::Permission, self.redactor().text(&ruling.reason)).hint(hint).rule(ruling.rule.clone())
    }

    /// Where the call may run; a refusal if it must be contained and there is no sandbox.
    fn containment(&self, assessment: &Assessment) -> Result<Containment, Refusal> {
        match (assessment.is_contained(), self.sandbox) {
            (false, _) => Ok(Containment::Free),
            (true, SandboxSupport::Available) => Ok(Containment::Required),
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
        Ok(Permit::new(Plan::new(call, assessment, containment), recorder))
    }

    fn conclude(&self, recorder: &Recorder, body: impl FnOnce() -> Verdict) -> Verdict {
        body().inspect_err(|refusal| recorder.emit_late(EventKind::Denied { refusal: refusal.clone() }))
    }
}

fn unrecorded(error: EventError) -> Refusal {
    Refusal::new(RefusalKind::Unknown, error.to_string())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod settle_tests;
