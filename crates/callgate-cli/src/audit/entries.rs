//! `callgate audit tail`, `query`, `show`, `stats` and `export`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use callgate::policy::Decision;
use callgate_audit::export::{self, ExportFormat};
use callgate_audit::read::{self, Entries, EntryFilter, Follow, LogLine, LogStats, timeline};
use callgate_model::clock::Timestamp;
use callgate_shell::effect::Action;
use clap::{Args, ValueEnum};

use super::shown::{HEADING, cut, json, line, row};
use super::{LogArguments, text};

/// The arguments of `tail`.
#[derive(Debug, Args)]
pub struct TailArguments {
    /// How many entries
    #[arg(short = 'n', long, default_value_t = 20)]
    pub lines: usize,
    /// Keep printing new entries
    #[arg(short, long)]
    pub follow: bool,
    /// Print the lines of the log, one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Which entries are wanted.
#[derive(Debug, Args, Default)]
pub struct FilterArguments {
    /// Not before: 2h, 2026-11-15, 2026-11-15T20:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Not after
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// Of this session
    #[arg(long)]
    pub session: Option<String>,
    /// Of this kind: tool_attempt, approval, security_violation, started, finished …
    #[arg(long)]
    pub kind: Option<String>,
    /// Of this tool; * matches anything
    #[arg(long)]
    pub tool: Option<String>,
    /// Calls with this effect: list, read, write, delete, run, connect, send, privilege, opaque
    #[arg(long, value_parser = word::<Action>)]
    pub effect: Option<Action>,
    /// Calls with this decision: allow, contain, ask, deny
    #[arg(long, value_parser = word::<Decision>)]
    pub decision: Option<Decision>,
    /// Calls that this rule decided
    #[arg(long)]
    pub rule: Option<String>,
    /// Calls that touch something at or below this path; * matches anything
    #[arg(long)]
    pub path: Option<String>,
    /// Calls that reach this host or one below it
    #[arg(long)]
    pub host: Option<String>,
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text)
        .ok_or_else(|| "expected a time such as 2h (ago), 2026-11-15 or 2026-11-15T20:00:00Z".to_owned())
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|error| error.to_string())
}

impl FilterArguments {
    fn filter(&self, housekeeping: bool) -> EntryFilter {
        EntryFilter {
            since: self.since,
            until: self.until,
            session: self.session.clone(),
            call: None,
            kind: self.kind.clone(),
            tool: self.tool.clone(),
            effect: self.effect,
            decision: self.decision,
            rule: self.rule.clone(),
            path: self.path.clone(),
            host: self.host.clone(),
            housekeeping,
        }
    }
}

/// How found entries are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people
    Table,
    /// The lines of the log, one JSON object per line
    Json,
    /// For spreadsheets
    Csv,
}

/// The arguments of `query`.
#[derive(Debug, Args)]
pub struct QueryArguments {
    /// Which entries
    #[command(flatten)]
    pub filter: FilterArguments,
    /// How they are printed
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
    /// The same as --format json
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The call's id
    pub call: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `stats`.
#[derive(Debug, Args)]
pub struct StatsArguments {
    /// Which entries
    #[command(flatten)]
    pub filter: FilterArguments,
    /// List the rules of this policy that never decided: a file, or strict, standard, permissive, unattended
    #[arg(long)]
    pub policy: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// json, csv, ocsf or otel
    #[arg(long, default_value = "json")]
    pub format: ExportFormat,
    /// Write to this file instead of standard output
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Send to an OpenTelemetry collector, such as http://localhost:4318/v1/logs
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    pub to: Option<String>,
    /// Which entries
    #[command(flatten)]
    pub filter: FilterArguments,
}

/// `callgate audit tail`
pub fn tail(log: &LogArguments, arguments: &TailArguments) -> Result<u8, String> {
    let directory = log.directory()?;
    // before the entries are read, so that none falls in between
    let mut follow = arguments.follow.then(|| Follow::from_end(&directory)).transpose().map_err(text)?;
    let mut last: VecDeque<LogLine> = VecDeque::new();
    for entry in Entries::open(&directory).map_err(text)? {
        if last.len() >= arguments.lines {
            last.pop_front();
        }
        last.push_back(entry.map_err(text)?);
    }
    let print = |found: &LogLine| if arguments.json { line(&found.line) } else { line(&row(&found.entry)) };
    if !arguments.json && !line(HEADING)? {
        return Ok(0);
    }
    let mut seen = 0;
    for found in last.iter().rev().take(arguments.lines).rev() {
        seen = found.entry.seq;
        if !print(found)? {
            return Ok(0);
        }
    }
    while let Some(follow) = &mut follow {
        for found in follow.poll().map_err(text)?.iter().filter(|found| found.entry.seq > seen) {
            if !print(found)? {
                return Ok(0);
            }
        }
        std::thread::sleep(Follow::PAUSE);
    }
    Ok(0)
}

/// The entries that a filter wants.
fn wanted<'a>(
    log: &LogArguments,
    filter: &'a EntryFilter,
) -> Result<impl Iterator<Item = Result<LogLine, callgate_audit::AuditError>> + 'a, String> {
    let entries = Entries::open(&log.directory()?).map_err(text)?;
    Ok(entries.filter(move |found| found.as_ref().is_ok_and(|found| filter.wants(&found.entry)) || found.is_err()))
}

