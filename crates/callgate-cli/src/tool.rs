//! `callgate tool`: the built-in tools for every program, one call at a time or as lines of JSON.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use callgate::{Origin, SandboxSupport};
use callgate_sandbox::support;
use callgate_tools::{HumanQuestion, NoAnswer, ToolCall, ToolResult, ToolSpec, Toolbox};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::choice::PolicyArguments;
use crate::outcome::{Outcome, Trouble};
use crate::run;
use crate::terminal::Who;

/// The longest line that `tool serve` reads.
const LONGEST_LINE: u64 = 32 * 1024 * 1024;
/// How many requests `tool serve` works on at once.
const AT_ONCE: usize = 64;

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  callgate tool list
  callgate tool schema file_read --form openai
  callgate tool call grep_files '{\"pattern\": \"fn main\"}'
  callgate tool serve < requests.jsonl

A request of `serve` is a line such as {\"id\": \"1\", \"name\": \"file_read\", \"args\": {\"path\": \"README.md\"}}, or a list of them, which are judged one
after the other and run together. What it prints are events and results, a line each.";

/// What to do with the tools.
#[derive(Debug, Subcommand)]
pub enum ToolTask {
    /// List the tools
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the schema of a tool
    Schema {
        /// The tool
        name: String,
        /// For whom: as it is, or as a model's service wants it
        #[arg(long, value_name = "json|openai|anthropic", default_value = "json", hide_possible_values = true)]
        form: Form,
    },
    /// Call a tool: judged, asked about if needed, run, logged
    #[command(after_help = EXAMPLES)]
    Call {
        /// The tool
        name: String,
        /// Its input: JSON, @FILE, or - for standard input
        #[arg(default_value = "{}", allow_hyphen_values = true)]
        input: String,
        /// Where and under which policy
        #[command(flatten)]
        place: ToolPlace,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Answer calls on standard input, a line of JSON each, with events and results on standard output
    #[command(after_help = EXAMPLES)]
    Serve {
        /// Where and under which policy
        #[command(flatten)]
        place: ToolPlace,
        /// The session that answers for the session belong to
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// The agent that makes the calls, for the log
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
}

/// Where tools work.
#[derive(Debug, Args)]
pub struct ToolPlace {
    /// The project [default: the repository around the current directory, or that directory]
    #[arg(long, value_name = "DIRECTORY")]
    workspace: Option<PathBuf>,
    /// Under which policy
    #[command(flatten)]
    policy: PolicyArguments,
}

/// The form of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// JSON Schema
    Json,
    /// A function of OpenAI's API
    Openai,
    /// A tool of Anthropic's API
    Anthropic,
}

/// Runs a task.
pub fn run(task: ToolTask) -> Result<Outcome, Trouble> {
    match task {
        ToolTask::List { json } => list(json),
        ToolTask::Schema { name, form } => schema(&name, form),
        ToolTask::Call { name, input, place, json } => call(&name, &input, &place, json),
        ToolTask::Serve { place, session, agent } => serve(&place, session, agent),
    }
}

fn list(as_json: bool) -> Result<Outcome, Trouble> {
    let specs = callgate_tools::built_in();
    let text = if as_json {
        format!("{}\n", serde_json::to_string_pretty(&specs).map_err(|error| Trouble::new(error.to_string()))?)
    } else {
        let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or_default();
        specs.iter().map(|spec| format!("{:width$}  {}\n", spec.name, spec.description)).collect()
    };
    crate::print(text.as_bytes())
}

fn schema(name: &str, form: Form) -> Result<Outcome, Trouble> {
    let specs = callgate_tools::built_in();
    let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
        let names: Vec<&str> = specs.iter().map(|spec: &ToolSpec| spec.name.as_str()).collect();
        return Err(Trouble::new(format!("unknown tool `{name}`; expected one of {}", names.join(", "))));
    };
    let value = match form {
        Form::Json => spec.parameters.clone(),
        Form::Openai => spec.openai(),
        Form::Anthropic => spec.anthropic(),
    };
    let text = serde_json::to_string_pretty(&value).map_err(|error| Trouble::new(error.to_string()))?;
    crate::print(format!("{text}\n").as_bytes())
}

fn toolbox(place: &ToolPlace, origin: Origin, who: Who) -> Result<Toolbox, Trouble> {
    let failed = |error: std::io::Error| Trouble::new(format!("cannot determine the current directory: {error}"));
    let here = std::env::current_dir().map_err(failed)?;
    let workspace = place.workspace.as_ref().map_or_else(|| run::project(&here), |workspace| here.join(workspace));
    let workspace = workspace
        .canonicalize()
        .map_err(|error| Trouble::new(format!("cannot open the project {}: {error}", workspace.display())))?;
    let support: SandboxSupport = support(None);
    let gate = run::guarded(&place.policy, &workspace, Some((who, None)))?.sandbox(support);
    let human = |question: &HumanQuestion| person(question);
    let run_id = format!("{}", std::process::id());
    Ok(Toolbox::builder(gate, workspace).origin(origin).run_id(run_id).human(human, None).build())
}

/// Asks the person at the terminal.
fn person(question: &HumanQuestion) -> Result<String, NoAnswer> {
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal = terminal.map_err(|_| NoAnswer::Unavailable)?;
    let mut text = format!("{}\n", callgate::show::visible(&question.question));
    for (number, choice) in (1..).zip(&question.choices) {
        text.push_str(&format!("  {number}) {}\n", callgate::show::visible(choice)));
    }
    text.push_str("> ");
    terminal.write_all(text.as_bytes()).map_err(|_| NoAnswer::Unavailable)?;
    if let Some(timeout) = question.timeout
        && !is_ready(&terminal, timeout)
    {
        return Err(NoAnswer::TimedOut);
    }
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(terminal).take(64 * 1024);
    match lines.read_line(&mut line) {
        Ok(1..) => {}
        _ => return Err(NoAnswer::Cancelled),
    }
    let answer = line.trim_end_matches(['\r', '\n']);
    let chosen = answer.trim().parse::<usize>().ok().and_then(|number| question.choices.get(number.checked_sub(1)?));
    Ok(chosen.map_or_else(|| answer.to_owned(), Clone::clone))
}

fn is_ready(terminal: &std::fs::File, timeout: Duration) -> bool {
    let mut ready = [rustix::event::PollFd::new(terminal, rustix::event::PollFlags::IN)];
    let timeout = rustix::event::Timespec::try_from(timeout).ok();
    rustix::event::poll(&mut ready, timeout.as_ref()).is_ok_and(|count| count > 0)
}

fn call(name: &str, input: &str, place: &ToolPlace, as_json: bool) -> Result<Outcome, Trouble> {
    let text = match input.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| Trouble::new(format!("cannot read {file}: {error}")))?
        }
        None if input == "-" => std::io::read_to_string(std::io::stdin().take(LONGEST_LINE))
            .map_err(|error| Trouble::new(format!("cannot read standard input: {error}")))?,
        None => input.to_owned(),
    };
    let toolbox = toolbox(place, Origin::default(), Who::TerminalOrElsewhere)?;
    let call = ToolCall { raw_arguments: Some(text), ..ToolCall::new("1", name, Value::Null) };
    let result = toolbox.dispatch(call);
    let outcome = if result.ok { Outcome::Done } else { Outcome::Found };
    if as_json {
        crate::print(format!("{}\n", result.content()).as_bytes())?;
        return Ok(outcome);
    }
    crate::print(result.stdout.as_bytes())?;
    tell(&result);
    Ok(outcome)
}

