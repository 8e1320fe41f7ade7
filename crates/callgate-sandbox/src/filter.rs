//! The filter of system calls: which are closed, and which are decided by the broker.
//!
//! Everything else is allowed, which the kernel remembers, so that it costs nothing.

use crate::system::Instruction;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The last system call that this filter knows. Later ones do not exist for contained programs.
const LAST_KNOWN: u32 = 466;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const ERRNO: u32 = 0x0005_0000;

/// Where the fields of a call lie: its number, its architecture, and the lower half of each argument.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + index * 8
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_GREATER: u16 = 0x25;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Opening with one of these may change something.
pub const CHANGING: i32 =
    libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);

/// What is opened with one of these gives no contents of files.
const WITHOUT_CONTENTS: i32 = libc::O_PATH | libc::O_DIRECTORY;

/// The namespaces that `clone` could make.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP
    | 0x80;

/// Typing into terminals, and what the console understands.
const TERMINAL_INPUT: [u32; 3] = [0x5412, 0x541c, 0x5423];

/// Requests that share contents between open files: they need no more than reading and writing them.
const SHARING: [u32; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// The kinds of requests that file systems have of their own: attributes, btrfs, bcachefs, ocfs2, autofs, ext4 and xfs.
const FILE_SYSTEMS: [u32; 7] = [0x66, 0x94, 0xbc, 0x6f, 0x93, 0x58, 0xcd];

/// The kernel's answers for a contained program that has no business there.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_memfd_secret,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[libc::c_long] =
    &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat, libc::SYS__sysctl];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[libc::c_long] = &[];

/// These do not exist for contained programs, which then use the older ones: they hide in memory what the filter must see.
const MISSING: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_openat2,
];

/// File systems without extended attributes answer so, and programs do without: they would change modes past the broker.
const UNSUPPORTED: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    463,
    466,
];

/// Decided by the broker whatever their arguments are.
pub const BROKERED: &[libc::c_long] = &[
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_linkat,
    libc::SYS_listen,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_unlinkat,
];

#[cfg(target_arch = "x86_64")]
const BROKERED_HERE: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_creat,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const BROKERED_HERE: &[libc::c_long] = &[libc::SYS_renameat];

const fn instruction(code: u16, value: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k: value }
}

const fn jump(code: u16, value: u32, yes: u8, no: u8) -> Instruction {
    Instruction { code, jt: yes, jf: no, k: value }
}

fn refuse(error: i32) -> Instruction {
    instruction(RETURN, ERRNO | error.unsigned_abs())
}

/// A filter while it is put together. Every block starts with the number of the call loaded and leaves it so, or returns.
struct Assembler {
    program: Vec<Instruction>,
}

impl Assembler {
    fn always(&mut self, calls: &[libc::c_long], then: Instruction) {
        for call in calls {
            self.block(*call, &[then]);
        }
    }

    /// What follows for one call. The block must return.
    fn block(&mut self, call: libc::c_long, body: &[Instruction]) {
        let Ok(number) = u32::try_from(call) else { return };
        self.program.push(jump(IF_EQUAL, number, 0, u8::try_from(body.len()).unwrap_or(u8::MAX)));
        self.program.extend_from_slice(body);
    }

    /// Opening files: what may change something, and where `reads` what gives contents, is for the broker.
    fn opening(&mut self, call: libc::c_long, flags: u32, reads: bool) {
        let (notify, allow) = (instruction(RETURN, NOTIFY), instruction(RETURN, ALLOW));
        let bits = |bits: i32| bits.cast_unsigned();
        let body = [
            instruction(LOAD, argument(flags)),
            jump(IF_ANY_BIT, bits(CHANGING), 2, 0),
            jump(IF_ANY_BIT, bits(WITHOUT_CONTENTS), 0, 1),
            allow,
            notify,
        ];
        if reads {
            self.block(call, &body);
        } else {
            self.by_bits(call, flags, CHANGING, notify);
        }
    }

    /// Decides by whether an argument has one of some bits.
    fn by_bits(&mut self, call: libc::c_long, index: u32, bits: i32, then: Instruction) {
        let bits = bits.cast_unsigned();
        let body = [instruction(LOAD, argument(index)), jump(IF_ANY_BIT, bits, 0, 1), then, instruction(RETURN, ALLOW)];
        self.block(call, &body);
    }
}

