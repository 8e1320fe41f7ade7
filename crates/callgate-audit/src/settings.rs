//! Where the log lies and how it is kept.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::deliver::Delivery;
use crate::error::AuditError;

/// When what was written is forced onto the disk.
///
/// In every case an entry has been handed to the operating system before `append` returns, so that it outlives the
/// process. The difference is what a power failure may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Before every `append` returns; what waits at the same time shares one sync. The default.
    #[default]
    Always,
    /// At most this long after it was written.
    Interval(Duration),
    /// When the operating system sees fit.
    Os,
}

/// A text that names no [`Sync`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of `always`, `interval`, `interval 500ms`, `os`")]
pub struct NoSync(String);

impl FromStr for Sync {
    type Err = NoSync;

    fn from_str(text: &str) -> Result<Self, NoSync> {
        let wrong = || NoSync(text.to_owned());
        match text.trim() {
            "always" => Ok(Sync::Always),
            "interval" => Ok(Sync::Interval(Duration::from_millis(200))),
            "os" => Ok(Sync::Os),
            other => {
                let length = other.strip_prefix("interval").ok_or_else(wrong)?.trim();
                humantime::parse_duration(length).map(Sync::Interval).map_err(|_| wrong())
            }
        }
    }
}

/// Where the log lies and how it is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The log's directory, mode 0700.
    pub directory: PathBuf,
    /// The file of the key, mode 0600; made on first use.
    pub key: PathBuf,
    /// When entries are forced onto the disk.
    pub sync: Sync,
    /// A segment of this size is closed and the next one begun.
    pub segment_bytes: u64,
    /// So is one of this age.
    pub segment_age: Duration,
    /// A signed checkpoint follows at the latest after this many entries.
    pub checkpoint_entries: u64,
    /// And with the first entry after this time.
    pub checkpoint_age: Duration,
    /// Whether closed segments are compressed.
    pub compress: bool,
    /// Where else checkpoints are sent.
    pub deliveries: Vec<Arc<dyn Delivery>>,
    /// What tells one start of the machine from another; only tests say it themselves.
    pub(crate) boot: Option<String>,
}

impl Settings {
    /// A log in this directory, its key beside it.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let key = directory.with_extension("key");
        Settings {
            directory,
            key,
            sync: Sync::default(),
            segment_bytes: 64 * 1024 * 1024,
            segment_age: Duration::from_secs(7 * 24 * 60 * 60),
            checkpoint_entries: 1_000,
            checkpoint_age: Duration::from_secs(60),
            compress: true,
            deliveries: Vec::new(),
            boot: None,
        }
    }

    /// The user's log: `$XDG_STATE_HOME/callgate/audit`, or `~/.local/state/callgate/audit`.
    pub fn of_user() -> Result<Self, AuditError> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .ok_or(AuditError::NoPlace)?;
        Ok(Settings::at(state.join("callgate/audit")))
    }

    /// With this sync.
    #[must_use]
    pub fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// Sends checkpoints there too.
    #[must_use]
    pub fn deliver_to(mut self, delivery: impl Delivery + 'static) -> Self {
        self.deliveries.push(Arc::new(delivery));
        self
    }

    /// Whether the log or its key would lie at or below one of these directories: where an agent may write, a log proves
    /// nothing. Both sides are compared by component after links were followed.
    pub fn lies_within<'a>(&self, roots: impl IntoIterator<Item = &'a Path>) -> Option<PathBuf> {
        let real = |path: &Path| -> PathBuf {
            path.ancestors()
                .find_map(|ancestor| {
                    let real = ancestor.canonicalize().ok()?;
                    Some(real.join(path.strip_prefix(ancestor).ok()?))
                })
                .unwrap_or_else(|| path.to_owned())
        };
        let ours = [real(&self.directory), real(&self.key)];
        roots.into_iter().map(real).find(|root| ours.iter().any(|path| path.starts_with(root)))
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.directory.join("lock")
    }

    pub(crate) fn boot(&self) -> Option<String> {
        self.boot.clone().or_else(|| {
            let mut text = [0_u8; 64];
            let length =
                File::open("/proc/sys/kernel/random/boot_id").and_then(|mut file| file.read(&mut text)).ok()?;
            let id = std::str::from_utf8(text.get(..length)?).ok()?.trim();
            (!id.is_empty()).then(|| id.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_is_read_from_words() {
        assert_eq!("always".parse(), Ok(Sync::Always));
        assert_eq!("os".parse(), Ok(Sync::Os));
        assert_eq!("interval".parse(), Ok(Sync::Interval(Duration::from_millis(200))));
        assert_eq!("interval 2s".parse(), Ok(Sync::Interval(Duration::from_secs(2))));
        for wrong in ["", "never", "interval soon", "2s"] {
            assert!(wrong.parse::<Sync>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_log_inside_a_root_is_noticed_through_links_and_missing_directories() {
        let base = tempfile::tempdir().unwrap();
        let workspace = base.path().join("project");
        std::fs::create_dir(&workspace).unwrap();
        std::os::unix::fs::symlink(&workspace, base.path().join("link")).unwrap();
        let within = |directory: &str| Settings::at(base.path().join(directory)).lies_within([workspace.as_path()]);
        assert!(within("project/audit").is_some());
        assert!(within("link/not/there/yet").is_some());
        assert!(within("project_evil/audit").is_none());
        assert!(within("state/audit").is_none());
    }
}
