//! Records of hook calls: whether an agent calls callgate, and when it last did.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::environment::HostEnvironment;
use crate::file::{self, FileError, FileOwner};

/// The session of the calls that test an installation. It is not recorded, because it is not the agent's.
pub const CANARY_SESSION: &str = "callgate-install-canary";

/// The shortest time between two records of the same session.
const REPEAT: Duration = Duration::from_secs(60);

/// A record that an agent called its hook.
///
/// ```no_run
/// use callgate_install::{Sighting, HostEnvironment};
///
/// let environment = HostEnvironment::of_process().expect("a home");
/// // Cheap enough for every call: writes only if there is something new to record.
/// Sighting::record(&environment, "claude", "session-1")?;
/// assert_eq!(Sighting::last(&environment, "claude").expect("recorded").session, "session-1");
/// # Ok::<(), callgate_install::FileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The time, in seconds since 1970.
    pub time: u64,
    /// The version of callgate.
    pub version: String,
    /// The agent's session.
    pub session: String,
    /// The number of sessions so far.
    pub count: u64,
}

impl Sighting {
    fn path(environment: &HostEnvironment, agent: &str) -> PathBuf {
        environment.own_state().join("receipts").join(format!("{agent}.json"))
    }

    /// The last record of an agent; `None` if there is none or it cannot be trusted.
    pub fn last(environment: &HostEnvironment, agent: &str) -> Option<Self> {
        let found = file::read(&Self::path(environment, agent), FileOwner::User, &environment.home).ok()?;
        serde_json::from_str(&found.text?).ok()
    }

    /// Records that an agent called its hook.
    pub fn record(environment: &HostEnvironment, agent: &str, session: &str) -> Result<(), FileError> {
        Self::record_at(environment, agent, session, seconds(SystemTime::now()))
    }

    fn record_at(environment: &HostEnvironment, agent: &str, session: &str, time: u64) -> Result<(), FileError> {
        if session == CANARY_SESSION {
            return Ok(());
        }
        let path = Self::path(environment, agent);
        let found = file::read(&path, FileOwner::User, &environment.home)?;
        let last: Option<Sighting> = found.text.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let mut count = 1;
        if let Some(last) = last {
            let same = last.session == session;
            if same && last.version == VERSION && time.abs_diff(last.time) < REPEAT.as_secs() {
                return Ok(());
            }
            count = last.count.saturating_add(if same { 0 } else { 1 });
        }
        let sighting = Sighting { time, version: VERSION.to_owned(), session: session.to_owned(), count };
        let text = serde_json::to_string(&sighting).unwrap_or_default();
        match file::write_trace(&path, &text, &found) {
            // Another hook of the same agent recorded it at the same moment.
            Err(FileError::Changed(_)) => Ok(()),
            other => other,
        }
    }
}

/// callgate's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

/// The time of the last change below these directories, in seconds since 1970. Looks at a limited number of files.
pub(crate) fn last_change(directories: Vec<PathBuf>) -> Option<u64> {
    const MOST_NAMES: usize = 20_000;
    const DEEPEST: usize = 6;
    let mut newest = None;
    let mut names = 0_usize;
    let mut waiting: Vec<(PathBuf, usize)> = directories.into_iter().map(|path| (path, 0)).collect();
    while let Some((directory, depth)) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            newest = newest.max(changed(&directory));
            continue;
        };
        for entry in entries.flatten() {
            names = names.saturating_add(1);
            if names > MOST_NAMES {
                return newest;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEEPEST {
                waiting.push((entry.path(), depth.saturating_add(1)));
            } else if kind.is_file() {
                newest = newest.max(changed(&entry.path()));
            }
        }
    }
    newest
}

fn changed(path: &Path) -> Option<u64> {
    let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    metadata.modified().ok().map(seconds)
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_counted_and_repetition_costs_no_write() {
        let home = tempfile::tempdir().expect("a directory");
        let environment = HostEnvironment::of_home(&home.path().canonicalize().expect("a path"));
        let note = |session: &str, time| {
            Sighting::record_at(&environment, "claude", session, time).expect("noted");
            Sighting::last(&environment, "claude").map(|it| (it.session, it.time, it.count))
        };
        assert_eq!(Sighting::last(&environment, "claude"), None);
        assert_eq!(note(CANARY_SESSION, 1), None);
        assert_eq!(note("a", 100), Some(("a".into(), 100, 1)));
        assert_eq!(note("a", 130), Some(("a".into(), 100, 1)));
        assert_eq!(note("a", 200), Some(("a".into(), 200, 1)));
        assert_eq!(note("b", 201), Some(("b".into(), 201, 2)));
        assert_eq!(Sighting::last(&environment, "codex"), None);
        std::fs::write(Sighting::path(&environment, "claude"), "junk").expect("written");
        assert_eq!(note("b", 202), Some(("b".into(), 202, 1)));
    }
}
