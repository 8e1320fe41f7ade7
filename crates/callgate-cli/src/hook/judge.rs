//! Judges a call that an agent is about to make, and records how it ended.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate::approvals::{Approvals, Approver, Patience};
use callgate::event::RunReport;
use callgate::gate::{CheckOptions, CheckedCall};
use callgate::git::GitHardening;
use callgate::load::{PolicyChoice, load_policy};
use callgate::permit::Permit;
use callgate::policy::{Locations, Policy, PolicyCache};
use callgate::{Call, Gate};
use callgate_audit::{AuditSink, Log, ObservedEnd, SyncMode};
use callgate_hooks::{CallOutcome, CompletedCall, HookAnswer, HookDetails, HookRequest};
use callgate_model::refusal::{Refusal, RefusalKind};
use callgate_shell::ShellState;
use callgate_store::SqliteStore;
use serde_json::Value;

use super::arguments::HookArguments;
use super::asked::{self, Asked};
use super::deadline::Deadline;
use super::session::Session;
use super::shells::{self, KeptShell};

/// Time reserved for closing the question, logging it and printing the answer after nobody has answered.
const MARGIN: Duration = Duration::from_millis(500);

/// Judges a call. Every failure is a deny.
pub fn judge(
    arguments: &HookArguments,
    deadline: &Deadline,
    incoming: &HookRequest,
    session: &Session,
    call: &Call,
) -> HookAnswer {
    let prepared = Prepared::new(arguments, incoming, session, call);
    match prepared.and_then(|prepared| prepared.decide(deadline)) {
        Ok(answer) => answer,
        Err(why) => HookAnswer::deny(format!("callgate: {why}")),
    }
}

/// Everything that is needed to decide about one call.
struct Prepared<'a> {
    incoming: &'a HookRequest,
    session: &'a Session,
    /// The call as the agent made it.
    called: &'a Call,
    /// The call in its project.
    call: Call,
    shell: Option<KeptShell>,
    asked: Arc<Asked>,
    /// Never dropped: the process ends right after its answer.
    gate: ManuallyDrop<Gate>,
}

impl<'a> Prepared<'a> {
    fn new(
        arguments: &HookArguments,
        incoming: &'a HookRequest,
        session: &'a Session,
        called: &'a Call,
    ) -> Result<Self, String> {
        let workspace = session.workspace.clone().ok_or("cannot determine the project directory")?;
        let policy = policy(arguments.policy.as_deref(), &workspace)?;
        let mut call = called.clone();
        call.origin.directory.get_or_insert_with(|| workspace.clone());
        call.origin.workspace = Some(workspace);
        let asked = Arc::new(Asked::of(arguments, incoming));
        let approvals =
            Approvals::new(Arc::new(SqliteStore::of_user_when_needed()), Arc::clone(&asked) as Arc<dyn Approver>);
        let rewritable = incoming.event.can_rewrite() && command(&call.input).is_some();
        let gate = Gate::builder()
            .events(AuditSink::new(open_log(&policy)?))
            .policy(policy)
            .approvals(approvals)
            .git_hardening(if rewritable { GitHardening::WhenNeeded } else { GitHardening::Never })
            .build();
        let shell = KeptShell::of(incoming, session, &call);
        Ok(Prepared { incoming, session, called, call, shell, asked, gate: ManuallyDrop::new(gate) })
    }

    fn decide(self, deadline: &Deadline) -> Result<HookAnswer, String> {
        if let Some(interpreter) = &self.incoming.unseen_input {
            let reason = format!("{interpreter} would read further input that no hook sees");
            let hint = "pass what it should run as a file or an argument, or redirect its input from /dev/null";
            let refusal = Refusal::new(RefusalKind::Permission, reason).hint(hint);
            return Ok(match self.gate.refuse(&self.call, refusal) {
                Ok(_) => HookAnswer::deny("callgate refused this call"),
                Err(refusal) => HookAnswer::deny(words(&refusal)),
            });
        }
        let options = CheckOptions::default()
            .patience(Patience::at_most(deadline.left().saturating_sub(MARGIN)))
            .shell(self.shell.as_ref().map(|shell| shell.state.clone()));
        let CheckedCall { verdict, shell } = self.gate.check_with(self.call.clone(), options);
        match verdict {
            Ok(permit) => {
                let answer = match permit.plan().rewritten() {
                    Some(rewritten) => {
                        let mut input = self.call.input.clone();
                        let command = input.get_mut(COMMAND).ok_or("the command to rewrite is missing")?;
                        *command = rewritten.into();
                        HookAnswer::rewrite(input)
                    }
                    None => HookAnswer::allow(),
                };
                self.remember_permitted(&permit, shell.as_deref())?;
                Ok(answer)
            }
            Err(refusal) => self.refused(&refusal, shell.as_deref()),
        }
    }

