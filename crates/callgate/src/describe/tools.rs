//! The tools that agents really have: a table. To add a tool, add a line.
//!
//! One entry serves every agent that has a tool of that name, so it knows all names that its parameters go by. All of them
//! are used where they occur: a second spelling never hides a path.

use callgate_model::effect::{Action, CodeOrigin};

use super::role::{Access, Role, Shape, ToolEntry, may, must, tool};
use Role::{
    Base, BundlePath, Command, CommandOrWords, Content, Directory, Environment, Exclude, Keys, Patch, Path, Pattern,
    Query, Resource, Running, Sandbox, ShellName, Text, Url, UrlsInText, Words,
};
use Shape::{Editor, Globs, Opaque, Plain, Runs, Search, Shell, Writes};

const FILE: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "absolute_path",
    "absolutePath",
    "target_file",
    "relative_workspace_path",
    "file",
    "filename",
];
const NOTEBOOK: &[&str] = &["notebook_path", "target_notebook", "notebookPath", "file_path", "path"];
const FOLDER: &[&str] = &[
    "path",
    "dir_path",
    "directory",
    "target_directory",
    "target_directories",
    "dirPath",
    "relative_workspace_path",
    "file_path",
    "absolute_path",
    "searchPath",
];
const WHERE: &[&str] =
    &["cwd", "workdir", "working_directory", "workingDirectory", "dir_path", "directory", "dir", "working_dir"];
const VARIABLES: &[&str] = &["env", "environment", "env_vars"];
const SANDBOX: &[&str] =
    &["sandbox", "sandbox_permissions", "with_escalated_permissions", "dangerouslyDisableSandbox", "sandbox_policy"];
const BEFORE_AND_AFTER: &[&str] = &[
    "old_string",
    "new_string",
    "oldString",
    "newString",
    "old_str",
    "new_str",
    "old_text",
    "new_text",
    "insert_text",
    "edits",
    "code_edit",
    "content",
    "contents",
    "file_text",
    "new_source",
    "streamContent",
    "before",
    "after",
];
const SHELL_NOTES: &[&str] = &[
    "description",
    "explanation",
    "justification",
    "timeout",
    "timeout_ms",
    "run_in_background",
    "is_background",
    "prefix_rule",
    "session_id",
    "sessionId",
];

const NOTHING: &[super::role::Parameter] = &[];

/// What a shell tool takes beside its command.
macro_rules! shell {
    ($names:expr, $command:expr) => {
        tool(
            $names,
            "shell",
            Shell,
            &[
                $command,
                may(WHERE, Directory),
                may(VARIABLES, Environment),
                may(SANDBOX, Sandbox),
                may(&["shell"], ShellName),
                may(&["stdin"], Keys),
                may(SHELL_NOTES, Text),
            ],
        )
    };
}

