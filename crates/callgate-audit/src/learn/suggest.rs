//! Proposes the narrowest rules that would have saved most prompts, each with what else it covers.

use std::collections::HashMap;

use callgate::approvals::{AskedCall, Extent, Proposal, candidates};
use callgate::assess::{Assessment, Assessor};
use callgate::policy::Decision;
use serde::Serialize;

use super::RecordedCall;

/// How many candidates are tried.
const CANDIDATES: usize = 60;
/// How many calls each is tried on.
const CALLS: usize = 20_000;
/// Programs that run other programs: a rule for one of them would cover anything.
const WRAPPERS: [&str; 22] = [
    "sudo", "doas", "env", "nice", "nohup", "setsid", "timeout", "time", "xargs", "parallel", "bash", "sh", "zsh",
    "dash", "ssh", "eval", "exec", "command", "python", "python3", "node", "perl",
];

/// A proposed rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The rule as it would stand in a policy file.
    pub rule: String,
    /// How many questions it would have saved.
    pub saves: u64,
    /// Some of the calls that would have passed.
    pub examples: Vec<String>,
    /// What else it would let through, in words.
    pub also: String,
    /// Recorded calls that it would also allow although nobody approved them.
    pub also_recorded: Vec<String>,
    /// What the rule is made of.
    #[serde(skip)]
    pub proposal: Proposal,
}

/// The rules that would have covered what held up a call.
fn candidates_of(recorded: &RecordedCall, held_up: &[(usize, usize)]) -> Vec<Proposal> {
    let by_part = held_up.chunk_by(|left, right| left.0 == right.0);
    let found = by_part.filter_map(|effects| {
        let asked = AskedCall { tool: &recorded.call.tool, description: &recorded.description, effects };
        candidates(&asked).ok()
    });
    found.flatten().filter(|proposal| !covers_any_program(proposal)).collect()
}

/// Whether a rule names a program that runs other programs, or one by its path, which may hold something else tomorrow.
fn covers_any_program(proposal: &Proposal) -> bool {
    let program = match &proposal.extent {
        Extent::Words(words) => words.first(),
        Extent::Subcommand(program, _) => Some(program),
        Extent::Host { .. } | Extent::File { .. } | Extent::Directory { .. } | Extent::Tool(_) => None,
    };
    program.is_some_and(|program| WRAPPERS.contains(&program.as_str()) || program.contains('/'))
}

/// A call that still asks, and whether somebody approved it.
struct AskedAgain<'a> {
    recorded: &'a RecordedCall,
    approved: bool,
    assessment: Assessment,
}

impl AskedAgain<'_> {
    /// Whether a rule may be proposed for the call.
    fn is_fit(&self) -> bool {
        self.approved && self.recorded.is_plain()
    }
}

/// Proposes rules to add to the policy of `today`. `asked` are recorded calls that were asked about, with whether somebody
/// approved them.
pub fn suggest(asked: &[(RecordedCall, bool)], today: &Assessor, longest: usize) -> Vec<Suggestion> {
    let open: Vec<AskedAgain<'_>> = asked
        .iter()
        .take(CALLS)
        .filter_map(|(recorded, approved)| {
            let assessment = recorded.assess(today).ok()?;
            Some(AskedAgain { recorded, approved: *approved, assessment })
        })
        .filter(|call| call.assessment.ruling().decision == Decision::Ask)
        .collect();
    let mut counts: HashMap<Proposal, u64> = HashMap::new();
    for call in open.iter().filter(|call| call.is_fit()) {
        for candidate in candidates_of(call.recorded, &call.assessment.effects_from(Decision::Ask)) {
            let count = counts.entry(candidate).or_default();
            *count = count.saturating_add(1);
        }
    }
    let mut candidates: Vec<(Proposal, u64)> = counts.into_iter().collect();
    // the most frequent first, and of two that save as much the narrower
    candidates.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    candidates.truncate(CANDIDATES);
    let mut suggestions: Vec<(Suggestion, Vec<u64>)> = Vec::new();
    for (candidate, _) in candidates {
        let Ok(policy) = candidate.as_policy() else { continue };
        let passes = |call: &&AskedAgain<'_>| {
            today.would_pass_with(&policy, &call.recorded.call, &call.assessment, &call.recorded.claims)
        };
        let (saved, also): (Vec<_>, Vec<_>) = open.iter().filter(passes).partition(|call| call.is_fit());
        let numbers: Vec<u64> = saved.iter().map(|call| call.recorded.seq).collect();
        // skip what happened once and what an earlier proposal covers
        let covered = suggestions.iter().any(|(_, earlier)| numbers.iter().all(|number| earlier.contains(number)));
        if numbers.len() < 2 || covered {
            continue;
        }
        let shown = |calls: &[&AskedAgain<'_>]| -> Vec<String> {
            let mut shown: Vec<String> = calls.iter().map(|call| call.recorded.shown.clone()).collect();
            shown.sort();
            shown.dedup();
            shown.truncate(3);
            shown
        };
        let name = format!("suggested-{}", suggestions.len().saturating_add(1));
        let rule = candidate.rule(&name, "often asked about and approved");
        let suggestion = Suggestion {
            rule: rule.lines().map(|line| format!("  {line}\n")).collect(),
            saves: numbers.len() as u64,
            examples: shown(&saved),
            also: candidate.extent.also_covers(),
            also_recorded: shown(&also),
            proposal: candidate,
        };
        suggestions.push((suggestion, numbers));
        if suggestions.len() >= longest {
            break;
        }
    }
    suggestions.into_iter().map(|(suggestion, _)| suggestion).collect()
}
