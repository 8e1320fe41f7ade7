//! `callgate approvals`: a second terminal answers what the first one waits for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate::approvals::channel::{TerminalApprover, prompt};
use callgate::approvals::{Answer, ApprovalDecision, ApprovalId, Approver, AskError, Coordinator, Question};
use callgate::clock::Timestamp;
use callgate::policy::Locations;
use callgate::show::{brief, visible};
use callgate::store::{Store, Unreadable};
use callgate_store::SqliteStore;
use clap::{Args, Subcommand};

use crate::grant::user;
use crate::outcome::{Outcome, Trouble};
use crate::watching;

/// How often it is looked for new questions.
const LOOK: Duration = Duration::from_millis(300);

/// What to do with questions.
#[derive(Debug, Subcommand)]
pub enum ApprovalsTask {
    /// Show the questions that wait for an answer
    List(ListArguments),
    /// Show one question in full, or what became of it
    Show(ShowArguments),
    /// Say yes
    Approve(ApproveArguments),
    /// Say no
    Deny(DenyArguments),
    /// Wait for questions and answer them one after the other at this terminal
    Watch,
}

/// How questions are listed.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which question.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Its id, or as much of its beginning as no other has
    pub id: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How to say yes.
#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// The question's id, or as much of its beginning as no other has
    pub id: String,
    /// And the same again in this session
    #[arg(long)]
    pub session: bool,
    /// And what this proposal covers in this session, by its number in `show`
    #[arg(long, value_name = "NUMBER", conflicts_with = "session")]
    pub proposal: Option<usize>,
    /// And what this proposal covers always: a rule is written to the user's policy file
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["session", "proposal"])]
    pub always: Option<usize>,
    /// What the agent is told
    #[arg(long)]
    pub reason: Option<String>,
}

/// How to say no.
#[derive(Debug, Args)]
pub struct DenyArguments {
    /// The question's id, or as much of its beginning as no other has
    pub id: String,
    /// And stop the whole run
    #[arg(long)]
    pub abort: bool,
    /// What the agent is told
    #[arg(long)]
    pub reason: Option<String>,
}

/// Lists, shows, answers.
pub fn run(task: ApprovalsTask) -> Result<Outcome, Trouble> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::of_user()?);
    let coordinator = Coordinator::new(Arc::clone(&store));
    match task {
        ApprovalsTask::List(arguments) => list(&coordinator, arguments.json),
        ApprovalsTask::Show(arguments) => show(store.as_ref(), &coordinator, &arguments),
        ApprovalsTask::Approve(arguments) => {
            let question = find(&coordinator, &arguments.id)?;
            let proposal = arguments.proposal.map(|number| chosen(&question, number)).transpose()?;
            let forever = arguments.always.map(|number| chosen(&question, number)).transpose()?;
            let decision = if arguments.session || proposal.is_some() {
                ApprovalDecision::ApprovedForSession
            } else {
                ApprovalDecision::Approved
            };
            let given = Answer { reason: arguments.reason, by: Some(user()), proposal, ..Answer::new(decision) };
            let outcome = answer(&coordinator, &question.id, given)?;
            // only after the yes has counted
            forever.map(|index| always(&question, index)).transpose()?;
            Ok(outcome)
        }
        ApprovalsTask::Deny(arguments) => {
            let question = find(&coordinator, &arguments.id)?;
            let decision = if arguments.abort { ApprovalDecision::Abort } else { ApprovalDecision::Denied };
            answer(
                &coordinator,
                &question.id,
                Answer { reason: arguments.reason, by: Some(user()), ..Answer::new(decision) },
            )
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
        anstream::println!("no questions wait for an answer");
    }
    let now = Timestamp::now();
    for question in pending {
        let left = humantime::format_duration(Duration::from_secs(now.until(question.deadline).as_secs()));
        let request = brief(&question.request.to_string());
        anstream::println!("{}  {} {request}  ({left} left)", question.id, visible(&question.tool));
    }
    Ok(outcome)
}

fn cannot_be_read(question: &Unreadable) -> String {
    format!(
        "the question {} cannot be read, and is refused when its time is over: {}",
        visible(&question.id),
        visible(&question.why)
    )
}

