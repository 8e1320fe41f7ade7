//! Checks the examples of rules.

use serde::Serialize;

use super::{Claims, JudgeRequest, SandboxSupport};
use crate::file::mistake::{Mistake, Mistakes};
use crate::file::model::{RuleExample, Spanned, ToolText};
use crate::layers::{Policy, subjects};
use crate::rules::judge::{DecisionCause, JudgedEffect, REPLACED, RuleEvaluator};
use crate::source::PolicyChain;
use callgate_model::call::Call;
use callgate_model::description::Description;

/// An example as a call that has been assessed.
#[derive(Debug, Clone)]
pub struct ExampleCall {
    /// The call.
    pub call: Call,
    /// What it would do.
    pub description: Description,
    /// The claims about its tool.
    pub claims: Claims,
}

/// An example that fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedExample {
    /// The rule.
    pub rule: String,
    /// The example, in short.
    pub example: String,
    /// The position and what is wrong.
    #[serde(flatten)]
    pub mistake: Mistake,
}

/// The result of checking the examples of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedExamples {
    /// How many examples there were.
    pub checked: usize,
    /// The examples that fail.
    pub failed: Vec<FailedExample>,
    file: String,
    source: String,
}

impl CheckedExamples {
    /// The failures as mistakes of the file, `Ok` if there are none.
    pub fn into_result(self) -> Result<usize, Mistakes> {
        if self.failed.is_empty() {
            return Ok(self.checked);
        }
        let mistakes = self.failed.into_iter().map(|failed| failed.mistake).collect();
        Err(Mistakes::new(self.file, self.source, mistakes))
    }
}

impl Policy {
    /// The examples of every file the policy was loaded from, as calls.
    pub fn examples(&self) -> Vec<Call> {
        let files = self.layers.iter().filter_map(|layer| layer.body.chain()?.files.first());
        let rules = files.flat_map(|file| &file.source.file.rules);
        rules.flat_map(|rule| rule.matches.iter().chain(&rule.misses)).map(|example| example.value.call()).collect()
    }

    /// For every command pattern and tool that a rule of the first files names, the plainest call it is about.
    pub fn plainest_calls(&self) -> Vec<Call> {
        let files = self.layers.iter().filter_map(|layer| layer.body.chain()?.files.first());
        let mut calls = Vec::new();
        for rule in files.flat_map(|file| &file.source.file.rules) {
            calls.extend(rule.commands.iter().map(|pattern| {
                let words = pattern.value.split_whitespace().filter(|word| *word != "**");
                let command = words.collect::<Vec<_>>().join(" ").replace('*', "x");
                Call::new("Bash", serde_json::json!({ "command": command }))
            }));
            calls.extend(rule.tools.iter().filter_map(|tool| match &tool.value {
                ToolText::Name(name) => Some(Call::new(name.replace('*', "x").as_str(), serde_json::json!({}))),
                ToolText::Server(server) => {
                    Some(Call::new(format!("mcp__{server}__x").as_str(), serde_json::json!({})))
                }
                ToolText::Tag(_) | ToolText::NotTag(_) => None,
            }));
        }
        calls
    }

    /// Checks the examples of every file the policy was loaded from. A rule `matches` an example if it decides at least one
    /// of its effects, and `misses` it if it decides none. Examples of extended files are checked where those are loaded.
    pub fn check_examples(&self, describe: &dyn Fn(&RuleExample) -> ExampleCall) -> Vec<CheckedExamples> {
        self.layers.iter().filter_map(|layer| self.check_chain(layer.body.chain()?, describe)).collect()
    }

    fn check_chain(
        &self,
        chain: &PolicyChain,
        describe: &dyn Fn(&RuleExample) -> ExampleCall,
    ) -> Option<CheckedExamples> {
        let file = chain.files.first()?;
        let mut result = CheckedExamples {
            checked: 0,
            failed: Vec::new(),
            file: file.source.shown.clone(),
            source: file.text.clone(),
        };
        for (number, rule) in file.source.file.rules.iter().enumerate() {
            let number = u32::try_from(number).ok()?;
            let examples = rule
                .matches
                .iter()
                .map(|example| (example, true))
                .chain(rule.misses.iter().map(|example| (example, false)));
            for (example, should_match) in examples {
                result.checked = result.checked.saturating_add(1);
                let described = describe(&example.value);
                let sandbox = if rule.needs_sandbox { SandboxSupport::Available } else { SandboxSupport::Missing };
                let decided = self.decided_by(chain, &described, sandbox);
                if decided.contains(&Some(number)) != should_match {
                    let name = rule.name.as_ref().map_or_else(String::new, |name| name.value.clone());
                    result.failed.push(failure(chain, &name, example, should_match, &decided));
                }
            }
        }
        Some(result)
    }

    /// The rules that decide the effects of a call, without repeats.
    fn decided_by(&self, chain: &PolicyChain, described: &ExampleCall, sandbox: SandboxSupport) -> Vec<Option<u32>> {
        let ExampleCall { call, description, claims } = described;
        let request = JudgeRequest { call, description, claims, sandbox };
        let judge = RuleEvaluator::new(&chain.compiled, request, self.home.as_deref());
        let mut decided: Vec<Option<u32>> = subjects(&request)
            .map(|(subject, _): (JudgedEffect<'_>, _)| {
                REPLACED.iter().fold(judge.judge(&subject), |outcome, replaced| {
                    let instead =
                        (outcome.decision == *replaced).then(|| judge.instead_of(&outcome, &subject, true)).flatten();
                    instead.unwrap_or(outcome)
                })
            })
            .map(|outcome| outcome.rule.filter(|_| outcome.why == DecisionCause::Rule))
            .collect();
        decided.sort_unstable();
        decided.dedup();
        decided
    }
}

fn failure(
    chain: &PolicyChain,
    rule: &str,
    example: &Spanned<RuleExample>,
    should_match: bool,
    decided: &[Option<u32>],
) -> FailedExample {
    let others: Vec<&str> = decided
        .iter()
        .flatten()
        .filter_map(|number| chain.compiled.rules.get(*number as usize))
        .map(|rule| chain.compiled.pool.get(rule.name))
        .collect();
    let message = if should_match {
        format!("rule `{rule}` should match this example but decides none of its effects")
    } else {
        format!("rule `{rule}` should not match this example but decides one of its effects")
    };
    let help = if others.is_empty() {
        "no rule matches any of its effects".to_owned()
    } else {
        format!("the deciding rules are: {}", others.join(", "))
    };
    let shown = match &example.value {
        RuleExample::Command(command) => command.clone(),
        RuleExample::Call { tool, .. } => tool.clone(),
    };
    FailedExample {
        rule: rule.to_owned(),
        example: shown.chars().take(200).collect(),
        mistake: Mistake::new(example.position, message).help(help),
    }
}
