//! The supervisor: starts a stage, serves it while the program runs, and says how it ended and what was held back.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgate::live::{self, LiveRun};
use callgate_model::fence::{Fence, Globs, HeldBack, Network};
use callgate_model::glob::escape;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::background::{self, Keeper};
use crate::bubblewrap::Wrapper;
use crate::denied::Denied;
use crate::layout::{lay_out, toolchains};
use crate::order::{Backend, Mount, MountKind, Order, PASSED_ON, Report, Request};
use crate::outside::Outside;
use crate::prepared::Prepared;
use crate::program::{self, Program};
use crate::publish::Publisher;
use crate::streams::{Running, Streams};
use crate::{channel, environment, outside, owner, scripts, system};

/// How long a program may take to end after it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How often a limit of the output, published ports and whoever stops a call are looked at.
const WATCHED_EVERY: Duration = Duration::from_millis(200);
/// How often the program is asked where it listens, once it does.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// What is started, apart from what the fence says.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The program and its words.
    pub words: Vec<OsString>,
    /// The program as it was before the call was judged; otherwise it is found when the call starts.
    pub program: Option<Program>,
    /// The working directory.
    pub directory: PathBuf,
    /// Whether the program says in [`LEFT`](crate::LEFT) in which directory it ends.
    pub left: bool,
    /// The caller's environment, of which the program gets a part.
    pub environment: Vec<(OsString, OsString)>,
    /// The way to contain it; the best that holds what is required if `None`.
    pub backend: Option<Backend>,
    /// What others are told about it while it runs: its command, its id in the log, who started it.
    pub run: LiveRun,
    /// It lives on after the command that started it, if this is there.
    pub detached: Option<Detached>,
    /// Whether the ports on which it listens can be reached at the user's loopback.
    pub publish: bool,
}

/// For a call that lives on after the command that started it.
#[derive(Debug, Clone, Copy)]
pub struct Detached {
    /// Called when the program starts. If it fails, the program is ended.
    pub started: fn(&LiveRun) -> io::Result<()>,
}

/// How a contained call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The program's exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<String>,
    /// The directory in which it says that it ended. It may say anything.
    pub left: Option<PathBuf>,
    /// What was held back, in the order in which it was tried.
    pub held_back: Vec<HeldBack>,
    /// The end of what it printed.
    pub printed_last: Vec<u8>,
    /// How it was contained.
    pub backend: Backend,
    /// How long it ran.
    pub duration: Duration,
    /// Why it was ended from outside: `stopped`, `session ended`.
    pub because: Option<String>,
}

impl Outcome {
    /// The exit code as a shell gives it.
    pub fn exit_code(&self) -> i32 {
        match (&self.limit, self.code, self.signal) {
            (Some(limit), _, _) if limit == "time" => 124,
            (Some(_), _, _) => 137,
            (None, Some(code), _) => code,
            (None, None, Some(signal)) => signal.saturating_add(128),
            (None, None, None) => 255,
        }
    }
}

/// The standard streams of this process, connected to a contained program, and the program.
struct Supervised {
    stage: Prepared,
    streams: Option<Streams>,
    running: Option<Running>,
    signals: OwnedFd,
    outer: Option<OwnedFd>,
    wrapper: Option<Wrapper>,
}

/// What a running call has to do with others outside.
struct Surroundings<'a> {
    /// The hosts that it may reach.
    outside: Option<&'a Outside>,
    /// The ports of the host's loopback that are among them.
    ports: &'a [u16],
    /// The project whose other calls it may reach.
    workspace: Option<&'a Path>,
    /// Whether its ports are published.
    publish: bool,
    /// What it leaves behind, if it lives on.
    kept: Option<Kept<'a>>,
}

/// A call that lives on.
#[derive(Clone, Copy)]
struct Kept<'a> {
    keeper: &'a Keeper,
    /// Readable when the session has ended.
    owner: &'a OwnedFd,
    detached: Detached,
    run: &'a LiveRun,
}

