//! Files that decide what runs: looked at before they are touched, and replaced as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

/// Settings are small; what is larger is something else.
const LARGEST: u64 = 8 * 1024 * 1024;
/// Beside the file, with what was in it before.
const BACKUP: &str = "callgate-backup";

/// Why a file is not touched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system says no.
    #[error("{path}: {source}")]
    System {
        /// Which file.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// Somebody else may have put it there, or could change it.
    #[error("{path} {why}")]
    Unsafe {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Another process wrote it in the meantime.
    #[error("{0} changed while it was edited; try again")]
    Changed(PathBuf),
}

/// Whose files they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user's own.
    User,
    /// The machine's: root's, and everybody may read them.
    Machine,
    /// A project's: agents write there, so nothing on the way below it may be a link.
    Project,
}

/// A file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What is in it; `None` if there is no such file.
    pub text: Option<String>,
    stamp: Option<(u64, u64, i64, i64, u64)>,
    mode: u32,
}

impl Found {
    /// The same, to be written with another file's mode.
    pub(crate) fn with_mode_of(&self, other: &Found) -> Self {
        Found { mode: other.mode, ..self.clone() }
    }

    /// The hash of what is in it.
    pub fn hash(&self) -> Option<String> {
        self.text.as_deref().map(hash)
    }
}

/// SHA-256 as text.
pub fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn system(path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
    move |source| FileError::System { path: path.to_owned(), source }
}

fn refused(path: &Path, why: impl Into<String>) -> FileError {
    FileError::Unsafe { path: path.to_owned(), why: why.into() }
}

/// Reads a file after looking at who could have put it there. `below` is where the owner's own ground begins: links further
/// down are looked at.
pub fn read(path: &Path, owner: Owner, below: &Path) -> Result<Found, FileError> {
    look_at_directories(path, owner, below)?;
    let missing = Found { text: None, stamp: None, mode: if owner == Owner::User { 0o600 } else { 0o644 } };
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
                "is a link to {}; it is not followed, because an agent can make links. Put a file there",
                target.display()
            ),
        ));
    }
    if !metadata.is_file() {
        return Err(refused(path, "is not a file"));
    }
    look_at_owner(path, &metadata, owner)?;
    if metadata.len() > LARGEST {
        return Err(refused(path, "is too large for settings"));
    }
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().try_into().unwrap_or_default())
        .open(path)
        .map_err(system(path))?;
    let metadata = file.metadata().map_err(system(path))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(system(path))?;
    Ok(Found { text: Some(text), stamp: Some(stamp(&metadata)), mode: metadata.mode() & 0o7777 })
}

fn stamp(metadata: &fs::Metadata) -> (u64, u64, i64, i64, u64) {
    (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len())
}

fn look_at_owner(path: &Path, metadata: &fs::Metadata, owner: Owner) -> Result<(), FileError> {
    let user = if owner == Owner::Machine { 0 } else { rustix::process::geteuid().as_raw() };
    if metadata.uid() != user {
        return Err(refused(path, format!("belongs to another user ({})", metadata.uid())));
    }
    let mode = metadata.mode();
    // Where everybody has a group of their own, files that the group may write are nothing special.
    let own_group = owner != Owner::Machine && metadata.gid() == user && rustix::process::getegid().as_raw() == user;
    let sticky = metadata.is_dir() && mode & 0o1000 != 0;
    if mode & 0o002 != 0 && !sticky || mode & 0o020 != 0 && !own_group && !sticky {
        return Err(refused(
            path,
            format!("can be written by others (mode {:o}); take that away: chmod go-w", mode & 0o777),
        ));
    }
    Ok(())
}

