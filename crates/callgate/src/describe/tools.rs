//! Reads the table of built-in tools, `tools.txt`.

use std::sync::LazyLock;

use callgate_model::effect::Action;

use super::role::{Access, Parameter, Role, ToolEntry, ToolKind};

/// The tools that coding agents have.
const TABLE: &str = include_str!("tools.txt");

/// A block of the table: its lines, without comments.
type Block = Vec<&'static str>;

/// The blocks in the order of the table. A hook needs one of them, so they are found line by line and read when they are needed.
fn blocks() -> impl Iterator<Item = Block> {
    let mut lines = TABLE.lines();
    std::iter::from_fn(move || {
        lines.clone().next()?;
        Some(lines.by_ref().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with(['#', '$'])).collect())
    })
    .filter(|block: &Block| !block.is_empty())
}

/// The words of a line, with groups replaced by their words.
fn words(line: &'static str) -> Vec<&'static str> {
    let mut words = Vec::new();
    for word in line.split_ascii_whitespace() {
        match group(word) {
            Some(group) => words.extend(self::words(group)),
            None => words.push(word),
        }
    }
    words
}

/// What each `$group` stands for. They stand together in the table.
static GROUPS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let lines = TABLE.lines().skip_while(|line| !line.starts_with('$')).take_while(|line| line.starts_with('$'));
    lines.filter_map(|line| line.split_once(" = ")).collect()
});

fn group(word: &str) -> Option<&'static str> {
    word.starts_with('$').then(|| GROUPS.iter().find(|(name, _)| *name == word))?.map(|(_, words)| *words)
}

fn is_about(block: &Block, name: &str) -> bool {
    let mut names = block.iter().take_while(|line| !line.starts_with('='));
    names.any(|line| line.split_ascii_whitespace().any(|known| known == name))
}

fn read(block: &Block) -> Option<ToolEntry> {
    tool(&block.iter().map(|line| words(line)).collect::<Vec<_>>())
}

/// The tool of this name.
pub(super) fn find(name: &str) -> Option<ToolEntry> {
    blocks().find(|block| is_about(block, name)).as_ref().and_then(read)
}

/// All tools; `None` for a block that is invalid.
pub(super) fn all() -> impl Iterator<Item = Option<ToolEntry>> {
    blocks().map(|block| read(&block))
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