    fn remember_permitted(self, permit: &Permit, after: Option<&ShellState>) -> Result<(), String> {
        let written: Vec<&Path> = permit.plan().written().collect();
        self.session.passed(self.incoming, self.called, Some(permit.id()), &written).map_err(not_remembered)?;
        match self.shell {
            Some(shell) => shell.after(self.session, after, self.gate.redactor()).map_err(not_remembered),
            None => Ok(()),
        }
    }

    fn refused(self, refusal: &Refusal, after: Option<&ShellState>) -> Result<HookAnswer, String> {
        let Some(question) = self.asked.question() else { return Ok(HookAnswer::deny(words(refusal))) };
        let asked = asked::words(&question, self.session);
        if !self.asked.left_to_agent() {
            return Ok(HookAnswer::deny(format!("{}: {asked}", words(refusal))));
        }
        // The agent's user may say yes, and then the call runs.
        let _ = self.session.passed(self.incoming, self.called, None, &[]);
        if let Some(shell) = self.shell {
            shell.perhaps_after(self.session, after, self.gate.redactor()).map_err(not_remembered)?;
        }
        Ok(HookAnswer::ask(asked))
    }
}

/// The parameter in which agents pass a shell command.
const COMMAND: &str = "command";

fn command(input: &Value) -> Option<&str> {
    input.get(COMMAND)?.as_str()
}

fn not_remembered(error: std::io::Error) -> String {
    format!("cannot record the verdict: {error}")
}

/// What the agent is told: the reason, and what it could do instead.
fn words(refusal: &Refusal) -> String {
    let rule = refusal.rule.as_deref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
    match &refusal.hint {
        Some(hint) => format!("{}{rule}; {hint}", refusal.reason),
        None => format!("{}{rule}", refusal.reason),
    }
}

/// The policy that was named, or all layers that apply to the project; compiled only if it has changed.
fn policy(named: Option<&str>, workspace: &Path) -> Result<Arc<Policy>, String> {
    let loaded = match named {
        Some(name) => load_policy(PolicyChoice::Named(name), None),
        None => load_policy(PolicyChoice::Layers(&Locations::of(workspace)), PolicyCache::of_user().as_ref()),
    };
    // The reason goes to the agent, so it has no colours.
    loaded.map(|loaded| loaded.policy).map_err(|error| error.to_string())
}

/// Opens the log. Unless the policy sets `sync`, entries are left to the operating system instead of being flushed to disk: they
/// outlive this process and the agent, and only a failure of the whole machine can lose them.
fn open_log(policy: &Policy) -> Result<Log, String> {
    let mut settings = crate::audit_log::settings(policy).map_err(|trouble| trouble.to_string())?;
    if policy.audit_settings().sync.is_none() {
        settings = settings.sync(SyncMode::Os);
    }
    Log::open_briefly(settings).map_err(|error| format!("cannot open the audit log: {error}"))
}

/// Records how a tool ended, or that it ran without a verdict.
pub fn after(
    arguments: &HookArguments,
    incoming: &HookRequest,
    session: &Session,
    after: &CompletedCall,
) -> Result<(), String> {
    shells::ran(incoming, session, &after.call).map_err(|error| error.to_string())?;
    let witness = witness(arguments, session)?;
    let noted = match session.verdict(incoming, &after.call) {
        Some(id) => {
            let mut report = RunReport::default();
            if let Some(result) = &after.result {
                report.result(result.to_string().as_bytes());
            }
            let success = match after.outcome {
                CallOutcome::Succeeded => Some(true),
                CallOutcome::Failed => Some(false),
                CallOutcome::Unknown => None,
            };
            let id = id.as_deref().or(incoming.call_id.as_deref()).unwrap_or_default();
            witness.finished(
                id,
                &after.call.tool,
                &incoming.origin,
                ObservedEnd { success, report, ..ObservedEnd::default() },
            )
        }
        None => {
            let reason = "no verdict in this session allowed it";
            witness.ran_without_verdict(&after.call, incoming.call_id.as_deref(), reason)
        }
    };
    noted.map(|_| ()).map_err(|error| error.to_string())
}

/// Records that a session began or ended.
pub fn notice(arguments: &HookArguments, incoming: &HookRequest, session: &Session) -> Result<(), String> {
    let noted = match incoming.details {
        HookDetails::SessionStart => witness(arguments, session)?.session_started(&incoming.origin, None, None),
        HookDetails::SessionEnd => witness(arguments, session)?.session_ended(&incoming.origin, None),
        _ => return Ok(()),
    };
    noted.map(|_| ()).map_err(|error| error.to_string())
}

fn witness(arguments: &HookArguments, session: &Session) -> Result<AuditSink, String> {
    let workspace = session.workspace.as_deref().ok_or("cannot determine the project directory")?;
    let policy = policy(arguments.policy.as_deref(), workspace)?;
    Ok(AuditSink::new(open_log(&policy)?))
}
