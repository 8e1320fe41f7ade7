//! The system's bubblewrap: makes the namespaces and mounts on machines where nobody else may.
//!
//! It gets the same layout as [`crate::mounts`], as words, and starts the stage inside as the first process. Bubblewrap finds
//! everything by path, so the stage compares what it sees with what the supervisor saw before anything is started.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, MemfdFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::denied::Denied;
use crate::mounts::{Failure, NOT_SHOWN, OF_THE_MACHINE, Step, own_program};
use crate::order::{HiddenPath, MountKind, Order, STAGE, Seen};
use crate::scripts;

/// Where bubblewrap is looked for. `PATH` does not count: whoever sets it would choose the sandbox.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
/// Where the stage lies inside. The root directory is in memory, so nothing is made on the host.
const STAGE_PLACE: &str = "/.callgate-stage";
/// The most words that bubblewrap takes.
const MOST_WORDS: usize = 9000;
/// The first version with everything that is used here.
const OLDEST: Version = Version(0, 5, 0);
/// The first version that follows no link while it makes a mount point (CVE-2026-87766).
const SAFE_INSIDE_ROOTS: Version = Version(0, 12, 0);

/// A version of bubblewrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

impl Version {
    /// Reads `bubblewrap 0.8.0`.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().strip_prefix("bubblewrap ")?.split('.').map(|number| number.parse().ok());
        Some(Version(numbers.next()??, numbers.next()??, numbers.next().unwrap_or(Some(0))?))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Bubblewrap with everything that it needs to start a stage.
#[derive(Debug)]
pub struct Wrapper {
    program: PathBuf,
    words: File,
    /// Files that only the sandbox has. Bubblewrap inherits them.
    _files: Vec<OwnedFd>,
    messages: File,
}

impl Wrapper {
    /// Prepares bubblewrap for an order. What the stage must check is added to the order.
    pub fn new(order: &mut Order) -> Result<Self, Denied> {
        // Layers need rights that bubblewrap does not give: caches can only be read.
        for mount in order.mounts.iter_mut().filter(|mount| mount.kind != MountKind::Writable) {
            mount.kind = MountKind::ReadOnly;
        }
        let (program, setuid) = find(&order.roots)?;
        let version = version(&program)?;
        if version < OLDEST {
            return Err(Denied::new(format!("bubblewrap {version} is too old: callgate needs {OLDEST}"))
                .hint("install a newer bubblewrap"));
        }
        if version < SAFE_INSIDE_ROOTS
            && let Some(inside) = inside_roots(order).next()
        {
            let name = inside.display();
            return Err(Denied::new(format!(
                "bubblewrap {version} cannot cover {name}, because contained calls can write next to it: before \
                 {SAFE_INSIDE_ROOTS} bubblewrap follows links there and creates files elsewhere (CVE-2026-87766)"
            ))
            .hint(format!(
                "install bubblewrap {SAFE_INSIDE_ROOTS}, move the file out of the project, or let callgate make namespaces \
                 itself: `callgate doctor` says how"
            )));
        }
        look(order)?;
        let failed = |error: io::Error| Denied::new(format!("cannot prepare bubblewrap: {error}"));
        let mut files = Vec::new();
        let words = words(order, setuid, &mut files)?;
        let count = words.iter().filter(|byte| **byte == 0).count();
        if count >= MOST_WORDS {
            return Err(Denied::new("there is more to mount and to hide than bubblewrap can be told")
                .hint("leave names that hold no secrets out of `@secrets`, or name fewer roots"));
        }
        let words = in_memory("words", &words, MemfdFlags::CLOEXEC).map_err(failed)?;
        let messages = in_memory("messages", b"", MemfdFlags::CLOEXEC).map_err(failed)?;
        Ok(Wrapper { program, words, _files: files, messages })
    }

    /// The command that starts the stage. Its standard input is left to the caller.
    pub fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        // The words come through standard output, which bubblewrap closes after it has read them.
        command.args(["--args", "1", "--", STAGE_PLACE, STAGE]).env_clear().current_dir("/");
        command.stdout(Stdio::from(self.words.try_clone()?)).stderr(Stdio::from(self.messages.try_clone()?));
        Ok(command)
    }

    /// What bubblewrap said, if it said something.
    pub fn said(&mut self) -> Option<String> {
        let mut text = String::new();
        self.messages.rewind().ok()?;
        Read::by_ref(&mut self.messages).take(4096).read_to_string(&mut text).ok()?;
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(line.strip_prefix("bwrap: ").unwrap_or(line).to_owned())
    }
}

