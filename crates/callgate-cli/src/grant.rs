//! `callgate grant`: permission given in advance.

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
    /// Allow an action of a tool in advance; using it spends the grant
    #[command(after_help = EXAMPLES)]
    Add(AddArguments),
    /// List outstanding grants
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a grant
    Revoke {
        /// The number that `callgate grant list` shows
        id: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

const EXAMPLES: &str = "Examples:
  callgate grant add email_send --target ada@example.com --expires 10m
  callgate grant add Bash --any --scope task-7 --uses 3 --reason 'the release'
  callgate grant add Bash --request KEY     (only the request with this key; `callgate approvals show` prints it)

The target is what the action reaches: a recipient, a host, a path or a program.";

/// What is granted.
#[derive(Debug, Args)]
pub struct AddArguments {
    /// The full name of the tool (mcp__SERVER__TOOL for a tool of a server)
    pub tool: String,
    /// Only for this target; repeat it to make several grants
    #[arg(long, value_name = "TARGET", required_unless_present_any = ["any", "request"], conflicts_with = "any")]
    pub target: Vec<String>,
    /// For any target
    #[arg(long)]
    pub any: bool,
    /// Only for the request with this key
    #[arg(long, value_name = "KEY")]
    pub request: Option<String>,
    /// Only for this task
    #[arg(long, value_name = "TASK")]
    pub scope: Option<String>,
    /// How many actions it allows
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

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::new(error.to_string())
    }
}

/// Adds, lists and revokes grants.
pub fn run(task: GrantTask) -> Result<Outcome, Trouble> {
    let store = SqliteStore::of_user()?;
    match task {
        GrantTask::Add(arguments) => add(&store, &arguments),
        GrantTask::List { json } => list(&store, json),
        GrantTask::Revoke { id, json } => match store.revoke(GrantId(id))? {
            Some(grant) if json => show(&[grant], true, Timestamp::now()),
            Some(grant) => {
                anstream::println!("revoked: {}", described(&grant, Timestamp::now()));
                Ok(Outcome::Done)
            }
            None => Err(Trouble::new(format!("there is no outstanding grant {id}; it is spent, revoked or unknown"))),
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

fn list(store: &dyn Store, json: bool) -> Result<Outcome, Trouble> {
    let grants = store.grants()?;
    if grants.is_empty() && !json {
        anstream::println!("no outstanding grants");
        return Ok(Outcome::Done);
    }
    show(&grants, json, Timestamp::now())
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
