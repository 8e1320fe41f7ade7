//! The rules of the `approvals:` section, which answer questions in place of a person.

use callgate_model::decision::ApprovalDecision;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// Rules that answer questions in place of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRules {
    /// The rules in their order; the first that matches answers.
    pub rules: Vec<ApprovalRuleText>,
    /// The answer where no rule matches.
    pub default: ApprovalDecision,
}

/// One rule: for some tools, under a condition, an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRuleText {
    /// The tools, by their whole names.
    pub tools: Vec<String>,
    /// Patterns, of which every command of the call must match one, if there are any.
    pub commands: Option<Vec<CommandPattern>>,
    /// The answer.
    pub decision: ApprovalDecision,
    /// What the agent is told.
    pub reason: Option<String>,
}

impl ApprovalRules {
    /// Reads `rules` and `default` of the section.
    pub fn read(section: &Value) -> Result<Self, ApprovalRulesError> {
        // serde also reads a list as a struct
        let rules = section.get("rules").and_then(Value::as_array);
        if !section.is_object() || rules.is_some_and(|rules| !rules.iter().all(Value::is_object)) {
            return Err(ApprovalRulesError::Form(
                "expected a mapping for the section and for each of its rules".into(),
            ));
        }
        let section: ApprovalsSection =
            serde_json::from_value(section.clone()).map_err(|error| ApprovalRulesError::Form(error.to_string()))?;
        let rules = section.rules.into_iter().enumerate().map(|(index, rule)| rule.read(index.saturating_add(1)));
        Ok(ApprovalRules { rules: rules.collect::<Result<_, _>>()?, default: section.default })
    }
}

/// Why approval rules cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApprovalRulesError {
    /// A field is missing, unknown or has the wrong type.
    #[error("cannot parse the approval rules: {0}")]
    Form(String),
    /// A rule has no tools.
    #[error("approval rule {number} has no tools; list at least one under `tools`")]
    NoTool {
        /// Which rule, from 1.
        number: usize,
    },
    /// A command pattern has no words, or `**` elsewhere than at the end.
    #[error(
        "invalid command pattern in approval rule {number}; write words, `*` for one word, `**` at the end for any number"
    )]
    Pattern {
        /// Which rule, from 1.
        number: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalsSection {
    #[serde(default)]
    rules: Vec<ApprovalsRule>,
    #[serde(default = "denied")]
    default: ApprovalDecision,
}

fn denied() -> ApprovalDecision {
    ApprovalDecision::Denied
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalsRule {
    tools: Vec<String>,
    commands: Option<Vec<String>>,
    decision: ApprovalDecision,
    reason: Option<String>,
}

impl ApprovalsRule {
    fn read(self, number: usize) -> Result<ApprovalRuleText, ApprovalRulesError> {
        if self.tools.is_empty() {
            return Err(ApprovalRulesError::NoTool { number });
        }
        let read = |text: &String| CommandPattern::read(text).ok_or(ApprovalRulesError::Pattern { number });
        let commands = self.commands.map(|commands| commands.iter().map(read).collect()).transpose()?;
        Ok(ApprovalRuleText { tools: self.tools, commands, decision: self.decision, reason: self.reason })
    }
}

/// A command pattern: words, `*` for any one, `**` at the end for any number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    open: bool,
}

impl CommandPattern {
    fn read(text: &str) -> Option<Self> {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let open = words.last().is_some_and(|word| word == "**");
        if open {
            words.pop();
        }
        let sensible = words.first().is_some_and(|first| first != "*") && !words.iter().any(|word| word == "**");
        sensible.then_some(CommandPattern { words, open })
    }

    /// Whether a command with these words matches.
    pub fn fits(&self, words: &[String]) -> bool {
        let long_enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        long_enough && self.words.iter().zip(words).all(|(pattern, word)| pattern == "*" || pattern == word)
    }
}
