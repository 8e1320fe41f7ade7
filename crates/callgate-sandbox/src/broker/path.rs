//! Finds what a path of a contained process means, as the kernel would for that process, and holds it by descriptor.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::system;

/// How many symbolic links at the end of a path are followed, as in the kernel.
const MOST_LINKS: usize = 40;
/// The kernel's limit for a path, with its end.
const LONGEST_PATH: usize = 4096;
const PAGE: u64 = 4096;

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It stands for what it leads to.
    Followed,
    /// It stands for itself.
    Kept,
}

/// A name in a directory that is held by its descriptor.
#[derive(Debug)]
pub struct Name {
    /// The directory.
    pub directory: OwnedFd,
    /// The name in it; `.` for the directory itself.
    pub name: CString,
    /// The path that both have now.
    pub path: PathBuf,
}

/// What a path means.
#[derive(Debug)]
pub enum Target {
    /// A name in a directory, whether it exists or not.
    Named(Name),
    /// An open descriptor of a process: `/proc/self/fd/3`.
    Descriptor(OwnedFd),
}

/// Reads a path from the memory of a thread.
pub fn read_path(thread: i32, address: u64) -> Result<CString, Errno> {
    let mut path = Vec::new();
    let mut buffer = [0_u8; 4096];
    let mut address = address;
    // Page by page: what lies behind the end of the path may not be readable.
    while path.len() < LONGEST_PATH {
        let rest = usize::try_from(PAGE.saturating_sub(address % PAGE)).unwrap_or(1);
        let part = buffer.get_mut(..rest).ok_or(Errno::FAULT)?;
        let length = system::read_memory(thread, address, part).map_err(|_| Errno::FAULT)?;
        let read = part.get(..length).filter(|read| !read.is_empty()).ok_or(Errno::FAULT)?;
        match read.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(read.get(..end).unwrap_or_default());
                return CString::new(path).map_err(|_| Errno::INVAL);
            }
            None => path.extend_from_slice(read),
        }
        address = address.saturating_add(u64::try_from(length).unwrap_or(PAGE));
    }
    Err(Errno::NAMETOOLONG)
}

/// Where a descriptor of this process lies now.
pub fn path_of(descriptor: impl AsFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
}

/// Opens the directory that a relative path starts in.
fn start(thread: i32, directory: i32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let link = match directory {
        libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
        number if number >= 0 => format!("/proc/{thread}/fd/{number}"),
        _ => return Err(Errno::BADF),
    };
    rustix::fs::open(link, flags, Mode::empty())
        .map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
}

/// The links of `/proc` that lead to what a process has open, in a path of a contained process.
enum Magic<'a> {
    Descriptor { process: String, number: i32, rest: &'a [u8] },
    Directory { process: String, rest: &'a [u8] },
    Root { rest: &'a [u8] },
}

fn magic(thread: i32, path: &[u8]) -> Option<Magic<'_>> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i32>().ok();
    let own = || thread.to_string();
    let split = |text: &'static [u8]| {
        let rest = path.strip_prefix(text)?;
        (rest.is_empty() || rest.first() == Some(&b'/')).then(|| trimmed(rest))
    };
    for (name, standard) in [(b"/dev/stdin".as_slice(), 0), (b"/dev/stdout", 1), (b"/dev/stderr", 2)] {
        if let Some(rest) = split(name) {
            return Some(Magic::Descriptor { process: own(), number: standard, rest });
        }
    }
    let (process, inside) = if let Some(rest) = path.strip_prefix(b"/dev/fd/") {
        let (first, rest) = component(rest);
        return Some(Magic::Descriptor { process: own(), number: number(first)?, rest });
    } else {
        let rest = path.strip_prefix(b"/proc/")?;
        let (first, rest) = component(trimmed(rest));
        match first {
            b"self" | b"thread-self" => (own(), rest),
            digits => (number(digits)?.to_string(), rest),
        }
    };
    // `/proc/PID/task/TID/…` is the same for a thread.
    let (process, inside) = match component(inside) {
        (b"task", rest) => {
            let (thread, rest) = component(rest);
            (number(thread)?.to_string(), rest)
        }
        _ => (process, inside),
    };
    match component(inside) {
        (b"fd", rest) => {
            let (first, rest) = component(rest);
            Some(Magic::Descriptor { process, number: number(first)?, rest })
        }
        (b"cwd", rest) => Some(Magic::Directory { process, rest }),
        (b"root", rest) => Some(Magic::Root { rest }),
        _ => None,
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    path.get(slashes..).unwrap_or_default()
}

/// The first component of a relative path and what follows it.
fn component(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(end) => (path.get(..end).unwrap_or_default(), trimmed(path.get(end..).unwrap_or_default())),
        None => (path, &[]),
    }
}

