//! What the registrant of a tool claims about it.

use serde::{Deserialize, Serialize};

/// What whoever registered a tool claims of it. Trusted only where the policy says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// `read_only`, `destructive`, `network`, `file_system`, `slow`, `privileged`, or free ones.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What an MCP server says of its own tool. Whoever registers the tool turns them into tags.
    #[serde(default)]
    pub annotations: Annotations,
}

/// The hints of an MCP tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The tool changes nothing.
    #[serde(default)]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something.
    #[serde(default)]
    pub destructive_hint: Option<bool>,
    /// Calling it again changes nothing more.
    #[serde(default)]
    pub idempotent_hint: Option<bool>,
    /// The tool deals with the world outside.
    #[serde(default)]
    pub open_world_hint: Option<bool>,
}
