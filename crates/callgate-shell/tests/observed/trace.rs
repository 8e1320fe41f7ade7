//! Runs a command in a throw-away directory under `strace` and tells what it did to files, programs and the network.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// One thing a process was seen doing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// A file was opened for reading.
    Read(PathBuf),
    /// A directory was opened or a name asked about.
    List(PathBuf),
    /// A file was opened for writing, created, renamed to or had its metadata changed.
    Write(PathBuf),
    /// A name was removed or renamed away.
    Delete(PathBuf),
    /// A program was started.
    Run(PathBuf),
    /// A connection to another machine.
    Connect(String),
}

const CALLS: &str = "trace=?open,openat,?openat2,?creat,?unlink,unlinkat,?rmdir,?rename,renameat,renameat2,?mkdir,mkdirat,?link,linkat,\
    ?symlink,symlinkat,?chmod,fchmodat,?fchmodat2,?chown,?lchown,fchownat,truncate,utimensat,?utime,?utimes,?mknod,mknodat,execve,execveat,\
    connect,chdir,fchdir";

/// Runs `command` with bash in `directory` and gives back what was seen there.
pub fn observe(command: &str, directory: &Path, log: &Path) -> std::io::Result<BTreeSet<Seen>> {
    Command::new("timeout")
        .args(["-k", "1", "20", "strace", "-f", "-qq", "-y", "-s", "4096", "-e", CALLS, "-e", "signal=none", "-o"])
        .arg(log)
        .args(["bash", "--norc", "--noprofile", "-c", command])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", directory.join("home"))
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let mut directories: HashMap<&str, PathBuf> = HashMap::new();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let here = directories.entry(process).or_insert_with(|| directory.to_owned());
        // Every call that names a descriptor also tells where its process stands.
        if let Some((current, _)) = rest.split_once("AT_FDCWD<").and_then(|(_, rest)| rest.split_once('>')) {
            *here = PathBuf::from(current);
        }
        seen.extend(parse(rest, here).into_iter().flatten());
        if let Some(target) = changed_directory(rest) {
            *here = fold(&here.join(target));
        }
    }
    Ok(seen)
}

/// Where a process goes: `chdir("x") = 0`, `fchdir(3</x>) = 0`.
fn changed_directory(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let arguments = rest.strip_suffix(") = 0").or(rest.strip_suffix(")    = 0")).unwrap_or(rest);
    match arguments.split_once('(')? {
        ("chdir", name) if rest.ends_with("= 0") => name.trim_start_matches('"').split('"').next(),
        ("fchdir", name) if rest.ends_with("= 0") => name.split_once('<')?.1.split('>').next(),
        _ => None,
    }
}

/// One call of the trace: `call(arguments) = result`; failed calls did nothing.
fn parse(rest: &str, here: &Path) -> Option<Vec<Seen>> {
    let (name, rest) = rest.trim_start().split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    if result.starts_with('-') && !(name == "connect" && result.contains("EINPROGRESS")) || result.starts_with('?') {
        return None;
    }
    let names = names(arguments, here);
    let first = names.first().cloned();
    let second = names.get(1).cloned();
    Some(match name {
        "open" | "openat" | "openat2" | "creat" => {
            let path = first?;
            if name == "creat"
                || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"].iter().any(|flag| arguments.contains(flag))
            {
                vec![Seen::Write(path)]
            } else if arguments.contains("O_DIRECTORY") || arguments.contains("O_PATH") {
                vec![Seen::List(path)]
            } else {
                vec![Seen::Read(path)]
            }
        }
        "unlink" | "unlinkat" | "rmdir" => vec![Seen::Delete(first?)],
        "rename" | "renameat" | "renameat2" => vec![Seen::Delete(first?), Seen::Write(second?)],
        "link" | "linkat" => vec![Seen::Write(second?)],
        "symlink" | "symlinkat" => vec![Seen::Write(second?)],
        "execve" | "execveat" => vec![Seen::Run(first?)],
        "connect" if arguments.contains("AF_INET") => vec![Seen::Connect(arguments.to_owned())],
        "connect" | "chdir" | "fchdir" => return None,
        _ => vec![Seen::Write(first?)],
    })
}

/// The path arguments: a quoted string, relative to the `<…>` of the descriptor before it (`AT_FDCWD</dir>`).
fn names(arguments: &str, here: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut base = here.to_owned();
    let mut rest = arguments;
    while let Some(place) = rest.find(['<', '"']) {
        let (marker, after) = rest.split_at(place);
        let _ = marker;
        if let Some(after) = after.strip_prefix('<') {
            let Some((directory, after)) = after.split_once('>') else { break };
            if directory.starts_with('/') {
                base = PathBuf::from(directory);
            }
            rest = after;
        } else if let Some(after) = after.strip_prefix('"') {
            let mut end = 0;
            let mut escaped = false;
            for (place, character) in after.char_indices() {
                end = place;
                match character {
                    '\\' if !escaped => escaped = true,
                    '"' if !escaped => break,
                    _ => escaped = false,
                }
            }
            let (name, after) = after.split_at(end);
            found.push(fold(&base.join(name)));
            rest = after.get(1..).unwrap_or_default();
        } else {
            break;
        }
        // execve's second argument is the list of words, not another path.
        if rest.starts_with(", [") {
            break;
        }
    }
    found
}

/// Folds `.` and `..`; the fixture holds no links to directories.
pub fn fold(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}
