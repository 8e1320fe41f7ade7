//! Reads the table of built-in tools, `tools.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use callgate_model::effect::Action;

use super::role::{Access, Parameter, Role, ToolEntry, ToolKind};

/// The tools that coding agents have.
pub(super) static TOOLS: LazyLock<Vec<ToolEntry>> =
    LazyLock::new(|| blocks(include_str!("tools.txt")).iter().filter_map(|lines| tool(lines)).collect());

/// The blocks of the table: lines of words, with groups replaced by their words.
pub(super) fn blocks(table: &'static str) -> Vec<Vec<Vec<&'static str>>> {
    let mut groups: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut blocks = vec![Vec::new()];
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut words = Vec::new();
        for word in line.split_whitespace() {
            match groups.get(word) {
                Some(group) => words.extend(group),
                None => words.push(word),
            }
        }
        match (words.as_slice(), blocks.last_mut()) {
            ([group, "=", rest @ ..], _) => {
                groups.insert(group, rest.to_vec());
            }
            ([], _) => blocks.push(Vec::new()),
            (_, Some(block)) => block.push(words),
            (_, None) => {}
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Reads a block. A tool whose block is invalid stays unknown, and a test finds it.
pub(super) fn tool(lines: &[Vec<&'static str>]) -> Option<ToolEntry> {
    let header = lines.iter().position(|line| line.first() == Some(&"="))?;
    let (names, rest) = lines.split_at_checked(header)?;
    let ([_, category, kind @ ..], parameters) = rest.split_first().map(|(first, rest)| (first.as_slice(), rest))?
    else {
        return None;
    };
    let mut entry = ToolEntry { names: names.concat(), category, kind: tool_kind(kind)?, parameters: Vec::new() };
    for word in parameters.iter().flatten() {
        match (word.strip_suffix(':'), entry.parameters.last_mut()) {
            (Some(role), _) => {
                let required = role.ends_with('!');
                let role = role_of(role.trim_end_matches('!'))?;
                entry.parameters.push(Parameter { names: Vec::new(), role, required });
            }
            (None, Some(parameter)) => parameter.names.push(word),
            (None, None) => return None,
        }
    }
    Some(entry)
}

fn tool_kind(words: &[&'static str]) -> Option<ToolKind> {
    Some(match words {
        [] => ToolKind::Plain,
        ["globs", "list"] => ToolKind::Globs(Action::List),
        ["globs", "read"] => ToolKind::Globs(Action::Read),
        ["search", "list"] => ToolKind::Search(Action::List),
        ["search", "read"] => ToolKind::Search(Action::Read),
        ["editor"] => ToolKind::Editor,
        ["skill"] => ToolKind::Skill,
        ["writes", paths @ ..] => ToolKind::Writes(paths.to_vec()),
        ["opaque", why @ ..] => ToolKind::Opaque(why.join(" ")),
        _ => return None,
    })
}

fn role_of(word: &str) -> Option<Role> {
    Some(match word {
        "list" => Role::Path(Access::List),
        "read" => Role::Path(Access::Read),
        "read_tree" => Role::Path(Access::ReadTree),
        "write" => Role::Path(Access::Write),
        "update" => Role::Path(Access::Update),
        "delete" => Role::Path(Access::Delete),
        "bundle_path" => Role::BundlePath,
        "base" => Role::Base,
        "pattern" => Role::Pattern,
        "command" => Role::Command,
        "words" => Role::Words,
        "command_or_words" => Role::CommandOrWords,
        "shell" => Role::ShellName,
        "directory" => Role::Directory,
        "environment" => Role::Environment,
        "sandbox" => Role::Sandbox,
        "typed" => Role::Typed,
        "process" => Role::Process,
        "url" => Role::Url,
        "urls_in_text" => Role::UrlsInText,
        "resource" => Role::Resource,
        "query" => Role::Query,
        "patch" => Role::Patch,
        "content" => Role::Content,
        "no_effect" => Role::NoEffect,
        _ => return None,
    })
}
