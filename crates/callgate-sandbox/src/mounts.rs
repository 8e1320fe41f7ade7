//! Puts the file system of a sandbox together.
//!
//! The root is a file system in memory that only the sandbox has. What the sandbox sees of the host is attached to it by
//! descriptor: every path is followed once, without links. Mount points are made in memory only; nothing is made on the host.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::order::{HiddenPath, Mount, MountKind, Order};
use crate::scripts;
use crate::system::{MOUNT_NO_DEVICES, MOUNT_NO_SETUID, MOUNT_READ_ONLY, set_mount_attributes};

/// The devices that programs need.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Links that programs expect in `/dev`.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];
/// Directories that every sandbox has for itself.
const OWN_DIRECTORIES: &[(&str, u32)] = &[
    ("/tmp", 0o1777),
    ("/var/tmp", 0o1777),
    ("/dev/shm", 0o1777),
    ("/run", 0o755),
    ("/dev/pts", 0o755),
    ("/proc", 0o555),
];
/// What of `/proc` concerns the whole machine and can be written.
pub const OF_THE_MACHINE: &[&str] =
    &["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"];
/// What of `/proc` is hidden.
pub const NOT_SHOWN: &[&str] = &["/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/kallsyms"];

/// Where the new root lies while it is put together. Nothing below it is ever shown of the host.
const COVERED: &str = "/proc";

/// The empty file in the new root, while it is attached to what it hides.
const NOTHING: &str = ".nothing";

/// A step of the set-up that failed.
#[derive(Debug)]
pub struct Failure {
    /// The step, in words.
    pub step: String,
    /// Why.
    pub error: io::Error,
}

/// Names a step.
pub trait Step<T> {
    /// The result, with the step that failed.
    fn step(self, step: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure { step: step(), error: error.into() })
    }
}

/// The new root while it is put together.
pub struct Root {
    /// Its descriptor.
    root: OwnedFd,
    /// Its device.
    device: u64,
    /// Where callgate itself lies, looked up before `/proc` is covered.
    program: Option<PathBuf>,
}

fn read_only(kind: &MountKind) -> u64 {
    if *kind == MountKind::ReadOnly { MOUNT_READ_ONLY } else { 0 }
}

/// A detached copy of a directory or file of the host, with what is mounted below it.
fn clone_tree(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(&place, "", flags)
}

/// The path of the program that runs, if it still is that program.
pub fn own_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let (running, named) = (std::fs::metadata("/proc/self/exe")?, std::fs::metadata(&path)?);
    if (running.dev(), running.ino()) == (named.dev(), named.ino()) {
        Ok(path)
    } else {
        Err(io::Error::other(format!("{} was replaced while it runs", path.display())))
    }
}

fn take(mount: &Mount) -> Result<Option<OwnedFd>, Failure> {
    let found = match &mount.kind {
        MountKind::Writable | MountKind::ReadOnly => clone_tree(&mount.path),
        // where the kernel has no such layers, the cache can only be read
        MountKind::Layer { upper, work } => layer(&mount.path, upper, work).or_else(|_| {
            let tree = clone_tree(&mount.path)?;
            set_mount_attributes(tree.as_fd(), MOUNT_READ_ONLY).map_err(|error| errno(&error))?;
            Ok(tree)
        }),
    };
    match found {
        Ok(tree) => Ok(Some(tree)),
        // what may be read may vanish meanwhile; what may be written must be there
        Err(Errno::NOENT) if mount.kind == MountKind::ReadOnly => Ok(None),
        Err(error) => Err(error).step(|| format!("find {}", mount.path.display())),
    }
}

