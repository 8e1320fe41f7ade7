//! `callgate session`: what a session has decided, and what it answers by itself.

use callgate::approvals::{Automatic, Remembered};
use callgate::show::visible;
use callgate::store::Store;
use callgate_store::SqliteStore;
use clap::{Args, Subcommand};

use crate::outcome::{Outcome, Trouble};

/// What to do with a session.
#[derive(Debug, Subcommand)]
pub enum SessionTask {
    /// Show what a session remembers; without a name, which sessions there are
    Show(ShowArguments),
    /// Answer yes without asking: for every tool, for some, or no longer. A deny and the boundary stand
    Auto(AutoArguments),
    /// Forget everything that a session decided
    Reset(ResetArguments),
}

/// Which session.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The session, as the agent names it
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a session answers by itself.
#[derive(Debug, Args)]
pub struct AutoArguments {
    /// The session, as the agent names it
    pub session: String,
    /// Yes to every tool
    #[arg(long, conflicts_with_all = ["tool", "off"])]
    pub all: bool,
    /// Yes to this tool; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with = "off")]
    pub tool: Vec<String>,
    /// Ask again about everything
    #[arg(long)]
    pub off: bool,
}

/// Which session.
#[derive(Debug, Args)]
pub struct ResetArguments {
    /// The session, as the agent names it
    pub session: String,
}

/// Shows, sets, forgets.
pub fn run(task: SessionTask) -> Result<Outcome, Trouble> {
    let store = SqliteStore::of_user()?;
    match task {
        SessionTask::Show(arguments) => show(&store, &arguments)?,
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
            anstream::println!("{}: {}", visible(session), told(&store.automatic(session)?));
        }
        SessionTask::Reset(arguments) => {
            store.reset_session(&arguments.session)?;
            anstream::println!("{}: everything is asked about again", visible(&arguments.session));
        }
    }
    Ok(Outcome::Done)
}

fn told(automatic: &Automatic) -> String {
    if automatic.blanket {
        return "every question is answered with yes; a deny and the boundary stand".to_owned();
    }
    if automatic.tools.is_empty() {
        return "nothing is answered automatically".to_owned();
    }
    let tools: Vec<String> = automatic.tools.iter().map(|tool| visible(tool)).collect();
    format!("questions about {} are answered with yes; a deny and the boundary stand", tools.join(", "))
}

fn show(store: &dyn Store, arguments: &ShowArguments) -> Result<(), Trouble> {
    let Some(session) = &arguments.session else {
        let sessions = store.sessions()?;
        if arguments.json {
            anstream::println!("{}", serde_json::json!(sessions));
        } else if sessions.is_empty() {
            anstream::println!("no session has decided anything");
        } else {
            sessions.iter().for_each(|session| anstream::println!("{}", visible(session)));
        }
        return Ok(());
    };
    let (automatic, remembered) = (store.automatic(session)?, store.remembered(session)?);
    if arguments.json {
        anstream::println!("{}", serde_json::json!({"automatic": automatic, "remembered": remembered}));
        return Ok(());
    }
    anstream::println!("{}", told(&automatic));
    for what in &remembered {
        match what {
            Remembered::Request(key) => anstream::println!("approved: exactly the request {key}"),
            Remembered::Exec(exec) => {
                anstream::println!("approved: what is typed into the running program {}", visible(&exec.id))
            }
            Remembered::Rule(proposal) => anstream::println!("approved: {}", visible(&proposal.extent.to_string())),
        }
    }
    Ok(())
}