/// The program, and whether it has the rights of root by its mode. Nobody but root may have been able to change it.
fn find(roots: &[PathBuf]) -> Result<(PathBuf, bool), Denied> {
    let mut reason = "bubblewrap is not installed".to_owned();
    for place in PLACES {
        let Ok(path) = std::fs::canonicalize(place) else { continue };
        if let Some(root) = roots.iter().find(|root| path.starts_with(root)) {
            reason = format!("{} is not used, because contained calls can write {}", path.display(), root.display());
            continue;
        }
        let is_root_s = |part: &&Path| part.metadata().is_ok_and(|data| data.uid() == 0 && data.mode() & 0o022 == 0);
        if let Some(part) = path.ancestors().find(|part| !is_root_s(part)) {
            reason = format!(
                "{} is not used, because {} does not belong to root alone, as far as this user can see",
                path.display(),
                part.display()
            );
            continue;
        }
        let setuid = path.metadata().is_ok_and(|data| data.mode() & 0o4000 != 0);
        return Ok((path, setuid));
    }
    Err(Denied::new(reason).hint("install the package `bubblewrap`"))
}

fn version(program: &Path) -> Result<Version, Denied> {
    let output = Command::new(program).arg("--version").env_clear().current_dir("/").stdin(Stdio::null()).output();
    let text = output.map_err(|error| Denied::new(format!("cannot start {}: {error}", program.display())))?.stdout;
    let text = String::from_utf8_lossy(&text);
    Version::parse(&text).ok_or_else(|| Denied::new(format!("{} does not say its version", program.display())))
}

/// What would have to be mounted at a place that contained calls can change.
fn inside_roots(order: &Order) -> impl Iterator<Item = &Path> {
    let writable: BTreeSet<&Path> = order
        .mounts
        .iter()
        .filter(|mount| mount.kind == MountKind::Writable)
        .map(|mount| mount.path.as_path())
        .collect();
    let mounts = order.mounts.iter().map(|mount| mount.path.as_path());
    let files = order.files.iter().map(|(path, _)| path.as_path());
    let places = mounts.chain(order.hidden.iter().map(|hidden| hidden.path.as_path())).chain(files);
    places.filter(move |path| path.ancestors().skip(1).any(|above| writable.contains(above)))
}

