//! `callgate hook AGENT`: answers one hook call in the agent's dialect.
//!
//! Most agents treat a hook that crashes, hangs or prints something unexpected as a yes. So everything here ends in an explicit
//! answer: a payload that cannot be read, a call that cannot be logged, a timeout and a panic are all refusals.

mod arguments;
mod asked;
mod contained;
mod deadline;
mod judge;
mod left;
mod servers;
mod session;
mod shells;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use callgate::json;
use callgate_hooks::{HookAnswer, HookDetails, HookInput, HookOutput, HookRequest};
use callgate_install::{HostEnvironment, Sighting};

use arguments::HookArguments;
use deadline::Deadline;

/// Answers one hook call. `words` follow `callgate hook` on the command line.
pub fn run(words: &[OsString]) -> ExitCode {
    // The message of a panic could be taken for an answer.
    std::panic::set_hook(Box::new(|_| {}));
    // Writing beyond a limit would end the process without an answer.
    if files_are_limited() {
        return say(&HookOutput::refusal("callgate cannot write its log under a file size limit (ulimit -f)"));
    }
    let arguments = match HookArguments::read(words) {
        Ok(arguments) => arguments,
        Err(why) => return say(&HookOutput::refusal(&format!("callgate hook: {why}"))),
    };
    let agent = arguments.agent;
    let deadline = Deadline::start(agent, arguments.time());
    let answered = catch_unwind(AssertUnwindSafe(|| answer(&arguments, &deadline)));
    let output = answered.unwrap_or_else(|_| agent.refuse(None, "callgate failed while judging this call"));
    // Only the first of the two threads to finish prints an answer.
    if deadline.met() { say(&output) } else { deadline::wait_for_the_end() }
}

/// Whether a file size limit could stop the log from growing, and cannot be raised.
fn files_are_limited() -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const ENOUGH: u64 = 1 << 40;
    let limit = getrlimit(Resource::Fsize);
    if limit.current.is_none_or(|current| current >= ENOUGH) {
        return false;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    limit.maximum.is_some_and(|maximum| maximum < ENOUGH) || setrlimit(Resource::Fsize, raised).is_err()
}

/// Prints an answer. If printing fails, the exit code is still a refusal.
fn say(output: &HookOutput) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_all(output.stdout.as_bytes()).and_then(|()| stdout.flush());
    if printed.is_err() {
        let _ = std::io::stderr().write_all(b"callgate could not print its answer\n");
        return ExitCode::from(2);
    }
    let _ = std::io::stderr().write_all(output.stderr.as_bytes());
    ExitCode::from(output.code)
}

fn answer(arguments: &HookArguments, deadline: &Deadline) -> HookOutput {
    let agent = arguments.agent;
    let payload = match payload() {
        Ok(payload) => payload,
        Err(why) => return agent.refuse(None, &why),
    };
    deadline.received();
    let directory = std::env::current_dir().ok();
    let servers = servers::of(agent.name());
    let received = HookInput {
        environment: &|name| std::env::var(name).ok(),
        event: arguments.event.as_deref(),
        directory: directory.as_deref(),
        servers: &servers,
        ..HookInput::of(&payload)
    };
    let incoming = match agent.read(&received) {
        Ok(incoming) => incoming,
        Err(error) => return agent.refuse(None, &format!("{error}; callgate refuses payloads that it cannot read")),
    };
    deadline.of_event(incoming.event);
    let answer = react(arguments, deadline, &incoming, directory);
    agent.write(incoming.event, answer.as_ref())
}

/// Reads standard input up to the size limit of a call.
fn payload() -> Result<Vec<u8>, String> {
    let mut payload = Vec::new();
    let limit = u64::try_from(json::MAXIMUM_SIZE).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut payload)
        .map_err(|error| format!("cannot read the payload of the hook: {error}"))?;
    Ok(payload)
}

fn react(
    arguments: &HookArguments,
    deadline: &Deadline,
    incoming: &HookRequest,
    directory: Option<std::path::PathBuf>,
) -> Option<HookAnswer> {
    let session = match session::Session::open(incoming, directory) {
        Ok(session) => session,
        Err(why) if incoming.event.decides() => return Some(HookAnswer::deny(why)),
        Err(_) => return None,
    };
    if session.is_new || incoming.details == HookDetails::SessionStart {
        seen(arguments, incoming);
    }
    // Notifications never block the agent, so failures here are only printed.
    let noted = match &incoming.details {
        HookDetails::Before(call) | HookDetails::Permission(call) => {
            return Some(judge::judge(arguments, deadline, incoming, &session, call));
        }
        HookDetails::After(after) => judge::after(arguments, incoming, &session, after),
        HookDetails::SessionStart | HookDetails::TurnEnd | HookDetails::SessionEnd | HookDetails::Notice => {
            judge::notice(arguments, incoming, &session)
        }
    };
    if let Err(why) = noted {
        eprintln!("callgate: {why}");
    }
    None
}

/// Records that the agent called this hook, for `callgate status`.
fn seen(arguments: &HookArguments, incoming: &HookRequest) {
    if let (Some(environment), Some(session)) = (HostEnvironment::of_process(), &incoming.origin.session) {
        let _ = Sighting::record(&environment, arguments.agent.name(), session);
    }
}
