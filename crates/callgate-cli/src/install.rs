//! `callgate install` and `callgate uninstall`.

use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use callgate::policy::Decision;
use callgate::show::visible;
use callgate::{Call, Gate};
use callgate_hooks::HookEventKind;
use callgate_install::{
    CanaryExpectation, HARD_DENIES, HARMFUL, HARMLESS, HardDeny, HostEnvironment, InstallError, InstallReceipt,
    InstallReport, InstallScope, Installer, Recipe, all, detect, find,
};
use clap::Args;
use serde_json::{Value, json};

use crate::outcome::{Outcome, Trouble};
use crate::own_rules::{self, ImportWish, OwnRules};
use crate::{agents, choice, terminal};

/// The scope of an installation.
#[derive(Debug, Args, Clone, Copy)]
#[group(multiple = false)]
pub struct ScopeArguments {
    /// For this user, in every project (the default)
    #[arg(long)]
    pub user: bool,
    /// For this project
    #[arg(long)]
    pub project: bool,
    /// For every user of this machine, so that users and agents cannot switch it off; needs root
    #[arg(long)]
    pub managed: bool,
}

impl ScopeArguments {
    fn scope(self) -> InstallScope {
        match (self.project, self.managed) {
            (true, _) => InstallScope::Project,
            (_, true) => InstallScope::Managed,
            _ => InstallScope::User,
        }
    }
}

/// The arguments of `install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    /// claude, codex, gemini, copilot, cursor, opencode, qwen, windsurf, amp, goose [default: list the agents found]
    pub agents: Vec<String>,
    /// Every agent that is found on this machine
    #[arg(long, conflicts_with = "agents")]
    pub all: bool,
    /// The scope
    #[command(flatten)]
    pub scope: ScopeArguments,
    /// Show the changes without making them
    #[arg(long)]
    pub dry_run: bool,
    /// Mark the hook as trusted for Codex, which skips untrusted hooks
    #[arg(long)]
    pub trust: bool,
    /// Who answers questions: the agent's own prompt, `callgate approvals` while the call waits, or nobody [default: the agent's
    /// prompt if it has one, else a running `callgate approvals watch`, else the question is refused and kept]
    #[arg(long, value_name = "WHOM", value_parser = ["auto", "agent", "approvers", "nobody"])]
    pub ask: Option<String>,
    /// Import the agent's own permission rules into your policy, where callgate would decide otherwise [default: ask at a terminal]
    #[arg(long, conflicts_with = "no_import")]
    pub import: bool,
    /// Leave the agent's own permission rules
    #[arg(long)]
    pub no_import: bool,
    /// Do not add denies to the agents' own permission rules
    #[arg(long)]
    pub no_rules: bool,
    /// The callgate program that hooks start [default: this one]
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl InstallArguments {
    /// What to do with the agent's own rules.
    fn import_wish(&self) -> ImportWish {
        match (self.import, self.no_import) {
            (_, true) => ImportWish::Leave,
            _ if self.dry_run => ImportWish::Say,
            (true, _) => ImportWish::Import,
            _ if self.json => ImportWish::Say,
            _ => ImportWish::Ask,
        }
    }
}

