//! Claude Code: `permissions` in its settings. Deny, then ask, then allow, whatever the order and however specific.

mod model;

use std::path::{Path, PathBuf};

use callgate::policy::Decision;

use super::command::TextPattern;
use super::draft::{Draft, Key, Outcome, Rule};
use super::path::{self, PathPattern};
use super::probe::{self, Probe, ToolNames};
use super::source::Node;
use super::{Around, ImportError, Layer, Reading, Source, families};
use model::ClaudeModel;

pub(super) const TOOLS: ToolNames = ToolNames {
    shell: ("Bash", "command"),
    read: Some(("Read", "file_path")),
    write: Some(("Write", "file_path")),
    edit: Some(("Edit", "file_path")),
    search: Some(("Grep", "path")),
    list: Some(("Glob", "path")),
    fetch: Some(("WebFetch", "url")),
    web_search: Some(("WebSearch", "query")),
};

/// Everything a server's tool may do.
pub(super) const ANYTHING: &[&str] = &["list", "read", "write", "delete", "run", "connect", "send", "opaque"];
/// What cannot be done without leaving traces.
const CHANGES: &[&str] = &["write", "delete", "connect", "send", "privilege", "opaque"];
/// Tools whose calls do nothing that callgate would ask about.
const HARMLESS: &[&str] = &[
    "Task",
    "Agent",
    "TodoWrite",
    "TodoRead",
    "Skill",
    "ExitPlanMode",
    "AskUserQuestion",
    "BashOutput",
    "KillShell",
    "ToolSearch",
];

/// Agents compare the text of a command, in which a variable in front hides what runs. Where the rest is denied, that stays so.
pub(super) const NO_ASSIGNMENTS: &str = r"!input.command.matches('(^|[;&|({\\n]) *[A-Za-z_][A-Za-z0-9_]*=')";

/// What a rule is about, beside its tool.
#[derive(Debug, Clone)]
enum Spec {
    /// Every call of the tool.
    Whole,
    Command(TextPattern),
    Path(PathPattern),
    Domain(String),
    /// A server's tools: the server, and a glob on its tools.
    Served(String, String),
    /// Something that callgate has no word for.
    Other(String),
}

/// One rule as it was written.
#[derive(Debug, Clone)]
struct Permission {
    tool: String,
    spec: Spec,
    origin: String,
}

/// Which tools a path rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Edit,
    /// Written for a tool whose path rules Claude Code never matches.
    Unmatched(&'static [&'static str]),
}

impl Permission {
    fn parse(text: &str, source: &Source, around: &Around) -> Self {
        let origin = source.origin(text);
        let trimmed = text.trim();
        let (tool, inside) = match trimmed.strip_suffix(')').and_then(|front| front.split_once('(')) {
            Some((tool, inside)) => (tool, Some(inside)),
            None => (trimmed, None),
        };
        let spec = match (tool, inside) {
            (name, None | Some("" | "*")) if name.starts_with("mcp__") => served(name),
            (_, None | Some("" | "*")) => Spec::Whole,
            ("Bash", Some(command)) => Spec::Command(command_pattern(command)),
            ("WebFetch", Some(inside)) => match inside.strip_prefix("domain:") {
                Some(domain) if is_domain(domain) => Spec::Domain(domain.to_lowercase()),
                _ => Spec::Other(inside.to_owned()),
            },
            (tool, Some(path)) if access(tool).is_some() => {
                match PathPattern::gitignore(path, &settings_root(source, around), around) {
                    Ok(pattern) => Spec::Path(pattern),
                    Err(_) => Spec::Other(path.to_owned()),
                }
            }
            (_, Some(inside)) => Spec::Other(inside.to_owned()),
        };
        Permission { tool: tool.to_owned(), spec, origin }
    }
}

