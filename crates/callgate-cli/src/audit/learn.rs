//! `callgate audit replay`, `callgate policy suggest` and `callgate policy diff`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use callgate::assess::Assessor;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::{Decision, Policy};
use callgate::show::visible;
use callgate_audit::entry::EntryBody;
use callgate_audit::learn::{DifferingCall, RecordedCall, Replay, ReplayChanges, compare, suggest as propose};
use callgate_audit::read::{self, Entries};
use clap::{Args, ValueEnum};

use super::shown::{Progress, cut, json, line};
use super::{CHANGES, LogArguments, text};

/// Which changes make `replay` fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any change
    Any,
    /// A call would run that did not
    Allowed,
    /// A call would be asked about that was not
    Asked,
    /// A call would be refused that was not
    Refused,
    /// No change
    None,
}

/// The arguments of `audit replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The policy to judge by: a file, or strict, standard, permissive, unattended
    #[arg(long, value_name = "POLICY")]
    pub policy: String,
    /// Which changes make the command fail
    #[arg(long, value_enum, default_values_t = [FailOn::Any], value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `policy suggest`.
#[derive(Debug, Args)]
pub struct SuggestArguments {
    /// The policy that rules would be added to: a file, or strict, standard, permissive, unattended
    #[arg(long, value_name = "POLICY", default_value = "standard")]
    pub policy: String,
    /// How many rules to propose at most
    #[arg(short = 'n', long, default_value_t = 10)]
    pub count: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The log
    #[command(flatten)]
    pub log: LogArguments,
}

/// The arguments of `policy diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The old policy: a file, or strict, standard, permissive, unattended
    pub old: String,
    /// The new one
    pub new: String,
    /// Also compare on the calls of the log
    #[arg(long)]
    pub recorded: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The log
    #[command(flatten)]
    pub log: LogArguments,
}

fn load(policy: &str) -> Result<Assessor, String> {
    let loaded = load_policy(PolicyChoice::Named(policy), None).map_err(text)?;
    Ok(Assessor::new(loaded.policy))
}

/// `callgate audit replay`
pub fn replay(log: &LogArguments, arguments: &ReplayArguments) -> Result<u8, String> {
    let directory = log.directory()?;
    let assessor = load(&arguments.policy)?;
    let progress = Progress::new("judging", read::last_number(&directory).map_err(text)?);
    let entries = Entries::open(&directory).map_err(text)?.map(|found| found.map(|found| found.entry));
    let replay = Replay::of(entries, &assessor, &mut |done| progress.at(done)).map_err(text)?;
    drop(progress);
    let failing = arguments.fail_on.iter().any(|fail_on| match fail_on {
        FailOn::Any => replay.changes_anything(),
        FailOn::Allowed => replay.newly_allowed.count > 0,
        FailOn::Asked => replay.newly_asked.count > 0,
        FailOn::Refused => replay.newly_refused.count > 0,
        FailOn::None => false,
    });
    if arguments.json {
        json(&replay)?;
    } else {
        line(&format!("{} calls judged again", replay.calls))?;
        changes("newly allowed", &replay.newly_allowed)?;
        changes("newly asked about", &replay.newly_asked)?;
        changes("newly refused", &replay.newly_refused)?;
        line(&match replay.prompts_saved() {
            saved @ 0.. => {
                format!("prompts: {} before, {} after, {saved} saved", replay.prompts_before, replay.prompts_after)
            }
            more => format!(
                "prompts: {} before, {} after, {} more",
                replay.prompts_before,
                replay.prompts_after,
                more.unsigned_abs()
            ),
        })?;
        if replay.inexact > 0 {
            line(&format!("{} calls were judged with redacted or truncated parts", replay.inexact))?;
        }
        if replay.left_out > 0 {
            line(&format!("{} calls were too large to be recorded and are skipped", replay.left_out))?;
        }
    }
    Ok(if failing { CHANGES } else { 0 })
}

fn changes(title: &str, changes: &ReplayChanges) -> Result<(), String> {
    line(&format!("{title}: {}", changes.count))?;
    for change in &changes.examples {
        let rule = change.rule.as_deref().unwrap_or("default");
        let was = change.was.as_str();
        line(&format!(
            "  entry {}  {was} → {} ({rule})  {}",
            change.seq,
            change.becomes.as_str(),
            cut(&change.call, 120)
        ))?;
    }
    Ok(())
}

