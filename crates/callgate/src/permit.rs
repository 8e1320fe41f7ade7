//! The permit: proof that a call passed the gate, and the only way to run it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use callgate_model::call::Call;
use callgate_model::description::Description;
use callgate_model::effect::Action;
use callgate_model::fence::Fence;
use callgate_model::place::{Place, Rest};
use callgate_model::refusal::{Refusal, RefusalKind};
use callgate_model::word::Word;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::assess::Assessment;
use crate::event::{EventKind, Recorder, RunReport};
use crate::git;

/// The call as it was judged, and so as it must run.
pub struct Plan {
    call: Call,
    assessment: Assessment,
    containment: Containment,
    fence: Option<Fence>,
}

/// Where a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// Anywhere.
    Free,
    /// Only inside a sandbox.
    Required,
}

impl Plan {
    pub(crate) fn new(call: Call, assessment: Assessment, fence: Option<Fence>) -> Self {
        let containment = if fence.is_some() { Containment::Required } else { Containment::Free };
        Plan { call, assessment, containment, fence }
    }

    /// The call as it was judged.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// What the call would do, with every path resolved.
    pub fn description(&self) -> &Description {
        &self.assessment.description
    }

    /// The command that must run in place of the call's own, if the permit depends on it.
    pub fn rewritten(&self) -> Option<&str> {
        self.assessment.rewritten()
    }

    /// Where it may run.
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// What the call may reach, if it may only run inside a sandbox.
    pub fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// The working directory.
    pub fn directory(&self) -> Option<&Path> {
        self.call.origin.working_directory()
    }

    /// The resolved places that the call touches. Open these, not the paths in the input.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.description().effects().filter_map(|effect| effect.place.as_ref())
    }

    /// The resolved files that the call may write, as far as they are known.
    pub fn written(&self) -> impl Iterator<Item = &Path> {
        let effects = self.description().effects();
        effects
            .filter(|placed| placed.effect.action == Action::Write)
            .filter_map(|placed| placed.place.as_ref())
            .filter(|place| place.rest == Rest::Nothing && !place.tree)
            .map(|place| place.resolved.as_path())
    }

    /// The resolved form of a path in the input, if it was judged.
    pub fn resolved(&self, named: &Path) -> Option<&PathBuf> {
        self.places().find(|place| place.named == named).map(|place| &place.resolved)
    }

    /// The words of each simple command of a shell call.
    pub fn commands(&self) -> impl Iterator<Item = &[Word]> {
        self.description().parts.iter().map(|part| part.words.as_slice()).filter(|words| !words.is_empty())
    }

    /// The words to run for each simple command whose words are all certain. git is hardened, so that the repository's own
    /// settings run nothing. See [`crate::git`].
    pub fn hardened_commands(&self) -> impl Iterator<Item = Vec<String>> {
        self.description().parts.iter().filter_map(|part| {
            let words = part.known_words()?;
            Some(match git::subcommand(&words).filter(|_| git::looks(part)) {
                Some(place) => git::harden(&words, place),
                None => words.into_iter().map(str::to_owned).collect(),
            })
        })
    }

    /// The environment variables that the call sets.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &Value)> {
        ["env", "environment", "env_vars"]
            .into_iter()
            .filter_map(|name| self.call.input.get(name)?.as_object())
            .flatten()
            .map(|(name, value)| (name.as_str(), value))
    }
}

impl fmt::Debug for Plan {
    /// Without the input, which may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("tool", &self.call.tool)
            .field("category", &self.description().category)
            .field("containment", &self.containment)
            .finish_non_exhaustive()
    }
}

/// Proof that a call passed the gate. Only a gate creates one, it cannot be copied, and running consumes it.
///
/// It cannot be created:
///
/// ```compile_fail
/// let permit = callgate::permit::Permit { };
/// ```
///
/// not from a plan either:
///
/// ```compile_fail
/// use callgate::permit::{Permit, Plan};
/// fn forge(plan: Plan) -> Permit {
///     Permit { plan }
/// }
/// ```
///
/// It cannot be copied:
///
/// ```compile_fail
/// fn twice(permit: callgate::permit::Permit) -> (callgate::permit::Permit, callgate::permit::Permit) {
///     (permit.clone(), permit)
/// }
/// ```
///
/// and it cannot be used twice:
///
/// ```compile_fail
/// fn twice(permit: callgate::permit::Permit) {
///     let _ = permit.run(|_| Ok::<(), ()>(()));
///     let _ = permit.run(|_| Ok::<(), ()>(()));
/// }
/// ```
#[must_use = "dropping a permit runs nothing"]
pub struct Permit {
    plan: Box<Plan>,
    recorder: Arc<Recorder>,
}

