//! Codex CLI: `PreToolUse`, `PermissionRequest`, `PostToolUse`, with a strict parser that fails open.
//!
//! To Codex an unknown field, an `ask`, an `allow` without a rewrite and a deny without a reason are a failed hook, and the
//! tool runs. So an allow prints nothing, and no output has a field that its schema does not know.

use std::time::Duration;

use callgate::call::{Call, Tool};
use callgate::describe::typed_into;
use serde_json::{Value, json};

use super::claude;
use crate::event::HookEventKind::{After, Before, Permission, SessionEnd, SessionStart};
use crate::{Agent, ContainedCalls, HookAnswer, HookEvent, HookInput, HookOutput, HookRequest, PayloadError, reading};

pub(super) static CODEX: Agent = Agent {
    name: "codex",
    title: "Codex CLI",
    events: &[
        HookEvent::new("PreToolUse", Before).rewrites(),
        HookEvent::new("PermissionRequest", Permission).asks(),
        HookEvent::new("PostToolUse", After),
        HookEvent::new("SessionStart", SessionStart),
        HookEvent::new("SessionEnd", SessionEnd),
    ],
    notices: "PostCompact PreCompact Stop SubagentStart SubagentStop UserPromptSubmit",
    default_timeout: Duration::from_secs(600),
    contained: ContainedCalls::Rewritten,
    read,
    decide,
    complain: claude::complain,
    ..Agent::BASE
};

fn read(agent: &Agent, input: &HookInput<'_>) -> Result<HookRequest, PayloadError> {
    let (mut request, _) = reading::common(agent, input)?;
    if let Some(call) = request.call_mut() {
        recognize_patch(call);
    }
    // `cwd` is the call's own `workdir`, which the model chooses.
    request.directory_moves = true;
    if request.event.decides() {
        request.unseen_input = request.call().and_then(reads_later_input);
    }
    Ok(request)
}

fn decide(event: HookEvent, answer: HookAnswer) -> HookOutput {
    match answer {
        HookAnswer::Allow { rewritten: None, note } if event.kind == Before => match note {
            None => HookOutput::silence(),
            Some(note) => HookOutput::json(&json!({ "systemMessage": note })),
        },
        // No note beside a rewrite: if Codex rejected the note, it would ignore the rewrite too.
        HookAnswer::Allow { rewritten, .. } => claude::decide(event, HookAnswer::Allow { rewritten, note: None }),
        answer => claude::decide(event, answer),
    }
}

/// Turns the shell command `apply_patch <<'EOF' …` into a call of the patch tool, as Codex itself does.
fn recognize_patch(call: &mut Call) {
    if !is_shell(call) {
        return;
    }
    let patch = call.input.get("command").and_then(Value::as_str).and_then(patch_in).map(str::to_owned);
    if let Some(patch) = patch {
        call.tool = Tool::own("apply_patch");
        call.input = json!({ "command": patch });
    }
}

/// The patch of a command that is only a here-document for `apply_patch` without expansions.
fn patch_in(command: &str) -> Option<&str> {
    let (first, rest) = command.trim_end().split_once('\n')?;
    let delimiter = first.trim().strip_prefix("apply_patch")?.trim_start().strip_prefix("<<")?.trim();
    let bare = delimiter.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
    let bare = bare.or_else(|| delimiter.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')));
    let name = bare.unwrap_or(delimiter);
    let body = rest.strip_suffix(name)?.strip_suffix('\n')?;
    let plain_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let expands = bare.is_none() && body.contains(['$', '`', '\\']);
    let ends_before = body.lines().any(|line| line == name);
    (plain_name && !expands && !ends_before).then_some(body)
}

fn is_shell(call: &Call) -> bool {
    call.tool.server.is_none() && call.tool.name == "Bash"
}

/// The program in a command that reads what is typed into it later. Codex calls no hook for `write_stdin`, so allowing a
/// bare `bash` allows everything.
fn reads_later_input(call: &Call) -> Option<String> {
    if !is_shell(call) {
        return None;
    }
    call.input.get("command").and_then(Value::as_str).and_then(typed_into)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: a.txt\n+$HOME\n*** End Patch";

    #[test]
    fn a_patch_in_a_here_document_is_the_patch_tool() {
        for open in ["apply_patch <<'EOF'", "apply_patch << 'EOF'", "apply_patch <<\"EOF\"", "apply_patch<<'EOF'"] {
            let command = format!("{open}\n{PATCH}\nEOF\n");
            assert_eq!(patch_in(&command), Some(PATCH), "{open}");
        }
        assert_eq!(patch_in("apply_patch <<EOF\n+plain\nEOF"), Some("+plain"));
    }

    #[test]
    fn what_is_more_than_a_patch_stays_a_command() {
        let cases = [
            format!("apply_patch <<EOF\n{PATCH}\nEOF"),
            format!("apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -rf /\nEOF"),
            format!("apply_patch <<'EOF' && rm -rf /\n{PATCH}\nEOF"),
            format!("apply_patch <<'EOF'\n{PATCH}\nEOF; rm x"),
            format!("apply_patch x <<'EOF'\n{PATCH}\nEOF"),
            format!("x=1 apply_patch <<'EOF'\n{PATCH}\nEOF"),
            format!("apply_patch <<'EOF\"\n{PATCH}\nEOF"),
            format!("apply_patch <<'A B'\n{PATCH}\nA B"),
            "apply_patch <<''\nx\n".to_owned(),
            "apply_patch 'patch'".to_owned(),
            "apply_patch".to_owned(),
        ];
        for command in cases {
            assert_eq!(patch_in(&command), None, "{command}");
        }
    }
}
