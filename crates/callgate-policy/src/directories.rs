//! The directories of callgate's own files, which belong to the user and are never in the workspace.
//!
//! A variable with a relative path is ignored.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The variables that decide where callgate's own files are, if they do not come from this process's environment.
static FIXED: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// The variables of this process that decide where callgate's own files and the temporary directories are.
pub fn deciding_variables() -> BTreeMap<OsString, OsString> {
    let decides =
        |name: &str| matches!(name, "HOME" | "TMPDIR") || ["XDG_", "CALLGATE_"].iter().any(|of| name.starts_with(of));
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(decides)).collect()
}

/// From now on, these variables are used in place of the process's own environment. Only the first call counts; returns whether this
/// was it.
pub fn fix_variables(variables: BTreeMap<OsString, OsString>) -> bool {
    FIXED.set(variables).is_ok()
}

/// A variable that decides about callgate itself: what was fixed, or else the environment of this process.
pub fn variable(name: &str) -> Option<OsString> {
    match FIXED.get() {
        Some(fixed) => fixed.get(std::ffi::OsStr::new(name)).cloned(),
        None => std::env::var_os(name),
    }
}

fn from_environment(variable: &str, below_home: &str) -> Option<PathBuf> {
    self::variable(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home()?.join(below_home)))
        .map(|directory| directory.join("callgate"))
}

/// The user's home directory.
pub fn home() -> Option<PathBuf> {
    match FIXED.get() {
        Some(_) => variable("HOME").map(PathBuf::from).filter(|home| !home.as_os_str().is_empty()),
        None => std::env::home_dir(),
    }
}

/// The directory for temporary files.
pub fn temporary() -> PathBuf {
    match FIXED.get() {
        Some(_) => variable("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from),
        None => std::env::temp_dir(),
    }
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

/// One-time permits of this user. The place follows from the user's number and what the machine says about it, never from variables, so
/// that who runs a command cannot lead it elsewhere: the user's runtime directory, else below the home directory that `/etc/passwd`
/// names. `None` if neither belongs to the user.
pub fn permits(user: u32) -> Option<PathBuf> {
    let runtime = PathBuf::from(format!("/run/user/{user}"));
    if belongs_to(&runtime, user) {
        return Some(runtime.join("callgate/permits"));
    }
    let home = home_of(user).filter(|home| belongs_to(home, user))?;
    Some(home.join(".local/state/callgate/permits"))
}

#[cfg(unix)]
fn belongs_to(path: &std::path::Path, user: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).is_ok_and(|data| data.is_dir() && data.uid() == user)
}

#[cfg(not(unix))]
fn belongs_to(_: &std::path::Path, _: u32) -> bool {
    false
}

/// The home directory that the machine's list of users names.
fn home_of(user: u32) -> Option<PathBuf> {
    let list = std::fs::read("/etc/passwd").ok()?;
    let lines = list.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut homes = lines.filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let is_user = fields.next()?.parse() == Ok(user);
        fields.nth(2).filter(|_| is_user).map(PathBuf::from)
    });
    homes.next().filter(|home| home.is_absolute())
}
