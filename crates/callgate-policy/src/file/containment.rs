//! What rules say about the fence of contained calls: `network:`, `limits:`, `profile:`, `where:`.

use std::time::Duration;

use callgate_model::fence::{Limits, Protection, bytes};

use super::decode::Decoder;
use super::keys;
use super::mistake::{Mistake, Position};
use super::model::{PolicyFile, Profile, RuleText, Spanned};
use super::yaml::{Node, NodeValue};
use crate::Decision;

/// The `limits:` section.
pub(crate) fn limits(decoder: &mut Decoder, node: &Node) -> Limits {
    let mut limits = Limits::default();
    for (key, node) in decoder.section(node, keys::LIMITS, "`limits`") {
        match key {
            "time" => {
                let time = node.text().and_then(|text| humantime::parse_duration(text).ok());
                limits.time = above_zero(decoder, node, key, time, Duration::is_zero, "a time such as `90s` or `5m`");
            }
            "processes" | "open_files" => {
                let number = node.text().and_then(|text| text.parse().ok());
                let number = above_zero(decoder, node, key, number, |number| *number == 0, "a whole number");
                if key == "processes" { limits.processes = number } else { limits.open_files = number }
            }
            _ => {
                let size = node.text().and_then(bytes);
                let size = above_zero(decoder, node, key, size, |size| *size == 0, "a size such as `512MiB`");
                match key {
                    "memory" => limits.memory = size,
                    "written" => limits.written = size,
                    "file_size" => limits.file_size = size,
                    _ => limits.output = size,
                }
            }
        }
    }
    limits
}

/// A limit. Zero would stop every call, so it is a mistake.
fn above_zero<T>(
    decoder: &mut Decoder,
    node: &Node,
    key: &str,
    value: Option<T>,
    is_zero: impl Fn(&T) -> bool,
    what: &str,
) -> Option<T> {
    match value {
        Some(value) if is_zero(&value) => {
            let mistake = Mistake::new(node.position, format!("`{key}: 0` stops every call"));
            decoder.mistake(mistake.help(format!("remove `{key}` for no limit, or write {what}")));
            None
        }
        Some(value) => Some(value),
        None => {
            decoder.expected(node, what);
            None
        }
    }
}

/// The `sandbox.profiles` section.
pub(crate) fn profiles(decoder: &mut Decoder, node: &Node) -> Vec<(Spanned<String>, Profile)> {
    let NodeValue::Mapping(entries) = &node.value else {
        decoder.expected(node, "a mapping from names to profiles");
        return Vec::new();
    };
    let mut all: Vec<(Spanned<String>, Profile)> = Vec::new();
    for (key, node) in entries {
        let Some(name) = decoder.text(key) else { continue };
        if keys::SANDBOX_PROFILES.contains(&name.value.as_str())
            || all.iter().any(|(known, _)| known.value == name.value)
        {
            let mistake = Mistake::new(name.position, format!("there is a profile `{}` already", name.value));
            decoder.mistake(mistake.help("use another name"));
        }
        let mut profile = Profile::default();
        for (key, node) in decoder.section(node, keys::PROFILE, "a profile") {
            match key {
                "network" => profile.network = decoder.some_texts(node, key),
                "limits" => profile.limits = limits(decoder, node),
                _ => {
                    let words = decoder.words::<Protection>(node, key, keys::PROTECTIONS);
                    profile.requires = words.iter().map(|word| word.value).collect();
                }
            }
        }
        all.push((name, profile));
    }
    all
}

/// A profile by its name; a mistake if there is none.
pub(crate) fn profile(decoder: &mut Decoder, file: &PolicyFile, name: &Spanned<String>) -> Option<Profile> {
    if let Some((_, profile)) = file.profiles.iter().find(|(known, _)| known.value == name.value) {
        return Some(profile.clone());
    }
    match name.value.as_str() {
        "dev" => {
            let registries = Spanned { value: keys::REGISTRIES.to_owned(), position: name.position };
            Some(Profile { network: vec![registries], ..Profile::default() })
        }
        "balanced" => Some(Profile::default()),
        "prod" => Some(Profile {
            limits: Limits {
                time: Some(Duration::from_secs(30 * 60)),
                memory: Some(8 << 30),
                processes: Some(1024),
                ..Limits::default()
            },
            ..Profile::default()
        }),
        other => {
            let own = file.profiles.iter().map(|(name, _)| name.value.as_str());
            decoder.unknown(
                name.position,
                other,
                "profile",
                "`profile`",
                keys::SANDBOX_PROFILES.iter().copied().chain(own),
            );
            None
        }
    }
}

/// Gives the rules of a file what their profiles say. What a rule says itself counts.
pub(crate) fn fill(decoder: &mut Decoder, file: &mut PolicyFile) {
    let mut rules = std::mem::take(&mut file.rules);
    for rule in &mut rules {
        let Some(name) = rule.profile.clone() else { continue };
        let Some(profile) = profile(decoder, file, &name) else { continue };
        if rule.network.is_empty() {
            rule.network = profile.network;
        }
        rule.limits = rule.limits.or(profile.limits);
        rule.requires = profile.requires;
    }
    file.rules = rules;
}

/// Finds keys that mean nothing together.
pub(crate) fn check(decoder: &mut Decoder, rule: &RuleText, terms: Option<(&str, Position)>) {
    if let Some(position) = rule.free.filter(|_| rule.action != Decision::Allow) {
        let mistake = Mistake::new(position, format!("`where: free` changes nothing for `action: {}`", rule.action));
        decoder.mistake(mistake.help("use `action: allow`, or remove `where`"));
    }
    if let Some((key, position)) = terms.filter(|_| rule.action > Decision::Contain || rule.free.is_some()) {
        let mistake =
            Mistake::new(position, format!("`{key}` is about contained calls, and this rule contains nothing"));
        decoder.mistake(mistake.help(format!("use `action: contain`, or remove `{key}`")));
    }
    if rule.last && rule.instead_of.is_none() {
        let mistake = Mistake::new(rule.position, "`last: true` needs `instead_of`");
        decoder.mistake(mistake.help("move the rule to the end instead, or add `instead_of`"));
    }
    if rule.doubt && (rule.instead_of != Some(Decision::Ask) || rule.action == Decision::Allow) {
        let mistake =
            Mistake::new(rule.position, "`doubt: true` needs `instead_of: ask`, and an action other than `allow`");
        decoder.mistake(mistake.help("add `instead_of: ask` and `action: contain`, or remove `doubt`"));
    }
}
