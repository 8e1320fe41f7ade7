//! Putting a gate together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use callgate_model::redact::Redactor;

use super::{Containing, Gate, SandboxSupport};
use crate::approvals::channel::{Asking, Nobody, configured};
use crate::approvals::store::MemoryStore;
use crate::approvals::{Approvals, Approver, AsyncApprover};
use crate::assess::{Assessment, Assessor};
use crate::describe::Registry;
use crate::event::EventSink;
use crate::git::GitHardening;
use crate::path::boundary::{Boundary, HostDirectories, host_directories};
use crate::path::file_system::{FileSystem, RealFileSystem};
use crate::policy::Policy;

/// Configures a [`Gate`]. Every default is the strictest one: without a policy, all calls are denied; without an approver, all
/// questions are refused; without a sandbox, calls that need one are refused; and git is not assumed to be hardened.
#[must_use]
pub struct GateBuilder {
    policy: Option<Arc<Policy>>,
    boundary: Option<Boundary>,
    registry: Registry,
    approvals: Option<Approvals>,
    fallback: Option<Approvals>,
    sinks: Vec<Arc<dyn EventSink>>,
    secrets: HashSet<String>,
    host: Option<HostDirectories>,
    file_system: Arc<dyn FileSystem>,
    sandbox: SandboxSupport,
    containing: Option<Box<Containing>>,
    hardening: GitHardening,
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
            host: None,
            file_system: Arc::new(RealFileSystem),
            sandbox: SandboxSupport::Missing,
            containing: None,
            hardening: GitHardening::Never,
        }
    }
}

impl GateBuilder {
    /// Sets the policy and its boundary.
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Sets a boundary that replaces the policy's.
    pub fn boundary(mut self, boundary: Boundary) -> Self {
        self.boundary = Some(boundary);
        self
    }

    /// Sets the registered tools. Built-in tools need no registration.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets the approver, which is asked unless the policy has its own handler. Answers are kept in memory.
    pub fn approver(self, approver: impl Approver + 'static) -> Self {
        self.approvals(Approvals::in_memory(approver))
    }

    /// Sets the approver for [`Gate::check_async`].
    pub fn async_approver(self, approver: impl AsyncApprover + 'static) -> Self {
        self.approvals(Approvals::awaiting(Arc::new(MemoryStore::new()), Arc::new(approver)))
    }

    /// Sets an approver with a store of its own: grants, sessions and answers that outlive the gate or come from other processes.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Sets the approver that is asked if no other is set.
    pub fn fallback(mut self, approver: impl Approver + 'static) -> Self {
        self.fallback = Some(Approvals::in_memory(approver));
        self
    }

    /// Adds a sink that receives every event. May be called several times.
    pub fn events(mut self, sink: impl EventSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Adds values to redact wherever they occur.
    pub fn secrets<S: Into<String>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        self.secrets.extend(secrets.into_iter().map(Into::into));
        self
    }

    /// Sets the home and temporary directories. Defaults to those of this process.
    pub fn host(mut self, host: HostDirectories) -> Self {
        self.host = Some(host);
        self
    }

    /// Sets the file system in which paths are resolved.
    pub fn file_system(mut self, file_system: impl FileSystem + 'static) -> Self {
        self.file_system = Arc::new(file_system);
        self
    }

    /// Sets whether permits can run inside a sandbox.
    pub fn sandbox(mut self, support: SandboxSupport) -> Self {
        self.sandbox = support;
        self
    }

    /// Lets permits run inside a sandbox if `contains` says so of a call that has to be contained. A call of which it says no is
    /// judged as if there were no sandbox. Nothing is tried out for calls that are not contained.
    pub fn sandbox_if(mut self, contains: impl Fn(&Assessment) -> bool + Send + Sync + 'static) -> Self {
        self.sandbox = SandboxSupport::Available;
        self.containing = Some(Box::new(contains));
        self
    }

    /// Sets whether the caller runs git with the repository's own settings switched off. If not, `git status` is allowed without a
    /// question only where those settings run nothing.
    pub fn git_hardening(mut self, hardening: GitHardening) -> Self {
        self.hardening = hardening;
        self
    }

    /// Builds the gate.
    pub fn build(self) -> Gate {
        let policy = self.policy.as_ref();
        let named = || policy.and_then(|policy| configured(policy, &Asking::default())).map(Approvals::in_memory);
        let approvals = self.approvals.or(self.fallback).or_else(named).unwrap_or_else(|| Approvals::in_memory(Nobody));
        let assessor = Assessor {
            boundary: self
                .boundary
                .or_else(|| policy.map(|policy| Boundary::from(policy.boundary_settings())))
                .unwrap_or_default(),
            programs: policy.map_or(Ok(None), |policy| Assessor::programs_of(policy)),
            policy: self.policy,
            registry: self.registry,
            redactor: Redactor::knowing(self.secrets),
            host: self.host.unwrap_or_else(host_directories),
            file_system: self.file_system,
            hardening: self.hardening,
            sandbox: self.sandbox,
            boundaries: Mutex::default(),
        };
        Gate { assessor, approvals, sinks: self.sinks.into(), containing: self.containing }
    }
}
