//! The stage: the program that sets a sandbox up, becomes its first process, and starts the contained program in it.
//!
//! It is callgate itself, started again, so that it has one thread and inherits nothing. Every step is checked, and the contained
//! program starts only when all of them succeeded.

use std::ffi::CString;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::broker::{Guard, Secrets};
use crate::first::{self, Inside};
use crate::mounts::{Failure, Root, Step};
use crate::names::Names;
use crate::order::{Backend, MountKind, Order, PASSED_ON, RESOLVER, Report};
use crate::system::{self, Fork};
use crate::{bubblewrap, channel, filter};

pub use crate::order::STAGE;

/// The standard streams of the contained program, as they came.
type Streams = [OwnedFd; 3];

/// Runs the stage. Its standard input is the channel to the supervisor.
pub fn run() -> ExitCode {
    let Ok(channel) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 10) else { return ExitCode::FAILURE };
    match set_up(&channel) {
        Ok(code) => code,
        Err(failure) => {
            report_failure(&channel, &failure, false);
            ExitCode::FAILURE
        }
    }
}

fn report_failure(channel: &OwnedFd, failure: &Failure, program: bool) {
    let report = Report::Failed { step: failure.step.clone(), error: failure.error.to_string(), program };
    // If the supervisor is gone, there is nobody to tell.
    let _ = channel::send(channel, &report, &[]);
}

fn set_up(channel: &OwnedFd) -> Result<ExitCode, Failure> {
    end_with_parent().step(|| "tie this process to its parent".to_owned())?;
    // These reach it through the terminal, too, and are for the program. The descriptor is of no use here: they stay blocked.
    drop(system::signal_descriptor(&PASSED_ON).step(|| "block signals".to_owned())?);
    system::set_dumpable(false).step(|| "close this process to others".to_owned())?;
    rustix::process::chdir("/").step(|| "leave the directory".to_owned())?;
    let backend = channel::receive::<Backend>(channel)
        .and_then(|message| message.map(|(backend, _)| backend).ok_or_else(|| io::ErrorKind::UnexpectedEof.into()));
    let backend = backend.step(|| "read the backend".to_owned())?;
    match backend {
        // bubblewrap has made this the first process
        Backend::Bubblewrap => return Ok(lead(channel, backend)),
        Backend::Namespaces => leave_namespaces()?,
        Backend::Landlock => {}
    }
    match system::fork().step(|| "start the first process".to_owned())? {
        Fork::Parent(first) => Ok(wait_for(first)),
        Fork::Child => Ok(lead(channel, backend)),
    }
}

/// The stage itself waits until everything inside has ended.
fn wait_for(first: Pid) -> ExitCode {
    loop {
        match rustix::process::waitpid(Some(first), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                return if status.exit_status() == Some(0) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

fn end_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before that.
    if rustix::process::getppid().is_none_or(|parent| parent == Pid::INIT) && std::process::id() != 1 {
        return Err(io::Error::other("the supervisor has ended"));
    }
    Ok(())
}

fn receive(channel: &OwnedFd) -> io::Result<(Order, OwnedFd, Streams)> {
    let ((), descriptors) = channel::receive(channel)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let [text, lock, input, output, errors] =
        <[OwnedFd; 5]>::try_from(descriptors).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut std::fs::File::from(text), &mut bytes)?;
    let order = Order::from_bytes(&bytes)?;
    Ok((order, lock, [input, output, errors]))
}

/// New namespaces of every kind. The user keeps the same number in them, and no other exists.
fn leave_namespaces() -> Result<(), Failure> {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    // The files of `/proc/self` belong to root while this process is closed to others.
    system::set_dumpable(true).step(|| "open this process".to_owned())?;
    system::leave_namespaces().step(|| "make namespaces".to_owned())?;
    std::fs::write("/proc/self/setgroups", "deny").step(|| "fix the groups".to_owned())?;
    let map = |id: u32| format!("{id} {id} 1");
    std::fs::write("/proc/self/uid_map", map(user.as_raw())).step(|| "map the user".to_owned())?;
    std::fs::write("/proc/self/gid_map", map(group.as_raw())).step(|| "map the group".to_owned())?;
    system::set_dumpable(false).step(|| "close this process to others".to_owned())
}

/// The first process: finishes the set-up, starts the program, and serves it until it ends.
fn lead(channel: &OwnedFd, backend: Backend) -> ExitCode {
    let served = prepare_root(backend).and_then(|(root, signals)| {
        channel::send(channel, &Report::Prepared, &[]).step(|| "report".to_owned())?;
        let (order, lock, streams) = receive(channel).step(|| "read the order".to_owned())?;
        if order.backend != backend {
            return Err(io::Error::from(io::ErrorKind::InvalidData)).step(|| "read the order".to_owned());
        }
        let inside = start(channel, &order, root, signals, lock, streams)?;
        Ok(first::serve(channel, &order, inside))
    });
    served.unwrap_or_else(|failure| {
        report_failure(channel, &failure, false);
        ExitCode::FAILURE
    })
}

/// What does not depend on the order, done while the supervisor still makes it.
fn prepare_root(backend: Backend) -> Result<(Option<Root>, OwnedFd), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .step(|| "tie the first process to the stage".to_owned())?;
    let signals = system::signal_descriptor(&[libc::SIGCHLD]).step(|| "watch for children".to_owned())?;
    if backend != Backend::Namespaces {
        return Ok((None, signals));
    }
    let root = Root::begin()?;
    system::raise_loopback().step(|| "raise the loopback interface".to_owned())?;
    Ok((Some(root), signals))
}

