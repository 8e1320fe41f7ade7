//! Where the log lies and how it is kept.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callgate::policy::{AuditSettings, Policy, SyncMode, expand_home};

use crate::deliver::{Delivery, ToCommand, ToFile, ToWebhook};
use crate::error::AuditError;

/// How long a program or a webhook may take for one checkpoint.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the log lies and how it is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The log's directory, mode 0700.
    pub directory: PathBuf,
    /// The file of the key, mode 0600; made on first use.
    pub key: PathBuf,
    /// When entries are forced onto the disk.
    pub sync: SyncMode,
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
    pub(crate) boot: Option<Arc<str>>,
}

impl Settings {
    /// A log in this directory, its key beside it.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let key = directory.with_extension("key");
        Settings {
            directory,
            key,
            sync: SyncMode::default(),
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
        AuditSettings::default_directory().map(Settings::at).ok_or(AuditError::NoPlace)
    }

    /// The log as a policy says (its `audit:` section); where it says nothing, the user's log as usual.
    ///
    /// ```
    /// use callgate::policy::Policy;
    /// use callgate_audit::{Settings, SyncMode};
    ///
    /// let policy = Policy::from_yaml("extends: standard\naudit: {directory: /var/log/callgate, sync: os}", "inline")?;
    /// let settings = Settings::of_policy(&policy, None)?;
    /// assert_eq!((settings.sync, settings.directory.to_str()), (SyncMode::Os, Some("/var/log/callgate")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_policy(policy: &Policy, home: Option<&Path>) -> Result<Self, AuditError> {
        let said = policy.audit_settings();
        let place = |text: &String| expand_home(text, home).ok_or(AuditError::NoPlace);
        let mut settings = match &said.directory {
            Some(directory) => Settings::at(place(directory)?),
            None => Settings::of_user()?,
        };
        if let Some(key) = &said.key {
            settings.key = place(key)?;
        }
        settings.sync = said.sync.unwrap_or(settings.sync);
        settings.segment_bytes = said.segment_bytes.unwrap_or(settings.segment_bytes);
        settings.segment_age = said.segment_age.unwrap_or(settings.segment_age);
        settings.checkpoint_entries = said.checkpoint_entries.unwrap_or(settings.checkpoint_entries);
        settings.checkpoint_age = said.checkpoint_age.unwrap_or(settings.checkpoint_age);
        settings.compress = said.compress.unwrap_or(settings.compress);
        for file in &said.checkpoint_files {
            settings = settings.deliver_to(ToFile(place(file)?));
        }
        if !said.checkpoint_command.is_empty() {
            let words = said.checkpoint_command.clone();
            settings = settings.deliver_to(ToCommand { words, timeout: DELIVERY_TIMEOUT });
        }
        for url in &said.checkpoint_webhooks {
            settings = settings.deliver_to(ToWebhook { url: url.clone(), timeout: DELIVERY_TIMEOUT });
        }
        Ok(settings)
    }

    /// With this sync.
    #[must_use]
    pub fn sync(mut self, sync: SyncMode) -> Self {
        self.sync = sync;
        self
    }

    /// Sends checkpoints there too.
    #[must_use]
    pub fn deliver_to(mut self, delivery: impl Delivery + 'static) -> Self {
        self.deliveries.push(Arc::new(delivery));
        self
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.directory.join("lock")
    }

    pub(crate) fn boot(&self) -> Option<Arc<str>> {
        self.boot.clone().or_else(|| {
            let mut text = [0_u8; 64];
            let length =
                File::open("/proc/sys/kernel/random/boot_id").and_then(|mut file| file.read(&mut text)).ok()?;
            let id = std::str::from_utf8(text.get(..length)?).ok()?.trim();
            (!id.is_empty()).then(|| id.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_says_where_and_how() {
        let text = "audit: {directory: ~/log, key: /k/audit.key, sync: interval 1s, segment_bytes: 70000, segment_age: 1h, \
                    checkpoint_entries: 5, checkpoint_age: 9s, compress: false, checkpoints: {file: ~/sent, command: [true], \
                    webhook: 'http://127.0.0.1:1/x'}}";
        let policy = Policy::from_yaml(text, "test").unwrap();
        let settings = Settings::of_policy(&policy, Some(Path::new("/home/ada"))).unwrap();
        assert_eq!(settings.directory, Path::new("/home/ada/log"));
        assert_eq!(settings.key, Path::new("/k/audit.key"));
        assert_eq!(settings.sync, SyncMode::Interval(Duration::from_secs(1)));
        assert_eq!((settings.segment_bytes, settings.segment_age.as_secs()), (70_000, 3600));
        assert_eq!((settings.checkpoint_entries, settings.checkpoint_age.as_secs(), settings.compress), (5, 9, false));
        let names: Vec<String> = settings.deliveries.iter().map(|delivery| delivery.name()).collect();
        assert_eq!(names, ["file /home/ada/sent", "command true", "webhook 127.0.0.1:1"]);
        assert!(matches!(Settings::of_policy(&policy, None), Err(AuditError::NoPlace)), "a home that is not known");
        let plain = Settings::of_policy(&Policy::bundled("standard").unwrap(), None).unwrap();
        assert_eq!((plain.sync, plain.deliveries.len()), (SyncMode::Always, 0));
    }
}
