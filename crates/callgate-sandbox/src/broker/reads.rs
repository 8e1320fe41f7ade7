//! Reading, where secrets are hidden in the roots.
//!
//! A hidden file is covered by an empty one. If somebody outside puts another file in its place, as editors do when they save, the
//! kernel takes the cover away, and if somebody makes a new file with such a name, it has none. So where a secret was found, every
//! open that gives contents is handed to the broker. It holds what the name means, looks at the path that it has at this moment,
//! and opens it for the program unless that path is a secret's. What the call itself has made under such a name it may read.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use callgate_model::fence::Globs;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::path::{self, Last, Name, Target};
use super::{Broker, Done, files, int, thread};
use crate::survey::TellingNames;
use crate::system::{self, Notification};

/// Opening with one of these may change something.
const CHANGING: i32 = crate::filter::CHANGING;

/// What of `/proc/1` the kernel shows to everybody. The rest is about the broker itself.
const SHOWN_OF_BROKER: &[&str] = &["stat", "statm", "status", "cmdline", "comm", "cgroup"];

/// Device, inode and the time of birth of a file.
type Identity = ((u32, u32), u64, i64, u32);

/// Names that are hidden in the roots.
pub struct Secrets {
    names: TellingNames<'static>,
    /// Files with such names that the call has made.
    own: HashSet<Identity>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Secrets").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Secrets {
    /// The names that globs mean; `None` if there are no globs.
    pub fn new(globs: &Globs) -> Option<Self> {
        globs.iter().next()?;
        // The first process of a sandbox serves one call and ends with it.
        let globs: &'static Globs = Box::leak(Box::new(globs.clone()));
        Some(Secrets { names: TellingNames::new(globs.iter().collect()), own: HashSet::new() })
    }

    /// Whether a path below a root is a secret's, by its own name or by that of a directory above it.
    fn cover(&self, path: &Path, root: &Path) -> bool {
        let below = path.ancestors().take_while(|above| *above != root);
        below.enumerate().any(|(height, path)| self.names.covers(path, height > 0)) || self.names.covers(path, true)
    }
}

/// A file that is about to get another name, if it is the call's own or has no secret's name now.
pub(super) struct Moved(Option<Identity>);

impl Moved {
    pub(super) fn look(broker: &Broker, old: &Name) -> Self {
        let found = broker.guard.secrets.as_ref().and_then(|_| identity(&old.directory, &old.name));
        let is_own = !broker.is_secret(&old.path) || broker.is_harmless(found);
        Moved(found.filter(|(_, is_covered)| is_own && !is_covered).map(|(identity, _)| identity))
    }
}

/// Whether a call only opens something for reading.
pub fn only_reads(call: &Notification) -> bool {
    match libc::c_long::from(call.number) {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => only_looks(int(call, 1)),
        libc::SYS_openat => only_looks(int(call, 2)),
        _ => false,
    }
}

/// Whether flags of an open change nothing.
pub fn only_looks(flags: i32) -> bool {
    flags & CHANGING == 0
}

