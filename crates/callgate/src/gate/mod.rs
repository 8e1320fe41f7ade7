//! The gate: describe, boundary, policy, approval, permit.
//!
//! [`Gate::check`] is the whole way of a call, in one place.

mod builder;
mod examples;
mod explain;
mod question;
mod recorder;
pub(crate) mod repositories;
mod settle;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use callgate_shell::programs::Programs;

pub use builder::GateBuilder;
use explain::Steps;
pub use explain::{ExplainedEffect, Explanation, Step};
pub(crate) use recorder::Recorder;
use settle::Matter;

use crate::approvals::{Approvals, Patience};
use crate::call::Call;
use crate::describe::git::Hardening;
use crate::describe::{Context, Registry};
use crate::event::{EventError, EventKind, EventSink};
use crate::json;
use crate::path::boundary::{Boundary, Settled, Surroundings};
use crate::path::file_system::{Entry, FileSystem};
use crate::path::resolve::resolve;
use crate::permit::{Containment, Permit, Plan};
use crate::policy::{Decision, Policy, Request, Ruling};
use crate::redact::Redactor;
use crate::refusal::{Refusal, RefusalKind};

/// Whether whoever runs permits can contain what it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxSupport {
    /// It cannot: what must be contained is refused.
    #[default]
    Missing,
    /// It can.
    Available,
}

/// The gate's answer.
#[derive(Debug)]
#[must_use = "a verdict that is not looked at lets nothing run"]
pub enum Verdict {
    /// It may run.
    Permitted(Permit),
    /// It may not.
    Refused(Refusal),
}

impl Verdict {
    /// The permit, or why there is none.
    pub fn into_result(self) -> Result<Permit, Refusal> {
        match self {
            Verdict::Permitted(permit) => Ok(permit),
            Verdict::Refused(refusal) => Err(refusal),
        }
    }

    /// Whether it may run.
    pub fn is_permitted(&self) -> bool {
        matches!(self, Verdict::Permitted(_))
    }
}

/// Stands in front of every tool call.
///
/// ```
/// use callgate::call::Call;
/// use callgate::gate::Gate;
/// use serde_json::json;
///
/// // without a policy, everything is denied
/// let gate = Gate::builder().build();
/// let verdict = gate.check(Call::new("Read", json!({"file_path": "/etc/hostname"})));
/// assert!(!verdict.is_permitted());
/// ```
pub struct Gate {
    policy: Option<Policy>,
    boundary: Boundary,
    registry: Registry,
    approvals: Approvals,
    sinks: Arc<[Arc<dyn EventSink>]>,
    redactor: Redactor,
    surroundings: Surroundings,
    file_system: Arc<dyn FileSystem>,
    sandbox: SandboxSupport,
    hardening: Hardening,
    programs: Option<Arc<Programs>>,
    /// Why the policy cannot be used, if it cannot.
    broken: Option<String>,
    /// The boundary of the last workspace: its directories are resolved once, so that a link swapped later moves no root.
    settled: Mutex<Option<(Option<PathBuf>, Arc<Settled>)>>,
}

/// A call that was judged and not refused.
struct Judged {
    explanation: Explanation,
    containment: Containment,
    recorder: Arc<Recorder>,
}

impl Gate {
    /// Puts a gate together.
    pub fn builder() -> GateBuilder {
        GateBuilder::default()
    }

    /// From now on, git runs as the plan's hardened words say, or it does not.
    pub fn set_hardening(&mut self, hardening: Hardening) {
        self.hardening = hardening;
    }

    /// What shows nothing secret.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The tools that are known beside those built in.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Decides about a call. Waits for an approver if one must be asked.
    pub fn check(&self, call: Call) -> Verdict {
        self.check_with(call, Patience::default())
    }

