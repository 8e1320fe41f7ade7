//! The policy, the gate and the call that the command line asks for.

use std::io::Read;
use std::path::{Path, PathBuf};

use callgate::git::GitHardening;
use callgate::load::{LoadedPolicy, PolicyChoice, load_policy};
use callgate::policy::Locations;
use callgate::{Assessment, Call, Gate, Refusal, SandboxSupport};
use callgate_hooks::ContainedCalls;
use callgate_model::json;
use callgate_model::quote::shell_words;
use clap::{Args, ValueEnum};

use crate::agents;
use crate::audit_log;
use crate::outcome::Trouble;
use crate::terminal::Who;

/// The call to be judged, and under which policy.
#[derive(Debug, Args)]
pub struct CallArguments {
    /// The shell command to judge: one text, or its words (behind -- if one of them is also an option of callgate)
    #[arg(conflicts_with = "tool")]
    pub command: Vec<String>,
    /// The tool to be called, instead of a shell command; mcp__SERVER__TOOL for a server's tool
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Its input: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", requires = "tool", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// Where the call happens
    #[command(flatten)]
    pub place: PlaceArguments,
    /// Under which policy
    #[command(flatten)]
    pub policy: PolicyArguments,
    /// Through which door
    #[command(flatten)]
    pub door: DoorArguments,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Where a call happens.
#[derive(Debug, Args, Clone)]
pub struct PlaceArguments {
    /// The call's working directory [default: the current one]
    #[arg(long, value_name = "DIRECTORY")]
    pub cwd: Option<PathBuf>,
    /// The project the agent works on [default: the working directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub workspace: Option<PathBuf>,
    /// The shell that runs the command: bash, zsh, sh [default: the one that SHELL names]
    #[arg(long, value_name = "SHELL")]
    pub shell: Option<String>,
}

/// The shell that runs commands, if anybody says which.
pub fn shell(arguments: &CallArguments) -> Option<String> {
    let agent = arguments.door.door.as_deref().and_then(|name| agents::find(name).ok());
    let named = arguments.place.shell.clone().or_else(|| agent?.shell().map(str::to_owned));
    named.or_else(|| std::env::var("SHELL").ok())
}

/// What the answer depends on beside the call: who runs it.
#[derive(Debug, Args, Clone)]
pub struct DoorArguments {
    /// The agent that makes the call: claude, codex, gemini … [default: one that takes a rewritten command]
    #[arg(long, value_name = "AGENT")]
    pub door: Option<String>,
    /// Whether calls can be contained: found, none, or auto, which tries it out and is none for an agent whose calls cannot be
    #[arg(long, value_name = "auto|found|none", default_value = "auto", hide_possible_values = true)]
    pub sandbox: SandboxArgument,
}

/// Whether there is a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxArgument {
    /// As this machine and the agent can
    Auto,
    /// The agent's calls can be contained
    Found,
    /// They cannot: a call that must be contained is refused
    None,
}

impl DoorArguments {
    /// Whether calls through this door can be contained.
    pub fn sandbox(&self) -> SandboxSupport {
        match self.sandbox {
            SandboxArgument::Found => SandboxSupport::Available,
            SandboxArgument::Auto if self.contains() => callgate_sandbox::support(None),
            SandboxArgument::Auto | SandboxArgument::None => SandboxSupport::Missing,
        }
    }

    /// Whether there is no agent, or one whose calls callgate runs contained.
    fn contains(&self) -> bool {
        let agent = self.door.as_deref().map(agents::find);
        agent.is_none_or(|agent| agent.is_ok_and(|agent| agent.contained() != ContainedCalls::Asked))
    }

    /// Whether the agent behind this door runs git hardened where callgate rewrites the command.
    pub fn git_hardening(&self) -> Result<GitHardening, Trouble> {
        let Some(name) = &self.door else { return Ok(GitHardening::WhenNeeded) };
        let agent = agents::find(name).map_err(Trouble::new)?;
        let rewrites = agent.events().any(|event| event.can_rewrite());
        Ok(if rewrites { GitHardening::WhenNeeded } else { GitHardening::Never })
    }
}

/// Which policy to use.
#[derive(Debug, Args, Clone)]
pub struct PolicyArguments {
    /// A policy file, or strict, standard, relaxed, permissive, unattended [default: callgate.yaml upwards from here, then the user's, then standard]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
}

