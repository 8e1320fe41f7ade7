//! Reads the table of built-in tools, `tools.txt`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use callgate_model::effect::Action;

use super::role::{Access, Parameter, Role, ToolEntry, ToolKind};

/// The tools that coding agents have.
pub(super) const TABLE: &str = include_str!("tools.txt");

/// Words by the name of their group.
type Groups = HashMap<&'static str, Vec<&'static str>>;

/// One block of the table. It is read when a call needs it, because a hook needs one of them.
struct ToolBlock {
    text: &'static str,
    entry: OnceLock<Option<ToolEntry>>,
}

static BLOCKS: LazyLock<Vec<ToolBlock>> =
    LazyLock::new(|| texts().map(|text| ToolBlock { text, entry: OnceLock::new() }).collect());

static GROUPS: LazyLock<Groups> = LazyLock::new(|| {
    let mut groups = Groups::new();
    for line in TABLE.lines().filter(|line| line.starts_with('$')) {
        if let [group, "=", rest @ ..] = words(line, &groups).as_slice() {
            groups.insert(group, rest.to_vec());
        }
    }
    groups
});

/// The texts of the blocks.
fn texts() -> impl Iterator<Item = &'static str> {
    TABLE.split("\n\n").filter(|text| text.lines().any(|line| line.starts_with('=')))
}

/// The words of a line, with groups replaced by their words.
fn words(line: &'static str, groups: &Groups) -> Vec<&'static str> {
    line.split_whitespace().flat_map(|word| groups.get(word).cloned().unwrap_or_else(|| vec![word])).collect()
}

/// The lines of a block.
fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

impl ToolBlock {
    fn is_about(&self, name: &str) -> bool {
        let mut names = lines(self.text).take_while(|line| !line.starts_with('='));
        names.any(|line| line.split_whitespace().any(|known| known == name))
    }

    fn entry(&self) -> Option<&ToolEntry> {
        self.entry.get_or_init(|| tool(&block(self.text))).as_ref()
    }
}

/// The lines of a block as words.
pub(super) fn block(text: &'static str) -> Vec<Vec<&'static str>> {
    lines(text).map(|line| words(line, &GROUPS)).collect()
}

/// The tool of this name.
pub(super) fn find(name: &str) -> Option<&'static ToolEntry> {
    BLOCKS.iter().find(|block| block.is_about(name))?.entry()
}

/// All tools.
pub(super) fn all() -> impl Iterator<Item = &'static ToolEntry> {
    BLOCKS.iter().filter_map(ToolBlock::entry)
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