fn layer(lower: &Path, upper: &Path, work: &Path) -> Result<OwnedFd, Errno> {
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(overlay.as_fd(), "lowerdir", lower)?;
    fsconfig_set_string(overlay.as_fd(), "upperdir", upper)?;
    fsconfig_set_string(overlay.as_fd(), "workdir", work)?;
    rustix::mount::fsconfig_set_flag(overlay.as_fd(), "userxattr")?;
    fsconfig_create(overlay.as_fd())?;
    fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

fn in_memory(options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let memory = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(memory.as_fd(), *key, *value)?;
    }
    fsconfig_create(memory.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(memory.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// What the kernel tells about the machine, with the network interfaces of this namespace only.
fn own_system() -> Result<OwnedFd, Errno> {
    let system = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(system.as_fd())?;
    fsmount(system.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn onto(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", place, "", flags)
}

impl Root {
    /// Puts together what every sandbox has, whatever it is for. Only for the first process of new user, mount and process namespaces.
    pub fn begin() -> Result<Self, Failure> {
        let root = Root::new()?;
        for (path, mode) in OWN_DIRECTORIES {
            let directory = root.directory(Path::new(path))?;
            rustix::fs::chmodat(&directory, ".", Mode::from_raw_mode(*mode), AtFlags::empty())
                .step(|| format!("set the mode of {path}"))?;
        }
        for (path, target) in DEVICE_LINKS {
            root.link(Path::new(path), Path::new(target))?;
        }
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            let tree = clone_tree(&path).step(|| format!("find /dev/{name}"))?;
            root.attach(&path, &tree, MOUNT_NO_SETUID | MOUNT_READ_ONLY)?;
        }
        if let Ok(tree) = own_system().or_else(|_| clone_tree(Path::new("/sys"))) {
            root.attach(Path::new("/sys"), &tree, MOUNT_NO_SETUID | MOUNT_NO_DEVICES | MOUNT_READ_ONLY)?;
        }
        root.processes()?;
        root.terminals()?;
        Ok(root)
    }

    /// Adds what an order names, and makes this the root of the process.
    pub fn enter(self, order: &Order) -> Result<(), Failure> {
        for path in &order.private {
            self.directory(path)?;
        }
        for (path, target) in &order.links {
            self.link(path, target)?;
        }
        for mount in &order.mounts {
            if let Some(tree) = take(mount)? {
                self.attach(&mount.path, &tree, MOUNT_NO_SETUID | MOUNT_NO_DEVICES | read_only(&mount.kind))?;
            }
        }
        if order.scripts {
            let program = self.program.as_deref().ok_or(Errno::NOENT);
            let tree = program.and_then(clone_tree).step(|| "find callgate itself".to_owned())?;
            self.attach(Path::new(scripts::PLACE), &tree, MOUNT_NO_SETUID | MOUNT_NO_DEVICES | MOUNT_READ_ONLY)?;
        }
        self.hide_secrets(&order.hidden)?;
        self.replace(&order.files)?;
        self.change()
    }

    fn new() -> Result<Self, Failure> {
        let memory = in_memory(&[("mode", "0755")]).step(|| "make a file system in memory".to_owned())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let program = own_program().ok();
        // It covers a directory of which a sandbox sees nothing, for this process only.
        let place = rustix::fs::open(COVERED, flags, Mode::empty()).step(|| format!("open {COVERED}"))?;
        onto(&memory, &place).step(|| "attach the new root".to_owned())?;
        let device = rustix::fs::fstat(&memory).step(|| "look at the new root".to_owned())?.st_dev;
        Ok(Root { root: memory, device, program })
    }

    fn link(&self, path: &Path, target: &Path) -> Result<(), Failure> {
        let parent = self.directory(path.parent().unwrap_or(Path::new("/")))?;
        match rustix::fs::symlinkat(target, &parent, path.file_name().unwrap_or_default()) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error).step(|| format!("make the link {}", path.display())),
        }
    }

    /// Opens a directory of the new root; what is missing is made, in memory only.
    fn directory(&self, path: &Path) -> Result<OwnedFd, Failure> {
        self.place(path, true)
    }

    fn place(&self, path: &Path, is_directory: bool) -> Result<OwnedFd, Failure> {
        let step = || format!("make a place for {}", path.display());
        // Mounts in between are entered, links are not followed.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let open =
            |at: &OwnedFd, name: &Path| rustix::fs::openat2(at, name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let (Some(name), Some(parent)) = (path.file_name().map(Path::new), path.parent()) else {
            return self.root.try_clone().step(step);
        };
        match open(&self.root, path.strip_prefix("/").unwrap_or(path)) {
            Err(Errno::NOENT) => {}
            found => return found.step(step),
        }
        let parent = self.place(parent, true)?;
        self.is_ours(&parent).step(step)?;
        if is_directory {
            rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)).step(step)?;
        } else {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o444)).step(step)?;
        }
        open(&parent, name).step(step)
    }

    /// Fails if a directory is one of the host: nothing is ever made there.
    fn is_ours(&self, directory: &OwnedFd) -> Result<(), Errno> {
        if rustix::fs::fstat(directory)?.st_dev == self.device { Ok(()) } else { Err(Errno::ROFS) }
    }

    fn attach(&self, path: &Path, tree: &OwnedFd, attributes: u64) -> Result<(), Failure> {
        let kind = rustix::fs::fstat(tree).step(|| format!("look at {}", path.display()))?;
        let is_directory = rustix::fs::FileType::from_raw_mode(kind.st_mode).is_dir();
        let place = self.place(path, is_directory)?;
        set_mount_attributes(tree.as_fd(), attributes).step(|| format!("protect {}", path.display()))?;
        onto(tree, &place).step(|| format!("attach {}", path.display()))
    }

    /// The processes of the sandbox, without what concerns the machine.
    fn processes(&self) -> Result<(), Failure> {
        let step = || "mount /proc".to_owned();
        let processes = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC).step(step)?;
        fsconfig_create(processes.as_fd()).step(step)?;
        let attributes =
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let tree = fsmount(processes.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).step(step)?;
        onto(&tree, &self.directory(Path::new("/proc"))?).step(step)?;
        for path in OF_THE_MACHINE {
            let Some(place) = self.existing(Path::new(path)) else { continue };
            let flags =
                OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
            let tree = open_tree(&place, "", flags).step(|| format!("find {path}"))?;
            set_mount_attributes(tree.as_fd(), MOUNT_READ_ONLY | MOUNT_NO_SETUID).step(|| format!("protect {path}"))?;
            onto(&tree, &place).step(|| format!("attach {path}"))?;
        }
        self.hide(&NOT_SHOWN.iter().map(PathBuf::from).collect::<Vec<_>>())
    }

    /// Terminals of the sandbox's own.
    fn terminals(&self) -> Result<(), Failure> {
        let step = || "mount /dev/pts".to_owned();
        let terminals = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC).step(step)?;
        for (key, value) in [("ptmxmode", "0666"), ("mode", "0620")] {
            fsconfig_set_string(terminals.as_fd(), key, value).step(step)?;
        }
        fsconfig_create(terminals.as_fd()).step(step)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let tree = fsmount(terminals.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).step(step)?;
        onto(&tree, &self.directory(Path::new("/dev/pts"))?).step(step)
    }

    fn existing(&self, path: &Path) -> Option<OwnedFd> {
        let relative = path.strip_prefix("/").ok()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, relative, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
    }

    /// Hides what was found before the start. If it is no longer there, somebody has moved it.
    fn hide_secrets(&self, hidden: &[HiddenPath]) -> Result<(), Failure> {
        for HiddenPath { path, identity } in hidden {
            let place = self.existing(path);
            // In a layer files have other numbers, and contained calls do not move what lies outside the roots.
            let Some((device, inode)) = identity else {
                if let Some(place) = place {
                    self.cover(path, &place)?;
                }
                continue;
            };
            let stat = place.as_ref().and_then(|place| rustix::fs::fstat(place).ok());
            match place.filter(|_| stat.is_some_and(|stat| (stat.st_dev, stat.st_ino) == (*device, *inode))) {
                Some(place) => self.cover(path, &place)?,
                None => {
                    let moved = io::Error::other("it was moved meanwhile; run the command again");
                    return Err(Failure { step: format!("hide {}", path.display()), error: moved });
                }
            }
        }
        Ok(())
    }

    /// Covers files and directories by empty ones, so that programs which expect them find nothing in them.
    fn hide(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        for path in paths {
            if let Some(place) = self.existing(path) {
                self.cover(path, &place)?;
            }
        }
        Ok(())
    }

    fn cover(&self, path: &Path, place: &OwnedFd) -> Result<(), Failure> {
        let step = || format!("hide {}", path.display());
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(place).step(step)?.st_mode);
        if kind.is_dir() {
            let empty = in_memory(&[("mode", "0555"), ("size", "4096"), ("nr_inodes", "2")]).step(step)?;
            set_mount_attributes(empty.as_fd(), MOUNT_READ_ONLY).step(step)?;
            return onto(&empty, place).step(step);
        }
        let nothing = self.nothing().step(step)?;
        onto(&nothing, place).step(step)?;
        rustix::fs::unlinkat(&self.root, NOTHING, AtFlags::empty()).step(step)
    }

    /// Puts files of the sandbox's own in the place of the host's.
    fn replace(&self, files: &[(PathBuf, String)]) -> Result<(), Failure> {
        for (number, (path, text)) in files.iter().enumerate() {
            let step = || format!("make {}", path.display());
            let name = format!(".file-{number}");
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.root, &name, flags, Mode::from_raw_mode(0o644)).step(step)?;
            rustix::io::write(&file, text.as_bytes()).step(step)?;
            let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            let tree = open_tree(&self.root, &name, flags).step(step)?;
            self.attach(path, &tree, MOUNT_READ_ONLY)?;
            rustix::fs::unlinkat(&self.root, &name, AtFlags::empty()).step(step)?;
        }
        Ok(())
    }

    /// An empty file that cannot be changed.
    fn nothing(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::CREATE | OFlags::CLOEXEC | OFlags::RDONLY;
        drop(rustix::fs::openat(&self.root, NOTHING, flags, Mode::from_raw_mode(0o444))?);
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(&self.root, NOTHING, flags)?;
        set_mount_attributes(tree.as_fd(), MOUNT_READ_ONLY).map_err(|error| errno(&error))?;
        Ok(tree)
    }

    /// Makes this the root of the process and lets go of the old one.
    fn change(self) -> Result<(), Failure> {
        let step = || "change the root".to_owned();
        rustix::process::fchdir(&self.root).step(step)?;
        rustix::process::pivot_root(".", ".").step(step)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).step(step)?;
        rustix::process::chdir("/").step(step)
    }
}
