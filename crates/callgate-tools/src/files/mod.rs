//! Files by descriptor.
//!
//! Every path that comes here was resolved and judged, so no component of it is a symlink. It is opened one component at a time without
//! following any. A symlink that takes the place of a directory meanwhile is an error, wherever it leads.

mod directory;
mod replace;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

pub use directory::{EntryKind, entries};
pub use replace::{Replacement, unused_name};

use crate::result::{ErrorKind, ToolError, io_error};

/// Opens a directory for looking things up in it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a file without waiting for anybody and without following a link.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens the directory that a judged path lies in, and says its name there.
pub fn parent(path: &Path) -> Result<(OwnedFd, OsString), ToolError> {
    let name = path.file_name().ok_or_else(|| ToolError::validation(format!("{} is not a file", path.display())))?;
    let above = path.parent().unwrap_or(Path::new("/"));
    Ok((directory(above).map_err(|error| failed("open", above, error))?, name.to_owned()))
}

/// Opens a judged directory, for looking things up in it.
pub fn directory(path: &Path) -> Result<OwnedFd, Errno> {
    let mut current = rustix::fs::openat(CWD, "/", DIRECTORY, Mode::empty())?;
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => current = inner(&current, name)?,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        }
    }
    Ok(current)
}

/// Opens a directory in a directory, for looking things up in it.
pub fn inner(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
}

/// Like [`parent`], and makes the directories that are missing.
pub fn parent_or_create(path: &Path) -> Result<(OwnedFd, OsString), ToolError> {
    let name = path.file_name().ok_or_else(|| ToolError::validation(format!("{} is not a file", path.display())))?;
    let above = path.parent().unwrap_or(Path::new("/"));
    let walk = || -> Result<OwnedFd, Errno> {
        let mut current = rustix::fs::openat(CWD, "/", DIRECTORY, Mode::empty())?;
        for component in above.components() {
            let Component::Normal(name) = component else { continue };
            current = match inner(&current, name) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&current, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error),
                    }
                    inner(&current, name)?
                }
                opened => opened?,
            };
        }
        Ok(current)
    };
    Ok((walk().map_err(|error| failed("make", above, error))?, name.to_owned()))
}

/// Opens a judged path for reading. It must be a regular file.
pub fn regular(path: &Path) -> Result<File, ToolError> {
    let (parent, name) = parent(path)?;
    open_regular(&parent, &name, path)
}

/// Opens a regular file in a directory for reading; `path` is what messages call it.
pub fn open_regular(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<File, ToolError> {
    // Opening a device can do something, so its type is looked at first.
    let kind = kind(parent, name).map_err(|error| failed("open", path, error))?;
    expect_regular(kind, path)?;
    let file = rustix::fs::openat(parent, name, FILE, Mode::empty()).map_err(|error| failed("open", path, error))?;
    let data = rustix::fs::fstat(&file).map_err(|error| failed("open", path, error))?;
    expect_regular(FileType::from_raw_mode(data.st_mode), path)?;
    Ok(File::from(file))
}

/// The type of a name in a directory; a symlink is a symlink.
pub fn kind(parent: &OwnedFd, name: &OsStr) -> Result<FileType, Errno> {
    let data = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(data.st_mode))
}

/// An error unless it is a regular file.
pub fn expect_regular(kind: FileType, path: &Path) -> Result<(), ToolError> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(ToolError::validation(format!("{} is a directory", path.display()))),
        FileType::Symlink => Err(swapped(path)),
        _ => Err(ToolError::validation(format!("{} is not a regular file", path.display()))),
    }
}

/// An error of the operating system, in words. A symlink where there was none is told apart from a missing file.
pub fn failed(what: &str, path: &Path, error: Errno) -> ToolError {
    match error {
        Errno::LOOP => swapped(path),
        // a file or a symlink in place of a directory
        Errno::NOTDIR if has_link(path) => swapped(path),
        Errno::NOTDIR => ToolError::new(
            ErrorKind::NotFound,
            format!("cannot {what} {}: one of the names in front is not a directory", path.display()),
        ),
        error => io_error(what, path, &io::Error::from(error)),
    }
}

fn swapped(path: &Path) -> ToolError {
    let message = format!("{} leads elsewhere than when the call was judged; make the call again", path.display());
    ToolError::new(ErrorKind::Permission, message)
}

fn has_link(path: &Path) -> bool {
    path.ancestors().any(|ancestor| ancestor.symlink_metadata().is_ok_and(|data| data.is_symlink()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_opened_through_a_symlink() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "inside").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("file", root.join("real/alias")).unwrap();
        assert!(regular(&root.join("real/file")).is_ok());
        for path in ["link/file", "real/alias"] {
            let error = regular(&root.join(path)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Permission, "{path}: {error:?}");
        }
        assert_eq!(regular(&root.join("real/none")).unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(regular(&root.join("real/file/x")).unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(regular(&root.join("real")).unwrap_err().kind, ErrorKind::Validation);
    }

    #[test]
    fn a_fifo_is_an_error_and_nobody_waits_for_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        rustix::fs::mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(regular(&root.join("fifo")).unwrap_err().kind, ErrorKind::Validation);
        assert_eq!(regular(Path::new("/dev/null")).unwrap_err().kind, ErrorKind::Validation);
    }
}
