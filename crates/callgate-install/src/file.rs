//! Files that decide what runs: checked before they are touched, and replaced as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use callgate_model::digest;
use rustix::fs::OFlags;

/// The largest file that is taken for settings.
const LARGEST: u64 = 8 * 1024 * 1024;
/// The extension of the backup beside a file.
const BACKUP: &str = "callgate-backup";

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system reported an error.
    #[error("cannot access {path}: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Somebody else may have created the file, or could change it.
    #[error("{path} {why}")]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Another process changed the file in the meantime.
    #[error("{0} was changed by another process; try again")]
    Changed(PathBuf),
}

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOwner {
    /// The user.
    User,
    /// Root, for files that everybody may read.
    Machine,
    /// A project. Agents can write there, so no directory below it may be a symlink.
    Project,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSnapshot {
    /// The content; `None` if the file does not exist.
    pub text: Option<String>,
    stamp: Option<(u64, u64, i64, i64, u64)>,
    mode: u32,
}

impl FileSnapshot {
    /// Replaces the mode by that of another file.
    pub(crate) fn with_mode_of(&self, other: &FileSnapshot) -> Self {
        FileSnapshot { mode: other.mode, ..self.clone() }
    }

    /// The hash of the content.
    pub fn hash(&self) -> Option<String> {
        self.text.as_deref().map(hash)
    }
}

/// The SHA-256 digest in hexadecimal.
pub(crate) fn hash(text: &str) -> String {
    digest::sha256_hex(text.as_bytes())
}

fn system(path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
    move |source| FileError::System { path: path.to_owned(), source }
}

fn refused(path: &Path, why: impl Into<String>) -> FileError {
    FileError::Unsafe { path: path.to_owned(), why: why.into() }
}

/// Reads a file after checking who could have created it. Only directories below `below` are checked.
pub(crate) fn read(path: &Path, owner: FileOwner, below: &Path) -> Result<FileSnapshot, FileError> {
    let real = followed(path, owner, below)?;
    let path = real.as_path();
    look_at_directories(path, owner, below)?;
    let missing = FileSnapshot { text: None, stamp: None, mode: if owner == FileOwner::User { 0o600 } else { 0o644 } };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(missing),
        Err(error) => return Err(system(path)(error)),
    };
    if metadata.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return Err(refused(
            path,
            format!(
                "is a symlink to {}; callgate does not follow it, because agents can create symlinks. Replace it by a regular file",
                target.display()
            ),
        ));
    }
    if !metadata.is_file() {
        return Err(refused(path, "is not a regular file"));
    }
    look_at_owner(path, &metadata, owner)?;
    if metadata.len() > LARGEST {
        return Err(refused(path, "is too large for a settings file"));
    }
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().try_into().unwrap_or_default())
        .open(path)
        .map_err(system(path))?;
    let metadata = file.metadata().map_err(system(path))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(system(path))?;
    Ok(FileSnapshot { text: Some(text), stamp: Some(stamp(&metadata)), mode: metadata.mode() & 0o7777 })
}

/// The file that a link of the user leads to, as people who keep their settings in a repository have it; otherwise the path itself.
/// The file has to be below `below`, such as the home. Links in other places are refused: agents can create them there.
pub(crate) fn followed(path: &Path, owner: FileOwner, below: &Path) -> Result<PathBuf, FileError> {
    if owner != FileOwner::User || !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Ok(path.to_owned());
    }
    let real = path.canonicalize().map_err(system(path))?;
    let ground = below.canonicalize().map_err(system(below))?;
    match real.strip_prefix(&ground) {
        // In the words of `below`, so that every directory on the way is looked at.
        Ok(inside) => Ok(below.join(inside)),
        Err(_) => {
            let why = format!(
                "is a symlink to {}, which is not below {}; callgate does not follow it. Replace it by a regular file",
                real.display(),
                below.display()
            );
            Err(refused(path, why))
        }
    }
}

fn stamp(metadata: &fs::Metadata) -> (u64, u64, i64, i64, u64) {
    (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len())
}

