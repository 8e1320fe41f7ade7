//! What a trace of `strace -f -y` shows: programs started, names written and removed, files read, addresses connected to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use callgate_model::lexical::fold;

/// One thing a process was seen doing, or trying: the namespace refuses much that a real machine would not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// A file was opened for reading.
    Read(PathBuf),
    /// A name was created, opened for writing, or had its metadata changed.
    Write(PathBuf),
    /// A name was removed or renamed away.
    Delete(PathBuf),
    /// A program was started.
    Run(PathBuf),
    /// A connection, or data sent to an address.
    Connect(String),
    /// Something that only a privileged process may do: mounts, clocks, modules.
    Privilege(String),
}

/// The system calls that are traced.
pub const CALLS: &str = "trace=?open,openat,?openat2,?creat,?unlink,unlinkat,?rmdir,?rename,renameat,renameat2,?mkdir,mkdirat,?link,linkat,\
    ?symlink,symlinkat,?chmod,fchmod,fchmodat,?fchmodat2,?chown,fchown,?lchown,fchownat,truncate,ftruncate,utimensat,?utime,?utimes,?futimesat,\
    ?mknod,mknodat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,execve,execveat,connect,sendto,sendmsg,?sendmmsg,chdir,fchdir,\
    mount,umount2,?move_mount,sethostname,settimeofday,clock_settime,init_module,finit_module,reboot,swapon,swapoff";

/// Everything seen in a trace that began in `directory`, in the order in which it happened.
pub fn read(text: &str, directory: &Path) -> Vec<Seen> {
    let mut directories: HashMap<&str, PathBuf> = HashMap::new();
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut seen = Vec::new();
    for line in text.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        // A call during which another process was shown stands on two lines.
        let whole;
        let rest = if let Some(front) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(process, front);
            // What kills the process leaves the call unfinished, but an exec has happened.
            continue;
        } else if let Some((_, end)) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            let Some(front) = begun.remove(process) else { continue };
            whole = format!("{front}{end}");
            whole.as_str()
        } else {
            rest
        };
        let here = directories.entry(process).or_insert_with(|| directory.to_owned());
        if let Some((current, _)) = rest.split_once("AT_FDCWD<").and_then(|(_, rest)| rest.split_once('>')) {
            *here = PathBuf::from(current);
        }
        let Some((call, arguments, result)) = parts(rest) else { continue };
        let paths = names(arguments, here);
        if call == "chdir" && result.starts_with('0') {
            here.clone_from(paths.first().unwrap_or(&here.clone()));
        } else if call == "fchdir"
            && let Some((path, _)) = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>'))
        {
            *here = PathBuf::from(path);
        } else {
            seen.extend(understood(call, arguments, result, &paths).into_iter().flatten());
        }
    }
    seen
}

/// `call(arguments) = result`.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (call, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    Some((call, arguments, result.trim_start()))
}

