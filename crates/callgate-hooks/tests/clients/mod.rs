//! What the agents make of a hook's output, as measured with the real programs: strict where they are strict, and open where
//! they are open.

use callgate_hooks::{HookEvent, HookEventKind, HookOutput};
use serde_json::Value;

/// What an agent does with a tool after its hook has answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    /// It runs the tool as the model called it.
    Runs,
    /// It runs the tool with another input.
    RunsWith(Value),
    /// It does not run the tool, and the model is told this.
    Blocked(String),
    /// It asks its user.
    Asks,
    /// It never comes back, or it depends on settings.
    Unclear(&'static str),
}

/// What the agent of this name does.
pub fn then(agent: &str, event: HookEvent, output: &HookOutput) -> Then {
    match (agent, event.kind) {
        ("claude", HookEventKind::Before) => claude(event, output),
        ("claude" | "qwen", HookEventKind::Permission) => claude_permission(event, output, agent == "claude"),
        ("codex", HookEventKind::Before) => codex(event, output),
        ("codex", HookEventKind::Permission) => codex_permission(event, output),
        ("gemini", _) => gemini(event, output),
        ("copilot", _) => copilot(event, output),
        ("cursor", _) => cursor(event, output),
        ("opencode", _) => opencode(output),
        ("qwen", HookEventKind::Before) => qwen(event, output),
        ("windsurf", _) => windsurf(output),
        ("amp", _) => amp(output),
        ("goose", _) => goose(output),
        ("generic", _) => generic(output),
        (agent, kind) => panic!("no model of {agent} for {kind:?}"),
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn document(output: &HookOutput) -> Option<Value> {
    serde_json::from_str(&output.stdout).ok().filter(Value::is_object)
}

fn claude(event: HookEvent, output: &HookOutput) -> Then {
    match output.code {
        0 => {}
        2 => return Then::Blocked(output.stderr.clone()),
        _ => return Then::Runs,
    }
    let Some(said) = document(output) else { return Then::Runs };
    let Some(specific) = said.get("hookSpecificOutput").filter(|specific| specific["hookEventName"] == event.name)
    else {
        return Then::Runs;
    };
    match specific.get("permissionDecision").and_then(Value::as_str) {
        Some("deny") => Then::Blocked(text(specific.get("permissionDecisionReason"))),
        Some("ask") => Then::Asks,
        _ => specific.get("updatedInput").map_or(Then::Runs, |input| Then::RunsWith(input.clone())),
    }
}

fn claude_permission(event: HookEvent, output: &HookOutput, rewrites: bool) -> Then {
    if output.code == 2 {
        return Then::Blocked(output.stderr.clone());
    }
    let decision = document(output)
        .and_then(|said| said.get("hookSpecificOutput").cloned())
        .filter(|specific| specific["hookEventName"] == event.name)
        .and_then(|specific| specific.get("decision").cloned());
    let Some(decision) = decision else { return Then::Asks };
    match (decision["behavior"].as_str(), decision.get("updatedInput")) {
        (Some("allow"), Some(input)) if rewrites => Then::RunsWith(input.clone()),
        (Some("allow"), _) => Then::Runs,
        (Some("deny"), _) => Then::Blocked(text(decision.get("message"))),
        _ => Then::Asks,
    }
}

fn only(value: &Value, names: &[&str]) -> bool {
    value.as_object().is_some_and(|map| map.keys().all(|key| names.contains(&key.as_str())))
}

fn codex(event: HookEvent, output: &HookOutput) -> Then {
    match output.code {
        0 => {}
        2 if !output.stderr.trim().is_empty() => return Then::Blocked(output.stderr.clone()),
        _ => return Then::Runs,
    }
    let Some(said) = document(output) else { return Then::Runs };
    let known = only(&said, &["hookSpecificOutput", "decision", "reason", "systemMessage"]);
    let Some(specific) = said.get("hookSpecificOutput").filter(|_| known) else { return Then::Runs };
    let known = only(specific, &["hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput"]);
    if !known || specific["hookEventName"] != event.name {
        return Then::Runs;
    }
    let reason = text(specific.get("permissionDecisionReason"));
    match (specific["permissionDecision"].as_str(), specific.get("updatedInput")) {
        (Some("deny"), None) if !reason.trim().is_empty() => Then::Blocked(reason),
        (Some("allow"), Some(input)) => Then::RunsWith(input.clone()),
        _ => Then::Runs,
    }
}

fn codex_permission(event: HookEvent, output: &HookOutput) -> Then {
    if output.code == 2 && !output.stderr.trim().is_empty() {
        return Then::Blocked(output.stderr.clone());
    }
    let specific = document(output).filter(|said| only(said, &["hookSpecificOutput"]));
    let Some(specific) = specific.and_then(|said| said.get("hookSpecificOutput").cloned()) else { return Then::Asks };
    let decision = specific.get("decision").filter(|decision| only(decision, &["behavior", "message"]));
    match decision
        .filter(|_| specific["hookEventName"] == event.name && only(&specific, &["hookEventName", "decision"]))
    {
        Some(decision) if decision["behavior"] == "allow" => Then::Runs,
        Some(decision) if decision["behavior"] == "deny" => Then::Blocked(text(decision.get("message"))),
        _ => Then::Asks,
    }
}

fn gemini(event: HookEvent, output: &HookOutput) -> Then {
    let shown = if output.stdout.trim().is_empty() { &output.stderr } else { &output.stdout };
    let Ok(said) = serde_json::from_str::<Value>(shown) else {
        let blocks = output.code > 1 && !shown.trim().is_empty();
        return if blocks { Then::Blocked(shown.clone()) } else { Then::Runs };
    };
    match said["decision"].as_str() {
        Some("deny" | "block") => Then::Blocked(text(said.get("reason"))),
        Some("ask") => Then::Unclear("hangs without a terminal"),
        _ => match said.get("hookSpecificOutput") {
            Some(specific) if specific["hookEventName"] == event.name && specific["tool_input"].is_object() => {
                Then::RunsWith(specific["tool_input"].clone())
            }
            _ => Then::Runs,
        },
    }
}

fn copilot(event: HookEvent, output: &HookOutput) -> Then {
    let permission = event.kind == HookEventKind::Permission;
    if output.code == 2 || (output.code != 0 && !permission) {
        return Then::Blocked(output.stderr.clone());
    }
    if event.name.starts_with(char::is_uppercase) {
        return if permission { claude_permission(event, output, false) } else { claude(event, output) };
    }
    let Some(said) = document(output) else { return if permission { Then::Asks } else { Then::Runs } };
    if permission {
        return match said["behavior"].as_str() {
            Some("allow") => Then::Runs,
            Some("deny") => Then::Blocked(text(said.get("message"))),
            _ => Then::Asks,
        };
    }
    match said["permissionDecision"].as_str() {
        Some("deny") => Then::Blocked(text(said.get("permissionDecisionReason"))),
        Some("ask") => Then::Asks,
        _ => said.get("modifiedArgs").map_or(Then::Runs, |input| Then::RunsWith(input.clone())),
    }
}

fn cursor(event: HookEvent, output: &HookOutput) -> Then {
    match output.code {
        0 => {}
        2 => return Then::Blocked(output.stderr.clone()),
        _ => return Then::Unclear("runs unless failClosed is set"),
    }
    if output.stdout.trim().is_empty() {
        return Then::Unclear("runs unless failClosed is set");
    }
    let Some(said) = document(output) else { return Then::Blocked("an answer that is no JSON".to_owned()) };
    match said["permission"].as_str() {
        Some("allow") => match said.get("updated_input").filter(|_| event.name == "preToolUse") {
            Some(input) => Then::RunsWith(input.clone()),
            None => Then::Runs,
        },
        Some("deny") => Then::Blocked(text(said.get("agent_message"))),
        Some("ask") if event.name == "beforeShellExecution" || event.name == "beforeMCPExecution" => Then::Asks,
        Some("ask") => Then::Runs,
        _ => Then::Blocked("an answer without a permission".to_owned()),
    }
}

/// The plugin that stands between OpenCode and a hook.
fn opencode(output: &HookOutput) -> Then {
    match output.code {
        0 => {}
        _ => return Then::Blocked(output.stderr.clone()),
    }
    if output.stdout.trim().is_empty() {
        return Then::Runs;
    }
    let Some(said) = document(output) else { return Then::Blocked("an answer that is no JSON".to_owned()) };
    let specific = &said["hookSpecificOutput"];
    match specific["permissionDecision"].as_str() {
        Some("allow") => specific.get("updatedInput").map_or(Then::Runs, |input| Then::RunsWith(input.clone())),
        _ => Then::Blocked(text(specific.get("permissionDecisionReason"))),
    }
}

fn qwen(event: HookEvent, output: &HookOutput) -> Then {
    if output.code == 2 && output.stderr.trim().is_empty() {
        return Then::Runs;
    }
    match claude(event, output) {
        Then::RunsWith(_) => Then::Runs,
        then => then,
    }
}

fn windsurf(output: &HookOutput) -> Then {
    if output.code == 2 { Then::Blocked(output.stderr.clone()) } else { Then::Runs }
}

fn amp(output: &HookOutput) -> Then {
    match output.code {
        0 => Then::Runs,
        1 => Then::Asks,
        _ => Then::Blocked(output.stderr.clone()),
    }
}

fn goose(output: &HookOutput) -> Then {
    if output.code == 2 {
        return Then::Blocked(output.stderr.clone());
    }
    match document(output) {
        Some(said) if said["decision"] == "block" => Then::Blocked(text(said.get("reason"))),
        _ => Then::Runs,
    }
}

/// What `docs/hook-protocol.md` asks of a caller, who may as well look at the exit code alone.
fn generic(output: &HookOutput) -> Then {
    let said = document(output);
    let decision = said.as_ref().filter(|said| said["version"] == 1).and_then(|said| said["decision"].as_str());
    match (output.code, decision) {
        (0, Some("allow")) => match said.as_ref().and_then(|said| said.get("input")) {
            Some(input) => Then::RunsWith(input.clone()),
            None => Then::Runs,
        },
        (3, Some("ask")) => Then::Asks,
        (2, Some("deny") | None) => Then::Blocked(output.stderr.clone()),
        _ => Then::Unclear("an exit code that contradicts the decision"),
    }
}
