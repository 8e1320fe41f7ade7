//! Judging a call that an agent is about to make, and noting what it made.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate::approvals::{Approvals, Approver, Patience};
use callgate::describe::git::{self, Hardening};
use callgate::policy::{Decision, Locations, Policy, PolicyCache};
use callgate::refusal::{Refusal, RefusalKind};
use callgate::report::Report;
use callgate::{Call, Gate, Verdict};
use callgate_audit::{AuditSink, Ended, Log, Sync, Witness};
use callgate_hooks::{CallOutcome, CompletedCall, HookAnswer, HookDetails, HookRequest};
use callgate_store::LazyStore;
use serde_json::Value;

use super::arguments::HookArguments;
use super::asked::{self, Asked};
use super::deadline::Deadline;
use super::session::Session;
use super::shells::{self, KeptShell};
use crate::choice;

/// What remains of the hook's time once nobody has answered: enough to settle the question, log it and say so.
const MARGIN: Duration = Duration::from_millis(500);

/// Judges a call. Whatever goes wrong is a no.
pub fn judge(
    arguments: &HookArguments,
    deadline: &Deadline,
    incoming: &HookRequest,
    session: &Session,
    call: &Call,
) -> HookAnswer {
    match permitted(arguments, deadline, incoming, session, call) {
        Ok(None) => HookAnswer::allow(),
        Ok(Some(rewritten)) => HookAnswer::rewrite(rewritten),
        Err(No::Refused(why) | No::Trouble(why)) => HookAnswer::deny(why),
        Err(No::LeftToTheAgent(why)) => HookAnswer::ask(why),
    }
}

enum No {
    Refused(String),
    /// The agent's own prompt shall decide.
    LeftToTheAgent(String),
    Trouble(String),
}

/// What the agent is told: the reason, and what it could do instead.
fn words(refusal: &Refusal) -> String {
    let rule = refusal.rule.as_deref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
    match &refusal.hint {
        Some(hint) => format!("{}{rule}; {hint}", refusal.reason),
        None => format!("{}{rule}", refusal.reason),
    }
}

fn permitted(
    arguments: &HookArguments,
    deadline: &Deadline,
    incoming: &HookRequest,
    session: &Session,
    called: &Call,
) -> Result<Option<Value>, No> {
    let trouble = |why: String| No::Trouble(format!("callgate: {why}"));
    let workspace = session.workspace.clone().ok_or_else(|| trouble("the project's directory is not known".into()))?;
    let mut call = called.clone();
    call.origin.workspace = Some(workspace.clone());
    call.origin.directory.get_or_insert(workspace.clone());
    let policy = policy(arguments.policy.as_deref(), &workspace).map_err(|why| trouble(why.to_string()))?;
    let log = open_log(&policy).map_err(trouble)?;
    let asked = Arc::new(Asked::of(arguments, incoming));
    let approvals = Approvals::new(Arc::new(LazyStore::of_user()), Arc::clone(&asked) as Arc<dyn Approver>);
    // The agent's shell runs the command as it is, unless the agent takes another one.
    let gate = Gate::builder()
        .policy(policy)
        .approvals(approvals)
        .events(AuditSink::new(log))
        .hardening(Hardening::Missing)
        .build();
    // The process ends with its answer, and what it holds is given back by that.
    let mut gate = ManuallyDrop::new(gate);
    if let Some(interpreter) = &incoming.unseen_input {
        let reason = format!("{interpreter} would go on to take input that no hook sees");
        let refusal = Refusal::new(RefusalKind::Permission, reason);
        let hint = "give it what it should run as a file or an argument, or its input from /dev/null";
        if let Verdict::Refused(refusal) = gate.refuse(&call, refusal.hint(hint)) {
            return Err(No::Refused(words(&refusal)));
        }
    }
    let forgetful = |error: std::io::Error| trouble(format!("the verdict cannot be remembered: {error}"));
    let shell = KeptShell::of(incoming, session, &call);
    call.shell = shell.as_ref().map(|shell| Box::new(shell.state.clone()));
    let judged = call.shell.is_some().then(|| call.clone());
    let rewritten = rewritten(incoming, &mut gate, &call);
    let patience = Patience::at_most(deadline.left().saturating_sub(MARGIN));
    match gate.check_with(call, patience) {
        Verdict::Permitted(permit) => {
            let written: Vec<&Path> = permit.plan().written().collect();
            session.passed(incoming, called, Some(permit.id()), &written).map_err(forgetful)?;
            if let Some(shell) = shell {
                let state = permit.plan().description().shell.as_deref();
                shell.after(session, state, gate.redactor()).map_err(forgetful)?;
            }
            Ok(rewritten)
        }
        Verdict::Refused(refusal) => Err(match asked.question() {
            Some(question) if asked.left_to_agent() => {
                // The agent's user may say yes to it, and then it runs.
                let _ = session.passed(incoming, called, None, &[]);
                if let (Some(shell), Some(judged)) = (shell, judged) {
                    let explained = gate.explain(&judged).ok();
                    let state = explained.as_ref().and_then(|explained| explained.description().shell.as_deref());
                    shell.perhaps_after(session, state, gate.redactor()).map_err(forgetful)?;
                }
                No::LeftToTheAgent(asked::words(&question, session))
            }
            Some(question) => No::Refused(format!("{}: {}", words(&refusal), asked::words(&question, session))),
            None => No::Refused(words(&refusal)),
        }),
    }
}

