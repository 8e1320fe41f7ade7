//! Agents whose settings list hooks by event: Claude Code, Gemini CLI, Qwen Code, Copilot CLI, Cursor, Windsurf and Goose.

use serde_json::json;

use super::{HookList, Recipe, TIME_LIMIT, command_handler, group, line, setting, timeout_options, tool_matcher};
use crate::canary::AnswerForm;
use crate::content::{FileContent, SettingsChange};
use crate::environment::InstallScope;
use crate::environment::Location::{Agent, Configuration, Data, Home, Machine, Project};
use crate::hard_denies;
use crate::json::JsonEdit;
use crate::settings::SettingsNode;
use crate::sighting::CANARY_SESSION;

/// Claude Code starts hooks without a shell. `onFailure` makes a failing hook block.
const CLAUDE_HOOKS: HookList = HookList {
    agent: "claude",
    files: [
        Some(Agent("CLAUDE_CONFIG_DIR", ".claude", "settings.json")),
        // The personal file: the path of a program on this machine does not belong in a repository.
        Some(Project(".claude/settings.local.json")),
        Some(Machine("etc/claude-code/managed-settings.json")),
    ],
    events: &["PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd"],
    entry: |words, event| {
        let (program, arguments) = words.split_at(words.len().min(1));
        let mut handler = vec![
            ("type".to_owned(), "command".into()),
            ("command".to_owned(), program.concat().as_str().into()),
            ("args".to_owned(), SettingsNode::Words(arguments.to_vec())),
            ("timeout".to_owned(), TIME_LIMIT.as_secs().into()),
        ];
        if matches!(event, "PreToolUse" | "PermissionRequest") {
            handler.push(("onFailure".to_owned(), "block".into()));
        }
        group(Some("*"), SettingsNode::Table(handler))
    },
    environment: &[("CLAUDECODE", "1")],
    payload: |call| call.tool_event("PreToolUse", "Bash"),
    ..HookList::BASE
};

pub(super) static CLAUDE: Recipe = Recipe {
    name: "claude",
    programs: &["claude"],
    home: Agent("CLAUDE_CONFIG_DIR", ".claude", ""),
    sessions: &[Agent("CLAUDE_CONFIG_DIR", ".claude", "projects")],
    plan: |request| {
        let mut plan = CLAUDE_HOOKS.plan(request)?;
        plan.edit_first(request.denies.iter().map(|deny| {
            JsonEdit::element(&["permissions", "deny"], hard_denies::claude(deny).as_str().into()).if_possible()
        }));
        if request.scope == InstallScope::Managed {
            plan.edit_first([JsonEdit::member(&[], "allowManagedHooksOnly", true.into()).if_possible()]);
        }
        Some(plan)
    },
    switched_off: |request, read| {
        // Managed hooks cannot be switched off.
        if request.scope == InstallScope::Managed {
            return None;
        }
        let managed = CLAUDE_HOOKS.file(InstallScope::Managed, request.environment);
        let files = InstallScope::ALL.into_iter().filter_map(|scope| CLAUDE_HOOKS.file(scope, request.environment));
        files.chain([request.environment.path(Project(".claude/settings.json"))]).find_map(|path| {
            let text = read(&path)?;
            let on = |key: &str| setting(&text, &[key]) == Some(true.into());
            if on("disableAllHooks") {
                return Some(format!("`disableAllHooks` is set in {}", path.display()));
            }
            (Some(&path) == managed.as_ref() && on("allowManagedHooksOnly"))
                .then(|| format!("{} allows only managed hooks; install with --managed", path.display()))
        })
    },
    ..Recipe::BASE
};

/// A hook of Gemini CLI and its descendants. Their timeouts are in milliseconds.
fn gemini_handler(words: &[String]) -> SettingsNode {
    SettingsNode::object([
        ("type", "command".into()),
        ("name", "callgate".into()),
        ("command", line(words).as_str().into()),
        ("timeout", TIME_LIMIT.as_secs().saturating_mul(1000).into()),
    ])
}

const GEMINI_HOOKS: HookList = HookList {
    agent: "gemini",
    files: [
        Some(Home(".gemini/settings.json")),
        Some(Project(".gemini/settings.json")),
        Some(Machine("etc/gemini-cli/settings.json")),
    ],
    events: &["BeforeTool", "AfterTool", "SessionStart", "SessionEnd"],
    entry: |words, event| group(tool_matcher(event), gemini_handler(words)),
    shell: Some("bash"),
    payload: |call| call.tool_event("BeforeTool", "run_shell_command"),
    answers: AnswerForm::Decision,
    ..HookList::BASE
};

