//! The system calls that no crate offers safely. All unsafe code of this crate is here, each block with its reason.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Turns the result of a system call into a `Result`.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let descriptor = RawFd::try_from(checked(result)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// What `fork` returns.
pub enum Fork {
    /// In the parent: the child.
    Parent(rustix::process::Pid),
    /// In the child.
    Child,
}

/// Duplicates this process. Only for a process with one thread: the stage, before it starts any.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: the stage has one thread, so no lock of another thread is copied in a locked state.
    let pid = unsafe { libc::fork() };
    let pid = i32::try_from(checked(pid.into())?).map_err(io::Error::other)?;
    Ok(rustix::process::Pid::from_raw(pid).map_or(Fork::Child, Fork::Parent))
}

/// Leaves all namespaces for new ones. Only for a process with one thread.
pub fn leave_namespaces() -> io::Result<()> {
    use rustix::thread::UnshareFlags;
    let flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWCGROUP;
    // SAFETY: the descriptors are not among what is left, so none changes its meaning.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Tries whether this process may make namespaces and mount in them, as a sandbox does.
pub fn may_make_namespaces() -> io::Result<()> {
    /// Runs in the child. It makes two system calls and touches nothing but the number that it is given.
    extern "C" fn trial(result: *mut libc::c_void) -> libc::c_int {
        let (source, target) = (c"proc", c"/proc");
        // SAFETY: the strings are C strings that live for ever, and this kind of file system takes no options. The parent waits
        // until this process has ended, so the number is still there, and nobody else uses it.
        unsafe {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            if libc::mount(source.as_ptr(), target.as_ptr(), source.as_ptr(), flags, std::ptr::null()) == 0 {
                *result.cast::<libc::c_int>() = 0;
            } else {
                *result.cast::<libc::c_int>() = *libc::__errno_location();
            }
        }
        0
    }
    let mut stack = vec![0_u128; 4096];
    let mut result: libc::c_int = libc::EIO;
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: the child has a stack of its own, which grows down from its aligned end, and this thread waits (CLONE_VFORK) until
    // the child no longer uses this memory, so the stack and the number outlive it.
    let made = unsafe {
        let top = stack.as_mut_ptr().add(stack.len());
        libc::clone(trial, top.cast(), flags | libc::SIGCHLD, (&raw mut result).cast())
    };
    let child = i32::try_from(checked(made.into())?).map_err(io::Error::other)?;
    // The kernel takes its time to clear namespaces away, for which nobody has to wait.
    std::thread::spawn(move || rustix::process::Pid::from_raw(child).map(reap));
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Waits for a child, on a thread that takes no signal away from the others.
fn reap(child: rustix::process::Pid) {
    // SAFETY: the set is initialized by sigfillset before anything reads it, and the pointers are valid during the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
    // With all signals blocked nothing interrupts this; where children are reaped by themselves, there is none.
    let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
}

/// The attributes of `mount_setattr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Read-only.
pub const MOUNT_READ_ONLY: u64 = 0x1;
/// Set-user-id bits mean nothing.
pub const MOUNT_NO_SETUID: u64 = 0x2;
/// Devices cannot be opened.
pub const MOUNT_NO_DEVICES: u64 = 0x4;
/// Propagation: private.
const PRIVATE: u64 = 1 << 18;

/// Sets attributes of a mount and of all mounts below it.
pub fn set_mount_attributes(mount: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: PRIVATE, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a C string, and the kernel reads exactly the structure whose size it is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    checked(result).map(drop)
}

/// Brings the loopback interface of this network namespace up.
pub fn raise_loopback() -> io::Result<()> {
    // SAFETY: no pointers.
    let socket = owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into())?;
    // SAFETY: all zeroes are a valid value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = libc::c_char::try_from(*byte).unwrap_or_default();
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    // SAFETY: the request is a structure of the kind that this ioctl reads.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) }.into()).map(drop)
}

/// The number of the network namespace that a socket belongs to.
pub fn network_of(socket: BorrowedFd<'_>) -> Option<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let (mut cookie, mut length) = (0_u64, libc::socklen_t::try_from(size_of::<u64>()).ok()?);
    // SAFETY: the kernel writes at most `length` bytes, which is the size of the number.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(cookie)
}

/// The number of the network namespace of this process.
pub fn own_network() -> Option<u64> {
    // SAFETY: no pointers.
    let socket = owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into()).ok()?;
    network_of(socket.as_fd())
}

/// A descriptor that reports the given signals, which are blocked from now on.
pub fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialized by sigemptyset before anything reads it, and the pointers are valid during the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        owned(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())
    }
}

