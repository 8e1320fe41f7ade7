//! Putting a gate together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use callgate_model::redact::Redactor;

use super::{Gate, SandboxSupport};
use crate::approvals::channel::Nobody;
use crate::approvals::store::MemoryStore;
use crate::approvals::{Approvals, Approver, AsyncApprover};
use crate::assess::Assessor;
use crate::describe::Registry;
use crate::describe::git::GitHardening;
use crate::event::EventSink;
use crate::path::boundary::{Boundary, HostDirectories, host_directories};
use crate::path::file_system::{FileSystem, RealFileSystem};
use crate::policy::Policy;

/// Puts a gate together. Every default is the strictest: without a policy all calls are denied, without an approver every question
/// is refused, without a sandbox calls that must be contained are refused, and git is not assumed to be hardened.
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
            hardening: GitHardening::Never,
        }
    }
}

impl GateBuilder {
    /// The rules that calls are held to, and the boundary that comes with them.
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
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

    /// The directories of this machine; those of this process if not given.
    pub fn host(mut self, host: HostDirectories) -> Self {
        self.host = Some(host);
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

    /// Whether the caller can run git with the repository's own settings switched off. Unless it promises to, `git status` is
    /// silent only where those settings run nothing.
    pub fn git_hardening(mut self, hardening: GitHardening) -> Self {
        self.hardening = hardening;
        self
    }

    /// Builds the gate.
    pub fn build(self) -> Gate {
        let policy = self.policy.as_ref();
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
            boundaries: Mutex::default(),
        };
        Gate {
            assessor,
            approvals: self.approvals.or(self.fallback).unwrap_or_else(|| Approvals::in_memory(Nobody)),
            sinks: self.sinks.into(),
            sandbox: self.sandbox,
        }
    }
}
