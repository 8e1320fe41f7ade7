//! What `callgate status` and `callgate doctor` know besides the agents: who answers questions, what the sandbox holds, how large the
//! log is, and what is wrong with the one command that mends it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use callgate::approvals::Coordinator;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{ApproverKind, FoundFile, LayerKind, Locations, Policy};
use callgate::show::visible;
use callgate_hooks::HookEventKind;
use callgate_install::{HookState, InstallScope, StatusReport};
use callgate_model::fence::Protection;
use callgate_store::SqliteStore;
use serde::Serialize;
use serde_json::{Value, json};

use crate::watching;

/// Something to mend.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// The command that mends it.
    pub command: String,
    /// Whether callgate does not do its work because of it; otherwise it could do more.
    pub serious: bool,
}

/// The log on the disk.
#[derive(Debug, Serialize)]
pub struct LogSize {
    /// Where it is.
    pub directory: PathBuf,
    /// All its files together.
    pub bytes: u64,
}

/// What there is.
#[derive(Debug)]
pub struct Health {
    /// The policy that applies here, or why it does not load.
    policy: Result<(Arc<Policy>, Vec<FoundFile>), String>,
    /// The best backend that holds everything, or why there is none.
    sandbox: Result<&'static str, String>,
    /// The log.
    pub log: Option<LogSize>,
    /// Whether `callgate approvals watch` is running.
    watch: bool,
    /// How many questions wait.
    waiting: Option<usize>,
}

impl Health {
    /// Looks. The sandbox is tried out briefly.
    pub fn look() -> Self {
        let policy = std::env::current_dir().map_err(|error| error.to_string()).and_then(|here| {
            let loaded = load_policy(PolicyChoice::Layers(&Locations::of(&here)), None);
            loaded.map(|loaded| (loaded.policy, loaded.files)).map_err(|error| error.to_string())
        });
        let log = policy.as_ref().ok().and_then(|(policy, _)| {
            let directory = crate::audit_log::settings(policy).ok()?.directory;
            Some(LogSize { bytes: size(&directory), directory })
        });
        let sandbox = callgate_sandbox::choose(&Protection::ALL, None);
        Health {
            policy,
            sandbox: sandbox.map(|backend| backend.as_str()).map_err(|denied| denied.reason),
            log,
            watch: watching::somebody_watches(),
            waiting: waiting(),
        }
    }

    /// What is wrong, the worst first.
    pub fn problems(&self, agents: &[StatusReport], without_verdict: u64) -> Vec<Problem> {
        let problem =
            |what: String, command: &str, serious: bool| Problem { what, command: command.to_owned(), serious };
        let mut problems = Vec::new();
        if let Err(error) = &self.policy {
            let first = error.lines().next().unwrap_or_default();
            problems.push(problem(
                format!("the policy does not load, so every call is refused: {first}"),
                "callgate policy lint",
                true,
            ));
        }
        for agent in agents.iter().filter(|agent| agent.state.is_wrong()) {
            let what = format!("{}: {}", agent.title, agent.state.in_words());
            problems.push(problem(what, &install(agent), true));
        }
        if without_verdict > 0 {
            let what = format!("{without_verdict} tools ran without a verdict in the last week");
            problems.push(problem(what, "callgate audit query --kind ran_without_verdict", true));
        }
        if let Err(reason) = &self.sandbox {
            let what = format!("nothing here can contain calls, so they are asked about or refused: {reason}");
            problems.push(problem(what, "callgate doctor", false));
        }
        for file in self.policy.iter().flat_map(|(_, files)| files).filter(|file| !file.trusted) {
            if let Some(path) = &file.path {
                let what = format!("{} is not trusted: it can only tighten rules", path.display());
                problems.push(problem(what, "callgate trust", false));
            }
        }
        if let Some(waiting) = self.waiting.filter(|waiting| *waiting > 0) {
            problems.push(problem(format!("{waiting} questions wait for an answer"), "callgate approvals list", false));
        }
        for agent in agents.iter().filter(|agent| agent.state == HookState::NotInstalled) {
            problems.push(problem(format!("nothing is in front of {}", agent.title), &install(agent), false));
        }
        problems
    }

    /// Who answers, in the order of the `approvals:` section.
    fn approvers(&self) -> Vec<String> {
        let rules = self.policy.as_ref().ok().and_then(|(policy, _)| policy.approval_rules());
        let Some(rules) = rules else { return Vec::new() };
        let mut names = Vec::new();
        if !rules.rules.is_empty() {
            names.push("rules".to_owned());
        }
        names.extend(rules.default.map(|answer| format!("nobody: the default is {answer}")));
        names.extend(rules.ask.into_iter().map(|approver| match approver.who {
            ApproverKind::Agent => "the agent's prompt".to_owned(),
            ApproverKind::Terminal => "the terminal".to_owned(),
            ApproverKind::Watch => "callgate approvals watch".to_owned(),
            ApproverKind::Command(words) => format!("the command {}", words.first().map_or("", String::as_str)),
            ApproverKind::Webhook { .. } => "a web service".to_owned(),
        }));
        names
    }