/// Reads one signal from such a descriptor.
pub fn read_signal(descriptor: BorrowedFd<'_>) -> Option<i32> {
    let mut buffer = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let length = rustix::io::read(descriptor, &mut buffer).ok()?;
    let number = buffer.get(..4).filter(|_| length == buffer.len())?;
    i32::try_from(u32::from_ne_bytes(number.try_into().ok()?)).ok()
}

/// Gives signals back their default behaviour and unblocks them, as a new program expects.
pub fn restore_signals() {
    // SAFETY: SIG_DFL is a valid handler, and the empty set is initialized before it is used.
    unsafe {
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Makes the terminal the controlling one of this session.
pub fn take_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this ioctl takes a number.
    checked(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }.into()).map(drop)
}

/// Whether other processes of the user may look into this one.
pub fn set_dumpable(dumpable: bool) -> io::Result<()> {
    // SAFETY: this prctl takes numbers.
    checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_ulong::from(dumpable), 0, 0, 0) }.into()).map(drop)
}

/// The list of strings that the kernel takes, with its end. It is good while the strings live.
fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Replaces this process by a program. Returns only if that failed.
pub fn execute(program: &CStr, words: &[CString], environment: &[CString]) -> io::Error {
    let (words, environment) = (pointers(words), pointers(environment));
    // SAFETY: both lists end with a null pointer, and their strings live until the call returns.
    unsafe { libc::execve(program.as_ptr(), words.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Replaces this process by the program that a descriptor holds. Returns only if that failed.
pub fn execute_descriptor(program: BorrowedFd<'_>, words: &[CString], environment: &[CString]) -> io::Error {
    let (words, environment) = (pointers(words), pointers(environment));
    // SAFETY: the path is a C string, both lists end with a null pointer, and their strings live until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            words.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// Marks all descriptors from `first` on, so that they do not reach the program that is started next.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: no pointers; nothing is closed now.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Reads memory of another process, up to the end of what can be read.
pub fn read_memory(process: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let address = usize::try_from(address).map_err(io::Error::other)?;
    let here = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes into the buffer; the other address is not used in this process.
    let length = unsafe { libc::process_vm_readv(process, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(checked(length as libc::c_long)?).map_err(io::Error::other)
}

// ── Landlock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// What Landlock calls reading and executing: executing, reading files, reading directories.
const LANDLOCK_LOOKING: u64 = 1 | 1 << 2 | 1 << 3;

/// Requests to devices, which are those of the sandbox itself: terminals need them.
const LANDLOCK_DEVICES: u64 = 1 << 15;

#[repr(C)]
struct LandlockRuleset {
    files: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct LandlockBeneath {
    allowed: u64,
    parent: RawFd,
}

/// The version of Landlock that the kernel has; zero if it has none.
pub fn landlock_version() -> u32 {
    // SAFETY: with this flag the kernel reads no structure.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, 1_u32) };
    u32::try_from(version).unwrap_or_default()
}

/// Restricts this thread and what it starts: below the given directories only reading and executing is left, elsewhere nothing.
/// Sockets by abstract names and signals do not leave. Descriptors that others open and hand over keep what they allow.
pub fn restrict_files(readable: &[BorrowedFd<'_>], version: u32) -> io::Result<()> {
    let files = match version {
        0 => return Err(io::Error::from(io::ErrorKind::Unsupported)),
        1 => (1 << 13) - 1,
        2 => (1 << 14) - 1,
        3 | 4 => (1 << 15) - 1,
        _ => (1 << 16) - 1,
    };
    let scoped = if version >= 6 { 0b11 } else { 0 };
    let ruleset = LandlockRuleset { files, network: 0, scoped };
    let size = match version {
        1..=3 => 8,
        4..=5 => 16,
        _ => size_of::<LandlockRuleset>(),
    };
    // SAFETY: the kernel reads `size` bytes of the structure, which is at least that long.
    let made = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const ruleset, size, 0_u32) };
    let made = owned(made)?;
    for directory in readable {
        let rule =
            LandlockBeneath { allowed: (LANDLOCK_LOOKING | LANDLOCK_DEVICES) & files, parent: directory.as_raw_fd() };
        // SAFETY: the rule is the structure that this kind of rule (1) is made of.
        checked(unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, made.as_raw_fd(), 1_u32, &raw const rule, 0_u32)
        })?;
    }
    // SAFETY: no pointers.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, made.as_raw_fd(), 0_u32) }).map(drop)
}

// ── seccomp ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// One instruction of a filter.
pub use libc::sock_filter as Instruction;

/// Installs a filter for this thread and what it starts. Returns the listener that decides about the calls it passes on.
pub fn install_filter(program: &[Instruction]) -> io::Result<OwnedFd> {
    const NEW_LISTENER: libc::c_ulong = 1 << 3;
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads `len` instructions and writes nothing.
    owned(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            NEW_LISTENER | WAIT_KILLABLE,
            &raw const program,
        )
    })
}

/// Installs one more filter for this thread and what it starts.
pub fn add_filter(program: &[Instruction]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads `len` instructions and writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u64, &raw const program) };
    checked(result).map(drop)
}

