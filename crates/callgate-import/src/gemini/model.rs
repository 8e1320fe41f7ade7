//! A model of how Gemini CLI decides, from its source.

use std::path::Path;

use callgate::policy::Decision;
use callgate_install::HostEnvironment;
use regex::Regex;

use super::{Arguments, BUILT_IN, Core, PolicyRule, SHELL, TOOLS};
use crate::command::TextPattern;
use crate::probe::Probe;
use crate::proof::{AgentDecision, Model};
use crate::{families, shell};

/// Tools that Gemini CLI uses without asking.
const READ_ONLY: &str =
    "read_file read_many_files list_directory glob grep_search search_file_content google_web_search write_todos";

/// A rule with its compiled regular expression. An expression that does not compile may match anything.
#[derive(Debug)]
pub(crate) struct Compiled {
    rule: PolicyRule,
    expression: Option<Regex>,
}

impl Compiled {
    pub(crate) fn of(rule: PolicyRule) -> Self {
        let file = match &rule.arguments {
            Arguments::Command(text) => Some(format!("\"command\":\"{text}")),
            Arguments::Json(text) => Some(text.clone()),
            Arguments::Any | Arguments::Prefix(_) => None,
        };
        let expression = file.and_then(|file| regex::RegexBuilder::new(&file).size_limit(1 << 20).build().ok());
        Compiled { rule, expression }
    }

    fn matches(&self, tool: &str, server: Option<&str>, command: Option<&str>, json: &str) -> bool {
        let rule = &self.rule;
        // A rule that applies only sometimes is taken to apply if it restricts, and not to apply if it allows.
        if rule.limited.is_some() && rule.decision == Decision::Allow {
            return false;
        }
        if let Some(wanted) = &rule.server
            && (server.is_none() || wanted != "*" && server != Some(wanted))
        {
            return false;
        }
        let full = server.map(|server| format!("mcp_{server}_{tool}"));
        let named = match rule.tool.strip_suffix('*') {
            Some("") => true,
            Some(front) => full.as_deref().is_some_and(|full| full.starts_with(front)),
            None => {
                rule.tool == tool && (server.is_none() || rule.server.is_some())
                    || full.as_deref() == Some(rule.tool.as_str())
            }
        };
        named
            && match &rule.arguments {
                Arguments::Any => true,
                Arguments::Prefix(prefix) => {
                    command.is_some_and(|command| TextPattern::prefix(prefix).matches(command))
                }
                Arguments::Command(_) | Arguments::Json(_) => match &self.expression {
                    Some(expression) => expression.is_match(json),
                    None => rule.decision != Decision::Allow,
                },
            }
    }
}

/// The decisions of Gemini CLI.
#[derive(Debug)]
pub(crate) struct GeminiModel {
    pub rules: Vec<Compiled>,
    pub core: Core,
    pub environment: HostEnvironment,
}

impl GeminiModel {
    /// The decision of the first rule that matches. A limited deny only asks.
    fn by_rules(&self, tool: &str, server: Option<&str>, command: Option<&str>, json: &str) -> Option<AgentDecision> {
        let rule = &self.rules.iter().find(|rule| rule.matches(tool, server, command, json))?.rule;
        let decision = if rule.limited.is_some() { rule.decision.min(Decision::Ask) } else { rule.decision };
        AgentDecision::by_rule(Some(decision))
    }

    fn command(&self, command: &str, depth: usize) -> AgentDecision {
        if !self.core.prefixes.is_empty()
            && !self.core.prefixes.iter().any(|(prefix, _)| TextPattern::prefix(prefix).matches(command))
        {
            return AgentDecision::Denied;
        }
        let json = serde_json::json!({ "command": command }).to_string();
        let mut decision = self.by_rules(SHELL, None, Some(command), &json).unwrap_or(AgentDecision::Asked);
        if decision == AgentDecision::Denied {
            return decision;
        }
        if depth > 3 {
            return decision;
        }
        let segments = shell::segments(command);
        for segment in &segments {
            if segment != command {
                decision = decision.max(self.command(segment, depth.saturating_add(1)));
            }
            if let Some(script) = shell::shell_script(segment) {
                decision = decision.max(self.command(&script, depth.saturating_add(1)));
            }
        }
        if decision == AgentDecision::Allowed && command.contains(['<', '>']) { AgentDecision::Asked } else { decision }
    }
}

impl Model for GeminiModel {
    fn decide(&self, probe: &Probe) -> AgentDecision {
        let (tool, server) = match probe {
            Probe::Shell(command) => {
                if self.core.tools.as_ref().is_some_and(|tools| !tools.iter().any(|tool| tool == SHELL)) {
                    return AgentDecision::Denied;
                }
                return self.command(command, 0);
            }
            Probe::Served { server, tool } => (tool.as_str(), Some(server.as_str())),
            Probe::Tool(name) => (name.as_str(), None),
            _ => (TOOLS.name(probe).unwrap_or_default(), None),
        };
        if server.is_none()
            && families::contains(BUILT_IN, tool)
            && self.core.tools.as_ref().is_some_and(|tools| !tools.iter().any(|kept| kept == tool))
        {
            return AgentDecision::Denied;
        }
        let json = TOOLS.input(probe).unwrap_or_default().to_string();
        self.by_rules(tool, server, None, &json).unwrap_or_else(|| {
            let inside = match probe {
                Probe::Read(path) | Probe::Search(path) | Probe::List(path) => {
                    Path::new(path).starts_with(&self.environment.project)
                }
                _ => true,
            };
            if server.is_none() && families::contains(READ_ONLY, tool) && inside {
                AgentDecision::Allowed
            } else {
                AgentDecision::Asked
            }
        })
    }
}
