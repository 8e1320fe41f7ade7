//! The project files that a person trusts: a list of content hashes outside the reach of agents.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::file::mistake::{PolicyError, UnwritableFile};
use crate::source::{ChainStart, PolicyChain, RelativeGlobs, read_text};

/// The list of trusted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustStore {
    path: PathBuf,
    /// An entry that is not written.
    also: Option<String>,
}

/// The limit for the entries of a store.
const MAXIMUM_ENTRIES: usize = 10_000;

impl TrustStore {
    /// A store in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), also: None }
    }

    /// The user's store: `$XDG_DATA_HOME/callgate/trusted`, or below `~/.local/share`.
    pub fn of_user() -> Option<Self> {
        crate::directories::data().map(|directory| Self::new(directory.join("trusted")))
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Trusts a policy file and the files it extends with their current contents. Any change ends the trust.
    pub fn trust(&self, file: &Path) -> Result<(), PolicyError> {
        self.as_if(file)?.keep()
    }

    /// This store as if it trusted a file with its current contents. Nothing is written before [`TrustStore::keep`], which then
    /// trusts exactly these contents, whatever happened to the file meanwhile.
    pub fn as_if(&self, file: &Path) -> Result<Self, PolicyError> {
        Ok(Self { path: self.path.clone(), also: Some(entry(file)?) })
    }

    /// Writes what [`TrustStore::as_if`] has added.
    pub fn keep(&self) -> Result<(), PolicyError> {
        let Some(entry) = &self.also else { return Ok(()) };
        let mut entries = self.written();
        entries.retain(|other| key(other) != key(entry));
        entries.push(entry.clone());
        self.write(&entries)
    }

    /// Removes the trust. A file that was not trusted is not an error.
    pub fn untrust(&self, file: &Path) -> Result<(), PolicyError> {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let shown = shown(&real);
        let mut entries = self.written();
        entries.retain(|other| key(other) != Some(shown.as_str()));
        self.write(&entries)
    }

    /// Whether the file is trusted with its current contents.
    pub fn is_trusted(&self, file: &Path) -> bool {
        match entry(file) {
            Ok(entry) => self.entries().contains(&entry),
            Err(_) => false,
        }
    }

    pub(crate) fn holds(&self, hash: &str, file: &Path) -> bool {
        self.entries().contains(&format!("{hash} {}", shown(file)))
    }

    /// Whether the store is outside the workspace.
    pub(crate) fn is_safe_from(&self, workspace: Option<&Path>) -> bool {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        !workspace.is_some_and(|workspace| {
            let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
            real.starts_with(workspace)
        })
    }

    fn entries(&self) -> Vec<String> {
        self.written().into_iter().chain(self.also.clone()).collect()
    }

    fn written(&self) -> Vec<String> {
        if !is_private(&self.path) {
            return Vec::new();
        }
        let text = read_text(&self.path).unwrap_or_default();
        text.lines().take(MAXIMUM_ENTRIES).map(str::to_owned).collect()
    }

    fn write(&self, entries: &[String]) -> Result<(), PolicyError> {
        let unwritable = |error: std::io::Error| UnwritableFile { path: self.path.clone(), why: error.to_string() };
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(unwritable)?;
        }
        // Write a new file and rename it, so that a crash leaves the old list.
        let beside = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.mode(0o600);
        let mut handle = options.open(&beside).map_err(unwritable)?;
        for entry in entries {
            writeln!(handle, "{entry}").map_err(unwritable)?;
        }
        handle.sync_all().map_err(unwritable)?;
        Ok(std::fs::rename(&beside, &self.path).map_err(unwritable)?)
    }
}

fn entry(file: &Path) -> Result<String, PolicyError> {
    let chain = PolicyChain::load(&ChainStart::File { path: file, relative: RelativeGlobs::ToFile })?;
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

fn is_private(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o022 == 0)
}
