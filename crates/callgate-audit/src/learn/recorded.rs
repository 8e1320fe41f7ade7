//! A recorded call, and how a policy judges it today.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use callgate::call::{Call, Origin, Tool};
use callgate::describe::{Context, Description, Registry};
use callgate::path::boundary::{Boundary, Settled, Surroundings};
use callgate::path::file_system::RealFileSystem;
use callgate::policy::{Claims, Decision, Policy, Request, Ruling};
use callgate_shell::effect::{Action, Coverage, Mark};
use callgate_shell::programs::Programs;

use crate::entry::{Body, Entry};
use crate::line::CUT;

/// A call as the log has it: enough to be judged again.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The number of its entry.
    pub seq: u64,
    /// The call, with its redacted input.
    pub call: Call,
    /// What it would do, as it was found out then.
    pub description: Description,
    /// What was claimed of its tool.
    pub claims: Claims,
    /// How it was judged then.
    pub decision: Decision,
    /// By which rule.
    pub rule: Option<String>,
    /// In one line.
    pub shown: String,
    /// Whether nothing of it was redacted or cut: then it is judged as it was, otherwise nearly so.
    pub exact: bool,
}

impl Recorded {
    /// The call that an entry is about; `None` if it is about none, or its description was left out for its size.
    pub fn of(entry: &Entry) -> Option<Self> {
        let Body::ToolAttempt(attempt) = &entry.record.body else { return None };
        let description: Description = serde_json::from_value(attempt.description.clone()).ok()?;
        let record = &entry.record;
        let origin = Origin {
            agent: record.agent.clone(),
            session: record.session.clone(),
            chat: record.chat.clone(),
            scope: record.scope.clone(),
            directory: attempt.directory.as_ref().map(PathBuf::from),
            workspace: attempt.workspace.as_ref().map(PathBuf::from),
        };
        let text = attempt.description.to_string();
        Some(Recorded {
            seq: entry.seq,
            call: Call::new(Tool::parse(&attempt.tool), attempt.input.clone()).origin(origin),
            description,
            claims: serde_json::from_value(attempt.claims.clone()).unwrap_or_default(),
            decision: attempt.decision,
            rule: attempt.rule.clone(),
            shown: format!("{}: {}", attempt.tool, crate::export::summary(entry)),
            exact: entry.truncated.is_empty() && !text.contains("[redacted: ") && !text.contains(CUT),
        })
    }

    /// Whether a rule may be proposed for it: everything is known of it, and nothing of it is secret or privileged.
    pub fn is_plain(&self) -> bool {
        let effects = || self.description.parts.iter().flat_map(|part| &part.effects).map(|placed| &placed.effect);
        self.exact
            && self.description.coverage == Coverage::Complete
            && !self.call.input.to_string().contains("[redacted: ")
            && effects().all(|effect| !matches!(effect.action, Action::Privilege | Action::Opaque))
            && effects().all(|effect| {
                !effect
                    .marks
                    .iter()
                    .any(|mark| matches!(mark, Mark::Credentials | Mark::Destructive | Mark::Environment))
            })
    }
}

/// What a policy says of a recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The decision.
    pub decision: Decision,
    /// The rule.
    pub rule: Option<String>,
    /// The places `(part, effect)` that are asked about or denied.
    pub held_up: Vec<(usize, usize)>,
}

/// A policy with its boundary, ready to judge recorded calls on this machine.
pub struct Judge {
    policy: Policy,
    boundary: Boundary,
    surroundings: Surroundings,
    settled: Mutex<HashMap<Option<PathBuf>, Arc<Settled>>>,
    registry: Registry,
    programs: Option<Arc<Programs>>,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Judge").field("policy", &self.policy.version()).finish_non_exhaustive()
    }
}

impl Judge {
    /// Of a policy.
    pub fn new(policy: Policy) -> Self {
        let tables = policy.program_tables();
        // a table that cannot be read is an error of the policy, which its own commands tell
        let programs = (!tables.is_empty()).then(|| {
            let all = tables.iter().try_fold(Programs::bundled().clone(), |all, (file, text)| all.extended(text, file));
            Arc::new(all.unwrap_or_else(|_| Programs::bundled().clone()))
        });
        Judge {
            programs,
            registry: Registry::default(),
            boundary: Boundary::from(policy.boundary_settings()),
            policy,
            surroundings: Surroundings::of_this_process(),
            settled: Mutex::default(),
        }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// A call that was never made, described as the gate would; `None` if its descriptor fails.
    pub fn describe(&self, call: &Call) -> Option<Recorded> {
        let mut context = Context::of(call, &self.surroundings);
        context.programs.clone_from(&self.programs);
        let description = self.registry.describe(call, &context).ok()?;
        Some(Recorded {
            seq: 0,
            claims: self.registry.claims(&call.tool).clone(),
            call: call.clone(),
            description,
            decision: Decision::Ask,
            rule: None,
            shown: call.tool.to_string(),
            exact: true,
        })
    }

    /// Judges a recorded call: boundary and policy as they are now, effects as they were found then.
    pub fn judge(&self, recorded: &Recorded) -> Judged {
        let mut description = recorded.description.clone();
        let boundary = self.settled(&recorded.call.origin).apply(&mut description, &RealFileSystem);
        let request = Request { call: &recorded.call, description: &description, claims: &recorded.claims };
        let judgement = self.policy.judge(&request);
        let mut ruling: &Ruling = &judgement.ruling;
        for outside in &boundary {
            if outside.ruling.decision > ruling.decision {
                ruling = &outside.ruling;
            }
        }
        let stops = |decision: Decision| decision >= Decision::Ask;
        let by_policy = judgement.effects.iter().filter(|(_, _, ruling)| stops(ruling.decision));
        let by_boundary = boundary.iter().filter(|ruling| stops(ruling.ruling.decision));
        let mut held_up: Vec<(usize, usize)> = by_policy
            .map(|(part, effect, _)| (*part, *effect))
            .chain(by_boundary.map(|ruling| (ruling.part, ruling.effect)))
            .collect();
        held_up.sort_unstable();
        held_up.dedup();
        Judged { decision: ruling.decision, rule: ruling.rule.clone(), held_up }
    }

    fn settled(&self, origin: &Origin) -> Arc<Settled> {
        let workspace = origin.workspace.clone().or_else(|| origin.directory.clone());
        let mut all = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > 1_000 {
            all.clear();
        }
        let settle = || Arc::new(self.boundary.settle(origin, &self.surroundings, &RealFileSystem));
        Arc::clone(all.entry(workspace).or_insert_with(settle))
    }
}