/// The arguments of `uninstall`.
#[derive(Debug, Args)]
pub struct UninstallArguments {
    /// The agents
    #[arg(required_unless_present = "all")]
    pub agents: Vec<String>,
    /// Every agent
    #[arg(long, conflicts_with = "agents")]
    pub all: bool,
    /// The scope
    #[command(flatten)]
    pub scope: ScopeArguments,
    /// Show the changes without making them
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Installs, or lists what could be installed.
pub fn install(arguments: &InstallArguments) -> Result<Outcome, Trouble> {
    let environment = agents::environment()?;
    let scope = arguments.scope.scope();
    let program = program(arguments.program.as_deref())?;
    let directory = environment.own_state().join("canary");
    let gate = Gate::builder().policy(choice::policy(None, &directory)?.policy).build();
    let mirror = if arguments.no_rules { Vec::new() } else { denied(&gate, &directory) };
    let mut installer = Installer {
        environment: &environment,
        program: &program,
        scope,
        denies: &mirror,
        trust: arguments.trust,
        ask: arguments.ask.as_deref(),
        expected: expected(&gate, &directory),
    };
    if arguments.agents.is_empty() && !arguments.all {
        return offer(&installer, arguments.json);
    }
    let recipes = recipes(&arguments.agents, |recipe| detect(recipe, &environment).is_some())?;
    if recipes.is_empty() {
        return Err(Trouble::new("found no agent on this machine; name one to install for it anyway"));
    }
    let trusted = || InstallReceipt::load(&environment, "codex", scope).is_some_and(|receipt| receipt.is_trusted());
    if recipes.iter().any(|recipe| recipe.name() == "codex")
        && scope != InstallScope::Managed
        && !installer.trust
        && !trusted()
    {
        installer.trust = !arguments.dry_run && !arguments.json && ask_for_trust(&program);
    }
    if let Some(warning) = replaceable(&program, &environment) {
        anstream::eprintln!("callgate: {warning}");
    }
    let mut outcome = Outcome::Done;
    for recipe in recipes {
        // Before callgate adds denies to them.
        let own = own_rules::find(recipe.name(), &environment);
        let mut done = if arguments.dry_run { installer.preview(recipe) } else { installer.install(recipe) };
        if let Ok(steps) = &mut done {
            let open = within_reach(steps, &gate, &environment.project);
            steps.advice.extend(open);
            steps.advice.extend(questions(recipe, arguments.ask.as_deref()));
        }
        let enforced = installer.trust || scope == InstallScope::Managed || recipe.name() != "codex" || trusted();
        let words = match (arguments.dry_run, enforced) {
            (true, _) => "would be installed",
            (false, true) => "installed",
            (false, false) => "written, and not active: Codex skips hooks that you have not trusted",
        };
        if let (false, Ok(steps)) = (enforced, &mut done) {
            steps.advice.push("to trust it, run: callgate install codex --trust, or /hooks in Codex".to_owned());
            outcome = if arguments.dry_run { outcome } else { Outcome::Found };
        }
        let own = own.unwrap_or_else(|why| {
            anstream::eprintln!("{}: cannot read your own rules: {why}", recipe.title());
            Vec::new()
        });
        let own = (own.as_slice(), arguments.import_wish());
        outcome = told(recipe, scope, done, words, arguments.dry_run, arguments.json, own).unwrap_or(outcome);
    }
    Ok(outcome)
}

/// Removes what was installed.
pub fn uninstall(arguments: &UninstallArguments) -> Result<Outcome, Trouble> {
    let environment = agents::environment()?;
    let scope = arguments.scope.scope();
    let program = program(None)?;
    let installer = Installer {
        environment: &environment,
        program: &program,
        scope,
        denies: HARD_DENIES,
        trust: true,
        ask: None,
        expected: CanaryExpectation::default(),
    };
    let mut outcome = Outcome::Done;
    for recipe in recipes(&arguments.agents, |_| true)? {
        let done = if arguments.dry_run { installer.preview_removal(recipe) } else { installer.uninstall(recipe) };
        // With --all, mention only the agents for which something was removed.
        if arguments.all && done.as_ref().is_ok_and(|steps| !steps.changes() && steps.left.is_empty()) {
            continue;
        }
        let is_left = done.as_ref().is_ok_and(|steps| !steps.left.is_empty());
        outcome = if is_left { Outcome::Found } else { outcome };
        let words = match (arguments.dry_run, is_left) {
            (true, _) => "would be removed",
            (false, true) => "removed in part",
            (false, false) => "removed",
        };
        let none = (&[][..], ImportWish::Leave);
        outcome = told(recipe, scope, done, words, arguments.dry_run, arguments.json, none).unwrap_or(outcome);
    }
    Ok(outcome)
}

/// The agents that were named; without names, all that are wanted.
pub fn recipes(names: &[String], wanted: impl Fn(&Recipe) -> bool) -> Result<Vec<&'static Recipe>, Trouble> {
    if names.is_empty() {
        return Ok(all().iter().filter(|recipe| wanted(recipe)).collect());
    }
    names
        .iter()
        .map(|name| {
            find(name).ok_or_else(|| {
                let known: Vec<&str> = all().iter().map(|recipe| recipe.name()).collect();
                Trouble::new(format!("unknown agent `{}`; expected one of {}", visible(name), known.join(", ")))
            })
        })
        .collect()
}