/// Confines what runs inside it.
pub trait Sandbox {
    /// Describes what it enforces.
    fn enforces(&self) -> String;
}

/// Why running a permit failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError<E> {
    /// It was not started.
    #[error(transparent)]
    Refused(Refusal),
    /// It was started and failed.
    #[error("the call failed")]
    Failed(E),
}

impl Permit {
    pub(crate) fn new(plan: Plan, recorder: Arc<Recorder>) -> Self {
        Permit { plan: Box::new(plan), recorder }
    }

    /// The call as it was judged.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The call's id, the same as in its events.
    pub fn id(&self) -> &str {
        self.recorder.id()
    }

    /// Records that the call will run in another process, which must present what was issued for it. That process judges the
    /// call again with [`Gate::redeem`](crate::Gate::redeem); this permit is spent.
    pub fn issued(self, expires_in: std::time::Duration) -> Result<(), Refusal> {
        let expires_in = u64::try_from(expires_in.as_millis()).unwrap_or(u64::MAX);
        let recorded = self.recorder.emit(EventKind::PermitIssued { expires_in });
        recorded.map_err(|error| Refusal::new(RefusalKind::Unknown, error.to_string()))
    }

    /// Runs the call without a sandbox. Refuses a call that needs one.
    pub fn run<T, E>(self, body: impl FnOnce(&Plan) -> Result<T, E>) -> Result<T, RunError<E>> {
        self.run_with(None, |plan, _| body(plan))
    }

    /// Runs the call, inside a sandbox if one is given. The body reports how the run ended.
    ///
    /// ```
    /// use callgate::{Call, Gate, Policy};
    ///
    /// let gate = Gate::builder().policy(Policy::from_yaml("default: allow", "all")?).build();
    /// let call = Call::new("Bash", serde_json::json!({"command": "ls"})).directory("/tmp");
    /// let output = gate.check(call)?.run_with(None, |_plan, report| {
    ///     let output = b"a\nb\n".to_vec();
    ///     report.exit(0);
    ///     report.result(&output);
    ///     Ok::<_, std::io::Error>(output)
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_with<T, E>(
        self,
        sandbox: Option<&dyn Sandbox>,
        body: impl FnOnce(&Plan, &mut RunReport) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        let mut running = self.start(sandbox)?;
        let result = body(&self.plan, &mut running.report);
        running.success = result.is_ok();
        result.map_err(RunError::Failed)
    }

    /// Runs the call without blocking a thread. See [`Permit::run_with`].
    pub async fn run_async<T, E>(
        self,
        sandbox: Option<&dyn Sandbox>,
        body: impl AsyncFnOnce(&Plan, &mut RunReport) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        let mut running = self.start(sandbox)?;
        let result = body(&self.plan, &mut running.report).await;
        running.success = result.is_ok();
        result.map_err(RunError::Failed)
    }

    /// Records that the call starts. Refuses a call that needs a sandbox and has none.
    fn start<E>(&self, sandbox: Option<&dyn Sandbox>) -> Result<RunningCall<'_>, RunError<E>> {
        if self.plan.containment == Containment::Required && sandbox.is_none() {
            let refusal = Refusal::new(
                RefusalKind::SandboxDenied,
                "this call may only run inside a sandbox; pass one to `run_with`",
            );
            self.recorder.emit_late(EventKind::Denied { refusal: refusal.clone() });
            return Err(RunError::Refused(refusal));
        }
        let started = EventKind::Started { sandbox: sandbox.map(Sandbox::enforces) };
        match self.recorder.emit(started) {
            Ok(()) => Ok(RunningCall {
                recorder: &self.recorder,
                since: Instant::now(),
                success: false,
                report: RunReport::default(),
            }),
            Err(error) => Err(RunError::Refused(Refusal::new(RefusalKind::Unknown, error.to_string()))),
        }
    }
}

callgate_model::debug_fields!(Permit, plan);

/// A running call. Dropping it records the end, even after a panic or a dropped future.
struct RunningCall<'a> {
    recorder: &'a Recorder,
    since: Instant,
    success: bool,
    report: RunReport,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let milliseconds = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let report = std::mem::take(&mut self.report);
        self.recorder.emit_late(EventKind::Finished { success: self.success, milliseconds, report });
    }
}
