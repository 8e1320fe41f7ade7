//! Who answers questions, as the `approvals:` section says: rules in place of a person, then those who are asked.

use callgate_model::decision::ApprovalDecision;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// Rules that answer questions in place of a person, and who is asked where none does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRules {
    /// The rules in their order; the first that matches answers.
    #[serde(default)]
    pub rules: Vec<ApprovalRuleText>,
    /// The answer where no rule matches, instead of asking anybody.
    pub default: Option<ApprovalDecision>,
    /// Who is asked, in this order.
    #[serde(default)]
    pub ask: Vec<ApproverText>,
    /// How the user learns that a question waits.
    pub notify: Option<NotifyText>,
}

/// How the user learns that a question waits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum NotifyText {
    /// Not at all.
    Off,
    /// By the bell of the terminal.
    Bell,
    /// By a notification of the desktop, and the bell.
    Desktop,
    /// By a program that gets a title and a short text without secrets as its last arguments, and the bell.
    Command(Vec<String>),
}

impl TryFrom<Value> for NotifyText {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let words = |value: &Value| -> Option<Vec<String>> {
            let words = value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
            words.collect::<Option<Vec<_>>>().filter(|words| !words.is_empty())
        };
        let command =
            value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| words(fields.get("command")?));
        match (value.as_str(), command) {
            (Some("off"), _) => Ok(NotifyText::Off),
            (Some("bell"), _) => Ok(NotifyText::Bell),
            (Some("desktop"), _) => Ok(NotifyText::Desktop),
            (_, Some(words)) => Ok(NotifyText::Command(words)),
            // YAML 1.1 reads `off` as false
            _ if value == Value::Bool(false) => Ok(NotifyText::Off),
            _ => Err("expected off, bell, desktop or {command: [PROGRAM, …]} for `notify`".to_owned()),
        }
    }
}

/// One who is asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct ApproverText {
    /// Who.
    pub who: ApproverKind,
    /// After how many seconds the next one is asked; `None`: when this one is unavailable, or the question's time is over.
    pub seconds: Option<u64>,
}

/// Who can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproverKind {
    /// The agent's own prompt.
    Agent,
    /// The terminal of the process that asks.
    Terminal,
    /// A running `callgate approvals watch`.
    Watch,
    /// A program that reads the question and prints the answer.
    Command(Vec<String>),
    /// A web service.
    Webhook {
        /// Its address.
        address: String,
        /// The file with the secret that both sides know.
        secret_file: String,
    },
}

impl TryFrom<Value> for ApproverText {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        const HELP: &str = "expected agent, terminal, watch, {command: [PROGRAM, …]} or {webhook: URL, secret_file: PATH}, \
                            the last four with an optional `seconds`";
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct Fields {
            who: Option<String>,
            command: Option<Vec<String>>,
            webhook: Option<String>,
            secret_file: Option<String>,
            seconds: Option<u64>,
        }
        let fields = match value {
            Value::String(who) => Fields { who: Some(who), ..Fields::default() },
            Value::Object(_) => Fields::deserialize(value).map_err(|error| format!("{error}; {HELP}"))?,
            _ => return Err(HELP.to_owned()),
        };
        let who = match (fields.who.as_deref(), fields.command, fields.webhook, fields.secret_file) {
            (Some("agent"), None, None, None) if fields.seconds.is_none() => ApproverKind::Agent,
            (Some("terminal"), None, None, None) => ApproverKind::Terminal,
            (Some("watch"), None, None, None) => ApproverKind::Watch,
            (None, Some(command), None, None) if !command.is_empty() => ApproverKind::Command(command),
            (None, None, Some(address), Some(secret_file)) => ApproverKind::Webhook { address, secret_file },
            _ => return Err(HELP.to_owned()),
        };
        Ok(ApproverText { who, seconds: fields.seconds })
    }
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
        if rules.ask.iter().skip(1).any(|approver| approver.who == ApproverKind::Agent) {
            let message = "`agent` must be the first under `ask`: what its prompt says is known only afterwards";
            return Err(ApprovalRulesError::Form(message.to_owned()));
        }
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
