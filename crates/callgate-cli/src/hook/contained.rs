//! Calls that may only run contained: whether they can be handed over to `callgate run`, and what became of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use callgate::assess::{Assessment, Assessor};
use callgate::call::{Call, Origin};
use callgate::policy::Decision;
use callgate::redact::Redactor;
use callgate_audit::{AuditSink, ObservedEnd};
use callgate_hooks::{CallOutcome, CompletedCall, HookRequest};
use callgate_import::{Importer, SettingsFile, allows_command, settings_locations};
use callgate_install::HostEnvironment;
use callgate_shell::ShellState;
use callgate_store::{PermitState, PermitStore};

use super::session::{PassedCall, Session};
use super::shells::KeptShell;
use crate::handover::{self, COMMAND, HandedOver, LONGEST};

/// How long a tool that has ended may take to present its permit: one that runs in the background has ended for its agent before it
/// has begun.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a command is short enough to be handed over.
pub fn fits(text: &str) -> bool {
    text.len() <= LONGEST
}

/// Where the command of a call will run, if that is known.
pub fn directory(call: &Call, shell: Option<&KeptShell>) -> Option<PathBuf> {
    let named = call.origin.working_directory();
    match shell.map(|shell| &shell.state) {
        None => named.map(Path::to_owned),
        Some(state) if *state == state.clone().anywhere() => named.map(Path::to_owned),
        Some(state) => state.directory().map(PathBuf::from),
    }
}

/// A call and where it would run.
pub struct Placed {
    pub call: Call,
    pub directory: Option<PathBuf>,
    /// The state of the shell that the agent keeps, before the call.
    pub shell: Option<ShellState>,
}

impl Placed {
    /// Whether a call that is to be contained can be handed over. What is also asked about is not, because the agent's prompt would show
    /// the command that runs it; nor is what changes a shell that the agent keeps, because the change would be lost.
    pub fn can_be_handed_over(&self, agent: &str, assessment: &Assessment) -> bool {
        assessment.ruling().decision != Decision::Ask
            && self.directory.is_some()
            && self.leaves_shell(assessment)
            && handover::program().is_some()
            && PermitStore::of_user().is_some()
            && callgate_sandbox::choose(&assessment.required().iter().collect::<Vec<_>>(), None).is_ok()
            && !has_own_rule(agent, &self.call)
    }
}

impl Placed {
    /// Whether the call leaves the agent's shell as it is, apart from its directory.
    fn leaves_shell(&self, assessment: &Assessment) -> bool {
        let Some(before) = &self.shell else { return true };
        assessment.shell().is_some_and(|after| after.is_same_elsewhere(before))
    }
}

/// Whether the user's own rules in the agent ask about a call or deny it. They would not see it any more in what runs it, so the agent
/// gets the call as it is.
fn has_own_rule(agent: &str, call: &Call) -> bool {
    let Some(importer) = Importer::find(agent) else { return false };
    // What cannot be read may deny something.
    let Some((files, environment)) = own_settings(importer, call) else { return true };
    let policy = match callgate_import::rules(importer, &files, &environment) {
        Ok(Some(policy)) => policy,
        Ok(None) => return false,
        Err(_) => return true,
    };
    let Ok(assessment) = Assessor::new(policy).assess(call) else { return true };
    let objects = |decision: Decision, rule: Option<&str>| {
        decision >= Decision::Ask && rule.is_some_and(|rule| rule.starts_with(importer.name()))
    };
    let effects = assessment.effects(&Redactor::default());
    objects(assessment.ruling().decision, assessment.ruling().rule.as_deref())
        || effects.iter().any(|effect| objects(effect.decision, effect.rule.as_deref()))
}

/// The settings of an agent that apply to a call; `None` if they cannot be read.
fn own_settings(importer: Importer, call: &Call) -> Option<(Vec<SettingsFile>, HostEnvironment)> {
    let mut environment = HostEnvironment::of_process()?;
    if let Some(project) = call.origin.project() {
        environment.project = project.to_owned();
    }
    let files = crate::import::sources(&settings_locations(importer, &environment), &environment, false).ok()?;
    Some((files, environment))
}

/// Says that the user's own rules in the agent allow a command, if they do. callgate decides all the same, and not in silence.
pub fn allowed_by_own_rules(agent: &str, call: &Call) -> Option<String> {
    let importer = Importer::find(agent)?;
    let command = call.input.get(COMMAND)?.as_str()?;
    let (files, environment) = own_settings(importer, call)?;
    let allows = allows_command(importer, &files, command, &environment).unwrap_or(false);
    let (title, name) = (importer.title(), importer.name());
    allows
        .then(|| format!("rules in {title} allow it, and callgate decides (your user can run: callgate import {name})"))
}

/// Whether a call is one that was handed over already: some agents tell of the changed call once more, before they ask or run it.
pub fn is_announced_again(incoming: &HookRequest, session: &Session, call: &Call) -> bool {
    let Some(command) = call.input.get(COMMAND).and_then(|command| command.as_str()) else { return false };
    // Nearly every call ends here.
    if !command.contains(" run --permit ") {
        return false;
    }
    let Some((token, text)) = handover::token_in(command) else { return false };
    let Some(store) = PermitStore::of_user() else { return false };
    let digest = token.digest();
    let Some(permit) = store.peek::<HandedOver>(&digest) else { return false };
    let same = permit.session() == incoming.origin.session.as_deref() && permit.is_for(&text);
    same && store.state(&digest) == PermitState::Issued
        && session.handed_over(incoming, [call, call], &permit.id, &digest).is_ok()
}

/// Records how a tool ended that was to run with a permit.
pub fn finished(
    passed: &PassedCall,
    witness: &AuditSink,
    after: &CompletedCall,
    origin: &Origin,
) -> Result<(), String> {
    let store = PermitStore::of_user();
    let state = |permit: &String| store.as_ref().map_or(PermitState::Unknown, |store| store.state(permit));
    let is_used = || passed.permits.iter().any(|permit| state(permit) != PermitState::Issued);
    let since = Instant::now();
    while !is_used() && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = passed.id.as_deref();
    let noted = match (is_used(), after.outcome) {
        (false, _) => witness.unspent_permit(id, &after.call).map(drop),
        // What ran it records how it ended, unless it was killed.
        (true, CallOutcome::Failed) => {
            let end = ObservedEnd { success: Some(false), ..ObservedEnd::default() };
            witness.finished(id.unwrap_or_default(), &after.call.tool, origin, end).map(drop)
        }
        (true, _) => Ok(()),
    };
    noted.map_err(|error| error.to_string())
}
