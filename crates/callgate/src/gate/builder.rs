//! Putting a gate together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use callgate_shell::programs::Programs;

use super::{Gate, SandboxSupport};
use crate::approvals::channel::Nobody;
use crate::approvals::{Approvals, Approver, AsyncApprover};
use crate::describe::Registry;
use crate::describe::git::Hardening;
use crate::event::EventSink;
use crate::path::boundary::{Boundary, Surroundings};
use crate::path::file_system::{FileSystem, RealFileSystem};
use crate::policy::Policy;
use crate::redact::Redactor;
use crate::store::MemoryStore;

/// Puts a gate together. What is not said is at its strictest: no policy denies everything, no approver refuses every
/// question, no sandbox refuses what must be contained.
#[must_use]
pub struct GateBuilder {
    policy: Option<Policy>,
    boundary: Option<Boundary>,
    registry: Registry,
    approvals: Option<Approvals>,
    fallback: Option<Approvals>,
    sinks: Vec<Arc<dyn EventSink>>,
    secrets: HashSet<String>,
    surroundings: Option<Surroundings>,
    file_system: Arc<dyn FileSystem>,
    sandbox: SandboxSupport,
    hardening: Hardening,
}

impl Default for GateBuilder {
    fn default() -> Self {
        GateBuilder {
            policy: None,
            boundary: None,
            registry: Registry::default(),
            approvals: None,
            fallback: None,
            sinks: Vec::new(),
            secrets: HashSet::new(),
            surroundings: None,
            file_system: Arc::new(RealFileSystem),
            sandbox: SandboxSupport::Missing,
            hardening: Hardening::Applied,
        }
    }
}

impl GateBuilder {
    /// The rules that calls are held to, and the boundary that comes with them.
    pub fn policy(mut self, policy: impl Into<Policy>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// A boundary in place of the policy's.
    pub fn boundary(mut self, boundary: Boundary) -> Self {
        self.boundary = Some(boundary);
        self
    }

    /// Tools beside those that are built in.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Who is asked, unless the policy has a handler of its own. What is decided lives and dies with the gate.
    pub fn approver(self, approver: impl Approver + 'static) -> Self {
        self.approvals(Approvals::in_memory(approver))
    }

    /// The same, for [`Gate::check_async`].
    pub fn async_approver(self, approver: impl AsyncApprover + 'static) -> Self {
        self.approvals(Approvals::awaiting(Arc::new(MemoryStore::new()), Arc::new(approver)))
    }

    /// Who is asked, with a store that outlives the gate and is shared with others: grants, sessions, answers from elsewhere.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Who is asked if there is no other approver.
    pub fn fallback(mut self, approver: impl Approver + 'static) -> Self {
        self.fallback = Some(Approvals::in_memory(approver));
        self
    }

    /// Who hears of each step. May be called several times.
    pub fn events(mut self, sink: impl EventSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Values that must never be shown, wherever they stand.
    pub fn secrets<S: Into<String>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        self.secrets.extend(secrets.into_iter().map(Into::into));
        self
    }

    /// What the machine is like; found out if not said.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    /// The file system in which paths are resolved.
    pub fn file_system(mut self, file_system: impl FileSystem + 'static) -> Self {
        self.file_system = Arc::new(file_system);
        self
    }

    /// Whether whoever runs permits can contain them.
    pub fn sandbox(mut self, support: SandboxSupport) -> Self {
        self.sandbox = support;
        self
    }

    /// Whether git runs as the plan's hardened words say. Where it does not, the repository's own settings must be harmless as
    /// they are for a look to be silent.
    pub fn hardening(mut self, hardening: Hardening) -> Self {
        self.hardening = hardening;
        self
    }

    /// The gate.
    pub fn build(self) -> Gate {
        let boundary = self
            .boundary
            .or_else(|| self.policy.as_ref().map(|policy| Boundary::from(policy.boundary_settings())))
            .unwrap_or_default();
        let (programs, broken) = programs_of(self.policy.as_ref());
        Gate {
            policy: self.policy,
            boundary,
            registry: self.registry,
            approvals: self.approvals.or(self.fallback).unwrap_or_else(|| Approvals::in_memory(Nobody)),
            sinks: self.sinks.into(),
            redactor: Redactor::knowing(self.secrets),
            surroundings: self.surroundings.unwrap_or_else(Surroundings::of_this_process),
            file_system: self.file_system,
            sandbox: self.sandbox,
            hardening: self.hardening,
            programs,
            broken,
            settled: Mutex::new(None),
        }
    }
}

/// The program tables that a policy brings along; and why, if one of them is broken. A gate with a broken policy refuses.
fn programs_of(policy: Option<&Policy>) -> (Option<Arc<Programs>>, Option<String>) {
    let tables = policy.map(Policy::program_tables).unwrap_or_default();
    if tables.is_empty() {
        return (None, None);
    }
    let mut programs = Programs::bundled().clone();
    for (file, text) in tables {
        match programs.extended(text, file) {
            Ok(extended) => programs = extended,
            Err(error) => return (None, Some(error.to_string())),
        }
    }
    (Some(Arc::new(programs)), None)
}