    /// The same for a caller who says how long the answer may take.
    ///
    /// ```
    /// # use callgate::{Call, Gate, approvals::Patience};
    /// # use std::time::Duration;
    /// # let gate = Gate::builder().build();
    /// # let call = Call::new("Read", serde_json::json!({}));
    /// let verdict = gate.check_with(call, Patience::at_most(Duration::from_secs(55)));
    /// # drop(verdict);
    /// ```
    pub fn check_with(&self, call: Call, patience: Patience) -> Verdict {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks));
        self.conclude(&recorder, || {
            let judged = self.enter(&call, &recorder)?;
            match self.settle(&call, &judged, patience)? {
                Matter::Permitted => {}
                Matter::Settled(settlement) => self.heed(settlement, None, &judged)?,
                Matter::Open(question) => {
                    let settlement = self.approvals.ask(&question);
                    self.heed(settlement, Some(&question), &judged)?;
                }
            }
            self.permit(call, judged)
        })
    }

    /// Decides about a call without holding up a thread while an approver is asked. Dropped before its time, it takes the
    /// question back.
    pub async fn check_async(&self, call: Call) -> Verdict {
        self.check_async_with(call, Patience::default()).await
    }

    /// The same for a caller who says how long the answer may take.
    pub async fn check_async_with(&self, call: Call, patience: Patience) -> Verdict {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks));
        let checked = async {
            let judged = self.enter(&call, &recorder)?;
            match self.settle(&call, &judged, patience)? {
                Matter::Permitted => {}
                Matter::Settled(settlement) => self.heed(settlement, None, &judged)?,
                Matter::Open(question) => {
                    let asked = question.clone();
                    self.heed(self.approvals.ask_async(*question).await, Some(&asked), &judged)?;
                }
            }
            Ok(judged)
        }
        .await;
        self.conclude(&recorder, || self.permit(call, checked?))
    }

    /// Refuses a call for a reason that only the caller knows, such as an agent that would go on typing unseen. It is recorded like
    /// any other.
    pub fn refuse(&self, call: &Call, refusal: Refusal) -> Verdict {
        let recorder = Arc::new(Recorder::new(&call.tool, &call.origin, &self.sinks));
        self.conclude(&recorder, || {
            self.record_request(call, &recorder)?;
            Err(refusal)
        })
    }

    /// Judges a call as [`Gate::check`] would, but asks nobody, records nothing and permits nothing.
    pub fn explain(&self, call: &Call) -> Result<Explanation, Refusal> {
        self.explain_in(call, Context::of(call, &self.surroundings))
    }

    /// The same for a command whose working directory nobody knows: what it says relative to that is in doubt.
    fn explain_anywhere(&self, call: &Call) -> Result<Explanation, Refusal> {
        let context = Context { directory: None, ..Context::of(call, &self.surroundings) };
        self.explain_in(call, context)
    }

    fn explain_in(&self, call: &Call, context: Context) -> Result<Explanation, Refusal> {
        catch_unwind(AssertUnwindSafe(|| self.judge(call, context)))
            .unwrap_or_else(|_| Err(Refusal::new(RefusalKind::Unknown, "judging the call failed")))
    }

    /// Describe, boundary, policy.
    fn judge(&self, call: &Call, mut context: Context) -> Result<Explanation, Refusal> {
        json::measure(&call.input).map_err(|error| Refusal::new(RefusalKind::Validation, error.to_string()))?;
        let Some(policy) = &self.policy else {
            return Err(Refusal::new(
                RefusalKind::Permission,
                "there is no policy, and without one everything is denied",
            )
            .hint("give the gate a policy, such as the bundled `standard`"));
        };
        if let Some(why) = &self.broken {
            return Err(Refusal::new(RefusalKind::Permission, format!("the policy cannot be used: {why}")));
        }
        let mut steps = Steps::begin();
        context.programs.clone_from(&self.programs);
        let failed = |error: crate::describe::DescribeError| {
            Refusal::new(RefusalKind::Unknown, self.redactor.text(&error.to_string()))
        };
        let mut description = self.registry.describe(call, &context).map_err(failed)?;
        repositories::examine(&mut description, self.hardening, self.file_system.as_ref());
        if let Some(shell) = &mut description.shell {
            shell.settle_directory(|directory| can_enter(self.file_system.as_ref(), Path::new(directory)));
        }
        steps.done("describe");
        let boundary = self.settled(call).apply(&mut description, self.file_system.as_ref());
        steps.done("boundary");
        let claims = self.registry.claims(&call.tool);
        let judgement = policy.judge(&Request { call, description: &description, claims });
        steps.done("policy");
        let risk = self.registry.risk(call, &description).map_err(failed)?;
        let strictest = boundary.iter().map(|ruling| &ruling.ruling).max_by_key(|ruling| ruling.decision);
        let ruling = stricter(strictest, &judgement.ruling).clone();
        Ok(Explanation { ruling, description, boundary, judgement, risk, steps: steps.finish() })
    }

    /// The boundary for calls from one workspace.
    fn settled(&self, call: &Call) -> Arc<Settled> {
        let workspace = call.origin.workspace.as_ref().or(call.origin.directory.as_ref());
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        match settled.as_ref() {
            Some((of, ready)) if of.as_ref() == workspace => Arc::clone(ready),
            _ => {
                let fresh = Arc::new(self.boundary.settle(&call.origin, &self.surroundings, self.file_system.as_ref()));
                *settled = Some((workspace.cloned(), Arc::clone(&fresh)));
                fresh
            }
        }
    }

    /// Recorded before anything is decided.
    fn record_request(&self, call: &Call, recorder: &Recorder) -> Result<(), Refusal> {
        if !recorder.is_heard() {
            return Ok(());
        }
        let input = match json::measure(&call.input) {
            Ok(()) => self.registry.for_event(call, &self.redactor),
            Err(error) => Ok(self.redactor.owned(error.to_string().into())),
        };
        let input = input.map_err(|error| Refusal::new(RefusalKind::Unknown, error.to_string()))?;
        recorder.emit(EventKind::Requested { input }).map_err(unrecorded)
    }

    /// From the call's arrival to what must happen next.
    fn enter(&self, call: &Call, recorder: &Arc<Recorder>) -> Result<Judged, Refusal> {
        self.record_request(call, recorder)?;
        let explanation = self.explain(call)?;
        if recorder.is_heard() {
            recorder.emit(self.gated(call, &explanation)).map_err(unrecorded)?;
        }
        let ruling = explanation.ruling();
        if ruling.decision == Decision::Deny {
            return Err(self.denied(ruling));
        }
        // before anybody is asked and any grant is spent
        let containment = self.containment(&explanation)?;
        Ok(Judged { explanation, containment, recorder: Arc::clone(recorder) })
    }

    fn gated(&self, call: &Call, explanation: &Explanation) -> EventKind {
        let ruling = explanation.ruling();
        // these types have no keys that JSON could not hold
        let shown =
            |value: Result<serde_json::Value, serde_json::Error>| self.redactor.owned(value.unwrap_or_default());
        let judged = crate::event::Judged {
            rule_place: ruling.place.clone(),
            policy: self.policy.as_ref().map(|policy| policy.version().to_owned()),
            classification: shown(serde_json::to_value(&explanation.judgement.classification)),
            description: self.redactor.description(&explanation.description),
            claims: shown(serde_json::to_value(self.registry.claims(&call.tool))),
        };
        EventKind::Gated {
            decision: ruling.decision,
            rule: ruling.rule.clone(),
            reason: self.redactor.text(&ruling.reason),
            risk: explanation.risk(),
            effects: explanation.effects(&self.redactor).into_iter().map(|effect| effect.effect).collect(),
            judged: Box::new(judged),
        }
    }

    fn denied(&self, ruling: &Ruling) -> Refusal {
        let hint = match ruling.rule.as_deref() {
            Some(crate::path::boundary::RULE) => "stay within the project, or have the directory added to the boundary",
            Some(_) => "find a way that does not need this, or ask a person to change the rule",
            None => "ask a person to add a rule for this",
        };
        Refusal::new(RefusalKind::Permission, self.redactor.text(&ruling.reason)).hint(hint).rule(ruling.rule.clone())
    }

    /// Whether the call must be contained; a refusal if nobody can.
    fn containment(&self, explanation: &Explanation) -> Result<Containment, Refusal> {
        // an approval lifts what was asked about, not the containment of the rest
        let contains = |ruling: &Ruling| ruling.decision == Decision::Contain;
        let contained = contains(&explanation.ruling)
            || explanation.judgement.effects.iter().any(|(_, _, ruling)| contains(ruling));
        match (contained, self.sandbox) {
            (false, _) => Ok(Containment::Free),
            (true, SandboxSupport::Available) => Ok(Containment::Required),
            (true, SandboxSupport::Missing) => Err(Refusal::new(
                RefusalKind::SandboxDenied,
                "this call may only run inside a sandbox, and there is none",
            )
            .rule(explanation.ruling.rule.clone())),
        }
    }

    fn permit(&self, call: Call, judged: Judged) -> Result<Permit, Refusal> {
        let Judged { explanation, containment, recorder } = judged;
        let contained = containment == Containment::Required;
        recorder.emit(EventKind::Allowed { contained }).map_err(unrecorded)?;
        Ok(Permit::new(Plan::new(call, explanation.description, containment), recorder))
    }

    fn conclude(&self, recorder: &Recorder, body: impl FnOnce() -> Result<Permit, Refusal>) -> Verdict {
        match body() {
            Ok(permit) => Verdict::Permitted(permit),
            Err(refusal) => {
                recorder.emit_late(EventKind::Denied { refusal: refusal.clone() });
                Verdict::Refused(refusal)
            }
        }
    }
}

/// Whether a shell can go to a directory: whoever finds its `.` may search it.
fn can_enter(file_system: &dyn FileSystem, directory: &Path) -> bool {
    resolve(file_system, directory).is_ok_and(|resolved| file_system.look(&resolved.join(".")) == Entry::Directory)
}

/// The stricter of what boundary and policy say; where they agree, whoever has a rule for it.
fn stricter<'a>(boundary: Option<&'a Ruling>, policy: &'a Ruling) -> &'a Ruling {
    match boundary {
        Some(boundary) if boundary.decision > policy.decision => boundary,
        Some(boundary) if boundary.decision == policy.decision && policy.rule.is_none() => boundary,
        _ => policy,
    }
}

fn unrecorded(error: EventError) -> Refusal {
    Refusal::new(RefusalKind::Unknown, error.to_string())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod settle_tests;
