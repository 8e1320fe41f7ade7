//! What a model is told about a tool.

use serde::Serialize;
use serde_json::{Value, json};

/// Whether a call can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Idempotency {
    /// A second call changes nothing.
    Safe,
    /// A second call does it again.
    Unsafe,
    /// It depends on the input.
    Unknown,
}

/// A tool's name, purpose and parameters.
///
/// ```
/// use callgate_tools::ToolSpec;
/// use serde_json::json;
///
/// let spec = ToolSpec::new("add", "Add two numbers", json!({
///     "type": "object",
///     "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
///     "required": ["a", "b"],
///     "additionalProperties": false,
/// }));
/// assert_eq!(spec.openai()["function"]["name"], "add");
/// assert_eq!(spec.anthropic()["input_schema"]["required"], json!(["a", "b"]));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its input.
    pub parameters: Value,
    /// Whether its author thinks that it should be approved. The policy decides, not this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
    /// Whether a call can be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
}

impl ToolSpec {
    /// A specification without claims about approval and repetition.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters,
            requires_approval: None,
            idempotency: None,
        }
    }

    /// The same specification with its author's claims.
    #[must_use]
    pub fn claims(mut self, requires_approval: bool, idempotency: Idempotency) -> Self {
        self.requires_approval = Some(requires_approval);
        self.idempotency = Some(idempotency);
        self
    }

    /// As an OpenAI function tool.
    pub fn openai(&self) -> Value {
        json!({
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        })
    }

    /// As an Anthropic tool.
    pub fn anthropic(&self) -> Value {
        json!({"name": self.name, "description": self.description, "input_schema": self.parameters})
    }
}

/// The schema of an object with these properties and no others.
pub(crate) fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