/// The directories on the way to a file, as far as they exist.
fn look_at_directories(path: &Path, owner: Owner, below: &Path) -> Result<(), FileError> {
    for directory in
        path.ancestors().skip(1).take_while(|directory| *directory != below && directory.starts_with(below))
    {
        let metadata = match fs::symlink_metadata(directory) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(system(directory)(error)),
        };
        if metadata.is_symlink() && owner == Owner::Project {
            return Err(refused(
                directory,
                "is a link inside the project; it is not followed, because an agent can make links",
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

/// Whether what is written must outlive the machine's going down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasting {
    /// It is on the disk when this is done.
    Synced,
    /// It is left to the operating system: a hook does not wait for the disk because of a trace.
    Left,
}

/// Replaces a file as a whole: a kill at any moment leaves the old one or the new one. It must still be as it was `found`.
pub fn write(path: &Path, text: &str, found: &Found, owner: Owner, executable: bool) -> Result<(), FileError> {
    replace(path, text, found, owner, executable, Lasting::Synced)
}

/// As [`write`], for what may get lost when the machine goes down: does not wait for the disk.
pub fn write_trace(path: &Path, text: &str, found: &Found) -> Result<(), FileError> {
    replace(path, text, found, Owner::User, false, Lasting::Left)
}

fn replace(
    path: &Path,
    text: &str,
    found: &Found,
    owner: Owner,
    executable: bool,
    lasting: Lasting,
) -> Result<(), FileError> {
    let directory = path.parent().ok_or_else(|| refused(path, "has no directory"))?;
    make_directory(directory, owner)?;
    let execute = if executable { (found.mode & 0o444) >> 2 } else { 0 };
    let beside = directory.join(format!(".callgate-{}.new", random().map_err(system(path))?));
    let written = (|| -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(found.mode | execute))?;
        match lasting {
            Lasting::Synced => file.sync_all(),
            Lasting::Left => Ok(()),
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
        Lasting::Synced => sync_directory(directory),
        Lasting::Left => Ok(()),
    }
}

/// Removes a file that is still as it was `found`, and the directories that it leaves empty, up to `below`.
pub fn delete(path: &Path, found: &Found, below: &Path) -> Result<(), FileError> {
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

/// Where the backup of a file is.
pub fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(BACKUP);
    path.with_file_name(name)
}

fn make_directory(directory: &Path, owner: Owner) -> Result<(), FileError> {
    let mode = if owner == Owner::User { 0o700 } else { 0o755 };
    DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(system(directory))
}

fn sync_directory(directory: &Path) -> Result<(), FileError> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(system(directory))
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex::encode(bytes))
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
        let found = read(&path, Owner::User, &root).expect("nothing there");
        assert_eq!(found.text, None);
        write(&path, "one", &found, Owner::User, false).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("mode");
        let found = read(&path, Owner::User, &root).expect("there");
        write(&path, "two", &found, Owner::User, false).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o644);
        assert_eq!(
            fs::read_dir(path.parent().expect("a directory")).expect("there").count(),
            1,
            "nothing is left over"
        );
        delete(&path, &read(&path, Owner::User, &root).expect("there"), &root).expect("removed");
        assert!(!root.join("deep").exists() && root.exists());
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_overwritten() {
        let (_keep, root) = place();
        let path = root.join("settings.json");
        fs::write(&path, "one").expect("written");
        let found = read(&path, Owner::User, &root).expect("there");
        fs::write(&path, "somebody else's").expect("written");
        assert!(matches!(write(&path, "two", &found, Owner::User, false), Err(FileError::Changed(_))));
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
        assert!(told("link", Owner::User).contains("is a link to"));
        assert!(told("open", Owner::User).contains("can be written by others (mode 666)"));
        assert!(told("everybody/settings.json", Owner::User).contains("can be written by others"));
        assert!(told("directory", Owner::User).contains("is not a file"));
        assert!(told("linked/settings.json", Owner::Project).contains("is a link inside the project"));
        // A user may have moved a directory and left a link.
        assert!(read(&root.join("linked/settings.json"), Owner::User, &root).is_ok());
        if !rustix::process::geteuid().is_root() {
            assert!(told("real", Owner::Machine).contains("belongs to another user"));
        }
    }
}