/// A system call that waits for a decision.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Notification {
    /// Identifies it.
    pub id: u64,
    /// The thread.
    pub thread: u32,
    /// Unused.
    pub flags: u32,
    /// The number of the system call.
    pub number: i32,
    /// The architecture.
    pub architecture: u32,
    /// Where the thread is.
    pub instruction: u64,
    /// The arguments.
    pub arguments: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddDescriptor {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const IS_VALID: libc::c_ulong = 0x4008_2102;
const ADD_DESCRIPTOR: libc::c_ulong = 0x4018_2103;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;

/// Lets the one who waits and the one who decides run on the same processor, which is faster.
pub fn decide_synchronously(listener: BorrowedFd<'_>) {
    // SAFETY: this ioctl takes a number. A kernel that does not know it is only slower.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, 1_u64) };
}

/// Takes the next system call that waits.
pub fn receive(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    let mut notification = Notification::default();
    // SAFETY: the structure has the size that the number of this ioctl states, and is zeroed as the kernel demands.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut notification) }.into())?;
    Ok(notification)
}

/// Whether the thread still waits. What was read from its memory before is its own only then.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads eight bytes.
    unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID as _, &raw const id) == 0 }
}

/// Answers a system call with a value, or with an error number.
pub fn answer(listener: BorrowedFd<'_>, id: u64, answer: Result<i64, i32>) {
    let (value, error) = match answer {
        Ok(value) => (value, 0),
        Err(error) => (0, error.saturating_neg()),
    };
    let response = Response { id, value, error, flags: 0 };
    // SAFETY: the structure is the one this ioctl reads. It fails only if the thread is gone.
    unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) };
}

/// Lets the kernel perform a system call. INVARIANT: only for calls whose arguments are all in registers, which nobody else can
/// change: what is in memory may be something else by then.
pub fn let_continue(listener: BorrowedFd<'_>, id: u64) {
    const CONTINUE: u32 = 1;
    let response = Response { id, value: 0, error: 0, flags: CONTINUE };
    // SAFETY: the structure is the one this ioctl reads. It fails only if the thread is gone.
    unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) };
}

/// Answers a system call with a descriptor, which the thread gets as a new one.
pub fn answer_with_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    close_on_exec: bool,
) -> io::Result<()> {
    const AND_SEND: u32 = 2;
    add_descriptor(listener, id, descriptor, AND_SEND, 0, close_on_exec)
}

/// Puts a descriptor in the place of one that the thread has.
pub fn replace_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    target: u32,
    close_on_exec: bool,
) -> io::Result<()> {
    const AT_TARGET: u32 = 1;
    add_descriptor(listener, id, descriptor, AT_TARGET, target, close_on_exec)
}

fn add_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    flags: u32,
    target: u32,
    close_on_exec: bool,
) -> io::Result<()> {
    let target_flags = if close_on_exec { libc::O_CLOEXEC.unsigned_abs() } else { 0 };
    let source = descriptor.as_raw_fd().unsigned_abs();
    let request = AddDescriptor { id, flags, source, target, target_flags };
    // SAFETY: the structure is the one this ioctl reads.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), ADD_DESCRIPTOR as _, &raw const request) }.into()).map(drop)
}

/// Connects or binds a socket to an address as the bytes that a program gave.
pub fn with_address(socket: BorrowedFd<'_>, address: &[u8], bind: bool) -> io::Result<()> {
    let length = libc::socklen_t::try_from(address.len()).map_err(io::Error::other)?;
    let call = if bind { libc::bind } else { libc::connect };
    // SAFETY: the kernel reads `length` bytes, which is the length of the slice, and demands no alignment.
    checked(unsafe { call(socket.as_raw_fd(), address.as_ptr().cast(), length) }.into()).map(drop)
}

/// Whether standard output was closed when this process was started.
static CLOSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Looks before Rust's own start opens `/dev/null` in place of a closed descriptor, after which nobody could tell.
extern "C" fn look_at_standard_output() {
    // SAFETY: asks for the flags of a descriptor, which may be closed; nothing is allocated and nothing is locked.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags < 0, std::sync::atomic::Ordering::Relaxed);
}

// SAFETY: this section holds functions without arguments that the start of a program calls once.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = look_at_standard_output;

/// Whether standard output was closed when this process was started, as by `>&-`: what is printed is lost without an error.
pub fn standard_output_was_closed() -> bool {
    // Naming the entry keeps it in the program.
    std::hint::black_box(&AT_START);
    CLOSED.load(std::sync::atomic::Ordering::Relaxed)
}