fn understood(call: &str, arguments: &str, result: &str, paths: &[PathBuf]) -> Option<Vec<Seen>> {
    let first = || paths.first().cloned();
    let second = || paths.get(1).cloned();
    let failed = result.starts_with('-') || result.starts_with('?');
    // What is refused here may succeed elsewhere; what does not exist, or exists already, was not touched.
    let refused =
        ["EACCES", "EPERM", "EROFS", "ENETUNREACH", "EINPROGRESS", "ECONNREFUSED", "EADDRNOTAVAIL", "EDESTADDRREQ"]
            .iter()
            .any(|error| result.contains(error));
    let address = arguments.contains("sa_family=AF_INET") || arguments.contains("sa_family=AF_UNIX");
    // Connecting a datagram socket sends nothing: the C library does it to sort addresses. What is sent is seen here, where only this machine can be reached.
    let datagram = arguments.split_once('>').is_some_and(|(front, _)| front.contains("<UDP"));
    let local = ["127.", "::1", "[::1"].iter().any(|front| destination(arguments).starts_with(front));
    match call {
        "connect" if datagram && local => return None,
        "connect" | "sendto" | "sendmsg" | "sendmmsg" if address || datagram => {
            return Some(vec![Seen::Connect(destination(arguments))]);
        }
        "connect" | "sendto" | "sendmsg" | "sendmmsg" => return None,
        "mount" | "umount2" | "move_mount" | "sethostname" | "settimeofday" | "clock_settime" | "init_module"
        | "finit_module" | "reboot" | "swapon" | "swapoff" => {
            return Some(vec![Seen::Privilege(format!("{call}({arguments}"))]);
        }
        _ => {}
    }
    let program = matches!(call, "execve" | "execveat");
    if failed && !refused && !program {
        return None;
    }
    Some(match call {
        "open" | "openat" | "openat2" | "creat" => {
            let written = call == "creat"
                || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"]
                    .iter()
                    .any(|flag| arguments.rsplit_once('"').is_some_and(|(_, flags)| flags.contains(flag)));
            // A file without a name goes away by itself.
            if failed && !written
                || arguments.contains("O_TMPFILE")
                || arguments.contains("O_PATH")
                || arguments.contains("O_DIRECTORY") && !written
            {
                return None;
            }
            // The result shows where links have led.
            let opened = result
                .split_once('<')
                .and_then(|(_, rest)| rest.split(['<', '>', '(']).next())
                .map(|path| PathBuf::from(path.trim_end()));
            let path = opened.filter(|path| path.is_absolute()).or_else(first)?;
            vec![if written { Seen::Write(path) } else { Seen::Read(path) }]
        }
        "unlink" | "unlinkat" | "rmdir" => vec![Seen::Delete(first()?)],
        "rename" | "renameat" | "renameat2" => vec![Seen::Delete(first()?), Seen::Write(second()?)],
        "link" | "linkat" | "symlinkat" | "symlink" => vec![Seen::Write(paths.last()?.clone())],
        "execve" | "execveat" => vec![Seen::Run(first()?)],
        "fchmod" | "fchown" | "ftruncate" | "fsetxattr" => {
            let (path, _) = arguments.split_once('<')?.1.split_once('>')?;
            if !path.starts_with('/') {
                return None;
            }
            vec![Seen::Write(PathBuf::from(path))]
        }
        "utimensat" if paths.is_empty() => {
            let (path, _) = arguments.split_once('<')?.1.split_once('>')?;
            vec![Seen::Write(PathBuf::from(path))]
        }
        _ => vec![Seen::Write(first()?)],
    })
}

/// The address of a connection: `127.0.0.1:9`, or the path of a socket.
fn destination(arguments: &str) -> String {
    let between = |front: &str, end: char| {
        arguments.split_once(front).and_then(|(_, rest)| rest.split_once(end)).map(|(value, _)| value)
    };
    let host = between("inet_addr(\"", '"').or_else(|| between("inet_pton(AF_INET6, \"", '"'));
    let port = between("htons(", ')').unwrap_or("?");
    let connected = arguments.split_once("->").and_then(|(_, rest)| rest.split_once("]>")).map(|(address, _)| address);
    match (host, between("sun_path=", '}').or(connected)) {
        (Some(host), _) => format!("{host}:{port}"),
        (None, Some(path)) => path.trim_matches(['"', '@']).to_owned(),
        (None, None) => arguments.to_owned(),
    }
}

/// The path arguments: a quoted string, relative to the `<…>` of the descriptor before it (`AT_FDCWD</dir>`).
fn names(arguments: &str, here: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut base = here.to_owned();
    let mut rest = arguments;
    while let Some(place) = rest.find(['<', '"']) {
        let (_, after) = rest.split_at(place);
        if let Some(after) = after.strip_prefix('<') {
            let Some((directory, after)) = after.split_once('>') else { break };
            if directory.starts_with('/') {
                base = PathBuf::from(directory);
            }
            rest = after;
            continue;
        }
        let Some((name, after)) = quoted(after) else { break };
        found.push(fold(&base.join(name)));
        rest = after;
        // The second argument of execve is the list of words, that of setxattr a key.
        if rest.starts_with(", [") || arguments.contains("xattr") {
            break;
        }
    }
    found
}

/// A string of the trace without its quotes and escapes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = Vec::new();
    let mut characters = text.strip_prefix('"')?.char_indices().peekable();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((String::from_utf8_lossy(&name).into_owned(), text.get(place + 2..)?)),
            '\\' => match characters.next()?.1 {
                'n' => name.push(b'\n'),
                't' => name.push(b'\t'),
                digit @ '0'..='7' => {
                    let mut value = digit.to_digit(8)?;
                    while let Some((_, next)) = characters.peek().copied()
                        && let Some(next) = next.to_digit(8)
                        && value * 8 + next < 256
                    {
                        value = value * 8 + next;
                        characters.next();
                    }
                    name.push(u8::try_from(value).ok()?);
                }
                other => name.extend(other.to_string().bytes()),
            },
            other => name.extend(other.to_string().bytes()),
        }
    }
    None
}
