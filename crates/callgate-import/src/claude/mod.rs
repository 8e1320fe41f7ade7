//! Claude Code: `permissions` in its settings. Deny, then ask, then allow, whatever the order and however specific.

mod model;

use std::path::{Path, PathBuf};

use callgate::policy::Decision;
use callgate_install::{HostEnvironment, SettingsNode};
use callgate_model::lexical;

use crate::command::TextPattern;
use crate::draft::{Draft, Key, Rule, Translation};
use crate::error::ImportError;
use crate::families;
use crate::path::PathPattern;
use crate::probe::{self, Probe, ToolNames};
use crate::proof::{Reading, RuleExamples};
use crate::settings_file::{SettingsFile, SettingsLayer};
use crate::translate::{
    ANYTHING, HARMLESS_TOOL, NO_ASSIGNMENTS, NOTHING_WHOLESALE, PROJECT_FILES, permit_command, permit_every_command,
    restrict_command, restrict_host, split_specifier, text_list,
};
use model::ClaudeModel;

pub(crate) const TOOLS: ToolNames = ToolNames(
    "shell=Bash.command read=Read.file_path write=Write.file_path edit=Edit.file_path search=Grep.path list=Glob.path \
     fetch=WebFetch.url web_search=WebSearch.query",
);

/// The effects of tools that change something or that callgate cannot analyze.
const CHANGES: &[&str] = &["write", "delete", "connect", "send", "privilege", "opaque"];
/// Tools that callgate does not ask about.
const HARMLESS: &str =
    "Task Agent TodoWrite TodoRead Skill ExitPlanMode AskUserQuestion BashOutput KillShell ToolSearch";

/// The specifier of a rule, after its tool.
#[derive(Debug, Clone)]
enum Spec {
    /// Every call of the tool.
    Whole,
    Command(TextPattern),
    Path(PathPattern),
    Domain(String),
    /// The tools of a server: the server, and a glob on its tools.
    Served(String, String),
    /// A specifier that callgate cannot express.
    Other(String),
}

/// One rule.
#[derive(Debug, Clone)]
struct Permission {
    tool: String,
    spec: Spec,
    origin: String,
}

/// The access that a path rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Edit,
    /// The rule is for a tool whose paths Claude Code never matches.
    Unmatched(&'static [&'static str]),
}