/// `callgate audit query`
pub fn query(log: &LogArguments, arguments: &QueryArguments) -> Result<u8, String> {
    let filter = arguments.filter.filter(false);
    let entries = wanted(log, &filter)?;
    let format = if arguments.json { TableFormat::Json } else { arguments.format };
    if format == TableFormat::Csv {
        return written(export::export(entries, ExportFormat::Csv, &mut io::stdout().lock()));
    }
    if format == TableFormat::Table && !line(HEADING)? {
        return Ok(0);
    }
    for found in entries {
        let found = found.map_err(text)?;
        let more = if format == TableFormat::Json { line(&found.line)? } else { line(&row(&found.entry))? };
        if !more {
            break;
        }
    }
    Ok(0)
}

/// A reader that went away is no error.
fn written(result: Result<u64, callgate_audit::AuditError>) -> Result<u8, String> {
    match result {
        Ok(_) => Ok(0),
        Err(callgate_audit::AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(error.to_string()),
    }
}

/// `callgate audit show`
pub fn show(log: &LogArguments, arguments: &ShowArguments) -> Result<u8, String> {
    let found = read::call(&log.directory()?, &arguments.call).map_err(text)?;
    for LogLine { entry, line: raw } in &found {
        if arguments.json {
            line(raw)?;
            continue;
        }
        let step = timeline(entry).and_then(|step| serde_json::to_value(step.step).ok());
        let step = step.as_ref().and_then(|step| step.as_str()).unwrap_or_default();
        line(&format!("{}  {step}", row(entry)))?;
        if let callgate_audit::entry::EntryBody::ToolAttempt(attempt) = &entry.record.body {
            line(&format!("           input    {}", cut(&attempt.input.to_string(), 2_000)))?;
            line(&format!("           reason   {}", cut(&attempt.reason, 500)))?;
            if let Some(place) = &attempt.rule_place {
                line(&format!("           rule at  {}", cut(place, 500)))?;
            }
            for effect in read::effects_of(attempt) {
                let action = effect.action.as_str();
                line(&format!("           {action:<8} {}", cut(&effect.shown, 500)))?;
            }
        }
    }
    Ok(0)
}

/// `callgate audit stats`
pub fn stats(log: &LogArguments, arguments: &StatsArguments) -> Result<u8, String> {
    let filter = arguments.filter.filter(false);
    let mut stats = LogStats::default();
    for found in wanted(log, &filter)? {
        stats.add(&found.map_err(text)?.entry);
    }
    let rules = arguments.policy.as_deref().map(rule_names).transpose()?.unwrap_or_default();
    stats.finish(rules, 10);
    if arguments.json {
        return json(&stats);
    }
    let mut out = String::new();
    use std::fmt::Write as _;
    let _ = writeln!(out, "{} calls", stats.calls);
    for (decision, count) in &stats.decisions {
        let _ = writeln!(out, "  {decision:<8} {count:>8}");
    }
    let _ = writeln!(out, "\nprompts per day\n{}", stats.chart(40));
    if stats.answered > 0 {
        let rate = stats.approved.saturating_mul(100) / stats.answered.max(1);
        let _ = writeln!(
            out,
            "{} answers: {rate} % approved, {} timed out, {} more reused",
            stats.answered, stats.timed_out, stats.cached
        );
    }
    if stats.unanswered > 0 {
        let _ = writeln!(out, "{} questions could not be put to anybody", stats.unanswered);
    }
    if let (Some(median), Some(slow)) = (stats.median_answer_ms, stats.slow_answer_ms) {
        let _ = writeln!(out, "time to answer: half within {median} ms, nine in ten within {slow} ms");
    }
    let lists = [("most asked", &stats.most_asked), ("rules that decided", &stats.rules)];
    for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(out, "\n{title}");
        for counted in list.iter().take(15) {
            let _ = writeln!(out, "  {:>8}  {}", counted.count, cut(&counted.what, 100));
        }
    }
    if !stats.silent_rules.is_empty() {
        let _ = writeln!(out, "\nrules that never decided\n  {}", stats.silent_rules.join(", "));
    }
    if !stats.violations.is_empty() {
        let levels: Vec<String> = stats.violations.iter().map(|(level, count)| format!("{count} {level}")).collect();
        let _ = writeln!(out, "\nviolations: {}", levels.join(", "));
    }
    if stats.without_verdict > 0 {
        let _ = writeln!(out, "\n{} tools ran without a verdict", stats.without_verdict);
    }
    line(out.trim_end())?;
    Ok(0)
}

/// The names of a policy's rules, as its file gives them.
fn rule_names(policy: &str) -> Result<Vec<String>, String> {
    let text = match callgate::policy::Policy::bundled_text(policy) {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(policy).map_err(|error| format!("cannot read {policy}: {error}"))?,
    };
    Ok(text
        .lines()
        .filter_map(|line| {
            line.trim().strip_prefix("- name:").map(|name| name.trim().trim_matches(['"', '\'']).to_owned())
        })
        .collect())
}

/// `callgate audit export`
pub fn export(log: &LogArguments, arguments: &ExportArguments) -> Result<u8, String> {
    let filter = arguments.filter.filter(true);
    let entries = wanted(log, &filter)?;
    if let Some(collector) = &arguments.to {
        if arguments.format != ExportFormat::OpenTelemetry {
            return Err("--to needs --format otel".to_owned());
        }
        let count = export::OtlpCollector::new(collector).send(entries).map_err(text)?;
        line(&format!("{count} entries"))?;
        return Ok(0);
    }
    match &arguments.output {
        Some(path) => {
            let file = File::create_new(path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
            let mut file = BufWriter::new(file);
            let count = export::export(entries, arguments.format, &mut file).map_err(text)?;
            file.flush().map_err(text)?;
            line(&format!("{count} entries"))?;
            Ok(0)
        }
        None => written(export::export(entries, arguments.format, &mut BufWriter::new(io::stdout().lock()))),
    }
}
