//! Gemini CLI: rules of its policy engine and `tools` in its settings. The highest tier and priority decides.

mod model;

use callgate::policy::{Decision, Policy};

use super::claude::{ANYTHING, restrict_command};
use super::command::TextPattern;
use super::draft::{Draft, Key, Outcome, Rule};
use super::probe::{self, Probe, ToolNames};
use super::source::Node;
use super::{Around, ImportError, Layer, Reading, Source, families};
use model::{Compiled, GeminiModel};

const TOOLS: ToolNames = ToolNames {
    shell: ("run_shell_command", "command"),
    read: Some(("read_file", "file_path")),
    write: Some(("write_file", "file_path")),
    edit: Some(("replace", "file_path")),
    search: Some(("grep_search", "dir_path")),
    list: Some(("list_directory", "dir_path")),
    fetch: Some(("web_fetch", "prompt")),
    web_search: Some(("google_web_search", "query")),
};
const SHELL: &str = "run_shell_command";
/// The tools it has, for settings that name those that stay.
const BUILT_IN: &[&str] = &[
    SHELL,
    "read_file",
    "read_many_files",
    "write_file",
    "replace",
    "list_directory",
    "glob",
    "grep_search",
    "search_file_content",
    "web_fetch",
    "google_web_search",
    "save_memory",
    "write_todos",
];
/// Names of classes that settings still use.
const CLASSES: &[(&str, &str)] = &[
    ("ShellTool", SHELL),
    ("ReadFileTool", "read_file"),
    ("ReadManyFilesTool", "read_many_files"),
    ("WriteFileTool", "write_file"),
    ("EditTool", "replace"),
    ("LSTool", "list_directory"),
    ("GlobTool", "glob"),
    ("GrepTool", "grep_search"),
    ("RipGrepTool", "grep_search"),
    ("WebFetchTool", "web_fetch"),
    ("WebSearchTool", "google_web_search"),
    ("MemoryTool", "save_memory"),
];

/// What a rule asks of the arguments.
#[derive(Debug, Clone)]
enum Arguments {
    Any,
    /// A command that starts with this.
    Prefix(String),
    /// A command whose start fits this regular expression.
    Command(String),
    /// Arguments as JSON that fit this regular expression.
    Json(String),
}

/// One rule, with one tool and one condition on its arguments.
#[derive(Debug, Clone)]
struct PolicyRule {
    /// `*`, a name, or `mcp_server_*`.
    tool: String,
    server: Option<String>,
    arguments: Arguments,
    decision: Decision,
    /// Tier and priority in one number.
    priority: f64,
    message: Option<String>,
    /// Why it does not hold always, if it does not.
    limited: Option<&'static str>,
    origin: String,
}

/// A command must start with one of these, if the settings say so.
#[derive(Debug, Default)]
struct Core {
    tools: Option<Vec<String>>,
    prefixes: Vec<(String, String)>,
    origin: String,
}

pub(super) fn read(sources: &[Source], around: &Around) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let mut rules = Vec::new();
    let mut core = Core::default();
    for source in sources {
        if source.path.extension().is_some_and(|extension| extension == "toml") {
            read_policy(source, &mut rules, &mut draft)?;
        } else {
            read_settings(source, &mut rules, &mut core, &mut draft)?;
        }
    }
    let count = rules.len().saturating_add(usize::from(core.tools.is_some()));
    // At the same priority the order of files decides, which nobody should rely on: the strictest first.
    rules.sort_by(|left, right| right.priority.total_cmp(&left.priority).then(right.decision.cmp(&left.decision)));
    core_denies(&mut draft, &core);
    for (number, rule) in rules.iter().enumerate() {
        let later = rules.get(number.saturating_add(1)..).unwrap_or_default();
        if rule.decision == Decision::Allow {
            permit(&mut draft, rule, later, &core);
        } else {
            restrict(&mut draft, rule);
        }
    }
    core_commands(&mut draft, &core);
    let probes = rules
        .iter()
        .flat_map(probes)
        .chain(core.prefixes.iter().flat_map(|(prefix, _)| probe::of_command(&TextPattern::prefix(prefix))))
        .collect();
    let compiled = rules.into_iter().map(Compiled::of).collect();
    Ok(Reading {
        draft,
        rules: count,
        model: Box::new(GeminiModel { rules: compiled, core, around: around.clone() }),
        probes,
        tools: &TOOLS,
    })
}

