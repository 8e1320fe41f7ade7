//! `callgate ps` and `callgate stop`: contained calls that run in the background.

use std::collections::BTreeMap;
use std::io::Write;

use callgate::clock::Timestamp;
use callgate::live::LiveRun;
use callgate::show::visible;
use callgate_sandbox::background::{self, BackgroundRun, Ended};
use callgate_sandbox::{Port, owner};
use clap::Args;
use serde_json::json;

use crate::outcome::{Outcome, Trouble};

/// Shown below the help of `ps`.
pub const PS_EXAMPLES: &str = "Examples:
  callgate run --background -- npm run dev
  callgate ps
  callgate ps --output 4711";

/// What `ps` shows.
#[derive(Debug, Args)]
pub struct PsArguments {
    /// Print what this call has printed, as much of it as is kept
    #[arg(long, value_name = "ID")]
    pub output: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

/// What `stop` ends.
#[derive(Debug, Args)]
pub struct StopArguments {
    /// The calls, as `callgate ps` names them
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// End all calls of this session
    #[arg(long)]
    pub all: bool,
    /// End calls of other sessions, too: those that another terminal or agent has started
    #[arg(long)]
    pub any_session: bool,
}

fn unreadable(error: std::io::Error) -> Trouble {
    Trouble::new(format!("cannot find the calls that run: {error}"))
}

/// Lists calls, or prints what one has printed.
pub fn ps(arguments: &PsArguments) -> Result<Outcome, Trouble> {
    if let Some(id) = &arguments.output {
        let output = background::output(id).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => unknown(id),
            _ => Trouble::new(format!("cannot read the output of {id}: {error}")),
        })?;
        return crate::print(&output);
    }
    let all = background::list().map_err(unreadable)?;
    if arguments.json {
        let all: Vec<_> = all.iter().map(as_json).collect();
        return crate::print(format!("{}\n", serde_json::Value::from(all)).as_bytes());
    }
    if all.is_empty() {
        return crate::print(b"no contained call is running\n");
    }
    let mut text = Vec::new();
    for call in &all {
        let run = call.run();
        // a vector takes everything
        let _ = writeln!(text, "{}  {}  {}", run.id, state(call), visible(&run.command));
        let _ = writeln!(text, "    in {} since {}", visible(&run.directory.display().to_string()), run.since);
        if let BackgroundRun::Running(_, Some(ports)) = call {
            for (port, state) in ports {
                let _ = writeln!(text, "    {}", port_in_words(*port, *state));
            }
        }
    }
    crate::print(&text)
}

fn port_in_words(port: u16, state: Port) -> String {
    match state {
        Port::Published => format!("http://localhost:{port}"),
        Port::InUse => format!("port {port} is not published: another program listens on it"),
    }
}

fn state(call: &BackgroundRun) -> String {
    match call {
        BackgroundRun::Running(run, _) if !run.background => "foreground".to_owned(),
        BackgroundRun::Running(_, None) => "does not answer".to_owned(),
        BackgroundRun::Running(..) => "running".to_owned(),
        BackgroundRun::Ended(Ended { because: Some(because), .. }) => because.clone(),
        BackgroundRun::Ended(Ended { exit, .. }) => format!("exit {exit}"),
    }
}

fn as_json(call: &BackgroundRun) -> serde_json::Value {
    let run = call.run();
    let (ports, exit, until) = match call {
        BackgroundRun::Running(_, ports) => (ports.clone().unwrap_or_default(), None, None),
        BackgroundRun::Ended(ended) => (BTreeMap::new(), Some(ended.exit), Some(ended.until)),
    };
    let ports: Vec<_> = ports.iter().map(|(port, state)| json!({"port": port, "state": state})).collect();
    json!({
        "id": run.id, "call": run.call, "state": state(call), "running": matches!(call, BackgroundRun::Running(..)),
        "command": run.command, "directory": run.directory, "workspace": run.workspace, "background": run.background,
        "since": run.since.to_string(), "until": until.map(|until: Timestamp| until.to_string()), "exit": exit, "ports": ports,
    })
}

fn unknown(id: &str) -> Trouble {
    Trouble::new(format!("no call {} runs in the background; `callgate ps` lists them", visible(id)))
}

/// Ends calls and waits until they have ended.
pub fn stop(arguments: &StopArguments) -> Result<Outcome, Trouble> {
    let own = owner::owner();
    let is_own = |run: &LiveRun| run.owner.is_some() && run.owner == own;
    let all = background::list().map_err(unreadable)?;
    let running = all.iter().filter_map(|call| match call {
        BackgroundRun::Running(run, _) => Some(run),
        BackgroundRun::Ended(_) => None,
    });
    let running: Vec<&LiveRun> = running.collect();
    let mut wanted = Vec::new();
    if arguments.all {
        wanted.extend(running.iter().filter(|run| run.background && (arguments.any_session || is_own(run))));
    }
    for id in &arguments.ids {
        let run = running.iter().find(|run| run.id == *id).ok_or_else(|| unknown(id))?;
        if !run.background {
            return Err(Trouble::new(format!(
                "call {id} runs in the foreground and ends with the command that started it"
            )));
        }
        if !arguments.any_session && !is_own(run) {
            return Err(Trouble::new(format!(
                "call {id} was started by another session; `callgate stop --any-session {id}` ends it all the same"
            )));
        }
        wanted.push(run);
    }
    let mut outcome = Outcome::Done;
    for run in wanted {
        match background::stop(run) {
            Ok(()) => anstream::println!("stopped {}  {}", run.id, visible(&run.command)),
            Err(error) => {
                anstream::eprintln!("callgate: cannot stop {}: {error}", run.id);
                outcome = Outcome::Found;
            }
        }
    }
    Ok(outcome)
}