impl Permission {
    fn parse(text: &str, file: &SettingsFile, environment: &HostEnvironment) -> Self {
        let origin = file.origin(text);
        let (tool, inside) = split_specifier(text.trim());
        let spec = match (tool, inside) {
            (name, None | Some("" | "*")) if name.starts_with("mcp__") => served(name),
            (_, None | Some("" | "*")) => Spec::Whole,
            ("Bash", Some(command)) => Spec::Command(command_pattern(command)),
            ("WebFetch", Some(inside)) => match inside.strip_prefix("domain:") {
                Some(domain) if is_domain(domain) => Spec::Domain(domain.to_lowercase()),
                _ => Spec::Other(inside.to_owned()),
            },
            (tool, Some(path)) if access(tool).is_some() => {
                match PathPattern::gitignore(path, &settings_root(file, environment), environment) {
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

/// Parses a pattern: `git:*` and `git *` are prefixes, other stars stand for any text, anything else is exact.
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

/// The directory that `/path` is relative to.
fn settings_root(file: &SettingsFile, environment: &HostEnvironment) -> PathBuf {
    match file.layer {
        SettingsLayer::Project | SettingsLayer::Local => {
            let directory = file.directory();
            match directory.parent() {
                Some(root) if directory.ends_with(".claude") && root.is_absolute() => root.to_owned(),
                _ => environment.project.clone(),
            }
        }
        SettingsLayer::User | SettingsLayer::Managed => file.directory(),
    }
}

pub(crate) fn read(files: &[SettingsFile], environment: &HostEnvironment) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let (mut deny, mut ask, mut allow) = (Vec::new(), Vec::new(), Vec::new());
    let mut mode: Option<(SettingsLayer, String, String)> = None;
    let mut directories = Vec::new();
    let mut managed_only = false;
    let mut settings = Vec::new();
    for file in files {
        let node = file.json()?;
        managed_only |= file.layer == SettingsLayer::Managed
            && node.get("allowManagedPermissionRulesOnly").and_then(SettingsNode::flag).unwrap_or(false);
        settings.push((file, node));
    }
    for (file, node) in &settings {
        let Some(permissions) = node.get("permissions") else { continue };
        if !matches!(permissions, SettingsNode::Table(_)) {
            return Err(file.unusable("`permissions` is not an object"));
        }
        for (key, list) in [("deny", &mut deny), ("ask", &mut ask), ("allow", &mut allow)] {
            for text in text_list(node, &["permissions", key], file)? {
                let permission = Permission::parse(text, file, environment);
                if key == "allow" && managed_only && file.layer != SettingsLayer::Managed {
                    draft.left_out(&permission.origin, "the managed settings allow only their own rules");
                    continue;
                }
                list.push(permission);
            }
        }
        for text in text_list(node, &["permissions", "additionalDirectories"], file)? {
            directories.push((text.to_owned(), file.origin(&format!("additionalDirectories {text}"))));
        }
        if let Some(text) = permissions.get("defaultMode").and_then(SettingsNode::text)
            && mode.as_ref().is_none_or(|(layer, ..)| file.layer >= *layer)
        {
            mode = Some((file.layer, text.to_owned(), file.origin(&format!("defaultMode {text}"))));
        }
    }
    let rules = deny.len().saturating_add(ask.len()).saturating_add(allow.len()).saturating_add(directories.len());
    for (list, decision) in [(&deny, Decision::Deny), (&ask, Decision::Ask)] {
        for permission in list {
            restrict(&mut draft, permission, decision, environment);
        }
    }
    for permission in &allow {
        permit(&mut draft, permission, environment);
    }
    for (directory, origin) in &directories {
        draft.root(expanded(directory, environment), origin);
    }
    draft.strictest_first();
    let mode = mode.map(|(_, mode, origin)| (mode, origin));
    if let Some((mode, origin)) = &mode {
        default_mode(&mut draft, mode, origin);
    }
    let examples = [(&deny, Decision::Deny), (&ask, Decision::Ask), (&allow, Decision::Allow)]
        .into_iter()
        .flat_map(|(rules, decision)| rules.iter().map(move |rule| (rule, decision)))
        .map(|(rule, decision)| RuleExamples::new(&rule.origin, decision, probes(rule, environment)))
        .collect();
    let model = ClaudeModel {
        deny,
        ask,
        allow,
        mode: mode.map(|(mode, _)| mode).unwrap_or_default(),
        directories: directories.iter().map(|(directory, _)| PathBuf::from(expanded(directory, environment))).collect(),
        environment: environment.clone(),
    };
    Ok(Reading { draft, rules, model: Box::new(model), examples, tools: &TOOLS })
}

/// The absolute path of a directory.
fn expanded(directory: &str, environment: &HostEnvironment) -> String {
    match directory.strip_prefix("~/") {
        Some(rest) => environment.home.join(rest).display().to_string(),
        None => lexical::fold(&environment.project.join(directory)).display().to_string(),
    }
}

/// Translates a rule that denies or asks. It is never dropped.
fn restrict(draft: &mut Draft, permission: &Permission, decision: Decision, environment: &HostEnvironment) {
    let origin = permission.origin.as_str();
    match &permission.spec {
        Spec::Whole => {
            let tools = match permission.tool.as_str() {
                // Rules for these apply to all similar tools.
                "Edit" => families::names(families::EDIT),
                "Read" => [families::names(families::READ), families::names(families::SEARCH)].concat(),
                tool => families::of(tool),
            };
            draft.push(Rule::new(decision, Key::Tools, tools, origin));
        }
        Spec::Command(pattern) => {
            restrict_command(draft, pattern, decision, origin, None).into_iter().for_each(|rule| draft.push(rule));
        }
        Spec::Path(pattern) => {
            let effects: &'static [&'static str] = match access(&permission.tool) {
                Some(Access::Edit) => &["write", "delete"],
                Some(Access::Unmatched(effects)) => {
                    draft.broader(origin, "Claude Code never matches paths of this tool; callgate does for every tool");
                    effects
                }
                _ => &["list", "read"],
            };
            restrict_paths(draft, pattern, decision, effects, origin, environment);
        }
        Spec::Domain(domain) => {
            draft.push(restrict_host(decision, domain.strip_prefix("*.").unwrap_or(domain), origin));
        }
        Spec::Served(server, tool) => {
            draft.push(Rule::new(decision, Key::Tools, [format!("{server}/{tool}")], origin));
        }
        Spec::Other(what) => {
            if access(&permission.tool).is_some() {
                draft.note(origin, Translation::WithoutEffect, "the pattern matches nothing in Claude Code");
                return;
            }
            let why = format!("callgate cannot express `{what}`; it asks about every call of {}", permission.tool);
            draft.broader(origin, why);
            draft.push(Rule::new(Decision::Ask, Key::Tools, families::of(&permission.tool), origin));
        }
    }
}

fn restrict_paths(
    draft: &mut Draft,
    pattern: &PathPattern,
    decision: Decision,
    effects: &'static [&'static str],
    origin: &str,
    environment: &HostEnvironment,
) {
    let paths = pattern.restricting(environment);
    let trees = if paths.trees.is_empty() { paths.exact.clone() } else { paths.trees };
    // Listing the names in a tree is not restricted.
    let below: &'static [&'static str] = if effects.contains(&"write") { effects } else { &["read"] };
    let rule = |globs, effects| Rule::new(decision, Key::Paths, globs, origin).effects(effects).except_own_files();
    draft.push(rule(paths.exact, effects).recursive(false));
    draft.push(rule(trees, below).recursive(true));
}

/// Translates a rule that allows. A rule that cannot be expressed is left out, so that callgate asks.
fn permit(draft: &mut Draft, permission: &Permission, environment: &HostEnvironment) {
    let origin = permission.origin.as_str();
    let tool = permission.tool.as_str();
    match &permission.spec {
        Spec::Whole => match tool {
            "Bash" => permit_every_command(draft, origin),
            "WebFetch" => {
                draft.push(Rule::new(Decision::Allow, Key::Tools, ["WebFetch"], origin).effects(&["connect"]));
            }
            "WebSearch" => draft.covered(origin, "standard allows searches"),
            _ if access(tool).is_some() => draft.covered(origin, PROJECT_FILES),
            _ if families::contains(HARMLESS, tool) => draft.covered(origin, HARMLESS_TOOL),
            _ if tool.contains('*') => draft.left_out(origin, "it is a pattern on tools of unknown servers"),
            _ => draft.push(Rule::new(Decision::Allow, Key::Tools, [tool], origin)),
        },
        Spec::Command(pattern) => permit_command(draft, pattern, None, origin),
        Spec::Path(pattern) => permit_path(draft, tool, pattern, origin, environment),
        Spec::Domain(domain) => {
            let rule = Rule::new(Decision::Allow, Key::Hosts, [domain.as_str()], origin);
            draft.push(rule.tools("WebFetch").effects(&["connect"]));
        }
        Spec::Served(server, _) if server.contains('*') => {
            draft.left_out(origin, "it is a pattern on tools of unknown servers");
        }
        Spec::Served(server, tool) => {
            draft.push(Rule::new(Decision::Allow, Key::Tools, [format!("{server}/{tool}")], origin).effects(ANYTHING));
        }
        Spec::Other(what) => draft.left_out(origin, format!("callgate cannot express `{what}`")),
    }
}

fn permit_path(draft: &mut Draft, tool: &str, pattern: &PathPattern, origin: &str, environment: &HostEnvironment) {
    match (access(tool), pattern.directory(environment)) {
        (Some(Access::Unmatched(_)) | None, _) => {
            draft.note(origin, Translation::WithoutEffect, "Claude Code never matches paths of this tool");
        }
        (Some(_), Some((_, true))) => draft.covered(origin, PROJECT_FILES),
        (Some(_), None) if pattern.is_inside(environment) => draft.covered(origin, PROJECT_FILES),
        (Some(_), Some((directory, false))) if is_too_wide(&directory, environment) => {
            draft.left_out(origin, "this is nearly everything; allow the directories that are needed");
        }
        (Some(Access::Edit), Some((directory, false))) => draft.root(directory, origin),
        (Some(Access::Read), Some((directory, false))) => draft.readable(directory, origin),
        (Some(_), None) => {
            draft.left_out(origin, "outside the project only whole directories can be allowed (`dir/**`)");
        }
    }
}

/// Whether a directory contains the home directory or the project.
fn is_too_wide(directory: &str, environment: &HostEnvironment) -> bool {
    let directory = path_of(directory, environment);
    environment.home.starts_with(&directory) || environment.project.starts_with(&directory)
}

fn default_mode(draft: &mut Draft, mode: &str, origin: &str) {
    match mode {
        "default" => {}
        "acceptEdits" => draft.covered(origin, "standard allows editing ordinary files of the project"),
        "dontAsk" => {
            // What Claude Code runs without asking is left to the bundled policy, everything else is denied.
            let quiet = model::READ_ONLY;
            let when = format!("!input.command.matches('^ *({quiet})( [^;&|<>`$()\\\\n]*)?$')");
            draft.guard_commands(NO_ASSIGNMENTS);
            let shells = families::names(families::SHELL);
            draft.push(Rule::new(Decision::Deny, Key::Tools, shells, origin).when(Some(when)));
            draft.push(Rule::new(Decision::Deny, Key::Tools, ["*"], origin).effects(CHANGES));
            let outside = draft.outside();
            draft.push(Rule::new(Decision::Deny, Key::Paths, outside, origin).tools(families::FILES));
        }
        "bypassPermissions" | "auto" => draft.left_out(origin, NOTHING_WHOLESALE),
        "plan" => draft.left_out(origin, "planning is a state of a session, not a rule"),
        _ => draft.left_out(origin, "the mode is unknown"),
    }
}

/// Example calls for a rule.
fn probes(permission: &Permission, environment: &HostEnvironment) -> Vec<Probe> {
    match &permission.spec {
        Spec::Command(pattern) => probe::of_command(pattern),
        Spec::Path(pattern) => probe::of_path(pattern, environment),
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
        Spec::Whole | Spec::Other(_) => {
            let common = probe::common(environment).into_iter();
            let own = common.filter(|probe| TOOLS.name(probe) == Some(&permission.tool));
            own.chain([Probe::Tool(permission.tool.clone())]).collect()
        }
    }
}

/// The path of a word in a command.
fn path_of(word: &str, environment: &HostEnvironment) -> PathBuf {
    match word.strip_prefix('~') {
        Some(rest) => environment.home.join(rest.trim_start_matches('/')),
        None => environment.project.join(Path::new(word)),
    }
}
