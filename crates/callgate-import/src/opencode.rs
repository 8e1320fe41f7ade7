//! OpenCode: `permission` in its configuration. The last rule that matches decides.

use std::path::Path;

use callgate::policy::Decision;

use super::claude::{ANYTHING, NO_ASSIGNMENTS, restrict_command};
use super::command::TextPattern;
use super::draft::{Draft, Key, Outcome, Rule};
use super::gemini::permitted;
use super::probe::{self, Probe, ToolNames};
use super::proof::{Model, Standing};
use super::source::Node;
use super::{Around, ImportError, Reading, Source, families, path, shell};

const TOOLS: ToolNames = ToolNames {
    shell: ("bash", "command"),
    read: Some(("read", "filePath")),
    write: Some(("write", "filePath")),
    edit: Some(("edit", "filePath")),
    search: Some(("grep", "path")),
    list: Some(("glob", "path")),
    fetch: Some(("webfetch", "url")),
    web_search: Some(("websearch", "query")),
};
/// Permissions that are the agent's own affair.
const INNER: &[&str] = &["todowrite", "todoread", "question", "plan_enter", "plan_exit", "lsp", "skill", "task"];
/// More ways to cut a tool's name into server and name are not tried.
const MAXIMUM_CUTS: usize = 6;

/// One rule: a permission, a pattern on what it is asked for, and what happens.
#[derive(Debug, Clone)]
struct Entry {
    permission: String,
    pattern: String,
    decision: Decision,
    origin: String,
}

pub(super) fn read(sources: &[Source], around: &Around) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let mut entries = Vec::new();
    let mut of_agents = Vec::new();
    for source in sources {
        let node = source.json()?;
        for (name, enabled) in node.get("tools").map(Node::entries).unwrap_or_default() {
            let decision = match enabled.flag() {
                Some(true) => Decision::Allow,
                Some(false) => Decision::Deny,
                None => return Err(source.unusable(format!("`tools.{name}` is neither true nor false"))),
            };
            let permission = if matches!(name.as_str(), "write" | "patch" | "multiedit") { "edit" } else { name };
            entries.push(Entry {
                permission: permission.to_owned(),
                pattern: "*".to_owned(),
                decision,
                origin: source.origin(&format!("tools.{name} {}", enabled.flag().unwrap_or_default())),
            });
        }
        read_permission(node.get("permission"), "permission", source, &mut entries)?;
        read_list(node.get("permissions"), source, &mut entries)?;
        for section in ["mode", "agent"] {
            for (name, agent) in node.get(section).map(Node::entries).unwrap_or_default() {
                read_permission(
                    agent.get("permission"),
                    &format!("{section}.{name}.permission"),
                    source,
                    &mut of_agents,
                )?;
            }
        }
    }
    let count = entries.len().saturating_add(of_agents.len());
    // Which of OpenCode's agents calls is not known here, so what one of them may not do is asked about for all.
    let unsure = |entry: &Entry| {
        of_agents.iter().any(|other| {
            other.decision != Decision::Allow && [&*other.permission, "*"].contains(&entry.permission.as_str())
        })
    };
    let mut outside = Vec::new();
    for (number, entry) in entries.iter().enumerate().rev() {
        let weaker = entries.get(..number).unwrap_or_default();
        if entry.decision == Decision::Allow && unsure(entry) {
            draft.note(
                &entry.origin,
                Outcome::LeftOut,
                "one of OpenCode's agents may not do this, and which of them calls is not known here",
            );
        } else if entry.decision == Decision::Allow {
            permit(&mut draft, entry, weaker);
        } else {
            for rule in restrict(&mut draft, entry, entry.decision) {
                if entry.permission == "external_directory" { outside.push(rule) } else { draft.push(rule) }
            }
        }
    }
    // A path outside needs both its own permission and the tool's, so these must not stand in front of a deny.
    for rule in outside {
        draft.push_before_file_allows(rule);
    }
    for entry in of_agents.iter().filter(|entry| entry.decision != Decision::Allow) {
        draft.note(
            &entry.origin,
            Outcome::Broader,
            "which of OpenCode's agents calls is not known here; asked about for all of them",
        );
        for rule in restrict(&mut draft, entry, Decision::Ask) {
            draft.push(rule.decision(Decision::Ask));
        }
    }
    for entry in of_agents.iter().filter(|entry| entry.decision == Decision::Allow) {
        draft.note(&entry.origin, Outcome::LeftOut, "which of OpenCode's agents calls is not known here");
    }
    let probes = entries.iter().chain(&of_agents).flat_map(|entry| probes(entry, around)).collect();
    Ok(Reading {
        draft,
        rules: count,
        model: Box::new(OpenCodeModel { entries, around: around.clone() }),
        probes,
        tools: &TOOLS,
    })
}

