//! Reading an agent's hook payload never panics, and whatever it is, the agent gets an answer.
//!
//! The first byte chooses the agent, the rest is what it sends.
#![no_main]

use callgate_hooks::{HookAnswer, HookInput, acp, permission_prompt};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, payload)) = data.split_first() else { return };
    let agents = callgate_hooks::all();
    let agent = agents[usize::from(*first) % agents.len()];
    let environment = |variable: &str| (variable == "AGENT_TOOL_NAME").then(|| "Bash".to_owned());
    let output = match agent.read(&HookInput { environment: &environment, ..HookInput::of(payload) }) {
        Ok(incoming) => agent.refuse(Some(incoming.event), "no"),
        Err(error) => agent.refuse(None, &error.to_string()),
    };
    let one_document = serde_json::from_str::<serde_json::Value>(&output.stdout).is_ok();
    assert!(one_document || (output.code == 2 && !output.stderr.trim().is_empty()) || output.stdout.is_empty());
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(payload) {
        if let Ok(request) = acp::read(value.clone()) {
            assert!(acp::outcome(&request, &HookAnswer::deny("no")).is_some());
        }
        if let Ok(prompt) = permission_prompt::read(value) {
            let said = permission_prompt::result(&prompt, &HookAnswer::ask("?"));
            assert!(said["content"][0]["text"].as_str().is_some_and(|text| text.starts_with(r#"{"behavior":"deny""#)));
        }
    }
});