fn access(tool: &str) -> Option<Access> {
    match tool {
        "Read" => Some(Access::Read),
        "Edit" => Some(Access::Edit),
        "Write" | "MultiEdit" | "NotebookEdit" => Some(Access::Unmatched(&["write", "delete"])),
        "Glob" | "Grep" | "LS" | "NotebookRead" => Some(Access::Unmatched(&["list", "read"])),
        _ => None,
    }
}

/// `mcp__server`, `mcp__server__*`, `mcp__server__tool`.
fn served(name: &str) -> Spec {
    let rest = name.strip_prefix("mcp__").unwrap_or_default();
    let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
    if server.is_empty() || tool.is_empty() {
        return Spec::Other(name.to_owned());
    }
    Spec::Served(server.to_owned(), tool.to_owned())
}

/// `git:*` and `git *` are fronts, other stars stand for anything, the rest is exact.
fn command_pattern(text: &str) -> TextPattern {
    if let Some(front) = text.strip_suffix(":*") {
        return TextPattern::prefix(front);
    }
    let wild = TextPattern::wild(text, true, false);
    match wild.wildcards() {
        0 => TextPattern::exact(text),
        1 => wild.optional_tail(),
        _ => wild,
    }
}

fn is_domain(domain: &str) -> bool {
    let body = domain.strip_prefix("*.").unwrap_or(domain);
    !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// What `/path` is relative to.
fn settings_root(source: &Source, around: &Around) -> PathBuf {
    match source.layer {
        Layer::Project | Layer::Local => {
            let directory = source.directory();
            match directory.parent() {
                Some(root) if directory.ends_with(".claude") && root.is_absolute() => root.to_owned(),
                _ => around.project.clone(),
            }
        }
        Layer::User | Layer::Managed => source.directory(),
    }
}

pub(super) fn read(sources: &[Source], around: &Around) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let (mut deny, mut ask, mut allow) = (Vec::new(), Vec::new(), Vec::new());
    let mut mode: Option<(Layer, String, String)> = None;
    let mut directories = Vec::new();
    let mut managed_only = false;
    let mut settings = Vec::new();
    for source in sources {
        let node = source.json()?;
        managed_only |= source.layer == Layer::Managed
            && node.get("allowManagedPermissionRulesOnly").and_then(Node::flag).unwrap_or(false);
        settings.push((source, node));
    }
    for (source, node) in &settings {
        let Some(permissions) = node.get("permissions") else { continue };
        if !matches!(permissions, Node::Table(_)) {
            return Err(source.unusable("`permissions` is no object"));
        }
        for (key, list) in [("deny", &mut deny), ("ask", &mut ask), ("allow", &mut allow)] {
            for text in texts(permissions, key, source)? {
                let permission = Permission::parse(text, source, around);
                if key == "allow" && managed_only && source.layer != Layer::Managed {
                    draft.note(&permission.origin, Outcome::LeftOut, "the managed settings take only their own rules");
                    continue;
                }
                list.push(permission);
            }
        }
        for text in texts(permissions, "additionalDirectories", source)? {
            directories.push((text.to_owned(), source.origin(&format!("additionalDirectories {text}"))));
        }
        if let Some(text) = permissions.get("defaultMode").and_then(Node::text)
            && mode.as_ref().is_none_or(|(layer, ..)| source.layer >= *layer)
        {
            mode = Some((source.layer, text.to_owned(), source.origin(&format!("defaultMode {text}"))));
        }
    }
    let rules = deny.len().saturating_add(ask.len()).saturating_add(allow.len()).saturating_add(directories.len());
    for (list, decision) in [(&deny, Decision::Deny), (&ask, Decision::Ask)] {
        for permission in list {
            restrict(&mut draft, permission, decision, around);
        }
    }
    for permission in &allow {
        permit(&mut draft, permission, around);
    }
    for (directory, origin) in &directories {
        draft.root(expanded(directory, around), origin);
    }
    draft.strictest_first();
    let mode = mode.map(|(_, mode, origin)| (mode, origin));
    if let Some((mode, origin)) = &mode {
        default_mode(&mut draft, mode, origin);
    }
    let probes = [&deny, &ask, &allow].into_iter().flatten().flat_map(|rule| probes(rule, around)).collect();
    let model = ClaudeModel {
        deny,
        ask,
        allow,
        mode: mode.map(|(mode, _)| mode).unwrap_or_default(),
        directories: directories.iter().map(|(directory, _)| PathBuf::from(expanded(directory, around))).collect(),
        around: around.clone(),
    };
    Ok(Reading { draft, rules, model: Box::new(model), probes, tools: &TOOLS })
}

