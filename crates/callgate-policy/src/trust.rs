//! Which project files a person has trusted: a list of content hashes, kept where agents do not write.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::file::mistake::PolicyError;
use crate::source::{Chain, Relative, Start, read_text};

/// The list of trusted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustStore {
    path: PathBuf,
}

/// The store is read up to this many entries.
const MAXIMUM_ENTRIES: usize = 10_000;

impl TrustStore {
    /// A store in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The user's store: `$XDG_DATA_HOME/callgate/trusted`, or below `~/.local/share`.
    pub fn of_user() -> Option<Self> {
        crate::directories::data().map(|directory| Self::new(directory.join("trusted")))
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Trusts a policy file as it is now, with everything it extends. A change to any of them ends the trust.
    pub fn trust(&self, file: &Path) -> Result<(), PolicyError> {
        let entry = entry(file)?;
        let mut entries = self.entries();
        entries.retain(|other| key(other) != key(&entry));
        entries.push(entry);
        self.write(&entries)
    }

    /// Takes the trust back. It is no mistake if the file was not trusted.
    pub fn untrust(&self, file: &Path) -> Result<(), PolicyError> {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let shown = shown(&real);
        let mut entries = self.entries();
        entries.retain(|other| key(other) != Some(shown.as_str()));
        self.write(&entries)
    }

    /// Whether the file is trusted with its present contents.
    pub fn is_trusted(&self, file: &Path) -> bool {
        match entry(file) {
            Ok(entry) => self.entries().contains(&entry),
            Err(_) => false,
        }
    }

    pub(crate) fn holds(&self, hash: &str, file: &Path) -> bool {
        self.entries().contains(&format!("{hash} {}", shown(file)))
    }

    /// A store inside the workspace, or one that others can write, says nothing.
    pub(crate) fn is_safe_from(&self, workspace: Option<&Path>) -> bool {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        !workspace.is_some_and(|workspace| {
            let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
            real.starts_with(workspace)
        })
    }

    fn entries(&self) -> Vec<String> {
        if !is_private(&self.path) {
            return Vec::new();
        }
        let text = read_text(&self.path).unwrap_or_default();
        text.lines().take(MAXIMUM_ENTRIES).map(str::to_owned).collect()
    }

    fn write(&self, entries: &[String]) -> Result<(), PolicyError> {
        let unreadable = |error: std::io::Error| PolicyError::Unreadable {
            path: self.path.display().to_string(),
            why: error.to_string(),
        };
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(unreadable)?;
        }
        // Written beside and moved, so that a crash leaves the old list.
        let beside = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut handle = options.open(&beside).map_err(unreadable)?;
        for entry in entries {
            writeln!(handle, "{entry}").map_err(unreadable)?;
        }
        handle.sync_all().map_err(unreadable)?;
        std::fs::rename(&beside, &self.path).map_err(unreadable)
    }
}

fn entry(file: &Path) -> Result<String, PolicyError> {
    let chain = Chain::load(&Start::File { path: file, relative: Relative::ToFile })?;
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    Ok(format!("{} {}", chain.settings.contents, shown(&real)))
}

/// A path in one line.
fn shown(path: &Path) -> String {
    path.to_string_lossy().replace(['\n', '\r'], "\u{fffd}")
}

/// The file an entry is about.
fn key(entry: &str) -> Option<&str> {
    entry.split_once(' ').map(|(_, path)| path)
}

#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o022 == 0)
}

#[cfg(not(unix))]
fn is_private(path: &Path) -> bool {
    path.is_file()
}
