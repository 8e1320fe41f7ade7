//! Judges a call that an agent is about to make, and records how it ended.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate::approvals::{Approvals, Approver, Patience};
use callgate::event::RunReport;
use callgate::gate::{CheckOptions, CheckedCall, LeftQuestion};
use callgate::git::GitHardening;
use callgate::load::{LoadedPolicy, PolicyChoice, load_policy};
use callgate::permit::Permit;
use callgate::policy::{Decision, FoundFile, Locations, Policy, PolicyCache};
use callgate::{Call, Gate};
use callgate_audit::{AuditSink, Log, ObservedEnd, SyncMode};
use callgate_hooks::{CallOutcome, CompletedCall, ContainedCalls, HookAnswer, HookDetails, HookRequest};
use callgate_model::refusal::{Refusal, RefusalKind};
use callgate_shell::ShellState;
use callgate_store::SqliteStore;
use serde_json::Value;

use super::arguments::HookArguments;
use super::asked::{self, Asked};
use super::contained;
use super::deadline::Deadline;
use super::left::{self, Learner};
use super::session::{PassedCall, Session};
use super::shells::{self, KeptShell};
use crate::handover::{self, COMMAND, Handing};
use crate::{terminal, untrusted};

/// Time reserved for closing the question, logging it and printing the answer after nobody has answered.
const MARGIN: Duration = Duration::from_millis(500);

/// How long a question that nobody answered can be answered afterwards.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Judges a call. Every failure is a deny.
pub fn judge(
    arguments: &HookArguments,
    deadline: &Deadline,
    incoming: &HookRequest,
    session: &Session,
    call: &Call,
) -> HookAnswer {
    if contained::is_announced_again(incoming, session, call) {
        return HookAnswer::allow();
    }
    let prepared = Prepared::new(arguments, incoming, session, call);
    match prepared.and_then(|prepared| prepared.decide(deadline)) {
        Ok(answer) => answer,
        Err(why) => HookAnswer::deny(format!("callgate: {why}")),
    }
}

/// Records that a call is refused because its policy cannot be loaded, and returns the reason. Project files say nothing about the
/// log; if another file is broken, the log is in its usual place.
fn refused_without_policy(locations: &Locations, call: &Call, why: String) -> String {
    let others = Locations { directory: None, working: None, ..locations.clone() };
    let policy = load_policy(PolicyChoice::Layers(&others), None).map(|loaded| loaded.policy);
    let policy = policy.or_else(|_| load_policy(PolicyChoice::Named("standard"), None).map(|loaded| loaded.policy));
    let log = policy.map_err(|error| error.to_string()).and_then(|policy| open_log(&policy));
    match log {
        Ok(log) => {
            let gate = ManuallyDrop::new(Gate::builder().events(AuditSink::new(log)).build());
            let refused = gate.refuse(call, Refusal::new(RefusalKind::Unknown, why.clone()));
            refused.err().map_or(why, |refusal| refusal.reason)
        }
        Err(unlogged) => format!("{why}\n{unlogged}"),
    }
}

/// Everything that is needed to decide about one call.
struct Prepared<'a> {
    arguments: &'a HookArguments,
    incoming: &'a HookRequest,
    session: &'a Session,
    /// The call as the agent made it.
    called: &'a Call,
    /// The call in its project.
    call: Call,
    shell: Option<KeptShell>,
    asked: Arc<Asked>,
    /// Where the files of the policy are, and which were found; `None` for a policy that was named.
    layers: Option<(Locations, Vec<FoundFile>)>,
    /// Never dropped: the process ends right after its answer.
    gate: ManuallyDrop<Gate>,
}