/// A list of texts; a list that is none may have denied something.
fn texts<'a>(permissions: &'a Node, key: &str, source: &Source) -> Result<Vec<&'a str>, ImportError> {
    match permissions.get(key) {
        None | Some(Node::Nothing) => Ok(Vec::new()),
        Some(Node::List(items)) => items
            .iter()
            .map(Node::text)
            .collect::<Option<_>>()
            .ok_or_else(|| source.unusable(format!("`permissions.{key}` has something that is no text"))),
        Some(_) => Err(source.unusable(format!("`permissions.{key}` is no list"))),
    }
}

/// A directory as it was written, absolute.
fn expanded(directory: &str, around: &Around) -> String {
    match directory.strip_prefix("~/") {
        Some(rest) => around.home.join(rest).display().to_string(),
        None => path::fold(&around.project.join(directory)).display().to_string(),
    }
}

/// A rule that denies or asks. It is never dropped.
fn restrict(draft: &mut Draft, permission: &Permission, decision: Decision, around: &Around) {
    let origin = permission.origin.as_str();
    match &permission.spec {
        Spec::Whole => {
            let tools = match permission.tool.as_str() {
                // Rules for these hold for every tool that does the like.
                "Edit" => families::EDIT.iter().map(|&tool| tool.to_owned()).collect(),
                "Read" => families::READ.iter().chain(families::SEARCH).map(|&tool| tool.to_owned()).collect(),
                tool => families::of(tool),
            };
            draft.push(Rule::new(decision, Key::Tools, tools, origin));
        }
        Spec::Command(pattern) => restrict_command(draft, pattern, decision, origin, None),
        Spec::Path(pattern) => {
            let effects: &'static [&'static str] = match access(&permission.tool) {
                Some(Access::Edit) => &["write", "delete"],
                Some(Access::Unmatched(effects)) => {
                    draft.note(
                        origin,
                        Outcome::Broader,
                        "Claude Code never matches paths of this tool; here it holds for every way to the path",
                    );
                    effects
                }
                _ => &["list", "read"],
            };
            restrict_paths(draft, pattern, decision, effects, origin, around);
        }
        Spec::Domain(domain) => {
            let bare = domain.strip_prefix("*.").unwrap_or(domain);
            let hosts = [bare.to_owned(), format!("*.{bare}")];
            draft.push(Rule::new(decision, Key::Hosts, hosts, origin).effects(&["connect", "send"]));
        }
        Spec::Served(server, tool) => {
            draft.push(Rule::new(decision, Key::Tools, [format!("{server}/{tool}")], origin));
        }
        Spec::Other(what) => {
            if access(&permission.tool).is_some() {
                draft.note(origin, Outcome::WithoutEffect, "the pattern matches nothing in Claude Code");
                return;
            }
            draft.note(
                origin,
                Outcome::Broader,
                format!("`{what}` cannot be told apart here; every call of {} is asked about", permission.tool),
            );
            draft.push(Rule::new(Decision::Ask, Key::Tools, families::of(&permission.tool), origin));
        }
    }
}

