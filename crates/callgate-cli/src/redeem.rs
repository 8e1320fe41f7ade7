//! `callgate run --permit`: runs a call that a hook handed over, contained.
//!
//! The agent's shell starts this, so nothing of its environment decides about callgate itself: where the permits are follows from the
//! user id, and everything else from the permit.

use std::sync::Arc;

use callgate::live::LiveRun;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{Locations, Policy, PolicyCache};
use callgate::{Call, Gate, Refusal, RefusalKind, SandboxSupport};
use callgate_audit::{AuditSink, Log, SyncMode};
use callgate_sandbox::{Launch, Prepared};
use callgate_store::{PermitError, PermitToken};
use serde_json::json;

use crate::audit_log;
use crate::handover::{COMMAND, HandedOver};
use crate::left;
use crate::outcome::{Outcome, Trouble};
use crate::run::{self, RunArguments};

/// What an agent can do when a permit is no good.
const AGAIN: &str = "make the call again";

/// What helps if the agent keeps callgate from its own files.
const SURROUNDED: &str = "run it outside the agent's own sandbox (in Codex: with escalated permissions), and callgate contains \
                          it instead";

/// The parameters with which agents run a command in the background.
const BACKGROUND: &[&str] = &["run_in_background", "is_background"];

/// Runs the call that a permit was issued for.
pub fn run(arguments: &RunArguments, token: &str) -> Result<Outcome, Trouble> {
    let text = arguments.shell.as_deref().unwrap_or_default();
    let token = PermitToken::parse(token);
    if let Some(permit) = token.as_ref().and_then(HandedOver::peek).filter(HandedOver::is_surrounded) {
        // It stays unused, so that the hook after the tool records what cannot be recorded from here.
        let reason = "the agent's own sandbox surrounds this command, and callgate can contain nothing in there";
        return Ok(refuse(arguments, Some(&permit), text, reason, SURROUNDED));
    }
    let permit = match token.as_ref().map(HandedOver::redeem) {
        Some(Ok(permit)) => permit,
        refused => {
            let error = refused.and_then(Result::err).unwrap_or(PermitError::Unknown);
            let hint = if matches!(error, PermitError::Unusable { .. }) { SURROUNDED } else { AGAIN };
            let behind = HandedOver::behind(token.as_ref());
            return Ok(refuse(arguments, behind.as_ref(), text, &error.to_string(), hint));
        }
    };
    permit.settle_in();
    let prepared = Prepared::start(None);
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let here = match here {
        Ok(here) => here,
        Err(error) => {
            let reason = format!("cannot determine the current directory: {error}");
            return Ok(refuse(arguments, Some(&permit), text, &reason, AGAIN));
        }
    };
    let call = match permit.call(text, &here) {
        Ok(call) => call,
        Err(reason) => return Ok(refuse(arguments, Some(&permit), text, &reason, AGAIN)),
    };
    let policy = match policy(permit.policy.as_deref(), &call) {
        Ok(policy) if permit.is_under(policy.version()) => policy,
        Ok(_) => {
            let reason = "the policy has changed since the permit was issued";
            return Ok(refuse(arguments, Some(&permit), text, reason, AGAIN));
        }
        Err(error) => return Ok(refuse(arguments, Some(&permit), text, &error, AGAIN)),
    };
    let events = AuditSink::new(log(&policy)?);
    let gate = Gate::builder().policy(policy).events(events).sandbox(SandboxSupport::Available).build();
    let shell = call.origin.shell.clone();
    let in_background = BACKGROUND.iter().any(|name| call.input.get(*name).is_some_and(|value| value == true));
    let verdict = gate.redeem(call, &permit.id);
    // Its threads would take signals that are meant for the command.
    drop(gate);
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(refusal) => return Ok(run::refused(arguments, &refusal)),
    };
    let Some(fence) = verdict.plan().fence().cloned() else {
        return Err(Trouble::new("a call that was to be contained has no fence"));
    };
    let follow = arguments.left.is_some();
    let followed = follow.then(|| left::telling_where_it_ends(text));
    let launch = Launch {
        program: None,
        words: run::shell(shell.as_deref(), followed.as_deref().unwrap_or(text)),
        directory: here,
        left: follow,
        environment: std::env::vars_os().collect(),
        backend: None,
        // An agent works on beside what it runs in the background: like other calls that live on, that moves no links.
        run: LiveRun { links: !in_background, ..run::announced(&verdict, text) },
        detached: None,
        publish: in_background,
    };
    run::contained(arguments, verdict, fence, &launch, prepared)
}

/// Refuses, and records that. A refusal that cannot be recorded is one all the same.
fn refuse(arguments: &RunArguments, permit: Option<&HandedOver>, text: &str, reason: &str, hint: &str) -> Outcome {
    if let Some(permit) = permit {
        permit.settle_in();
    }
    let call = permit.map_or_else(|| Call::new("Bash", json!({ COMMAND: text })), |permit| permit.with(text));
    let policy = policy(permit.and_then(|permit| permit.policy.as_deref()), &call);
    let recorded = policy.map_err(Trouble::new).and_then(|policy| log(&policy)).map(AuditSink::new).and_then(|sink| {
        let id = permit.map(|permit| permit.id.as_str());
        sink.refused_permit(id, &call.tool, &call.origin, reason).map_err(|error| Trouble::new(error.to_string()))
    });
    let hint = match recorded {
        Ok(()) => hint.to_owned(),
        Err(trouble) => format!("{hint} (this refusal is not in the log: {trouble})"),
    };
    run::refused(arguments, &Refusal::new(RefusalKind::Permission, reason).hint(hint))
}

/// The policy as the hook loads it.
fn policy(named: Option<&str>, call: &Call) -> Result<Arc<Policy>, String> {
    let here = std::env::current_dir().unwrap_or_default();
    let loaded = match named {
        Some(name) => load_policy(PolicyChoice::Named(name), None),
        None => {
            let locations = Locations::of(call.origin.project().unwrap_or(&here)).working_in(Some(here.clone()));
            load_policy(
                PolicyChoice::Layers(&locations),
                PolicyCache::of_user_outside(locations.workspace.as_deref()).as_ref(),
            )
        }
    };
    loaded.map(|loaded| loaded.policy).map_err(|error| error.to_string())
}

fn log(policy: &Policy) -> Result<Log, Trouble> {
    let mut settings = audit_log::settings(policy)?;
    if policy.audit_settings().sync.is_none() {
        settings = settings.sync(SyncMode::Os);
    }
    Log::open_briefly(settings).map_err(|error| Trouble::new(format!("cannot open the audit log: {error}")))
}
