//! Translations that several agents share.

use callgate::policy::Decision;
use callgate_install::SettingsNode;

use crate::command::TextPattern;
use crate::draft::{Draft, Key, Rule, Translation};
use crate::error::ImportError;
use crate::families;
use crate::settings_file::SettingsFile;

/// The effects of servers' tools.
pub(crate) const ANYTHING: &[&str] = &["list", "read", "write", "delete", "run", "connect", "send", "opaque"];

/// Agents compare the text of a command, in which an assignment at the start hides the program. A command with one that
/// the agent denies stays denied.
pub(crate) const NO_ASSIGNMENTS: &str = r"!input.command.matches('(^|[;&|({\\n]) *[A-Za-z_][A-Za-z0-9_]*=')";

/// Why an allow for files of the project needs no rule.
pub(crate) const PROJECT_FILES: &str =
    "standard allows reading and editing files of the project, except credentials and files that run later";
/// Why an allow for a harmless tool needs no rule.
pub(crate) const HARMLESS_TOOL: &str = "callgate does not ask about this";
/// Why a mode that allows everything has no translation.
pub(crate) const NOTHING_WHOLESALE: &str =
    "callgate allows nothing wholesale; standard asks about anything it does not know";

/// Translates a pattern on commands that denies or asks.
pub(crate) fn restrict_command(
    draft: &mut Draft,
    pattern: &TextPattern,
    decision: Decision,
    origin: &str,
    reason: Option<String>,
) -> [Rule; 2] {
    let restricted = pattern.restricting();
    if restricted.commands.is_empty() {
        draft.broader(origin, "it is matched wherever a command could start in the text");
    }
    [
        Rule::new(decision, Key::Commands, restricted.commands, origin).reason(reason.clone()),
        Rule::new(decision, Key::CommandPatterns, restricted.patterns, origin).reason(reason),
    ]
}

/// Translates a pattern on commands that allows, under a condition.
pub(crate) fn permit_command(draft: &mut Draft, pattern: &TextPattern, when: Option<String>, origin: &str) {
    match pattern.permitting() {
        Ok(command) => draft.push(Rule::new(Decision::Allow, Key::Commands, [command], origin).when(when)),
        Err(why) => draft.left_out(origin, why),
    }
}

/// Translates an allow for every command.
pub(crate) fn permit_every_command(draft: &mut Draft, origin: &str) {
    let why = "every command is allowed, except what callgate itself denies; it still asks about redirections and changed \
               environments";
    draft.note(origin, Translation::Narrower, why);
    draft.push(Rule::new(Decision::Allow, Key::Commands, ["**"], origin));
}

/// Translates a deny or ask for a host.
pub(crate) fn restrict_host(decision: Decision, host: &str, origin: &str) -> Rule {
    Rule::new(decision, Key::Hosts, [host.to_owned(), format!("*.{host}")], origin).effects(&["connect", "send"])
}

/// What an agent's own tool may do when it is allowed: never write files that run later.
pub(crate) fn permit_tool(tool: &str, origin: &str) -> Option<Rule> {
    let family = families::family(tool)?;
    if [families::CREATE, families::CHANGE].contains(&family) {
        let rule = Rule::new(Decision::Allow, Key::Paths, ["/**", "!@runs-later"], origin);
        return Some(rule.tools(family).effects(&["list", "read", "write"]));
    }
    let effects: &[&str] = match family {
        families::READ | families::SEARCH => &["list", "read"],
        families::LIST => &["list"],
        families::FETCH | families::WEB_SEARCH => &["connect"],
        _ => return None,
    };
    Some(Rule::new(Decision::Allow, Key::Tools, [tool], origin).effects(effects))
}

/// Splits `Tool(specifier)`.
pub(crate) fn split_specifier(text: &str) -> (&str, Option<&str>) {
    match text.strip_suffix(')').and_then(|front| front.split_once('(')) {
        Some((tool, specifier)) => (tool, Some(specifier)),
        None => (text, None),
    }
}

/// Whether a text is the name of a host.
pub(crate) fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

/// A list of texts in the settings; empty if it is missing. Anything else is an error, because it may deny something.
pub(crate) fn text_list<'a>(
    node: &'a SettingsNode,
    keys: &[&str],
    file: &SettingsFile,
) -> Result<Vec<&'a str>, ImportError> {
    match node.at(keys).filter(|node| !node.is_null()) {
        None => Ok(Vec::new()),
        Some(SettingsNode::List(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(SettingsNode::text).collect();
            texts.ok_or_else(|| file.unusable(format!("`{}` is not a list of strings", keys.join("."))))
        }
        Some(_) => Err(file.unusable(format!("`{}` is not a list", keys.join(".")))),
    }
}