/// Runs a program inside a fence, with the standard streams of this process, in a stage that is prepared or in a new one.
pub fn run(fence: &Fence, launch: &Launch, backend: Backend, prepared: Option<Prepared>) -> Result<Outcome, Denied> {
    let prepared = prepared.filter(|prepared| prepared.backend() == backend);
    let environment = environment::contained(launch.environment.iter().cloned());
    let programs: Vec<PathBuf> =
        program::directories(&environment).into_iter().filter(|path| path.is_absolute()).collect();
    let shared = fence.shared.iter().filter(|shared| shared.writable).map(|shared| shared.path.clone());
    let run = LiveRun {
        id: live::new_id(),
        directory: launch.directory.clone(),
        workspace: fence.workspace.clone(),
        roots: fence.roots.iter().cloned().chain(shared).collect(),
        background: launch.detached.is_some(),
        links: launch.run.links && launch.detached.is_none(),
        ..launch.run.clone()
    };
    // Until everything has ended, nobody takes for granted what he saw in these directories.
    let registered = live::register(&run).map_err(|error| Denied::new(format!("cannot record the call: {error}")))?;
    let unconnected = |error| Denied::new(format!("cannot connect the standard streams: {error}"));
    let Some(detached) = launch.detached else {
        let streams = Streams::of_this_process(fence.limits.output).map_err(unconnected)?;
        return start(fence, launch, (backend, prepared), &environment, &programs, streams, None);
    };
    let kept = || {
        let owner = run.owner.ok_or_else(|| io::Error::other("no process leads this session"))?;
        Ok((owner::watch(owner)?, Keeper::new(&run)?))
    };
    let (owner, keeper) =
        kept().map_err(|error: io::Error| Denied::new(format!("cannot start in the background: {error}")))?;
    let kept = Kept { keeper: &keeper, owner: &owner, detached, run: &run };
    let streams = keeper.output().and_then(|output| Streams::kept(output, fence.limits.output)).map_err(unconnected);
    let outcome = streams
        .and_then(|streams| start(fence, launch, (backend, prepared), &environment, &programs, streams, Some(kept)));
    match &outcome {
        Ok(outcome) => keeper.ended(outcome.exit_code(), outcome.limit.clone().or_else(|| outcome.because.clone())),
        Err(_) => keeper.forget(),
    }
    drop(registered);
    outcome
}

/// Whether a program can be started inside a fence. It gets no streams.
pub(crate) fn try_out(fence: &Fence, launch: &Launch) -> Result<(), Denied> {
    let streams = Streams::none().map_err(|error| Denied::new(format!("cannot open /dev/null: {error}")))?;
    let backend = launch.backend.unwrap_or_default();
    let outcome = start(fence, launch, (backend, None), &[], &[], streams, None)?;
    if outcome.code == Some(0) { Ok(()) } else { Err(Denied::new(format!("a trial program ended with {outcome:?}"))) }
}

