//! `callgate run`: judges a command, asks if needed, runs it where it may run, and says what was held back.

use std::ffi::OsString;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use callgate::fence::{Fence, Limits, Network, bytes};
use callgate::gate::{CheckOptions, GateBuilder};
use callgate::live::LiveRun;
use callgate::load::{PolicyChoice, load_policy};
use callgate::permit::{Permit, RunError};
use callgate::policy::{Locations, PolicyCache};
use callgate::redact::Redactor;
use callgate::show::visible;
use callgate::{Call, Gate, Refusal, RefusalKind, SandboxSupport};
use callgate_model::quote::shell_words;
use callgate_sandbox::{Backend, Denied, Detached, Enforced, Launch, Prepared, Program, choose_with, owner, support};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::audit_log;
use crate::choice::PolicyArguments;
use crate::left;
use crate::opened;
use crate::outcome::{Outcome, Trouble};
use crate::terminal::Who;

/// The exit code of a command that was refused or could not be contained.
pub const REFUSED: u8 = 125;
/// How much of a command `callgate ps` shows.
const SHOWN: usize = 500;

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  callgate run -- cargo test
  callgate run --contain -- npm test
  callgate run --shell 'make && ./a.out'
  callgate run --contain --network registry.npmjs.org -- npm ci
  callgate run --background -- npm run dev
  callgate run --again last

Exit codes: that of the command, 128 and the number of the signal that ended it, 124 if its time ran out,
125 if it was refused or could not be contained, 126 and 127 if it could not be started or found.";

/// What to run, and how.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["shell", "again"], conflicts_with_all = ["shell", "again"])]
    pub words: Vec<OsString>,
    /// Run this text in a shell without start-up files instead of a program
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub shell: Option<String>,
    /// Run what a hook has judged and handed over: callgate writes this into the command of an agent
    #[arg(long, value_name = "TOKEN", requires = "shell", conflicts_with_all = ["contain", "backend", "workspace", "policy"], hide = true)]
    pub permit: Option<String>,
    /// With --permit: write the directory in which the shell ends to this descriptor
    #[arg(long, value_name = "DESCRIPTOR", requires = "permit", hide = true)]
    pub left: Option<u32>,
    /// Run a contained call once more, with what was held back of it, after you were asked: its id in the audit log, or `last`
    #[arg(long, value_name = "ID", conflicts_with_all = ["shell", "permit", "network", "background", "workspace"])]
    pub again: Option<String>,
    /// Contain it, whatever the policy says about asking; what is denied stays denied
    #[arg(long)]
    pub contain: bool,
    /// With --contain: a host that it may reach, or `all`; may be repeated
    #[arg(long, value_name = "HOST", requires = "contain")]
    pub network: Vec<String>,
    /// With --contain: time=5m, memory=2GiB, processes=256, written=1GiB, file-size=…, open-files=…, output=…; may be repeated
    #[arg(long, value_name = "LIMIT", requires = "contain", value_parser = limit)]
    pub limit: Vec<Limits>,
    /// Contain it and let it run on in the background until this terminal or agent ends; see `callgate ps` and `callgate stop`
    #[arg(long)]
    pub background: bool,
    /// Make the ports that it listens on reachable at localhost; always so with --background
    #[arg(long)]
    pub publish: bool,
    /// This process stays in the background and says on standard output when the command has started
    #[arg(long, hide = true, requires = "background")]
    pub keeper: bool,
    /// How it is contained [default: the best that this machine has]
    #[arg(long, value_name = "BACKEND", hide_possible_values = true)]
    pub backend: Option<BackendArgument>,
    /// The project [default: the repository around the current directory, or that directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub workspace: Option<PathBuf>,
    /// Under which policy
    #[command(flatten)]
    pub policy: PolicyArguments,
    /// Print how it ended as a line of JSON on standard error
    #[arg(long)]
    pub json: bool,
}

/// A way to contain calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendArgument {
    /// Namespaces that callgate makes
    Namespaces,
    /// Namespaces that the system's bubblewrap makes
    Bubblewrap,
    /// Landlock and seccomp alone
    Landlock,
}