/// Notes what each mount is, followed without links, for the stage to compare.
fn look(order: &mut Order) -> Result<(), Denied> {
    let covered: BTreeSet<&Path> = order
        .hidden
        .iter()
        .map(|hidden| hidden.path.as_path())
        .chain(order.files.iter().map(|(path, _)| path.as_path()))
        .collect();
    let mut seen = Vec::new();
    for mount in &order.mounts {
        if mount.path.ancestors().any(|above| covered.contains(above)) {
            continue;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::openat2(CWD, &mount.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
            .and_then(rustix::fs::fstat)
        {
            Ok(stat) => seen.push(Seen { path: mount.path.clone(), device: stat.st_dev, inode: stat.st_ino }),
            // what may be read may vanish meanwhile; what may be written must be there
            Err(Errno::NOENT) if mount.kind != MountKind::Writable => {}
            Err(error) => return Err(Denied::new(format!("cannot find {}: {error}", mount.path.display()))),
        }
    }
    order.seen = seen;
    Ok(())
}

/// The words of bubblewrap, each with a zero byte behind it.
fn words(order: &Order, setuid: bool, files: &mut Vec<OwnedFd>) -> Result<Vec<u8>, Denied> {
    let failed = |error: io::Error| Denied::new(format!("cannot prepare bubblewrap: {error}"));
    let mut words = Words::default();
    words.add(&["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]);
    words.add(&["--die-with-parent", "--as-pid-1", "--chdir", "/", "--cap-drop", "ALL"]);
    // A bubblewrap with root's rights is there because users may make no user namespace.
    if !setuid {
        words.add(&["--unshare-user"]);
        // for the first process only: it looks into the others, and takes all rights away from them
        words.add(&["--cap-add", "CAP_SYS_PTRACE", "--cap-add", "CAP_SETPCAP"]);
    }
    for directory in ["/tmp", "/var/tmp"] {
        words.add(&["--perms", "1777", "--tmpfs", directory]);
    }
    words.add(&["--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--proc", "/proc"]);
    for path in OF_THE_MACHINE.iter().filter(|path| Path::new(path).is_dir()) {
        words.add(&["--ro-bind", path, path]);
    }
    for path in NOT_SHOWN.iter().filter(|path| Path::new(path).exists()) {
        // a device on a mount without devices: it cannot be opened
        words.add(&["--ro-bind", "/dev/null", path]);
    }
    words.add(&["--ro-bind-try", "/sys", "/sys", "--dir", "/run"]);
    let program = own_program().map_err(failed)?;
    words.path(&["--ro-bind"], &[&program, Path::new(STAGE_PLACE)]);
    if order.scripts {
        words.path(&["--ro-bind"], &[&program, Path::new(scripts::PLACE)]);
    }
    for path in &order.private {
        words.path(&["--dir"], &[path]);
    }
    let mounted: BTreeSet<&Path> = order.mounts.iter().map(|mount| mount.path.as_path()).collect();
    for (path, target) in &order.links {
        // what lies in something that is mounted is there already
        if !path.ancestors().any(|above| mounted.contains(above)) {
            words.path(&["--symlink"], &[target, path]);
        }
    }
    for mount in &order.mounts {
        let word = if mount.kind == MountKind::Writable { "--bind" } else { "--ro-bind-try" };
        words.path(&[word], &[&mount.path, &mount.path]);
    }
    let mut nothing = None;
    for HiddenPath { path, identity } in &order.hidden {
        let data = match (path.symlink_metadata(), identity) {
            (Ok(data), None) => data,
            (Ok(data), Some(identity)) if (data.dev(), data.ino()) == *identity => data,
            // what has vanished where contained calls move nothing needs no cover
            (Err(_), None) => continue,
            (_, Some(_)) => {
                return Err(Denied::new(format!("cannot hide {}: it was moved meanwhile", path.display()))
                    .hint("run the command again"));
            }
        };
        if data.is_dir() {
            words.path(&["--perms", "0555", "--tmpfs"], &[path]);
            words.path(&["--remount-ro"], &[path]);
        } else {
            let nothing = match &nothing {
                Some(nothing) => nothing,
                None => nothing.insert(empty_file().map_err(failed)?),
            };
            words.path(&["--ro-bind"], &[nothing, path]);
        }
    }
    for (path, text) in &order.files {
        let file = in_memory("file", text.as_bytes(), MemfdFlags::empty()).map_err(failed)?;
        words.path(&["--ro-bind-data", &file.as_raw_fd().to_string()], &[path]);
        files.push(file.into());
    }
    Ok(words.bytes)
}

#[derive(Default)]
struct Words {
    bytes: Vec<u8>,
}

impl Words {
    fn add(&mut self, words: &[&str]) {
        for word in words {
            self.bytes.extend_from_slice(word.as_bytes());
            self.bytes.push(0);
        }
    }

    /// An option and the paths that it takes. A path holds no zero byte.
    fn path(&mut self, option: &[&str], paths: &[&Path]) {
        self.add(option);
        for path in paths {
            self.bytes.extend_from_slice(path.as_os_str().as_bytes());
            self.bytes.push(0);
        }
    }
}

/// An empty file in callgate's own directory, which stands in for every file that is hidden.
fn empty_file() -> io::Result<PathBuf> {
    let directory =
        callgate_policy::directories::state().ok_or_else(|| io::Error::other("there is no home directory"))?;
    std::fs::create_dir_all(&directory)?;
    let path = std::fs::canonicalize(directory)?.join("empty");
    match OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let data = path.symlink_metadata()?;
    if data.is_file() && data.len() == 0 {
        Ok(path)
    } else {
        Err(io::Error::other(format!("{} is not an empty file; remove it", path.display())))
    }
}

fn in_memory(name: &str, text: &[u8], flags: MemfdFlags) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(name, flags)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

/// Compares what the sandbox sees with what the supervisor saw. Runs in the stage, before anything is started.
pub fn verify(order: &Order) -> Result<(), Failure> {
    if std::process::id() != 1 {
        return Err(io::Error::other("this is not the first process")).step(|| "check the sandbox".to_owned());
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = |path: &Path| rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    for seen in &order.seen {
        let step = || format!("check {}", seen.path.display());
        let stat = open(&seen.path).and_then(rustix::fs::fstat).step(step)?;
        if (stat.st_dev, stat.st_ino) != (seen.device, seen.inode) {
            return Err(io::Error::other("it was replaced while the sandbox was set up")).step(step);
        }
    }
    for mount in order.mounts.iter().filter(|mount| mount.kind != MountKind::Writable) {
        let step = || format!("check {}", mount.path.display());
        match open(&mount.path) {
            Ok(place) if !is_read_only(&place).step(step)? => {
                return Err(io::Error::other("it can be written")).step(step);
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error).step(step),
        }
    }
    for HiddenPath { path, identity } in &order.hidden {
        let step = || format!("hide {}", path.display());
        let place = match open(path) {
            Ok(place) => place,
            Err(Errno::NOENT) if identity.is_none() => continue,
            Err(error) => return Err(error).step(step),
        };
        let stat = rustix::fs::fstat(&place).step(step)?;
        let is_empty = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => std::fs::read_dir(path).step(step)?.next().is_none(),
            FileType::RegularFile => stat.st_size == 0,
            _ => false,
        };
        if !is_empty || !is_read_only(&place).step(step)? {
            return Err(io::Error::other("it is still seen")).step(step);
        }
    }
    Ok(())
}

fn is_read_only(place: &OwnedFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(place)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Mount;

    fn order(mounts: &[(&str, MountKind)]) -> Order {
        let mounts = mounts.iter().map(|(path, kind)| Mount { path: path.into(), kind: kind.clone() }).collect();
        Order { mounts, ..Order::default() }
    }

    fn text(order: &Order, setuid: bool) -> String {
        let words = words(order, setuid, &mut Vec::new()).unwrap();
        String::from_utf8(words).unwrap().replace('\0', " ")
    }

    #[test]
    fn versions_are_numbers() {
        assert_eq!(Version::parse("bubblewrap 0.8.0\n"), Some(Version(0, 8, 0)));
        assert_eq!(Version::parse("bubblewrap 0.12"), Some(Version(0, 12, 0)));
        assert!(Version::parse("bubblewrap 0.12.1").unwrap() > SAFE_INSIDE_ROOTS);
        assert!(Version::parse("bubblewrap 0.9.9").unwrap() < SAFE_INSIDE_ROOTS);
        for wrong in ["", "bubblewrap", "bubblewrap x.y", "0.8.0", "bubblewrap 0.8.x"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_lies_inside_a_root_needs_a_version_that_follows_no_link() {
        let mut order = order(&[("/p", MountKind::Writable), ("/usr", MountKind::ReadOnly)]);
        assert_eq!(inside_roots(&order).count(), 0);
        let hidden = |path: &str| HiddenPath { path: path.into(), identity: None };
        order.hidden = vec![hidden("/usr/secret"), hidden("/pp/.env")];
        assert_eq!(inside_roots(&order).count(), 0);
        order.hidden.push(hidden("/p/a/.env"));
        assert_eq!(inside_roots(&order).collect::<Vec<_>>(), [Path::new("/p/a/.env")]);
        order.hidden.clear();
        order.mounts.push(Mount { path: "/p/cache".into(), kind: MountKind::ReadOnly });
        assert_eq!(inside_roots(&order).collect::<Vec<_>>(), [Path::new("/p/cache")]);
    }

    #[test]
    fn words_say_what_the_layout_says() {
        let upper = MountKind::Layer { upper: "/u".into(), work: "/w".into() };
        let mut order = order(&[("/p", MountKind::Writable), ("/usr", MountKind::ReadOnly), ("/home/u/.cache", upper)]);
        order.links = vec![("/bin".into(), "usr/bin".into()), ("/p/link".into(), "x".into())];
        order.private = vec!["/home/u".into()];
        let words = text(&order, false);
        for expected in [
            "--unshare-ipc --unshare-pid --unshare-net --unshare-uts ",
            "--die-with-parent --as-pid-1 ",
            "--unshare-user ",
            "--cap-drop ALL ",
            "--dir /home/u ",
            "--symlink usr/bin /bin ",
            "--bind /p /p ",
            "--ro-bind-try /usr /usr ",
            "--ro-bind-try /home/u/.cache /home/u/.cache ",
        ] {
            assert!(words.contains(expected), "{expected}: {words}");
        }
        assert!(!words.contains("/p/link"), "{words}");
        // a bubblewrap that has root's rights refuses to give any away, and needs no user namespace
        assert!(!text(&order, true).contains("--cap-add") && !text(&order, true).contains("--unshare-user"));
    }

    #[test]
    fn a_path_is_one_word_whatever_is_in_it() {
        let order = order(&[("/p --dev-bind / /\n\"'", MountKind::Writable)]);
        let words = words(&order, false, &mut Vec::new()).unwrap();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        let at = words.iter().position(|word| *word == b"--bind").unwrap();
        assert_eq!(words[at + 1], "/p --dev-bind / /\n\"'".as_bytes());
    }

    #[test]
    fn a_program_below_a_root_is_not_used() {
        let denied = find(&["/".into()]).unwrap_err();
        assert!(denied.reason.contains("contained calls can write /") || denied.reason.contains("not installed"));
    }
}
