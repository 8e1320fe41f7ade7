//! LegacySections of an earlier format (`safety:`, `sandbox:`, `run:`), translated into rules.
//!
//! The order keeps the guarantees of that format: the deny lists come first; complex shell asks even if the allow list
//! matches; then come the allow lists; custom tools that are not listed ask.

use super::containment;
use super::decode::Decoder;
use super::keys;
use super::mistake::Mistake;
use super::model::{PolicyFile, RuleText, SandboxSettings, Spanned, Texts, ToolText};
use super::yaml::Node;
use crate::Decision;
use callgate_model::glob::escape;

/// The sections of the file, if it has them.
#[derive(Default)]
pub(crate) struct LegacySections<'n> {
    pub safety: Option<&'n Node>,
    pub sandbox: Option<&'n Node>,
    pub run: Option<&'n Node>,
}

/// Adds the rules that the sections mean, after the rules of the file.
pub(crate) fn translate(decoder: &mut Decoder, sections: &LegacySections<'_>, file: &mut PolicyFile) {
    if let Some(node) = sections.run {
        for (key, node) in decoder.section(node, keys::RUN, "`run`") {
            file.timeouts.human_ms = decoder.number(node);
            file.without_effect.push(Spanned { value: format!("run.{key}"), position: node.position });
        }
    }
    if let Some(node) = sections.sandbox {
        sandbox(decoder, node, file);
    }
    if let Some(node) = sections.safety {
        safety(decoder, node, file);
    }
}

fn sandbox(decoder: &mut Decoder, node: &Node, file: &mut PolicyFile) {
    let settings = &mut SandboxSettings::default();
    let mut profile = None;
    for (key, node) in decoder.section(node, keys::SANDBOX, "`sandbox`") {
        match key {
            "default_policy" => {
                // a null counts as said
                let policy = (!node.is_null()).then(|| decoder.word(node, keys::SANDBOX_POLICIES, "`default_policy`"));
                settings.restricted = Some(policy.flatten().is_some_and(|policy: String| policy == "restricted"));
            }
            // A missing sandbox is never replaced by a weaker one.
            "os" => {
                for (key, node) in decoder.section(node, keys::SANDBOX_OS, "`os`") {
                    match key {
                        "mode" => settings.mode = decoder.word(node, keys::SANDBOX_MODES, "`mode`"),
                        "seatbelt" => {
                            for (key, node) in decoder.section(node, keys::SEATBELT, "`seatbelt`") {
                                decoder.text(node);
                                unused(file, &format!("sandbox.os.seatbelt.{key}"), node);
                            }
                        }
                        _ => {
                            for (key, node) in decoder.section(node, keys::BUBBLEWRAP, "`bubblewrap`") {
                                if key == "unshare_net" {
                                    settings.network = decoder.flag(node).map(|flag| !flag.value);
                                } else {
                                    decoder.text(node);
                                    unused(file, "sandbox.os.bubblewrap.bwrap_path", node);
                                }
                            }
                        }
                    }
                }
            }
            "profiles" => file.profiles = containment::profiles(decoder, node),
            // a null counts as said
            _ => profile = (!node.is_null()).then(|| decoder.text(node)).flatten(),
        }
    }
    // A profile fills only what the file does not say.
    if let Some(name) = profile
        && let Some(profile) = containment::profile(decoder, file, &name)
    {
        settings.restricted = settings.restricted.or(Some(name.value != "dev"));
        if name.value != "dev" {
            let words: Vec<&str> = profile.network.iter().map(|text| text.value.as_str()).collect();
            let open = match words.as_slice() {
                [] => None,
                ["none"] => Some(false),
                ["all"] => Some(true),
                _ => {
                    let mistake = Mistake::new(name.position, "a profile for all commands cannot list hosts");
                    decoder.mistake(mistake.help("use a profile with `network: none` or `all`; rules can list hosts"));
                    None
                }
            };
            settings.network = settings.network.or(open);
            settings.limits = profile.limits;
            settings.requires = profile.requires;
        }
    }
    file.sandbox = *settings;
}

fn unused(file: &mut PolicyFile, key: &str, node: &Node) {
    file.unused.push(Spanned { value: key.to_owned(), position: node.position });
}

fn safety(decoder: &mut Decoder, node: &Node, file: &mut PolicyFile) {
    let mut mode = Decision::Ask;
    let [mut allowed, mut denied, mut allowed_tools, mut denied_tools] = [const { Texts::new() }; 4];
    for (key, node) in decoder.section(node, keys::SAFETY, "`safety`") {
        match key {
            "mode" => mode = decoder.decision(node, keys::MODES, "`mode`").unwrap_or(Decision::Deny),
            "allowlist" => allowed = decoder.texts(node),
            "denylist" => denied = decoder.texts(node),
            "tool_allowlist" => allowed_tools = decoder.texts(node),
            "tool_denylist" => denied_tools = decoder.texts(node),
            _ => file.timeouts.approval_ms = decoder.number(node),
        }
    }
    let silent = if file.sandbox.restricted == Some(true) { Decision::Contain } else { Decision::Allow };
    let mut add = |name: &str, action: Decision, reason: &str, fill: &dyn Fn(&mut RuleText)| {
        let mut rule = RuleText {
            position: node.position,
            name: Some(Spanned { value: name.to_owned(), position: node.position }),
            action,
            reason: Some(reason.to_owned()),
            ..RuleText::default()
        };
        fill(&mut rule);
        file.rules.push(rule);
    };
    if !denied_tools.is_empty() {
        add("safety.tool_denylist", Decision::Deny, "the tool is on the deny list", &|rule| {
            rule.tools = exact(&denied_tools)
        });
    }
    if !denied.is_empty() {
        add("safety.denylist", Decision::Deny, "the command is on the deny list", &|rule| {
            rule.commands = denied.iter().flat_map(denied_command).collect();
        });
    }
    if mode != Decision::Allow {
        add(
            "safety.complex_shell",
            mode,
            "the allow list does not cover pipes, redirections, substitutions or several commands",
            &|rule| {
                rule.complex_only = true;
            },
        );
    }
    if !allowed_tools.is_empty() {
        add("safety.tool_allowlist", Decision::Allow, "the tool is on the allow list", &|rule| {
            rule.tools = exact(&allowed_tools);
            rule.custom_only = true;
        });
    }
    if !allowed.is_empty() {
        add("safety.allowlist", silent, "the command is on the allow list", &|rule| {
            rule.commands = allowed.iter().map(|entry| words(entry, &format!("{} **", quoted(&entry.value)))).collect();
        });
    }
    if mode == Decision::Allow {
        add("safety.custom_tools", Decision::Ask, "the custom tool is on no list", &|rule| rule.custom_only = true);
    }
    file.default = Some(if mode == Decision::Allow { silent } else { mode });
}

/// These lists hold exact names, so nothing in them is a wildcard.
fn exact(texts: &Texts) -> Vec<Spanned<ToolText>> {
    let exact = |name: &str| ToolText::Name(escape(name).into_owned());
    texts.iter().map(|text| Spanned { value: exact(&text.value), position: text.position }).collect()
}

/// The patterns for an entry of the deny list: `rm -rf` also means `rm -r -f`, `rm -fr` and `rm -v -rf`.
fn denied_command(entry: &Spanned<String>) -> Vec<Spanned<String>> {
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

fn words(entry: &Spanned<String>, pattern: &str) -> Spanned<String> {
    Spanned { value: pattern.to_owned(), position: entry.position }
}
