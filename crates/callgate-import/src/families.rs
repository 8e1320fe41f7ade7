//! Tools that do the same in different agents. A rule that restricts one of them is written for all, because one policy
//! serves every agent.

/// A list of tools, separated by spaces.
pub(crate) type ToolFamily = &'static str;

/// Tools that run shell commands.
pub(crate) const SHELL: ToolFamily =
    "Bash bash Shell shell run_shell_command exec_command shell_command run_terminal_cmd";
/// Tools that read a file.
pub(crate) const READ: ToolFamily = "Read read read_file read_many_files view NotebookRead";
/// Tools that search in files.
pub(crate) const SEARCH: ToolFamily = "Grep grep grep_search search_file_content rg";
/// Tools that list names.
pub(crate) const LIST: ToolFamily = "Glob glob LS list list_directory";
/// Tools that write whole files.
pub(crate) const CREATE: ToolFamily = "Write write write_file create";
/// Tools that change files.
pub(crate) const CHANGE: ToolFamily = "Edit MultiEdit edit multiedit replace apply_patch patch";
/// All tools that change files.
pub(crate) const EDIT: ToolFamily =
    "Edit Write MultiEdit NotebookEdit edit write multiedit write_file replace create apply_patch patch";
/// All tools that read, search, list or change files.
pub(crate) const FILES: ToolFamily = "Read read read_file read_many_files view NotebookRead \
    Grep grep grep_search search_file_content rg Glob glob LS list list_directory \
    Edit Write MultiEdit NotebookEdit edit write multiedit write_file replace create apply_patch patch";
/// Tools that fetch a page.
pub(crate) const FETCH: ToolFamily = "WebFetch webfetch web_fetch";
/// Tools that use a search engine.
pub(crate) const WEB_SEARCH: ToolFamily = "WebSearch websearch google_web_search web_search";
/// Tools that start another agent.
pub(crate) const AGENT: ToolFamily = "Task Agent task spawn_agent delegate_to_agent";
/// Tools that load a skill.
pub(crate) const SKILL: ToolFamily = "Skill skill activate_skill";

const ALL: &[ToolFamily] = &[SHELL, READ, SEARCH, LIST, CREATE, CHANGE, FETCH, WEB_SEARCH, AGENT, SKILL];

/// The tools of a family.
pub(crate) fn names(family: ToolFamily) -> Vec<String> {
    family.split_whitespace().map(str::to_owned).collect()
}

/// The tools that do the same as this one, including itself; only itself if it is unknown.
pub(crate) fn of(tool: &str) -> Vec<String> {
    family(tool).map_or_else(|| vec![tool.to_owned()], names)
}

/// The family of a tool.
pub(crate) fn family(tool: &str) -> Option<ToolFamily> {
    ALL.iter().copied().find(|family| contains(family, tool))
}

/// Whether a list of words has this word.
pub(crate) fn contains(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::policy::Policy;
    use callgate::{Call, Gate};

    #[test]
    fn every_name_is_a_tool_that_callgate_knows_as_what_it_is() {
        let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).build();
        for (family, categories) in [
            (SHELL, &["shell"][..]),
            (READ, &["file_read"]),
            (SEARCH, &["file_search"]),
            (LIST, &["file_list"]),
            (CREATE, &["file_write"]),
            (CHANGE, &["file_write"]),
            (EDIT, &["file_write"]),
            (FILES, &["file_read", "file_search", "file_list", "file_write"]),
            (FETCH, &["network"]),
            (WEB_SEARCH, &["network"]),
            (AGENT, &["agent"]),
            (SKILL, &["skill"]),
        ] {
            for tool in family.split_whitespace() {
                let explained = gate.assess(&Call::new(tool, serde_json::json!({})).directory("/work")).unwrap();
                let category = explained.description().category.as_str();
                assert!(categories.contains(&category), "{tool}: {category}");
            }
        }
    }
}