fn start(
    fence: &Fence,
    launch: &Launch,
    (backend, prepared): (Backend, Option<Prepared>),
    environment: &[(OsString, OsString)],
    programs: &[PathBuf],
    streams: Streams,
    kept: Option<Kept<'_>>,
) -> Result<Outcome, Denied> {
    // Contained calls change nothing while this one looks around and is set up.
    let lock = lock()?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| Denied::new(format!("cannot take the lock of contained calls: {error}")))?;
    let _made = MadeFiles::of(fence);
    let layout = lay_out(fence, programs, &toolchains(environment, fence), &launch.directory)?;
    let program = program_of(launch, programs)?;
    let in_layer =
        |mount: &Mount| matches!(mount.kind, MountKind::Layer { .. }) && program.path().starts_with(&mount.path);
    // In a layer files have other numbers.
    let identity = (!layout.mounts.iter().any(in_layer)).then(|| program.identity());
    let text = |(name, value): &(OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let network = outside::hosts(fence);
    // Where nothing is hidden in the roots, reading costs nothing.
    let hides = backend != Backend::Landlock && layout.hidden.iter().any(|hidden| hidden.identity.is_some());
    let told_apart = backend != Backend::Landlock && scripts::are_told_apart(fence);
    let for_scripts = if told_apart { scripts::variables(environment) } else { Vec::new() };
    let mut order = Order {
        backend,
        mounts: layout.mounts,
        links: layout.links,
        private: layout.private,
        hidden: layout.hidden,
        secrets: if hides { fence.hidden.clone() } else { Globs::default() },
        files: layout.files,
        roots: fence.roots.clone(),
        protected: protected(fence),
        allowed: fence.allowed.clone(),
        protected_paths: layout.protected,
        protected_files: layout.linked,
        git: fence.git,
        outside: fence.network != Network::None,
        scripts: told_apart,
        ports: outside_ports(&network),
        neighbours: fence.workspace.is_some() && backend != Backend::Landlock,
        publish: launch.publish || kept.is_some(),
        may_link: launch.run.links && kept.is_none(),
        limits: fence.limits,
        directory: launch.directory.clone(),
        left: launch.left,
        identity,
        is_script: program.is_script(),
        program: program.path().to_owned(),
        words: launch.words.iter().cloned().map(OsString::into_vec).collect(),
        environment: environment.iter().chain(&for_scripts).map(text).collect(),
        terminal: streams.terminal,
        size: streams.size,
        seen: Vec::new(),
    };
    let wrapper = (backend == Backend::Bubblewrap).then(|| Wrapper::new(&mut order)).transpose()?;
    let outside = Outside::new(&network)?;
    // Opened once for each: who shares it would release the other's turn.
    let turns = self::lock()?;
    let started = Instant::now();
    let mut supervised = Supervised::start(&order, streams, wrapper, &turns, prepared)
        .map_err(|error| Denied::new(format!("cannot start the sandbox: {error}")))?;
    let surroundings = Surroundings {
        outside: outside.as_ref(),
        ports: &order.ports,
        workspace: fence.workspace.as_deref(),
        publish: order.publish,
        kept,
    };
    supervised.serve(backend, started, &lock, &surroundings)
}

/// Files in the real temporary directory that the command names and will write: they must be there to be seen inside. One that the
/// command did not touch goes away again.
struct MadeFiles(Vec<(PathBuf, std::fs::Metadata)>);

