//! Compares two policies by calls on which they differ.

use std::path::Path;

use callgate::assess::Assessor;
use callgate::policy::Policy;
use callgate_model::call::Call;
use callgate_model::decision::Decision;
use serde::Serialize;
use serde_json::json;

use super::recorded::{RecordedCall, decided};

/// Calls of many kinds, one a line: `tool TAB input`, or a shell command.
const PROBES: &str = include_str!("probes.txt");

/// A call that shows a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DifferingCall {
    /// The call in one line.
    pub call: String,
    /// Where it comes from: `example`, `rule`, `probe`, or the number of an entry of the log.
    pub from: String,
    /// How the old policy judges it.
    pub old: Decision,
    /// How the new one does.
    pub new: Decision,
    /// The new policy's rule.
    pub rule: Option<String>,
}

/// What becomes possible and what does not any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// How many calls both were asked about.
    pub compared: u64,
    /// Judged more leniently by the new policy.
    pub looser: Vec<DifferingCall>,
    /// Judged more strictly.
    pub tighter: Vec<DifferingCall>,
}

/// Compares two policies on the examples of both, on the plainest calls that their rules are about, on a set of calls of many kinds, and on recorded calls.
///
/// An empty result does not prove that the policies are equal.
pub fn compare(old: &Assessor, new: &Assessor, directory: &Path, recorded: &[RecordedCall]) -> Difference {
    let mut difference = Difference::default();
    let calls = examples(old)
        .into_iter()
        .chain(examples(new))
        .map(|call| (call, "example"))
        .chain([old, new].into_iter().flat_map(plainest).map(|call| (call, "rule")))
        .chain(PROBES.lines().filter_map(probe).map(|call| (call, "probe")));
    for (call, from) in calls {
        let call = call.directory(directory).workspace(directory);
        // each with the program tables that its policy brings along
        let [before, after] = [old, new].map(|assessor| decided(assessor.assess(&call)));
        difference.add(shown(&call), from.to_owned(), before.0, after);
    }
    for call in recorded {
        let [before, after] = [old, new].map(|assessor| decided(call.assess(assessor)));
        difference.add(call.shown.clone(), format!("entry {}", call.seq), before.0, after);
    }
    difference
}

impl Difference {
    fn add(&mut self, call: String, from: String, old: Decision, (new, rule): (Decision, Option<String>)) {
        self.compared = self.compared.saturating_add(1);
        let list = match old.cmp(&new) {
            std::cmp::Ordering::Greater => &mut self.looser,
            std::cmp::Ordering::Less => &mut self.tighter,
            std::cmp::Ordering::Equal => return,
        };
        // the same command twenty times is one witness
        if !list.iter().any(|witness| witness.call == call) && list.len() < 1_000 {
            list.push(DifferingCall { call, from, old, new, rule });
        }
    }
}

/// The examples that stand with the rules of a policy.
fn examples(assessor: &Assessor) -> Vec<Call> {
    assessor.policy().map(Policy::examples).unwrap_or_default()
}

/// The plainest calls that the rules of a policy are about.
fn plainest(assessor: &Assessor) -> Vec<Call> {
    assessor.policy().map(Policy::plainest_calls).unwrap_or_default()
}

fn probe(line: &str) -> Option<Call> {
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    match line.split_once('\t') {
        Some((tool, input)) => Some(Call::new(tool, serde_json::from_str(input).ok()?)),
        None => Some(Call::new("Bash", json!({"command": line}))),
    }
}

fn shown(call: &Call) -> String {
    match call.input.get("command").and_then(|command| command.as_str()) {
        Some(command) => command.to_owned(),
        None => format!("{} {}", call.tool, call.input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_is_a_call() {
        let lines = PROBES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(PROBES.lines().filter_map(probe).count(), lines);
        assert!(lines >= 60);
    }
}
