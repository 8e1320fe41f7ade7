//! System calls that change files.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::path::{self, Last, Name, Target};
use super::reads;
use super::{Broker, Done, int, long, thread};
use crate::names::is_in_repository;
use crate::system::{self, Notification};

/// How many names of a directory that gets a telling name are looked at.
const MOST_NAMES: usize = 2000;
/// The flags of an open file that can be changed, without that of waiting.
const CHANGEABLE: OFlags =
    OFlags::APPEND.union(OFlags::DIRECT).union(OFlags::NOATIME).union(OFlags::from_bits_retain(libc::O_ASYNC as u32));
/// The bits that let a program run with another identity.
const SET_ID: u32 = 0o6000;

impl Broker {
    /// Performs a call that changes files.
    pub(super) fn change(&mut self, call: &Notification) -> Result<Done, Errno> {
        let here = libc::AT_FDCWD;
        #[cfg(target_arch = "x86_64")]
        match libc::c_long::from(call.number) {
            libc::SYS_open => return self.open(call, here, 0, int(call, 1), int(call, 2)),
            libc::SYS_creat => {
                return self.open(call, here, 0, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, int(call, 1));
            }
            libc::SYS_mkdir => return self.make_directory(call, here, 0, int(call, 1)),
            libc::SYS_mknod => return self.make_node(call, here, 0, int(call, 1)),
            libc::SYS_rename => return self.rename(call, (here, 0), (here, 1), 0),
            libc::SYS_link => return self.link(call, (here, 0), (here, 1), 0),
            libc::SYS_symlink => return self.symlink(call, 0, here, 1),
            libc::SYS_unlink => return self.remove(call, here, 0, AtFlags::empty()),
            libc::SYS_rmdir => return self.remove(call, here, 0, AtFlags::REMOVEDIR),
            libc::SYS_chmod => return self.change_mode(call, here, 0, int(call, 1), 0),
            _ => {}
        }
        match libc::c_long::from(call.number) {
            libc::SYS_openat => self.open(call, int(call, 0), 1, int(call, 2), int(call, 3)),
            libc::SYS_mkdirat => self.make_directory(call, int(call, 0), 1, int(call, 2)),
            libc::SYS_mknodat => self.make_node(call, int(call, 0), 1, int(call, 2)),
            libc::SYS_renameat => self.rename(call, (int(call, 0), 1), (int(call, 2), 3), 0),
            libc::SYS_renameat2 => self.rename(call, (int(call, 0), 1), (int(call, 2), 3), int(call, 4)),
            libc::SYS_linkat => self.link(call, (int(call, 0), 1), (int(call, 2), 3), int(call, 4)),
            libc::SYS_symlinkat => self.symlink(call, 0, int(call, 1), 2),
            libc::SYS_unlinkat => {
                self.remove(call, int(call, 0), 1, AtFlags::from_bits_retain(int(call, 2).cast_unsigned()))
            }
            libc::SYS_truncate => self.truncate(call),
            libc::SYS_fchmodat => self.change_mode(call, int(call, 0), 1, int(call, 2), 0),
            libc::SYS_fchmodat2 => self.change_mode(call, int(call, 0), 1, int(call, 2), int(call, 3)),
            libc::SYS_fchmod => self.change_mode_of_descriptor(call),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Runs something with the file mode mask of the program.
    pub(super) fn with_mask<T>(&mut self, call: &Notification, body: impl FnOnce() -> T) -> T {
        rustix::process::umask(self.masks.of(thread(call)));
        body()
    }

    fn find(&self, call: &Notification, directory: i32, index: usize, last: Last) -> Result<Target, Errno> {
        let path = self.path(call, long(call, index))?;
        path::find(thread(call), directory, &path, last)
    }

    /// A name that is made, replaced or removed.
    fn name(&self, call: &Notification, directory: i32, index: usize) -> Result<Name, Errno> {
        match self.find(call, directory, index, Last::Kept)? {
            Target::Named(name) => Ok(name),
            Target::Descriptor(_) => Err(Errno::PERM),
        }
    }

    /// Refuses to change a protected file under another of its names.
    fn allow_file(&mut self, stat: Result<Stat, Errno>, path: &Path) -> Result<(), Errno> {
        if stat.is_ok_and(|stat| self.guard.files.contains(&(stat.st_dev, stat.st_ino))) {
            self.hold_back("write", path.display().to_string(), "protected");
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    fn allow_named_file(&mut self, name: &Name) -> Result<(), Errno> {
        if self.guard.files.is_empty() {
            return Ok(());
        }
        self.allow_file(rustix::fs::statat(&name.directory, &name.name, AtFlags::SYMLINK_NOFOLLOW), &name.path)
    }

    /// Refuses to change a protected file by its descriptor. Returns the path that it has now.
    fn allow_descriptor(&mut self, found: &OwnedFd) -> Result<PathBuf, Errno> {
        let path = path::path_of(found)?;
        self.allow(&path, "write")?;
        self.allow_file(status(found), &path)?;
        Ok(path)
    }

    fn open(
        &mut self,
        call: &Notification,
        directory: i32,
        index: usize,
        flags: i32,
        mode: i32,
    ) -> Result<Done, Errno> {
        let wanted = OFlags::from_bits_retain(flags.cast_unsigned());
        let close_on_exec = wanted.contains(OFlags::CLOEXEC);
        let exclusive = wanted.contains(OFlags::CREATE | OFlags::EXCL) && !wanted.contains(OFlags::TMPFILE);
        let last = if exclusive || wanted.contains(OFlags::NOFOLLOW) { Last::Kept } else { Last::Followed };
        if reads::only_looks(flags) {
            return self.open_to_read(call, directory, index, wanted, last);
        }
        let mode = Mode::from_raw_mode(mode.cast_unsigned() & 0o7777 & !SET_ID);
        let target = self.find(call, directory, index, last)?;
        let flags = wanted | OFlags::CLOEXEC | OFlags::NOCTTY;
        let descriptor = match target {
            Target::Descriptor(found) => {
                self.allow_descriptor(&found)?;
                let again = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
                rustix::fs::open(link_to(&found), again | OFlags::NONBLOCK, Mode::empty())?
            }
            Target::Named(name) => {
                self.allow(&name.path, "write")?;
                self.allow_named_file(&name)?;
                if name.path == Path::new("/dev/tty") {
                    return self.open_terminal(call, flags, close_on_exec);
                }
                let made = wanted.contains(OFlags::CREATE) || wanted.contains(OFlags::TMPFILE);
                // Only what is there already can be a pipe that nobody reads.
                let flags = flags | OFlags::NOFOLLOW | if exclusive { OFlags::empty() } else { OFlags::NONBLOCK };
                let is_own = made && self.is_free_secret(&name);
                // What somebody else makes under that name in this moment is not the call's.
                let flags = if is_own { flags | OFlags::EXCL } else { flags };
                let opened = if made {
                    self.with_mask(call, || rustix::fs::openat(&name.directory, &name.name, flags, mode))
                } else {
                    rustix::fs::openat(&name.directory, &name.name, flags, mode)
                };
                match opened {
                    Ok(descriptor) => {
                        self.allow_opened(&descriptor, &name, is_own)?;
                        descriptor
                    }
                    Err(Errno::EXIST) if is_own && !exclusive => return Err(Errno::ACCESS),
                    // a pipe that nobody reads yet: the program waits, and nobody else must wait for it
                    Err(Errno::NXIO) if is_pipe(&name) && !wanted.contains(OFlags::NONBLOCK) => {
                        return self.open_pipe(call, &name, flags, close_on_exec);
                    }
                    Err(error) => return Err(self.explained(error, &name, "write")),
                }
            }
        };
        if !exclusive && !wanted.contains(OFlags::NONBLOCK) && !wanted.contains(OFlags::PATH) {
            // the others are not changed by this
            rustix::fs::fcntl_setfl(&descriptor, wanted.intersection(CHANGEABLE))?;
        }
        Ok(Done::Descriptor { descriptor, close_on_exec })
    }

    /// `/dev/tty` is the terminal of whoever opens it, and this process has none.
    pub(super) fn open_terminal(&self, call: &Notification, flags: OFlags, close_on_exec: bool) -> Result<Done, Errno> {
        let terminal = self.terminal.as_ref().filter(|_| has_terminal(thread(call))).ok_or(Errno::NXIO)?;
        let descriptor = rustix::fs::open(terminal, flags.difference(OFlags::CREATE | OFlags::EXCL), Mode::empty())?;
        Ok(Done::Descriptor { descriptor, close_on_exec })
    }

    fn open_pipe(&self, call: &Notification, name: &Name, flags: OFlags, close_on_exec: bool) -> Result<Done, Errno> {
        let (listener, id) = (Arc::clone(&self.listener), call.id);
        let held = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let pipe = rustix::fs::openat(&name.directory, &name.name, held, Mode::empty())?;
        if FileType::from_raw_mode(status(&pipe)?.st_mode) != FileType::Fifo {
            return Err(Errno::AGAIN);
        }
        let flags = flags.difference(OFlags::NONBLOCK | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
        let wait = move || {
            // Tried again and again, so that this ends when the program does.
            let opened = loop {
                match rustix::fs::open(link_to(&pipe), flags | OFlags::NONBLOCK, Mode::empty()) {
                    Err(Errno::NXIO) if system::still_waits(listener.as_fd(), id) => {
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                    opened => break opened,
                }
            };
            let opened = opened.and_then(|pipe| {
                let set = rustix::fs::fcntl_getfl(&pipe)?;
                rustix::fs::fcntl_setfl(&pipe, set.difference(OFlags::NONBLOCK))?;
                Ok(pipe)
            });
            let answered = opened.map_err(Errno::raw_os_error).and_then(|descriptor| {
                system::answer_with_descriptor(listener.as_fd(), id, descriptor.as_fd(), close_on_exec)
                    .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
            });
            if let Err(error) = answered {
                system::answer(listener.as_fd(), id, Err(error));
            }
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(wait).map_err(|_| Errno::AGAIN)?;
        Ok(Done::Later)
    }

    /// The error that the program gets; one that the fence is the reason for is reported.
    fn explained(&mut self, error: Errno, name: &Name, action: &str) -> Errno {
        let outside = matches!(error, Errno::PERM | Errno::ACCESS) && self.is_outside(&name.path);
        if error == Errno::ROFS || outside {
            self.hold_back(action, name.path.display().to_string(), "files");
        }
        error
    }

    fn done(&mut self, result: Result<(), Errno>, name: &Name, action: &str) -> Result<Done, Errno> {
        result.map(|()| Done::Value(0)).map_err(|error| self.explained(error, name, action))
    }

    fn make_directory(&mut self, call: &Notification, directory: i32, index: usize, mode: i32) -> Result<Done, Errno> {
        let name = self.name(call, directory, index)?;
        self.allow(&name.path, "write")?;
        let mode = Mode::from_raw_mode(mode.cast_unsigned() & 0o7777 & !SET_ID);
        let made = self.with_mask(call, || rustix::fs::mkdirat(&name.directory, &name.name, mode));
        self.done(made, &name, "write")
    }

    fn make_node(&mut self, call: &Notification, directory: i32, index: usize, mode: i32) -> Result<Done, Errno> {
        let name = self.name(call, directory, index)?;
        self.allow(&name.path, "write")?;
        let kind = match FileType::from_raw_mode(mode.cast_unsigned()) {
            FileType::Unknown => FileType::RegularFile,
            kind @ (FileType::RegularFile | FileType::Fifo | FileType::Socket) => kind,
            _ => return Err(Errno::PERM),
        };
        let mode = Mode::from_raw_mode(mode.cast_unsigned() & 0o7777 & !SET_ID);
        let made = self.with_mask(call, || rustix::fs::mknodat(&name.directory, &name.name, kind, mode, 0));
        self.done(made, &name, "write")
    }

    fn symlink(&mut self, call: &Notification, target: usize, directory: i32, index: usize) -> Result<Done, Errno> {
        let target = CString::new(self.path(call, long(call, target))?).map_err(|_| Errno::INVAL)?;
        let name = self.name(call, directory, index)?;
        self.allow_link(&name)?;
        let made = rustix::fs::symlinkat(target.as_c_str(), &name.directory, &name.name);
        self.done(made, &name, "write")
    }

    /// A link stands for everything below it, so it may not have a name that occurs in the path of something protected.
    fn allow_link(&mut self, name: &Name) -> Result<(), Errno> {
        self.allow(&name.path, "write")?;
        let protected = &self.guard.protected;
        let closed = || {
            !self.guard.links
                || protected.covers(&name.path)
                || is_in_repository(&name.path)
                || protected.leads_to(&name.path)
                || protected.holds(&name.path)
        };
        if !self.is_outside(&name.path) && closed() {
            self.hold_back("write", name.path.display().to_string(), "protected");
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    fn link(&mut self, call: &Notification, from: (i32, usize), to: (i32, usize), flags: i32) -> Result<Done, Errno> {
        let name = self.name(call, to.0, to.1)?;
        self.allow(&name.path, "write")?;
        let flags = AtFlags::from_bits_retain(flags.cast_unsigned());
        let old = self.path(call, long(call, from.1))?;
        let last = if flags.contains(AtFlags::SYMLINK_FOLLOW) { Last::Followed } else { Last::Kept };
        if old.is_empty() {
            // a descriptor without a name: only with a capability, which contained programs do not have
            return Err(Errno::NOENT);
        }
        let made = match path::find(thread(call), from.0, &old, last)? {
            Target::Descriptor(found) => {
                if status(&found)?.st_nlink > 0 {
                    self.allow_descriptor(&found)?;
                    self.allow_other_name(&path::path_of(&found)?, &name.path)?;
                }
                rustix::fs::linkat(CWD, link_to(&found), &name.directory, &name.name, AtFlags::SYMLINK_FOLLOW)
            }
            Target::Named(old) => {
                self.allow(&old.path, "write")?;
                self.allow_other_name(&old.path, &name.path)?;
                if is_link(&old) {
                    self.allow_link(&name)?;
                }
                let linked = reads::Moved::look(self, &old);
                let made = rustix::fs::linkat(&old.directory, &old.name, &name.directory, &name.name, AtFlags::empty());
                if made.is_ok() {
                    self.note_own(linked, &name.path);
                }
                made
            }
        };
        self.done(made, &name, "write")
    }

    fn rename(&mut self, call: &Notification, from: (i32, usize), to: (i32, usize), flags: i32) -> Result<Done, Errno> {
        let (old, new) = (self.name(call, from.0, from.1)?, self.name(call, to.0, to.1)?);
        let flags = RenameFlags::from_bits_retain(flags.cast_unsigned());
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::PERM);
        }
        self.allow(&old.path, "write")?;
        self.allow(&new.path, "write")?;
        for moved in [&old, &new] {
            // a root that is moved with what it lies in is no longer found
            let holds_root =
                self.guard.roots.iter().chain(&self.guard.changeable).any(|root| root.starts_with(&moved.path));
            self.allow_moving(moved)?;
            if holds_root || self.guard.protected.leads_to(&moved.path) {
                self.hold_back("write", moved.path.display().to_string(), "protected");
                return Err(Errno::ACCESS);
            }
        }
        self.allow_contents(&old, &new)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.allow_other_name(&new.path, &old.path)?;
            self.allow_contents(&new, &old)?;
        }
        self.allow_other_name(&old.path, &new.path)?;
        let moved = reads::Moved::look(self, &old);
        let renamed = rustix::fs::renameat_with(&old.directory, &old.name, &new.directory, &new.name, flags);
        if renamed.is_ok() {
            self.note_own(moved, &new.path);
        }
        self.done(renamed, &new, "write")
    }

    /// What a directory contains may become protected by its new name: `x/settings.json` by renaming `x`.
    fn allow_contents(&mut self, old: &Name, new: &Name) -> Result<(), Errno> {
        let Ok(stat) = rustix::fs::statat(&old.directory, &old.name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.allow_link(new),
            FileType::Directory if !self.is_outside(&new.path) => {
                let protected = &self.guard.protected;
                // what is left alone in one place is not in another
                let moved_out =
                    is_in_repository(&old.path) || (protected.is_exempt(&old.path) && !protected.is_exempt(&new.path));
                let parent_holds = || new.path.parent().is_some_and(|parent| protected.holds(parent));
                let closed =
                    || is_in_repository(&new.path) || protected.holds(&new.path) || moved_out || parent_holds();
                if !self.guard.links || closed() {
                    let directory = open_directory(old)?;
                    let mut left = MOST_NAMES;
                    self.allow_tree(&directory, &new.path, &mut left)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Looks at everything below a directory as if it lay at `path`.
    fn allow_tree(&mut self, directory: &OwnedFd, path: &Path, left: &mut usize) -> Result<(), Errno> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            *left = left.checked_sub(1).ok_or(Errno::ACCESS)?;
            let below = path.join(OsStr::from_bytes(entry.file_name().to_bytes()));
            self.allow(&below, "write")?;
            let stat = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            let closed = || !self.guard.links || is_in_repository(&below) || self.guard.protected.holds(&below);
            if is_link && closed() {
                self.hold_back("write", below.display().to_string(), "protected");
                return Err(Errno::ACCESS);
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(directory, entry.file_name(), flags, Mode::empty()) {
                Ok(inner) => self.allow_tree(&inner, &below, left)?,
                Err(Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn remove(&mut self, call: &Notification, directory: i32, index: usize, flags: AtFlags) -> Result<Done, Errno> {
        let name = self.name(call, directory, index)?;
        self.allow(&name.path, "delete")?;
        let removed = rustix::fs::unlinkat(&name.directory, &name.name, flags);
        self.done(removed, &name, "delete")
    }

    fn truncate(&mut self, call: &Notification) -> Result<Done, Errno> {
        let length = long(call, 1);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match self.find(call, libc::AT_FDCWD, 0, Last::Followed)? {
            Target::Descriptor(found) => {
                self.allow_descriptor(&found)?;
                rustix::fs::open(link_to(&found), flags, Mode::empty())?
            }
            Target::Named(name) => {
                self.allow(&name.path, "write")?;
                self.allow_named_file(&name)?;
                let opened = rustix::fs::openat(&name.directory, &name.name, flags | OFlags::NOFOLLOW, Mode::empty());
                opened.map_err(|error| self.explained(error, &name, "write"))?
            }
        };
        if i64::try_from(length).is_err() {
            return Err(Errno::INVAL);
        }
        rustix::fs::ftruncate(&file, length)?;
        Ok(Done::Value(0))
    }

    fn change_mode(
        &mut self,
        call: &Notification,
        from: i32,
        index: usize,
        mode: i32,
        flags: i32,
    ) -> Result<Done, Errno> {
        let mode = harmless_mode(mode)?;
        let path = self.path(call, long(call, index))?;
        if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            return Err(Errno::NOSYS);
        }
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW == 0 { Last::Followed } else { Last::Kept };
        match path::find(thread(call), from, &path, last)? {
            Target::Descriptor(found) => {
                let path = self.allow_descriptor(&found)?;
                self.change_mode_of(&found, &path, mode)
            }
            Target::Named(name) => {
                self.allow(&name.path, "write")?;
                self.allow_named_file(&name)?;
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = rustix::fs::openat(&name.directory, &name.name, flags, Mode::empty())?;
                if FileType::from_raw_mode(status(&found)?.st_mode) == FileType::Symlink {
                    return Err(Errno::OPNOTSUPP);
                }
                let changed = self.change_mode_of(&found, &name.path, mode).map(drop);
                self.done(changed, &name, "write")
            }
        }
    }

    fn change_mode_of_descriptor(&mut self, call: &Notification) -> Result<Done, Errno> {
        let mode = harmless_mode(int(call, 1))?;
        let link = format!("/proc/{}/fd/{}", thread(call), int(call, 0));
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::open(link, flags, Mode::empty()).map_err(|_| Errno::BADF)?;
        if !system::still_waits(self.listener.as_fd(), call.id) {
            return Err(Errno::SRCH);
        }
        let path = self.allow_descriptor(&found)?;
        self.change_mode_of(&found, &path, mode)
    }

    /// Changes the mode of a file where files may be changed. What was inherited lies elsewhere.
    fn change_mode_of(&self, found: &OwnedFd, path: &Path, mode: Mode) -> Result<Done, Errno> {
        if !self.is_changeable(path) {
            return Err(Errno::PERM);
        }
        rustix::fs::chmod(link_to(found), mode)?;
        Ok(Done::Value(0))
    }
}

fn harmless_mode(mode: i32) -> Result<Mode, Errno> {
    let mode = mode.cast_unsigned() & 0o7777;
    if mode & SET_ID != 0 { Err(Errno::PERM) } else { Ok(Mode::from_raw_mode(mode)) }
}

/// A path as the kernel takes it.
pub(super) fn text(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

/// The path under which this process can open what it holds once more.
pub(super) fn link_to(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

fn status(descriptor: &OwnedFd) -> Result<Stat, Errno> {
    rustix::fs::fstat(descriptor)
}

fn kind(name: &Name) -> Option<FileType> {
    let stat = rustix::fs::statat(&name.directory, &name.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn is_pipe(name: &Name) -> bool {
    kind(name) == Some(FileType::Fifo)
}

fn is_link(name: &Name) -> bool {
    kind(name) == Some(FileType::Symlink)
}

fn open_directory(name: &Name) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&name.directory, &name.name, flags, Mode::empty())
}

/// A field of `/proc/PID/status`.
pub(super) fn status_field(thread: i32, name: &CStr) -> Option<String> {
    let path = format!("/proc/{thread}/status");
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0_u8; 512];
    let length = rustix::io::read(&file, &mut buffer).ok()?;
    let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
    let name = name.to_str().ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// Whether a thread has a controlling terminal.
fn has_terminal(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything, so what follows the last one is counted.
    let terminal = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(4)?.parse::<i32>().ok());
    terminal.is_some_and(|number| number != 0)
}
