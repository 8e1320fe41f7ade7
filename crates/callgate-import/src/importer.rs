//! The agents whose rules can be imported, and where they keep them.

use std::path::PathBuf;

use callgate_install::HostEnvironment;
use callgate_install::Location::{self, Agent, Configuration, Home, Machine, Project};

use crate::settings_file::SettingsLayer;

/// An agent whose rules can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importer {
    /// Claude Code: `permissions` in its settings.
    Claude,
    /// Codex CLI: `*.rules` and `config.toml`.
    Codex,
    /// Gemini CLI: the TOML files of its policy engine, and `tools` in its settings.
    Gemini,
    /// OpenCode: `permission` in its configuration.
    OpenCode,
}

impl Importer {
    /// The name on the command line and in the names of rules.
    pub fn name(self) -> &'static str {
        match self {
            Importer::Claude => "claude",
            Importer::Codex => "codex",
            Importer::Gemini => "gemini",
            Importer::OpenCode => "opencode",
        }
    }

    /// The product name.
    pub fn title(self) -> &'static str {
        match self {
            Importer::Claude => "Claude Code",
            Importer::Codex => "Codex",
            Importer::Gemini => "Gemini CLI",
            Importer::OpenCode => "OpenCode",
        }
    }
}

/// A file or a directory in which an agent keeps rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsLocation {
    /// The file, or the directory of files.
    pub path: PathBuf,
    /// For a directory: the extension of its files.
    pub extension: Option<&'static str>,
    /// The owner.
    pub layer: SettingsLayer,
}

/// Locations of files and, with an extension, of directories.
type Locations = &'static [(Location, Option<&'static str>, SettingsLayer)];

const CLAUDE: Locations = &[
    (Machine("etc/claude-code/managed-settings.json"), None, SettingsLayer::Managed),
    (Machine("etc/claude-code/managed-settings.d"), Some("json"), SettingsLayer::Managed),
    (Machine("Library/Application Support/ClaudeCode/managed-settings.json"), None, SettingsLayer::Managed),
    (Machine("Library/Application Support/ClaudeCode/managed-settings.d"), Some("json"), SettingsLayer::Managed),
    (Agent("CLAUDE_CONFIG_DIR", ".claude", "settings.json"), None, SettingsLayer::User),
    (Project(".claude/settings.json"), None, SettingsLayer::Project),
    (Project(".claude/settings.local.json"), None, SettingsLayer::Local),
];
const CODEX: Locations = &[
    (Machine("etc/codex/config.toml"), None, SettingsLayer::Managed),
    (Machine("etc/codex/rules"), Some("rules"), SettingsLayer::Managed),
    (Agent("CODEX_HOME", ".codex", "config.toml"), None, SettingsLayer::User),
    (Agent("CODEX_HOME", ".codex", "rules"), Some("rules"), SettingsLayer::User),
    (Project(".codex/config.toml"), None, SettingsLayer::Project),
    (Project(".codex/rules"), Some("rules"), SettingsLayer::Project),
];
const GEMINI: Locations = &[
    (Machine("etc/gemini-cli/settings.json"), None, SettingsLayer::Managed),
    (Machine("etc/gemini-cli/policies"), Some("toml"), SettingsLayer::Managed),
    (Home(".gemini/settings.json"), None, SettingsLayer::User),
    (Home(".gemini/policies"), Some("toml"), SettingsLayer::User),
    (Project(".gemini/settings.json"), None, SettingsLayer::Project),
    (Project(".gemini/policies"), Some("toml"), SettingsLayer::Project),
];
const OPENCODE: Locations = &[
    (Configuration("opencode/opencode.json"), None, SettingsLayer::User),
    (Configuration("opencode/opencode.jsonc"), None, SettingsLayer::User),
    (Project("opencode.json"), None, SettingsLayer::Project),
    (Project("opencode.jsonc"), None, SettingsLayer::Project),
    (Project(".opencode/opencode.json"), None, SettingsLayer::Project),
    (Project(".opencode/opencode.jsonc"), None, SettingsLayer::Project),
];

/// The locations of an agent's rules, whether they exist or not.
pub fn settings_locations(importer: Importer, environment: &HostEnvironment) -> Vec<SettingsLocation> {
    let locations = match importer {
        Importer::Claude => CLAUDE,
        Importer::Codex => CODEX,
        Importer::Gemini => GEMINI,
        Importer::OpenCode => OPENCODE,
    };
    locations
        .iter()
        .map(|(location, extension, layer)| SettingsLocation {
            path: environment.path(*location),
            extension: *extension,
            layer: *layer,
        })
        .collect()
}