/// A pattern on commands that denies or asks.
pub(super) fn restrict_command(
    draft: &mut Draft,
    pattern: &TextPattern,
    decision: Decision,
    origin: &str,
    reason: Option<String>,
) {
    let restricting = pattern.restricting();
    if restricting.commands.is_empty() {
        draft.note(origin, Outcome::Broader, "found anywhere in the text of a command where one could start");
    }
    draft.push(Rule::new(decision, Key::Commands, restricting.commands, origin).reason(reason.clone()));
    draft.push(Rule::new(decision, Key::CommandPatterns, restricting.patterns, origin).reason(reason));
}

fn restrict_paths(
    draft: &mut Draft,
    pattern: &PathPattern,
    decision: Decision,
    effects: &'static [&'static str],
    origin: &str,
    around: &Around,
) {
    let paths = pattern.restricting(around);
    let trees = if paths.trees.is_empty() { paths.exact.clone() } else { paths.trees };
    // Names in a tree may be seen.
    let below: &'static [&'static str] = if effects.contains(&"write") { effects } else { &["read"] };
    let rule = |globs, effects| Rule::new(decision, Key::Paths, globs, origin).effects(effects).marks(&["!own_files"]);
    draft.push(rule(paths.exact, effects).recursive(false));
    draft.push(rule(trees, below).recursive(true));
}

/// A rule that allows. What cannot be expressed is left out, and asked about.
fn permit(draft: &mut Draft, permission: &Permission, around: &Around) {
    let origin = permission.origin.as_str();
    let tool = permission.tool.as_str();
    match &permission.spec {
        Spec::Whole => match tool {
            "Bash" => {
                draft.note(origin, Outcome::Narrower, "every command is allowed, but callgate's own denies stay, and so do questions about redirections and changed environments");
                draft.push(Rule::new(Decision::Allow, Key::Commands, ["**"], origin));
            }
            "WebFetch" => {
                draft.push(Rule::new(Decision::Allow, Key::Tools, ["WebFetch"], origin).effects(&["connect"]));
            }
            "WebSearch" => draft.note(origin, Outcome::Covered, "standard is silent about searches"),
            _ if access(tool).is_some() => {
                draft.note(origin, Outcome::Covered, "standard lets the project be read and edited, except credentials and what runs later; elsewhere it asks");
            }
            _ if HARMLESS.contains(&tool) => {
                draft.note(origin, Outcome::Covered, "this does nothing that callgate asks about")
            }
            _ if tool.contains('*') => draft.note(origin, Outcome::LeftOut, "a pattern on tools of unknown servers"),
            _ => draft.push(Rule::new(Decision::Allow, Key::Tools, [tool], origin)),
        },
        Spec::Command(pattern) => match pattern.permitting() {
            Ok(command) => draft.push(Rule::new(Decision::Allow, Key::Commands, [command], origin)),
            Err(why) => draft.note(origin, Outcome::LeftOut, why),
        },
        Spec::Path(pattern) => permit_path(draft, tool, pattern, origin, around),
        Spec::Domain(domain) => {
            let rule = Rule::new(Decision::Allow, Key::Hosts, [domain.as_str()], origin);
            draft.push(rule.tools(&["WebFetch"]).effects(&["connect"]));
        }
        Spec::Served(server, _) if server.contains('*') => {
            draft.note(origin, Outcome::LeftOut, "a pattern on tools of unknown servers");
        }
        Spec::Served(server, tool) => {
            draft.push(Rule::new(Decision::Allow, Key::Tools, [format!("{server}/{tool}")], origin).effects(ANYTHING));
        }
        Spec::Other(what) => draft.note(origin, Outcome::LeftOut, format!("`{what}` cannot be told apart here")),
    }
}

