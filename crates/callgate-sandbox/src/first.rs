//! The first process of a sandbox: serves the contained program until it ends. When this process ends, the kernel ends everything
//! that is still inside.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::broker::{Broker, Guard, Reach, sockets};
use crate::order::{LEFT, Order, Report, Request};
use crate::{channel, listening, system};

/// How often memory and written bytes are measured, if they are limited.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(20);
/// How many addresses are reported: what fits into a message.
const MOST_ADDRESSES: usize = 256;

/// What the first process has when the program starts.
pub struct Inside {
    /// The program.
    pub child: Pid,
    /// The listener; `None` if the program could not be started.
    pub listener: Option<OwnedFd>,
    /// What all brokers of a user share.
    pub lock: OwnedFd,
    /// What it may change.
    pub guard: Guard,
    /// Reports that a child ended.
    pub signals: OwnedFd,
    /// The version of Landlock in use.
    pub landlock: u32,
    /// The program's terminal.
    pub terminal: Option<PathBuf>,
}

/// Why the loop ended.
enum End {
    Program(WaitStatus),
    Limit(&'static str),
    SupervisorGone,
}

/// Serves until the program ends, a limit is reached or the supervisor is gone.
pub fn serve(channel: &OwnedFd, order: &Order, inside: Inside) -> ExitCode {
    let Inside { child, listener, lock, guard, signals, landlock, terminal } = inside;
    if listener.is_some() && channel::send(channel, &Report::Ready { landlock }, &[]).is_err() {
        return ExitCode::FAILURE;
    }
    let reach = Reach {
        outside: order.outside,
        ports: order.ports.clone(),
        neighbours: order.neighbours,
        filters: order.scripts.then(|| sockets::filters(1).map_or(0, |own| own.saturating_add(1))),
    };
    let broker = listener.map(|listener| Broker::new(listener, lock, guard, terminal, reach));
    let end = wait(channel, order, child, &signals, broker);
    let report = match end {
        End::Program(status) => Report::Ended {
            code: status.exit_status(),
            signal: status.terminating_signal(),
            left: order.left.then(left).flatten(),
        },
        End::Limit(limit) => Report::Limit { limit: limit.to_owned() },
        End::SupervisorGone => return ExitCode::FAILURE,
    };
    // If the supervisor is gone, there is nobody to tell.
    let _ = channel::send(channel, &report, &[]);
    ExitCode::SUCCESS
}

/// What the program left as its last directory, if that is a short text in a file.
fn left() -> Option<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = std::fs::File::from(rustix::fs::open(LEFT, flags, Mode::empty()).ok()?);
    let mut text = String::new();
    let longest = u64::try_from(libc::PATH_MAX).unwrap_or_default();
    let file = file.metadata().is_ok_and(|data| data.is_file()).then_some(file)?;
    io::Read::read_to_string(&mut io::Read::take(file, longest), &mut text).ok()?;
    text.strip_suffix('\n').map(PathBuf::from)
}

