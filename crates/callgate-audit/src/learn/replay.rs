//! Judging recorded calls again: what would change?

use callgate::policy::Decision;
use serde::Serialize;

use callgate::assess::Assessor;

use super::recorded::{RecordedCall, decided};
use crate::entry::{EntryBody, LogEntry};

/// How many examples of each change are kept.
const EXAMPLES: usize = 10;

/// One call that would be judged differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayChange {
    /// The number of its entry.
    pub seq: u64,
    /// The call in one line.
    pub call: String,
    /// How it was judged.
    pub was: Decision,
    /// By which rule.
    pub was_rule: Option<String>,
    /// How it would be judged.
    pub becomes: Decision,
    /// By which rule.
    pub rule: Option<String>,
}

/// Changes of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReplayChanges {
    /// How many.
    pub count: u64,
    /// The first few.
    pub examples: Vec<ReplayChange>,
}

impl ReplayChanges {
    fn add(&mut self, change: ReplayChange) {
        self.count = self.count.saturating_add(1);
        if self.examples.len() < EXAMPLES {
            self.examples.push(change);
        }
    }
}

/// What would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// How many calls were judged again.
    pub calls: u64,
    /// How many could not be: their description was too large to be kept.
    pub left_out: u64,
    /// How many were judged with a part redacted or cut.
    pub inexact: u64,
    /// Would run without a question and did not.
    pub newly_allowed: ReplayChanges,
    /// Would be asked about and were not.
    pub newly_asked: ReplayChanges,
    /// Would be refused and were not.
    pub newly_refused: ReplayChanges,
    /// Questions there were.
    pub prompts_before: u64,
    /// Questions there would be.
    pub prompts_after: u64,
}

impl Replay {
    /// Judges the calls among some entries again, on all cores. `progress` is told how many entries were dealt with.
    pub fn of<E>(
        entries: impl Iterator<Item = Result<LogEntry, E>>,
        assessor: &Assessor,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, E> {
        const AT_ONCE: usize = 4_096;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut result = Replay::default();
        let mut done = 0_u64;
        let mut entries = entries.peekable();
        while entries.peek().is_some() {
            let batch = entries.by_ref().take(AT_ONCE).collect::<Result<Vec<LogEntry>, E>>()?;
            let share = batch.len().div_ceil(threads).max(1);
            let judge = |entries| judge_all(entries, assessor);
            let judged: Vec<JudgedAgain> = std::thread::scope(|scope| {
                let running: Vec<_> = batch.chunks(share).map(|entries| scope.spawn(move || judge(entries))).collect();
                // The calls of a thread that panicked are missing from the count.
                running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
            });
            judged.into_iter().for_each(|judged| result.add(judged));
            done = done.saturating_add(batch.len() as u64);
            progress(done);
        }
        Ok(result)
    }

    fn add(&mut self, judged: JudgedAgain) {
        let Some((recorded, becomes, rule)) = judged else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        let was = recorded.decision;
        self.calls = self.calls.saturating_add(1);
        self.inexact = self.inexact.saturating_add(u64::from(!recorded.exact));
        self.prompts_before = self.prompts_before.saturating_add(u64::from(was == Decision::Ask));
        self.prompts_after = self.prompts_after.saturating_add(u64::from(becomes == Decision::Ask));
        let runs = |decision: Decision| matches!(decision, Decision::Allow | Decision::Contain);
        if was == becomes || runs(was) && runs(becomes) {
            return;
        }
        let change =
            ReplayChange { seq: recorded.seq, call: recorded.shown, was, was_rule: recorded.rule, becomes, rule };
        match becomes {
            Decision::Allow | Decision::Contain => self.newly_allowed.add(change),
            Decision::Ask => self.newly_asked.add(change),
            Decision::Deny => self.newly_refused.add(change),
        }
    }

    /// Questions that would be saved; negative if there would be more.
    pub fn prompts_saved(&self) -> i64 {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        number(self.prompts_before).saturating_sub(number(self.prompts_after))
    }

    /// Whether any call would be judged differently.
    pub fn changes_anything(&self) -> bool {
        [&self.newly_allowed, &self.newly_asked, &self.newly_refused].iter().any(|changes| changes.count > 0)
    }
}

/// A recorded call with the decision of today and its rule; `None` if its description was too large to be kept.
type JudgedAgain = Option<(RecordedCall, Decision, Option<String>)>;

fn judge_all(entries: &[LogEntry], assessor: &Assessor) -> Vec<JudgedAgain> {
    let attempts = entries.iter().filter(|entry| matches!(entry.record.body, EntryBody::ToolAttempt(_)));
    let judge = |recorded: RecordedCall| {
        let (decision, rule) = decided(recorded.assess(assessor));
        (recorded, decision, rule)
    };
    attempts.map(|entry| RecordedCall::of(entry).map(judge)).collect()
}
