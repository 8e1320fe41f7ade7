//! Gemini CLI: rules of its policy engine and `tools` in its settings. The highest tier and priority decides.

mod model;

use callgate::policy::{Decision, Policy};
use callgate_install::{HostEnvironment, SettingsNode};

use crate::command::TextPattern;
use crate::draft::{Draft, Key, Rule};
use crate::error::ImportError;
use crate::families;
use crate::probe::{self, Probe, ToolNames};
use crate::proof::{Reading, RuleExamples};
use crate::settings_file::{SettingsFile, SettingsLayer};
use crate::translate::permit_tool as permit_own_tool;
use crate::translate::{
    ANYTHING, HARMLESS_TOOL, PROJECT_FILES, permit_command, permit_every_command, restrict_command, split_specifier,
    text_list,
};
use model::{Compiled, GeminiModel};

const TOOLS: ToolNames = ToolNames(
    "shell=run_shell_command.command read=read_file.file_path write=write_file.file_path edit=replace.file_path \
     search=grep_search.dir_path list=list_directory.dir_path fetch=web_fetch.prompt web_search=google_web_search.query",
);
const SHELL: &str = "run_shell_command";
/// Gemini CLI's own tools, for settings that list the tools to keep.
const BUILT_IN: &str = "run_shell_command read_file read_many_files write_file replace list_directory glob grep_search \
                        search_file_content web_fetch google_web_search save_memory write_todos";
/// Names of classes that settings still use.
const CLASSES: &str = "ShellTool=run_shell_command ReadFileTool=read_file ReadManyFilesTool=read_many_files \
                       WriteFileTool=write_file EditTool=replace LSTool=list_directory GlobTool=glob GrepTool=grep_search \
                       RipGrepTool=grep_search WebFetchTool=web_fetch WebSearchTool=google_web_search \
                       MemoryTool=save_memory";

/// The condition of a rule on the arguments.
#[derive(Debug, Clone)]
enum Arguments {
    Any,
    /// A command that starts with this.
    Prefix(String),
    /// A command whose start matches this regular expression.
    Command(String),
    /// Arguments as JSON that match this regular expression.
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
    /// Why the rule does not always apply, if it does not.
    limited: Option<&'static str>,
    origin: String,
}

/// `tools.core` in the settings: the tools that remain, and the prefixes of the commands that remain.
#[derive(Debug, Default)]
struct Core {
    tools: Option<Vec<String>>,
    prefixes: Vec<(String, String)>,
    origin: String,
}

pub(crate) fn read(files: &[SettingsFile], environment: &HostEnvironment) -> Result<Reading, ImportError> {
    let mut draft = Draft::default();
    let mut rules = Vec::new();
    let mut core = Core::default();
    for file in files {
        if file.has_extension("toml") {
            read_policy(file, &mut rules, &mut draft)?;
        } else {
            read_settings(file, &mut rules, &mut core, &mut draft)?;
        }
    }
    let count = rules.len().saturating_add(usize::from(core.tools.is_some()));
    // With the same priority, the order of the files decides. Nobody should rely on that, so the strictest comes first.
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
    let remaining = core.prefixes.iter().map(|(prefix, origin)| {
        RuleExamples::new(origin, Decision::Ask, probe::of_command(&TextPattern::prefix(prefix)))
    });
    let examples = rules.iter().map(|rule| RuleExamples::new(&rule.origin, rule.decision, probes(rule)));
    let examples = examples.chain(remaining).collect();
    let compiled = rules.into_iter().map(Compiled::of).collect();
    Ok(Reading {
        draft,
        rules: count,
        model: Box::new(GeminiModel { rules: compiled, core, environment: environment.clone() }),
        examples,
        tools: &TOOLS,
    })
}

fn tier(layer: SettingsLayer) -> f64 {
    match layer {
        SettingsLayer::Managed => 5.0,
        SettingsLayer::User => 4.0,
        SettingsLayer::Project | SettingsLayer::Local => 3.0,
    }
}

