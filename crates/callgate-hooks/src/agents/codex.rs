//! Codex CLI: `PreToolUse`, `PermissionRequest`, `PostToolUse`, with a strict reader that fails open.
//!
//! A field it does not know, `ask`, an `allow` without a rewrite or a deny without a reason is a failed hook, and the tool
//! runs. So to allow is to print nothing, and nothing is ever said that its schema does not have.

use std::time::Duration;

use callgate::call::{Call, Tool};
use callgate::describe::typed_into;
use serde_json::{Value, json};

use super::claude;
use crate::event::EventKind::{After, Before, Notice, Permission, SessionEnd, SessionStart};
use crate::{Agent, EventName, Incoming, Output, PayloadError, Received, Verdict, tool_events};

static EVENTS: &[EventName] = &[
    EventName::new("PreToolUse", Before),
    EventName::new("PermissionRequest", Permission),
    EventName::new("PostToolUse", After),
    EventName::new("SessionStart", SessionStart),
    EventName::new("SessionEnd", SessionEnd),
    EventName::new("PostCompact", Notice),
    EventName::new("PreCompact", Notice),
    EventName::new("Stop", Notice),
    EventName::new("SubagentStart", Notice),
    EventName::new("SubagentStop", Notice),
    EventName::new("UserPromptSubmit", Notice),
];

/// Codex CLI.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn events(&self) -> &'static [EventName] {
        EVENTS
    }

    fn read(&self, received: &Received<'_>) -> Result<Incoming, PayloadError> {
        let (mut incoming, _) = tool_events::read(self.name(), EVENTS, received)?;
        if let Some(call) = incoming.call_mut() {
            recognise_patch(call);
        }
        // `cwd` is the call's own `workdir`, which the model chooses
        incoming.directory_moves = true;
        if incoming.name.decides() {
            incoming.unseen_input = incoming.call().and_then(goes_on_listening);
        }
        Ok(incoming)
    }

    fn decide(&self, event: EventName, verdict: Verdict<'_>) -> Output {
        match verdict {
            Verdict::Allow { rewritten: None, note } if event.kind == Before => match note {
                None => Output::silence(),
                Some(note) => Output::json(&json!({ "systemMessage": note })),
            },
            // nothing is said beside a rewrite: if it were not taken, the rewrite would not be either
            Verdict::Allow { rewritten, .. } => claude::decide(event, Verdict::Allow { rewritten, note: None }),
            verdict => claude::decide(event, verdict),
        }
    }

    fn complain(&self, event: EventName, reason: &str) -> Output {
        claude::complain(event, reason)
    }

    fn can_ask(&self, event: EventName) -> bool {
        event.kind == Permission
    }

    fn can_rewrite(&self, event: EventName) -> bool {
        event.kind == Before
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Codex takes `apply_patch <<'EOF' …` given to the shell for a call of its own tool, and so it is judged.
fn recognise_patch(call: &mut Call) {
    if !is_shell(call) {
        return;
    }
    let patch = call.input.get("command").and_then(Value::as_str).and_then(patch_in).map(str::to_owned);
    if let Some(patch) = patch {
        call.tool = Tool::own("apply_patch");
        call.input = json!({ "command": patch });
    }
}

/// The patch of a command that is nothing but a here-document for `apply_patch`, in which the shell changes nothing.
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

/// The program of a command that would take what is typed into it later. Codex calls no hook for `write_stdin`, so whoever
/// allows a bare `bash` has allowed everything.
fn goes_on_listening(call: &Call) -> Option<String> {
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
