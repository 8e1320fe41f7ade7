//! OpenCode: `permission` in its configuration. The last matching rule decides.

use std::path::Path;

use callgate::policy::Decision;
use callgate_install::{HostEnvironment, SettingsNode};

use crate::command::TextPattern;
use crate::draft::{Draft, Key, Rule};
use crate::error::ImportError;
use crate::families::{self, ToolFamily};
use crate::probe::{self, Probe, ToolNames};
use crate::proof::{AgentDecision, Model, Reading, RuleExamples};
use crate::settings_file::SettingsFile;
use crate::translate::{
    ANYTHING, HARMLESS_TOOL, NO_ASSIGNMENTS, NOTHING_WHOLESALE, PROJECT_FILES, is_host, permit_command,
    permit_every_command, permit_tool, restrict_command, restrict_host,
};
use crate::{path, shell};

const TOOLS: ToolNames = ToolNames(
    "shell=bash.command read=read.filePath write=write.filePath edit=edit.filePath search=grep.path list=glob.path \
     fetch=webfetch.url web_search=websearch.query",
);
/// Permissions that callgate does not ask about.
const HARMLESS: &str = "todowrite todoread question plan_enter plan_exit lsp skill task";
/// The most ways to split a tool's name into server and tool.
const MAXIMUM_CUTS: usize = 6;

/// One rule: a permission, a pattern on its subject, and the decision.
#[derive(Debug, Clone)]
struct Entry {
    permission: String,
    pattern: String,
    decision: Decision,
    origin: String,
}

pub(crate) fn read(files: &[SettingsFile], environment: &HostEnvironment) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let mut entries = Vec::new();
    let mut of_agents = Vec::new();
    for file in files {
        let node = file.json()?;
        for (name, enabled) in node.get("tools").map(SettingsNode::entries).unwrap_or_default() {
            let decision = match enabled.flag() {
                Some(true) => Decision::Allow,
                Some(false) => Decision::Deny,
                None => return Err(file.unusable(format!("`tools.{name}` is not true or false"))),
            };
            let permission = if matches!(name.as_str(), "write" | "patch" | "multiedit") { "edit" } else { name };
            let origin = file.origin(&format!("tools.{name} {}", decision == Decision::Allow));
            entries.push(Entry { permission: permission.to_owned(), pattern: "*".to_owned(), decision, origin });
        }
        read_permission(&node, "permission", file, &mut entries)?;
        read_list(&node, file, &mut entries)?;
        for section in ["mode", "agent"] {
            for (name, agent) in node.get(section).map(SettingsNode::entries).unwrap_or_default() {
                let place = format!("{section}.{name}.permission");
                read_permission(agent, &place, file, &mut of_agents)?;
            }
        }
    }
    let count = entries.len().saturating_add(of_agents.len());
    // A hook does not know which of OpenCode's agents calls, so callgate asks about what one of them may not do.
    let unsure = |entry: &Entry| {
        of_agents.iter().any(|other| {
            other.decision != Decision::Allow && [&*other.permission, "*"].contains(&entry.permission.as_str())
        })
    };
    let mut outside = Vec::new();
    for (number, entry) in entries.iter().enumerate().rev() {
        let weaker = entries.get(..number).unwrap_or_default();
        if entry.allows() && unsure(entry) {
            let why = "one of OpenCode's agents may not do this, and callgate does not know which of them calls";
            draft.left_out(&entry.origin, why);
        } else if entry.allows() {
            permit(&mut draft, entry, weaker);
        } else {
            for rule in restrict(&mut draft, entry, entry.decision) {
                if entry.permission == "external_directory" { outside.push(rule) } else { draft.push(rule) }
            }
        }
    }
    // A path outside the project needs this permission and that of the tool, so these rules must not precede a deny.
    for rule in outside {
        draft.push_before_file_allows(rule);
    }
    for entry in of_agents.iter().filter(|entry| !entry.allows()) {
        draft.broader(&entry.origin, "callgate does not know which of OpenCode's agents calls; it asks for all");
        for rule in restrict(&mut draft, entry, Decision::Ask) {
            draft.push(rule.decision(Decision::Ask));
        }
    }
    for entry in of_agents.iter().filter(|entry| entry.allows()) {
        draft.left_out(&entry.origin, "callgate does not know which of OpenCode's agents calls");
    }
    let examples = entries
        .iter()
        .chain(&of_agents)
        .map(|entry| RuleExamples::new(&entry.origin, entry.decision, probes(entry, environment)))
        .collect();
    Ok(Reading {
        draft,
        rules: count,
        model: Box::new(OpenCodeModel { entries, environment: environment.clone() }),
        examples,
        tools: &TOOLS,
    })
}