impl MadeFiles {
    fn of(fence: &Fence) -> Self {
        let missing = fence.shared.iter().filter(|shared| shared.redirected && shared.path.symlink_metadata().is_err());
        let made = missing.filter_map(|shared| {
            let mut options = std::fs::OpenOptions::new();
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
            // If it cannot be made, the command finds out by itself.
            let file = options.write(true).create_new(true).open(&shared.path).ok()?;
            Some((shared.path.clone(), file.metadata().ok()?))
        });
        MadeFiles(made.collect())
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        for (path, before) in &self.0 {
            let untouched = |now: std::fs::Metadata| {
                let identity =
                    |data: &std::fs::Metadata| (data.dev(), data.ino(), data.len(), data.mtime(), data.mtime_nsec());
                identity(&now) == identity(before)
            };
            if path.symlink_metadata().is_ok_and(untouched) {
                // somebody else may have been faster
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// The ports of the host's loopback that a list names.
fn outside_ports(network: &Network) -> Vec<u16> {
    let Network::Hosts(hosts) = network else { return Vec::new() };
    let here = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    hosts.iter().filter_map(|entry| entry.rsplit_once(':').filter(|(host, _)| here(host))?.1.parse().ok()).collect()
}

/// The program: the one that was opened before the call was judged, if it still is that one, or one that is found now.
fn program_of(launch: &Launch, programs: &[PathBuf]) -> Result<Program, Denied> {
    if let Some(program) = &launch.program {
        return program.check().map(|()| program.clone());
    }
    let Some(name) = launch.words.first() else { return Err(Denied::new("there is no program to start")) };
    Program::find(name, &launch.directory, programs)
}

/// What is protected. In a home directory that may be changed, that is every hidden name: all of them are settings of something.
fn protected(fence: &Fence) -> Globs {
    let mut all = fence.protected.clone();
    if let Some(home) = fence.home.as_deref().filter(|home| fence.roots.iter().any(|root| home.starts_with(root))) {
        let home = home.to_string_lossy();
        for name in ["/.*", "/.*/**", "/bin/**"] {
            all.push(&[&escape(&home), name]);
        }
        for cache in fence.caches.iter().filter_map(|cache| cache.to_str()) {
            all.push(&["!", &escape(cache), "/**"]);
        }
    }
    all
}

/// What all brokers of a user share, so that two calls at once do not change what the other has judged.
fn lock() -> Result<std::fs::File, Denied> {
    let state = callgate_policy::directories::state()
        .ok_or_else(|| Denied::new("there is no home directory for callgate's state").hint("set HOME"))?;
    let path = state.join("sandbox.lock");
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create(true).truncate(false), 0o600);
    std::fs::create_dir_all(&state).and_then(|()| options.open(&path)).map_err(|error| {
        Denied::new(format!("cannot open {}: {error}", path.display()))
            .hint("contained calls take turns with this file; make its directory writable for this user")
    })
}

impl Supervised {
    fn start(
        order: &Order,
        streams: Streams,
        wrapper: Option<Wrapper>,
        turns: &std::fs::File,
        prepared: Option<Prepared>,
    ) -> io::Result<Self> {
        let mut watched = PASSED_ON.to_vec();
        watched.push(libc::SIGWINCH);
        let signals = system::signal_descriptor(&watched)?;
        let stage = match prepared {
            Some(prepared) => prepared,
            None => Prepared::spawn(order.backend, wrapper.as_ref())?,
        };
        let text = rustix::fs::memfd_create("order", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(text);
        io::Write::write_all(&mut file, &order.to_bytes()?)?;
        io::Seek::rewind(&mut file)?;
        let [input, output, errors] = &streams.inside;
        let descriptors: [BorrowedFd<'_>; 5] =
            [file.as_fd(), turns.as_fd(), input.as_fd(), output.as_fd(), errors.as_fd()];
        match stage.channel().map(|channel| channel::send(channel, &(), &descriptors)) {
            // It has ended already; why is found out when it is waited for.
            Some(Err(error)) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => {}
            sent => sent.unwrap_or(Ok(()))?,
        }
        Ok(Supervised { stage, streams: Some(streams), running: None, signals, outer: None, wrapper })
    }

    fn serve(
        &mut self,
        backend: Backend,
        started: Instant,
        lock: &std::fs::File,
        surroundings: &Surroundings<'_>,
    ) -> Result<Outcome, Denied> {
        let Surroundings { outside, kept, .. } = *surroundings;
        let mut outcome = Outcome {
            code: None,
            signal: None,
            limit: None,
            left: None,
            held_back: Vec::new(),
            printed_last: Vec::new(),
            backend,
            duration: Duration::ZERO,
            because: None,
        };
        let mut told: Option<(i32, Instant)> = None;
        let mut failed = None;
        let is_watched =
            surroundings.publish || kept.is_some() || self.streams.as_ref().is_some_and(Streams::are_limited);
        let mut asked_for_ports = Instant::now();
        let stopped = Arc::new(AtomicBool::new(false));
        let publisher = match self.stage.channel() {
            Some(channel) if surroundings.publish => {
                let publisher = channel.try_clone().and_then(Publisher::new);
                Some(publisher.map_err(|error| Denied::new(format!("cannot publish ports: {error}")))?)
            }
            _ => None,
        };
        let publisher = publisher.as_ref().map(|(publisher, _end)| publisher);
        while let Some(channel) = self.stage.channel() {
            let grace = told.map(|(_, since)| GRACE.saturating_sub(since.elapsed()));
            if grace == Some(Duration::ZERO) {
                break;
            }
            if self.running.as_ref().is_some_and(Running::over_limit) {
                outcome.limit = Some("output".to_owned());
                break;
            }
            let timeout = grace.or(is_watched.then_some(WATCHED_EVERY));
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            let mut ready = vec![PollFd::new(channel, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            if let Some(kept) = kept {
                ready.push(PollFd::new(kept.keeper.socket(), PollFlags::IN));
                if told.is_none() {
                    ready.push(PollFd::new(kept.owner, PollFlags::IN));
                }
            }
            if rustix::event::poll(&mut ready, timeout.as_ref()).is_err() {
                continue;
            }
            let mut ready = ready.iter().map(PollFd::revents);
            let mut next = || ready.next().unwrap_or(PollFlags::empty());
            let (from_stage, from_signals, from_others, from_owner) = (next(), next(), next(), next());
            if let (Some(kept), Some(publisher), false) = (kept, publisher, from_others.is_empty()) {
                let stopped = Arc::clone(&stopped);
                kept.keeper.answer(publisher, move || stopped.store(true, Ordering::Relaxed));
            }
            let is_stopped = stopped.load(Ordering::Relaxed);
            if told.is_none() && (is_stopped || !from_owner.is_empty()) {
                told = Some((libc::SIGTERM, Instant::now()));
                outcome.because = Some(if is_stopped { "stopped" } else { "session ended" }.to_owned());
                let _ = channel::send(channel, &Request::Signal(libc::SIGTERM), &[]);
            }
            if publisher.is_some_and(|publisher| publisher.listens()) && asked_for_ports.elapsed() > BETWEEN_LOOKS {
                asked_for_ports = Instant::now();
                let _ = channel::send(channel, &Request::Listening, &[]);
            }
            if !from_signals.is_empty()
                && let Some(number) = system::read_signal(self.signals.as_fd())
            {
                if number == libc::SIGWINCH {
                    if let Some(running) = &self.running {
                        running.resize();
                    }
                } else {
                    if matches!(number, libc::SIGTERM | libc::SIGHUP)
                        || told.is_some_and(|(before, _)| before == number)
                    {
                        told.get_or_insert((number, Instant::now()));
                    }
                    // a stage that is gone is noticed below
                    let _ = channel::send(channel, &Request::Signal(number), &[]);
                }
            }
            if from_stage.is_empty() {
                continue;
            }
            let Ok(Some((report, descriptors))) = channel::receive::<Report>(channel) else { break };
            match report {
                Report::Prepared => {}
                Report::Terminal => self.outer = descriptors.into_iter().next(),
                Report::Ready { .. } => {
                    let _ = rustix::fs::flock(lock, rustix::fs::FlockOperation::Unlock);
                    if let Some(streams) = self.streams.take() {
                        let running = streams.start(self.outer.take());
                        self.running =
                            Some(running.map_err(|error| Denied::new(format!("cannot copy the streams: {error}")))?);
                    }
                    if let Some(kept) = kept {
                        (kept.detached.started)(kept.run)
                            .map_err(|error| Denied::new(format!("cannot go on in the background: {error}")))?;
                    }
                }
                Report::Failed { step, error, program } => {
                    failed = Some(if program {
                        Denied { program: Some(126), ..Denied::new(format!("cannot {step}: {error}")) }
                            .hint("a contained call sees programs in the project, in system directories and in the directories of PATH")
                    } else {
                        Denied::new(format!("the sandbox could not be set up: cannot {step}: {error}"))
                            .hint("run `callgate doctor` to see what this machine can hold")
                    });
                }
                Report::HeldBack(held_back) => outcome.held_back.push(held_back),
                Report::Names => {
                    if let Some(outside) = outside {
                        outside.serve_names(descriptors);
                    }
                }
                Report::Connect { id, stream, to } => surroundings.connect(channel, id, stream, to),
                Report::Listening { addresses } => {
                    if let Some(publisher) = publisher {
                        publisher.listening(addresses);
                    }
                }
                Report::Socket { id } => {
                    if let Some(publisher) = publisher {
                        publisher.made(id, descriptors.into_iter().next());
                    }
                }
                Report::Limit { limit } => outcome.limit = Some(limit),
                Report::Ended { code, signal, left } => {
                    outcome.left = left;
                    outcome.code = code;
                    outcome.signal = signal;
                }
            }
        }
        // Without its channel the first process ends, and everything inside with it; the stage ends after that.
        self.stage.hang_up();
        self.streams = None;
        let status = self.stage.wait().map_err(|error| Denied::new(format!("cannot wait for the sandbox: {error}")))?;
        outcome.duration = started.elapsed();
        outcome.held_back.extend(outside.map(Outside::held_back).unwrap_or_default());
        if let Some(running) = self.running.take() {
            outcome.printed_last = running.finish();
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        if let Some((signal, _)) = told
            && outcome.code.is_none()
        {
            outcome.signal = Some(signal);
        }
        if outcome.code.is_none() && outcome.signal.is_none() && outcome.limit.is_none() {
            if let Some(said) = self.wrapper.as_mut().and_then(Wrapper::said) {
                return Err(Denied::new(format!("the sandbox could not be set up: bubblewrap: {said}"))
                    .hint("run `callgate doctor` to see what this machine can hold"));
            }
            let how =
                status.signal().map_or_else(|| "ended".to_owned(), |signal| format!("was ended by signal {signal}"));
            return Err(Denied::new(format!("the sandbox {how} before the program did")));
        }
        Ok(outcome)
    }
}

impl Surroundings<'_> {
    /// Connects on behalf of the program: to a host, or to what another call of the project serves.
    fn connect(&self, channel: &OwnedFd, id: u64, stream: bool, to: SocketAddr) {
        let refused = |error: i32| {
            // a stage that is gone is noticed elsewhere
            let _ = channel::send(channel, &Request::Connected { id, error }, &[]);
        };
        let Ok(channel) = channel.try_clone() else { return refused(libc::EMFILE) };
        let is_here = to.ip().is_loopback() || to.ip().is_unspecified();
        let Some(workspace) = self.workspace.filter(|_| is_here && !self.ports.contains(&to.port())) else {
            return match self.outside {
                Some(outside) => outside.connect(channel, id, stream, to),
                None => refused(libc::ENETUNREACH),
            };
        };
        let (workspace, port) = (workspace.to_owned(), to.port());
        let connect = move || {
            let connection = background::connect_to_neighbour(&workspace, port);
            let error = if connection.is_some() { 0 } else { libc::ECONNREFUSED };
            let descriptors: Vec<BorrowedFd<'_>> = connection.iter().map(AsFd::as_fd).collect();
            let _ = channel::send(&channel, &Request::Connected { id, error }, &descriptors);
        };
        if std::thread::Builder::new().stack_size(256 << 10).spawn(connect).is_err() {
            refused(libc::EAGAIN);
        }
    }
}

/// Blocks the signals that are passed on to programs. A process that has other threads while it runs one calls this before it starts them, so that
/// none of them takes a signal.
pub fn hold_signals() -> io::Result<()> {
    system::signal_descriptor(&PASSED_ON).map(drop)
}

/// Runs a program without a sandbox, with the standard streams of this process. Returns its exit code as a shell gives it.
pub fn run_free(launch: &Launch) -> Result<i32, Denied> {
    let program = program_of(launch, &program::directories(&launch.environment))?;
    let failed = |error: io::Error| Denied {
        program: Some(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }),
        ..Denied::new(format!("cannot start {}: {error}", program.path().display()))
    };
    let signals = system::signal_descriptor(&PASSED_ON).map_err(failed)?;
    let words = launch.words.get(1..).unwrap_or_default();
    let mut command = Command::new(program.to_start());
    command.args(words).current_dir(&launch.directory).env_clear();
    // Variables that would make a shell run something before the command.
    let starts_something =
        |name: &OsString| name == "BASH_ENV" || name == "ENV" || name == "SHELLOPTS" || name == "BASHOPTS";
    command.envs(launch.environment.iter().filter(|(name, _)| !starts_something(name)).cloned());
    if let Some(name) = launch.words.first() {
        std::os::unix::process::CommandExt::arg0(&mut command, name);
    }
    let mut child = command.spawn().map_err(failed)?;
    let process = rustix::process::Pid::from_child(&child);
    let end = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty())
        .map_err(|error| failed(error.into()))?;
    loop {
        let mut ready = [PollFd::new(&end, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        if rustix::event::poll(&mut ready, None).is_err() {
            continue;
        }
        let [ended, signalled] = ready.map(|ready| ready.revents());
        if !signalled.is_empty()
            && let Some(signal) = system::read_signal(signals.as_fd()).and_then(rustix::process::Signal::from_named_raw)
            // keys reach the program through the terminal itself
            && !matches!(signal, rustix::process::Signal::INT | rustix::process::Signal::QUIT)
        {
            let _ = rustix::process::kill_process(process, signal);
        }
        if !ended.is_empty() {
            let status = child.wait().map_err(failed)?;
            return Ok(status.code().or_else(|| Some(status.signal()?.saturating_add(128))).unwrap_or(255));
        }
    }
}
