//! `callgate run --again`: runs a contained call once more, with exactly what was held back of it, after a yes.

use std::path::Path;
use std::time::{Duration, Instant};

use callgate::approvals::AskError;
use callgate::approvals::channel::{Look, Terminal, controlling_terminal};
use callgate::fence::{Fence, HeldBack};
use callgate::gate::CheckOptions;
use callgate::show::visible;
use callgate::{Call, Decision, Refusal, RefusalKind};
use callgate_audit::AuditError;
use callgate_audit::entry::EntryBody;
use callgate_audit::learn::RecordedCall;
use callgate_audit::read::{self, Entries};
use callgate_sandbox::Launch;
use serde_json::json;

use crate::audit::LogArguments;
use crate::opened::{Addition, REDACTED, addition, open};
use crate::outcome::{Outcome, Trouble};
use crate::run::{RunArguments, announced, contained, gate, refused, shell};

/// How long a person may think.
const PATIENCE: Duration = Duration::from_secs(300);
/// A call in the log of which something was held back.
struct First {
    id: String,
    command: String,
    /// The call that runs in its place.
    call: Call,
    held_back: Vec<HeldBack>,
}

impl First {
    fn find(id: &str) -> Result<Self, Trouble> {
        let directory = LogArguments { log: None }.directory().map_err(Trouble::new)?;
        let id = if id == "last" { last(&directory)? } else { id.to_owned() };
        let entries = read::call(&directory, &id).map_err(unread)?;
        let recorded = entries.iter().find_map(|line| RecordedCall::of(&line.entry));
        let held_back = entries.iter().rev().find_map(|line| match &line.entry.record.body {
            EntryBody::Finished(finished) => Some(finished.held_back.clone()),
            _ => None,
        });
        let (Some(recorded), Some(held_back)) = (recorded, held_back.filter(|held| !held.is_empty())) else {
            return Err(Trouble::new(format!("nothing was held back of the call {}", visible(&id))));
        };
        let command = recorded.call.input.get("command").and_then(|command| command.as_str());
        let command = command.ok_or_else(|| Trouble::new("this call has no command that could run again"))?;
        if !recorded.exact || command.contains(REDACTED) {
            return Err(Trouble::new("the log has this call without its secrets or cut off; run the command itself"));
        }
        let origin = &recorded.call.origin;
        let Some(here) = &origin.directory else {
            return Err(Trouble::new("the log does not say in which directory the call ran"));
        };
        // In the log, the second call names the first one.
        let input = json!({ "command": command, "description": format!("callgate run --again {id}") });
        let mut call = Call::new("Bash", input).directory(here).workspace(origin.workspace.as_ref().unwrap_or(here));
        call.origin.shell = Some(origin.shell.clone().unwrap_or_else(|| "bash".to_owned()));
        Ok(First { command: command.to_owned(), id, call, held_back })
    }
}

fn unread(error: AuditError) -> Trouble {
    Trouble::new(error.to_string())
}

/// The id of the last call of which something was held back.
fn last(directory: &Path) -> Result<String, Trouble> {
    let held = Entries::open(directory).map_err(unread)?.filter_map(|line| {
        let record = line.ok()?.entry.record;
        match record.body {
            EntryBody::Finished(finished) if !finished.held_back.is_empty() => record.call,
            _ => None,
        }
    });
    held.last().ok_or_else(|| Trouble::new("the audit log has no call of which something was held back"))
}

/// Asks, judges the call again, and runs it.
pub fn run(arguments: &RunArguments, id: &str) -> Result<Outcome, Trouble> {
    let first = First::find(id)?;
    let here = first.call.origin.directory.clone().unwrap_or_default();
    std::env::set_current_dir(&here)
        .map_err(|error| Trouble::new(format!("cannot change to {}: {error}", visible(&here.to_string_lossy()))))?;
    let gate = gate(arguments, &first.call, true)?;
    let additions = |fence: &Fence| first.held_back.iter().map(|held| addition(held, fence)).collect::<Vec<_>>();
    let mut shown = Vec::new();
    // What is denied is refused below, and nobody is asked about it.
    if let Ok(assessment) = gate.assess(&first.call)
        && assessment.ruling().decision != Decision::Deny
    {
        shown = additions(&gate.fence(&first.call, &assessment));
        let list = list(&first.held_back, &shown);
        if !shown.iter().any(Result::is_ok) {
            return Err(Trouble::new(format!("nothing can be opened for the call {}:\n{list}", first.id)));
        }
        let question = |look: Look| {
            let command = look.block("run again, contained", &first.command);
            let place = look.block("in", &here.to_string_lossy());
            format!("\n{command}{place}\nwith this, for one run:\n{list}\n[y]es or [n]o? ")
        };
        if let Err(refusal) = ask(question) {
            return Ok(refused(arguments, &refusal));
        }
    }
    let verdict = gate.check_with(first.call.clone(), CheckOptions::default().contained(true)).verdict;
    // Its threads would take signals that are meant for the command.
    drop(gate);
    let permit = match verdict {
        Ok(permit) => permit,
        Err(refusal) => return Ok(refused(arguments, &refusal)),
    };
    let fence = permit.plan().fence().cloned().filter(|fence| additions(fence) == shown);
    let Some(mut fence) = fence else {
        return Err(Trouble::new("what can be opened has changed since the question; run it once more"));
    };
    for addition in shown.into_iter().flatten() {
        open(&mut fence, addition);
    }
    let launch = Launch {
        program: None,
        words: shell(first.call.origin.shell.as_deref(), &first.command),
        directory: here,
        left: false,
        environment: std::env::vars_os().collect(),
        backend: arguments.backend.map(Into::into),
        run: announced(&permit, &first.command),
        detached: None,
        publish: arguments.publish,
    };
    contained(arguments, permit, fence, &launch, None)
}

/// What was held back, line by line: `+` for what a yes opens.
fn list(held_back: &[HeldBack], additions: &[Result<Addition, &str>]) -> String {
    let lines = held_back.iter().zip(additions).map(|(held, addition)| {
        let what = format!("{} {}", visible(&held.action), visible(&held.target));
        match addition {
            Ok(_) => format!("  + {what}"),
            Err(why) => format!("  - not {what}: {why}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Asks the person at the terminal.
fn ask(question: impl Fn(Look) -> String) -> Result<(), Refusal> {
    let refusal = |reason: String| Refusal::new(RefusalKind::HumanRequired, reason);
    let nobody = |error: AskError| {
        refusal(format!("nobody could be asked: {error}")).hint("run `callgate run --again` in a terminal")
    };
    let mut terminal = controlling_terminal().map_err(nobody)?;
    let question = question(terminal.look());
    terminal.show(&question).map_err(nobody)?;
    let asked = Instant::now();
    while let Some(left) = PATIENCE.checked_sub(asked.elapsed()) {
        let Some(line) = terminal.line(left).map_err(nobody)? else { continue };
        return match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(refusal("the answer was no".to_owned())),
        };
    }
    Err(refusal("nobody answered in time".to_owned()))
}