fn tier(layer: Layer) -> f64 {
    match layer {
        Layer::Managed => 5.0,
        Layer::User => 4.0,
        Layer::Project | Layer::Local => 3.0,
    }
}

fn read_policy(source: &Source, rules: &mut Vec<PolicyRule>, draft: &mut Draft) -> Result<(), ImportError> {
    let node = source.toml()?;
    for (key, _) in node.entries() {
        if key != "rule" {
            let why = "only [[rule]] is read; look whether it denies something";
            draft.note(&source.origin(&format!("[{key}]")), Outcome::LeftOut, why);
        }
    }
    let tables = match node.get("rule") {
        None => return Ok(()),
        Some(Node::List(tables)) => tables,
        Some(_) => return Err(source.unusable("`rule` is no list of tables")),
    };
    for (number, table) in tables.iter().enumerate() {
        let wrong = |why: &str| source.unusable(format!("rule {}: {why}", number.saturating_add(1)));
        let texts = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(value) => {
                value.texts().map(Some).ok_or_else(|| wrong(&format!("`{key}` is neither text nor a list of texts")))
            }
        };
        let decision = match table.get("decision").and_then(Node::text) {
            Some("allow") => Decision::Allow,
            Some("ask_user") => Decision::Ask,
            Some("deny") => Decision::Deny,
            _ => return Err(wrong("`decision` is none of allow, ask_user, deny")),
        };
        let priority = match table.get("priority") {
            None => 0.0,
            Some(Node::Number(number)) if (0.0..1000.0).contains(number) => *number,
            Some(_) => return Err(wrong("`priority` is no number from 0 to 999")),
        };
        let server =
            table.get("mcpName").map(|value| value.text().ok_or_else(|| wrong("`mcpName` is no text"))).transpose()?;
        let tools = texts("toolName")?.unwrap_or_else(|| vec!["*"]);
        let mut conditions = Vec::new();
        for prefix in texts("commandPrefix")?.unwrap_or_default() {
            conditions.push(Arguments::Prefix(prefix.to_owned()));
        }
        conditions.extend(
            texts("commandRegex")?.unwrap_or_default().into_iter().map(|text| Arguments::Command(text.to_owned())),
        );
        conditions
            .extend(texts("argsPattern")?.unwrap_or_default().into_iter().map(|text| Arguments::Json(text.to_owned())));
        if conditions.is_empty() {
            conditions.push(Arguments::Any);
        }
        let limits = [
            ("modes", "it holds in some modes only"),
            ("interactive", "it holds only with, or only without, a person"),
            ("subagent", "it holds for one sub-agent only"),
            ("toolAnnotations", "it holds for tools that claim something of themselves"),
        ];
        let limited = limits.iter().find(|(key, _)| table.get(key).is_some()).map(|(_, why)| *why);
        for tool in tools {
            for arguments in &conditions {
                let shown = describe(tool, server, arguments, decision, priority);
                rules.push(PolicyRule {
                    tool: tool.to_owned(),
                    server: server.map(str::to_owned),
                    arguments: arguments.clone(),
                    decision,
                    priority: tier(source.layer) + priority / 1000.0,
                    message: table.get("denyMessage").and_then(Node::text).map(str::to_owned),
                    limited,
                    origin: source.origin(&shown),
                });
            }
        }
    }
    Ok(())
}

/// A rule in one line.
fn describe(tool: &str, server: Option<&str>, arguments: &Arguments, decision: Decision, priority: f64) -> String {
    let server = server.map(|server| format!(" of {server}")).unwrap_or_default();
    let arguments = match arguments {
        Arguments::Any => String::new(),
        Arguments::Prefix(text) => format!(" commandPrefix {text:?}"),
        Arguments::Command(text) => format!(" commandRegex {text:?}"),
        Arguments::Json(text) => format!(" argsPattern {text:?}"),
    };
    format!("{} {tool}{server}{arguments}, priority {priority}", super::draft::word(decision))
}