impl From<BackendArgument> for Backend {
    fn from(argument: BackendArgument) -> Self {
        match argument {
            BackendArgument::Namespaces => Backend::Namespaces,
            BackendArgument::Bubblewrap => Backend::Bubblewrap,
            BackendArgument::Landlock => Backend::Landlock,
        }
    }
}

const NOTHING_RUNS: &str = "a limit of zero lets nothing run";

/// Reads `memory=512MiB`.
fn limit(text: &str) -> Result<Limits, String> {
    let (name, value) = text.split_once('=').ok_or("write a limit as NAME=VALUE, such as memory=2GiB")?;
    let mut limits = Limits::default();
    let size = || {
        let size = bytes(value).ok_or_else(|| format!("{value} is no size; write 256, 512MiB or 2GiB"))?;
        Some(size).filter(|size| *size > 0).ok_or_else(|| NOTHING_RUNS.to_owned())
    };
    match name {
        "time" => {
            let time = humantime::parse_duration(value).map_err(|error| format!("{value}: {error}"))?;
            limits.time = Some(Some(time).filter(|time| !time.is_zero()).ok_or(NOTHING_RUNS)?);
        }
        "memory" => limits.memory = Some(size()?),
        "processes" => limits.processes = Some(size()?),
        "written" => limits.written = Some(size()?),
        "file-size" | "file_size" => limits.file_size = Some(size()?),
        "open-files" | "open_files" => limits.open_files = Some(size()?),
        "output" => limits.output = Some(size()?),
        other => {
            return Err(format!(
                "there is no limit `{other}`; there are time, memory, processes, written, file-size, open-files and output"
            ));
        }
    }
    Ok(limits)
}

/// Judges and runs.
pub fn run(arguments: &RunArguments) -> Result<Outcome, Trouble> {
    if arguments.background && !arguments.keeper {
        return start_keeper(arguments);
    }
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))?;
    let workspace = arguments.workspace.as_ref().map_or_else(|| project(&here), |workspace| here.join(workspace));
    let (text, words) = command(arguments)?;
    // What must be contained in any case is set up while it is judged. What lives on leaves this session first.
    let early = arguments.contain && !arguments.background;
    let prepared = early.then(|| Prepared::start(arguments.backend.map(Into::into))).flatten();
    let mut call = Call::new("Bash", json!({ "command": text })).directory(&here).workspace(workspace);
    call.origin.shell = Some("bash".to_owned());
    // It is opened before it is judged, and this very file is started.
    let program = arguments.shell.is_none().then(|| held_program(&words, &here)).flatten();
    let gate = gate(arguments, &call, arguments.contain)?;
    let options = CheckOptions::default().contained(arguments.contain).fenced(arguments.background);
    let verdict = gate.check_with(call, options).verdict;
    // Its threads would take signals that are meant for the command.
    drop(gate);
    let permit = match verdict {
        Ok(permit) => permit,
        Err(refusal) => return Ok(refused(arguments, &refusal)),
    };
    let launch = Launch {
        words,
        program,
        directory: here,
        left: false,
        environment: std::env::vars_os().collect(),
        backend: arguments.backend.map(Into::into),
        run: announced(&permit, &text),
        detached: arguments.background.then_some(Detached { started }),
        publish: arguments.publish,
    };
    if arguments.background {
        // What is typed into this terminal, and its end, do not reach what runs on.
        rustix::process::setsid().map_err(|error| Trouble::new(format!("cannot start a session: {error}")))?;
    }
    match permit.plan().fence().cloned() {
        Some(fence) => contained(arguments, permit, fence, &launch, prepared),
        None => free(arguments, permit, &launch),
    }
}

/// The program of a command, held by a descriptor. One that is not found is looked for once more when the call starts, which then
/// says so.
fn held_program(words: &[OsString], here: &Path) -> Option<Program> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).filter(|path| path.is_absolute()).collect();
    Program::find(words.first()?, here, &directories).ok()
}

/// What others are told of a call while it runs.
pub fn announced(permit: &Permit, text: &str) -> LiveRun {
    LiveRun {
        call: permit.id().to_owned(),
        command: Redactor::default().text(text).chars().take(SHOWN).collect(),
        owner: owner::owner(),
        ..LiveRun::default()
    }
}

