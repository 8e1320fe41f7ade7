//! Resolves paths: follows the symlinks of the deepest existing ancestor and keeps the rest as named.
//!
//! The path need not exist: a file that a call would create is protected like an existing one.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use callgate_model::lexical::fold;
use thiserror::Error;

use super::file_system::{FileSystem, PathEntry};

/// The maximum number of symlinks to follow, as in the kernel.
const MAXIMUM_LINKS: usize = 40;
/// The longest path that the kernel accepts.
const MAXIMUM_LENGTH: usize = 4096;

/// Why a path cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// It contains a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// It is longer than any path can be.
    #[error("the path is longer than {MAXIMUM_LENGTH} bytes")]
    TooLong,
    /// Its symlinks form a loop.
    #[error("its symlinks form a loop")]
    Loop,
    /// A parent directory cannot be read.
    #[error("a parent directory cannot be read ({0})")]
    Unreadable(String),
    /// Where it leads is unknown or depends on the reader.
    #[error("{0}")]
    Ambiguous(&'static str),
    /// It is relative to an unknown directory.
    #[error("unknown working directory")]
    Relative,
}

impl ResolveError {
    /// Whether such a path is denied outright, because no harmless call needs it.
    pub fn is_refused(&self) -> bool {
        match self {
            ResolveError::Nul | ResolveError::TooLong | ResolveError::Loop | ResolveError::Unreadable(_) => true,
            ResolveError::Ambiguous(_) | ResolveError::Relative => false,
        }
    }
}

/// Whether a path contains `..`.
pub(super) fn has_parent(path: &Path) -> bool {
    path.components().any(|component| component == Component::ParentDir)
}

/// Resolves an absolute path.
///
/// After a symlink, `..` means different places to the kernel and to tools that normalize the text first: that is ambiguous.
pub fn resolve(file_system: &dyn FileSystem, path: &Path) -> Result<PathBuf, ResolveError> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.contains(&0) {
        return Err(ResolveError::Nul);
    }
    if bytes.len() > MAXIMUM_LENGTH {
        return Err(ResolveError::TooLong);
    }
    if !path.is_absolute() {
        return Err(ResolveError::Relative);
    }
    let walked = walk(file_system, path)?;
    if has_parent(path) && walk(file_system, &fold(path))? != walked {
        return Err(ResolveError::Ambiguous("`..` after a symlink can mean two places"));
    }
    Ok(walked)
}

/// One component of a path that is still to be walked.
enum PathStep {
    Root,
    Parent,
    Name(OsString),
}

fn steps_of(path: &Path) -> impl DoubleEndedIterator<Item = PathStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir | Component::Prefix(_) => Some(PathStep::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(PathStep::Parent),
        Component::Normal(name) => Some(PathStep::Name(name.to_owned())),
    })
}

/// Walks a path as the kernel would, and by name beyond its existing part.
fn walk(file_system: &dyn FileSystem, path: &Path) -> Result<PathBuf, ResolveError> {
    let mut waiting: Vec<PathStep> = steps_of(path).rev().collect();
    let mut current = PathBuf::from("/");
    let mut missing = 0_usize;
    let mut links = 0_usize;
    while let Some(step) = waiting.pop() {
        let name = match step {
            PathStep::Root => {
                current = PathBuf::from("/");
                missing = 0;
                continue;
            }
            PathStep::Parent => {
                current.pop();
                missing = missing.saturating_sub(1);
                continue;
            }
            PathStep::Name(name) => name,
        };
        match process_file(&current, &name) {
            ProcName::No => {}
            ProcName::Itself => {
                current.push(name);
                continue;
            }
            ProcName::Root => {
                current = PathBuf::from("/");
                missing = 0;
                continue;
            }
            ProcName::Varies => {
                return Err(ResolveError::Ambiguous("it depends on the process that opens it"));
            }
        }
        current.push(name);
        if missing > 0 {
            missing = missing.saturating_add(1);
            continue;
        }
        match file_system.look(&current) {
            PathEntry::Directory | PathEntry::Other => {}
            PathEntry::Missing => missing = 1,
            PathEntry::Unreadable(why) => return Err(ResolveError::Unreadable(why)),
            PathEntry::Link(target) => {
                links = links.saturating_add(1);
                if links > MAXIMUM_LINKS {
                    return Err(ResolveError::Loop);
                }
                current.pop();
                waiting.extend(steps_of(&target).rev());
            }
        }
    }
    Ok(current)
}

/// What a name below `/proc` or `/dev` means.
enum ProcName {
    /// An ordinary name.
    No,
    /// The directory of the process that opens it; ours must not be followed.
    Itself,
    /// Another name for `/`.
    Root,
    /// A symlink that is different for every process.
    Varies,
}

