//! Statistics over the log: how often callgate asked, and how people answered.

use std::collections::{BTreeMap, HashMap};

use callgate_model::decision::{Decision, OutcomeKind};
use serde::Serialize;
use serde_json::Value;

use crate::entry::{EntryBody, LogEntry, ToolAttempt};

/// How many different commands and rules are counted.
const MAXIMUM_COUNTED: usize = 100_000;

/// One day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Day {
    /// Calls.
    pub calls: u64,
    /// Calls that were asked about.
    pub prompts: u64,
    /// Calls that were refused.
    pub refused: u64,
}

/// Something and how often it was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// What.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// Numbers over a stretch of the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LogStats {
    /// Calls.
    pub calls: u64,
    /// How they were judged.
    pub decisions: BTreeMap<String, u64>,
    /// By day (UTC).
    pub days: BTreeMap<String, Day>,
    /// Questions that were answered, or not in time.
    pub answered: u64,
    /// Questions that nobody could answer.
    pub unanswered: u64,
    /// Answers that approved.
    pub approved: u64,
    /// Questions that timed out.
    pub timed_out: u64,
    /// Calls that an earlier answer covered.
    pub cached: u64,
    /// Half of the answers came at most this many milliseconds after the question.
    pub median_answer_ms: Option<u64>,
    /// Nine in ten did.
    pub slow_answer_ms: Option<u64>,
    /// Violations by risk level.
    pub violations: BTreeMap<String, u64>,
    /// Tools that ran without a verdict.
    pub without_verdict: u64,
    /// Which rules decided, most often first.
    pub rules: Vec<Counted>,
    /// Rules of the policy that never decided anything.
    pub silent_rules: Vec<String>,
    /// The most frequent questions.
    pub most_asked: Vec<Counted>,
    #[serde(skip)]
    counting: Counting,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Counting {
    rules: HashMap<String, u64>,
    asked: HashMap<String, u64>,
    answers: Vec<u64>,
}

impl LogStats {
    /// Counts one entry.
    pub fn add(&mut self, entry: &LogEntry) {
        match &entry.record.body {
            EntryBody::ToolAttempt(attempt) => self.add_attempt(entry, attempt),
            EntryBody::Approval(approval) => {
                if approval.cached {
                    self.cached = self.cached.saturating_add(1);
                    return;
                }
                // a question that nobody could answer, or that was taken back, has no answer to count
                if matches!(approval.outcome, OutcomeKind::Unanswerable | OutcomeKind::Cancelled) {
                    self.unanswered = self.unanswered.saturating_add(1);
                    return;
                }
                self.answered = self.answered.saturating_add(1);
                if approval.approved {
                    self.approved = self.approved.saturating_add(1);
                }
                if approval.outcome == OutcomeKind::TimedOut {
                    self.timed_out = self.timed_out.saturating_add(1);
                } else if let Some(took) = approval.took_ms
                    && self.counting.answers.len() < MAXIMUM_COUNTED
                {
                    self.counting.answers.push(took);
                }
            }
            EntryBody::SecurityViolation(violation) => count(&mut self.violations, violation.risk_level.clone()),
            EntryBody::RanWithoutVerdict(_) => self.without_verdict = self.without_verdict.saturating_add(1),
            _ => {}
        }
    }

    fn add_attempt(&mut self, entry: &LogEntry, attempt: &ToolAttempt) {
        self.calls = self.calls.saturating_add(1);
        count(&mut self.decisions, attempt.decision.to_string());
        let date = entry.time.day();
        let day = self.days.entry(date).or_default();
        day.calls = day.calls.saturating_add(1);
        match attempt.decision {
            Decision::Ask => day.prompts = day.prompts.saturating_add(1),
            Decision::Deny => day.refused = day.refused.saturating_add(1),
            Decision::Allow | Decision::Contain => {}
        }
        let rule = attempt.rule.clone().unwrap_or_else(|| "(default)".to_owned());
        count_some(&mut self.counting.rules, rule);
        if attempt.decision == Decision::Ask {
            count_some(&mut self.counting.asked, subject(attempt));
        }
    }

    /// Puts the lists together. `rules` are the names of the policy's rules.
    pub fn finish<S: AsRef<str>>(&mut self, rules: impl IntoIterator<Item = S>, longest: usize) {
        let counting = std::mem::take(&mut self.counting);
        self.silent_rules = rules
            .into_iter()
            .map(|rule| rule.as_ref().to_owned())
            .filter(|rule| !counting.rules.contains_key(rule))
            .collect();
        self.rules = most(counting.rules, usize::MAX);
        self.most_asked = most(counting.asked, longest);
        let mut answers = counting.answers;
        answers.sort_unstable();
        let at =
            |share: usize| answers.get(answers.len().saturating_mul(share).div_ceil(100).saturating_sub(1)).copied();
        self.median_answer_ms = at(50);
        self.slow_answer_ms = at(90);
    }

    /// Prompts per day as a small bar chart, the newest day last.
    pub fn chart(&self, width: usize) -> String {
        let longest = self.days.values().map(|day| day.prompts).max().unwrap_or(0).max(1);
        let skip = self.days.len().saturating_sub(30);
        self.days.iter().skip(skip).fold(String::new(), |mut text, (date, day)| {
            use std::fmt::Write as _;
            // eighths of a character, so that small numbers differ too
            let eighths = (u128::from(day.prompts) * (width as u128 * 8)).div_ceil(u128::from(longest));
            let full = usize::try_from(eighths / 8).unwrap_or(width);
            let part = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
            let rest = usize::try_from(eighths % 8).ok().and_then(|rest| part.get(rest.checked_sub(1)?));
            let bar: String = std::iter::repeat_n('█', full).chain(rest.copied()).collect();
            let _ = writeln!(text, "{date}  {bar:<width$}  {:>5} of {}", day.prompts, day.calls);
            text
        })
    }
}

/// The subject of a call: the program and its subcommand, or the tool.
fn subject(attempt: &ToolAttempt) -> String {
    let words = attempt.description.get("parts").and_then(Value::as_array).and_then(|parts| {
        parts.iter().find_map(|part| part.get("words")?.as_array().filter(|words| !words.is_empty()))
    });
    let Some(words) = words else { return attempt.tool.clone() };
    let known: Vec<&str> = words.iter().map_while(|word| word.get("known")?.as_str()).collect();
    match known.split_first() {
        Some((program, rest)) => {
            let verb = rest.first().filter(|word| {
                !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                    && !word.starts_with('-')
            });
            verb.map_or_else(|| (*program).to_owned(), |verb| format!("{program} {verb}"))
        }
        None => attempt.tool.clone(),
    }
}

fn count(counts: &mut BTreeMap<String, u64>, what: String) {
    let count = counts.entry(what).or_default();
    *count = count.saturating_add(1);
}

fn count_some(counts: &mut HashMap<String, u64>, what: String) {
    if counts.len() < MAXIMUM_COUNTED || counts.contains_key(&what) {
        let count = counts.entry(what).or_default();
        *count = count.saturating_add(1);
    }
}

fn most(counts: HashMap<String, u64>, longest: usize) -> Vec<Counted> {
    let mut all: Vec<Counted> = counts.into_iter().map(|(what, count)| Counted { what, count }).collect();
    all.sort_by(|left, right| right.count.cmp(&left.count).then_with(|| left.what.cmp(&right.what)));
    all.truncate(longest);
    all
}