/// Starts this command once more, waits until it says that the call has started, and leaves it running.
fn start_keeper(arguments: &RunArguments) -> Result<Outcome, Trouble> {
    let failed = |error: std::io::Error| Trouble::new(format!("cannot start in the background: {error}"));
    let words: Vec<OsString> = std::env::args_os().skip(2).collect();
    let mut keeper = std::process::Command::new("/proc/self/exe");
    keeper.args(["run", "--keeper"]).args(words).stdout(std::process::Stdio::piped());
    let mut keeper = keeper.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(output) = keeper.stdout.take() {
        std::io::BufReader::new(output).take(1 << 20).read_line(&mut line).map_err(failed)?;
    }
    let Ok(run) = serde_json::from_str::<LiveRun>(&line) else {
        // It has said why, and ends.
        let status = keeper.wait().map_err(failed)?;
        return Ok(Outcome::Code(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(REFUSED)));
    };
    let text = if arguments.json {
        format!("{}\n", json!({"id": run.id, "call": run.call, "command": run.command, "directory": run.directory}))
    } else {
        let (id, command) = (&run.id, visible(&run.command));
        format!("started {id} in the background: {command}\n`callgate ps` shows it, `callgate stop {id}` ends it\n")
    };
    crate::print(text.as_bytes())
}

/// Says that the call has started, and lets go of the caller's streams and directory.
fn started(run: &LiveRun) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(run)?;
    line.push(b'\n');
    std::io::stdout().write_all(&line)?;
    std::io::stdout().flush()?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    std::env::set_current_dir("/")
}

/// The repository that a directory lies in, or the directory itself. The home directory is no project, and neither is what another
/// user has made one: an empty `.git` in `/tmp` would open all of `/tmp`.
pub fn project(here: &Path) -> PathBuf {
    let home = callgate::policy::directories::home();
    let own = |path: &Path| path.metadata().is_ok_and(|data| data.uid() == rustix::process::getuid().as_raw());
    let below_home = here.ancestors().take_while(|directory| Some(*directory) != home.as_deref());
    let mut repositories =
        below_home.filter(|directory| directory.parent().is_some() && own(directory) && own(&directory.join(".git")));
    repositories.next().unwrap_or(here).to_owned()
}

/// The text to judge and the words to run.
fn command(arguments: &RunArguments) -> Result<(String, Vec<OsString>), Trouble> {
    if let Some(text) = &arguments.shell {
        return Ok((text.clone(), shell(Some("bash"), text)));
    }
    let words = arguments.words.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    let words = words.ok_or_else(|| Trouble::new("a word of the command is not valid UTF-8"))?;
    Ok((shell_words(words), arguments.words.clone()))
}

/// The words that run a text in the shell for which it was judged. What means the same in every shell runs in bash.
pub fn shell(named: Option<&str>, text: &str) -> Vec<OsString> {
    let name = named.and_then(|path| path.rsplit('/').next());
    let words: &[&str] = match name {
        Some("sh" | "dash") => &["/bin/sh", "-c", text],
        _ => &["/bin/bash", "--noprofile", "--norc", "-c", text],
    };
    words.iter().map(OsString::from).collect()
}

pub fn gate(arguments: &RunArguments, call: &Call, contained: bool) -> Result<Gate, Trouble> {
    // A contained run asks nobody, so it needs no store.
    let asked = (!contained).then_some((Who::Terminal, Some(call)));
    let builder = guarded(&arguments.policy, call.origin.directory.as_deref().unwrap_or(Path::new("")), asked)?;
    // Where nothing can be held, a person may be asked instead; who wants it contained gets the reason.
    let support = if contained { SandboxSupport::Available } else { support(arguments.backend.map(Into::into)) };
    Ok(builder.sandbox(support).build())
}