fn start(
    channel: &OwnedFd,
    order: &Order,
    root: Option<Root>,
    signals: OwnedFd,
    lock: OwnedFd,
    streams: Streams,
) -> Result<Inside, Failure> {
    if let Some(root) = root {
        root.enter(order)?;
    }
    if order.backend == Backend::Bubblewrap {
        bubblewrap::verify(order)?;
    }
    let names = if order.outside && order.backend != Backend::Landlock {
        offer_names(channel).step(|| "offer name resolution".to_owned())?
    } else {
        None
    };
    let streams = streams.map(inner_nothing);
    let (streams, terminal) = attach_terminal(channel, order, streams)?;
    let landlock = system::landlock_version();
    let (ours, theirs) = channel::pair().step(|| "make a channel".to_owned())?;
    let child = match system::fork().step(|| "start a process".to_owned())? {
        Fork::Parent(child) => child,
        Fork::Child => {
            drop(ours);
            let failure = become_program(order, &streams, terminal.is_some(), landlock, &theirs);
            let program = failure.step.starts_with("start ");
            report_failure(channel, &failure, program);
            std::process::exit(if failure.error.kind() == io::ErrorKind::NotFound { 127 } else { 126 });
        }
    };
    drop((theirs, streams));
    give_up_privileges(true).step(|| "give up privileges".to_owned())?;
    let listener = match channel::receive::<()>(&ours) {
        Ok(Some(((), mut descriptors))) => descriptors.pop(),
        _ => None,
    };
    // Without a listener the child has reported why and ends.
    let guard = Guard {
        roots: order.roots.clone(),
        protected: Names::new(order.protected.clone(), &order.protected_paths, order.git),
        allowed: order.allowed.clone(),
        files: order.protected_files.iter().copied().collect(),
        secrets: Secrets::new(&order.secrets),
        changeable: changeable(order),
        alone: order.backend == Backend::Landlock,
        links: order.may_link,
        names,
    };
    Ok(Inside { child, listener, lock, guard, signals, landlock, terminal })
}

/// `/dev/null` as it is inside: the descriptor of the host's would lead to the host's device.
fn inner_nothing(stream: OwnedFd) -> OwnedFd {
    let is_device = rustix::fs::fstat(&stream)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::CharacterDevice);
    if !is_device {
        return stream;
    }
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap_or(stream)
}

/// The directories outside the roots whose files may be changed.
fn changeable(order: &Order) -> Vec<PathBuf> {
    // without a file system of its own a sandbox has no directories of its own
    if order.backend == Backend::Landlock {
        return Vec::new();
    }
    let layers = order.mounts.iter().filter(|mount| mount.kind != MountKind::ReadOnly).map(|mount| mount.path.clone());
    let own = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    layers.chain(order.private.iter().cloned()).chain(own).collect()
}

/// Hands the supervisor the sockets at which programs inside ask for names. Returns their port if it is not the usual one, to which
/// bubblewrap gives no right.
fn offer_names(channel: &OwnedFd) -> io::Result<Option<u16>> {
    let (address, usual) = RESOLVER;
    let (datagrams, port) = match UdpSocket::bind((address, usual)) {
        Ok(socket) => (socket, None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let socket = UdpSocket::bind((address, 0))?;
            let port = socket.local_addr()?.port();
            (socket, Some(port))
        }
        Err(error) => return Err(error),
    };
    let connections = TcpListener::bind((address, port.unwrap_or(usual)))?;
    channel::send(channel, &Report::Names, &[datagrams.as_fd(), connections.as_fd()])?;
    Ok(port)
}

/// Gives the program a terminal of the sandbox's own in place of the caller's. The other end goes to the supervisor.
fn attach_terminal(channel: &OwnedFd, order: &Order, streams: Streams) -> Result<(Streams, Option<PathBuf>), Failure> {
    if order.terminal == [false; 3] {
        return Ok((streams, None));
    }
    let step = || "make a terminal".to_owned();
    let multiplexer = if order.backend == Backend::Landlock { "/dev/ptmx" } else { "/dev/pts/ptmx" };
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let outer = rustix::fs::open(multiplexer, flags, Mode::empty()).step(step)?;
    rustix::pty::unlockpt(&outer).step(step)?;
    let name = rustix::pty::ptsname(&outer, Vec::new()).step(step)?;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let inner = rustix::fs::open(&path, flags, Mode::empty()).step(step)?;
    let (rows, columns) = order.size;
    let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&inner, size).step(step)?;
    channel::send(channel, &Report::Terminal, &[outer.as_fd()]).step(step)?;
    let [input, output, errors] = streams;
    let pick = |is_terminal: bool, stream: OwnedFd| if is_terminal { inner.try_clone().step(step) } else { Ok(stream) };
    let [first, second, third] = order.terminal;
    Ok(([pick(first, input)?, pick(second, output)?, pick(third, errors)?], Some(path)))
}

