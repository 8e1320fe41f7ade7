//! Answers by code: ordered rules, the first that matches decides. For runs without anybody to ask.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::{Answer, ApprovalDecision, Approver, AskError, Question};

type Condition = Box<dyn Fn(&Question) -> Result<bool, Box<dyn Error>> + Send + Sync>;

/// One rule: for a tool, under a condition, an answer.
pub struct ApprovalRule {
    tool: String,
    condition: Condition,
    decision: ApprovalDecision,
    reason: Option<String>,
}

impl fmt::Debug for ApprovalRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("ApprovalRule");
        debug.field("tool", &self.tool).field("decision", &self.decision).finish_non_exhaustive()
    }
}

impl ApprovalRule {
    /// An answer to every question about a tool, by its whole name.
    pub fn new(tool: impl Into<String>, decision: ApprovalDecision) -> Self {
        ApprovalRule { tool: tool.into(), condition: Box::new(|_| Ok(true)), decision, reason: None }
    }

    /// Only if a condition holds. It sees the view without secrets.
    #[must_use]
    pub fn when(self, condition: impl Fn(&Question) -> bool + Send + Sync + 'static) -> Self {
        self.when_ok(move |question| Ok(condition(question)))
    }

    /// Only if a condition holds that can fail; failing is not matching.
    #[must_use]
    pub fn when_ok(
        mut self,
        condition: impl Fn(&Question) -> Result<bool, Box<dyn Error>> + Send + Sync + 'static,
    ) -> Self {
        self.condition = Box::new(condition);
        self
    }

    /// With a reason that reaches the agent.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// An error or a panic in the condition is no match, so it can only refuse.
    fn matches(&self, question: &Question) -> bool {
        self.tool == question.tool
            && catch_unwind(AssertUnwindSafe(|| (self.condition)(question)))
                .is_ok_and(|matched| matched.unwrap_or(false))
    }
}

/// Answers by rules, deterministically and at once; what no rule matches gets the default, which is no.
///
/// ```
/// use callgate::approvals::{ApprovalDecision, ApprovalRule, RuleBasedApprovalProvider};
///
/// let provider = RuleBasedApprovalProvider::new(vec![
///     ApprovalRule::new("shell_exec", ApprovalDecision::Approved)
///         .when(|question| question.request["argv"][0] == "pytest"),
/// ]);
/// # drop(provider);
/// ```
#[derive(Debug)]
pub struct RuleBasedApprovalProvider {
    rules: Vec<ApprovalRule>,
    default: ApprovalDecision,
}

impl RuleBasedApprovalProvider {
    /// These rules, and no to everything else.
    pub fn new(rules: Vec<ApprovalRule>) -> Self {
        RuleBasedApprovalProvider { rules, default: ApprovalDecision::Denied }
    }

    /// Another answer where no rule matches.
    #[must_use]
    pub fn default_to(mut self, decision: ApprovalDecision) -> Self {
        self.default = decision;
        self
    }

    /// The answer to a question.
    pub fn decide(&self, question: &Question) -> Answer {
        match self.rules.iter().find(|rule| rule.matches(question)) {
            Some(rule) => Answer { reason: rule.reason.clone(), ..Answer::new(rule.decision).by("rule") },
            None => Answer::new(self.default).by("rule").because("no approval rule covers this"),
        }
    }

    /// Reads the `approvals:` section of a policy file:
    ///
    /// ```
    /// # use callgate::approvals::RuleBasedApprovalProvider;
    /// let section = serde_json::json!({
    ///     "rules": [
    ///         {"tools": ["shell_exec"], "commands": ["pytest **"], "decision": "approved"},
    ///         {"tools": ["write_stdin"], "decision": "approved_for_session"},
    ///     ],
    ///     "default": "denied",
    /// });
    /// assert!(RuleBasedApprovalProvider::from_section(&section).is_ok());
    /// ```
    pub fn from_section(section: &Value) -> Result<Self, RulesError> {
        // a derived reader takes lists for objects, without a word
        let rules = section.get("rules").and_then(Value::as_array);
        if !section.is_object() || rules.is_some_and(|rules| !rules.iter().all(Value::is_object)) {
            return Err(RulesError::Form("the section and each of its rules are mappings".into()));
        }
        let section: Section =
            serde_json::from_value(section.clone()).map_err(|error| RulesError::Form(error.to_string()))?;
        let mut rules = Vec::new();
        for (index, rule) in section.rules.into_iter().enumerate() {
            let number = index.saturating_add(1);
            if rule.tools.is_empty() {
                return Err(RulesError::NoTool { number });
            }
            let commands: Option<Vec<Pattern>> = rule
                .commands
                .map(|commands| commands.iter().map(|text| Pattern::read(text)).collect::<Option<_>>())
                .map(|patterns| patterns.ok_or(RulesError::Pattern { number }))
                .transpose()?;
            for tool in rule.tools {
                let commands = commands.clone();
                rules.push(ApprovalRule {
                    tool,
                    condition: Box::new(move |question| {
                        Ok(commands.as_ref().is_none_or(|patterns| all_commands_fit(question, patterns)))
                    }),
                    decision: rule.decision,
                    reason: rule.reason.clone(),
                });
            }
        }
        Ok(RuleBasedApprovalProvider { rules, default: section.default })
    }
}

impl Approver for RuleBasedApprovalProvider {
    fn ask(&self, question: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        Ok(self.decide(question))
    }
}

/// Why a section is not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RulesError {
    /// A field is missing, unknown or of the wrong kind.
    #[error("the approval rules cannot be read: {0}")]
    Form(String),
    /// A rule is about no tool.
    #[error("approval rule {number} names no tool")]
    NoTool {
        /// Which rule, from 1.
        number: usize,
    },
    /// A command pattern has no words, or `**` elsewhere than at the end.
    #[error(
        "a command pattern of approval rule {number} makes no sense: words, `*` for one word, `**` at the end for any"
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

/// A command pattern: words, `*` for any one, `**` at the end for any number.
#[derive(Debug, Clone)]
struct Pattern {
    words: Vec<String>,
    open: bool,
}

impl Pattern {
    fn read(text: &str) -> Option<Self> {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let open = words.last().is_some_and(|word| word == "**");
        if open {
            words.pop();
        }
        let sensible = words.first().is_some_and(|first| first != "*") && !words.iter().any(|word| word == "**");
        sensible.then_some(Pattern { words, open })
    }

    fn fits(&self, words: &[String]) -> bool {
        let long_enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        long_enough && self.words.iter().zip(words).all(|(pattern, word)| pattern == "*" || pattern == word)
    }
}

/// Whether every simple command of a call is known to the word, runs bare, and fits a pattern. A redirection or a changed
/// environment is more than the words say, so it does not fit.
fn all_commands_fit(question: &Question, patterns: &[Pattern]) -> bool {
    let fits = |words: &[String]| patterns.iter().any(|pattern| pattern.fits(words));
    let plain = question
        .effects
        .iter()
        .all(|effect| !effect.marks.iter().any(|mark| mark == "redirection" || mark == "environment"));
    plain
        && !question.commands.is_empty()
        && question
            .commands
            .iter()
            .all(|command| command.wrappers.is_empty() && command.words.as_deref().is_some_and(fits))
}