pub(super) static GEMINI: Recipe = Recipe {
    name: "gemini",
    programs: &["gemini"],
    home: Home(".gemini"),
    sessions: &[Home(".gemini/tmp")],
    plan: |request| {
        let mut plan = GEMINI_HOOKS.plan(request)?;
        // Gemini CLI does not read the policies of a project.
        if !request.denies.is_empty() && request.scope != InstallScope::Project {
            let settings = GEMINI_HOOKS.file(request.scope, request.environment)?;
            plan.add_file(settings.with_file_name("policies/callgate.toml"), hard_denies::gemini(request.denies));
        }
        Some(plan)
    },
    switched_off: |request, read| {
        InstallScope::ALL.into_iter().find_map(|scope| {
            let path = GEMINI_HOOKS.file(scope, request.environment)?;
            let text = read(&path)?;
            if setting(&text, &["hooksConfig", "enabled"]) == Some(false.into()) {
                return Some(format!("`hooksConfig.enabled` is false in {}", path.display()));
            }
            setting(&text, &["hooksConfig", "disabled"])?
                .as_array()?
                .contains(&"callgate".into())
                .then(|| format!("`hooksConfig.disabled` lists the hook in {}", path.display()))
        })
    },
    ..Recipe::BASE
};

/// Qwen Code: Claude Code's events in Gemini CLI's form.
const QWEN_HOOKS: HookList = HookList {
    agent: "qwen",
    files: [Some(Home(".qwen/settings.json")), Some(Project(".qwen/settings.json")), None],
    events: &["PreToolUse", "PostToolUse", "SessionStart", "SessionEnd"],
    entry: |words, event| group(tool_matcher(event), gemini_handler(words)),
    shell: Some("bash"),
    payload: |call| call.tool_event("PreToolUse", "run_shell_command"),
    ..HookList::BASE
};

pub(super) static QWEN: Recipe = Recipe {
    name: "qwen",
    programs: &["qwen"],
    home: Home(".qwen"),
    sessions: &[Home(".qwen/projects")],
    plan: |request| QWEN_HOOKS.plan(request),
    switched_off: |request, read| {
        InstallScope::ALL.into_iter().find_map(|scope| {
            let path = QWEN_HOOKS.file(scope, request.environment)?;
            let text = read(&path)?;
            let off = setting(&text, &["hooksConfig", "enabled"]) == Some(false.into())
                || setting(&text, &["disableAllHooks"]) == Some(true.into());
            off.then(|| format!("hooks are switched off in {}", path.display()))
        })
    },
    ..Recipe::BASE
};

/// GitHub Copilot CLI has a file for these hooks alone. A failing hook blocks; only one that times out does not.
const COPILOT_HOOKS: HookList = HookList {
    agent: "copilot",
    files: [
        Some(Agent("COPILOT_HOME", ".copilot", "hooks/callgate.json")),
        Some(Project(".github/hooks/callgate.json")),
        Some(Machine("etc/github-copilot/policy.d/callgate.json")),
    ],
    versioned: true,
    events: &["preToolUse", "postToolUse", "sessionStart", "sessionEnd"],
    // The payload does not name its event.
    options: |event| [vec!["--event".to_owned(), event.to_owned()], timeout_options()].concat(),
    entry: |words, _| {
        SettingsNode::object([
            ("type", "command".into()),
            ("bash", line(words).as_str().into()),
            ("timeoutSec", TIME_LIMIT.as_secs().into()),
        ])
    },
    shell: Some("bash"),
    payload: |call| {
        json!({
            "sessionId": CANARY_SESSION,
            "timestamp": 0,
            "cwd": call.directory_text(),
            "toolName": "bash",
            "toolArgs": { "command": call.command, "description": "callgate" },
        })
    },
    answers: AnswerForm::PermissionDecision,
    ..HookList::BASE
};

pub(super) static COPILOT: Recipe = Recipe {
    name: "copilot",
    programs: &["copilot"],
    home: Agent("COPILOT_HOME", ".copilot", ""),
    sessions: &[
        Agent("COPILOT_HOME", ".copilot", "session-state"),
        Agent("COPILOT_HOME", ".copilot", "history-session-state"),
    ],
    plan: |request| COPILOT_HOOKS.plan(request),
    ..Recipe::BASE
};