/// Finds what a path of a thread means. `directory` is the descriptor that a relative path starts at. Below `/proc` it finds only
/// what concerns the thread itself.
pub fn find(thread: i32, directory: i32, path: &[u8], last: Last) -> Result<Target, Errno> {
    match find_to_read(thread, directory, path, last)? {
        Target::Named(name) => own_below_proc(thread, name).map(Target::Named),
        found @ Target::Descriptor(_) => Ok(found),
    }
}

/// The same for somebody who only reads. Below `/proc` it finds everything.
pub fn find_to_read(thread: i32, directory: i32, path: &[u8], last: Last) -> Result<Target, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut path = path.to_vec();
    let mut from: Option<OwnedFd> = None;
    for _ in 0..MOST_LINKS {
        // Absolute paths start at the root, which all processes of a sandbox share.
        if path.first() == Some(&b'/') {
            from = None;
            let cleaned = without_double_slashes(&path);
            match magic(thread, &cleaned) {
                Some(Magic::Descriptor { process, .. } | Magic::Directory { process, .. })
                    if !is_process_of(thread, &process) =>
                {
                    return Err(Errno::ACCESS);
                }
                Some(Magic::Descriptor { process, number, rest }) => {
                    let link = format!("/proc/{process}/fd/{number}");
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    if rest.is_empty() && last == Last::Followed {
                        return Ok(Target::Descriptor(rustix::fs::open(link, flags, Mode::empty())?));
                    }
                    if rest.is_empty() {
                        return Err(Errno::PERM);
                    }
                    from = Some(rustix::fs::open(link, flags, Mode::empty())?);
                    path = rest.to_vec();
                }
                Some(Magic::Directory { process, rest }) => {
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    from = Some(rustix::fs::open(format!("/proc/{process}/cwd"), flags, Mode::empty())?);
                    path = if rest.is_empty() { b".".to_vec() } else { rest.to_vec() };
                }
                Some(Magic::Root { rest }) => {
                    path = [b"/", rest].concat();
                    continue;
                }
                None => path = of_thread(thread, cleaned),
            }
        } else if from.is_none() {
            from = Some(start(thread, directory)?);
        }
        let (parent, name, is_directory) = split_last(&path);
        let parent = match (from.take(), parent) {
            (Some(directory), b".") => directory,
            (from, parent) => open_directory(from.as_ref(), parent)?,
        };
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        if last == Last::Followed && !matches!(name.as_bytes(), b"." | b"..") {
            match rustix::fs::readlinkat(&parent, &name, Vec::new()) {
                Ok(target) => {
                    let mut target = target.into_bytes();
                    if is_directory {
                        target.push(b'/');
                    }
                    // `/proc/mounts` leads to `self/mounts`, which means the thread.
                    let of_proc = target.starts_with(b"self/") && path_of(&parent)? == Path::new("/proc");
                    (path, from) =
                        if of_proc { ([b"/proc/", &*target].concat(), None) } else { (target, Some(parent)) };
                    continue;
                }
                Err(Errno::INVAL | Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        return whole_name(parent, name).map(Target::Named);
    }
    Err(Errno::LOOP)
}

/// `/proc/self` means the thread, not this process.
fn of_thread(thread: i32, path: Vec<u8>) -> Vec<u8> {
    for own in [b"/proc/self/".as_slice(), b"/proc/thread-self/"] {
        if let Some(rest) = path.strip_prefix(own) {
            return [format!("/proc/{thread}/").as_bytes(), rest].concat();
        }
    }
    path
}

/// Refuses what lies below `/proc` and does not concern a thread.
fn own_below_proc(thread: i32, name: Name) -> Result<Name, Errno> {
    // Below `/proc` a program may change what concerns itself. Links may lead to `/proc/self`, which is this process here, and
    // threads of this process have numbers of their own: its memory and descriptors are not for contained programs.
    match name.path.strip_prefix("/proc") {
        Ok(inside) => {
            let first = inside.components().next().and_then(|first| first.as_os_str().to_str());
            if first.is_some_and(|first| is_process_of(thread, first)) { Ok(name) } else { Err(Errno::ACCESS) }
        }
        Err(_) => Ok(name),
    }
}

/// Whether a number is that of a thread or of its process.
fn is_process_of(thread: i32, number: &str) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let process = super::files::status_field(thread, c"Tgid:");
    process.is_some_and(|process| process != own.to_string() && (process == number || thread.to_string() == number))
}

/// Puts a directory and a name together, with the path that they have now.
fn whole_name(directory: OwnedFd, name: CString) -> Result<Name, Errno> {
    // `..` and `.` are no names: the path is that of the directory they mean.
    if matches!(name.as_bytes(), b"." | b"..") {
        let directory = open_directory(Some(&directory), name.as_bytes())?;
        let path = path_of(&directory)?;
        return Ok(Name { directory, name: c".".to_owned(), path });
    }
    let path = path_of(&directory)?.join(Path::new(OsStr::from_bytes(name.as_bytes())));
    Ok(Name { directory, name, path })
}

/// Opens a directory without the links of `/proc`: those of this process would be followed, not those of the thread.
fn open_directory(from: Option<&OwnedFd>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = if path.is_empty() { b".".as_slice() } else { path };
    let from = from.map_or(CWD, AsFd::as_fd);
    rustix::fs::openat2(from, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
}

/// The path of the directory, the last name, and whether a slash follows it.
fn split_last(path: &[u8]) -> (&[u8], &[u8], bool) {
    let end = path.len().saturating_sub(path.iter().rev().take_while(|byte| **byte == b'/').count());
    let (bare, slash) = (path.get(..end).unwrap_or_default(), end < path.len());
    if bare.is_empty() {
        return (b"/", b".", slash);
    }
    match bare.iter().rposition(|byte| *byte == b'/') {
        Some(at) => {
            let next = at.saturating_add(1);
            (bare.get(..next).unwrap_or_default(), bare.get(next..).unwrap_or_default(), slash)
        }
        None => (b".", bare, slash),
    }
}

fn without_double_slashes(path: &[u8]) -> Vec<u8> {
    let mut cleaned = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, following)) = rest.split_first() {
        let skipped = match (byte, following) {
            (b'/', [b'/', ..] | [b'.']) => following.strip_prefix(b".").unwrap_or(following),
            (b'/', [b'.', b'/', ..]) => following.get(1..).unwrap_or_default(),
            _ => {
                cleaned.push(*byte);
                following
            }
        };
        rest = skipped;
    }
    if cleaned.is_empty() { b"/".to_vec() } else { cleaned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_the_kernel_does() {
        assert_eq!(split_last(b"/a/b"), (&b"/a/"[..], &b"b"[..], false));
        assert_eq!(split_last(b"/a/b//"), (&b"/a/"[..], &b"b"[..], true));
        assert_eq!(split_last(b"b"), (&b"."[..], &b"b"[..], false));
        assert_eq!(split_last(b"/"), (&b"/"[..], &b"."[..], true));
        assert_eq!(without_double_slashes(b"//proc/./self//fd/3"), b"/proc/self/fd/3");
        assert_eq!(without_double_slashes(b"/."), b"/");
    }

    #[test]
    fn links_of_proc_mean_the_thread() {
        let found = |path: &'static [u8]| match magic(7, path) {
            Some(Magic::Descriptor { process, number, rest }) => format!("{process}:{number}:{}", rest.len()),
            Some(Magic::Directory { process, rest }) => format!("{process}:cwd:{}", rest.len()),
            Some(Magic::Root { rest }) => format!("root:{}", rest.len()),
            None => String::new(),
        };
        assert_eq!(found(b"/proc/self/fd/3"), "7:3:0");
        assert_eq!(found(b"/proc/12/fd/3/x"), "12:3:1");
        assert_eq!(found(b"/proc/12/task/13/cwd/x"), "13:cwd:1");
        assert_eq!(found(b"/proc/self/root/etc"), "root:3");
        assert_eq!(found(b"/dev/stdout"), "7:1:0");
        assert_eq!(found(b"/dev/fd/9"), "7:9:0");
        assert_eq!(found(b"/dev/stdoutx"), "");
        assert_eq!(found(b"/proc/self/comm"), "");
    }

    #[test]
    fn links_at_the_end_are_followed_or_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("d")).unwrap();
        std::os::unix::fs::symlink("d/new", root.join("link")).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let path = root.join("link");
        let text = path.as_os_str().as_bytes();
        let at = |last| match find(own, libc::AT_FDCWD, text, last).unwrap() {
            Target::Named(name) => name.path,
            Target::Descriptor(_) => unreachable!(),
        };
        assert_eq!(at(Last::Followed), root.join("d/new"));
        assert_eq!(at(Last::Kept), path);
    }
}
