//! The `approvals:` section: who answers without being asked.

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
    /// Every command of the call must fit one of these, if there are any.
    pub commands: Option<Vec<CommandPattern>>,
    /// The answer.
    pub decision: ApprovalDecision,
    /// What the agent is told.
    pub reason: Option<String>,
}

impl ApprovalRules {
    /// Reads `rules` and `default` of the section.
    pub fn read(section: &Value) -> Result<Self, RulesError> {
        // a derived reader takes lists for objects, without a word
        let rules = section.get("rules").and_then(Value::as_array);
        if !section.is_object() || rules.is_some_and(|rules| !rules.iter().all(Value::is_object)) {
            return Err(RulesError::Form("the section and each of its rules are mappings".into()));
        }
        let section: Section =
            serde_json::from_value(section.clone()).map_err(|error| RulesError::Form(error.to_string()))?;
        let rules = section.rules.into_iter().enumerate().map(|(index, rule)| rule.read(index.saturating_add(1)));
        Ok(ApprovalRules { rules: rules.collect::<Result<_, _>>()?, default: section.default })
    }
}

/// Why the section cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RulesError {
    /// A field is missing, unknown or of the wrong kind.
    #[error("the approval rules cannot be read: {0}")]
    Form(String),
    /// A rule names no tool.
    #[error("approval rule {number} names no tool")]
    NoTool {
        /// Which rule, from 1.
        number: usize,
    },
    /// A command pattern has no words, or `**` elsewhere than at the end.
    #[error(
        "a command pattern of approval rule {number} is invalid: use words, `*` for one word, `**` at the end for any"
    )]
    Pattern {
        /// Which rule, from 1.
        number: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default)]
    rules: Vec<SectionRule>,
    #[serde(default = "denied")]
    default: ApprovalDecision,
}

fn denied() -> ApprovalDecision {
    ApprovalDecision::Denied
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionRule {
    tools: Vec<String>,
    commands: Option<Vec<String>>,
    decision: ApprovalDecision,
    reason: Option<String>,
}

impl SectionRule {
    fn read(self, number: usize) -> Result<ApprovalRuleText, RulesError> {
        if self.tools.is_empty() {
            return Err(RulesError::NoTool { number });
        }
        let read = |text: &String| CommandPattern::read(text).ok_or(RulesError::Pattern { number });
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

    /// Whether a command of these words fits.
    pub fn fits(&self, words: &[String]) -> bool {
        let long_enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        long_enough && self.words.iter().zip(words).all(|(pattern, word)| pattern == "*" || pattern == word)
    }
}