/// Cursor: without `failClosed` every failure lets the call run.
const CURSOR_HOOKS: HookList = HookList {
    agent: "cursor",
    files: [
        Some(Home(".cursor/hooks.json")),
        Some(Project(".cursor/hooks.json")),
        Some(Machine("etc/cursor/hooks.json")),
    ],
    versioned: true,
    events: &["preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"],
    entry: |words, _| {
        SettingsNode::object([
            ("command", line(words).as_str().into()),
            ("timeout", TIME_LIMIT.as_secs().into()),
            ("failClosed", true.into()),
        ])
    },
    shell: Some("/bin/sh"),
    payload: |call| {
        json!({
            "conversation_id": CANARY_SESSION,
            "generation_id": "callgate-canary",
            "model": "none",
            "session_id": CANARY_SESSION,
            "hook_event_name": "beforeShellExecution",
            "cursor_version": "0",
            "workspace_roots": [call.directory_text()],
            "command": call.command,
            "cwd": call.directory_text(),
            "sandbox": false,
        })
    },
    answers: AnswerForm::Permission,
    ..HookList::BASE
};

pub(super) static CURSOR: Recipe = Recipe {
    name: "cursor",
    programs: &["cursor", "cursor-agent"],
    home: Home(".cursor"),
    sessions: &[Home(".cursor/projects"), Home(".cursor/chats")],
    plan: |request| CURSOR_HOOKS.plan(request),
    ..Recipe::BASE
};

/// Windsurf: exit code 2 blocks, everything else lets the call run.
const WINDSURF_HOOKS: HookList = HookList {
    agent: "windsurf",
    files: [
        Some(Home(".codeium/windsurf/hooks.json")),
        Some(Project(".windsurf/hooks.json")),
        Some(Machine("etc/windsurf/hooks.json")),
    ],
    events: &[
        "pre_read_code",
        "pre_write_code",
        "pre_run_command",
        "pre_mcp_tool_use",
        "post_read_code",
        "post_write_code",
        "post_run_command",
        "post_mcp_tool_use",
    ],
    options: |_| Vec::new(),
    entry: |words, event| {
        SettingsNode::object([
            ("command", line(words).as_str().into()),
            ("show_output", event.starts_with("pre_").into()),
        ])
    },
    shell: Some("bash"),
    payload: |call| {
        json!({
            "agent_action_name": "pre_run_command",
            "trajectory_id": CANARY_SESSION,
            "execution_id": "callgate-canary",
            "timestamp": "1970-01-01T00:00:00Z",
            "tool_info": { "command_line": call.command, "cwd": call.directory_text() },
        })
    },
    answers: AnswerForm::ExitCode,
    advice: &["Windsurf has no timeout setting and no rules of its own: a lost hook lets the call run"],
    ..HookList::BASE
};

pub(super) static WINDSURF: Recipe = Recipe {
    name: "windsurf",
    programs: &["windsurf"],
    home: Home(".codeium/windsurf"),
    sessions: &[Home(".codeium/windsurf/cascade")],
    plan: |request| WINDSURF_HOOKS.plan(request),
    ..Recipe::BASE
};

/// Goose: the hooks of a plugin. Only exit code 2 and an explicit block stop a call.
const GOOSE_HOOKS: HookList = HookList {
    agent: "goose",
    files: [
        Some(Home(".agents/plugins/callgate/hooks/hooks.json")),
        Some(Project(".agents/plugins/callgate/hooks/hooks.json")),
        None,
    ],
    events: &["PreToolUse", "PostToolUse"],
    entry: |words, _| group(Some(".*"), command_handler(words)),
    shell: Some("/bin/sh"),
    payload: |call| {
        json!({
            "event": "PreToolUse",
            "session_id": CANARY_SESSION,
            "matcher_context": "developer__shell",
            "tool_name": "developer__shell",
            "tool_input": { "command": call.command },
            "working_dir": call.directory_text(),
        })
    },
    answers: AnswerForm::ExitCode,
    advice: &["Goose lets a call run if its hook is lost; set GOOSE_MODE=approve where that matters"],
    ..HookList::BASE
};

pub(super) static GOOSE: Recipe = Recipe {
    name: "goose",
    programs: &["goose"],
    home: Configuration("goose"),
    sessions: &[Data("goose/sessions")],
    plan: |request| {
        let mut plan = GOOSE_HOOKS.plan(request)?;
        let hooks = GOOSE_HOOKS.file(request.scope, request.environment)?;
        let manifest = FileContent::Json(vec![
            JsonEdit::member(&[], "name", "callgate".into()),
            JsonEdit::member(&[], "description", "Passes every tool call to callgate".into()),
        ]);
        let path = hooks.parent()?.with_file_name("plugin.json");
        plan.changes.insert(0, SettingsChange { path, content: manifest });
        Some(plan)
    },
    ..Recipe::BASE
};