fn look_at_owner(path: &Path, metadata: &fs::Metadata, owner: FileOwner) -> Result<(), FileError> {
    let user = if owner == FileOwner::Machine { 0 } else { rustix::process::geteuid().as_raw() };
    if metadata.uid() != user {
        return Err(refused(path, format!("belongs to another user ({})", metadata.uid())));
    }
    let mode = metadata.mode();
    // Where every user has a group of their own, group-writable files are common and harmless.
    let own_group =
        owner != FileOwner::Machine && metadata.gid() == user && rustix::process::getegid().as_raw() == user;
    let sticky = metadata.is_dir() && mode & 0o1000 != 0;
    if mode & 0o002 != 0 && !sticky || mode & 0o020 != 0 && !own_group && !sticky {
        return Err(refused(
            path,
            format!("is writable by other users (mode {:o}); run chmod go-w on it", mode & 0o777),
        ));
    }
    Ok(())
}

/// Checks the existing directories above a file.
fn look_at_directories(path: &Path, owner: FileOwner, below: &Path) -> Result<(), FileError> {
    for directory in
        path.ancestors().skip(1).take_while(|directory| *directory != below && directory.starts_with(below))
    {
        let metadata = match fs::symlink_metadata(directory) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(system(directory)(error)),
        };
        if metadata.is_symlink() && owner == FileOwner::Project {
            return Err(refused(
                directory,
                "is a symlink inside the project; callgate does not follow it, because agents can create symlinks",
            ));
        }
        let metadata = fs::metadata(directory).map_err(system(directory))?;
        if !metadata.is_dir() {
            return Err(refused(directory, "is not a directory"));
        }
        look_at_owner(directory, &metadata, owner)?;
    }
    Ok(())
}

/// Whether a write must survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// The write returns when the data is on disk.
    Synced,
    /// The operating system writes when it likes: a hook does not wait for the disk.
    Unsynced,
}

/// Replaces a file atomically. It must still be as it was `found`.
pub(crate) fn write(
    path: &Path,
    text: &str,
    found: &FileSnapshot,
    owner: FileOwner,
    executable: bool,
) -> Result<(), FileError> {
    replace(path, text, found, owner, executable, Durability::Synced)
}

/// Replaces a file without waiting for the disk, for data that may be lost in a crash.
pub(crate) fn write_trace(path: &Path, text: &str, found: &FileSnapshot) -> Result<(), FileError> {
    replace(path, text, found, FileOwner::User, false, Durability::Unsynced)
}

fn replace(
    path: &Path,
    text: &str,
    found: &FileSnapshot,
    owner: FileOwner,
    executable: bool,
    lasting: Durability,
) -> Result<(), FileError> {
    let real = resolved(path, owner)?;
    let path = real.as_path();
    let directory = path.parent().ok_or_else(|| refused(path, "has no directory"))?;
    make_directory(directory, owner)?;
    let execute = if executable { (found.mode & 0o444) >> 2 } else { 0 };
    let beside = directory.join(format!(".callgate-{}.new", random().map_err(system(path))?));
    let written = (|| -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(found.mode | execute))?;
        match lasting {
            Durability::Synced => file.sync_all(),
            Durability::Unsynced => Ok(()),
        }
    })();
    let moved = written.map_err(system(path)).and_then(|()| {
        let now = fs::symlink_metadata(path).ok().map(|metadata| stamp(&metadata));
        if now != found.stamp {
            return Err(FileError::Changed(path.to_owned()));
        }
        fs::rename(&beside, path).map_err(system(path))
    });
    if moved.is_err() {
        drop(fs::remove_file(&beside));
    }
    moved?;
    match lasting {
        Durability::Synced => sync_directory(directory),
        Durability::Unsynced => Ok(()),
    }
}

/// The file behind a link of the user. That it may be written was decided when it was read, and it must still be the same file.
fn resolved(path: &Path, owner: FileOwner) -> Result<PathBuf, FileError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() && owner == FileOwner::User => path.canonicalize().map_err(system(path)),
        _ => Ok(path.to_owned()),
    }
}

