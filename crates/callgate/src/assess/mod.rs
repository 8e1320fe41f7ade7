//! Assesses a call: everything that is known about it before anybody is asked.
//!
//! [`Assessor::assess`] is the only function that judges calls, whatever they come from. It has three steps:
//!
//! 1. *plan* (pure): describe what the call would do, and so what must be observed;
//! 2. *observe*: look at the file system and the repository, the only step with I/O;
//! 3. *judge* (pure): decide by boundary and policy, and rate the risk.

mod assessment;
mod containment;
mod examples;
mod fence;
mod reasons;
mod repositories;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "times are shown and do not affect decisions")]
mod steps;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use callgate_model::call::{Call, Origin};
use callgate_model::claims::Claims;
use callgate_model::decision::{Decision, Ruling};
use callgate_model::fence::{Network, Protections};
use callgate_model::json;
use callgate_model::redact::Redactor;
use callgate_model::refusal::{Refusal, RefusalKind};
use callgate_shell::ShellState;
use callgate_shell::programs::Programs;

pub use assessment::{Assessment, RuledEffect};
pub use containment::MIXED_RULE;
use containment::Mixed;
pub use steps::StepTime;
use steps::Stopwatch;

use crate::describe::{CallContext, DescribeError, Described, Registry};
use crate::git::{self, GitHardening};
use crate::observe::{GitRun, Observation, observe};
use crate::path::boundary::{Boundary, HostDirectories, ResolvedBoundary, host_directories};
use crate::path::file_system::{FileSystem, RealFileSystem};
use crate::policy::{JudgeRequest, Policy, SandboxSupport};

/// The maximum number of projects whose resolved boundary an assessor remembers.
const MOST_WORKSPACES: usize = 256;

/// Assesses calls. Asks nobody, records nothing and permits nothing.
///
/// ```
/// use callgate::assess::Assessor;
/// use callgate::{Call, Decision, Policy};
///
/// let assessor = Assessor::new(Policy::bundled("standard")?);
/// let call = Call::new("Bash", serde_json::json!({"command": "cat ~/.ssh/id_rsa"})).directory("/tmp");
/// assert_eq!(assessor.assess(&call)?.ruling().decision, Decision::Deny);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Assessor {
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) boundary: Boundary,
    pub(crate) registry: Registry,
    pub(crate) redactor: Redactor,
    pub(crate) host: HostDirectories,
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) hardening: GitHardening,
    pub(crate) sandbox: SandboxSupport,
    /// The bundled program tables with those of the policy, if it has any; or why they are invalid.
    pub(crate) programs: Result<Option<Arc<Programs>>, String>,
    /// Resolved once for each project, so that a symlink changed later does not move a root.
    pub(crate) boundaries: Mutex<HashMap<Option<PathBuf>, Arc<ResolvedBoundary>>>,
}

