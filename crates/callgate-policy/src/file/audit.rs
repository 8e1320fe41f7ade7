//! The `audit:` section: where the audit log is and how it is kept.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::decode::Decoder;
use super::keys;
use crate::directories;

use super::mistake::{Mistake, Position};
use super::model::Spanned;
use super::yaml::Node;

/// When log entries are synced to disk.
///
/// In every mode, an entry is handed to the operating system before the write returns, so that it survives a crash of the
/// process. The modes differ in what a power failure can lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// Before the write returns; concurrent writes share one sync. The default.
    #[default]
    Always,
    /// At most this long after the write.
    Interval(Duration),
    /// When the operating system decides.
    Os,
}

/// A text that is not a [`SyncMode`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid sync mode {0:?}; expected `always`, `interval`, `interval 500ms` or `os`")]
pub struct ParseSyncModeError(String);

impl FromStr for SyncMode {
    type Err = ParseSyncModeError;

    fn from_str(text: &str) -> Result<Self, ParseSyncModeError> {
        let wrong = || ParseSyncModeError(text.to_owned());
        match text.trim() {
            "always" => Ok(SyncMode::Always),
            "interval" => Ok(SyncMode::Interval(Duration::from_millis(200))),
            "os" => Ok(SyncMode::Os),
            other => {
                let length = other.strip_prefix("interval").ok_or_else(wrong)?.trim();
                humantime::parse_duration(length).map(SyncMode::Interval).map_err(|_| wrong())
            }
        }
    }
}

/// The `audit:` settings of a policy. `None` means that the policy does not set the value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditSettings {
    /// The log's directory: absolute, or starting with `~/`.
    pub directory: Option<String>,
    /// The file of the key: absolute, or starting with `~/`.
    pub key: Option<String>,
    /// When entries are synced to disk.
    pub sync: Option<SyncMode>,
    /// The size at which a segment is closed.
    pub segment_bytes: Option<u64>,
    /// The age at which a segment is closed.
    pub segment_age: Option<Duration>,
    /// The number of entries after which a signed checkpoint is written.
    pub checkpoint_entries: Option<u64>,
    /// The time after which the next entry is followed by a checkpoint.
    pub checkpoint_age: Option<Duration>,
    /// Whether closed segments are compressed.
    pub compress: Option<bool>,
    /// Files that checkpoints are appended to.
    pub checkpoint_files: Vec<String>,
    /// A program and its arguments; it receives each checkpoint on standard input.
    pub checkpoint_command: Vec<String>,
    /// URLs that checkpoints are posted to.
    pub checkpoint_webhooks: Vec<String>,
}

/// The section with positions.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditText {
    /// The position of the section, if there is one.
    pub position: Option<Position>,
    pub directory: Option<Spanned<String>>,
    pub key: Option<Spanned<String>>,
    pub settings: AuditSettings,
}

/// The smallest segment. Smaller ones would spend more time on opening files than on writing entries.
const MINIMUM_SEGMENT: u64 = 64 * 1024;
const MINIMUM_AGE: Duration = Duration::from_secs(60);

impl AuditSettings {
    /// Combines two settings. Values of `self` win; checkpoints are sent to the destinations of both.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let join = |mut mine: Vec<String>, theirs: &[String]| {
            mine.extend(theirs.iter().filter(|theirs| !mine.contains(theirs)).cloned().collect::<Vec<_>>());
            mine
        };
        AuditSettings {
            directory: self.directory.or_else(|| other.directory.clone()),
            key: self.key.or_else(|| other.key.clone()),
            sync: self.sync.or(other.sync),
            segment_bytes: self.segment_bytes.or(other.segment_bytes),
            segment_age: self.segment_age.or(other.segment_age),
            checkpoint_entries: self.checkpoint_entries.or(other.checkpoint_entries),
            checkpoint_age: self.checkpoint_age.or(other.checkpoint_age),
            compress: self.compress.or(other.compress),
            checkpoint_files: join(self.checkpoint_files, &other.checkpoint_files),
            checkpoint_command: if self.checkpoint_command.is_empty() {
                other.checkpoint_command.clone()
            } else {
                self.checkpoint_command
            },
            checkpoint_webhooks: join(self.checkpoint_webhooks, &other.checkpoint_webhooks),
        }
    }

    /// The default log directory: `$XDG_STATE_HOME/callgate/audit`, or `~/.local/state/callgate/audit`.
    pub fn default_directory() -> Option<PathBuf> {
        Some(directories::state()?.join("audit"))
    }
}

/// Replaces `~/` at the start of a path by the home directory; `None` if there is no home directory.
pub fn expand_home(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    match text.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(PathBuf::from(text)),
    }
}