fn permit_path(draft: &mut Draft, tool: &str, pattern: &PathPattern, origin: &str, around: &Around) {
    match (access(tool), pattern.directory(around)) {
        (Some(Access::Unmatched(_)) | None, _) => {
            draft.note(origin, Outcome::WithoutEffect, "Claude Code never matches paths of this tool");
        }
        (Some(_), Some((_, true))) => {
            draft.note(
                origin,
                Outcome::Covered,
                "standard lets the project be read and edited, except credentials and what runs later",
            );
        }
        (Some(_), None) if pattern.is_inside(around) => {
            draft.note(
                origin,
                Outcome::Covered,
                "standard lets the project be read and edited, except credentials and what runs later",
            );
        }
        (Some(_), Some((directory, false))) if is_too_wide(&directory, around) => {
            draft.note(origin, Outcome::LeftOut, "this is nearly everything; open the directories that are needed");
        }
        (Some(Access::Edit), Some((directory, false))) => draft.root(directory, origin),
        (Some(Access::Read), Some((directory, false))) => draft.readable(directory, origin),
        (Some(_), None) => {
            draft.note(
                origin,
                Outcome::LeftOut,
                "outside of the project only whole directories can be opened (`dir/**`)",
            );
        }
    }
}

/// Whether a directory holds the home directory or the whole project.
fn is_too_wide(directory: &str, around: &Around) -> bool {
    let directory = path_of(directory, around);
    directory == around.home || around.home.starts_with(&directory) || around.project.starts_with(&directory)
}

fn default_mode(draft: &mut Draft, mode: &str, origin: &str) {
    match mode {
        "default" => {}
        "acceptEdits" => draft.note(origin, Outcome::Covered, "standard lets ordinary files of the project be edited"),
        "dontAsk" => {
            // What it runs without asking goes on to the bundled policy, everything else ends here.
            let quiet = model::READ_ONLY.join("|");
            let when = format!("!input.command.matches('^ *({quiet})( [^;&|<>`$()]*)?$')");
            draft.guard_commands(NO_ASSIGNMENTS);
            let shells = families::SHELL.iter().copied();
            draft.push(Rule::new(Decision::Deny, Key::Tools, shells, origin).when(Some(when)));
            draft.push(Rule::new(Decision::Deny, Key::Tools, ["*"], origin).effects(CHANGES));
            let outside = draft.outside();
            draft.push(Rule::new(Decision::Deny, Key::Paths, outside, origin).tools(families::FILES));
        }
        "bypassPermissions" | "auto" => {
            draft.note(
                origin,
                Outcome::LeftOut,
                "nothing is waved through here; what standard does not know is asked about",
            );
        }
        "plan" => draft.note(
            origin,
            Outcome::LeftOut,
            "planning is a state of a session, which Claude Code itself keeps; it is no rule",
        ),
        _ => draft.note(origin, Outcome::LeftOut, "a mode that is not known here"),
    }
}

/// Calls that a rule is about.
fn probes(permission: &Permission, around: &Around) -> Vec<Probe> {
    match &permission.spec {
        Spec::Command(pattern) => probe::of_command(pattern),
        Spec::Path(pattern) => probe::of_path(pattern, around),
        Spec::Domain(domain) => {
            let bare = domain.strip_prefix("*.").unwrap_or(domain);
            [bare.to_owned(), format!("sub.{bare}"), format!("{bare}.evil.example")]
                .into_iter()
                .flat_map(|host| {
                    [Probe::Fetch(format!("https://{host}/x")), Probe::Shell(format!("curl https://{host}/x"))]
                })
                .collect()
        }
        Spec::Served(server, tool) => {
            let tool = tool.replace('*', "x");
            vec![probe::served(server, &tool), probe::served(server, "other"), probe::served("elsewhere", &tool)]
        }
        Spec::Whole => vec![Probe::Tool(permission.tool.clone())],
        Spec::Other(_) => vec![Probe::Tool(permission.tool.clone())],
    }
}

/// The path that a word of a command names.
fn path_of(word: &str, around: &Around) -> PathBuf {
    match word.strip_prefix('~') {
        Some(rest) => around.home.join(rest.trim_start_matches('/')),
        None => around.project.join(Path::new(word)),
    }
}