impl Entry {
    fn new(permission: &str, pattern: &str, decision: Decision, what: &str, file: &SettingsFile) -> Self {
        let origin = file.origin(&format!("{what} {}", decision));
        Entry { permission: permission.to_owned(), pattern: pattern.to_owned(), decision, origin }
    }

    /// Whether the pattern matches everything.
    fn is_whole(&self) -> bool {
        self.pattern.bytes().all(|byte| byte == b'*')
    }

    fn allows(&self) -> bool {
        self.decision == Decision::Allow
    }
}

fn decision(node: &SettingsNode) -> Option<Decision> {
    match node.text()? {
        "allow" => Some(Decision::Allow),
        "ask" => Some(Decision::Ask),
        "deny" => Some(Decision::Deny),
        _ => None,
    }
}

/// Reads `"ask"`, or permissions by name, each with one action or with patterns.
fn read_permission(
    parent: &SettingsNode,
    place: &str,
    file: &SettingsFile,
    entries: &mut Vec<Entry>,
) -> Result<(), ImportError> {
    let mut add = |permission: &str, pattern: &str, value: &SettingsNode, what: String| -> Result<(), ImportError> {
        let wrong = || file.unusable(format!("`{what}` is not one of allow, ask, deny"));
        entries.push(Entry::new(permission, pattern, decision(value).ok_or_else(wrong)?, &what, file));
        Ok(())
    };
    match parent.get("permission").filter(|node| !node.is_null()) {
        None => Ok(()),
        Some(value) if value.text().is_some() => add("*", "*", value, place.to_owned()),
        Some(SettingsNode::Table(permissions)) => {
            for (permission, value) in permissions {
                match value {
                    SettingsNode::Table(patterns) => {
                        for (pattern, value) in patterns {
                            add(permission, pattern, value, format!("{place}.{permission} {pattern:?}"))?;
                        }
                    }
                    value => add(permission, "*", value, format!("{place}.{permission}"))?,
                }
            }
            Ok(())
        }
        Some(_) => Err(file.unusable(format!("`{place}` is not a string or an object"))),
    }
}

/// Reads the newer form: a list of `{action, resource, effect}`.
fn read_list(node: &SettingsNode, file: &SettingsFile, entries: &mut Vec<Entry>) -> Result<(), ImportError> {
    let items = match node.get("permissions").filter(|node| !node.is_null()) {
        None => return Ok(()),
        Some(SettingsNode::List(items)) => items,
        Some(_) => return Err(file.unusable("`permissions` is not a list")),
    };
    for (number, item) in items.iter().enumerate() {
        let wrong = || file.unusable(format!("`permissions[{number}]` has no action and effect"));
        let permission = item.get("action").and_then(SettingsNode::text).ok_or_else(wrong)?;
        let decision = item.get("effect").and_then(decision).ok_or_else(wrong)?;
        let pattern = match item.get("resource") {
            None => "*",
            Some(value) => value.text().ok_or_else(wrong)?,
        };
        let what = format!("permissions {permission} {pattern:?}");
        entries.push(Entry::new(permission, pattern, decision, &what, file));
    }
    Ok(())
}

/// The tools of a permission; `None` if it is not one of OpenCode's own.
fn tools_of(permission: &str) -> Option<ToolFamily> {
    match permission {
        "bash" => Some(families::SHELL),
        "edit" => Some(families::EDIT),
        "read" => Some(families::READ),
        "grep" => Some(families::SEARCH),
        "glob" | "list" => Some(families::LIST),
        "webfetch" => Some(families::FETCH),
        "websearch" | "codesearch" => Some(families::WEB_SEARCH),
        "task" => Some(families::AGENT),
        "skill" => Some(families::SKILL),
        _ => None,
    }
}

/// The tools of any other permission: one of its name, and every way to split it into a server and its tool.
fn other_tools(permission: &str) -> Vec<String> {
    let cuts = permission.match_indices('_').take(MAXIMUM_CUTS).filter_map(|(at, _)| {
        let (server, tool) = (permission.get(..at)?, permission.get(at.saturating_add(1)..)?);
        (!server.is_empty() && !tool.is_empty()).then(|| format!("{server}/{tool}"))
    });
    std::iter::once(permission.to_owned()).chain(cuts).collect()
}

/// The tools of any permission.
fn tools(permission: &str) -> Vec<String> {
    match tools_of(permission) {
        Some(family) => families::names(family),
        None => other_tools(permission),
    }
}