    /// Who answers, in one line.
    fn answers(&self, agents: &[StatusReport]) -> String {
        let named = self.approvers();
        let mut parts = Vec::new();
        if named.is_empty() {
            let installed = |prompt: bool| {
                let agents = agents.iter().filter(|agent| agent.scope.is_some() && prompts(agent.agent) == prompt);
                agents.map(|agent| agent.title).collect::<Vec<_>>().join(", ")
            };
            let (with, without) = (installed(true), installed(false));
            if !with.is_empty() {
                parts.push(format!("{with}: in the agent's own prompt"));
            }
            if !without.is_empty() {
                let how = if self.watch {
                    "in `callgate approvals watch`"
                } else {
                    "nobody (run `callgate approvals watch`); kept for a later yes"
                };
                parts.push(format!("{without}: {how}"));
            }
            if parts.is_empty() {
                parts.push("the terminal, or `callgate approvals`".to_owned());
            }
        } else {
            parts.push(format!("as `approvals:` says: {}", named.join(", then ")));
        }
        parts.push(format!("watch is {}running", if self.watch { "" } else { "not " }));
        parts.extend(self.waiting.map(|waiting| format!("{waiting} waiting")));
        parts.join("; ")
    }

    /// All of it for programs.
    pub fn as_json(&self) -> Value {
        let policy = match &self.policy {
            Ok((_, files)) => json!({ "layers": files, "error": null }),
            Err(error) => json!({ "layers": [], "error": error }),
        };
        json!({
            "policy": policy,
            "questions": { "approvers": self.approvers(), "watch": self.watch, "waiting": self.waiting },
            "sandbox": { "backend": self.sandbox.as_ref().ok(), "reason": self.sandbox.as_ref().err() },
            "log": self.log,
        })
    }

    /// Prints one line for each.
    pub fn print(&self, agents: &[StatusReport]) {
        let line = |title: &str, text: &str| anstream::println!("{title:<20} {}", visible(text));
        let policy = match &self.policy {
            Ok((_, files)) => files.iter().map(layer).collect::<Vec<_>>().join(", "),
            Err(_) => "does not load".to_owned(),
        };
        line("policy", &policy);
        line("questions", &self.answers(agents));
        match &self.sandbox {
            Ok(backend) => {
                line("sandbox", &format!("{backend} holds everything: contained calls run without a question"))
            }
            Err(_) => {
                line("sandbox", "none that holds everything: calls that must be contained are asked about or refused")
            }
        }
        if let Some(log) = &self.log {
            line("log", &format!("{} in {}", in_units(log.bytes), log.directory.display()));
        }
    }
}

/// Prints what is wrong and what mends it.
pub fn print_problems(problems: &[Problem]) {
    if problems.is_empty() {
        anstream::println!("nothing is wrong");
    }
    for problem in problems {
        let (colour, word) = if problem.serious { (AnsiColor::Red, "wrong") } else { (AnsiColor::Yellow, "note") };
        let style = Style::new().fg_color(Some(colour.into())).bold();
        anstream::println!("{style}{word:<20}{style:#} {}", visible(&problem.what));
        anstream::println!("{:20} → {}", "", visible(&problem.command));
    }
}

fn layer(file: &FoundFile) -> String {
    let path = file.path.as_deref().map_or_else(|| "standard (bundled)".to_owned(), |path| path.display().to_string());
    let kind = match file.kind {
        LayerKind::Managed => "managed ",
        LayerKind::User => "",
        LayerKind::Project => "project ",
    };
    format!("{kind}{path}{}", if file.trusted { "" } else { " (not trusted)" })
}

/// The command that installs for an agent again.
fn install(agent: &StatusReport) -> String {
    let scope = match agent.scope {
        Some(InstallScope::Project) => " --project",
        Some(InstallScope::Managed) => " --managed",
        _ => "",
    };
    let trust = if agent.agent == "codex" { " --trust" } else { "" };
    format!("callgate install {}{scope}{trust}", agent.agent)
}

/// Whether an agent shows questions itself.
pub fn prompts(agent: &str) -> bool {
    callgate_hooks::find(agent)
        .is_some_and(|agent| agent.events().any(|event| event.kind == HookEventKind::Before && event.can_ask()))
}

/// How many questions wait. Looking makes no store.
fn waiting() -> Option<usize> {
    let path = callgate_store::default_path().filter(|path| path.exists())?;
    let store = SqliteStore::open(&path).ok()?;
    Coordinator::new(Arc::new(store)).pending().ok().map(|questions| questions.len())
}

/// The size of the files in a directory.
fn size(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
}

fn in_units(bytes: u64) -> String {
    let (unit, size) = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        .into_iter()
        .find(|(_, size)| bytes >= *size)
        .unwrap_or(("bytes", 1));
    format!("{} {unit}", bytes.checked_div(size).unwrap_or(bytes))
}
