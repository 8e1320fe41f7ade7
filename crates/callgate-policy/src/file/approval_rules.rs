//! The rules of the `approvals:` section, which answer questions in place of a person.

use callgate_model::decision::ApprovalDecision;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// Rules that answer questions in place of a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRules {
    /// The rules in their order; the first that matches answers.
    #[serde(default)]
    pub rules: Vec<ApprovalRuleText>,
    /// The answer where no rule matches.
    #[serde(default = "denied")]
    pub default: ApprovalDecision,
}

fn denied() -> ApprovalDecision {
    ApprovalDecision::Denied
}

/// One rule: for some tools, under a condition, an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
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
        let rules = Self::deserialize(section).map_err(|error| ApprovalRulesError::Form(error.to_string()))?;
        match rules.rules.iter().position(|rule| rule.tools.is_empty()) {
            Some(index) => Err(ApprovalRulesError::NoTool { number: index.saturating_add(1) }),
            None => Ok(rules),
        }
    }
}

/// Why approval rules cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApprovalRulesError {
    /// A field is missing, unknown or has an invalid value.
    #[error("cannot parse the approval rules: {0}")]
    Form(String),
    /// A rule has no tools.
    #[error("approval rule {number} has no tools; list at least one under `tools`")]
    NoTool {
        /// Which rule, from 1.
        number: usize,
    },
}

/// A command pattern: words, `*` for any one, `**` at the end for any number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct CommandPattern {
    words: Vec<String>,
    open: bool,
}

impl TryFrom<String> for CommandPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let open = words.pop_if(|word| word == "**").is_some();
        if words.first().is_none_or(|first| first == "*") || words.iter().any(|word| word == "**") {
            let help = "write words, `*` for one word, `**` at the end for any number";
            return Err(format!("invalid command pattern `{text}`; {help}"));
        }
        Ok(CommandPattern { words, open })
    }
}

impl CommandPattern {
    /// Whether a command with these words matches.
    pub fn fits(&self, words: &[String]) -> bool {
        let long_enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        long_enough && self.words.iter().zip(words).all(|(pattern, word)| pattern == "*" || pattern == word)
    }
}