/// Reads the section.
pub(crate) fn decode(decoder: &mut Decoder, node: &Node) -> AuditText {
    let mut text = AuditText { position: Some(node.position), ..AuditText::default() };
    for (key, node) in decoder.section(node, keys::AUDIT, "`audit`") {
        let settings = &mut text.settings;
        match key {
            "directory" => text.directory = place(decoder, node),
            "key" => text.key = place(decoder, node),
            "sync" => settings.sync = sync(decoder, node),
            "segment_bytes" => settings.segment_bytes = at_least(decoder, node, MINIMUM_SEGMENT),
            "segment_age" => settings.segment_age = age(decoder, node, MINIMUM_AGE),
            "checkpoint_entries" => settings.checkpoint_entries = at_least(decoder, node, 1),
            "checkpoint_age" => settings.checkpoint_age = age(decoder, node, Duration::from_secs(1)),
            "compress" => settings.compress = decoder.flag(node).map(|flag| flag.value),
            _ => checkpoints(decoder, node, settings),
        }
    }
    let value = |at: &Option<Spanned<String>>| at.as_ref().map(|at| at.value.clone());
    text.settings.directory = value(&text.directory);
    text.settings.key = value(&text.key);
    text
}

fn checkpoints(decoder: &mut Decoder, node: &Node, settings: &mut AuditSettings) {
    for (key, node) in decoder.section(node, keys::CHECKPOINTS, "`checkpoints`") {
        match key {
            "file" => {
                let files = decoder.texts(node);
                settings.checkpoint_files = files.into_iter().filter_map(|file| is_place(decoder, file)).collect();
            }
            "command" => {
                settings.checkpoint_command = decoder.texts(node).into_iter().map(|word| word.value).collect();
                if settings.checkpoint_command.iter().any(|word| word.contains('\0'))
                    || settings.checkpoint_command.first().is_none_or(String::is_empty)
                {
                    decoder.mistake(
                        Mistake::new(node.position, "missing program")
                            .help("write the program and its arguments as a list: `[logger, -t, callgate]`"),
                    );
                }
            }
            _ => {
                for url in decoder.texts(node) {
                    if url.value.starts_with("https://") || url.value.starts_with("http://") {
                        settings.checkpoint_webhooks.push(url.value);
                    } else {
                        let help = "write a URL that starts with https://";
                        decoder.mistake(Mistake::new(url.position, "invalid URL").help(help));
                    }
                }
            }
        }
    }
}

fn place(decoder: &mut Decoder, node: &Node) -> Option<Spanned<String>> {
    let text = decoder.text(node)?;
    let position = text.position;
    is_place(decoder, text).map(|value| Spanned { value, position })
}

/// Checks that a path is absolute or starts with `~/`.
fn is_place(decoder: &mut Decoder, text: Spanned<String>) -> Option<String> {
    let Spanned { value, position } = text;
    let rest = value.strip_prefix("~/").or_else(|| value.strip_prefix('/'));
    let plain = rest.is_some_and(|rest| {
        !rest.trim_matches('/').is_empty() && !rest.contains('\0') && !rest.split('/').any(|part| part == "..")
    });
    if plain {
        return Some(value);
    }
    let help = "write an absolute path or one that starts with `~/`, without `..`";
    decoder.mistake(Mistake::new(position, "relative path").help(help));
    None
}

fn sync(decoder: &mut Decoder, node: &Node) -> Option<SyncMode> {
    let text = decoder.text(node)?;
    match text.value.parse() {
        Ok(sync) => Some(sync),
        Err(_) => {
            let help = "write `always`, `interval`, `interval 500ms` or `os`";
            decoder
                .mistake(Mistake::new(node.position, format!("invalid sync mode `{}`", brief(&text.value))).help(help));
            None
        }
    }
}

fn at_least(decoder: &mut Decoder, node: &Node, minimum: u64) -> Option<u64> {
    let number = decoder.number(node)?;
    if number < minimum {
        decoder.mistake(Mistake::new(node.position, format!("value is too small; the minimum is {minimum}")));
        return None;
    }
    Some(number)
}

fn age(decoder: &mut Decoder, node: &Node, minimum: Duration) -> Option<Duration> {
    let text = decoder.text(node)?;
    match humantime::parse_duration(&text.value) {
        Ok(age) if age >= minimum => Some(age),
        Ok(_) => {
            let shown = humantime::format_duration(minimum);
            decoder.mistake(Mistake::new(node.position, format!("duration is too short; the minimum is {shown}")));
            None
        }
        Err(_) => {
            let message = format!("invalid duration `{}`", brief(&text.value));
            decoder.mistake(Mistake::new(node.position, message).help("write `30s`, `12h` or `7days`"));
            None
        }
    }
}

fn brief(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_is_read_from_words() {
        assert_eq!("always".parse(), Ok(SyncMode::Always));
        assert_eq!("os".parse(), Ok(SyncMode::Os));
        assert_eq!("interval".parse(), Ok(SyncMode::Interval(Duration::from_millis(200))));
        assert_eq!("interval 2s".parse(), Ok(SyncMode::Interval(Duration::from_secs(2))));
        for wrong in ["", "never", "interval soon", "2s"] {
            assert!(wrong.parse::<SyncMode>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_home_is_put_in_only_where_it_is_named() {
        let home = Path::new("/home/ada");
        assert_eq!(expand_home("~/log", Some(home)), Some("/home/ada/log".into()));
        assert_eq!(expand_home("/var/log", None), Some("/var/log".into()));
        assert_eq!(expand_home("~/log", None), None);
    }
}
