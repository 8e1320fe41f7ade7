//! Puts contents in place of a file, at once: readers see the old contents or the new ones.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{expect_regular, failed, kind};
use crate::result::ToolError;

/// New contents that lie beside their place and are not there yet. Dropped without [`Replacement::place`], they go away.
#[derive(Debug)]
pub struct Replacement<'a> {
    parent: &'a OwnedFd,
    temporary: Option<OsString>,
}

impl<'a> Replacement<'a> {
    /// Writes contents beside `name` and to the disk. A file that is there keeps its mode.
    pub fn prepare(parent: &'a OwnedFd, name: &OsStr, path: &Path, contents: &[u8]) -> Result<Self, ToolError> {
        let mode = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => {
                expect_regular(FileType::from_raw_mode(data.st_mode), path)?;
                Some(Mode::from_raw_mode(data.st_mode & 0o777))
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed("write", path, error)),
        };
        let (temporary, mut file) = create(parent).map_err(|error| failed("write", path, error))?;
        let replacement = Replacement { parent, temporary: Some(temporary) };
        let write = || -> io::Result<()> {
            file.write_all(contents)?;
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, mode)?;
            }
            file.sync_all()
        };
        let mut write = write;
        write().map_err(|error| crate::result::io_error("write", path, &error))?;
        Ok(replacement)
    }

    /// Gives the contents the mode of a file, if that can be read.
    pub fn take_mode_of(&self, path: &Path) {
        let Some(temporary) = &self.temporary else { return };
        if let Ok(data) = path.symlink_metadata() {
            let mode = Mode::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&data) & 0o777);
            // A mode is a convenience: without it the file is readable as any new one.
            let _ = rustix::fs::chmodat(self.parent, temporary, mode, AtFlags::empty());
        }
    }

    /// Puts the contents in their place.
    pub fn place(mut self, name: &OsStr, path: &Path) -> Result<(), ToolError> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        // a directory, a device or a link may have taken the place meanwhile
        match kind(self.parent, name) {
            Ok(kind) => {
                if let Err(error) = expect_regular(kind, path) {
                    self.temporary = Some(temporary);
                    return Err(error);
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => {
                self.temporary = Some(temporary);
                return Err(failed("write", path, error));
            }
        }
        if let Err(error) = rustix::fs::renameat(self.parent, &temporary, self.parent, name) {
            self.temporary = Some(temporary);
            return Err(failed("write", path, error));
        }
        sync(self.parent);
        Ok(())
    }

    /// Puts the contents in a place where nothing is. What appeared there meanwhile stays.
    pub fn place_new(mut self, name: &OsStr, path: &Path) -> Result<(), ToolError> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        place_new(self.parent, temporary, self.parent, name, path)?;
        self.temporary = None;
        sync(self.parent);
        Ok(())
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing was promised about it.
            let _ = rustix::fs::unlinkat(self.parent, temporary, AtFlags::empty());
        }
    }
}

/// Moves a file to a name that must not exist.
pub fn place_new(from: &OwnedFd, old: &OsStr, to: &OwnedFd, new: &OsStr, path: &Path) -> Result<(), ToolError> {
    match rustix::fs::linkat(from, old, to, new, AtFlags::empty()) {
        Ok(()) => {
            // The new name is there; that the old one could not be removed is an error all the same.
            rustix::fs::unlinkat(from, old, AtFlags::empty()).map_err(|error| failed("write", path, error))
        }
        Err(Errno::EXIST) => Err(ToolError::validation(format!("{} already exists", path.display()))),
        // a file system without hard links
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::XDEV) => match kind(to, new) {
            Ok(_) => Err(ToolError::validation(format!("{} already exists", path.display()))),
            Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new).map_err(|error| failed("write", path, error)),
            Err(error) => Err(failed("write", path, error)),
        },
        Err(error) => Err(failed("write", path, error)),
    }
}

fn create(parent: &OwnedFd) -> Result<(OsString, File), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut last = Errno::EXIST;
    for _ in 0..16 {
        let name = unused_name()?;
        match rustix::fs::openat(parent, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) => last = Errno::EXIST,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// A name that nobody else uses, by chance.
pub fn unused_name() -> Result<OsString, Errno> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(OsString::from(format!(".callgate-{}.tmp", callgate_model::digest::hex(&bytes))))
}

/// The new name outlives a crash of the machine as well, where the file system can do that.
fn sync(parent: &OwnedFd) {
    if let Ok(directory) = rustix::fs::openat(parent, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::fs::fsync(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parent;
    use super::*;
    use crate::result::ErrorKind;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_keeps_its_mode_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = root.join("script");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let (directory, name) = parent(&path).unwrap();
        Replacement::prepare(&directory, &name, &path, b"new").unwrap().place(&name, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
        drop(Replacement::prepare(&directory, &name, &path, b"newer").unwrap());
        let left: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["script"]);
    }

    #[test]
    fn what_appeared_meanwhile_stays() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = root.join("new");
        let (directory, name) = parent(&path).unwrap();
        let replacement = Replacement::prepare(&directory, &name, &path, b"ours").unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(replacement.place_new(&name, &path).unwrap_err().kind, ErrorKind::Validation);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        std::os::unix::fs::symlink("/etc/hostname", root.join("link")).unwrap();
        let error = Replacement::prepare(&directory, OsStr::new("link"), &root.join("link"), b"x").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Permission);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
    }
}
