//! Where agents keep their rules.

use std::path::{Path, PathBuf};

use super::{Around, Importer, Layer};

/// A file or a directory in which an agent keeps rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or the directory of files.
    pub path: PathBuf,
    /// For a directory: what its files end with.
    pub files: Option<&'static str>,
    /// Whose it is.
    pub layer: Layer,
}

/// Where an agent keeps rules on this machine, whether they are there or not. `variable` looks up the environment.
pub fn places(importer: Importer, around: &Around, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Place> {
    let file = |path: PathBuf, layer| Place { path, files: None, layer };
    let directory = |path: PathBuf, ending, layer| Place { path, files: Some(ending), layer };
    let own = |name: &str, default: &str| {
        variable(name).filter(|path| path.is_absolute()).unwrap_or_else(|| around.home.join(default))
    };
    let project = &around.project;
    match importer {
        Importer::Claude => {
            let user = own("CLAUDE_CONFIG_DIR", ".claude");
            let mut places = Vec::new();
            for managed in ["/etc/claude-code", "/Library/Application Support/ClaudeCode"].map(Path::new) {
                places.push(file(managed.join("managed-settings.json"), Layer::Managed));
                places.push(directory(managed.join("managed-settings.d"), "json", Layer::Managed));
            }
            places.push(file(user.join("settings.json"), Layer::User));
            places.push(file(project.join(".claude/settings.json"), Layer::Project));
            places.push(file(project.join(".claude/settings.local.json"), Layer::Local));
            places
        }
        Importer::Codex => {
            let user = own("CODEX_HOME", ".codex");
            vec![
                file("/etc/codex/config.toml".into(), Layer::Managed),
                directory("/etc/codex/rules".into(), "rules", Layer::Managed),
                file(user.join("config.toml"), Layer::User),
                directory(user.join("rules"), "rules", Layer::User),
                file(project.join(".codex/config.toml"), Layer::Project),
                directory(project.join(".codex/rules"), "rules", Layer::Project),
            ]
        }
        Importer::Gemini => {
            let user = around.home.join(".gemini");
            vec![
                file("/etc/gemini-cli/settings.json".into(), Layer::Managed),
                directory("/etc/gemini-cli/policies".into(), "toml", Layer::Managed),
                file(user.join("settings.json"), Layer::User),
                directory(user.join("policies"), "toml", Layer::User),
                file(project.join(".gemini/settings.json"), Layer::Project),
                directory(project.join(".gemini/policies"), "toml", Layer::Project),
            ]
        }
        Importer::OpenCode => {
            let user = own("XDG_CONFIG_HOME", ".config").join("opencode");
            let mut places = Vec::new();
            for (directory, layer) in
                [(&user, Layer::User), (project, Layer::Project), (&project.join(".opencode"), Layer::Project)]
            {
                places.push(file(directory.join("opencode.json"), layer));
                places.push(file(directory.join("opencode.jsonc"), layer));
            }
            places
        }
    }
}