/// Errors go where errors go, with their kind if callgate is who says them.
fn tell(result: &ToolResult) {
    let text = result.stderr.trim_end();
    match result.error_kind {
        Some(kind) if !text.is_empty() && result.exit_code.is_none() => {
            anstream::eprintln!("callgate: {kind}: {}", callgate::show::visible(text));
        }
        _ if !text.is_empty() => anstream::eprintln!("{text}"),
        Some(kind) if result.exit_code.is_none() => anstream::eprintln!("callgate: {kind}"),
        _ => {}
    }
}

/// Prints a line of one of several threads, whole. Says whether anybody still reads.
fn print_line(line: &Value) -> bool {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).is_ok()
}

fn serve(place: &ToolPlace, session: Option<String>, agent: Option<String>) -> Result<Outcome, Trouble> {
    let origin = Origin { session, agent, ..Origin::default() };
    let toolbox = toolbox(place, origin, Who::TerminalOrElsewhere)?;
    toolbox.on_event(|event| print_line(&serde_json::to_value(event).unwrap_or_default()));
    let running = (AtomicUsize::new(0), Mutex::new(()), Condvar::new());
    std::thread::scope(|scope| {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                _ => break,
            }
            // What follows would otherwise be taken for a request, though it stands inside one.
            if !line.ends_with(b"\n") && line.len() as u64 >= LONGEST_LINE {
                let message = format!("a request is longer than {LONGEST_LINE} bytes");
                print_line(&json!({"type": "error", "error_kind": "validation", "message": message}));
                if input.skip_until(b'\n').is_err() {
                    break;
                }
                continue;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (count, lock, changed) = &running;
            let mut guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
            while count.load(Ordering::Relaxed) >= AT_ONCE {
                guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            count.fetch_add(1, Ordering::Relaxed);
            drop(guard);
            let (toolbox, running) = (&toolbox, &running);
            scope.spawn(move || {
                answer(toolbox, &line);
                let _guard = running.1.lock().unwrap_or_else(PoisonError::into_inner);
                running.0.fetch_sub(1, Ordering::Relaxed);
                running.2.notify_all();
            });
        }
    });
    Ok(Outcome::Done)
}

/// Answers one line: a call, or a list of calls.
fn answer(toolbox: &Toolbox, line: &[u8]) {
    let wrong = |why: String| json!({"type": "error", "error_kind": "validation", "message": why});
    let value = match callgate_model::json::read(line) {
        Ok(value) => value,
        Err(error) => {
            print_line(&wrong(format!("invalid request: {error}")));
            return;
        }
    };
    let calls: Result<Vec<ToolCall>, _> = match value {
        Value::Array(calls) => calls.into_iter().map(serde_json::from_value).collect(),
        one => serde_json::from_value(one).map(|call| vec![call]),
    };
    match calls {
        Err(error) => {
            print_line(&wrong(format!(
                "invalid request: {error}; expected {{\"id\": …, \"name\": …, \"args\": {{…}}}}"
            )));
        }
        Ok(calls) => {
            let ids: Vec<String> = calls.iter().map(|call| call.call_id.clone()).collect();
            for (id, result) in ids.into_iter().zip(toolbox.dispatch_all(calls)) {
                print_line(&json!({"type": "result", "id": id, "result": result}));
            }
        }
    }
}
