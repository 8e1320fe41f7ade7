//! Stores compiled policies for processes that judge one call and exit.
//!
//! A stored policy is used if this build of callgate made it, only this user can write it, and its source files are unchanged
//! according to their stamps (device, inode, size and times) or else their contents. Otherwise the policy is compiled again.
//! Anyone who can write the stored policy could also write the policy itself; agents can write neither.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use callgate_model::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::rules::compile::{About, CompiledPolicy};
use crate::rules::stored::{Image, ImageReader, ImageWriter, PageRange, Stored};
use crate::source::{ChainSettings, ChainStart, PolicyChain, RelativeGlobs, read_text};

/// The build that made a stored policy.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CALLGATE_POLICY_BUILD"));
/// The coarsest resolution of file times. A file that changed this recently can change again without a new time.
const COARSE: i64 = 2_000_000_000;
/// The limit for stored policies.
const MAXIMUM_STORED: usize = 128;

/// A directory of compiled policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyCache {
    directory: PathBuf,
}

/// The head of a stored policy.
#[derive(Serialize, Deserialize)]
struct CacheHead {
    build: String,
    key: String,
    sources: Vec<StampedFile>,
    settings: ChainSettings,
    about: About,
    sections: Vec<PageRange>,
}

/// A source file of a stored policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StampedFile {
    /// The path as given; a symlink may point elsewhere next time.
    named: PathBuf,
    path: PathBuf,
    stamp: FileStamp,
    /// Whether the file was too new for its stamp to be reliable.
    young: bool,
    sha256: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i64,
    changed: i64,
}

impl FileStamp {
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

impl FileStamp {
    /// Whether a later change of the file would change the stamp.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        self.changed.max(self.modified) < now.saturating_sub(COARSE)
    }
}

impl PolicyCache {
    /// A cache in this directory, which need not exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The user's: `$XDG_CACHE_HOME/callgate`, or below `~/.cache`.
    pub fn of_user() -> Option<Self> {
        crate::directories::cache().map(Self::new)
    }

    /// The user's cache for work on a project, which must not contain it: an agent can write there. If it does, as when somebody works
    /// in the home directory, the cache is beside the user's permits, whose place follows from the user alone.
    pub fn of_user_outside(workspace: Option<&Path>) -> Option<Self> {
        let beside = || crate::directories::permits(rustix::process::geteuid().as_raw());
        Self::outside(workspace, crate::directories::cache()?, || Some(beside()?.with_file_name("policies")))
    }

    fn outside(workspace: Option<&Path>, usual: PathBuf, other: impl Fn() -> Option<PathBuf>) -> Option<Self> {
        let is_inside = |directory: &Path| workspace.is_some_and(|workspace| directory.starts_with(workspace));
        if is_inside(&usual) { other().map(Self::new) } else { Some(Self::new(usual)) }
    }

    /// The directory of the cache.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the cache can be trusted: only this user can write it, and it is outside the workspace.
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

    /// Opens the stored chain, if there is a valid one.
    pub(crate) fn open(&self, start: &ChainStart<'_>) -> Option<PolicyChain> {
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
        let head: CacheHead = serde_json::from_slice(image.head()).ok()?;
        if head.build != BUILD || head.key != key || !head.sources.iter().all(unchanged) {
            return None;
        }
        let image = Arc::new(image);
        let mut compiled = CompiledPolicy::open(&mut ImageReader::new(Arc::clone(&image), head.sections));
        compiled.about = head.about;
        Some(PolicyChain { files: Vec::new(), compiled, settings: head.settings, image: Some(image) })
    }

    /// Stores a chain.
    pub(crate) fn store(&self, start: &ChainStart<'_>, chain: &PolicyChain) -> std::io::Result<()> {
        let Some(key) = key(start) else { return Ok(()) };
        let mut sources = Vec::new();
        for file in &chain.files {
            let Some(path) = &file.path else { continue };
            let Some(stamp) = FileStamp::of(path) else { return Ok(()) };
            // Make sure that the stamp is not newer than the text.
            let sha256 = digest(&file.text);
            if !read_text(path).is_ok_and(|text| digest(&text) == sha256) {
                return Ok(());
            }
            let young = !stamp.is_settled();
            let named = PathBuf::from(&file.source.shown);
            sources.push(StampedFile { named, path: path.clone(), stamp, young, sha256 });
        }
        let mut writer = ImageWriter::default();
        chain.compiled.store(&mut writer);
        let head = CacheHead {
            build: BUILD.to_owned(),
            key: key.clone(),
            sources,
            settings: chain.settings.clone(),
            about: chain.compiled.about.clone(),
            sections: std::mem::take(&mut writer.sections),
        };
        let bytes = writer.finish(&serde_json::to_vec(&head)?);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.tidy();
        // Only this user can write the directory, so the name must only differ from those of other callgate processes.
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

    /// Removes all stored policies, because one of them is damaged.
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

    /// Limits the number of stored policies.
    fn tidy(&self) {
        if self.stored().len() >= MAXIMUM_STORED {
            self.clear();
        }
    }
}

fn is_ours(metadata: &std::fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// The key of a chain; `None` for texts, which are not stored.
fn key(start: &ChainStart<'_>) -> Option<String> {
    match start {
        ChainStart::Bundled(name) => Some(format!("bundled {name}")),
        ChainStart::Text { .. } => None,
        ChainStart::File { path, relative } => {
            let relative = match relative {
                RelativeGlobs::ToWorkspace => "workspace",
                RelativeGlobs::ToFile => "file",
            };
            Some(format!("{relative} {}", path.to_str()?))
        }
    }
}

fn unchanged(source: &StampedFile) -> bool {
    let same_place = source.named.canonicalize().is_ok_and(|path| path == source.path);
    match FileStamp::of(&source.path).filter(|_| same_place) {
        Some(stamp) if stamp == source.stamp && !source.young => true,
        // The stamp is reliable now. Compile and store again, so that later calls do not compare contents.
        Some(stamp) if stamp.is_settled() => false,
        Some(_) => read_text(&source.path).is_ok_and(|text| digest(&text) == source.sha256),
        None => false,
    }
}

fn digest(text: &str) -> String {
    // Skip a byte order mark, as the parser does.
    sha256_hex(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_contains_the_usual_cache_has_another_one() {
        let of = |workspace: Option<&str>| {
            let other = || Some(PathBuf::from("/run/user/1000/callgate/policies"));
            let cache = PolicyCache::outside(workspace.map(Path::new), "/home/ada/.cache/callgate".into(), other);
            cache.unwrap().directory
        };
        for workspace in ["/home/ada", "/home", "/"] {
            assert_eq!(of(Some(workspace)), Path::new("/run/user/1000/callgate/policies"), "{workspace}");
        }
        for workspace in [None, Some("/home/ada/project"), Some("/home/ad"), Some("/srv")] {
            assert_eq!(of(workspace), Path::new("/home/ada/.cache/callgate"), "{workspace:?}");
        }
    }
}
