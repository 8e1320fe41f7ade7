//! The `callgate` command: connects the crates and turns their results into text and exit codes.

mod again;
mod agents;
mod always;
mod approvals;
mod arguments;
mod audit;
mod audit_log;
mod check;
mod choice;
mod demo;
mod doctor;
mod explain;
mod grant;
mod guard;
mod handover;
mod health;
mod hook;
mod import;
mod init;
mod install;
mod jsonl;
mod left;
mod notify;
mod opened;
mod outcome;
mod own_rules;
mod policy;
mod processes;
mod ps;
mod redeem;
mod remedy;
mod run;
mod session;
mod shown;
mod status;
mod suggest;
mod terminal;
mod tool;
mod trust;
mod untrusted;
mod watching;

use std::io::Write;
use std::process::ExitCode;

/// musl's allocator would take a third of a hook's time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

use arguments::{Arguments, RunAlone, Task};
use clap::{CommandFactory, Parser};
use outcome::{Outcome, Trouble};

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    // Inside the sandbox, package managers start scripts with it.
    if std::env::args_os().next().is_some_and(|name| callgate_sandbox::scripts::is_called(&name)) {
        return callgate_sandbox::scripts::run(&words);
    }
    // Nobody may take an answer that cannot be printed for a yes. What `run` prints belongs to its command.
    let is_own = |word: &std::ffi::OsString| {
        !matches!(
            word.to_str(),
            Some("run" | guard::GUARD | callgate_sandbox::stage::STAGE | callgate_tools::helper::HELPER)
        )
    };
    if callgate_sandbox::standard_output_was_closed() && words.first().is_none_or(is_own) {
        let _ = writeln!(std::io::stderr(), "callgate: standard output is closed, so there is no way to answer");
        return ExitCode::from(outcome::TROUBLE);
    }
    // A hook starts with every call and must answer in the agent's dialect whatever happens.
    if let Some((task, rest)) = words.split_first()
        && task == "hook"
        && !rest.iter().any(|word| word == "--help" || word == "-h")
    {
        return hook::run(rest);
    }
    // The inner half of `run` and of tools: a process with one thread and nothing of its caller.
    if let Some(code) = callgate_tools::helper::enter() {
        return code;
    }
    if let Some((first, rest)) = words.split_first()
        && first == guard::GUARD
    {
        return guard::run(rest);
    }
    std::panic::set_hook(Box::new(unprinted(std::panic::take_hook())));
    let arguments = parse(&words);
    let outcome = match arguments.task {
        Task::Check(arguments) if arguments.jsonl => jsonl::run(&arguments.call),
        Task::Check(arguments) if arguments.ask => check::ask(&arguments),
        Task::Check(arguments) => check::run(&arguments.call),
        Task::Explain(arguments) => explain::run(&arguments),
        Task::Allow(arguments) => remedy::allow(&arguments),
        Task::Deny(arguments) => remedy::deny(&arguments),
        Task::Suggest(arguments) => suggest::run(&arguments),
        Task::Policy(task) => policy::run(task),
        // Reached only for help and unknown arguments: hooks are handled before clap.
        Task::Hook { .. } => return hook::run(words.get(1..).unwrap_or_default()),
        Task::Doctor(arguments) => doctor::run(&arguments),
        Task::Tool(task) => tool::run(task),
        Task::Demo => demo::run(),
        Task::Run(arguments) => match (&arguments.permit, &arguments.again) {
            (Some(token), _) => redeem::run(&arguments, token),
            (None, Some(id)) => again::run(&arguments, id),
            (None, None) => run::run(&arguments),
        },
        Task::Ps(arguments) => ps::ps(&arguments),
        Task::Stop(arguments) => ps::stop(&arguments),
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

/// A handler of panics for what cannot be printed: a reader that has seen enough, or a device that is full, is no fault of callgate.
/// Nobody may take an answer that was not printed for a yes, so it ends as trouble.
fn unprinted(otherwise: PanicHandler) -> impl Fn(&std::panic::PanicHookInfo<'_>) + Send + Sync {
    move |panic| {
        let message = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        let Some(why) = message.strip_prefix("failed printing to ") else { return otherwise(panic) };
        if !why.contains("Broken pipe") {
            let _ = writeln!(std::io::stderr(), "callgate: cannot print to {why}");
        }
        std::process::exit(outcome::TROUBLE.into());
    }
}

type PanicHandler = Box<dyn Fn(&std::panic::PanicHookInfo<'_>) + Send + Sync>;

/// The tasks that take the words of a command.
const TAKE_WORDS: [&str; 4] = ["check", "explain", "allow", "deny"];

/// Parses the command line. `callgate check ls -la` means `callgate check -- ls -la`: an option that callgate does not have, behind
/// the first word of a command, belongs to that command.
fn parse(words: &[std::ffi::OsString]) -> Arguments {
    let program = std::ffi::OsString::from("callgate");
    // A contained call waits for this, so the other tasks are not described to clap first. Help and errors come from all of them.
    if words.first().is_some_and(|word| word == "run")
        && let Ok(run) = RunAlone::try_parse_from(words)
    {
        return Arguments { task: Task::Run(run.arguments) };
    }
    let error = match Arguments::try_parse_from([&program].into_iter().chain(words)) {
        Ok(arguments) => return arguments,
        Err(error) => error,
    };
    if error.kind() == clap::error::ErrorKind::UnknownArgument
        && let Some(begin) = first_word(words)
    {
        let (front, command) = words.split_at(begin);
        let split = std::ffi::OsString::from("--");
        let all = [&program].into_iter().chain(front).chain([&split]).chain(command);
        if let Ok(arguments) = Arguments::try_parse_from(all) {
            return arguments;
        }
    }
    // Help and the version are answers, too.
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if let Err(why) = printed
        && why.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = writeln!(std::io::stderr(), "callgate: cannot print to stdout: {why}");
        std::process::exit(outcome::TROUBLE.into());
    }
    std::process::exit(error.exit_code())
}

/// Where the command begins that a task is about: the first word that is neither an option nor the value of one.
fn first_word(words: &[std::ffi::OsString]) -> Option<usize> {
    let task = words.first()?.to_str().filter(|task| TAKE_WORDS.contains(task))?;
    let tasks = Arguments::command();
    let task = tasks.find_subcommand(task)?;
    let takes_value = |word: &str| {
        let named = task.get_arguments().find(|known| known.get_long().is_some_and(|long| word == format!("--{long}")));
        named.is_some_and(|known| known.get_action().takes_values())
    };
    let mut value = false;
    words.iter().enumerate().skip(1).find_map(|(index, word)| {
        let word = word.to_str()?;
        let (is_value, is_option) = (std::mem::take(&mut value), word.starts_with('-'));
        value = !is_value && takes_value(word);
        (!is_value && !is_option).then_some(index)
    })
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
