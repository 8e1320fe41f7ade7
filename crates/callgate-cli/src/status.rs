//! `callgate status`: whether callgate is installed for each agent and really called.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anstyle::{AnsiColor, Style};
use callgate::show::visible;
use callgate_audit::read::Entries;
use callgate_install::{HookState, InstallScope, StatusReport, report};
use callgate_model::clock::Timestamp;
use clap::Args;
use serde_json::{Value, json};

use crate::agents::environment;
use crate::health::{self, Health};
use crate::outcome::{Outcome, Trouble};

/// The arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Only these agents [default: all]
    pub agents: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The kind of log entry for a tool that ran without a verdict.
const WITHOUT_VERDICT: &str = "ran_without_verdict";
/// How far back the log is searched.
const LATELY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Reports on every agent. A problem has its own exit code.
pub fn run(arguments: &StatusArguments) -> Result<Outcome, Trouble> {
    let reports = reports(&arguments.agents)?;
    let without_verdict = without_verdict();
    let health = Health::look();
    let problems = health.problems(&reports, without_verdict.values().fold(0, |sum, count| sum.saturating_add(*count)));
    if arguments.json {
        let agents: Vec<Value> = reports.iter().map(as_json).collect();
        let mut answer = json!({ "agents": agents, "ran_without_verdict": without_verdict, "problems": problems });
        if let (Value::Object(answer), Value::Object(health)) = (&mut answer, health.as_json()) {
            answer.extend(health);
        }
        anstream::println!("{answer}");
    } else {
        for report in reports.iter().filter(|report| report.state != HookState::NotFound) {
            print(report);
        }
        let missing: Vec<&str> =
            reports.iter().filter(|report| report.state == HookState::NotFound).map(|report| report.title).collect();
        if !missing.is_empty() {
            let dim = Style::new().dimmed();
            anstream::println!("{dim}not found: {}{dim:#}", missing.join(", "));
        }
        health.print(&reports);
        health::print_problems(&problems);
    }
    Ok(if problems.iter().any(|problem| problem.serious) { Outcome::Found } else { Outcome::Done })
}

/// The state of the hook in these agents, or in all.
pub fn reports(agents: &[String]) -> Result<Vec<StatusReport>, Trouble> {
    let environment = environment()?;
    let recipes = crate::install::recipes(agents, |_| true)?;
    Ok(recipes.into_iter().flat_map(|recipe| report(recipe, &environment)).collect())
}

/// A report for programs.
fn as_json(report: &StatusReport) -> Value {
    let mut shown = json!(report);
    if let Value::Object(fields) = &mut shown {
        fields.insert("called_today".to_owned(), json!(called_today(report)));
        fields.insert("prompts".to_owned(), json!(health::prompts(report.agent)));
    }
    shown
}

/// Whether the agent called the hook in the last 24 hours.
fn called_today(report: &StatusReport) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    report.seen.as_ref().is_some_and(|seen| now.saturating_sub(seen.time) < 24 * 60 * 60)
}

fn print(report: &StatusReport) {
    let colour = match report.state {
        HookState::Active | HookState::Proven => Some(AnsiColor::Green),
        HookState::Skipped | HookState::Altered => Some(AnsiColor::Red),
        HookState::Installed => Some(AnsiColor::Yellow),
        HookState::NotInstalled | HookState::NotFound => None,
    };
    let style = Style::new().fg_color(colour.map(Into::into));
    let mut remarks = Vec::new();
    if let Some(scope) = report.scope {
        remarks.push(format!("for {}", for_whom(scope)));
    }
    if let Some(seen) = &report.seen {
        let today = if called_today(report) { "" } else { ", not today" };
        remarks.push(format!("last called {}{today}", when(seen.time)));
    } else if let Some(proven) = report.proven {
        remarks.push(format!("tested {}", when(proven)));
    }
    if report.state == HookState::NotInstalled {
        remarks.push(format!("callgate install {}", report.agent));
    }
    anstream::println!("{:<20} {style}{:<22}{style:#} {}", report.title, report.state.in_words(), remarks.join(", "));
    for problem in &report.problems {
        anstream::println!("{:20} {}", "", visible(problem));
    }
}

fn for_whom(scope: InstallScope) -> &'static str {
    match scope {
        InstallScope::User => "this user",
        InstallScope::Project => "this project",
        InstallScope::Managed => "everybody",
    }
}

/// Roughly how long ago.
fn when(seconds: u64) -> String {
    let then = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH);
    match SystemTime::now().duration_since(then) {
        Ok(ago) if ago.as_secs() < 60 => "just now".to_owned(),
        Ok(ago) => {
            let minutes = Duration::from_secs(ago.as_secs().saturating_sub(ago.as_secs() % 60));
            let shown = humantime::format_duration(minutes).to_string();
            format!("{} ago", shown.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        }
        Err(_) => "in the future".to_owned(),
    }
}

/// Counts, per agent, the tools in the user's log that recently ran without a verdict.
fn without_verdict() -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let now = Timestamp::now();
    // the log of the policy that applies here
    let settings = std::env::current_dir()
        .ok()
        .and_then(|here| crate::audit_log::settings(&crate::choice::policy(None, &here).ok()?.policy).ok());
    let entries = settings.and_then(|settings| Entries::open(&settings.directory).ok());
    for line in entries.into_iter().flatten().flatten() {
        let record = line.entry.record;
        if record.body.kind() == WITHOUT_VERDICT && line.entry.time.until(now) <= LATELY {
            let count: &mut u64 = counts.entry(record.agent.unwrap_or_else(|| "unknown".to_owned())).or_default();
            *count = count.saturating_add(1);
        }
    }
    counts
}