/// The program that hooks start: absolute, because agents start hooks anywhere.
fn program(given: Option<&Path>) -> Result<PathBuf, Trouble> {
    let unknown = |error: std::io::Error| Trouble::new(format!("cannot find the callgate program: {error}"));
    let program = match given {
        Some(path) => std::path::absolute(path).map_err(unknown)?,
        None => std::env::current_exe().map_err(unknown)?,
    };
    if !program.is_file() {
        return Err(Trouble::new(format!("{} is not a program", program.display())));
    }
    if program.to_str().is_none_or(|text| text.contains(['\n', '\r', '\0'])) {
        return Err(Trouble::new(
            "the path of the callgate program is not valid UTF-8, so it cannot be written into settings",
        ));
    }
    Ok(program)
}

/// Warns if agents could replace the program.
fn replaceable(program: &Path, environment: &HostEnvironment) -> Option<String> {
    let inside = |directory: &Path| program.starts_with(directory);
    let place = if inside(&environment.project) && environment.project != environment.home {
        "in this project"
    } else if inside(&std::env::temp_dir()) {
        "in the temporary directory"
    } else {
        return None;
    };
    Some(format!("{} is {place}, where agents can write; move it elsewhere and install again", program.display()))
}

/// The decisions that the policy makes on the calls that test a hook.
fn expected(gate: &Gate, directory: &Path) -> CanaryExpectation {
    let decision = |command: &str| decision(gate, Call::new("Bash", json!({ "command": command })), directory);
    CanaryExpectation {
        harmless_allowed: decision(HARMLESS) == Decision::Allow,
        harmful_denied: decision(HARMFUL) == Decision::Deny,
    }
}

/// The hard denies that this user's policy really makes.
fn denied(gate: &Gate, directory: &Path) -> Vec<HardDeny> {
    HARD_DENIES.iter().copied().filter(|deny| decision(gate, deny.call(), directory) == Decision::Deny).collect()
}

fn decision(gate: &Gate, call: Call, directory: &Path) -> Decision {
    crate::check::decision(&gate.assess(&call.directory(directory).workspace(directory)))
}

/// How questions about the calls of an agent will be answered.
fn questions(recipe: &Recipe, ask: Option<&str>) -> Option<String> {
    let agent = callgate_hooks::find(recipe.name())?;
    let prompts = agent.events().any(|event| event.kind == HookEventKind::Before && event.can_ask());
    let title = recipe.title();
    Some(match (ask.unwrap_or("auto"), prompts) {
        ("approvers", _) => {
            "questions wait for your answer in `callgate approvals watch`, or with `callgate approvals list`".to_owned()
        }
        ("nobody", _) => "questions are refused and kept; `callgate approvals list` shows them".to_owned(),
        (_, true) => format!("{title} shows questions in its own prompt"),
        _ => format!(
            "{title} has no prompt for questions: keep `callgate approvals watch` open in another terminal and calls wait for you; otherwise they are refused and kept, and after `callgate approvals approve ID` one retry passes"
        ),
    })
}

/// The files with hooks that this user's policy lets agents write.
fn within_reach(steps: &InstallReport, gate: &Gate, project: &Path) -> Vec<String> {
    let writes = |path: &Path| Call::new("Write", json!({ "file_path": path, "content": "" }));
    steps
        .files
        .iter()
        .filter(|step| {
            let real = step.path.canonicalize().unwrap_or_else(|_| step.path.clone());
            [&step.path, &real].iter().any(|path| decision(gate, writes(path), project) == Decision::Allow)
        })
        .map(|step| {
            format!(
                "your policy lets agents write {}, so they can switch callgate off; add a rule that denies it",
                step.path.display()
            )
        })
        .collect()
}

fn ask_for_trust(program: &Path) -> bool {
    let question = format!("Codex runs only hooks that you trust. Trust `{} hook codex`?", program.display());
    terminal::agrees(&question).unwrap_or(false)
}

