//! `callgate approvals`: answers pending questions from another terminal.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate::approvals::channel::{Look, TerminalApprover, prompt};
use callgate::approvals::{Answer, ApprovalDecision, ApprovalId, Approver, AskError, Coordinator, Question};
use callgate::clock::Timestamp;
use callgate::policy::Locations;
use callgate::show::{brief, visible};
use callgate::store::{Store, Unreadable};
use callgate_store::SqliteStore;
use clap::{Args, Subcommand};

use crate::always::{self, Wish};
use crate::grant::user;
use crate::notify::Notifier;
use crate::outcome::{Outcome, Trouble};
use crate::{choice, watching};

/// How often the store is checked for new questions.
const LOOK: Duration = Duration::from_millis(300);

/// What to do with questions.
#[derive(Debug, Subcommand)]
pub enum ApprovalsTask {
    /// List the questions that wait for an answer
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one question in full, with its outcome if it is settled
    Show {
        /// The id of the question, or the beginning of it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say yes
    Approve(ApproveArguments),
    /// Say no
    Deny {
        /// The id of the question, or the beginning of it
        id: String,
        /// Also stop the whole run
        #[arg(long)]
        abort: bool,
        /// What to tell the agent
        #[arg(long)]
        reason: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait for questions and answer them one after the other at this terminal
    Watch,
}

/// What a yes covers.
#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// The id of the question, or the beginning of it
    pub id: String,
    /// Also approve the same request for the rest of this session
    #[arg(long)]
    pub session: bool,
    /// Also approve what this proposal covers for the rest of this session; `show` prints the numbers
    #[arg(long, value_name = "NUMBER", conflicts_with = "session")]
    pub proposal: Option<usize>,
    /// Also approve what this proposal covers from now on, by a rule in the user policy file
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["session", "proposal"])]
    pub always: Option<usize>,
    /// What to tell the agent
    #[arg(long)]
    pub reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Lists, shows and answers questions.
pub fn run(task: ApprovalsTask) -> Result<Outcome, Trouble> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::of_user()?);
    let coordinator = Coordinator::new(Arc::clone(&store));
    let answer = |id: &ApprovalId, decision, reason, proposal, json| {
        let given = Answer { reason, by: Some(user()), proposal, ..Answer::new(decision) };
        coordinator.resolve(id, given).map_err(|error| Trouble::new(error.to_string()))?;
        match json {
            true => anstream::println!("{}", serde_json::json!({ "id": id, "decision": decision })),
            false => anstream::println!("{id}: {decision}"),
        }
        Ok(Outcome::Done)
    };
    match task {
        ApprovalsTask::List { json } => list(&coordinator, json),
        ApprovalsTask::Show { id, json } => show(store.as_ref(), &coordinator, &id, json),
        ApprovalsTask::Approve(arguments) => {
            let question = find(&coordinator, &arguments.id)?;
            let proposal = arguments.proposal.map(|number| chosen(&question, number)).transpose()?;
            let forever = arguments.always.map(|number| chosen(&question, number)).transpose()?;
            let decision = if arguments.session || proposal.is_some() {
                ApprovalDecision::ApprovedForSession
            } else {
                ApprovalDecision::Approved
            };
            let outcome = answer(&question.id, decision, arguments.reason, proposal, arguments.json)?;
            // only after the yes has counted
            let place = forever.map(|index| always(&question, index)).transpose()?;
            if let Some(place) = place.filter(|_| !arguments.json) {
                anstream::println!("wrote a rule to {}", visible(&place));
            }
            Ok(outcome)
        }
        ApprovalsTask::Deny { id, abort, reason, json } => {
            let decision = if abort { ApprovalDecision::Abort } else { ApprovalDecision::Denied };
            answer(&find(&coordinator, &id)?.id, decision, reason, None, json)
        }
        ApprovalsTask::Watch => watch(store.as_ref(), &coordinator),
    }
}

fn list(coordinator: &Coordinator, json: bool) -> Result<Outcome, Trouble> {
    let pending = coordinator.pending()?;
    let unreadable = coordinator.unreadable()?;
    for question in &unreadable {
        anstream::eprintln!("callgate: {}", cannot_be_read(question));
    }
    let outcome = if unreadable.is_empty() { Outcome::Done } else { Outcome::Found };
    if json {
        let text = serde_json::to_string(&pending).map_err(|error| Trouble::new(error.to_string()))?;
        anstream::println!("{text}");
        return Ok(outcome);
    }
    if pending.is_empty() && unreadable.is_empty() {
        anstream::println!("no questions are waiting");
    }
    let now = Timestamp::now();
    for question in pending {
        let left = humantime::format_duration(Duration::from_secs(now.until(question.deadline).as_secs()));
        let request = brief(&question.request.to_string());
        let kept = if question.kept { "refused; a yes lets one retry pass; " } else { "" };
        anstream::println!("{}  {} {request}  ({kept}{left} left)", question.id, visible(&question.tool));
    }
    Ok(outcome)
}