fn decision(node: &Node) -> Option<Decision> {
    match node.text()? {
        "allow" => Some(Decision::Allow),
        "ask" => Some(Decision::Ask),
        "deny" => Some(Decision::Deny),
        _ => None,
    }
}

/// `"ask"`, or permissions by name, each with one action or with patterns.
fn read_permission(
    node: Option<&Node>,
    place: &str,
    source: &Source,
    entries: &mut Vec<Entry>,
) -> Result<(), ImportError> {
    let wrong = |what: &str| source.unusable(format!("`{what}` is none of allow, ask, deny"));
    let mut add = |permission: &str, pattern: &str, value: &Node, what: String| -> Result<(), ImportError> {
        let decision = decision(value).ok_or_else(|| wrong(&what))?;
        let origin = source.origin(&format!("{what} {}", super::draft::word(decision)));
        entries.push(Entry { permission: permission.to_owned(), pattern: pattern.to_owned(), decision, origin });
        Ok(())
    };
    match node {
        None | Some(Node::Nothing) => Ok(()),
        Some(value @ Node::Text(_)) => add("*", "*", value, place.to_owned()),
        Some(Node::Table(permissions)) => {
            for (permission, value) in permissions {
                match value {
                    Node::Table(patterns) => {
                        for (pattern, value) in patterns {
                            add(permission, pattern, value, format!("{place}.{permission} {pattern:?}"))?;
                        }
                    }
                    value => add(permission, "*", value, format!("{place}.{permission}"))?,
                }
            }
            Ok(())
        }
        Some(_) => Err(source.unusable(format!("`{place}` is neither text nor an object"))),
    }
}

/// The newer form: a list of `{action, resource, effect}`.
fn read_list(node: Option<&Node>, source: &Source, entries: &mut Vec<Entry>) -> Result<(), ImportError> {
    let items = match node {
        None | Some(Node::Nothing) => return Ok(()),
        Some(Node::List(items)) => items,
        Some(_) => return Err(source.unusable("`permissions` is no list")),
    };
    for (number, item) in items.iter().enumerate() {
        let text = |key: &str| item.get(key).and_then(Node::text);
        let wrong = || source.unusable(format!("`permissions[{number}]` has no action and effect"));
        let permission = text("action").ok_or_else(wrong)?;
        let decision = item.get("effect").and_then(decision).ok_or_else(wrong)?;
        let pattern = match item.get("resource") {
            None => "*",
            Some(value) => value.text().ok_or_else(wrong)?,
        };
        let origin = source.origin(&format!("permissions {permission} {pattern:?} {}", super::draft::word(decision)));
        entries.push(Entry { permission: permission.to_owned(), pattern: pattern.to_owned(), decision, origin });
    }
    Ok(())
}