fn read_settings(
    source: &Source,
    rules: &mut Vec<PolicyRule>,
    core: &mut Core,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let node = source.json()?;
    let list = |keys: &[&str]| match node.at(keys) {
        None | Some(Node::Nothing) => Ok(Vec::new()),
        Some(Node::List(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Node::text).collect();
            texts.ok_or_else(|| source.unusable(format!("`{}` has something that is no text", keys.join("."))))
        }
        Some(_) => Err(source.unusable(format!("`{}` is no list", keys.join(".")))),
    };
    let mut add =
        |tool: String, server: Option<&str>, arguments: Arguments, decision: Decision, priority: f64, what: String| {
            rules.push(PolicyRule {
                tool,
                server: server.map(str::to_owned),
                arguments,
                decision,
                priority,
                message: None,
                limited: None,
                origin: source.origin(&what),
            });
        };
    // Old settings had these at the top.
    for keys in [&["tools", "exclude"][..], &["excludeTools"]] {
        for text in list(keys)? {
            let (tool, arguments) = tool_and_command(text);
            add(tool, None, arguments, Decision::Deny, 4.4, format!("{} {text}", keys.join(".")));
        }
    }
    for keys in [&["tools", "allowed"][..], &["allowedTools"]] {
        for text in list(keys)? {
            let (tool, arguments) = tool_and_command(text);
            add(tool, None, arguments, Decision::Allow, 4.3, format!("{} {text}", keys.join(".")));
        }
    }
    for server in list(&["mcp", "excluded"])? {
        add("*".to_owned(), Some(server), Arguments::Any, Decision::Deny, 4.9, format!("mcp.excluded {server}"));
    }
    for server in list(&["mcp", "allowed"])? {
        add("*".to_owned(), Some(server), Arguments::Any, Decision::Allow, 4.1, format!("mcp.allowed {server}"));
    }
    for (server, settings) in node.get("mcpServers").map(Node::entries).unwrap_or_default() {
        if settings.get("trust").and_then(Node::flag) == Some(true) {
            add(
                "*".to_owned(),
                Some(server),
                Arguments::Any,
                Decision::Allow,
                4.2,
                format!("mcpServers.{server}.trust"),
            );
        }
        for tool in settings.get("excludeTools").and_then(Node::texts).unwrap_or_default() {
            add(
                tool.to_owned(),
                Some(server),
                Arguments::Any,
                Decision::Deny,
                4.95,
                format!("mcpServers.{server}.excludeTools {tool}"),
            );
        }
        if settings.get("includeTools").is_some() {
            let origin = source.origin(&format!("mcpServers.{server}.includeTools"));
            draft.note(&origin, Outcome::Covered, "tools that a server does not offer cannot be called");
        }
    }
    for keys in [&["tools", "core"][..], &["coreTools"]] {
        if node.at(keys).is_none_or(|value| *value == Node::Nothing) {
            continue;
        }
        let tools = core.tools.get_or_insert_default();
        core.origin = source.origin(&keys.join("."));
        for text in list(keys)? {
            let (tool, arguments) = tool_and_command(text);
            if let Arguments::Prefix(prefix) = arguments {
                core.prefixes.push((prefix, source.origin(&format!("{} {text}", keys.join(".")))));
            }
            tools.push(tool);
        }
    }
    if let Some(mode) = node.at(&["general", "defaultApprovalMode"]).and_then(Node::text) {
        let origin = source.origin(&format!("general.defaultApprovalMode {mode}"));
        draft.note(&origin, Outcome::LeftOut, "a mode is a state of a session; it is no rule");
    }
    Ok(())
}

/// `run_shell_command(git status)`, `ShellTool(git)`, `read_file`.
fn tool_and_command(text: &str) -> (String, Arguments) {
    let (name, command) = match text.strip_suffix(')').and_then(|front| front.split_once('(')) {
        Some((name, command)) => (name, Some(command)),
        None => (text, None),
    };
    let tool = CLASSES.iter().find(|(class, _)| *class == name).map_or(name, |(_, tool)| tool);
    match command {
        Some(command) if tool == SHELL && !command.is_empty() => {
            (tool.to_owned(), Arguments::Prefix(command.to_owned()))
        }
        _ => (tool.to_owned(), Arguments::Any),
    }
}

/// The tools a rule is about, as callgate names them.
fn tool_patterns(rule: &PolicyRule) -> Vec<String> {
    if let Some(server) = &rule.server {
        let tool = rule.tool.strip_prefix(&format!("mcp_{server}_")).unwrap_or(&rule.tool);
        return vec![format!("{server}/{tool}")];
    }
    match rule.tool.strip_prefix("mcp_") {
        Some("*") => vec!["*/*".to_owned()],
        Some(rest) => {
            let mut patterns = vec![rule.tool.clone()];
            patterns.extend(rest.split_once('_').map(|(server, tool)| format!("{server}/{tool}")));
            patterns
        }
        None => families::of(&rule.tool),
    }
}