/// The input with git hardened, if that alone spares a question, and the agent runs what it is given. Then the gate judges the
/// hardened command.
fn rewritten(incoming: &HookRequest, gate: &mut Gate, call: &Call) -> Option<Value> {
    let command = call.input.get("command")?.as_str()?;
    if !command.contains("git") || !incoming.event.can_rewrite() {
        return None;
    }
    let decision = |gate: &Gate| gate.explain(call).map(|explanation| explanation.ruling().decision);
    if decision(gate) != Ok(Decision::Ask) {
        return None;
    }
    gate.set_hardening(Hardening::Applied);
    let explanation = gate.explain(call).ok().filter(|explanation| explanation.ruling().decision == Decision::Allow);
    let hardened = explanation.and_then(|explanation| git::rewritten(explanation.description()));
    if hardened.is_none() {
        gate.set_hardening(Hardening::Missing);
    }
    let mut input = call.input.clone();
    *input.get_mut("command")? = hardened?.into();
    Some(input)
}

/// The policy that was named, or all layers that apply to the project; compiled only if it has changed.
fn policy(named: Option<&str>, workspace: &Path) -> Result<Policy, crate::outcome::Trouble> {
    if let Some(named) = named {
        return choice::named(named);
    }
    let locations = Locations::of(workspace);
    let Some(cache) = PolicyCache::of_user() else {
        return Ok(Policy::layered(&locations)?);
    };
    let loaded = Policy::layered_from(&cache, &locations)?;
    if loaded.is_new {
        // Examples are checked whenever a file is compiled, and it is kept only if they hold.
        choice::gate(None, workspace)?;
        loaded.save(&cache);
    }
    Ok(loaded.policy)
}

/// The log. Unless the policy says otherwise, an entry is handed to the operating system and not waited for until it is on the disk:
/// it outlives this process and the agent, and only a failure of the whole machine can take it, with what the tool did.
fn open_log(policy: &Policy) -> Result<Log, String> {
    let mut settings = choice::log_settings(policy).map_err(|trouble| trouble.to_string())?;
    if policy.audit_settings().sync.is_none() {
        settings = settings.sync(Sync::Os);
    }
    Log::open_briefly(settings).map_err(|error| format!("the audit log: {error}"))
}

/// Notes how a tool ended that ran; and that it had no verdict, if it had none.
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
            let mut report = Report::default();
            if let Some(result) = &after.result {
                report.result(result.to_string().as_bytes());
            }
            let success = match after.outcome {
                CallOutcome::Succeeded => Some(true),
                CallOutcome::Failed => Some(false),
                CallOutcome::Unknown => None,
            };
            let id = id.as_deref().or(incoming.call_id.as_deref()).unwrap_or_default();
            witness.finished(id, &after.call.tool, &incoming.origin, Ended { success, report, ..Ended::default() })
        }
        None => {
            let reason = "no verdict that let it run was given in this session";
            witness.ran_without_verdict(&after.call, incoming.call_id.as_deref(), reason)
        }
    };
    noted.map(|_| ()).map_err(|error| error.to_string())
}

/// Notes that a session began or ended.
pub fn notice(arguments: &HookArguments, incoming: &HookRequest, session: &Session) -> Result<(), String> {
    let noted = match incoming.details {
        HookDetails::SessionStart => witness(arguments, session)?.session_started(&incoming.origin, None, None),
        HookDetails::SessionEnd => witness(arguments, session)?.session_ended(&incoming.origin, None),
        _ => return Ok(()),
    };
    noted.map(|_| ()).map_err(|error| error.to_string())
}

fn witness(arguments: &HookArguments, session: &Session) -> Result<Witness, String> {
    let workspace = session.workspace.as_deref().ok_or("the project's directory is not known")?;
    let policy = policy(arguments.policy.as_deref(), workspace).map_err(|trouble| trouble.to_string())?;
    Ok(Witness::new(open_log(&policy)?))
}