/// The tools behind a permission; `None` if it is none of its own.
fn tools_of(permission: &str) -> Option<&'static [&'static str]> {
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

/// A permission of no tool of its own: the tool's name, and every way to cut it into a server and its tool.
fn other_tools(permission: &str) -> Vec<String> {
    let cuts = permission.match_indices('_').take(MAXIMUM_CUTS).filter_map(|(at, _)| {
        let (server, tool) = (permission.get(..at)?, permission.get(at.saturating_add(1)..)?);
        (!server.is_empty() && !tool.is_empty()).then(|| format!("{server}/{tool}"))
    });
    std::iter::once(permission.to_owned()).chain(cuts).collect()
}

/// What denies or asks. It is never dropped.
fn restrict(draft: &mut Draft, entry: &Entry, decision: Decision) -> Vec<Rule> {
    let origin = entry.origin.as_str();
    let whole = entry.pattern.bytes().all(|byte| byte == b'*');
    let broader = |draft: &mut Draft, tools: Vec<String>| {
        draft.note(origin, Outcome::Broader, "the pattern cannot be told here; every use is asked about");
        vec![Rule::new(Decision::Ask, Key::Tools, tools, origin)]
    };
    let paths = || path::spanning(&entry.pattern).0;
    match (entry.permission.as_str(), whole) {
        ("external_directory", true) => {
            if decision == Decision::Deny {
                draft.close(origin);
            }
            let rule = Rule::new(decision, Key::Paths, ["/**", "!./**"], origin);
            vec![rule.tools(families::FILES).effects(&["list", "read", "write", "delete"])]
        }
        ("external_directory", false) => {
            vec![
                Rule::new(decision, Key::Paths, paths(), origin)
                    .effects(&["list", "read", "write", "delete"])
                    .marks(&["!own_files"]),
            ]
        }
        ("doom_loop", _) => {
            draft.note(
                origin,
                Outcome::LeftOut,
                "whether calls repeat themselves is no property of a call; OpenCode itself goes on watching it",
            );
            Vec::new()
        }
        ("*", true) => vec![Rule::new(decision, Key::Tools, ["*"], origin)],
        (permission, true) => {
            let tools = match tools_of(permission) {
                Some(tools) => tools.iter().map(|&tool| tool.to_owned()).collect(),
                None => other_tools(permission),
            };
            vec![Rule::new(decision, Key::Tools, tools, origin)]
        }
        ("bash", false) => {
            let mut inner = Draft::default();
            restrict_command(&mut inner, &bash_pattern(&entry.pattern), decision, origin, None);
            let (rules, notes) = inner.into_parts();
            for note in notes {
                draft.note(&note.origin, note.outcome, note.why);
            }
            rules
        }
        ("edit", false) => {
            vec![Rule::new(decision, Key::Paths, paths(), origin).effects(&["write", "delete"]).marks(&["!own_files"])]
        }
        ("read", false) => vec![
            Rule::new(decision, Key::Paths, paths(), origin)
                .effects(&["list", "read"])
                .marks(&["!own_files"])
                .recursive(false),
            Rule::new(decision, Key::Paths, paths(), origin).effects(&["read"]).marks(&["!own_files"]).recursive(true),
        ],
        ("webfetch", false) => match host_of(&entry.pattern) {
            Some(host) => vec![
                Rule::new(decision, Key::Hosts, [host.to_owned(), format!("*.{host}")], origin)
                    .effects(&["connect", "send"]),
            ],
            None => broader(draft, families::FETCH.iter().map(|&tool| tool.to_owned()).collect()),
        },
        (permission, false) => {
            let tools = match (permission, tools_of(permission)) {
                ("*", _) => vec!["*".to_owned()],
                (_, Some(tools)) => tools.iter().map(|&tool| tool.to_owned()).collect(),
                (permission, None) => other_tools(permission),
            };
            broader(draft, tools)
        }
    }
}

fn bash_pattern(pattern: &str) -> TextPattern {
    TextPattern::wild(pattern, false, true).optional_tail()
}

/// The host of a pattern like `https://example.com/*`.
fn host_of(pattern: &str) -> Option<&str> {
    let rest = pattern.strip_prefix("https://").or_else(|| pattern.strip_prefix("http://"))?;
    let (host, path) = rest.split_once('/')?;
    let plain =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    (plain && path == "*").then_some(host)
}

/// What allows. What cannot be expressed is left out.
fn permit(draft: &mut Draft, entry: &Entry, weaker: &[Entry]) {
    let origin = entry.origin.as_str();
    let whole = entry.pattern.bytes().all(|byte| byte == b'*');
    // Where nothing further down restricts it, the bundled policy says the same or asks.
    let restricted = weaker.iter().any(|other| {
        other.decision > Decision::Allow && (other.permission == "*" || other.permission == entry.permission)
    });
    let covered = "standard lets the project be read and edited, except credentials and what runs later";
    match (entry.permission.as_str(), whole) {
        ("*", _) => draft.note(
            origin,
            Outcome::LeftOut,
            "nothing is waved through here; what standard does not know is asked about",
        ),
        ("bash", true) => {
            draft.note(origin, Outcome::Narrower, "every command is allowed, but callgate's own denies stay, and so do questions about redirections and changed environments");
            draft.push(Rule::new(Decision::Allow, Key::Commands, ["**"], origin));
        }
        ("bash", false) => match bash_pattern(&entry.pattern).permitting() {
            Ok(command) => {
                let guarded = weaker
                    .iter()
                    .any(|other| other.decision > Decision::Allow && matches!(other.permission.as_str(), "bash" | "*"));
                let rule = Rule::new(Decision::Allow, Key::Commands, [command], origin);
                draft.push(rule.when(guarded.then(|| NO_ASSIGNMENTS.to_owned())));
            }
            Err(why) => draft.note(origin, Outcome::LeftOut, why),
        },
        ("read", false) if restricted && !entry.pattern.starts_with(['*', '/', '~', '$']) => {
            draft.note(
                origin,
                Outcome::LeftOut,
                "OpenCode compares absolute paths when it reads, which this pattern fits by chance only",
            );
        }
        ("edit" | "read", false) if restricted => {
            let (tools, effects): (_, &'static [&'static str]) = if entry.permission == "edit" {
                (families::EDIT, &["list", "read", "write"])
            } else {
                (families::READ, &["list", "read"])
            };
            let mut paths = path::spanning(&entry.pattern).1;
            if entry.permission == "edit" {
                paths.push("!@runs-later".to_owned());
            }
            // Lists with exceptions are not merged with others: later entries of a list win.
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
            _ => draft.note(
                origin,
                Outcome::LeftOut,
                "outside of the project only whole directories can be opened (`dir/*`)",
            ),
        },
        ("webfetch", false) => match host_of(&entry.pattern) {
            Some(host) => draft.push(
                Rule::new(Decision::Allow, Key::Hosts, [host], origin).tools(&["webfetch"]).effects(&["connect"]),
            ),
            None => draft.note(origin, Outcome::LeftOut, "only whole hosts can be opened (`https://host/*`)"),
        },
        (permission, _) if INNER.contains(&permission) && !restricted => {
            draft.note(origin, Outcome::Covered, "this does nothing that callgate asks about")
        }
        (_, false) => draft.note(origin, Outcome::LeftOut, "the pattern cannot be told here"),
        (permission, true) => match tools_of(permission) {
            Some(_) if !restricted && permission != "webfetch" => draft.note(origin, Outcome::Covered, covered),
            Some(tools) => {
                let tool = tools.iter().copied().find(|tool| *tool == permission).unwrap_or(permission);
                match permitted(tool, origin) {
                    Some(rule) => draft.push(rule),
                    None => draft.push(Rule::new(Decision::Allow, Key::Tools, [tool], origin)),
                }
            }
            None => {
                let cuts = other_tools(permission);
                match cuts.as_slice() {
                    [_, server] if !server.starts_with('*') => {
                        draft.push(Rule::new(Decision::Allow, Key::Tools, [server.as_str()], origin).effects(ANYTHING))
                    }
                    _ => draft.note(origin, Outcome::LeftOut, "which server's tool this is cannot be told"),
                }
            }
        },
    }
}

