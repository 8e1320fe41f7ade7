//! The MCP servers in an agent's configuration, for agents whose tool names run server and tool together.
//!
//! Only the user's own configuration is read: a project could name a server like one that a rule trusts. If a file cannot be read,
//! such a tool belongs to no known server, and no rule for a server covers it.

use std::path::PathBuf;

use serde_json::Value;

/// The largest configuration that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// The names of an agent's servers.
pub fn of(agent: &str) -> Vec<String> {
    let Some((file, key)) = place(agent) else { return Vec::new() };
    if !std::fs::metadata(&file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST) {
        return Vec::new();
    }
    let text = std::fs::read(file).unwrap_or_default();
    let value: Value = serde_json::from_slice(&text).unwrap_or_default();
    let servers = value.get(key).and_then(Value::as_object);
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
}

fn place(agent: &str) -> Option<(PathBuf, &'static str)> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = |below: &str| std::env::home_dir().map(|home| home.join(below));
    match agent {
        "copilot" => {
            Some((absolute("COPILOT_HOME").or_else(|| home(".copilot"))?.join("mcp-config.json"), "mcpServers"))
        }
        "opencode" => {
            let configuration = absolute("XDG_CONFIG_HOME").or_else(|| home(".config"))?;
            Some((configuration.join("opencode/opencode.json"), "mcp"))
        }
        _ => None,
    }
}