/// What tells a file apart from one that gets its number later, and whether something covers it.
fn identity(directory: impl AsFd, name: &std::ffi::CStr) -> Option<(Identity, bool)> {
    let wanted = StatxFlags::BTIME | StatxFlags::INO;
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let stat = rustix::fs::statx(directory, name, flags, wanted).ok()?;
    let identity =
        ((stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino, stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
    Some((identity, stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)))
}

impl Broker {
    fn is_secret(&self, path: &Path) -> bool {
        let Some(secrets) = &self.guard.secrets else { return false };
        self.guard.roots.iter().any(|root| path.starts_with(root) && secrets.cover(path, root))
    }

    /// Whether a file with the name of a secret is the call's own, or covered.
    fn is_harmless(&self, found: Option<(Identity, bool)>) -> bool {
        let own = |identity| self.guard.secrets.as_ref().is_some_and(|secrets| secrets.own.contains(&identity));
        found.is_none_or(|(identity, is_covered)| is_covered || own(identity))
    }

    /// Refuses to touch a secret that somebody else has made since the call started.
    pub(super) fn allow_secret(&mut self, path: &Path, action: &str) -> Result<(), Errno> {
        if !self.is_secret(path) {
            return Ok(());
        }
        let name = files::text(path)?;
        if self.is_harmless(identity(CWD, &name)) {
            return Ok(());
        }
        self.hold_back(action, path.display().to_string(), "secrets");
        Err(Errno::ACCESS)
    }

    /// Refuses to move a directory by whose name something in it is a secret.
    pub(super) fn allow_moving(&mut self, name: &Name) -> Result<(), Errno> {
        let is_directory = || {
            let stat = rustix::fs::statat(&name.directory, &name.name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
        };
        let holds = |secrets: &Secrets| is_directory() && secrets.names.list().holds(&name.path);
        if self.guard.secrets.as_ref().is_some_and(holds) && !self.is_outside(&name.path) {
            self.hold_back("write", name.path.display().to_string(), "secrets");
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Whether a name of a secret is free, so that what is made there is the call's own.
    pub(super) fn is_free_secret(&self, name: &Name) -> bool {
        self.is_secret(&name.path) && identity(&name.directory, &name.name).is_none()
    }

    /// Refuses to give a secret another kind of name. Whose file it is could change between the look and the move, and under the name
    /// of a secret it is looked at again when it is read.
    pub(super) fn allow_other_name(&mut self, old: &Path, new: &Path) -> Result<(), Errno> {
        if self.is_secret(old) && !self.is_secret(new) {
            self.hold_back("write", old.display().to_string(), "secrets");
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Notes that a file which gets the name of a secret is the call's own: the one that was looked at before.
    pub(super) fn note_own(&mut self, moved: Moved, new: &Path) {
        if self.is_secret(new)
            && let Some(identity) = moved.0
            && let Some(secrets) = &mut self.guard.secrets
        {
            secrets.own.insert(identity);
        }
    }

    /// Refuses what was opened for writing if it is a secret that somebody else has put there meanwhile.
    pub(super) fn allow_opened(&mut self, opened: &OwnedFd, name: &Name, is_own: bool) -> Result<(), Errno> {
        if !self.is_secret(&name.path) {
            return Ok(());
        }
        let found = identity(opened, c"");
        if is_own {
            self.note_own(Moved(found.map(|(identity, _)| identity)), &name.path);
        } else if !self.is_harmless(found) {
            self.hold_back("write", name.path.display().to_string(), "secrets");
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Opens a file for reading, as the kernel would for the program.
    pub(super) fn open_to_read(
        &mut self,
        call: &Notification,
        directory: i32,
        index: usize,
        wanted: OFlags,
        last: Last,
    ) -> Result<Done, Errno> {
        let close_on_exec = wanted.contains(OFlags::CLOEXEC);
        let text = self.path(call, super::long(call, index))?;
        let held = match path::find_to_read(thread(call), directory, &text, last)? {
            Target::Descriptor(found) => {
                self.allow_reading(&found, None)?;
                found
            }
            Target::Named(name) => {
                if name.path == Path::new("/dev/tty") {
                    return self.open_terminal(call, wanted | OFlags::CLOEXEC, close_on_exec);
                }
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = rustix::fs::openat(&name.directory, &name.name, flags, Mode::empty())?;
                self.allow_reading(&found, Some(&name.path))?;
                found
            }
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
        if kind == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        // What was kept is no link, so that following this one's own link leads to nothing else.
        let again = wanted.difference(OFlags::NOFOLLOW) | OFlags::CLOEXEC | OFlags::NOCTTY;
        if kind == FileType::Fifo && !wanted.contains(OFlags::NONBLOCK) {
            return self.wait_for_writer(call, held, again, close_on_exec);
        }
        let descriptor = rustix::fs::open(files::link_to(&held), again | OFlags::NONBLOCK, Mode::empty())?;
        if !wanted.contains(OFlags::NONBLOCK) {
            let set = rustix::fs::fcntl_getfl(&descriptor)?;
            rustix::fs::fcntl_setfl(&descriptor, set.difference(OFlags::NONBLOCK))?;
        }
        Ok(Done::Descriptor { descriptor, close_on_exec })
    }

    /// Refuses to read a secret, and what concerns this process.
    fn allow_reading(&mut self, found: &OwnedFd, named: Option<&Path>) -> Result<(), Errno> {
        let path = path::path_of(found)?;
        if let Ok(inside) = path.strip_prefix("/proc") {
            let mut parts = inside.components().filter_map(|part| part.as_os_str().to_str());
            let process = parts.next().and_then(|first| files::status_field(first.parse().ok()?, c"Tgid:"));
            let is_shown = parts.next().is_some_and(|name| SHOWN_OF_BROKER.contains(&name)) && parts.next().is_none();
            let own = rustix::process::getpid().as_raw_nonzero().get();
            return if process == Some(own.to_string()) && !is_shown { Err(Errno::ACCESS) } else { Ok(()) };
        }
        let is_secret = self.is_secret(&path) || named.is_some_and(|named| self.is_secret(named));
        if is_secret && !self.is_harmless(identity(found, c"")) {
            self.hold_back("read", named.unwrap_or(&path).display().to_string(), "secrets");
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Opens a pipe that nobody may be writing to yet: the program waits, and nobody else must wait for it.
    fn wait_for_writer(
        &self,
        call: &Notification,
        pipe: OwnedFd,
        flags: OFlags,
        close_on_exec: bool,
    ) -> Result<Done, Errno> {
        let (listener, id) = (Arc::clone(&self.listener), call.id);
        let wait = move || {
            // It ends with the sandbox at the latest.
            let answered = rustix::fs::open(files::link_to(&pipe), flags, Mode::empty())
                .map_err(Errno::raw_os_error)
                .and_then(|descriptor| {
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
}
