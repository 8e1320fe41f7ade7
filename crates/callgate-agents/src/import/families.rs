//! Tools that do the same in different agents. A rule that restricts one of them is written for all: one policy serves
//! every agent.

/// Run shell commands.
pub(super) const SHELL: &[&str] =
    &["Bash", "bash", "Shell", "shell", "run_shell_command", "exec_command", "shell_command", "run_terminal_cmd"];
/// Read a file.
pub(super) const READ: &[&str] = &["Read", "read", "read_file", "read_many_files", "view", "NotebookRead"];
/// Search in files.
pub(super) const SEARCH: &[&str] = &["Grep", "grep", "grep_search", "search_file_content", "rg"];
/// See names.
pub(super) const LIST: &[&str] = &["Glob", "glob", "LS", "list", "list_directory"];
/// Write whole files.
pub(super) const CREATE: &[&str] = &["Write", "write", "write_file", "create"];
/// Change files.
pub(super) const CHANGE: &[&str] = &["Edit", "MultiEdit", "edit", "multiedit", "replace", "apply_patch", "patch"];
/// Everything that changes files.
pub(super) const EDIT: &[&str] = &[
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "edit",
    "write",
    "multiedit",
    "write_file",
    "replace",
    "create",
    "apply_patch",
    "patch",
];
/// Everything that reads, searches, lists or changes files.
pub(super) const FILES: &[&str] = &[
    "Read",
    "read",
    "read_file",
    "read_many_files",
    "view",
    "NotebookRead",
    "Grep",
    "grep",
    "grep_search",
    "search_file_content",
    "rg",
    "Glob",
    "glob",
    "LS",
    "list",
    "list_directory",
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "edit",
    "write",
    "multiedit",
    "write_file",
    "replace",
    "create",
    "apply_patch",
    "patch",
];
/// Fetch a page.
pub(super) const FETCH: &[&str] = &["WebFetch", "webfetch", "web_fetch"];
/// Ask a search engine.
pub(super) const WEB_SEARCH: &[&str] = &["WebSearch", "websearch", "google_web_search", "web_search"];
/// Start another agent.
pub(super) const AGENT: &[&str] = &["Task", "Agent", "task", "spawn_agent", "delegate_to_agent"];
/// Load a skill.
pub(super) const SKILL: &[&str] = &["Skill", "skill", "activate_skill"];

const ALL: &[&[&str]] = &[SHELL, READ, SEARCH, LIST, CREATE, CHANGE, FETCH, WEB_SEARCH, AGENT, SKILL];

/// The tools that do what this one does, itself included; only itself if it is not known.
pub(super) fn of(tool: &str) -> Vec<String> {
    match family(tool) {
        Some(family) => family.iter().map(|&name| name.to_owned()).collect(),
        None => vec![tool.to_owned()],
    }
}

/// The family of a tool.
pub(super) fn family(tool: &str) -> Option<&'static [&'static str]> {
    ALL.iter().copied().find(|family| family.contains(&tool))
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
            for tool in family {
                let explained = gate.assess(&Call::new(*tool, serde_json::json!({})).directory("/work")).unwrap();
                let category = explained.description().category.as_str();
                assert!(categories.contains(&category), "{tool}: {category}");
            }
        }
    }
}