/// Removes a file that is still as it was `found`, and the directories up to `below` that it leaves empty.
pub(crate) fn delete(path: &Path, found: &FileSnapshot, below: &Path) -> Result<(), FileError> {
    let now = fs::symlink_metadata(path).ok().map(|metadata| stamp(&metadata));
    if now != found.stamp {
        return Err(FileError::Changed(path.to_owned()));
    }
    fs::remove_file(path).map_err(system(path))?;
    for directory in
        path.ancestors().skip(1).take_while(|directory| *directory != below && directory.starts_with(below))
    {
        if fs::remove_dir(directory).is_err() {
            return sync_directory(directory);
        }
    }
    Ok(())
}

/// The path of the backup of a file.
pub(crate) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(BACKUP);
    path.with_file_name(name)
}

fn make_directory(directory: &Path, owner: FileOwner) -> Result<(), FileError> {
    let mode = if owner == FileOwner::User { 0o700 } else { 0o755 };
    DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(system(directory))
}

fn sync_directory(directory: &Path) -> Result<(), FileError> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(system(directory))
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(digest::hex(&bytes))
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test says what is missing by failing")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        (directory, root)
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let (_keep, root) = place();
        let path = root.join("deep/er/settings.json");
        let found = read(&path, FileOwner::User, &root).expect("nothing there");
        assert_eq!(found.text, None);
        write(&path, "one", &found, FileOwner::User, false).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("mode");
        let found = read(&path, FileOwner::User, &root).expect("there");
        write(&path, "two", &found, FileOwner::User, false).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o644);
        assert_eq!(
            fs::read_dir(path.parent().expect("a directory")).expect("there").count(),
            1,
            "nothing is left over"
        );
        delete(&path, &read(&path, FileOwner::User, &root).expect("there"), &root).expect("removed");
        assert!(!root.join("deep").exists() && root.exists());
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_overwritten() {
        let (_keep, root) = place();
        let path = root.join("settings.json");
        fs::write(&path, "one").expect("written");
        let found = read(&path, FileOwner::User, &root).expect("there");
        fs::write(&path, "somebody else's").expect("written");
        assert!(matches!(write(&path, "two", &found, FileOwner::User, false), Err(FileError::Changed(_))));
        assert!(matches!(delete(&path, &found, &root), Err(FileError::Changed(_))));
        assert_eq!(fs::read_to_string(&path).expect("there"), "somebody else's");
        assert_eq!(fs::read_dir(&root).expect("there").count(), 1);
    }

    #[test]
    fn what_others_could_have_put_there_is_refused() {
        let (_keep, root) = place();
        fs::write(root.join("real"), "{}").expect("written");
        fs::create_dir(root.join("directory")).expect("made");
        symlink(root.join("real"), root.join("link")).expect("a link");
        symlink(root.join("directory"), root.join("linked")).expect("a link");
        fs::write(root.join("open"), "{}").expect("written");
        fs::set_permissions(root.join("open"), fs::Permissions::from_mode(0o666)).expect("mode");
        fs::create_dir(root.join("everybody")).expect("made");
        fs::set_permissions(root.join("everybody"), fs::Permissions::from_mode(0o777)).expect("mode");
        let told = |name: &str, owner| read(&root.join(name), owner, &root).expect_err(name).to_string();
        assert!(told("link", FileOwner::Project).contains("is a symlink to"));
        assert_eq!(read(&root.join("link"), FileOwner::User, &root).expect("followed").text.as_deref(), Some("{}"));
        let away = read(&root.join("link"), FileOwner::User, &root.join("directory")).expect_err("outside").to_string();
        assert!(away.contains("is a symlink to") && away.contains("which is not below"), "{away}");
        assert!(told("open", FileOwner::User).contains("is writable by other users (mode 666)"));
        assert!(told("everybody/settings.json", FileOwner::User).contains("is writable by other users"));
        assert!(told("directory", FileOwner::User).contains("is not a regular file"));
        assert!(told("linked/settings.json", FileOwner::Project).contains("is a symlink inside the project"));
        // A user may have moved a directory and left a link.
        assert!(read(&root.join("linked/settings.json"), FileOwner::User, &root).is_ok());
        if !rustix::process::geteuid().is_root() {
            assert!(told("real", FileOwner::Machine).contains("belongs to another user"));
        }
    }
}