fn read_policy(file: &SettingsFile, rules: &mut Vec<PolicyRule>, draft: &mut Draft) -> Result<(), ImportError> {
    let node = file.toml()?;
    for (key, _) in node.entries() {
        if key != "rule" {
            let why = "callgate reads only [[rule]]; check whether this denies something";
            draft.left_out(&file.origin(&format!("[{key}]")), why);
        }
    }
    let tables = match node.get("rule") {
        None => return Ok(()),
        Some(SettingsNode::List(tables)) => tables,
        Some(_) => return Err(file.unusable("`rule` is not a list of tables")),
    };
    for (number, table) in tables.iter().enumerate() {
        let wrong = |why: &str| file.unusable(format!("rule {}: {why}", number.saturating_add(1)));
        let texts = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(value) => {
                value.texts().map(Some).ok_or_else(|| wrong(&format!("`{key}` is not a string or a list of strings")))
            }
        };
        let decision = match table.get("decision").and_then(SettingsNode::text) {
            Some("allow") => Decision::Allow,
            Some("ask_user") => Decision::Ask,
            Some("deny") => Decision::Deny,
            _ => return Err(wrong("`decision` is not one of allow, ask_user, deny")),
        };
        let priority = match table.get("priority") {
            None => 0.0,
            Some(value) => {
                let number = value.number().filter(|number| (0.0..1000.0).contains(number));
                number.ok_or_else(|| wrong("`priority` is not a number from 0 to 999"))?
            }
        };
        let server = table
            .get("mcpName")
            .map(|value| value.text().ok_or_else(|| wrong("`mcpName` is not a string")))
            .transpose()?;
        let tools = texts("toolName")?.unwrap_or_else(|| vec!["*"]);
        let mut conditions = Vec::new();
        for key in ["commandPrefix", "commandRegex", "argsPattern"] {
            conditions.extend(texts(key)?.unwrap_or_default().into_iter().map(|text| match key {
                "commandPrefix" => Arguments::Prefix(text.to_owned()),
                "commandRegex" => Arguments::Command(text.to_owned()),
                _ => Arguments::Json(text.to_owned()),
            }));
        }
        if conditions.is_empty() {
            conditions.push(Arguments::Any);
        }
        let limits = [
            ("modes", "it applies only in some modes"),
            ("interactive", "it applies only with, or only without, a user"),
            ("subagent", "it applies only to one sub-agent"),
            ("toolAnnotations", "it applies only to tools with certain annotations"),
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
                    priority: tier(file.layer) + priority / 1000.0,
                    message: table.get("denyMessage").and_then(SettingsNode::text).map(str::to_owned),
                    limited,
                    origin: file.origin(&shown),
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
    format!("{} {tool}{server}{arguments}, priority {priority}", decision)
}

fn read_settings(
    file: &SettingsFile,
    rules: &mut Vec<PolicyRule>,
    core: &mut Core,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let node = file.json()?;
    let list = |keys: &[&str]| text_list(&node, keys, file);
    let mut add = |(tool, arguments): (String, Arguments), server: Option<&str>, decision, priority, what: String| {
        rules.push(PolicyRule {
            tool,
            server: server.map(str::to_owned),
            arguments,
            decision,
            priority,
            message: None,
            limited: None,
            origin: file.origin(&what),
        });
    };
    // Old settings have some of these at the top level.
    let tools: [(&[&str], Decision, f64); 4] = [
        (&["tools", "exclude"], Decision::Deny, 4.4),
        (&["excludeTools"], Decision::Deny, 4.4),
        (&["tools", "allowed"], Decision::Allow, 4.3),
        (&["allowedTools"], Decision::Allow, 4.3),
    ];
    for (keys, decision, priority) in tools {
        for text in list(keys)? {
            add(tool_and_command(text), None, decision, priority, format!("{} {text}", keys.join(".")));
        }
    }
    let every_tool = || ("*".to_owned(), Arguments::Any);
    for (key, decision, priority) in [("excluded", Decision::Deny, 4.9), ("allowed", Decision::Allow, 4.1)] {
        for server in list(&["mcp", key])? {
            add(every_tool(), Some(server), decision, priority, format!("mcp.{key} {server}"));
        }
    }
    for (server, settings) in node.get("mcpServers").map(SettingsNode::entries).unwrap_or_default() {
        if settings.get("trust").and_then(SettingsNode::flag) == Some(true) {
            add(every_tool(), Some(server), Decision::Allow, 4.2, format!("mcpServers.{server}.trust"));
        }
        for tool in settings.get("excludeTools").and_then(SettingsNode::texts).unwrap_or_default() {
            let what = format!("mcpServers.{server}.excludeTools {tool}");
            add((tool.to_owned(), Arguments::Any), Some(server), Decision::Deny, 4.95, what);
        }
        if settings.get("includeTools").is_some() {
            let origin = file.origin(&format!("mcpServers.{server}.includeTools"));
            draft.covered(&origin, "tools that a server does not offer cannot be called");
        }
    }
    for keys in [&["tools", "core"][..], &["coreTools"]] {
        if node.at(keys).is_none_or(SettingsNode::is_null) {
            continue;
        }
        let tools = core.tools.get_or_insert_default();
        core.origin = file.origin(&keys.join("."));
        for text in list(keys)? {
            let (tool, arguments) = tool_and_command(text);
            if let Arguments::Prefix(prefix) = arguments {
                core.prefixes.push((prefix, file.origin(&format!("{} {text}", keys.join(".")))));
            }
            tools.push(tool);
        }
    }
    if let Some(mode) = node.at(&["general", "defaultApprovalMode"]).and_then(SettingsNode::text) {
        let origin = file.origin(&format!("general.defaultApprovalMode {mode}"));
        draft.left_out(&origin, "a mode is a state of a session, not a rule");
    }
    Ok(())
}

/// `run_shell_command(git status)`, `ShellTool(git)`, `read_file`.
fn tool_and_command(text: &str) -> (String, Arguments) {
    let (name, command) = split_specifier(text);
    let class = |pair: &'static str| pair.split_once('=').filter(|(class, _)| *class == name);
    let tool = CLASSES.split_whitespace().find_map(class).map_or(name, |(_, tool)| tool);
    let command = command.filter(|command| tool == SHELL && !command.is_empty());
    (tool.to_owned(), command.map_or(Arguments::Any, |command| Arguments::Prefix(command.to_owned())))
}

/// The tools of a rule, as callgate names them.
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

/// Translates a rule that denies or asks. It is never dropped.
fn restrict(draft: &mut Draft, rule: &PolicyRule) {
    let origin = rule.origin.as_str();
    let mut decision = rule.decision;
    if let Some(why) = rule.limited {
        draft.broader(origin, format!("{why}; callgate always asks"));
        decision = Decision::Ask;
    }
    let shell = rule.server.is_none() && matches!(rule.tool.as_str(), SHELL | "*");
    match &rule.arguments {
        Arguments::Any => {
            draft.push(Rule::new(decision, Key::Tools, tool_patterns(rule), origin).reason(rule.message.clone()));
        }
        Arguments::Prefix(prefix) if shell => {
            let pattern = TextPattern::prefix(prefix.trim());
            let rules = restrict_command(draft, &pattern, decision, origin, rule.message.clone());
            rules.into_iter().for_each(|rule| draft.push(rule));
        }
        Arguments::Command(expression) if shell && is_usable(&found_anywhere(expression)) => {
            let rule = Rule::new(decision, Key::CommandPatterns, [found_anywhere(expression)], origin)
                .reason(rule.message.clone());
            draft.push(rule);
        }
        Arguments::Prefix(_) | Arguments::Command(_) | Arguments::Json(_) => {
            draft.broader(origin, "callgate cannot express its condition; it asks about every call of the tool");
            draft.push(Rule::new(Decision::Ask, Key::Tools, tool_patterns(rule), origin).reason(rule.message.clone()));
        }
    }
}

fn found_anywhere(expression: &str) -> String {
    format!("(?:^|[\\s;&|(){{}}`$\"'/])(?:{})", expression.trim_start_matches('^'))
}

/// Whether callgate accepts a regular expression.
fn is_usable(expression: &str) -> bool {
    let text = serde_json::json!({ "rules": [{ "name": "x", "command_patterns": [expression], "action": "deny" }] })
        .to_string();
    Policy::from_yaml(&text, "a pattern").is_ok()
}

/// Translates a rule that allows. A rule that cannot be expressed is left out.
fn permit(draft: &mut Draft, rule: &PolicyRule, later: &[PolicyRule], core: &Core) {
    let origin = rule.origin.as_str();
    if let Some(why) = rule.limited {
        draft.left_out(origin, why);
        return;
    }
    let shell = rule.server.is_none() && rule.tool == SHELL;
    if shell && !core.prefixes.is_empty() {
        let kept = matches!(&rule.arguments, Arguments::Prefix(text) if core.prefixes.iter().any(|(prefix, _)| TextPattern::prefix(prefix).matches(text)));
        if !kept {
            draft.left_out(origin, "tools.core allows only some commands");
            return;
        }
    }
    // Gemini CLI matches the whole text first: where it restricts other commands, nothing may precede this one.
    let guarded = !core.prefixes.is_empty()
        || later.iter().any(|other| {
            other.decision > Decision::Allow && other.server.is_none() && matches!(other.tool.as_str(), SHELL | "*")
        });
    match &rule.arguments {
        Arguments::Prefix(prefix) if shell => {
            if prefix.ends_with(char::is_whitespace) {
                draft.left_out(origin, "a prefix that ends with a space matches almost nothing in Gemini CLI");
                return;
            }
            let when = guarded.then(|| format!("input.command.startsWith('{prefix}')"));
            permit_command(draft, &TextPattern::prefix(prefix), when, origin);
        }
        Arguments::Command(_) if shell && guarded => {
            let why = "later rules restrict other commands, and callgate cannot express a pattern on the whole text";
            draft.left_out(origin, why);
        }
        Arguments::Command(expression)
            if shell && is_usable(&format!("^(?:{expression})")) && !expression.starts_with('^') =>
        {
            draft.push(Rule::new(Decision::Allow, Key::CommandPatterns, [format!("^(?:{expression})")], origin));
        }
        Arguments::Any if shell => permit_every_command(draft, origin),
        Arguments::Any => permit_tool(draft, rule, later),
        _ => draft.left_out(origin, "callgate cannot express its condition on the arguments"),
    }
}

fn permit_tool(draft: &mut Draft, rule: &PolicyRule, later: &[PolicyRule]) {
    let origin = rule.origin.as_str();
    if let Some(server) = &rule.server {
        if server.contains('*') {
            draft.left_out(origin, "it is a pattern on unknown servers");
        } else {
            draft.push(Rule::new(Decision::Allow, Key::Tools, tool_patterns(rule), origin).effects(ANYTHING));
        }
        return;
    }
    if rule.tool.contains('*') || rule.tool.starts_with("mcp_") {
        draft.left_out(origin, "it is a pattern on tools; name the server with mcpName");
        return;
    }
    // If no later rule restricts the tool, the bundled policy has the same effect.
    let restricted = later.iter().any(|other| {
        other.decision > Decision::Allow
            && other.server.is_none()
            && (other.tool == "*" || families::of(&other.tool).contains(&rule.tool))
    });
    match permit_own_tool(&rule.tool, origin) {
        Some(allow) if restricted || rule.tool == "web_fetch" => draft.push(allow),
        Some(_) => draft.covered(origin, PROJECT_FILES),
        None if families::contains(BUILT_IN, &rule.tool) => draft.covered(origin, HARMLESS_TOOL),
        None => draft.push(Rule::new(Decision::Allow, Key::Tools, [rule.tool.as_str()], origin)),
    }
}

/// Denies the tools that the settings removed.
fn core_denies(draft: &mut Draft, core: &Core) {
    let Some(tools) = &core.tools else { return };
    let gone = BUILT_IN.split_whitespace().filter(|tool| !tools.iter().any(|kept| kept == tool));
    draft.push(Rule::new(Decision::Deny, Key::Tools, gone, &core.origin));
}

/// Asks about the commands that the settings kept, and denies all others.
fn core_commands(draft: &mut Draft, core: &Core) {
    if core.prefixes.is_empty() {
        return;
    }
    for (prefix, origin) in &core.prefixes {
        match TextPattern::prefix(prefix).permitting() {
            Ok(command) => draft.push(Rule::new(Decision::Ask, Key::Commands, [command], origin)),
            Err(why) => draft.left_out(origin, why),
        }
    }
    draft.push(Rule::new(Decision::Deny, Key::Tools, families::of(SHELL), &core.origin));
}

fn probes(rule: &PolicyRule) -> Vec<Probe> {
    match (&rule.arguments, &rule.server) {
        (Arguments::Prefix(prefix), None) => probe::of_command(&TextPattern::prefix(prefix.trim())),
        (Arguments::Command(expression), None) => {
            // The letters of the expression are a command that nearly matches.
            let near: String =
                expression.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '/' | '.')).collect();
            probe::around_command(near.trim()).into_iter().map(Probe::Shell).collect()
        }
        (_, Some(server)) => vec![probe::served(server, &rule.tool.replace('*', "x")), probe::served(server, "other")],
        (_, None) if !rule.tool.contains('*') => vec![Probe::Tool(rule.tool.clone())],
        _ => Vec::new(),
    }
}