impl<'a> Prepared<'a> {
    fn new(
        arguments: &'a HookArguments,
        incoming: &'a HookRequest,
        session: &'a Session,
        called: &'a Call,
    ) -> Result<Self, String> {
        let workspace = session.workspace.clone().ok_or("cannot determine the project directory")?;
        let mut call = called.clone();
        call.origin.directory.get_or_insert_with(|| workspace.clone());
        call.origin.workspace = Some(workspace.clone());
        let shell = KeptShell::of(incoming, session, &call);
        let working = contained::directory(&call, shell.as_ref()).or_else(|| call.origin.directory.clone());
        let locations = Locations::of(workspace).working_in(working);
        let LoadedPolicy { policy, files } = policy(arguments.policy.as_deref(), &locations)
            .map_err(|why| refused_without_policy(&locations, &call, why))?;
        let layers = arguments.policy.is_none().then_some((locations, files));
        // A policy that was named stands alone: a rule in the user's file would not help.
        let always = layers.as_ref().map(|(locations, _)| (locations.clone(), call.clone()));
        let asked = Arc::new(Asked::of(arguments, incoming, &policy, always.clone()));
        let mut approvals =
            Approvals::new(Arc::new(SqliteStore::of_user_when_needed()), Arc::clone(&asked) as Arc<dyn Approver>);
        if asked.left_to_agent() {
            approvals = approvals.left_to_agent();
        } else {
            approvals = terminal::writing(approvals.keeping(KEPT), always);
        }
        let rewritable = incoming.event.can_rewrite() && command(&call.input).is_some();
        let mut gate = Gate::builder()
            .events(AuditSink::new(open_log(&policy)?))
            .policy(policy)
            .approvals(approvals)
            .git_hardening(if rewritable { GitHardening::WhenNeeded } else { GitHardening::Never });
        if let Some(text) = command(&call.input).filter(|_| rewritable)
            && arguments.agent.contained() != ContainedCalls::Asked
            && contained::fits(text)
        {
            let agent = arguments.agent.name();
            let placed = contained::Placed {
                directory: contained::directory(&call, shell.as_ref()),
                shell: shell.as_ref().map(|shell| shell.state.clone()),
                call: call.clone(),
            };
            gate = gate.sandbox_if(move |assessment| placed.can_be_handed_over(agent, assessment));
        }
        let gate = ManuallyDrop::new(gate.build());
        Ok(Prepared { arguments, incoming, session, called, call, shell, asked, layers, gate })
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
        if let Some(asked) = self.asked_before() {
            return Ok(asked);
        }
        let options = CheckOptions::default()
            .patience(Patience::at_most(deadline.left().saturating_sub(MARGIN)))
            .shell(self.shell.as_ref().map(|shell| shell.state.clone()));
        let CheckedCall { verdict, shell, left } = self.gate.check_with(self.call.clone(), options);
        match verdict {
            Ok(permit) if permit.plan().fence().is_some() => self.hand_over(permit, shell.as_deref()),
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
            Err(refusal) => match left {
                Some(left) => self.leave(&left, shell.as_deref()),
                None => Ok(self.refused(&refusal)),
            },
        }
    }

    /// Lets the agent run `callgate run` with a permit in place of its own command.
    fn hand_over(self, permit: Permit, after: Option<&ShellState>) -> Result<HookAnswer, String> {
        let text = command(&self.call.input).ok_or("the command to contain is missing")?;
        let directory = contained::directory(&self.call, self.shell.as_ref());
        let directory = directory.ok_or("the directory of the command is not known")?;
        let keeps = self.arguments.agent.contained() == ContainedCalls::RewrittenKeepingDirectory;
        let handing = Handing {
            id: permit.id(),
            call: &self.call,
            directory: &directory,
            policy: self.arguments.policy.as_deref(),
            version: self.gate.assessor().policy().map(Policy::version).unwrap_or_default(),
            keeps_directory: keeps || self.shell.is_some(),
        };
        let handed = handover::hand_over(&handing, text)?;
        let mut rewritten = self.called.clone();
        *rewritten.input.get_mut(COMMAND).ok_or("the command to rewrite is missing")? = handed.command.into();
        self.session
            .handed_over(self.incoming, [self.called, &rewritten], permit.id(), &handed.permit)
            .map_err(not_remembered)?;
        permit.issued(handover::EXPIRES_IN).map_err(|refusal| refusal.reason)?;
        // A permit may turn out to be worth nothing, and then the call leaves nothing.
        if let Some(shell) = self.shell {
            shell.perhaps_after(self.session, after, self.gate.redactor()).map_err(not_remembered)?;
        }
        Ok(HookAnswer::rewrite(rewritten.input))
    }

    /// The answer to an agent that is about to show its user what callgate has just left to it. The call is judged again, and
    /// recorded again only if another answer is due.
    fn asked_before(&self) -> Option<HookAnswer> {
        let again = matches!(self.incoming.details, HookDetails::Permission(_)) && self.asked.left_to_agent();
        if !again || self.shell.is_some() || !left::is_open(self.session, self.called) {
            return None;
        }
        let assessment = self.gate.assess(&self.call).ok()?;
        let ruling = assessment.ruling();
        (ruling.decision == Decision::Ask).then(|| HookAnswer::ask(self.gate.redactor().text(&ruling.reason)))
    }