fn cannot_be_read(question: &Unreadable) -> String {
    format!("cannot read question {}; it is refused when it expires: {}", visible(&question.id), visible(&question.why))
}

/// The index of a proposal, from its number in `show`.
fn chosen(question: &Question, number: usize) -> Result<usize, Trouble> {
    let count = question.proposals.len();
    number.checked_sub(1).filter(|index| *index < count).ok_or_else(|| match &question.no_proposal {
        Some(why) => Trouble::new(format!("no rule can allow this call: {}", visible(why))),
        None => Trouble::new(format!("the question has {count} proposals")),
    })
}

/// Writes the rule of a proposal. The process that asked has already checked that it allows the call.
fn always(question: &Question, index: usize) -> Result<String, Trouble> {
    let locations = Locations::of(question.directory.clone().unwrap_or_default());
    let proposal = question.proposals.get(index).ok_or_else(|| Trouble::new("the question has no such proposal"))?;
    crate::always::write(&locations, proposal, Wish::Always, None)
        .map_err(|why| Trouble::new(format!("no rule was written: {}", visible(&why))))
}

/// The one pending question whose id begins with `id`.
fn find(coordinator: &Coordinator, id: &str) -> Result<Question, Trouble> {
    let pending = coordinator.pending()?;
    let mut fitting = pending.into_iter().filter(|question| question.id.as_str().starts_with(id) && !id.is_empty());
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(Trouble::new(format!("several questions have ids that begin with {}", visible(id)))),
        (None, _) => {
            let unreadable = coordinator.unreadable()?;
            let named = unreadable.iter().find(|question| !id.is_empty() && question.id.starts_with(id));
            Err(Trouble::new(match named {
                Some(question) => cannot_be_read(question),
                None => format!("no question {} is waiting", visible(id)),
            }))
        }
    }
}

fn show(store: &dyn Store, coordinator: &Coordinator, id: &str, json: bool) -> Result<Outcome, Trouble> {
    let settled = id.parse::<ApprovalId>().ok().map(|id| store.question(&id)).transpose()?.flatten();
    let (question, outcome) = match settled {
        Some(entry) => (entry.question, entry.outcome),
        None => (find(coordinator, id)?, None),
    };
    if json {
        let value = serde_json::json!({"question": question, "outcome": outcome});
        anstream::println!("{value}");
        return Ok(Outcome::Done);
    }
    anstream::println!("{}", prompt(&question, true, Look { colours: true, ..Look::default() }).trim_end());
    if let Some(key) = &question.key {
        anstream::println!("\nkey: {key}");
    }
    match outcome {
        Some(outcome) => anstream::println!("settled: {outcome}"),
        None => anstream::println!("answer with: callgate approvals approve|deny {}", question.id),
    }
    Ok(Outcome::Done)
}

/// Answers questions until the terminal is gone or the user stops it.
fn watch(store: &dyn Store, coordinator: &Coordinator) -> Result<Outcome, Trouble> {
    let _watching =
        watching::begin().map_err(|error| Trouble::new(format!("cannot register as a watcher: {error}")))?;
    anstream::eprintln!("waiting for questions; stop with Ctrl-C");
    let mut skipped: HashSet<ApprovalId> = HashSet::new();
    let here = std::env::current_dir().unwrap_or_default();
    let notifier = choice::policy(None, &here).map(|loaded| Notifier::of(&loaded.policy)).unwrap_or_default();
    loop {
        let pending = coordinator.pending()?;
        skipped.retain(|id| pending.iter().any(|question| question.id == *id));
        let Some(question) = pending.into_iter().find(|question| !skipped.contains(&question.id)) else {
            std::thread::sleep(LOOK);
            continue;
        };
        let open = || matches!(store.question(&question.id), Ok(Some(entry)) if entry.outcome.is_none());
        let locations = Locations::of(question.directory.clone().unwrap_or_default());
        let terminal =
            TerminalApprover::new().always(move |proposal| always::try_out(&locations, proposal, Wish::Always, None));
        notifier.ring();
        match terminal.ask(&question, &open) {
            Ok(given) => {
                let forever = given.always;
                // only this process writes the rule, once the yes has counted
                let given = Answer { by: Some(user()), always: None, ..given };
                let answered =
                    coordinator.resolve(&question.id, given).map_err(|error| Trouble::new(error.to_string()));
                match answered.and_then(|()| forever.map(|index| always(&question, index)).transpose()) {
                    Ok(Some(place)) => anstream::println!("wrote a rule to {}", visible(&place)),
                    Ok(None) => {}
                    Err(trouble) => anstream::eprintln!("{trouble}"),
                }
            }
            Err(error @ AskError::Unavailable(_)) => return Err(Trouble::new(error.to_string())),
            Err(AskError::Closed | AskError::TimedOut) => {}
            Err(AskError::Unusable(_)) => {
                anstream::eprintln!("skipped; pending until it expires");
                skipped.insert(question.id);
            }
        }
    }
}