fn probes(entry: &Entry, around: &Around) -> Vec<Probe> {
    let sample = entry.pattern.replace("**", "*").replace(['*', '?'], "x");
    match entry.permission.as_str() {
        "doom_loop" => Vec::new(),
        "bash" => probe::of_command(&bash_pattern(&entry.pattern)),
        "edit" | "read" | "external_directory" => {
            let path = match sample.strip_prefix("~/").or_else(|| sample.strip_prefix("$HOME/")) {
                Some(rest) => around.home.join(rest),
                None => around.project.join(&sample),
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

/// How OpenCode decides.
#[derive(Debug)]
struct OpenCodeModel {
    entries: Vec<Entry>,
    around: Around,
}

/// What it does when nothing is configured.
const DEFAULTS: &[(&str, &str, Standing)] = &[
    ("*", "*", Standing::Allowed),
    ("doom_loop", "*", Standing::Asked),
    ("external_directory", "*", Standing::Asked),
    ("read", "*.env", Standing::Asked),
    ("read", "*.env.*", Standing::Asked),
    ("read", "*.env.example", Standing::Allowed),
];

impl OpenCodeModel {
    fn evaluate(&self, permission: &str, subject: &str) -> Standing {
        let fits = |pattern: &str, text: &str| TextPattern::wild(pattern, false, true).optional_tail().matches(text);
        let expanded = |pattern: &str| {
            let rest = pattern.strip_prefix("~/").or_else(|| pattern.strip_prefix("$HOME/"));
            rest.map_or_else(|| pattern.to_owned(), |rest| self.around.home.join(rest).display().to_string())
        };
        let configured = self
            .entries
            .iter()
            .rev()
            .find(|entry| fits(&entry.permission, permission) && fits(&expanded(&entry.pattern), subject));
        match configured.map(|entry| entry.decision) {
            Some(Decision::Deny) => Standing::Denied,
            Some(Decision::Ask) => Standing::AskedByRule,
            Some(Decision::Allow | Decision::Contain) => Standing::Allowed,
            None => {
                let default =
                    DEFAULTS.iter().rev().find(|(name, pattern, _)| fits(name, permission) && fits(pattern, subject));
                default.map_or(Standing::Asked, |(.., standing)| *standing)
            }
        }
    }

    /// Paths outside of the project need a permission of their own.
    fn outside(&self, path: &str) -> Standing {
        if Path::new(path).starts_with(&self.around.project) {
            return Standing::Allowed;
        }
        let directory = Path::new(path).parent().map(|parent| parent.join("*").display().to_string());
        self.evaluate("external_directory", &directory.unwrap_or_default())
    }
}

impl Model for OpenCodeModel {
    fn decide(&self, probe: &Probe) -> Standing {
        let relative = |path: &str| {
            let path = Path::new(path);
            path.strip_prefix(&self.around.project).unwrap_or(path).display().to_string()
        };
        match probe {
            Probe::Shell(line) => shell::segments(line)
                .iter()
                .map(|segment| {
                    self.evaluate("bash", shell::without_assignments(segment)).max(self.evaluate("bash", segment))
                })
                .max()
                .unwrap_or(Standing::Asked),
            Probe::Write(path) | Probe::Edit(path) => self.evaluate("edit", &relative(path)).max(self.outside(path)),
            Probe::Read(path) => {
                // Versions differ in which of the two they compare; the stricter answer counts.
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