    fn remember_permitted(self, permit: &Permit, after: Option<&ShellState>) -> Result<(), String> {
        let written: Vec<&Path> = permit.plan().written().collect();
        self.session.passed(self.incoming, self.called, Some(permit.id()), &written).map_err(not_remembered)?;
        match self.shell {
            Some(shell) => shell.after(self.session, after, self.gate.redactor()).map_err(not_remembered),
            None => Ok(()),
        }
    }

    fn refused(&self, refusal: &Refusal) -> HookAnswer {
        let (words, decided) = match self.asked.question() {
            Some(question) => {
                let question = self.with_own_rules(asked::words(&question, self.session));
                (format!("{}: {question}", words(refusal)), Decision::Ask)
            }
            None => (words(refusal), Decision::Deny),
        };
        HookAnswer::deny(self.with_untrusted(words, decided))
    }

    /// Adds that the user's own rules in the agent allow the call, if they do.
    fn with_own_rules(&self, words: String) -> String {
        match contained::allowed_by_own_rules(self.arguments.agent.name(), &self.call) {
            Some(allowed) => format!("{words}; {allowed}"),
            None => words,
        }
    }

    /// Adds that a rule of a file which nobody trusts would decide more leniently, if one would.
    fn with_untrusted(&self, words: String, decided: Decision) -> String {
        let layers = self.layers.as_ref();
        match layers.and_then(|(locations, files)| untrusted::missing(locations, files, &self.call, decided)) {
            Some(untrusted) => format!("{words}; {untrusted} (your user can run: callgate trust)"),
            None => words,
        }
    }

    /// The agent's user may say yes, and then the call runs.
    fn leave(self, left: &LeftQuestion, after: Option<&ShellState>) -> Result<HookAnswer, String> {
        // a call that is not remembered is noted as one without a verdict, and nothing is learned from it
        let _ = self.session.passed(self.incoming, self.called, Some(&left.call), &[]);
        let _ = left::leave(self.arguments, self.incoming, self.session, self.called, left);
        let words = self.with_own_rules(asked::words(&left.question, self.session));
        let words = self.with_untrusted(words, Decision::Ask);
        if let Some(shell) = self.shell {
            shell.perhaps_after(self.session, after, self.gate.redactor()).map_err(not_remembered)?;
        }
        Ok(HookAnswer::ask(words))
    }
}

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
fn policy(named: Option<&str>, locations: &Locations) -> Result<LoadedPolicy, String> {
    let loaded = match named {
        Some(name) => load_policy(PolicyChoice::Named(name), None),
        None => {
            let cache = PolicyCache::of_user_outside(locations.workspace.as_deref());
            load_policy(PolicyChoice::Layers(locations), cache.as_ref())
        }
    };
    // The reason goes to the agent, so it has no colours.
    loaded.map_err(|error| error.to_string())
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
    let (policy, witness) = witness(arguments, session)?;
    let learner = Learner { arguments, incoming, session, policy: &policy, log: &witness };
    let learned = learner.ran(&after.call);
    let noted = match session.verdict(incoming, &after.call) {
        Some(passed) if !passed.permits.is_empty() => {
            return contained::finished(&passed, &witness, after, &incoming.origin).and(learned);
        }
        Some(PassedCall { id, .. }) => {
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
    noted.map_err(|error| error.to_string()).and(learned)
}

/// Records that a session began or ended, and what the end of a turn says about its questions.
pub fn notice(arguments: &HookArguments, incoming: &HookRequest, session: &Session) -> Result<(), String> {
    let turn = incoming.details == HookDetails::TurnEnd && left::anything_open(session);
    if !turn && !matches!(incoming.details, HookDetails::SessionStart | HookDetails::SessionEnd) {
        return Ok(());
    }
    let (policy, log) = witness(arguments, session)?;
    let noted = match incoming.details {
        HookDetails::SessionStart => log.session_started(&incoming.origin, None, None),
        HookDetails::SessionEnd => log.session_ended(&incoming.origin, None),
        _ => return Learner { arguments, incoming, session, policy: &policy, log: &log }.turn_ended(),
    };
    noted.map(|_| ()).map_err(|error| error.to_string())
}

fn witness(arguments: &HookArguments, session: &Session) -> Result<(Arc<Policy>, AuditSink), String> {
    let workspace = session.workspace.as_deref().ok_or("cannot determine the project directory")?;
    let policy = policy(arguments.policy.as_deref(), &Locations::of(workspace))?.policy;
    let log = AuditSink::new(open_log(&policy)?);
    Ok((policy, log))
}
