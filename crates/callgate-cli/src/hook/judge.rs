//! Judging a call that an agent is about to make, and noting what it made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callgate::approvals::channel::{Elsewhere, Nobody};
use callgate::approvals::{Answer as Said, Approvals, AskError, Channel, Question};
use callgate::policy::{Locations, Policy, PolicyCache};
use callgate::refusal::Refusal;
use callgate::{Call, Gate, Verdict};
use callgate_agents::{After, Agent, Answer, Incoming};
use callgate_audit::{AuditSink, Log, Settings};
use callgate_store::LazyStore;

use super::arguments::{AskWhom, HookArguments};
use super::deadline::Deadline;
use super::session::Session;
use crate::choice;

/// Judges a call. Whatever goes wrong is a no.
pub fn judge(
    arguments: &HookArguments,
    deadline: &Deadline,
    incoming: &Incoming,
    session: &Session,
    call: &Call,
) -> Answer {
    if let Some(interpreter) = &incoming.unseen_input {
        return Answer::deny(format!(
            "{interpreter} would go on to take input that no hook sees; give it what it should run as a file or an argument"
        ));
    }
    match permitted(arguments, deadline, incoming, session, call) {
        Ok(()) => Answer::allow(),
        Err(No::Refused(refusal)) => Answer::deny(words(&refusal)),
        Err(No::LeftToTheAgent(refusal)) => Answer::ask(words(&refusal)),
        Err(No::Trouble(why)) => Answer::deny(why),
    }
}

enum No {
    Refused(Refusal),
    /// The agent's own prompt shall decide.
    LeftToTheAgent(Refusal),
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
    incoming: &Incoming,
    session: &Session,
    call: &Call,
) -> Result<(), No> {
    let trouble = |why: String| No::Trouble(format!("callgate: {why}"));
    let workspace = session.workspace.clone().ok_or_else(|| trouble("the project's directory is not known".into()))?;
    let mut call = call.clone();
    call.origin.workspace = Some(workspace.clone());
    call.origin.directory.get_or_insert(workspace.clone());
    let policy = policy(arguments.policy.as_deref(), &workspace).map_err(|why| trouble(why.to_string()))?;
    let log = open_log().map_err(trouble)?;
    let left = Arc::new(AtomicBool::new(false));
    let approvals = Approvals::new(Arc::new(LazyStore::of_user()), channel(arguments, incoming, &left));
    let gate = Gate::builder().policy(policy).approvals(approvals).events(AuditSink::new(log)).build();
    let _ = deadline;
    match gate.check(call) {
        Verdict::Permitted(_) => session
            .judged(incoming, incoming.call().ok_or_else(|| trouble("there is no call".into()))?)
            .map_err(|error| trouble(format!("the verdict cannot be remembered: {error}"))),
        Verdict::Refused(refusal) if left.load(Ordering::SeqCst) => Err(No::LeftToTheAgent(refusal)),
        Verdict::Refused(refusal) => Err(No::Refused(refusal)),
    }
}

/// The policy that was named, or all layers that apply to the project; compiled only if it has changed.
fn policy(named: Option<&str>, workspace: &std::path::Path) -> Result<Policy, crate::outcome::Trouble> {
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

fn open_log() -> Result<Log, String> {
    let settings = Settings::of_user().map_err(|error| error.to_string())?;
    Log::open(settings).map_err(|error| format!("the audit log: {error}"))
}

/// Who answers where the policy says ask.
fn channel(arguments: &HookArguments, incoming: &Incoming, left: &Arc<AtomicBool>) -> Arc<dyn Channel> {
    let agent: &dyn Agent = arguments.agent;
    match arguments.ask {
        AskWhom::Approvers => Arc::new(Elsewhere),
        AskWhom::Agent | AskWhom::Auto if agent.can_ask(incoming.name) => Arc::new(TheAgent(Arc::clone(left))),
        _ => Arc::new(Nobody),
    }
}

/// Leaves the question to the agent's own prompt.
struct TheAgent(Arc<AtomicBool>);

impl Channel for TheAgent {
    fn ask(&self, _: &Question, _: &dyn Fn() -> bool) -> Result<Said, AskError> {
        self.0.store(true, Ordering::SeqCst);
        Err(AskError::Unavailable("left to the agent's own prompt".into()))
    }
}

/// Notes what a tool did that ran, and whether it had a verdict.
pub fn after(incoming: &Incoming, session: &Session, after: &After) {
    let _ = session.was_judged(incoming, &after.call);
}

/// Notes that a session began or ended.
pub fn notice(_incoming: &Incoming, _session: &Session) {}
