//! Claude Code's `--permission-prompt-tool`: an MCP tool that is asked instead of the user.
//!
//! The tool's result must be one text block that holds JSON, without structured content; Claude Code ignores anything else.
//!
//! ```
//! use callgate_hooks::{HookAnswer, permission_prompt};
//! use serde_json::json;
//!
//! let arguments = json!({"tool_name": "Bash", "input": {"command": "make"}, "tool_use_id": "toolu_1"});
//! let prompt = permission_prompt::read(arguments)?;
//! assert_eq!(prompt.call.tool.name, "Bash");
//! let result = permission_prompt::result(&prompt, &HookAnswer::deny("not now"));
//! assert_eq!(result["content"][0]["text"], r#"{"behavior":"deny","message":"not now"}"#);
//! # Ok::<(), callgate_hooks::PayloadError>(())
//! ```

use callgate::call::{Call, Origin, Tool};
use callgate::json;
use serde_json::{Value, json};

use crate::answer::plain;
use crate::fields::Fields;
use crate::{HookAnswer, PayloadError};

/// A permission prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionPrompt {
    /// The call. Its session and directory are unknown.
    pub call: Call,
    /// The agent's id of the call.
    pub call_id: Option<String>,
}

/// Reads the arguments of the tool call.
pub fn read(arguments: Value) -> Result<PermissionPrompt, PayloadError> {
    json::measure(&arguments)?;
    let mut fields = Fields::of(arguments)?;
    let tool = Tool::parse(&fields.text("tool_name")?);
    let input = fields.object("input")?.into_value();
    let origin = Origin { agent: Some("claude".to_owned()), ..Origin::default() };
    let call_id = fields.optional_text("tool_use_id")?.filter(|id| !id.is_empty());
    Ok(PermissionPrompt { call: Call::new(tool, input).origin(origin), call_id })
}

/// The result of the tool call. Nobody else can be asked here, so everything but an allow is a deny.
pub fn result(prompt: &PermissionPrompt, answer: &HookAnswer) -> Value {
    let answer = match answer {
        HookAnswer::Allow { rewritten, .. } => {
            // The input is mandatory even if it is unchanged.
            let input = rewritten.as_ref().unwrap_or(&prompt.call.input);
            json!({ "behavior": "allow", "updatedInput": input })
        }
        HookAnswer::Deny { reason } | HookAnswer::Ask { reason } => {
            json!({ "behavior": "deny", "message": plain(reason) })
        }
    };
    text_result(&answer)
}

/// The result for arguments that cannot be read.
pub fn refusal(error: &PayloadError) -> Value {
    text_result(&json!({ "behavior": "deny", "message": plain(&error.to_string()) }))
}

fn text_result(answer: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": answer.to_string() }], "isError": false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt() -> PermissionPrompt {
        let input = json!({ "command": "make all" });
        read(json!({ "tool_name": "Bash", "input": input, "tool_use_id": "toolu_1" })).expect("a whole prompt")
    }

    fn text(result: &Value) -> Value {
        assert!(result.get("structuredContent").is_none());
        let blocks = result["content"].as_array().expect("blocks");
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0]["type"], "text");
        serde_json::from_str(blocks[0]["text"].as_str().expect("text")).expect("JSON")
    }

    #[test]
    fn an_answer_is_one_text_block() {
        let input = json!({ "command": "make all" });
        let changed = json!({ "command": "callgate run -- make all" });
        let cases = [
            (HookAnswer::allow(), json!({ "behavior": "allow", "updatedInput": input })),
            (HookAnswer::rewrite(changed.clone()), json!({ "behavior": "allow", "updatedInput": changed })),
            (HookAnswer::deny("no"), json!({ "behavior": "deny", "message": "no" })),
            (HookAnswer::ask("sure?"), json!({ "behavior": "deny", "message": "sure?" })),
        ];
        for (answer, expected) in cases {
            assert_eq!(text(&result(&prompt(), &answer)), expected);
        }
    }

    #[test]
    fn a_prompt_that_is_not_understood_is_denied() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let cases = [
            json!(null),
            json!([]),
            json!({ "input": {} }),
            json!({ "tool_name": "", "input": {} }),
            json!({ "tool_name": 1, "input": {} }),
            json!({ "tool_name": "Bash" }),
            json!({ "tool_name": "Bash", "input": "ls" }),
            json!({ "tool_name": "Bash", "input": {}, "tool_use_id": 7 }),
            json!({ "tool_name": "Bash", "input": { "x": deep } }),
        ];
        for arguments in cases {
            let error = read(arguments.clone()).expect_err("refused");
            assert_eq!(text(&refusal(&error))["behavior"], "deny", "{arguments}");
        }
    }

    #[test]
    fn a_servers_tool_is_known_as_one() {
        let prompt = read(json!({ "tool_name": "mcp__fs__write_file", "input": {} })).expect("a whole prompt");
        assert_eq!(prompt.call.tool, Tool::of_server("fs", "write_file"));
        assert_eq!(prompt.call_id, None);
    }
}
