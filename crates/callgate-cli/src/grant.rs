//! `callgate grant`: permission given beforehand.

use std::num::NonZeroU32;
use std::time::Duration;

use callgate::clock::Timestamp;
use callgate::grant::{Grant, GrantId, Terms};
use callgate::key::ApprovalKey;
use callgate::show::visible;
use callgate::store::{Store, StoreError};
use callgate_store::SqliteStore;
use clap::{Args, Subcommand};

use crate::outcome::{Outcome, Trouble};

/// What to do with grants.
#[derive(Debug, Subcommand)]
pub enum GrantTask {
    /// Permit a tool's action beforehand; it is spent when it is used
    #[command(after_help = EXAMPLES)]
    Add(AddArguments),
    /// Show what is outstanding
    List(ListArguments),
    /// Take a grant back
    Revoke(RevokeArguments),
}

const EXAMPLES: &str = "Examples:
  callgate grant add email_send --target ada@example.com --expires 10m
  callgate grant add Bash --any --scope task-7 --uses 3 --reason 'the release'
  callgate grant add Bash --request KEY     (exactly the request with this key; `callgate approvals show` prints it)

A target is what the effect that must be asked about is about: a recipient, a host, a path, a program.";

/// What is granted.
#[derive(Debug, Args)]
pub struct AddArguments {
    /// The tool, by its whole name (mcp__SERVER__TOOL for a server's tool)
    pub tool: String,
    /// Only for this target; may be given several times, each is a grant of its own
    #[arg(long, value_name = "TARGET", required_unless_present_any = ["any", "request"], conflicts_with = "any")]
    pub target: Vec<String>,
    /// For one action to whichever target
    #[arg(long)]
    pub any: bool,
    /// Only for exactly the request with this key
    #[arg(long, value_name = "KEY")]
    pub request: Option<String>,
    /// Only for this task
    #[arg(long, value_name = "TASK")]
    pub scope: Option<String>,
    /// How many actions it permits
    #[arg(long, default_value = "1")]
    pub uses: NonZeroU32,
    /// For how long: 90s, 10m, 2h, 1day
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub expires: Option<Duration>,
    /// Why
    #[arg(long, default_value = "")]
    pub reason: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How grants are listed.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which grant is taken back.
#[derive(Debug, Args)]
pub struct RevokeArguments {
    /// Its number, as `callgate grant list` shows it
    pub id: u64,
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::new(error.to_string())
    }
}

/// Adds, lists, revokes.
pub fn run(task: GrantTask) -> Result<Outcome, Trouble> {
    let store = SqliteStore::of_user()?;
    match task {
        GrantTask::Add(arguments) => add(&store, &arguments),
        GrantTask::List(arguments) => list(&store, &arguments),
        GrantTask::Revoke(arguments) => match store.revoke(GrantId(arguments.id))? {
            Some(grant) => {
                anstream::println!("taken back: {}", described(&grant, Timestamp::now()));
                Ok(Outcome::Done)
            }
            None => Err(Trouble::new(format!(
                "there is no outstanding grant {}: spent, taken back, or never given",
                arguments.id
            ))),
        },
    }
}

fn add(store: &dyn Store, arguments: &AddArguments) -> Result<Outcome, Trouble> {
    let key: Option<ApprovalKey> = match &arguments.request {
        Some(text) => Some(text.parse().map_err(|error| Trouble::new(format!("--request: {error}")))?),
        None => None,
    };
    let bare: Vec<Terms> = if arguments.target.is_empty() {
        vec![Terms::for_any(&arguments.tool)]
    } else {
        arguments.target.iter().map(|target| Terms::for_target(&arguments.tool, target)).collect()
    };
    let now = Timestamp::now();
    let mut granted = Vec::new();
    for mut terms in bare {
        terms.key = key;
        terms.scope = arguments.scope.as_deref().map(Into::into);
        terms.uses = arguments.uses;
        terms.expires = arguments.expires.map(|time| now.after(time));
        let terms = terms.by(user()).because(&arguments.reason);
        let id = store.grant(&terms, now)?;
        granted.push(Grant { id, left: terms.uses, terms, granted_at: now });
    }
    show(&granted, arguments.json, now)
}

fn list(store: &dyn Store, arguments: &ListArguments) -> Result<Outcome, Trouble> {
    let grants = store.grants()?;
    if grants.is_empty() && !arguments.json {
        anstream::println!("no grants are outstanding");
        return Ok(Outcome::Done);
    }
    show(&grants, arguments.json, Timestamp::now())
}

fn show(grants: &[Grant], json: bool, now: Timestamp) -> Result<Outcome, Trouble> {
    if json {
        let text = serde_json::to_string(grants).map_err(|error| Trouble::new(error.to_string()))?;
        anstream::println!("{text}");
    } else {
        for grant in grants {
            anstream::println!("{}", described(grant, now));
        }
    }
    Ok(Outcome::Done)
}

fn described(grant: &Grant, now: Timestamp) -> String {
    let terms = &grant.terms;
    let mut text = format!("{}  {} {}", grant.id, visible(&terms.action), terms.reach);
    let uses = if grant.left.get() == 1 { "once".to_owned() } else { format!("{} times", grant.left) };
    text.push_str(&format!(", {uses}"));
    if let Some(scope) = &terms.scope {
        text.push_str(&format!(", for the task {}", visible(scope.as_str())));
    }
    if let Some(key) = &terms.key {
        text.push_str(&format!(", for the request {key}"));
    }
    match terms.expires {
        Some(expires) if expires <= now => text.push_str(&format!(", expired on {expires}")),
        Some(expires) => text.push_str(&format!(", until {expires}")),
        None => {}
    }
    text.push_str(&format!(" (by {} on {}", visible(&terms.granted_by), grant.granted_at));
    if !terms.reason.is_empty() {
        text.push_str(&format!(": {}", visible(&terms.reason)));
    }
    text.push(')');
    text
}

/// Who sits at the terminal.
pub fn user() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".to_owned())
}
