//! Proposing rules: the narrowest that would have saved most prompts, each with what it would also let through.

use std::collections::BTreeMap;

use callgate::policy::{Decision, Policy, PolicyError};
use callgate_model::effect::{Action, Target};
use callgate_model::word::Word;
use serde::Serialize;

use callgate::assess::Assessor;

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
    /// RecordedCall calls that it would let through although somebody said no to them, or nobody said yes.
    pub also_recorded: Vec<String>,
}

/// What a rule would cover, from the narrowest form on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Candidate {
    /// These words exactly.
    Exactly(Vec<String>),
    /// A program and its subcommand, with anything after.
    Subcommand(String, String),
    /// A tool that reaches a host.
    Host(String, String),
    /// A tool that writes below a directory.
    Below(String, &'static str, String),
}

impl Candidate {
    /// What would have covered what held up a call.
    fn of(recorded: &RecordedCall, held_up: &[(usize, usize)]) -> Vec<Self> {
        let mut found = Vec::new();
        for (part, effect) in held_up {
            let Some(part) = recorded.description.parts.get(*part) else { continue };
            let words: Option<Vec<String>> = part
                .words
                .iter()
                .map(|word| if let Word::Known(word) = word { Some(word.clone()) } else { None })
                .collect();
            match words {
                Some(words) if !words.is_empty() => found.extend(Self::of_words(words)),
                Some(_) => found.extend(part.effects.get(*effect).and_then(|placed| Self::of_effect(recorded, placed))),
                None => {}
            }
        }
        found.sort();
        found.dedup();
        found
    }

    fn of_words(words: Vec<String>) -> Vec<Self> {
        let Some((program, rest)) = words.split_first() else { return Vec::new() };
        if WRAPPERS.contains(&program.as_str()) || program.contains('/') {
            return Vec::new();
        }
        let verb = rest.first().filter(|verb| {
            verb.len() > 1
                && verb.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                && !verb.starts_with('-')
        });
        let wide = verb.map(|verb| Candidate::Subcommand(program.clone(), verb.clone()));
        let plain = |word: &String| !word.is_empty() && !word.contains(['*', '?', '[', '{', '\\', '\n', '"', '\'']);
        let exact = words.iter().all(plain).then(|| Candidate::Exactly(words.clone()));
        exact.into_iter().chain(wide).collect()
    }

    fn of_effect(recorded: &RecordedCall, placed: &callgate::describe::PlacedEffect) -> Option<Self> {
        let tool = recorded.call.tool.to_string();
        match (&placed.effect.action, &placed.effect.target) {
            (Action::Connect, Target::Host(host)) => Some(Candidate::Host(tool, host.name.clone()?)),
            (Action::Read, Target::Path(_)) => Self::directory(placed).map(|path| Candidate::Below(tool, "read", path)),
            (Action::Write, Target::Path(_)) => {
                Self::directory(placed).map(|path| Candidate::Below(tool, "write", path))
            }
            _ => None,
        }
    }

    fn directory(placed: &callgate::describe::PlacedEffect) -> Option<String> {
        let place = placed.place.as_ref().filter(|place| !place.traversal)?;
        let parent = place.resolved.parent()?;
        // the root and its children are no narrow rule
        (parent.components().count() > 3).then(|| parent.to_str().map(str::to_owned)).flatten()
    }

    fn yaml(&self, number: usize) -> String {
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let matcher = match self {
            Candidate::Exactly(words) => format!("commands: [{}]", quoted(&words.join(" "))),
            Candidate::Subcommand(program, verb) => format!("commands: [{}]", quoted(&format!("{program} {verb} **"))),
            Candidate::Host(tool, host) => {
                format!("tools: [{}]\n    effects: [connect]\n    hosts: [{}]", quoted(tool), quoted(host))
            }
            Candidate::Below(tool, effect, path) => {
                let path = quoted(&format!("{path}/**"));
                format!("tools: [{}]\n    effects: [{effect}]\n    paths: [{path}]", quoted(tool))
            }
        };
        format!(
            "  - name: suggested-{number}\n    {matcher}\n    action: allow\n    reason: often asked, and answered with yes\n"
        )
    }

