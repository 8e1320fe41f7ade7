//! The directories of callgate's own files, which belong to the user and are never in the workspace.
//!
//! A variable with a relative path is ignored.

use std::path::PathBuf;

fn from_environment(variable: &str, below_home: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home()?.join(below_home)))
        .map(|directory| directory.join("callgate"))
}

/// The user's home directory.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// Configuration: `$XDG_CONFIG_HOME/callgate`, or below `~/.config`.
pub fn configuration() -> Option<PathBuf> {
    from_environment("XDG_CONFIG_HOME", ".config")
}

/// Data: `$XDG_DATA_HOME/callgate`, or below `~/.local/share`.
pub fn data() -> Option<PathBuf> {
    from_environment("XDG_DATA_HOME", ".local/share")
}

/// State: `$XDG_STATE_HOME/callgate`, or below `~/.local/state`.
pub fn state() -> Option<PathBuf> {
    from_environment("XDG_STATE_HOME", ".local/state")
}

/// Cache: `$XDG_CACHE_HOME/callgate`, or below `~/.cache`.
pub fn cache() -> Option<PathBuf> {
    from_environment("XDG_CACHE_HOME", ".cache")
}