/// A rule that denies or asks. It is never dropped.
fn restrict(draft: &mut Draft, rule: &PolicyRule) {
    let origin = rule.origin.as_str();
    let mut decision = rule.decision;
    if let Some(why) = rule.limited {
        draft.note(origin, Outcome::Broader, format!("{why}; here it always asks"));
        decision = Decision::Ask;
    }
    let shell = rule.server.is_none() && matches!(rule.tool.as_str(), SHELL | "*");
    match &rule.arguments {
        Arguments::Any => {
            draft.push(Rule::new(decision, Key::Tools, tool_patterns(rule), origin).reason(rule.message.clone()));
        }
        Arguments::Prefix(prefix) if shell => {
            restrict_command(draft, &TextPattern::prefix(prefix.trim()), decision, origin, rule.message.clone());
        }
        Arguments::Command(expression) if shell && is_usable(&found_anywhere(expression)) => {
            let rule = Rule::new(decision, Key::CommandPatterns, [found_anywhere(expression)], origin)
                .reason(rule.message.clone());
            draft.push(rule);
        }
        Arguments::Prefix(_) | Arguments::Command(_) | Arguments::Json(_) => {
            draft.note(
                origin,
                Outcome::Broader,
                "its condition on the arguments cannot be told here; every call of the tool is asked about",
            );
            draft.push(Rule::new(Decision::Ask, Key::Tools, tool_patterns(rule), origin).reason(rule.message.clone()));
        }
    }
}

fn found_anywhere(expression: &str) -> String {
    format!("(?:^|[\\s;&|(){{}}`$\"'/])(?:{})", expression.trim_start_matches('^'))
}

/// Whether callgate takes a regular expression.
fn is_usable(expression: &str) -> bool {
    let text = serde_json::json!({ "rules": [{ "name": "x", "command_patterns": [expression], "action": "deny" }] })
        .to_string();
    Policy::from_yaml(&text, "a pattern").is_ok()
}

/// A rule that allows. What cannot be expressed is left out.
fn permit(draft: &mut Draft, rule: &PolicyRule, later: &[PolicyRule], core: &Core) {
    let origin = rule.origin.as_str();
    if let Some(why) = rule.limited {
        draft.note(origin, Outcome::LeftOut, why);
        return;
    }
    let shell = rule.server.is_none() && rule.tool == SHELL;
    if shell && !core.prefixes.is_empty() {
        let kept = matches!(&rule.arguments, Arguments::Prefix(text) if core.prefixes.iter().any(|(prefix, _)| TextPattern::prefix(prefix).matches(text)));
        if !kept {
            draft.note(origin, Outcome::LeftOut, "tools.core lets only some commands run");
            return;
        }
    }
    // Gemini CLI compares the whole text first: where it restricts the rest, nothing may stand in front.
    let guarded = !core.prefixes.is_empty()
        || later.iter().any(|other| {
            other.decision > Decision::Allow && other.server.is_none() && matches!(other.tool.as_str(), SHELL | "*")
        });
    match &rule.arguments {
        Arguments::Prefix(prefix) if shell => {
            if prefix.ends_with(char::is_whitespace) {
                draft.note(
                    origin,
                    Outcome::LeftOut,
                    "a prefix that ends with a blank matches next to nothing in Gemini CLI",
                );
                return;
            }
            match TextPattern::prefix(prefix).permitting() {
                Ok(command) => {
                    let when = guarded.then(|| format!("input.command.startsWith('{prefix}')"));
                    draft.push(Rule::new(Decision::Allow, Key::Commands, [command], origin).when(when));
                }
                Err(why) => draft.note(origin, Outcome::LeftOut, why),
            }
        }
        Arguments::Command(_) if shell && guarded => {
            let why =
                "other commands are restricted further down, and an expression on the whole text cannot be told here";
            draft.note(origin, Outcome::LeftOut, why);
        }
        Arguments::Command(expression)
            if shell && is_usable(&format!("^(?:{expression})")) && !expression.starts_with('^') =>
        {
            draft.push(Rule::new(Decision::Allow, Key::CommandPatterns, [format!("^(?:{expression})")], origin));
        }
        Arguments::Any if shell => {
            draft.note(origin, Outcome::Narrower, "every command is allowed, but callgate's own denies stay, and so do questions about redirections and changed environments");
            draft.push(Rule::new(Decision::Allow, Key::Commands, ["**"], origin));
        }
        Arguments::Any => permit_tool(draft, rule, later),
        _ => draft.note(origin, Outcome::LeftOut, "its condition on the arguments cannot be told here"),
    }
}