fn process_file(directory: &Path, name: &OsStr) -> ProcName {
    let Some(name) = name.to_str() else {
        return ProcName::No;
    };
    if directory.as_os_str() == "/dev" {
        return match name {
            "fd" | "stdin" | "stdout" | "stderr" => ProcName::Varies,
            _ => ProcName::No,
        };
    }
    // Nearly every path is told apart by its bytes, which is much faster than going through its components.
    if !directory.as_os_str().as_encoded_bytes().starts_with(b"/proc") {
        return ProcName::No;
    }
    let Ok(below) = directory.strip_prefix("/proc") else {
        return ProcName::No;
    };
    let mut parts = below.components();
    let Some(Component::Normal(process)) = parts.next() else {
        return match name {
            "self" | "thread-self" => ProcName::Itself,
            _ => ProcName::No,
        };
    };
    let own = process == "self" || process == "thread-self";
    let is_process = own || process.to_str().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_process {
        return ProcName::No;
    }
    match name {
        "root" if own => ProcName::Root,
        "root" | "cwd" | "fd" | "fdinfo" | "exe" | "map_files" => ProcName::Varies,
        _ => ProcName::No,
    }
}

#[cfg(test)]
mod tests {
    use super::super::file_system::fake::Fake;
    use super::*;

    fn file_system() -> Fake {
        Fake::new()
            .file("/ws/src/main.rs")
            .link("/ws/inside", "src")
            .link("/ws/outside", "/etc")
            .link("/ws/up", "../other")
            .link("/ws/dangling", "/nowhere/file")
            .link("/ws/a", "b")
            .link("/ws/b", "a")
            .link("/ws/self", "self/deeper")
            .link("/ws/chain", "inside/main.rs")
            .unreadable("/ws/locked")
            .file("/etc/passwd")
            .directory("/other/deep")
            .link("/proc/self", "4711")
            .link("/proc/4711/root", "/")
            .link("/proc/4711/cwd", "/ws")
    }

    #[test]
    fn paths_lie_where_their_links_lead() {
        let cases: &[(&str, &str)] = &[
            ("/ws/src/main.rs", "/ws/src/main.rs"),
            ("/ws/src/new/file", "/ws/src/new/file"),
            ("/ws//src/./main.rs/", "/ws/src/main.rs"),
            ("/ws/inside/main.rs", "/ws/src/main.rs"),
            ("/ws/chain", "/ws/src/main.rs"),
            ("/ws/outside/passwd", "/etc/passwd"),
            ("/ws/outside/not-there-yet", "/etc/not-there-yet"),
            ("/ws/up/x", "/other/x"),
            ("/ws/dangling", "/nowhere/file"),
            ("/ws/../etc/passwd", "/etc/passwd"),
            ("/ws/src/../../etc/passwd", "/etc/passwd"),
            ("/ws/missing/../outside/passwd", "/etc/passwd"),
            ("/../../etc/passwd", "/etc/passwd"),
            ("/proc/self/root/etc/passwd", "/etc/passwd"),
            ("/proc/self/status", "/proc/self/status"),
            ("/WS/src", "/WS/src"),
            ("/", "/"),
        ];
        for (path, expected) in cases {
            let resolved = resolve(&file_system(), Path::new(path));
            assert_eq!(resolved, Ok(PathBuf::from(expected)), "{path}");
        }
    }

    #[test]
    fn what_cannot_be_resolved_is_refused() {
        let cases: &[(&str, ResolveError)] = &[
            ("/ws/a/x", ResolveError::Loop),
            ("/ws/self", ResolveError::Loop),
            ("/ws/x\0y", ResolveError::Nul),
            ("/ws/locked/x", ResolveError::Unreadable("permission denied".into())),
        ];
        for (path, expected) in cases {
            let error = resolve(&file_system(), Path::new(path)).expect_err(path);
            assert_eq!(&error, expected, "{path}");
            assert!(error.is_refused());
        }
        let long = format!("/{}", "a/../".repeat(1_000_000));
        assert_eq!(resolve(&file_system(), Path::new(&long)), Err(ResolveError::TooLong));
    }

    #[test]
    fn what_means_different_places_is_ambiguous() {
        for path in [
            "/ws/up/../x",
            "/ws/outside/../x",
            "/proc/self/cwd/x",
            "/proc/17/root/etc/passwd",
            "/proc/self/fd/3",
            "/proc/self/task/1/cwd",
            "/dev/fd/9",
            "/dev/stdin",
            "src/main.rs",
        ] {
            let error = resolve(&file_system(), Path::new(path)).expect_err(path);
            assert!(!error.is_refused(), "{path}: {error}");
        }
        // up and down again over a link that is not in the way is not
        assert!(resolve(&file_system(), Path::new("/ws/src/../inside")).is_ok());
    }

    #[test]
    fn the_real_file_system_is_read_the_same_way() {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().canonicalize().expect("its real path");
        std::fs::create_dir(base.join("real")).expect("create");
        std::os::unix::fs::symlink("real", base.join("link")).expect("link");
        let real = super::super::file_system::RealFileSystem;
        assert_eq!(resolve(&real, &base.join("link/new")), Ok(base.join("real/new")));
        assert_eq!(resolve(&real, Path::new("/proc/self/root/usr")), resolve(&real, Path::new("/usr")));
    }
}