/// Translates a rule that denies or asks. It is never dropped.
fn restrict(draft: &mut Draft, entry: &Entry, decision: Decision) -> Vec<Rule> {
    let origin = entry.origin.as_str();
    let on_paths = |effects: &'static [&'static str]| {
        Rule::new(decision, Key::Paths, path::spanning(&entry.pattern).0, origin).effects(effects).except_own_files()
    };
    match (entry.permission.as_str(), entry.is_whole()) {
        ("external_directory", true) => {
            if decision == Decision::Deny {
                draft.close(origin);
            }
            let rule = Rule::new(decision, Key::Paths, ["/**", "!./**"], origin);
            vec![rule.tools(families::FILES).effects(&["list", "read", "write", "delete"])]
        }
        ("external_directory", false) => vec![on_paths(&["list", "read", "write", "delete"])],
        ("doom_loop", _) => {
            draft.left_out(origin, "repetition is not a property of one call; OpenCode itself keeps checking it");
            Vec::new()
        }
        (permission, true) => vec![Rule::new(decision, Key::Tools, tools(permission), origin)],
        ("bash", false) => restrict_command(draft, &bash_pattern(&entry.pattern), decision, origin, None).into(),
        ("edit", false) => vec![on_paths(&["write", "delete"])],
        ("read", false) => vec![on_paths(&["list", "read"]).recursive(false), on_paths(&["read"]).recursive(true)],
        (permission, false) => match host_of(&entry.pattern).filter(|_| permission == "webfetch") {
            Some(host) => vec![restrict_host(decision, host, origin)],
            None => {
                draft.broader(origin, "callgate cannot express the pattern; it asks about every use");
                vec![Rule::new(Decision::Ask, Key::Tools, tools(permission), origin)]
            }
        },
    }
}

fn bash_pattern(pattern: &str) -> TextPattern {
    TextPattern::wild(pattern, false, true).optional_tail()
}

/// The host of a pattern like `https://example.com/*`.
fn host_of(pattern: &str) -> Option<&str> {
    let rest = pattern.strip_prefix("https://").or_else(|| pattern.strip_prefix("http://"))?;
    let (host, path) = rest.split_once('/')?;
    (is_host(host) && path == "*").then_some(host)
}

/// Translates a rule that allows. A rule that cannot be expressed is left out.
fn permit(draft: &mut Draft, entry: &Entry, weaker: &[Entry]) {
    let origin = entry.origin.as_str();
    // If no weaker rule restricts it, the bundled policy has the same effect or asks.
    let restricted = weaker.iter().any(|other| {
        other.decision > Decision::Allow && (other.permission == "*" || other.permission == entry.permission)
    });
    match (entry.permission.as_str(), entry.is_whole()) {
        ("*", _) => draft.left_out(origin, NOTHING_WHOLESALE),
        ("bash", true) => permit_every_command(draft, origin),
        ("bash", false) => {
            let when = restricted.then(|| NO_ASSIGNMENTS.to_owned());
            permit_command(draft, &bash_pattern(&entry.pattern), when, origin);
        }
        ("read", false) if restricted && !entry.pattern.starts_with(['*', '/', '~', '$']) => {
            draft.left_out(origin, "OpenCode compares absolute paths when it reads; this matches only by chance");
        }
        ("edit" | "read", false) if restricted => {
            let mut paths = path::spanning(&entry.pattern).1;
            let edits = entry.permission == "edit";
            paths.extend(edits.then(|| "!@runs-later".to_owned()));
            let (tools, effects): (_, &[&str]) =
                if edits { (families::EDIT, &["list", "read", "write"]) } else { (families::READ, &["list", "read"]) };
            draft.push(Rule::new(Decision::Allow, Key::Paths, paths, origin).tools(tools).effects(effects));
        }
        ("external_directory", _) => match Path::new(&entry.pattern)
            .parent()
            .filter(|_| entry.pattern.ends_with("/*") || entry.pattern.ends_with("/**"))
        {
            Some(directory)
                if !directory.to_string_lossy().contains(['*', '?'])
                    && (directory.is_absolute() || directory.starts_with("~")) =>
            {
                draft.root(directory.display().to_string(), origin);
            }
            _ => draft.left_out(origin, "outside the project only whole directories can be allowed (`dir/*`)"),
        },
        ("webfetch", false) => match host_of(&entry.pattern) {
            Some(host) => draft
                .push(Rule::new(Decision::Allow, Key::Hosts, [host], origin).tools("webfetch").effects(&["connect"])),
            None => draft.left_out(origin, "only whole hosts can be allowed (`https://host/*`)"),
        },
        (permission, _) if families::contains(HARMLESS, permission) && !restricted => {
            draft.covered(origin, HARMLESS_TOOL)
        }
        (_, false) => draft.left_out(origin, "callgate cannot express the pattern"),
        (permission, true) => match tools_of(permission) {
            Some(_) if !restricted && permission != "webfetch" => draft.covered(origin, PROJECT_FILES),
            Some(_) => {
                let rule = || Rule::new(Decision::Allow, Key::Tools, [permission], origin);
                draft.push(permit_tool(permission, origin).unwrap_or_else(rule));
            }
            None => {
                let cuts = other_tools(permission);
                match cuts.as_slice() {
                    [_, server] if !server.starts_with('*') => {
                        draft.push(Rule::new(Decision::Allow, Key::Tools, [server.as_str()], origin).effects(ANYTHING))
                    }
                    _ => draft.left_out(origin, "callgate cannot tell which server's tool this is"),
                }
            }
        },
    }
}