/// Lists the agents on this machine and the changes that installing would make.
fn offer(installer: &Installer<'_>, as_json: bool) -> Result<Outcome, Trouble> {
    let mut found = Vec::new();
    for recipe in all() {
        let Some(by) = detect(recipe, installer.environment) else { continue };
        let steps = installer.preview(recipe);
        let files: Vec<String> = steps
            .iter()
            .flat_map(|steps| &steps.files)
            .filter(|step| step.changes())
            .map(|step| step.path.display().to_string())
            .collect();
        let why_not = steps.as_ref().err().map(ToString::to_string);
        if as_json {
            found.push(json!({
                "agent": recipe.name(),
                "title": recipe.title(),
                "found": by,
                "installed": steps.is_ok() && files.is_empty(),
                "files": files,
                "error": why_not,
            }));
            continue;
        }
        let bold = Style::new().bold();
        anstream::println!("{bold}{}{bold:#}  ({})", recipe.title(), visible(&by.to_string_lossy()));
        match why_not {
            Some(why_not) => anstream::println!("    {}", visible(&why_not)),
            None if files.is_empty() => anstream::println!("    already installed"),
            None => files.iter().for_each(|file| anstream::println!("    would change {}", visible(file))),
        }
        found.push(json!(recipe.name()));
    }
    if as_json {
        anstream::println!("{}", json!(found));
    } else if found.is_empty() {
        anstream::println!("found no agent on this machine; `callgate install NAME` installs for one anyway");
    } else {
        let names: Vec<&str> = found.iter().filter_map(|name| name.as_str()).collect();
        anstream::println!("\nnothing was changed; to install, run: callgate install {}", names.join(" "));
        anstream::println!("to see every change first: callgate install --all --dry-run");
    }
    Ok(Outcome::Done)
}

/// Prints the result for one agent; returns an outcome if it failed.
fn told(
    recipe: &Recipe,
    scope: InstallScope,
    done: Result<InstallReport, InstallError>,
    words: &str,
    dry_run: bool,
    as_json: bool,
    (own, wish): (&[OwnRules], ImportWish),
) -> Option<Outcome> {
    let settle = || own.iter().map(|rules| rules.settle(wish, as_json)).collect::<Vec<_>>();
    let failed = |own: &[Value]| own.iter().any(OwnRules::failed).then_some(Outcome::Found);
    if as_json {
        let own = if done.is_ok() { settle() } else { Vec::new() };
        let told = match &done {
            Ok(steps) => json!({
                "agent": recipe.name(),
                "scope": scope.name(),
                "changed": steps.changes() && !dry_run,
                "files": steps.files.iter().filter(|step| step.changes()).map(|step| json!({
                    "path": step.path,
                    "diff": step.diff(),
                })).collect::<Vec<_>>(),
                "shown": steps.shown,
                "advice": steps.advice,
                "left": steps.left,
                "own_rules": own,
            }),
            Err(error) => json!({ "agent": recipe.name(), "scope": scope.name(), "error": error.to_string() }),
        };
        anstream::println!("{told}");
        return done.is_err().then_some(Outcome::Found).or_else(|| failed(&own));
    }
    let title = recipe.title();
    let steps = match done {
        Ok(steps) => steps,
        Err(error) => {
            anstream::eprintln!("{title}: {}", visible(&error.to_string()));
            return Some(Outcome::Found);
        }
    };
    let good = Style::new().fg_color(Some(AnsiColor::Green.into()));
    let dim = Style::new().dimmed();
    if !steps.changes() {
        anstream::println!("{title}: nothing to change");
    } else if dry_run {
        steps.files.iter().filter(|step| step.changes()).for_each(|step| print_diff(&step.diff()));
        anstream::println!("{title}: {words}; nothing was changed");
    } else {
        anstream::println!("{title}: {good}{words}{good:#}");
        for step in steps.files.iter().filter(|step| step.changes()) {
            anstream::println!("    {}", visible(&step.path.to_string_lossy()));
        }
    }
    if !steps.shown.is_empty() {
        anstream::println!("    {dim}tested: {}{dim:#}", steps.shown.join(", "));
    }
    for advice in &steps.advice {
        anstream::println!("    note: {}", visible(advice));
    }
    failed(&settle())
}

fn print_diff(diff: &str) {
    for line in diff.lines() {
        let colour = match line.as_bytes().first() {
            Some(b'+') => Some(AnsiColor::Green),
            Some(b'-') => Some(AnsiColor::Red),
            Some(b'@') => Some(AnsiColor::Cyan),
            _ => None,
        };
        let style = Style::new().fg_color(colour.map(Into::into));
        anstream::println!("{style}{}{style:#}", visible(line));
    }
}
