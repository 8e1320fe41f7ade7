//! `callgate session`: the decisions of a session, and what it approves without asking.

use callgate::approvals::{Automatic, Remembered};
use callgate::show::visible;
use callgate::store::Store;
use callgate_store::SqliteStore;
use clap::{Args, Subcommand};

use crate::outcome::{Outcome, Trouble};

/// What to do with a session.
#[derive(Debug, Subcommand)]
pub enum SessionTask {
    /// Show what a session remembers; without a name, list the sessions
    Show {
        /// The session, as the agent names it
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve questions without asking, for every tool or for some; denials and the boundary still apply
    Auto(AutoArguments),
    /// Forget every decision of a session
    Reset {
        /// The session, as the agent names it
        session: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What a session approves without asking.
#[derive(Debug, Args)]
pub struct AutoArguments {
    /// The session, as the agent names it
    pub session: String,
    /// Approve every tool
    #[arg(long, conflicts_with_all = ["tool", "off"])]
    pub all: bool,
    /// Approve this tool; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "off")]
    pub tool: Vec<String>,
    /// Ask again about everything
    #[arg(long)]
    pub off: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows, changes and forgets the decisions of sessions.
pub fn run(task: SessionTask) -> Result<Outcome, Trouble> {
    let store = SqliteStore::of_user()?;
    match task {
        SessionTask::Show { session, json } => show(&store, session.as_deref(), json)?,
        SessionTask::Auto(arguments) => {
            let session = &arguments.session;
            if arguments.off {
                store.set_automatic(session, &Automatic::default())?;
            } else if arguments.all || !arguments.tool.is_empty() {
                let mut automatic = store.automatic(session)?;
                automatic.blanket |= arguments.all;
                automatic.tools.extend(arguments.tool.iter().cloned());
                store.set_automatic(session, &automatic)?;
            }
            let automatic = store.automatic(session)?;
            match arguments.json {
                true => anstream::println!("{}", serde_json::json!({ "session": session, "automatic": automatic })),
                false => anstream::println!("{}: {}", visible(session), describe(&automatic)),
            }
        }
        SessionTask::Reset { session, json } => {
            store.reset_session(&session)?;
            match json {
                true => anstream::println!("{}", serde_json::json!({ "session": session, "reset": true })),
                false => anstream::println!("{}: all decisions forgotten", visible(&session)),
            }
        }
    }
    Ok(Outcome::Done)
}

fn describe(automatic: &Automatic) -> String {
    if automatic.blanket {
        return "approves every question without asking; denials and the boundary still apply".to_owned();
    }
    if automatic.tools.is_empty() {
        return "approves nothing without asking".to_owned();
    }
    let tools: Vec<String> = automatic.tools.iter().map(|tool| visible(tool)).collect();
    format!("approves questions about {} without asking; denials and the boundary still apply", tools.join(", "))
}

fn show(store: &dyn Store, session: Option<&str>, json: bool) -> Result<(), Trouble> {
    let Some(session) = session else {
        let sessions = store.sessions()?;
        if json {
            anstream::println!("{}", serde_json::json!(sessions));
        } else if sessions.is_empty() {
            anstream::println!("no session has made a decision");
        } else {
            sessions.iter().for_each(|session| anstream::println!("{}", visible(session)));
        }
        return Ok(());
    };
    let (automatic, remembered) = (store.automatic(session)?, store.remembered(session)?);
    if json {
        anstream::println!("{}", serde_json::json!({"automatic": automatic, "remembered": remembered}));
        return Ok(());
    }
    anstream::println!("{}", describe(&automatic));
    for what in &remembered {
        match what {
            Remembered::Request(key) => anstream::println!("approved: the request {key}"),
            Remembered::Exec(exec) => {
                anstream::println!("approved: input to the running program {}", visible(&exec.id))
            }
            Remembered::Rule(proposal) => anstream::println!("approved: {}", visible(&proposal.extent.to_string())),
        }
    }
    Ok(())
}