/// The recorded calls that were asked about, each with whether somebody said yes.
pub fn asked(directory: &Path) -> Result<Vec<(RecordedCall, bool)>, String> {
    let mut calls: Vec<(RecordedCall, bool)> = Vec::new();
    let mut waiting: HashMap<String, usize> = HashMap::new();
    for found in Entries::open(directory).map_err(text)? {
        let entry = found.map_err(text)?.entry;
        match &entry.record.body {
            EntryBody::ToolAttempt(attempt) if attempt.decision == Decision::Ask => {
                if let Some(recorded) = RecordedCall::of(&entry) {
                    waiting.extend(entry.record.call.clone().map(|call| (call, calls.len())));
                    calls.push((recorded, false));
                }
            }
            EntryBody::Approval(approval) if approval.approved => {
                let call = entry.record.call.as_ref().and_then(|call| waiting.remove(call));
                if let Some((_, approved)) = call.and_then(|call| calls.get_mut(call)) {
                    *approved = true;
                }
            }
            _ => {}
        }
    }
    Ok(calls)
}

/// `callgate policy suggest`
pub fn suggest(arguments: &SuggestArguments) -> Result<u8, String> {
    if arguments.log.is_empty()? {
        return Ok(0);
    }
    let directory = arguments.log.directory()?;
    let calls = asked(&directory)?;
    let suggestions = propose(&calls, &load(&arguments.policy)?, arguments.count);
    if arguments.json {
        return json(&suggestions);
    }
    if suggestions.is_empty() {
        line(&format!("no rule would have saved prompts ({} questions examined)", calls.len()))?;
    }
    for suggestion in &suggestions {
        line(&format!("# saves {} prompts, such as {}", suggestion.saves, cut(&suggestion.examples.join(" · "), 150)))?;
        line(&format!("# also covers: {}", cut(&suggestion.also, 200)))?;
        for call in &suggestion.also_recorded {
            line(&format!("# also allows this call, which nobody approved: {}", cut(call, 150)))?;
        }
        line(suggestion.rule.trim_end())?;
        line("")?;
    }
    Ok(0)
}

/// A call that shows a difference, in one line.
fn shown(witness: &DifferingCall) -> String {
    let rule = witness.rule.as_deref().unwrap_or("default");
    let (old, new) = (witness.old.as_str(), witness.new.as_str());
    format!("{old} → {new} ({})  {}", visible(rule), cut(&witness.call, 120))
}

/// What would become possible in a directory if one policy took the place of another: how many of the calls that were tried, and
/// some of them, the strictest of the old answers first and every rule once before any rule twice.
pub fn becomes_possible(old: Arc<Policy>, new: Arc<Policy>, directory: &Path) -> (usize, Vec<String>) {
    const EXAMPLES: usize = 10;
    let mut looser = compare(&Assessor::new(old), &Assessor::new(new), directory, &[]).looser;
    let mut seen: HashMap<Option<String>, usize> = HashMap::new();
    let count = looser.len();
    looser.sort_by_key(|witness| std::cmp::Reverse(witness.old));
    looser.sort_by_cached_key(|witness| {
        let times = seen.entry(witness.rule.clone()).or_default();
        *times = times.saturating_add(1);
        *times
    });
    (count, looser.iter().take(EXAMPLES).map(shown).collect())
}

/// `callgate policy diff`
pub fn diff(arguments: &DiffArguments) -> Result<u8, String> {
    let [old, new] = [&arguments.old, &arguments.new].map(|policy| load(policy));
    let (old, new) = (old?, new?);
    let recorded: Vec<RecordedCall> = if arguments.recorded && !arguments.log.is_empty()? {
        let entries = Entries::open(&arguments.log.directory()?).map_err(text)?;
        entries.filter_map(|found| RecordedCall::of(&found.ok()?.entry)).take(100_000).collect()
    } else {
        Vec::new()
    };
    let here = std::env::current_dir().map_err(text)?;
    let difference = compare(&old, &new, &here, &recorded);
    if arguments.json {
        json(&difference)?;
    } else {
        line(&format!("{} calls compared", difference.compared))?;
        for (title, list) in [("becomes possible", &difference.looser), ("becomes stricter", &difference.tighter)] {
            line(&format!("{title}: {}", list.len()))?;
            for witness in list.iter().take(40) {
                line(&format!("  {}  [{}]", shown(witness), witness.from))?;
            }
        }
        line("These are examples; other calls may differ too.")?;
    }
    let same = difference.looser.is_empty() && difference.tighter.is_empty();
    Ok(if same { 0 } else { CHANGES })
}
