//! Compiled policies that outlive a process, for processes that judge one call and end.
//!
//! A stored policy is used if it was made by this build of callgate, belongs to this user, can be written by nobody else, and the
//! files it was made of are the same: by their stamps (device, inode, size and times), or else by their contents. Anything else is
//! compiled anew. Whoever can write the stored policy could write the policy itself; agents are kept from both.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use callgate_model::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::rules::compile::{Compiled, Sections};
use crate::rules::stored::{Image, Writer};
use crate::source::{Chain, Relative, Settings, Start, read_text};

/// Which compiler made it.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CALLGATE_POLICY_BUILD"));
/// Times of files are this coarse, at most: a file that changed this shortly before it was read may change again without it showing.
const COARSE: i64 = 2_000_000_000;
/// So many policies are kept.
const MAXIMUM_STORED: usize = 128;

/// A directory of compiled policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyCache {
    directory: PathBuf,
}

/// What stands before the pages.
#[derive(Serialize, Deserialize)]
struct Head {
    build: String,
    key: String,
    sources: Vec<Stamped>,
    settings: Settings,
    sections: Sections,
}

/// A file that a policy was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamped {
    /// As it was named; a link may lead elsewhere next time.
    named: PathBuf,
    path: PathBuf,
    stamp: Stamp,
    /// The file was so new that its stamp proves nothing yet.
    young: bool,
    sha256: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i64,
    changed: i64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Stamp {
    /// Whether a change after this stamp was taken would show in it.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        self.changed.max(self.modified) < now.saturating_sub(COARSE)
    }
}

impl PolicyCache {
    /// Policies are kept in this directory, which need not exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The user's: `$XDG_CACHE_HOME/callgate`, or below `~/.cache`.
    pub fn of_user() -> Option<Self> {
        crate::directories::cache().map(Self::new)
    }

    /// Where policies are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether what lies here can be believed: nobody else can write it, and it is no part of the workspace.
    pub(crate) fn is_safe_from(&self, workspace: Option<&Path>) -> bool {
        let Ok(real) = self.directory.canonicalize() else { return false };
        let Ok(metadata) = std::fs::metadata(&real) else { return false };
        let inside = workspace.is_some_and(|workspace| {
            real.starts_with(workspace.canonicalize().as_deref().unwrap_or(workspace)) || real.starts_with(workspace)
        });
        !inside && is_ours(&metadata) && metadata.mode() & 0o022 == 0
    }

    fn path(&self, key: &str) -> PathBuf {
        let digest = sha256_hex(key.as_bytes());
        self.directory.join(format!("{}.policy", digest.get(..32).unwrap_or_default()))
    }

    /// The stored chain that starts here, if there is one that can be used.
    pub(crate) fn open(&self, start: &Start<'_>) -> Option<Chain> {
        let key = key(start)?;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed())
            .open(self.path(&key))
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_ours(&metadata) || metadata.mode() & 0o077 != 0 {
            return None;
        }
        let image = Image::open(file)?;
        let head: Head = serde_json::from_slice(image.head()).ok()?;
        if head.build != BUILD || head.key != key || !head.sources.iter().all(unchanged) {
            return None;
        }
        let image = Arc::new(image);
        let compiled = Compiled::open(&image, head.sections);
        Some(Chain { files: Vec::new(), compiled, settings: head.settings, image: Some(image) })
    }

    /// Stores a chain. Failing to costs time, nothing else.
    pub(crate) fn store(&self, start: &Start<'_>, chain: &Chain) -> std::io::Result<()> {
        let Some(key) = key(start) else { return Ok(()) };
        let mut sources = Vec::new();
        for file in &chain.files {
            let Some(path) = &file.path else { continue };
            let Some(stamp) = Stamp::of(path) else { return Ok(()) };
            // The stamp must not be newer than the text.
            let sha256 = digest(&file.text);
            if !read_text(path).is_ok_and(|text| digest(&text) == sha256) {
                return Ok(());
            }
            let young = !stamp.is_settled();
            let named = PathBuf::from(&file.source.shown);
            sources.push(Stamped { named, path: path.clone(), stamp, young, sha256 });
        }
        let mut writer = Writer::default();
        let sections = chain.compiled.store(&mut writer);
        let head =
            Head { build: BUILD.to_owned(), key: key.clone(), sources, settings: chain.settings.clone(), sections };
        let bytes = writer.finish(&serde_json::to_vec(&head)?);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.tidy();
        // The directory is the user's own, so a name only has to differ from those of other callgate processes.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!("{}-{count}.new", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file: File| file.write_all(&bytes))
            .and_then(|()| std::fs::rename(&temporary, self.path(&key)));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    /// Forgets all policies, because one of them turned out damaged.
    pub fn clear(&self) {
        for path in self.stored() {
            let _ = std::fs::remove_file(path);
        }
    }

    fn stored(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let ours =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "policy" || extension == "new");
        entries.map(|entry| entry.path()).filter(ours).collect()
    }

    /// Policies of projects that are long gone must not pile up.
    fn tidy(&self) {
        if self.stored().len() >= MAXIMUM_STORED {
            self.clear();
        }
    }
}

fn is_ours(metadata: &std::fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// What a chain is stored under: everything that makes it another one beside the contents of files. Texts are not stored.
fn key(start: &Start<'_>) -> Option<String> {
    match start {
        Start::Bundled(name) => Some(format!("bundled {name}")),
        Start::Text { .. } => None,
        Start::File { path, relative } => {
            let relative = match relative {
                Relative::ToWorkspace => "workspace",
                Relative::ToFile => "file",
            };
            Some(format!("{relative} {}", path.to_str()?))
        }
    }
}

fn unchanged(source: &Stamped) -> bool {
    let same_place = source.named.canonicalize().is_ok_and(|path| path == source.path);
    match Stamp::of(&source.path).filter(|_| same_place) {
        Some(stamp) if stamp == source.stamp && !source.young => true,
        // Stored again with a stamp that will do, so that contents are not read with every call for ever.
        Some(stamp) if stamp.is_settled() => false,
        Some(_) => read_text(&source.path).is_ok_and(|text| digest(&text) == source.sha256),
        None => false,
    }
}

fn digest(text: &str) -> String {
    // As the file is read: a byte order mark is no part of the text.
    sha256_hex(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes())
}