fn permit_tool(draft: &mut Draft, rule: &PolicyRule, later: &[PolicyRule]) {
    let origin = rule.origin.as_str();
    if let Some(server) = &rule.server {
        if server.contains('*') {
            draft.note(origin, Outcome::LeftOut, "a pattern on unknown servers");
        } else {
            draft.push(Rule::new(Decision::Allow, Key::Tools, tool_patterns(rule), origin).effects(ANYTHING));
        }
        return;
    }
    if rule.tool.contains('*') || rule.tool.starts_with("mcp_") {
        draft.note(origin, Outcome::LeftOut, "a pattern on tools; name the server with mcpName");
        return;
    }
    // Where nothing further down restricts the tool, the bundled policy says the same.
    let restricted = later.iter().any(|other| {
        other.decision > Decision::Allow
            && other.server.is_none()
            && (other.tool == "*" || families::of(&other.tool).contains(&rule.tool))
    });
    match permitted(&rule.tool, origin) {
        Some(allow) if restricted || rule.tool == "web_fetch" => draft.push(allow),
        Some(_) => draft.note(
            origin,
            Outcome::Covered,
            "standard lets the project be read and edited, except credentials and what runs later",
        ),
        None if BUILT_IN.contains(&rule.tool.as_str()) => {
            draft.note(origin, Outcome::Covered, "this does nothing that callgate asks about")
        }
        None => draft.push(Rule::new(Decision::Allow, Key::Tools, [rule.tool.as_str()], origin)),
    }
}

/// What a tool of its own may do when it is allowed: never what runs later.
pub(super) fn permitted(tool: &str, origin: &str) -> Option<Rule> {
    let family = families::family(tool)?;
    let tools = |effects| Rule::new(Decision::Allow, Key::Tools, [tool], origin).effects(effects);
    if [families::CREATE, families::CHANGE].contains(&family) {
        let rule = Rule::new(Decision::Allow, Key::Paths, ["/**", "!@runs-later"], origin);
        return Some(rule.tools(family).effects(&["list", "read", "write"]));
    }
    [
        (families::READ, &["list", "read"][..]),
        (families::SEARCH, &["list", "read"]),
        (families::LIST, &["list"]),
        (families::FETCH, &["connect"]),
        (families::WEB_SEARCH, &["connect"]),
    ]
    .into_iter()
    .find(|(known, _)| *known == family)
    .map(|(_, effects)| tools(effects))
}

/// Tools that the settings took away.
fn core_denies(draft: &mut Draft, core: &Core) {
    let Some(tools) = &core.tools else { return };
    let gone = BUILT_IN.iter().filter(|tool| !tools.iter().any(|kept| kept == *tool)).copied();
    draft.push(Rule::new(Decision::Deny, Key::Tools, gone, &core.origin));
}

/// Commands that the settings left: they are asked about, all others denied.
fn core_commands(draft: &mut Draft, core: &Core) {
    if core.prefixes.is_empty() {
        return;
    }
    for (prefix, origin) in &core.prefixes {
        match TextPattern::prefix(prefix).permitting() {
            Ok(command) => draft.push(Rule::new(Decision::Ask, Key::Commands, [command], origin)),
            Err(why) => draft.note(origin, Outcome::LeftOut, why),
        }
    }
    draft.push(Rule::new(Decision::Deny, Key::Tools, families::of(SHELL), &core.origin));
}

fn probes(rule: &PolicyRule) -> Vec<Probe> {
    match (&rule.arguments, &rule.server) {
        (Arguments::Prefix(prefix), None) => probe::of_command(&TextPattern::prefix(prefix.trim())),
        (Arguments::Command(expression), None) => {
            // The letters of the expression, as far as they go, are a command that is near.
            let near: String =
                expression.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '/' | '.')).collect();
            probe::around_command(near.trim()).into_iter().map(Probe::Shell).collect()
        }
        (_, Some(server)) => vec![probe::served(server, &rule.tool.replace('*', "x")), probe::served(server, "other")],
        (_, None) if !rule.tool.contains('*') => vec![Probe::Tool(rule.tool.clone())],
        _ => Vec::new(),
    }
}
