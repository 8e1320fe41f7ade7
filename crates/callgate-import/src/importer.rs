//! The agents whose rules can be imported, and where they keep them.

use std::path::PathBuf;

use callgate_install::HostEnvironment;

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
    /// The agent of this name.
    pub fn find(name: &str) -> Option<Self> {
        [Importer::Claude, Importer::Codex, Importer::Gemini, Importer::OpenCode]
            .into_iter()
            .find(|importer| importer.name() == name)
    }

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
type Locations = &'static [(&'static str, Option<&'static str>, SettingsLayer)];

const CLAUDE: Locations = &[
    ("machine:etc/claude-code/managed-settings.json", None, SettingsLayer::Managed),
    ("machine:etc/claude-code/managed-settings.d", Some("json"), SettingsLayer::Managed),
    ("machine:Library/Application Support/ClaudeCode/managed-settings.json", None, SettingsLayer::Managed),
    ("machine:Library/Application Support/ClaudeCode/managed-settings.d", Some("json"), SettingsLayer::Managed),
    ("CLAUDE_CONFIG_DIR=.claude:settings.json", None, SettingsLayer::User),
    ("project:.claude/settings.json", None, SettingsLayer::Project),
    ("project:.claude/settings.local.json", None, SettingsLayer::Local),
];
const CODEX: Locations = &[
    ("machine:etc/codex/config.toml", None, SettingsLayer::Managed),
    ("machine:etc/codex/rules", Some("rules"), SettingsLayer::Managed),
    ("CODEX_HOME=.codex:config.toml", None, SettingsLayer::User),
    ("CODEX_HOME=.codex:rules", Some("rules"), SettingsLayer::User),
    ("project:.codex/config.toml", None, SettingsLayer::Project),
    ("project:.codex/rules", Some("rules"), SettingsLayer::Project),
];
const GEMINI: Locations = &[
    ("machine:etc/gemini-cli/settings.json", None, SettingsLayer::Managed),
    ("machine:etc/gemini-cli/policies", Some("toml"), SettingsLayer::Managed),
    ("home:.gemini/settings.json", None, SettingsLayer::User),
    ("home:.gemini/policies", Some("toml"), SettingsLayer::User),
    ("project:.gemini/settings.json", None, SettingsLayer::Project),
    ("project:.gemini/policies", Some("toml"), SettingsLayer::Project),
];
const OPENCODE: Locations = &[
    ("config:opencode/opencode.json", None, SettingsLayer::User),
    ("config:opencode/opencode.jsonc", None, SettingsLayer::User),
    ("project:opencode.json", None, SettingsLayer::Project),
    ("project:opencode.jsonc", None, SettingsLayer::Project),
    ("project:.opencode/opencode.json", None, SettingsLayer::Project),
    ("project:.opencode/opencode.jsonc", None, SettingsLayer::Project),
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
            path: environment.path(location),
            extension: *extension,
            layer: *layer,
        })
        .collect()
}
