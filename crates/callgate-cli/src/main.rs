//! The `callgate` command: it wires the rooms together and turns what they say into words and exit codes.

mod agents;
mod always;
mod approvals;
mod arguments;
mod audit;
mod audit_log;
mod check;
mod choice;
mod explain;
mod grant;
mod hook;
mod import;
mod init;
mod install;
mod jsonl;
mod outcome;
mod policy;
mod session;
mod shown;
mod status;
mod terminal;
mod trust;
mod watching;

use std::process::ExitCode;

/// The static build's own allocator takes a third of a hook's time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

use arguments::{Arguments, Task};
use clap::{CommandFactory, Parser};
use outcome::{Outcome, Trouble};

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    // A hook starts with every call, and must answer in its own way whatever happens.
    if let Some((task, rest)) = words.split_first()
        && task == "hook"
        && !rest.iter().any(|word| word == "--help" || word == "-h")
    {
        return hook::run(rest);
    }
    let arguments = Arguments::parse();
    let outcome = match arguments.task {
        Task::Check(arguments) if arguments.jsonl => jsonl::run(&arguments.call),
        Task::Check(arguments) if arguments.ask => check::ask(&arguments),
        Task::Check(arguments) => check::run(&arguments.call),
        Task::Explain(arguments) => explain::run(&arguments),
        Task::Policy(task) => policy::run(task),
        // Reached only for its help and for words that it does not know: a hook is read before anything else.
        Task::Hook { .. } => return hook::run(words.get(1..).unwrap_or_default()),
        Task::Init(arguments) => init::run(&arguments),
        Task::Import(arguments) => import::run(&arguments),
        Task::Trust(arguments) => trust::run(&arguments),
        Task::Install(arguments) => install::install(&arguments),
        Task::Uninstall(arguments) => install::uninstall(&arguments),
        Task::Status(arguments) => status::run(&arguments),
        Task::Grant(task) => grant::run(task),
        Task::Approvals(task) => approvals::run(task),
        Task::Session(task) => session::run(task),
        Task::Audit(arguments) => outcome::coded(audit::run(&arguments)),
        Task::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "callgate", &mut std::io::stdout());
            Ok(Outcome::Done)
        }
        Task::Manual => clap_mangen::Man::new(Arguments::command())
            .render(&mut std::io::stdout())
            .map(|()| Outcome::Done)
            .map_err(|error| Trouble::new(format!("cannot print the manual page: {error}"))),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(trouble) => {
            anstream::eprintln!("{trouble}");
            ExitCode::from(outcome::TROUBLE)
        }
    }
}
