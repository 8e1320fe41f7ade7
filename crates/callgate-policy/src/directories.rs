//! Where callgate keeps its own files: the user's directories, never one of the workspace.
//!
//! A variable that is not absolute is not used: it would mean another place from every directory.

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

/// What the user wrote: `$XDG_CONFIG_HOME/callgate`, or below `~/.config`.
pub fn configuration() -> Option<PathBuf> {
    from_environment("XDG_CONFIG_HOME", ".config")
}

/// What must not be lost: `$XDG_DATA_HOME/callgate`, or below `~/.local/share`.
pub fn data() -> Option<PathBuf> {
    from_environment("XDG_DATA_HOME", ".local/share")
}

/// What is remembered from run to run: `$XDG_STATE_HOME/callgate`, or below `~/.local/state`.
pub fn state() -> Option<PathBuf> {
    from_environment("XDG_STATE_HOME", ".local/state")
}

/// What can be made again: `$XDG_CACHE_HOME/callgate`, or below `~/.cache`.
pub fn cache() -> Option<PathBuf> {
    from_environment("XDG_CACHE_HOME", ".cache")
}