/// The last steps, in the process that becomes the program. Returns only if one of them failed.
fn become_program(order: &Order, streams: &Streams, terminal: bool, landlock: u32, channel: &OwnedFd) -> Failure {
    match prepare(order, streams, terminal, landlock, channel) {
        Ok(never) => never,
        Err(failure) => failure,
    }
}

fn prepare(
    order: &Order,
    streams: &Streams,
    terminal: bool,
    landlock: u32,
    channel: &OwnedFd,
) -> Result<Failure, Failure> {
    rustix::process::setsid().step(|| "start a session".to_owned())?;
    let [input, output, errors] = streams;
    rustix::stdio::dup2_stdin(input).step(|| "connect standard input".to_owned())?;
    rustix::stdio::dup2_stdout(output).step(|| "connect standard output".to_owned())?;
    rustix::stdio::dup2_stderr(errors).step(|| "connect standard error".to_owned())?;
    if terminal {
        let index = order.terminal.iter().position(|is_terminal| *is_terminal).unwrap_or_default();
        let stream = streams.get(index).unwrap_or(input);
        system::take_terminal(stream.as_fd()).step(|| "take the terminal".to_owned())?;
    }
    system::close_on_exec_from(3).step(|| "close descriptors".to_owned())?;
    rustix::process::chdir(&order.directory).step(|| format!("enter {}", order.directory.display()))?;
    let held = hold_program(order).step(|| format!("start {}", order.program.display()))?;
    limit(order)?;
    system::restore_signals();
    let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::other);
    let texts = |all: &[Vec<u8>]| all.iter().map(|one| text(one)).collect::<io::Result<Vec<CString>>>();
    let words = texts(&order.words).step(|| "read the words".to_owned())?;
    let environment = texts(&order.environment).step(|| "read the environment".to_owned())?;
    let program = text(order.program.as_os_str().as_bytes()).step(|| "read the program's name".to_owned())?;
    system::set_dumpable(true).step(|| "open this process".to_owned())?;
    give_up_privileges(false).step(|| "give up privileges".to_owned())?;
    rustix::thread::set_no_new_privs(true).step(|| "forbid new privileges".to_owned())?;
    if landlock > 0 {
        let root =
            rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).step(|| "open the root".to_owned())?;
        system::restrict_files(&[root.as_fd()], landlock).step(|| "restrict files".to_owned())?;
    }
    let listener = system::install_filter(&filter::program(order.secrets.iter().next().is_some()))
        .step(|| "filter system calls".to_owned())?;
    channel::send(channel, &(), &[listener.as_fd()]).step(|| "hand over the listener".to_owned())?;
    drop(listener);
    // An interpreter opens its script by a path: it could not follow the descriptor, which ends here.
    let error = if order.is_script {
        system::execute(&program, &words, &environment)
    } else {
        system::execute_descriptor(held.as_fd(), &words, &environment)
    };
    Ok(Failure { step: format!("start {}", order.program.display()), error })
}

/// The program as the sandbox sees it, which must be the one that was judged.
fn hold_program(order: &Order) -> io::Result<OwnedFd> {
    let held = rustix::fs::open(&order.program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = rustix::fs::fstat(&held)?;
    match order.identity {
        Some(identity) if identity != (stat.st_dev, stat.st_ino) => {
            Err(io::Error::other("it was replaced after it was judged"))
        }
        _ => Ok(held),
    }
}

/// No capability is left, now and in what is started later. The first process may still look into the others.
fn give_up_privileges(looks: bool) -> io::Result<()> {
    if !looks {
        for capability in 0..64 {
            if rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << capability))
                .is_err()
            {
                break;
            }
        }
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let kept = if looks { CapabilitySet::SYS_PTRACE } else { CapabilitySet::empty() };
    let now = rustix::thread::capabilities(None)?;
    let kept = kept.intersection(now.permitted);
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

fn limit(order: &Order) -> Result<(), Failure> {
    let limits = [
        (Resource::Nproc, order.limits.processes, "processes"),
        (Resource::Fsize, order.limits.file_size, "file sizes"),
        (Resource::Nofile, order.limits.open_files, "open files"),
        (Resource::Core, Some(0), "core dumps"),
    ];
    for (resource, limit, name) in limits {
        let Some(limit) = limit else { continue };
        let hard = rustix::process::getrlimit(resource).maximum.map_or(limit, |hard| hard.min(limit));
        rustix::process::setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })
            .step(|| format!("limit {name}"))?;
    }
    Ok(())
}