/// The place of a proposal, by its number in `show`.
fn chosen(question: &Question, number: usize) -> Result<usize, Trouble> {
    let count = question.proposals.len();
    number.checked_sub(1).filter(|index| *index < count).ok_or_else(|| match &question.no_proposal {
        Some(why) => Trouble::new(format!("no rule can help: {}", visible(why))),
        None => Trouble::new(format!("the question has {count} proposals")),
    })
}

/// Writes the rule of a proposal. That it lets the call pass, whoever asked has found out.
fn always(question: &Question, index: usize) -> Result<(), Trouble> {
    let locations = Locations::of(question.directory.clone().unwrap_or_default());
    let Some(proposal) = question.proposals.get(index) else { return Ok(()) };
    let place = crate::always::write(&locations, proposal, None)
        .map_err(|why| Trouble::new(format!("no rule was written: {}", visible(&why))))?;
    anstream::println!("a rule was written to {}", visible(&place));
    Ok(())
}

/// The one pending question whose id begins so.
fn find(coordinator: &Coordinator, id: &str) -> Result<Question, Trouble> {
    let pending = coordinator.pending()?;
    let mut fitting = pending.into_iter().filter(|question| question.id.as_str().starts_with(id) && !id.is_empty());
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(Trouble::new(format!("several questions begin with {}", visible(id)))),
        (None, _) => {
            let unreadable = coordinator.unreadable()?;
            let named = unreadable.iter().find(|question| !id.is_empty() && question.id.starts_with(id));
            Err(Trouble::new(match named {
                Some(question) => cannot_be_read(question),
                None => format!("no question {} waits for an answer", visible(id)),
            }))
        }
    }
}

fn show(store: &dyn Store, coordinator: &Coordinator, arguments: &ShowArguments) -> Result<Outcome, Trouble> {
    let settled = arguments.id.parse::<ApprovalId>().ok().map(|id| store.entry(&id)).transpose()?.flatten();
    let (question, outcome) = match settled {
        Some(entry) => (entry.question, entry.outcome),
        None => (find(coordinator, &arguments.id)?, None),
    };
    if arguments.json {
        let value = serde_json::json!({"question": question, "outcome": outcome});
        anstream::println!("{value}");
        return Ok(Outcome::Done);
    }
    anstream::println!("{}", prompt(&question, true).trim_end());
    if let Some(key) = &question.key {
        anstream::println!("\nkey: {key}");
    }
    match outcome {
        Some(outcome) => anstream::println!("settled: {outcome}"),
        None => anstream::println!("answer with: callgate approvals approve|deny {}", question.id),
    }
    Ok(Outcome::Done)
}

fn answer(coordinator: &Coordinator, id: &ApprovalId, answer: Answer) -> Result<Outcome, Trouble> {
    let decision = answer.decision;
    coordinator.resolve(id, answer).map_err(|error| Trouble::new(error.to_string()))?;
    anstream::println!("{id}: {decision}");
    Ok(Outcome::Done)
}

/// Ends when there is no terminal, or the person stops it.
fn watch(store: &dyn Store, coordinator: &Coordinator) -> Result<Outcome, Trouble> {
    let _watching =
        watching::begin().map_err(|error| Trouble::new(format!("nobody can be told that you watch: {error}")))?;
    anstream::eprintln!("waiting for questions; stop with Ctrl-C");
    let terminal = TerminalApprover::new();
    let mut passed_over: HashSet<ApprovalId> = HashSet::new();
    loop {
        let pending = coordinator.pending()?;
        passed_over.retain(|id| pending.iter().any(|question| question.id == *id));
        let Some(question) = pending.into_iter().find(|question| !passed_over.contains(&question.id)) else {
            std::thread::sleep(LOOK);
            continue;
        };
        let open = || matches!(store.entry(&question.id), Ok(Some(entry)) if entry.outcome.is_none());
        match terminal.ask(&question, &open) {
            Ok(given) => {
                let given = Answer { by: Some(user()), ..given };
                if let Err(error) = coordinator.resolve(&question.id, given) {
                    anstream::eprintln!("{error}");
                }
            }
            Err(error @ AskError::Unavailable(_)) => return Err(Trouble::new(error.to_string())),
            Err(AskError::Closed | AskError::TimedOut) => {}
            Err(AskError::Unusable(_)) => {
                anstream::eprintln!("passed over; it waits until its time is over");
                passed_over.insert(question.id);
            }
        }
    }
}
