//! Answers by ordered rules, of which the first match decides. For unattended runs.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use callgate_policy::{ApprovalRuleText, ApprovalRules, ApprovalRulesError, CommandPattern};
use serde_json::Value;

use super::{Answer, Answerable, ApprovalDecision, Approver, AskError, Question};

type Condition = Box<dyn Fn(&Question) -> Result<bool, Box<dyn Error>> + Send + Sync>;

/// One rule: for a tool, under a condition, an answer.
pub struct ApprovalRule {
    tool: String,
    condition: Condition,
    decision: ApprovalDecision,
    reason: Option<String>,
}

callgate_model::debug_fields!(ApprovalRule, tool, decision);

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

    /// An error or a panic in the condition is not a match, so it can only refuse.
    fn matches(&self, question: &Question) -> bool {
        self.tool == question.tool
            && catch_unwind(AssertUnwindSafe(|| (self.condition)(question)))
                .is_ok_and(|matched| matched.unwrap_or(false))
    }
}

/// Answers by rules, deterministically and at once. Without a match it denies.
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

    /// The answer to a question.
    pub fn decide(&self, question: &Question) -> Answer {
        match self.rules.iter().find(|rule| rule.matches(question)) {
            Some(rule) if rule.decision.is_yes() && question.answerable != Answerable::InAdvance => {
                Answer::new(ApprovalDecision::Denied).by("rule").because("only a person can approve this")
            }
            Some(rule) => Answer { reason: rule.reason.clone(), ..Answer::new(rule.decision).by("rule") },
            None => Answer::new(self.default).by("rule").because("no approval rule covers this"),
        }
    }

    /// The answer of a rule, or of a default that the file sets; `None` if somebody must be asked. No rule says yes to what only a
    /// person can answer.
    pub(crate) fn answer(section: ApprovalRules, question: &Question) -> Option<Answer> {
        let default = section.default;
        let rules = Self::from(section);
        let matched = rules.rules.iter().any(|rule| rule.matches(question));
        let answer = (matched || default.is_some()).then(|| rules.decide(question))?;
        let yes_to_a_person = !matched && answer.decision.is_yes() && question.answerable != Answerable::InAdvance;
        (!yes_to_a_person).then_some(answer)
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
    pub fn from_section(section: &Value) -> Result<Self, ApprovalRulesError> {
        ApprovalRules::read(section).map(Self::from)
    }
}

impl From<ApprovalRules> for RuleBasedApprovalProvider {
    fn from(section: ApprovalRules) -> Self {
        let rule = |tool: String, rule: &ApprovalRuleText| {
            let commands = rule.commands.clone();
            ApprovalRule {
                tool,
                condition: Box::new(move |question| {
                    Ok(commands.as_ref().is_none_or(|patterns| all_commands_fit(question, patterns)))
                }),
                decision: rule.decision,
                reason: rule.reason.clone(),
            }
        };
        let rules = section.rules.iter().flat_map(|text| text.tools.iter().map(move |tool| rule(tool.clone(), text)));
        RuleBasedApprovalProvider {
            rules: rules.collect(),
            default: section.default.unwrap_or(ApprovalDecision::Denied),
        }
    }
}

impl Approver for RuleBasedApprovalProvider {
    fn ask(&self, question: &Question, _: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        Ok(self.decide(question))
    }
}

/// Whether every simple command of a call is known to the word, runs bare, and fits a pattern. A redirection or a changed
/// environment is more than the words say, so it does not fit.
fn all_commands_fit(question: &Question, patterns: &[CommandPattern]) -> bool {
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