/// The policy that was named, or all layers that apply to a directory.
pub fn policy(named: Option<&str>, directory: &Path) -> Result<LoadedPolicy, Trouble> {
    Ok(match named {
        Some(name) => load_policy(PolicyChoice::Named(name), None)?,
        None => load_policy(PolicyChoice::Layers(&Locations::of(directory)), None)?,
    })
}

/// A gate for calls from a directory that come through a door.
pub fn gate(named: Option<&str>, directory: &Path, door: &DoorArguments) -> Result<Gate, Trouble> {
    let policy = policy(named, directory)?.policy;
    Ok(Gate::builder().policy(policy).git_hardening(door.git_hardening()?).sandbox(door.sandbox()).build())
}

/// The call, judged, and the gate that judged it.
pub fn assessed(arguments: &CallArguments) -> Result<(Gate, Result<Assessment, Refusal>), Trouble> {
    let call = call(arguments)?;
    let directory = call.origin.directory.clone().unwrap_or_default();
    let gate = gate(arguments.policy.policy.as_deref(), &directory, &arguments.door)?;
    let assessed = gate.assess(&call);
    Ok((gate, assessed))
}

/// The same, with everybody who can answer: grants, the session, the terminal, and `callgate approvals` elsewhere.
pub fn asking_gate(arguments: &CallArguments, call: &Call, who: Who) -> Result<Gate, Trouble> {
    let named = arguments.policy.policy.as_deref();
    let directory = call.origin.directory.clone().unwrap_or_default();
    let policy = policy(named, &directory)?.policy;
    // A policy that was named stands alone: a rule in the user's file would not help.
    let always = named.is_none().then(|| (Locations::of(&directory), call.clone()));
    let approvals = crate::terminal::approvals(&policy, who, always)?;
    // What cannot be logged does not run.
    let settings = audit_log::settings(&policy)?;
    let log = callgate_audit::Log::open(settings)
        .map_err(|error| Trouble::new(format!("cannot open the audit log: {error}")))?;
    Ok(Gate::builder()
        .policy(policy)
        .approvals(approvals)
        .events(callgate_audit::AuditSink::new(log))
        .git_hardening(arguments.door.git_hardening()?)
        .sandbox(arguments.door.sandbox())
        .build())
}

/// The working directory and the workspace of a call, absolute.
pub fn place(place: &PlaceArguments) -> Result<(PathBuf, PathBuf), Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))?;
    let directory = place.cwd.as_ref().map_or_else(|| here.clone(), |directory| here.join(directory));
    let workspace = place.workspace.as_ref().map_or_else(|| directory.clone(), |workspace| here.join(workspace));
    Ok((directory, workspace))
}

/// One argument is a text for the shell; several are the words of one command.
pub fn command_text(words: &[String]) -> Option<String> {
    match words {
        [] => None,
        [text] => Some(text.clone()),
        words => Some(shell_words(words)),
    }
}

/// The call that the arguments describe.
pub fn call(arguments: &CallArguments) -> Result<Call, Trouble> {
    let (directory, workspace) = place(&arguments.place)?;
    let call = match (command_text(&arguments.command), &arguments.tool) {
        (Some(command), _) => Call::new("Bash", serde_json::json!({ "command": command })),
        (None, Some(tool)) => {
            let text = input(arguments.input.as_deref().unwrap_or("{}"))?;
            let input = json::read(&text).map_err(|error| Trouble::new(format!("invalid --input: {error}")))?;
            Call::new(tool.as_str(), input)
        }
        (None, None) => return Err(Trouble::new("missing a call to judge: pass a command, or --tool with --input")),
    };
    let mut call = call.directory(directory).workspace(workspace);
    call.origin.shell = shell(arguments);
    Ok(call)
}

fn input(given: &str) -> Result<Vec<u8>, Trouble> {
    let limited = |reader: &mut dyn Read, name: &str| {
        let mut text = Vec::new();
        let limit = u64::try_from(json::MAXIMUM_SIZE).unwrap_or(u64::MAX).saturating_add(1);
        reader
            .take(limit)
            .read_to_end(&mut text)
            .map_err(|error| Trouble::new(format!("cannot read {name}: {error}")))?;
        Ok(text)
    };
    if given == "-" {
        return limited(&mut std::io::stdin().lock(), "standard input");
    }
    match given.strip_prefix('@') {
        Some(path) => {
            let mut file =
                std::fs::File::open(path).map_err(|error| Trouble::new(format!("cannot read {path}: {error}")))?;
            limited(&mut file, path)
        }
        None => Ok(given.as_bytes().to_vec()),
    }
}
