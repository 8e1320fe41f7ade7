//! Sections of an earlier format (`safety:`, `sandbox:`, `run:`), translated into rules.
//!
//! The order is that of the format's promises: what is denied is denied first, complex shell asks even when the allow list
//! matches, then come the allow lists, and custom tools ask unless they are listed.

use super::decode::Decoder;
use super::keys;
use super::mistake::Position;
use super::model::{At, File, RuleText, Texts, ToolText};
use super::yaml::Node;
use crate::Decision;
use callgate_model::glob::escape;

/// The sections as they were found.
#[derive(Default)]
pub(crate) struct Sections<'n> {
    pub safety: Option<&'n Node>,
    pub sandbox: Option<&'n Node>,
    pub run: Option<&'n Node>,
}

/// Adds the rules that the sections stand for, after the file's own.
pub(crate) fn translate(decoder: &mut Decoder, sections: &Sections<'_>, file: &mut File) {
    if let Some(node) = sections.run {
        for (key, node) in decoder.section(node, keys::RUN, "`run`") {
            file.timeouts.human_ms = decoder.number(node);
            file.without_effect.push(At { value: format!("run.{key}"), position: node.position });
        }
    }
    if let Some(node) = sections.sandbox {
        sandbox(decoder, node, file);
        if sections.safety.is_none() {
            file.without_effect.push(At { value: "sandbox` without `safety".to_owned(), position: node.position });
        }
    }
    if let Some(node) = sections.safety {
        safety(decoder, node, file);
    }
}

fn sandbox(decoder: &mut Decoder, node: &Node, file: &mut File) {
    for (key, node) in decoder.section(node, keys::SANDBOX, "`sandbox`") {
        match key {
            "default_policy" => {
                let policy = decoder.word(node, keys::SANDBOX_POLICIES, "`default_policy`");
                file.sandbox = policy.map(|index| index == 1);
            }
            // Which sandbox is used is found out where it runs; a missing one is never replaced by a weaker one.
            "os" => {
                for (_, node) in decoder.section(node, keys::SANDBOX_OS, "`os`") {
                    decoder.word(node, keys::SANDBOX_MODES, "`mode`");
                }
            }
            _ => {
                decoder.word(node, keys::SANDBOX_PROFILES, "`profile`");
            }
        }
    }
}

fn safety(decoder: &mut Decoder, node: &Node, file: &mut File) {
    let mut mode = Decision::Ask;
    let [mut allowed, mut denied, mut allowed_tools, mut denied_tools] = [const { Texts::new() }; 4];
    for (key, node) in decoder.section(node, keys::SAFETY, "`safety`") {
        match key {
            "mode" => {
                const MODES: [Decision; 3] = [Decision::Ask, Decision::Allow, Decision::Deny];
                let index = decoder.word(node, keys::MODES, "`mode`");
                mode = index.and_then(|index| MODES.get(index).copied()).unwrap_or(Decision::Deny);
            }
            "allowlist" => allowed = decoder.texts(node),
            "denylist" => denied = decoder.texts(node),
            "tool_allowlist" => allowed_tools = decoder.texts(node),
            "tool_denylist" => denied_tools = decoder.texts(node),
            _ => file.timeouts.approval_ms = decoder.number(node),
        }
    }
    let silent = if file.sandbox == Some(true) { Decision::Contain } else { Decision::Allow };
    let mut add = |name: &str, action: Decision, reason: &str, fill: &dyn Fn(&mut RuleText)| {
        let mut rule = RuleText::new(node.position, action);
        rule.name = Some(At { value: name.to_owned(), position: node.position });
        rule.reason = Some(reason.to_owned());
        fill(&mut rule);
        file.rules.push(rule);
    };
    if !denied_tools.is_empty() {
        add("safety.tool_denylist", Decision::Deny, "this tool is on the deny list", &|rule| {
            rule.tools = exact(&denied_tools)
        });
    }
    if !denied.is_empty() {
        add("safety.denylist", Decision::Deny, "this command is on the deny list", &|rule| {
            rule.commands = denied.iter().flat_map(denied_command).collect();
        });
    }
    if mode != Decision::Allow {
        add("safety.complex_shell", mode, "complex shell is not covered by the allow list", &|rule| {
            rule.complex_only = true;
        });
    }
    if !allowed_tools.is_empty() {
        add("safety.tool_allowlist", Decision::Allow, "this tool is on the allow list", &|rule| {
            rule.tools = exact(&allowed_tools);
            rule.custom_only = true;
        });
    }
    if !allowed.is_empty() {
        add("safety.allowlist", silent, "this command is on the allow list", &|rule| {
            rule.commands = allowed.iter().map(|entry| words(entry, &format!("{} **", quoted(&entry.value)))).collect();
        });
    }
    if mode == Decision::Allow {
        add("safety.custom_tools", Decision::Ask, "a custom tool that is on no list", &|rule| rule.custom_only = true);
    }
    file.default = Some(if mode == Decision::Allow { silent } else { mode });
}

fn exact(texts: &Texts) -> Vec<At<ToolText>> {
    texts.iter().map(|text| At { value: ToolText::Name(escape_tool(&text.value)), position: text.position }).collect()
}

/// These lists hold exact names, so nothing in them is a wildcard.
fn escape_tool(name: &str) -> String {
    if name.contains(['*', '?', '[', '\\']) { escape(name).into_owned() } else { name.to_owned() }
}

/// The patterns for an entry of the deny list: `rm -rf` also means `rm -r -f`, `rm -fr` and `rm -v -rf`.
fn denied_command(entry: &At<String>) -> Vec<At<String>> {
    let mut parts = entry.value.split_whitespace();
    let Some(program) = parts.next() else {
        return Vec::new();
    };
    let program = escape(program);
    let rest: Vec<&str> = parts.collect();
    let bundle = match rest.as_slice() {
        [flags] => flags
            .strip_prefix('-')
            .filter(|letters| letters.len() == 2 && letters.bytes().all(|letter| letter.is_ascii_alphabetic())),
        _ => None,
    };
    let mut patterns = vec![
        format!("{program} {}", rest.iter().map(|word| format!("** {} ", escape(word))).collect::<String>()) + "**",
    ];
    if let Some(letters) = bundle {
        let mut letters = letters.chars();
        if let (Some(a), Some(b)) = (letters.next(), letters.next()) {
            patterns.push(format!("{program} ** -[!-]*{a}*{b}* **"));
            patterns.push(format!("{program} ** -[!-]*{b}*{a}* **"));
            patterns.push(format!("{program} ** -{{{a}*{b},{b}*{a}}}* **"));
            patterns.push(format!("{program} ** -{{{a},[!-]*{a}}}* ** -{{{b},[!-]*{b}}}* **"));
            patterns.push(format!("{program} ** -{{{b},[!-]*{b}}}* ** -{{{a},[!-]*{a}}}* **"));
        }
    }
    patterns.into_iter().map(|pattern| words(entry, &pattern)).collect()
}

fn quoted(command: &str) -> String {
    command.split_whitespace().map(escape).collect::<Vec<_>>().join(" ")
}

fn words(entry: &At<String>, pattern: &str) -> At<String> {
    At { value: pattern.to_owned(), position: Position { ..entry.position } }
}