fn wait(channel: &OwnedFd, order: &Order, child: Pid, signals: &OwnedFd, mut broker: Option<Broker>) -> End {
    let deadline = order.limits.time.and_then(|time| Instant::now().checked_add(time));
    let sampled = order.limits.memory.is_some() || order.limits.written.is_some() || counted_processes(order).is_some();
    let mut next_sample = Instant::now();
    loop {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return End::Limit("time");
        }
        if sampled && Instant::now() >= next_sample {
            if let Some(limit) = over_limit(order) {
                return End::Limit(limit);
            }
            next_sample = Instant::now().checked_add(BETWEEN_SAMPLES).unwrap_or(next_sample);
        }
        let until = deadline.into_iter().chain(sampled.then_some(next_sample)).min();
        let timeout = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now()).saturating_add(Duration::from_millis(1));
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
        });
        let mut ready = vec![PollFd::new(channel, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if let Some(broker) = &broker {
            ready.push(PollFd::new(broker.listener(), PollFlags::IN));
        }
        match rustix::event::poll(&mut ready, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return End::SupervisorGone,
        }
        let events: Vec<PollFlags> = ready.iter().map(PollFd::revents).collect();
        drop(ready);
        let event = |index: usize| events.get(index).copied().unwrap_or(PollFlags::empty());
        if event(2).contains(PollFlags::IN)
            && let Some(serving) = &mut broker
        {
            if serving.serve().is_err() {
                return End::SupervisorGone;
            }
            for wanted in serving.wanted() {
                let report = Report::Connect { id: wanted.id, stream: wanted.stream, to: wanted.to };
                if channel::send(channel, &report, &[]).is_err() {
                    return End::SupervisorGone;
                }
            }
            if order.publish && serving.has_listened() {
                report_ports(channel);
            }
            for held_back in serving.news() {
                // A supervisor that does not listen is noticed above.
                let _ = channel::send(channel, &Report::HeldBack(held_back), &[]);
            }
        } else if event(2).intersects(PollFlags::HUP | PollFlags::ERR) {
            // nobody is left who has the filter
            broker = None;
        }
        if !event(0).is_empty() {
            match channel::receive(channel) {
                Ok(Some((Request::Signal(number), _))) => send_signal(child, number),
                Ok(Some((Request::Connected { id, error }, mut connection))) => {
                    if let Some(broker) = &mut broker {
                        broker.connected(id, error, connection.pop());
                    }
                }
                Ok(Some((Request::Listening, _))) => report_ports(channel),
                Ok(Some((Request::Socket { id, version_6 }, _))) => {
                    let socket = make_socket(version_6);
                    let descriptors: Vec<_> = socket.iter().map(AsFd::as_fd).collect();
                    let _ = channel::send(channel, &Report::Socket { id }, &descriptors);
                }
                Ok(None) | Err(_) => return End::SupervisorGone,
            }
        }
        if !event(1).is_empty() {
            system::read_signal(signals.as_fd());
            while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                if pid == child {
                    return End::Program(status);
                }
            }
        }
    }
}

/// Says where programs listen. A supervisor that does not hear it is noticed elsewhere.
fn report_ports(channel: &OwnedFd) {
    let mut addresses = listening::listening();
    addresses.truncate(MOST_ADDRESSES);
    let _ = channel::send(channel, &Report::Listening { addresses }, &[]);
}

fn make_socket(version_6: bool) -> Option<OwnedFd> {
    let family = if version_6 { AddressFamily::INET6 } else { AddressFamily::INET };
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()
}

/// Sends a signal to the program and what it started in its group.
fn send_signal(child: Pid, number: i32) {
    if let Some(signal) = Signal::from_named_raw(number) {
        // The program leads its own session and so its own group.
        let _ = rustix::process::kill_process_group(child, signal);
    }
}

/// How many processes and threads there may be, if they have to be counted: the kernel's own limit does not hold root.
fn counted_processes(order: &Order) -> Option<u64> {
    order.limits.processes.filter(|_| rustix::process::getuid().is_root())
}

/// The limit that all processes together are over.
fn over_limit(order: &Order) -> Option<&'static str> {
    let (mut memory, mut written, mut processes_now) = (memory_of_files(), 0_u64, 0_u64);
    // what cannot be measured is over the limit
    let Ok(processes) = std::fs::read_dir("/proc") else { return Some("memory") };
    for entry in processes.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()).filter(|pid| *pid != 1) else {
            continue;
        };
        let (used, threads) = memory_and_threads_of(pid);
        memory = memory.saturating_add(used);
        processes_now = processes_now.saturating_add(threads);
        written = written.saturating_add(written_by(pid));
    }
    // What ended processes wrote is counted with whoever waited for them, which may be this one.
    written = written.saturating_add(written_by(1));
    if order.limits.memory.is_some_and(|limit| memory > limit) {
        return Some("memory");
    }
    if counted_processes(order).is_some_and(|limit| processes_now > limit) {
        return Some("processes");
    }
    order.limits.written.filter(|limit| written > *limit).map(|_| "written")
}

/// Anonymous and shared memory of a process, in bytes (what it maps of files does not count), and how many threads it has.
fn memory_and_threads_of(pid: u32) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    let all = kilobytes("RssAnon:").unwrap_or_default().saturating_add(kilobytes("RssShmem:").unwrap_or_default());
    let threads = text.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok());
    (all.saturating_mul(1024), threads.unwrap_or_default())
}

/// What the files in the sandbox's own directories take, in bytes.
fn memory_of_files() -> u64 {
    let taken =
        rustix::fs::statvfs("/tmp").map(|all| all.f_blocks.saturating_sub(all.f_bfree).saturating_mul(all.f_frsize));
    taken.unwrap_or_default()
}

fn written_by(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let bytes = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
}
