//! How Gemini CLI decides, from its source: an independent model to compare with.

use std::path::Path;

use callgate::policy::Decision;
use regex::Regex;

use super::{Arguments, BUILT_IN, Core, PolicyRule, SHELL, TOOLS};
use crate::command::TextPattern;
use crate::probe::Probe;
use crate::proof::{Model, Standing};
use crate::{Around, shell};

/// Tools it uses without asking.
const READ_ONLY: &[&str] = &[
    "read_file",
    "read_many_files",
    "list_directory",
    "glob",
    "grep_search",
    "search_file_content",
    "google_web_search",
    "write_todos",
];

/// A rule with its regular expression ready. One that does not compile here may match anything.
#[derive(Debug)]
pub(super) struct Compiled {
    rule: PolicyRule,
    expression: Option<Regex>,
}

impl Compiled {
    pub(super) fn of(rule: PolicyRule) -> Self {
        let source = match &rule.arguments {
            Arguments::Command(text) => Some(format!("\"command\":\"{text}")),
            Arguments::Json(text) => Some(text.clone()),
            Arguments::Any | Arguments::Prefix(_) => None,
        };
        let expression = source.and_then(|source| regex::RegexBuilder::new(&source).size_limit(1 << 20).build().ok());
        Compiled { rule, expression }
    }

    fn matches(&self, tool: &str, server: Option<&str>, command: Option<&str>, json: &str) -> bool {
        let rule = &self.rule;
        // What holds sometimes only is taken to hold where it restricts, and not to where it allows.
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

/// How Gemini CLI decides.
#[derive(Debug)]
pub(super) struct GeminiModel {
    pub rules: Vec<Compiled>,
    pub core: Core,
    pub around: Around,
}

impl GeminiModel {
    fn first(&self, tool: &str, server: Option<&str>, command: Option<&str>, json: &str) -> Option<&PolicyRule> {
        self.rules.iter().find(|rule| rule.matches(tool, server, command, json)).map(|rule| &rule.rule)
    }

    fn command(&self, command: &str, depth: usize) -> Standing {
        if !self.core.prefixes.is_empty()
            && !self.core.prefixes.iter().any(|(prefix, _)| TextPattern::prefix(prefix).matches(command))
        {
            return Standing::Denied;
        }
        let json = serde_json::json!({ "command": command }).to_string();
        let mut standing = match self.first(SHELL, None, Some(command), &json).map(|rule| (rule.decision, rule.limited))
        {
            Some((Decision::Deny, None)) => return Standing::Denied,
            Some((Decision::Deny | Decision::Ask, _)) => Standing::AskedByRule,
            Some((Decision::Allow | Decision::Contain, _)) => Standing::Allowed,
            None => Standing::Asked,
        };
        if depth > 3 {
            return standing;
        }
        let segments = shell::segments(command);
        for segment in &segments {
            if segment != command {
                standing = standing.max(self.command(segment, depth.saturating_add(1)));
            }
            if let Some(script) = shell::shell_script(segment) {
                standing = standing.max(self.command(&script, depth.saturating_add(1)));
            }
        }
        if standing == Standing::Allowed && command.contains(['<', '>']) { Standing::Asked } else { standing }
    }
}

impl Model for GeminiModel {
    fn decide(&self, probe: &Probe) -> Standing {
        let (tool, server) = match probe {
            Probe::Shell(command) => {
                if self.core.tools.as_ref().is_some_and(|tools| !tools.iter().any(|tool| tool == SHELL)) {
                    return Standing::Denied;
                }
                return self.command(command, 0);
            }
            Probe::Served { server, tool } => (tool.as_str(), Some(server.as_str())),
            Probe::Tool(name) => (name.as_str(), None),
            _ => (TOOLS.name(probe).unwrap_or_default(), None),
        };
        if server.is_none()
            && BUILT_IN.contains(&tool)
            && self.core.tools.as_ref().is_some_and(|tools| !tools.iter().any(|kept| kept == tool))
        {
            return Standing::Denied;
        }
        let json = TOOLS.input(probe).unwrap_or_default().to_string();
        match self.first(tool, server, None, &json).map(|rule| (rule.decision, rule.limited)) {
            Some((Decision::Deny, None)) => Standing::Denied,
            Some((Decision::Deny | Decision::Ask, _)) => Standing::AskedByRule,
            Some((Decision::Allow | Decision::Contain, _)) => Standing::Allowed,
            None => {
                let inside = match probe {
                    Probe::Read(path) | Probe::Search(path) | Probe::List(path) => {
                        Path::new(path).starts_with(&self.around.project)
                    }
                    _ => true,
                };
                if server.is_none() && READ_ONLY.contains(&tool) && inside {
                    Standing::Allowed
                } else {
                    Standing::Asked
                }
            }
        }
    }
}
