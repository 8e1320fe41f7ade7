//! Claims about a tool.

use serde::{Deserialize, Serialize};

/// Claims about a tool by its registrant. Trusted only if the policy says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// `read_only`, `destructive`, `network`, `file_system`, `slow`, `privileged`, or free ones.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The hints of an MCP server about its tool. The registrant turns them into tags.
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
    /// The tool interacts with external systems.
    #[serde(default)]
    pub open_world_hint: Option<bool>,
}