/// A gate with the policy of a directory, the audit log, and whoever answers. With a call, "always" is offered for it.
pub fn guarded(
    arguments: &PolicyArguments,
    directory: &Path,
    asked: Option<(Who, Option<&Call>)>,
) -> Result<GateBuilder, Trouble> {
    let named = arguments.policy.as_deref();
    let policy = match named {
        Some(name) => load_policy(PolicyChoice::Named(name), None)?,
        None => {
            let locations = Locations::of(directory);
            let cache = PolicyCache::of_user_outside(locations.workspace.as_deref());
            load_policy(PolicyChoice::Layers(&locations), cache.as_ref())?
        }
    };
    let policy = policy.policy;
    let mut settings = audit_log::settings(&policy)?;
    // As in hooks: an entry outlives this process, and waiting for the disk would take longer than everything else.
    if policy.audit_settings().sync.is_none() {
        settings = settings.sync(callgate_audit::SyncMode::Os);
    }
    let log = callgate_audit::Log::open_briefly(settings)
        .map_err(|error| Trouble::new(format!("cannot open the audit log: {error}")))?;
    let approvals = asked.map(|(who, call)| {
        let always = call.filter(|_| named.is_none()).map(|call| (Locations::of(directory), call.clone()));
        crate::terminal::approvals(&policy, who, always)
    });
    let approvals = approvals.transpose()?;
    let builder = Gate::builder().policy(policy).events(callgate_audit::AuditSink::new(log));
    Ok(match approvals {
        Some(approvals) => builder.approvals(approvals),
        None => builder,
    })
}

pub fn refused(arguments: &RunArguments, refusal: &Refusal) -> Outcome {
    if arguments.json {
        anstream::eprintln!(
            "{}",
            json!({"refused": refusal.kind.as_str(), "reason": refusal.reason, "rule": refusal.rule, "hint": refusal.hint})
        );
    } else {
        anstream::eprintln!("callgate: refused ({}): {}", refusal.kind.as_str(), visible(&refusal.reason));
        if let Some(hint) = &refusal.hint {
            anstream::eprintln!("callgate: {}", visible(hint));
        }
    }
    Outcome::Code(REFUSED)
}

/// The result of a run that the gate records as a success or a failure.
type Ended<T> = Result<T, RunError<Denied>>;

pub fn contained(
    arguments: &RunArguments,
    permit: Permit,
    mut fence: Fence,
    launch: &Launch,
    mut prepared: Option<Prepared>,
) -> Result<Outcome, Trouble> {
    if !arguments.network.is_empty() {
        let all = arguments.network.iter().any(|host| host == "all");
        fence.network = if all { Network::All } else { Network::Hosts(arguments.network.clone()) };
    }
    for limits in &arguments.limit {
        fence.limits = fence.limits.lowest(*limits);
    }
    // The choice is made here, before the start is logged, and is final.
    let chosen = choose_with(&fence.required, launch.backend, prepared.as_mut());
    let held = Enforced(chosen.as_ref().ok().copied());
    let result: Ended<callgate_sandbox::Outcome> = permit.run_with(Some(&held), |_, report| {
        let launch = |backend| Launch { backend: Some(backend), ..launch.clone() };
        let outcome = chosen.and_then(|backend| callgate_sandbox::run(&fence, &launch(backend), prepared));
        let outcome = outcome.inspect_err(|denied| report.error(kind(denied)))?;
        report.exit(outcome.exit_code());
        report.held_back.clone_from(&outcome.held_back);
        if let Some(limit) = &outcome.limit {
            report.error(if limit == "time" { "timeout".to_owned() } else { format!("limit {limit}") });
        }
        Ok(outcome)
    });
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(RunError::Failed(denied)) => return Ok(could_not(arguments, denied)),
        Err(RunError::Refused(refusal)) => return Ok(refused(arguments, &refusal)),
        Err(_) => return Err(Trouble::new("the call failed")),
    };
    tell(arguments, &outcome, &fence);
    if let Some(descriptor) = arguments.left {
        left::hand_back(descriptor, &outcome, &fence, &launch.directory);
    }
    Ok(Outcome::Code(u8::try_from(outcome.exit_code()).unwrap_or(u8::MAX)))
}

fn kind(denied: &Denied) -> &'static str {
    if denied.program.is_some() { RefusalKind::NotFound.as_str() } else { RefusalKind::SandboxDenied.as_str() }
}

fn could_not(arguments: &RunArguments, denied: Denied) -> Outcome {
    match denied.program {
        Some(code) => {
            anstream::eprintln!("callgate: {}", visible(&denied.reason));
            Outcome::Code(u8::try_from(code).unwrap_or(REFUSED))
        }
        None => refused(arguments, &denied.into()),
    }
}