pub(super) const TOOLS: &[ToolEntry] = &[
    // ── shells ──
    shell!(
        // Claude Code and Codex hooks, Amp (`cmd`); OpenCode, Copilot, Anthropic; Cursor; Gemini and Qwen; Codex; Goose
        &[
            "Bash",
            "bash",
            "Shell",
            "run_terminal_cmd",
            "run_terminal_command",
            "run_shell_command",
            "shell_command",
            "Monitor",
            "developer__shell"
        ],
        must(&["command", "cmd"], Command)
    ),
    shell!(&["exec_command"], must(&["cmd", "command"], Command)),
    shell!(&["shell", "local_shell", "container.exec"], must(&["command", "argv", "cmd"], CommandOrWords)),
    // Windsurf
    shell!(&["run_command"], must(&["command_line", "CommandLine", "command"], Command)),
    shell!(&["shell_exec"], must(&["argv", "command"], Words)),
    shell!(&["unified_exec"], must(&["input", "cmd", "command"], CommandOrWords)),
    tool(
        &["write_stdin", "write_bash", "write_shell"],
        "shell_input",
        Plain,
        &[must(&["chars", "input", "text"], Keys), may(&["session_id", "sessionId", "shellId"], Running)],
    ),
    tool(
        &[
            "BashOutput",
            "TaskOutput",
            "AgentOutputTool",
            "KillShell",
            "KillBash",
            "TaskStop",
            "read_bash",
            "stop_bash",
            "list_bash",
            "read_shell",
            "stop_shell",
            "list_shells",
            "list_background_processes",
            "read_background_output",
            // Windsurf
            "command_status",
        ],
        "shell_output",
        Plain,
        NOTHING,
    ),
    tool(
        &["PowerShell", "powershell", "js_repl", "exec", "REPL"],
        "shell",
        Opaque("a language that is not read"),
        &[may(&["command", "code", "input", "script"], Text)],
    ),
    // ── reading ──
    tool(
        &["Read", "read", "read_file", "file_read", "ReadFile", "read_code", "developer__read"],
        "file_read",
        Plain,
        &[must(FILE, Path(Access::Read))],
    ),
    tool(&["view", "show_file"], "file_read", Plain, &[must(FILE, Path(Access::Read)), may(&["view_range"], Text)]),
    tool(
        &["view_image", "look_at", "read_image", "developer__read_image", "developer__image_processor"],
        "file_read",
        Plain,
        &[must(FILE, Path(Access::Read))],
    ),
    tool(&["NotebookRead"], "file_read", Plain, &[must(NOTEBOOK, Path(Access::Read))]),
    tool(
        &["read_many_files"],
        "file_read",
        Globs(Action::Read),
        &[must(&["include", "paths"], Pattern), may(&["exclude"], Exclude), may(&["dir_path", "base_path"], Base)],
    ),
    tool(
        &["read_lints", "ReadLints", "getDiagnostics"],
        "file_read",
        Plain,
        &[may(&["paths", "uri", "path"], Path(Access::ReadTree))],
    ),
    tool(&["LSP", "lsp"], "file_read", Plain, &[must(FILE, Path(Access::Read)), may(&["operation", "query"], Text)]),
    tool(
        &["skill_ref_read"],
        "file_read",
        Plain,
        &[must(&["ref_path", "path"], BundlePath), may(&["skill_mention", "skill"], Text)],
    ),
    tool(
        &["read_resource", "ReadMcpResourceTool", "read_mcp_resource"],
        "file_read",
        Plain,
        &[must(&["uri", "url"], Resource), may(&["server"], Text)],
    ),
    tool(&["ListMcpResourcesTool", "list_mcp_resources", "list_mcp_resource_templates"], "none", Plain, NOTHING),
    // ── searching ──
    tool(
        &["Glob", "glob", "glob_file_search"],
        "file_list",
        Globs(Action::List),
        &[must(&["pattern", "glob_pattern", "globPattern"], Pattern), may(FOLDER, Base)],
    ),
    tool(
        &["LS", "list", "list_dir", "list_directory", "ListDir", "developer__list_files"],
        "file_list",
        Plain,
        &[may(FOLDER, Path(Access::List)), may(&["ignore"], Exclude)],
    ),
    // Goose
    tool(&["tree", "developer__tree"], "file_list", Search(Action::List), &[may(FOLDER, Base), may(&["depth"], Text)]),
    tool(
        &["file_search"],
        "file_list",
        Search(Action::List),
        &[may(&["query", "explanation"], Text), may(FOLDER, Base)],
    ),
    tool(
        &["Grep", "grep", "rg", "grep_files", "search_file_content", "grep_search", "search_files"],
        "file_search",
        Search(Action::Read),
        &[
            must(&["pattern", "query", "regex"], Text),
            may(FOLDER, Base),
            may(&["paths"], Base),
            may(&["glob", "include", "include_pattern", "file_pattern"], Pattern),
            may(&["exclude_pattern", "exclude"], Exclude),
        ],
    ),
    tool(
        &["codebase_search", "SemanticSearch"],
        "file_search",
        Search(Action::Read),
        &[must(&["query"], Text), may(FOLDER, Base)],
    ),
    // ── writing ──
    tool(
        &["Write", "write", "write_file", "file_write", "create", "create_file", "developer__write"],
        "file_write",
        Plain,
        &[must(FILE, Path(Access::Write)), may(BEFORE_AND_AFTER, Content)],
    ),
    tool(
        &[
            "Edit",
            "edit",
            "MultiEdit",
            "multiedit",
            "replace",
            "edit_file",
            "search_replace",
            "StrReplace",
            "reapply",
            "insert",
            // Amp, Windsurf, Goose
            "undo_edit",
            "write_code",
            "developer__edit",
        ],
        "file_write",
        Plain,
        &[
            must(FILE, Path(Access::Update)),
            may(BEFORE_AND_AFTER, Content),
            may(&["instruction", "instructions"], Text),
        ],
    ),
    tool(
        &["NotebookEdit", "edit_notebook", "EditNotebook"],
        "file_write",
        Plain,
        &[must(NOTEBOOK, Path(Access::Update)), may(BEFORE_AND_AFTER, Content)],
    ),
    tool(&["delete_file", "Delete"], "file_delete", Plain, &[must(FILE, Path(Access::Delete))]),
    tool(
        &["apply_patch", "patch", "ApplyPatch"],
        "file_write",
        Plain,
        &[must(&["input", "patch", "command", "patchText", "diff"], Patch), may(WHERE, Directory)],
    ),
    tool(
        &["str_replace_editor", "str_replace_based_edit_tool", "developer__text_editor"],
        "file_write",
        Editor,
        &[
            must(&["command"], Text),
            must(FILE, Path(Access::Update)),
            may(BEFORE_AND_AFTER, Content),
            may(&["insert_line", "view_range"], Text),
        ],
    ),
    tool(&["save_memory"], "memory", Writes(&["~/.gemini/GEMINI.md", "~/.qwen/QWEN.md"]), &[may(&["fact"], Text)]),
    // ── network ──
    tool(
        // Claude Code; OpenCode; Amp; Windsurf
        &["WebFetch", "webfetch", "read_web_page", "read_url_content"],
        "network",
        Plain,
        &[must(&["url", "Url"], Url), may(&["prompt", "format", "objective"], Text)],
    ),
    tool(&["web_fetch"], "network", Plain, &[must(&["url", "urls", "prompt"], UrlsInText)]),
    tool(
        &["WebSearch", "web_search", "google_web_search", "websearch", "codesearch"],
        "network",
        Plain,
        &[must(&["query", "search_term", "queries", "q"], Query), may(&["allowed_domains", "blocked_domains"], Text)],
    ),
    // ── other agents, skills ──
    tool(
        &[
            "Task",
            "Agent",
            "task",
            "agent",
            "spawn_agent",
            "send_input",
            "resume_agent",
            "delegate_to_agent",
            "codebase_investigator",
            "SendMessage",
            // Copilot
            "read_agent",
            "write_agent",
            // Amp
            "finder",
            "librarian",
            "oracle",
        ],
        "agent",
        Plain,
        &[may(WHERE, Directory), may(&["prompt", "message", "description", "items", "objective", "input"], Text)],
    ),
    tool(&["wait", "wait_agent", "close_agent", "list_agents"], "agent", Plain, NOTHING),
    tool(&["Skill", "skill", "activate_skill"], "skill", Plain, &[may(&["skill", "name", "args", "command"], Text)]),
    tool(
        &["skill_exec"],
        "skill",
        Runs(CodeOrigin::Project),
        &[
            must(&["skill_mention", "skill"], Text),
            must(&["action_id", "action"], Text),
            may(VARIABLES, Environment),
            may(SANDBOX, Sandbox),
            may(WHERE, Directory),
        ],
    ),
    tool(&["SlashCommand"], "agent", Opaque("a command of the agent may run anything"), &[may(&["command"], Text)]),
    // ── plans, questions, notes of the agent to itself ──
    tool(
        &[
            "TodoWrite",
            "TodoRead",
            "todowrite",
            "todoread",
            "todo_write",
            "write_todos",
            "update_todo",
            "update_plan",
            "TaskCreate",
            "TaskUpdate",
            "TaskList",
            "TaskGet",
            "ExitPlanMode",
            "EnterPlanMode",
            "exit_plan_mode",
            "enter_plan_mode",
            "plan_exit",
            "report_intent",
            "SwitchMode",
            "ToolSearch",
            "tool_search",
            "StructuredOutput",
            "complete_task",
            "attempt_completion",
            "task_complete",
            "todo_read",
            "task_list",
            "CronList",
            "WaitForMcpServers",
        ],
        "plan",
        Plain,
        &[may(
            &["plan", "todos", "explanation", "query", "intent", "plan_path", "planFilePath", "plan_filename"],
            Text,
        )],
    ),
    tool(
        &[
            "AskUserQuestion",
            "ask_human",
            "request_user_input",
            "ask_user",
            "ask_user_question",
            "AskQuestion",
            "question",
            "ask_followup_question",
        ],
        "question",
        Plain,
        &[may(&["question", "questions", "choices", "options", "prompt"], Text)],
    ),
];