/// The filter for contained programs. `reads` says that the broker opens what is only read, too.
pub fn program(reads: bool) -> Vec<Instruction> {
    let notify = instruction(RETURN, NOTIFY);
    let mut filter = Assembler {
        program: vec![
            instruction(LOAD, ARCH),
            jump(IF_EQUAL, ARCHITECTURE, 1, 0),
            // calls of another architecture, such as `int 0x80`, have other numbers
            refuse(libc::ENOSYS),
            instruction(LOAD, NUMBER),
            // also the calls of the x32 interface, which have a high bit
            jump(IF_GREATER, LAST_KNOWN, 0, 1),
            refuse(libc::ENOSYS),
        ],
    };
    #[cfg(target_arch = "x86_64")]
    filter.opening(libc::SYS_open, 1, reads);
    filter.opening(libc::SYS_openat, 2, reads);
    filter.always(BROKERED, notify);
    filter.always(BROKERED_HERE, notify);
    filter.always(FORBIDDEN, refuse(libc::EPERM));
    filter.always(FORBIDDEN_HERE, refuse(libc::EPERM));
    filter.always(MISSING, refuse(libc::ENOSYS));
    filter.always(UNSUPPORTED, refuse(libc::EOPNOTSUPP));
    filter.by_bits(libc::SYS_clone, 0, NAMESPACES, refuse(libc::EPERM));
    // sending that connects first goes past the broker
    filter.by_bits(libc::SYS_sendto, 3, libc::MSG_FASTOPEN, refuse(libc::EPERM));
    filter.by_bits(libc::SYS_sendmsg, 2, libc::MSG_FASTOPEN, refuse(libc::EPERM));
    filter.by_bits(libc::SYS_sendmmsg, 3, libc::MSG_FASTOPEN, refuse(libc::EPERM));
    device_rules(&mut filter);
    // limits of others, such as the broker's
    filter.block(
        libc::SYS_prlimit64,
        &[instruction(LOAD, argument(0)), jump(IF_EQUAL, 0, 0, 1), instruction(RETURN, ALLOW), refuse(libc::EPERM)],
    );
    socket_rules(&mut filter);
    filter.program.push(instruction(RETURN, ALLOW));
    filter.program
}

/// A filter that refuses nothing: it only counts.
pub fn mark() -> Vec<Instruction> {
    vec![instruction(RETURN, ALLOW)]
}

/// Typing into terminals is closed, and so are the requests by which file systems make or copy directories, change attributes and
/// the like on a descriptor that is open for reading. Sharing contents between files that are open is not.
fn device_rules(filter: &mut Assembler) {
    let mut body = vec![instruction(LOAD, argument(1))];
    let closed = SHARING.len().saturating_add(FILE_SYSTEMS.len()).saturating_add(3);
    let rest = |left: usize| u8::try_from(left).unwrap_or(u8::MAX);
    for (index, request) in TERMINAL_INPUT.iter().enumerate() {
        body.push(jump(
            IF_EQUAL,
            *request,
            rest(TERMINAL_INPUT.len().saturating_sub(index).saturating_add(closed).saturating_sub(1)),
            0,
        ));
    }
    for (index, request) in SHARING.iter().enumerate() {
        body.push(jump(
            IF_EQUAL,
            *request,
            rest(SHARING.len().saturating_sub(index).saturating_add(FILE_SYSTEMS.len())),
            0,
        ));
    }
    body.push(instruction(AND, 0xff00));
    for (index, kind) in FILE_SYSTEMS.iter().enumerate() {
        body.push(jump(IF_EQUAL, kind << 8, rest(FILE_SYSTEMS.len().saturating_sub(index)), 0));
    }
    body.extend([instruction(RETURN, ALLOW), refuse(libc::ENOTTY), refuse(libc::EPERM)]);
    filter.block(libc::SYS_ioctl, &body);
}