/// What was held back, in at most two lines.
fn tell(arguments: &RunArguments, outcome: &callgate_sandbox::Outcome, fence: &Fence) {
    if arguments.json {
        let report = json!({
            "exit": outcome.exit_code(), "signal": outcome.signal, "limit": outcome.limit,
            "held_back": outcome.held_back, "backend": outcome.backend,
            "milliseconds": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        });
        anstream::eprintln!("{report}");
        return;
    }
    if let Some(limit) = &outcome.limit {
        anstream::eprintln!(
            "callgate: ended, because it was over its limit for {}; --limit or `limits:` in the policy raise it",
            words(limit)
        );
    }
    if let Some(first) = outcome.held_back.first() {
        let others = outcome.held_back.len().saturating_sub(1);
        let more = if others == 0 { String::new() } else { format!(" and {others} more") };
        let remedy = match opened::addition(first, fence) {
            Ok(_) if arguments.permit.is_some() => "your user can let it through with `callgate run --again last`",
            Ok(_) => "`callgate run --again last` asks you and lets it through",
            Err(why) => why,
        };
        anstream::eprintln!("callgate: held back: {} {}{more} ({remedy})", first.action, visible(&first.target));
    }
    if let Some(repository) = repository(&outcome.printed_last) {
        anstream::eprintln!(
            "callgate: the repository {} lies outside, and does not name this directory as its worktree; `git worktree repair` there may help",
            visible(&repository)
        );
        return;
    }
    if (outcome.limit.is_none() || outcome.held_back.is_empty())
        && let Some(hidden) = hidden(&outcome.printed_last, fence)
    {
        anstream::eprintln!(
            "callgate: {} is hidden from contained calls, as is all of the home directory that no policy opens",
            visible(&hidden)
        );
    }
}

/// A path of the home directory that the command printed, that exists, and that does not exist for the command: most likely it says so.
fn hidden(printed: &[u8], fence: &Fence) -> Option<String> {
    let home = fence.home.as_deref()?;
    let printed = String::from_utf8_lossy(printed);
    let ends = |letter: char| letter.is_whitespace() || letter.is_control() || "'\"`:;,()[]<>".contains(letter);
    let open =
        || fence.roots.iter().chain(&fence.readable).chain(&fence.caches).chain(fence.shared.iter().map(|of| &of.path));
    let is_hidden = |path: &&str| {
        let path = Path::new(path);
        path.starts_with(home)
            && path != home
            && !open().any(|open| path.starts_with(open))
            && path.symlink_metadata().is_ok()
    };
    printed.split(ends).filter(|word| word.starts_with('/')).take(64).find(is_hidden).map(str::to_owned)
}

/// The repository that git says it does not find, if it is there.
fn repository(printed: &[u8]) -> Option<String> {
    let printed = String::from_utf8_lossy(printed);
    let path = printed.lines().find_map(|line| line.strip_prefix("fatal: not a git repository: "))?.trim();
    Path::new(path).join("HEAD").exists().then(|| path.to_owned())
}

fn words(limit: &str) -> &str {
    if limit == "written" { "written bytes" } else { limit }
}

fn free(arguments: &RunArguments, permit: Permit, launch: &Launch) -> Result<Outcome, Trouble> {
    let result: Ended<i32> = permit.run_with(None, |_, report| {
        let code = callgate_sandbox::run_free(launch).inspect_err(|denied| report.error(kind(denied)))?;
        report.exit(code);
        Ok(code)
    });
    match result {
        Ok(code) => Ok(Outcome::Code(u8::try_from(code).unwrap_or(u8::MAX))),
        Err(RunError::Failed(denied)) => Ok(could_not(arguments, denied)),
        Err(RunError::Refused(refusal)) => Ok(refused(arguments, &refusal)),
        Err(_) => Err(Trouble::new("the call failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_with_units() {
        assert_eq!(limit("memory=512MiB").unwrap().memory, Some(512 << 20));
        assert_eq!(limit("processes=256").unwrap().processes, Some(256));
        assert_eq!(limit("time=5s").unwrap().time, Some(std::time::Duration::from_secs(5)));
        for wrong in ["memory", "memory=0", "time=0s", "memory=5XB", "memory=99999999999GiB", "speed=3"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