impl Assessor {
    /// Creates an assessor for this machine and for callers that run git as the call says.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        let policy = policy.into();
        Assessor {
            boundary: Boundary::from(policy.boundary_settings()),
            programs: Assessor::programs_of(&policy),
            policy: Some(policy),
            registry: Registry::default(),
            redactor: Redactor::default(),
            host: host_directories(),
            file_system: Arc::new(RealFileSystem),
            hardening: GitHardening::Never,
            sandbox: SandboxSupport::Missing,
            boundaries: Mutex::default(),
        }
    }

    /// The program tables with those of `policy`, or why they are invalid.
    pub(crate) fn programs_of(policy: &Policy) -> Result<Option<Arc<Programs>>, String> {
        let tables = policy.program_tables();
        if tables.is_empty() {
            return Ok(None);
        }
        let all = tables.iter().try_fold(Programs::bundled().clone(), |all, (file, text)| all.extended(text, file));
        all.map(|all| Some(Arc::new(all))).map_err(|error| error.to_string())
    }

    /// The policy, if there is one.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_deref()
    }

    /// Assesses a call.
    pub fn assess(&self, call: &Call) -> Result<Assessment, Refusal> {
        self.assess_in(call, None)
    }

    /// Assesses a call that runs in a persistent shell.
    pub fn assess_in(&self, call: &Call, shell: Option<&ShellState>) -> Result<Assessment, Refusal> {
        self.assess_context(call, CallContext::of(call, shell, &self.host), self.sandbox)
    }

    /// Assesses a call as if there were no sandbox.
    pub(crate) fn assess_without_sandbox(
        &self,
        call: &Call,
        shell: Option<&ShellState>,
    ) -> Result<Assessment, Refusal> {
        self.assess_context(call, CallContext::of(call, shell, &self.host), SandboxSupport::Missing)
    }

    /// Assesses a command with an unknown working directory.
    pub(crate) fn assess_anywhere(&self, call: &Call, shell: Option<&ShellState>) -> Result<Assessment, Refusal> {
        let context = CallContext { directory: None, ..CallContext::of(call, shell, &self.host) };
        self.assess_context(call, context, self.sandbox)
    }

    fn assess_context(
        &self,
        call: &Call,
        context: CallContext,
        sandbox: SandboxSupport,
    ) -> Result<Assessment, Refusal> {
        guarded(|| {
            let mut steps = Stopwatch::start();
            let described = self.plan(call, context)?;
            steps.done("describe");
            self.finish(call, described, self.registry.claims(&call.tool), sandbox, steps)
        })
    }

    /// Assesses a call by an earlier description: with its effects and the sandbox at that time, and everything else as it is now.
    pub fn reassess(
        &self,
        call: &Call,
        described: Described,
        claims: &Claims,
        sandbox: SandboxSupport,
    ) -> Result<Assessment, Refusal> {
        guarded(|| {
            self.usable_policy()?;
            self.finish(call, described, claims, sandbox, Stopwatch::start())
        })
    }

    /// Whether an assessed call would pass if the user's policy had the rules of `rule` too. Rules do not open the boundary.
    pub fn would_pass_with(&self, rule: &Policy, call: &Call, assessment: &Assessment, claims: &Claims) -> bool {
        !assessment.is_held_by_boundary() && self.judged_with(rule, call, assessment, claims) < Decision::Ask
    }

    /// What the policy would decide about an assessed call if the user's file had the rules of `rule` too, without the boundary.
    pub fn judged_with(&self, rule: &Policy, call: &Call, assessment: &Assessment, claims: &Claims) -> Decision {
        let request = JudgeRequest { call, description: &assessment.description, claims, sandbox: self.sandbox };
        let judged = self.policy.as_ref().map(|policy| policy.judge_with(&request, rule).ruling.decision);
        judged.unwrap_or_default()
    }

    /// The policy; a refusal if there is none, or if it cannot be used.
    fn usable_policy(&self) -> Result<(&Policy, Option<&Arc<Programs>>), Refusal> {
        let Some(policy) = &self.policy else {
            return Err(Refusal::new(RefusalKind::Permission, "no policy is configured, so every call is denied")
                .hint("configure a policy, such as the bundled `standard`"));
        };
        match &self.programs {
            Ok(programs) => Ok((policy, programs.as_ref())),
            Err(why) => {
                Err(Refusal::new(RefusalKind::Permission, format!("the policy has invalid program tables: {why}")))
            }
        }
    }

    /// Step 1, pure: what the call would do.
    fn plan(&self, call: &Call, mut context: CallContext) -> Result<Described, Refusal> {
        json::measure(&call.input).map_err(|error| Refusal::new(RefusalKind::Validation, error.to_string()))?;
        context.programs = self.usable_policy()?.1.cloned();
        self.registry.describe(call, &context).map_err(|error| self.failed(&error))
    }

    fn finish(
        &self,
        call: &Call,
        described: Described,
        claims: &Claims,
        sandbox: SandboxSupport,
        mut steps: Stopwatch,
    ) -> Result<Assessment, Refusal> {
        // Kept only if running git with the repository's settings switched off might avoid a question.
        let again = (self.hardening == GitHardening::WhenNeeded && described.description.parts.iter().any(git::looks))
            .then(|| described.clone());
        let run = if self.hardening == GitHardening::Always { GitRun::Hardened } else { GitRun::AsWritten };
        let observation = self.observe(call, described, run);
        steps.done("observe");
        let mut assessment = self.judge(call, observation, claims, sandbox)?;
        steps.done("judge");
        if matches!(assessment.ruling.decision, Decision::Contain | Decision::Ask)
            && let Some(described) = again
            && let Some(rewritten) = git::rewritten(&described.description)
        {
            let hardened = self.judge(call, self.observe(call, described, GitRun::Hardened), claims, sandbox)?;
            if hardened.ruling.decision == Decision::Allow {
                assessment = Assessment { rewritten: Some(rewritten), ..hardened };
            }
        }
        assessment.steps = steps.finish();
        Ok(assessment)
    }

    /// Step 2: the file system and the repository. Nothing else on the way to a decision does I/O.
    fn observe(&self, call: &Call, described: Described, run: GitRun) -> Observation {
        let boundary = self.resolved_boundary(&call.origin);
        let policy = self.policy.as_deref().map(|policy| (policy, &call.origin));
        observe(described, boundary, run, policy, self.file_system.as_ref())
    }

    /// Step 3, pure: boundary, policy, risk. What the machine's sandbox cannot hold is judged as if there were none.
    fn judge(
        &self,
        call: &Call,
        observation: Observation,
        claims: &Claims,
        sandbox: SandboxSupport,
    ) -> Result<Assessment, Refusal> {
        let SandboxSupport::Partial(held) = sandbox else { return self.judge_for(call, observation, claims, sandbox) };
        let assessment = self.judge_for(call, observation.clone(), claims, SandboxSupport::Available)?;
        if !assessment.is_contained() || held.includes(assessment.required()) {
            return Ok(assessment);
        }
        self.judge_for(call, observation, claims, SandboxSupport::Missing)
    }

    fn judge_for(
        &self,
        call: &Call,
        observation: Observation,
        claims: &Claims,
        sandbox: SandboxSupport,
    ) -> Result<Assessment, Refusal> {
        let (policy, _) = self.usable_policy()?;
        let Observation { description, shell, boundary: areas, unresolved, settled } = observation;
        let mut boundary = areas.rulings(&description, &unresolved);
        let request = JudgeRequest { call, description: &description, claims, sandbox };
        let mut judgement = policy.judge(&request);
        let mut mixed = Mixed::No;
        if request.is_containable() {
            containment::settle_boundary(&mut boundary, &description, &judgement);
            mixed = containment::mixed(&boundary, &description, &judgement, || {
                let globs = self.fence_globs(call).unwrap_or_default();
                callgate_policy::PathList::new(globs.secrets.iter().chain(globs.runs_outside.iter()), None)
            });
            if mixed == Mixed::InOneCommand {
                // as without a sandbox: nothing is gained by containing a part of it
                boundary = areas.rulings(&description, &unresolved);
                let code = std::mem::take(&mut judgement.terms.code);
                judgement = policy.judge(&JudgeRequest { sandbox: SandboxSupport::Missing, ..request });
                judgement.terms.code = code;
            }
        }
        reasons::fill(&mut judgement, &description, &self.redactor);
        let risk = self.registry.risk(call, &description).map_err(|error| self.failed(&error))?;
        let strictest = boundary.iter().map(|ruling| &ruling.ruling).max_by_key(|ruling| ruling.decision);
        let strictest_of_boundary = strictest.map(|ruling| ruling.decision);
        let mut ruling = stricter(strictest, &judgement.ruling).clone();
        if let Mixed::InSeveralCommands { code, other } = &mixed
            && ruling.decision != Decision::Deny
        {
            ruling = containment::refused(code, other, &self.redactor);
        }
        let is_command = description.category == "shell";
        let forced = is_command
            && !containment::wants_out(&description)
            && (policy.wants_sandbox() || containment::wants_in(call));
        if forced && ruling.decision == Decision::Allow {
            ruling = containment::forced(&ruling);
        }
        let settings = policy.sandbox_settings();
        let terms = &mut judgement.terms;
        if forced && settings.network == Some(true) && terms.network == Network::None {
            terms.network = Network::All;
        }
        terms.limits = terms.limits.lowest(settings.limits);
        if forced {
            let stated = Some(settings.requires).filter(|requires| !requires.is_empty() && policy.wants_sandbox());
            terms.required = terms.required.and(stated.unwrap_or_else(Protections::all));
        }
        let unsettled = containment::is_unsettled(settled, &description);
        if unsettled || strictest_of_boundary > Some(Decision::Allow) {
            terms.required = Protections::all();
        }
        if unsettled && ruling.decision == Decision::Allow {
            ruling =
                containment::unsettled(&ruling, request.is_containable() && containment::is_all_given(&description));
        }
        let opens_fence = mixed == Mixed::InOneCommand && !judgement.terms.code.is_empty();
        Ok(Assessment {
            ruling,
            description,
            shell,
            boundary,
            judgement,
            risk,
            rewritten: None,
            steps: Vec::new(),
            opens_fence,
            forced,
            unsettled,
        })
    }

    fn failed(&self, error: &DescribeError) -> Refusal {
        Refusal::new(RefusalKind::Unknown, self.redactor.text(&error.to_string()))
    }

    /// The boundary for calls from one workspace.
    fn resolved_boundary(&self, origin: &Origin) -> Arc<ResolvedBoundary> {
        let project = origin.project().map(Path::to_owned);
        let mut boundaries = self.boundaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = boundaries.get(&project) {
            return Arc::clone(known);
        }
        if boundaries.len() >= MOST_WORKSPACES {
            boundaries.clear();
        }
        let resolved = Arc::new(self.boundary.resolve(origin, &self.host, self.file_system.as_ref()));
        boundaries.insert(project, Arc::clone(&resolved));
        resolved
    }
}

impl std::fmt::Debug for Assessor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let policy = self.policy().map(Policy::version);
        formatter.debug_struct("Assessor").field("policy", &policy).finish_non_exhaustive()
    }
}

fn guarded(body: impl FnOnce() -> Result<Assessment, Refusal>) -> Result<Assessment, Refusal> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Refusal::new(
            RefusalKind::Unknown,
            "internal error: callgate panicked while assessing the call; please report it",
        ))
    })
}

/// The stricter ruling of boundary and policy; if they agree, the one with a rule.
fn stricter<'a>(boundary: Option<&'a Ruling>, policy: &'a Ruling) -> &'a Ruling {
    match boundary {
        Some(boundary) if boundary.decision > policy.decision => boundary,
        Some(boundary) if boundary.decision == policy.decision && policy.rule.is_none() => boundary,
        _ => policy,
    }
}