    fn also(&self) -> String {
        match self {
            Candidate::Exactly(_) => "nothing but this command".to_owned(),
            Candidate::Subcommand(program, verb) => format!("`{program} {verb}` with any other arguments"),
            Candidate::Host(tool, host) => format!("anything that {tool} fetches from {host}"),
            Candidate::Below(tool, effect, path) => format!("{tool} may {effect} any file below {path}"),
        }
    }
}

/// A call that still asks: whether somebody said yes, and what holds it up.
type Open<'a> = (&'a RecordedCall, bool, Vec<(usize, usize)>);

/// Proposes rules. `asked` are recorded calls that were asked about, with whether somebody said yes; `base` is what the
/// new rule would be added to: the name of a bundled policy or the path of a file, as after `extends:`. `load` makes a policy of a text
/// that extends it.
pub fn suggest(
    asked: &[(RecordedCall, bool)],
    base: &str,
    load: &dyn Fn(&str) -> Result<Policy, PolicyError>,
    longest: usize,
) -> Result<Vec<Suggestion>, PolicyError> {
    let asked = asked.get(..asked.len().min(CALLS)).unwrap_or_default();
    let extends = format!("version: 1\nextends: {}\n", serde_json::to_string(base).unwrap_or_default());
    let today = Assessor::new(load(&extends)?);
    // what still asks today, and nothing of it is secret, privileged or not understood
    let open: Vec<Open<'_>> = asked
        .iter()
        .map(|(recorded, approved)| (recorded, *approved, recorded.reassess(&today)))
        .filter(|(_, _, judged)| judged.decision == Decision::Ask)
        .map(|(recorded, approved, judged)| (recorded, approved, judged.held_up))
        .collect();
    let mut counts: BTreeMap<Candidate, u64> = BTreeMap::new();
    for (recorded, _, held_up) in open.iter().filter(|(recorded, approved, _)| *approved && recorded.is_plain()) {
        for candidate in Candidate::of(recorded, held_up) {
            let count = counts.entry(candidate).or_default();
            *count = count.saturating_add(1);
        }
    }
    let mut candidates: Vec<(Candidate, u64)> = counts.into_iter().collect();
    // the most frequent first, and of two that save as much the narrower
    candidates.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    candidates.truncate(CANDIDATES);
    let mut suggestions: Vec<(Suggestion, Vec<u64>)> = Vec::new();
    for (candidate, _) in candidates {
        let rule = candidate.yaml(suggestions.len().saturating_add(1));
        let judge = Assessor::new(load(&format!("{extends}rules:\n{rule}"))?);
        let passes = |recorded: &RecordedCall| recorded.reassess(&judge).decision < Decision::Ask;
        let passing: Vec<&Open<'_>> = open.iter().filter(|(recorded, ..)| passes(recorded)).collect();
        let (saved, also): (Vec<_>, Vec<_>) =
            passing.into_iter().partition(|(recorded, approved, _)| *approved && recorded.is_plain());
        let numbers: Vec<u64> = saved.iter().map(|(recorded, ..)| recorded.seq).collect();
        // once is no habit, and what an earlier proposal covers needs no second
        let covered = suggestions.iter().any(|(_, earlier)| numbers.iter().all(|number| earlier.contains(number)));
        if numbers.len() < 2 || covered {
            continue;
        }
        let shown = |calls: &[&Open<'_>]| -> Vec<String> {
            let mut shown: Vec<String> = calls.iter().map(|(recorded, ..)| recorded.shown.clone()).collect();
            shown.sort();
            shown.dedup();
            shown.truncate(3);
            shown
        };
        let suggestion = Suggestion {
            rule,
            saves: numbers.len() as u64,
            examples: shown(&saved),
            also: candidate.also(),
            also_recorded: shown(&also),
        };
        suggestions.push((suggestion, numbers));
        if suggestions.len() >= longest {
            break;
        }
    }
    Ok(suggestions.into_iter().map(|(suggestion, _)| suggestion).collect())
}
