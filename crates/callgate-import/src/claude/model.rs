//! A model of how Claude Code decides, from its documentation.

use std::path::{Path, PathBuf};

use callgate_install::HostEnvironment;

use super::{Access, Permission, Spec, access, path_of};
use crate::proof::{AgentDecision, Model};
use crate::{families, probe::Probe, shell};

/// Wrapper programs that Claude Code looks behind.
const WRAPPERS: &[&str] = &["timeout", "time", "nice", "nohup", "stdbuf"];
/// Commands that Claude Code runs without asking.
pub(super) const READ_ONLY: &str =
    "ls|cat|head|tail|grep|rg|find|wc|pwd|echo|which|diff|stat|du|cd|git status|git log|git diff|git show|true";
/// Commands whose words Claude Code reads as paths.
const FILE_COMMANDS: &[&str] = &["cat", "head", "tail", "less", "more", "ls", "grep", "sed", "wc", "stat"];

#[derive(Debug)]
pub(crate) struct ClaudeModel {
    pub deny: Vec<Permission>,
    pub ask: Vec<Permission>,
    pub allow: Vec<Permission>,
    pub mode: String,
    pub directories: Vec<PathBuf>,
    pub environment: HostEnvironment,
}

impl Model for ClaudeModel {
    fn decide(&self, probe: &Probe) -> AgentDecision {
        if self.deny.iter().any(|rule| self.restricts(rule, probe)) {
            return AgentDecision::Denied;
        }
        if self.ask.iter().any(|rule| self.restricts(rule, probe)) {
            return AgentDecision::AskedByRule;
        }
        if self.permits(probe) {
            return AgentDecision::Allowed;
        }
        match (self.by_default(probe), self.mode.as_str()) {
            (AgentDecision::Asked, "dontAsk") => AgentDecision::Denied,
            (AgentDecision::Asked, "bypassPermissions") => AgentDecision::Allowed,
            (standing, _) => standing,
        }
    }
}

impl ClaudeModel {
    /// Whether a deny or ask rule matches a call. Any part of a command line is enough.
    fn restricts(&self, rule: &Permission, probe: &Probe) -> bool {
        match (&rule.spec, probe) {
            (Spec::Command(pattern), Probe::Shell(line)) => {
                pattern.matches(line)
                    || shell::segments(line).iter().any(|segment| {
                        let bare = shell::without_assignments(segment);
                        pattern.matches(segment)
                            || pattern.matches(bare)
                            || shell::peeled(bare, WRAPPERS).is_some_and(|inner| pattern.matches(inner))
                    })
            }
            (Spec::Path(pattern), Probe::Shell(line)) => {
                access(&rule.tool) == Some(Access::Read)
                    && shell::segments(line).iter().any(|segment| {
                        let words = shell::words(segment);
                        words.split_first().is_some_and(|(program, arguments)| {
                            FILE_COMMANDS.contains(&program.as_str())
                                && arguments
                                    .iter()
                                    .filter(|word| !word.starts_with('-'))
                                    .any(|word| pattern.matches(&path_of(word, &self.environment), &self.environment))
                        })
                    })
            }
            _ => self.meets(rule, probe),
        }
    }

    /// Whether a rule matches a call that is not a command line.
    fn meets(&self, rule: &Permission, probe: &Probe) -> bool {
        let tool = match probe {
            Probe::Shell(_) => "Bash",
            Probe::Read(_) => "Read",
            Probe::Write(_) => "Write",
            Probe::Edit(_) => "Edit",
            Probe::Search(_) => "Grep",
            Probe::List(_) => "Glob",
            Probe::Fetch(_) => "WebFetch",
            Probe::WebSearch => "WebSearch",
            Probe::Served { .. } => "",
            Probe::Tool(name) => name,
        };
        match (&rule.spec, probe) {
            (Spec::Whole, _) => rule.tool == tool || rule.tool == "Edit" && tool == "Write" || rule.tool == "*",
            (Spec::Path(pattern), Probe::Read(path) | Probe::Search(path)) => {
                access(&rule.tool) == Some(Access::Read) && pattern.matches(Path::new(path), &self.environment)
            }
            (Spec::Path(pattern), Probe::Write(path) | Probe::Edit(path)) => {
                access(&rule.tool) == Some(Access::Edit) && pattern.matches(Path::new(path), &self.environment)
            }
            (Spec::Domain(domain), Probe::Fetch(url)) => {
                let host = url.split("://").nth(1).unwrap_or_default().split(['/', ':']).next().unwrap_or_default();
                match domain.strip_prefix('*') {
                    Some(below) => host.ends_with(below),
                    None => host == domain,
                }
            }
            (Spec::Served(server, tool), Probe::Served { server: from, tool: name }) => {
                glob(server, from) && glob(tool, name)
            }
            _ => false,
        }
    }

    fn permits(&self, probe: &Probe) -> bool {
        let Probe::Shell(line) = probe else {
            return self.allow.iter().any(|rule| self.meets(rule, probe));
        };
        let allowed = |text: &str| {
            self.allow.iter().any(|rule| match &rule.spec {
                Spec::Command(pattern) => pattern.matches(text),
                Spec::Whole => rule.tool == "Bash",
                _ => false,
            }) || is_read_only(text)
        };
        let segments = shell::segments(line);
        !segments.is_empty()
            && segments.iter().all(|segment| allowed(segment) || shell::peeled(segment, WRAPPERS).is_some_and(allowed))
    }

    fn by_default(&self, probe: &Probe) -> AgentDecision {
        let inside = |path: &str| {
            let path = Path::new(path);
            path.starts_with(&self.environment.project)
                || self.directories.iter().any(|directory| path.starts_with(directory))
        };
        let silent = match probe {
            Probe::Read(path) | Probe::Search(path) | Probe::List(path) => inside(path),
            Probe::Write(path) | Probe::Edit(path) => self.mode == "acceptEdits" && inside(path),
            Probe::Shell(line) => {
                !line.contains(['>', '<']) && shell::segments(line).iter().all(|segment| is_read_only(segment))
            }
            Probe::Fetch(_) | Probe::WebSearch | Probe::Served { .. } => false,
            Probe::Tool(name) => families::contains(super::HARMLESS, name),
        };
        if silent { AgentDecision::Allowed } else { AgentDecision::Asked }
    }
}

fn is_read_only(segment: &str) -> bool {
    READ_ONLY
        .split('|')
        .any(|command| segment == command || segment.strip_prefix(command).is_some_and(|rest| rest.starts_with(' ')))
}

fn glob(pattern: &str, text: &str) -> bool {
    crate::command::TextPattern::wild(pattern, false, false).matches(text)
}