/// Sockets: the internet's; unix ones except datagrams, which can be sent anywhere without connecting; and what programs ask about
/// the interfaces (netlink's protocol zero).
fn socket_rules(filter: &mut Assembler) {
    let constant = |value: i32| value.cast_unsigned();
    let refused = refuse(libc::EAFNOSUPPORT);
    let allowed = instruction(RETURN, ALLOW);
    // Only these: the kernel makes datagram sockets of other kinds, too.
    let connected = [
        instruction(LOAD, argument(1)),
        instruction(AND, 0xf),
        jump(IF_EQUAL, constant(libc::SOCK_STREAM), 2, 0),
        jump(IF_EQUAL, constant(libc::SOCK_SEQPACKET), 1, 0),
        refused,
        allowed,
    ];
    let mut socket = vec![
        instruction(LOAD, argument(0)),
        jump(IF_EQUAL, constant(libc::AF_INET), 10, 0),
        jump(IF_EQUAL, constant(libc::AF_INET6), 9, 0),
        jump(IF_EQUAL, constant(libc::AF_UNIX), 3, 0),
        jump(IF_EQUAL, constant(libc::AF_NETLINK), 0, 6),
        instruction(LOAD, argument(2)),
        jump(IF_EQUAL, 0, 5, 4),
    ];
    socket.extend_from_slice(&connected);
    filter.block(libc::SYS_socket, &socket);
    filter.block(libc::SYS_socketpair, &connected);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel does.
    fn decide(program: &[Instruction], number: libc::c_long, architecture: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend_from_slice(&i32::try_from(number).unwrap().to_ne_bytes());
        data.extend_from_slice(&architecture.to_ne_bytes());
        data.extend_from_slice(&0_u64.to_ne_bytes());
        for argument in arguments {
            data.extend_from_slice(&argument.to_ne_bytes());
        }
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let step = program[at];
            at += 1;
            let taken = match step.code {
                LOAD => {
                    let place = step.k as usize;
                    value = u32::from_ne_bytes(data[place..place + 4].try_into().unwrap());
                    continue;
                }
                AND => {
                    value &= step.k;
                    continue;
                }
                RETURN => return step.k,
                IF_EQUAL => value == step.k,
                IF_GREATER => value > step.k,
                IF_ANY_BIT => value & step.k != 0,
                other => unreachable!("{other}"),
            };
            at += usize::from(if taken { step.jt } else { step.jf });
        }
    }

    #[test]
    fn calls_are_decided_by_number_architecture_and_arguments() {
        let program = program(false);
        let at = |number, arguments| decide(&program, number, ARCHITECTURE, arguments);
        let refused = |error: i32| ERRNO | error.unsigned_abs();
        let flags = |flags: i32| [0, 0, u64::from(flags.unsigned_abs()), 0, 0, 0];
        assert_eq!(at(libc::SYS_read, [0; 6]), ALLOW);
        assert_eq!(at(libc::SYS_openat, flags(libc::O_RDONLY | libc::O_CLOEXEC)), ALLOW);
        assert_eq!(at(libc::SYS_openat, flags(libc::O_RDONLY | libc::O_DIRECTORY)), ALLOW);
        for changing in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_TMPFILE] {
            assert_eq!(at(libc::SYS_openat, flags(changing)), NOTIFY);
        }
        assert_eq!(at(libc::SYS_renameat2, [0; 6]), NOTIFY);
        assert_eq!(at(libc::SYS_mount, [0; 6]), refused(libc::EPERM));
        assert_eq!(at(libc::SYS_openat2, [0; 6]), refused(libc::ENOSYS));
        assert_eq!(
            at(libc::SYS_clone, [u64::from(libc::CLONE_NEWUSER.unsigned_abs()), 0, 0, 0, 0, 0]),
            refused(libc::EPERM)
        );
        assert_eq!(at(libc::SYS_clone, [0x11, 0, 0, 0, 0, 0]), ALLOW);
        // the upper half of an ioctl's number is ignored by the kernel, so it must not hide the lower one
        assert_eq!(at(libc::SYS_ioctl, [0, 0xffff_ffff_0000_5412, 0, 0, 0, 0]), refused(libc::EPERM));
        assert_eq!(at(libc::SYS_ioctl, [0, 0x5413, 0, 0, 0, 0]), ALLOW);
        for request in TERMINAL_INPUT {
            assert_eq!(at(libc::SYS_ioctl, [0, request.into(), 0, 0, 0, 0]), refused(libc::EPERM));
        }
        for request in SHARING {
            assert_eq!(at(libc::SYS_ioctl, [0, request.into(), 0, 0, 0, 0]), ALLOW);
        }
        for kind in FILE_SYSTEMS {
            assert_eq!(at(libc::SYS_ioctl, [0, u64::from(0x5000_0001 | kind << 8), 0, 0, 0, 0]), refused(libc::ENOTTY));
        }
        assert_eq!(decide(&program, libc::SYS_read, 0x4000_0003, [0; 6]), refused(libc::ENOSYS));
        assert_eq!(at(0x4000_0000, [0; 6]), refused(libc::ENOSYS));
    }

    #[test]
    fn what_gives_contents_is_for_the_broker_where_secrets_are_hidden() {
        for (reads, expected) in [(false, ALLOW), (true, NOTIFY)] {
            let program = program(reads);
            let at = |flags: i32| {
                decide(&program, libc::SYS_openat, ARCHITECTURE, [0, 0, u64::from(flags.unsigned_abs()), 0, 0, 0])
            };
            assert_eq!(at(libc::O_RDONLY), expected);
            assert_eq!(at(libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW), expected);
            for other in [libc::O_PATH, libc::O_DIRECTORY, libc::O_PATH | libc::O_NOFOLLOW] {
                assert_eq!(at(other), ALLOW);
            }
            for changing in [libc::O_WRONLY, libc::O_RDWR, libc::O_TMPFILE, libc::O_PATH | libc::O_CREAT] {
                assert_eq!(at(changing), NOTIFY);
            }
        }
    }

    #[test]
    fn sockets_are_those_of_the_internet_and_streams_of_this_machine() {
        let program = program(false);
        let socket = |family: i32, kind: i32, protocol: u64| {
            let arguments = [u64::from(family.unsigned_abs()), u64::from(kind.unsigned_abs()), protocol, 0, 0, 0];
            decide(&program, libc::SYS_socket, ARCHITECTURE, arguments)
        };
        let refused = ERRNO | libc::EAFNOSUPPORT.unsigned_abs();
        assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM, 0), ALLOW);
        assert_eq!(socket(libc::AF_INET6, libc::SOCK_DGRAM, 0), ALLOW);
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0), ALLOW);
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0), ALLOW);
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, 10, 0, 15] {
            assert_eq!(socket(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0), refused);
        }
        assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW, 0), ALLOW);
        assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW, 12), refused);
        for family in [libc::AF_ALG, libc::AF_VSOCK, libc::AF_PACKET, libc::AF_BLUETOOTH] {
            assert_eq!(socket(family, libc::SOCK_STREAM, 0), refused);
        }
    }
}