fn probes(entry: &Entry, environment: &HostEnvironment) -> Vec<Probe> {
    let sample = entry.pattern.replace("**", "*").replace(['*', '?'], "x");
    match entry.permission.as_str() {
        "doom_loop" => Vec::new(),
        "bash" => probe::of_command(&bash_pattern(&entry.pattern)),
        "edit" | "read" | "external_directory" => {
            let path = match sample.strip_prefix("~/").or_else(|| sample.strip_prefix("$HOME/")) {
                Some(rest) => environment.home.join(rest),
                None => environment.project.join(&sample),
            };
            probe::around_path(&path)
        }
        "webfetch" => vec![Probe::Fetch(if sample.contains("://") { sample } else { format!("https://{sample}/") })],
        permission => {
            let tool = permission.replace('*', "x");
            let served = tool.split_once('_').map(|(server, tool)| probe::served(server, tool));
            std::iter::once(Probe::Tool(tool.clone())).chain(served).collect()
        }
    }
}

/// A model of how OpenCode decides.
#[derive(Debug)]
struct OpenCodeModel {
    entries: Vec<Entry>,
    environment: HostEnvironment,
}

/// The decisions when nothing is configured.
const DEFAULTS: &[(&str, &str, AgentDecision)] = &[
    ("*", "*", AgentDecision::Allowed),
    ("doom_loop", "*", AgentDecision::Asked),
    ("external_directory", "*", AgentDecision::Asked),
    ("read", "*.env", AgentDecision::Asked),
    ("read", "*.env.*", AgentDecision::Asked),
    ("read", "*.env.example", AgentDecision::Allowed),
];

impl OpenCodeModel {
    fn evaluate(&self, permission: &str, subject: &str) -> AgentDecision {
        let fits = |pattern: &str, text: &str| TextPattern::wild(pattern, false, true).optional_tail().matches(text);
        let expanded = |pattern: &str| {
            let rest = pattern.strip_prefix("~/").or_else(|| pattern.strip_prefix("$HOME/"));
            rest.map_or_else(|| pattern.to_owned(), |rest| self.environment.home.join(rest).display().to_string())
        };
        let configured = self
            .entries
            .iter()
            .rev()
            .find(|entry| fits(&entry.permission, permission) && fits(&expanded(&entry.pattern), subject));
        AgentDecision::by_rule(configured.map(|entry| entry.decision)).unwrap_or_else(|| {
            let default =
                DEFAULTS.iter().rev().find(|(name, pattern, _)| fits(name, permission) && fits(pattern, subject));
            default.map_or(AgentDecision::Asked, |(.., decision)| *decision)
        })
    }

    /// Paths outside the project need a permission of their own.
    fn outside(&self, path: &str) -> AgentDecision {
        if Path::new(path).starts_with(&self.environment.project) {
            return AgentDecision::Allowed;
        }
        let directory = Path::new(path).parent().map(|parent| parent.join("*").display().to_string());
        self.evaluate("external_directory", &directory.unwrap_or_default())
    }
}

impl Model for OpenCodeModel {
    fn decide(&self, probe: &Probe) -> AgentDecision {
        let relative = |path: &str| {
            let path = Path::new(path);
            path.strip_prefix(&self.environment.project).unwrap_or(path).display().to_string()
        };
        match probe {
            Probe::Shell(line) => shell::segments(line)
                .iter()
                .map(|segment| {
                    self.evaluate("bash", shell::without_assignments(segment)).max(self.evaluate("bash", segment))
                })
                .max()
                .unwrap_or(AgentDecision::Asked),
            Probe::Write(path) | Probe::Edit(path) => self.evaluate("edit", &relative(path)).max(self.outside(path)),
            Probe::Read(path) => {
                // Versions differ in which of the two they compare. The stricter decision counts.
                self.evaluate("read", path).max(self.evaluate("read", &relative(path))).max(self.outside(path))
            }
            Probe::Search(path) => self.evaluate("grep", "x").max(self.outside(&format!("{path}/x"))),
            Probe::List(path) => self.evaluate("glob", "*").max(self.outside(&format!("{path}/x"))),
            Probe::Fetch(url) => self.evaluate("webfetch", url),
            Probe::WebSearch => self.evaluate("websearch", "rust"),
            Probe::Served { server, tool } => self.evaluate(&format!("{server}_{tool}"), "*"),
            Probe::Tool(name) => self.evaluate(name, "*"),
        }
    }
}
