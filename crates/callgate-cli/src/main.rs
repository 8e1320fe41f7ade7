//! The `callgate` command: connects the crates and turns their results into text and exit codes.

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

use std::io::Write;
use std::process::ExitCode;

/// musl's allocator would take a third of a hook's time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

use arguments::{Arguments, Task};
use clap::{CommandFactory, Parser};
use outcome::{Outcome, Trouble};

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    // A hook starts with every call and must answer in the agent's dialect whatever happens.
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
        // Reached only for help and unknown arguments: hooks are handled before clap.
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
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "callgate", &mut script);
            print(&script)
        }
        Task::Manual => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut page);
            rendered
                .map_err(|error| Trouble::new(format!("cannot render the manual page: {error}")))
                .and_then(|()| print(&page))
        }
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(trouble) => {
            anstream::eprintln!("{trouble}");
            ExitCode::from(outcome::TROUBLE)
        }
    }
}

/// Prints a long text. A reader that has seen enough, such as `head`, may close the pipe.
fn print(text: &[u8]) -> Result<Outcome, Trouble> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Trouble::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(Outcome::Done),
    }
}
