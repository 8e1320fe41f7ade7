//! What the supervisor tells the stage, and what comes back.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use callgate_model::fence::{Globs, HeldBack, Limits, Protection};
use serde::{Deserialize, Serialize};

/// The word that makes the `callgate` command a stage. It is no command for people.
pub const STAGE: &str = "sandbox-stage";

/// The signals that are passed on to the program. Supervisor and stage do not end by them.
pub const PASSED_ON: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Where programs inside ask for names.
pub const RESOLVER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 53)), 53);

/// Where a program inside says in which directory it ends.
pub const LEFT: &str = "/tmp/.callgate-left";
/// The first port that is published. Those below belong to the system.
pub const FIRST_PUBLISHED: u16 = 1024;

/// Everything that the stage needs to know. It finds nothing out by itself.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// How much of the kernel is used.
    pub backend: Backend,
    /// The file system of the sandbox, in the order in which it is put together.
    pub mounts: Vec<Mount>,
    /// Symbolic links: path and target.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Directories that only the sandbox has, beside the temporary ones.
    pub private: Vec<PathBuf>,
    /// Files and directories of the host that are replaced by empty ones.
    pub hidden: Vec<HiddenPath>,
    /// The globs of hidden names, if some of them are in the roots: then nobody reads what gets such a name while the call runs.
    pub secrets: Globs,
    /// Files that the sandbox has instead of the host's: path and text.
    pub files: Vec<(PathBuf, String)>,
    /// The directories of the host that may be changed.
    pub roots: Vec<PathBuf>,
    /// The globs of what may not be changed in them: a long list, which is seldom needed. It travels by itself.
    #[serde(skip)]
    pub protected: Globs,
    /// Protected paths that may be changed all the same, each by itself.
    pub allowed: Vec<PathBuf>,
    /// Files and directories in them that may not be changed either.
    pub protected_paths: Vec<PathBuf>,
    /// The same by device and inode, for files with several names.
    pub protected_files: Vec<(u64, u64)>,
    /// Whether repositories may be changed.
    pub git: bool,
    /// Whether hosts outside can be reached through the supervisor.
    pub outside: bool,
    /// Whether scripts of packages, which are started by a program of callgate's, reach no host outside.
    pub scripts: bool,
    /// The ports of this machine's loopback that lead outside; all others are the sandbox's own.
    pub ports: Vec<u16>,
    /// Whether other calls of the same project may serve the loopback ports that nobody inside serves.
    pub neighbours: bool,
    /// Whether the ports on which programs listen are reported.
    pub publish: bool,
    /// Whether symlinks may be made and moved in the roots.
    pub may_link: bool,
    /// The limits.
    pub limits: Limits,
    /// The working directory.
    pub directory: PathBuf,
    /// Whether the program says in [`LEFT`] in which directory it ends.
    pub left: bool,
    /// The program, as a path inside.
    pub program: PathBuf,
    /// Its device and inode, if they are the same inside.
    pub identity: Option<(u64, u64)>,
    /// Whether an interpreter runs it, which opens it by its path.
    pub is_script: bool,
    /// Its words, the first of which is its name.
    pub words: Vec<Vec<u8>>,
    /// Its environment: `NAME=value`.
    pub environment: Vec<Vec<u8>>,
    /// Which of the standard streams are a terminal.
    pub terminal: [bool; 3],
    /// The size of the terminal: rows and columns.
    pub size: (u16, u16),
    /// What the mounts are, where something else makes them.
    pub seen: Vec<Seen>,
}

/// What lies at a path.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seen {
    /// The path.
    pub path: PathBuf,
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
}

impl Order {
    /// The order as bytes: its length, its text, and the globs as they are.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let text = serde_json::to_vec(self)?;
        let length = u64::try_from(text.len()).map_err(io::Error::other)?;
        Ok([length.to_le_bytes().as_slice(), &text, self.protected.as_text().as_bytes()].concat())
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(broken)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(io::Error::other)?;
        let (text, globs) = rest.split_at_checked(length).ok_or_else(broken)?;
        let protected = Globs::from_text(String::from_utf8(globs.to_vec()).map_err(io::Error::other)?);
        Ok(Order { protected, ..serde_json::from_slice(text)? })
    }
}

/// The way in which a call is contained.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Namespaces that callgate makes itself.
    #[default]
    Namespaces,
    /// Namespaces that the system's bubblewrap makes.
    Bubblewrap,
    /// Landlock and seccomp alone.
    Landlock,
}

impl Backend {
    /// All of them, the best first.
    pub const ALL: [Backend; 3] = [Backend::Namespaces, Backend::Bubblewrap, Backend::Landlock];

    /// Whether it holds something.
    pub fn holds(self, protection: Protection) -> bool {
        match self {
            Backend::Namespaces | Backend::Bubblewrap => true,
            Backend::Landlock => {
                matches!(protection, Protection::Writes | Protection::ProtectedNames | Protection::Kernel)
            }
        }
    }

    /// The name on the command line and in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Backend::Namespaces => "namespaces",
            Backend::Bubblewrap => "bubblewrap",
            Backend::Landlock => "landlock",
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Something to hide, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenPath {
    /// Where it is.
    pub path: PathBuf,
    /// Its device and inode, if it lies in a root, where others may move it.
    pub identity: Option<(u64, u64)>,
}

/// Something that the sandbox sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is, outside and inside.
    pub path: PathBuf,
    /// How it is seen.
    pub kind: MountKind,
}

/// How something is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountKind {
    /// As it is; it may be changed.
    Writable,
    /// As it is; it may only be read.
    ReadOnly,
    /// As it is, with changes kept in these directories: `upper` and `work` of an overlay.
    Layer {
        /// Where changes are kept.
        upper: PathBuf,
        /// What the overlay needs beside it.
        work: PathBuf,
    },
}

/// What the stage reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// What does not depend on the order is in place.
    Prepared,
    /// Everything is in place, and the program starts.
    Ready {
        /// The version of Landlock in use; zero for none.
        landlock: u32,
    },
    /// A step failed, and nothing was started.
    Failed {
        /// The step, in words.
        step: String,
        /// The error.
        error: String,
        /// Whether the program itself could not be started.
        program: bool,
    },
    /// The sockets at which programs ask for names come with this: datagrams and connections.
    Names,
    /// The terminal of the program, whose other end comes with this.
    Terminal,
    /// Something was held back.
    HeldBack(HeldBack),
    /// A program wants to reach a host. A descriptor or an error comes back.
    Connect {
        /// Identifies it.
        id: u64,
        /// A stream, or datagrams.
        stream: bool,
        /// The address.
        to: std::net::SocketAddr,
    },
    /// The addresses on which programs listen.
    Listening {
        /// All of them.
        addresses: Vec<std::net::SocketAddr>,
    },
    /// The socket that was asked for comes with this.
    Socket {
        /// Which one.
        id: u64,
    },
    /// A limit was reached, and everything ended.
    Limit {
        /// Which one.
        limit: String,
    },
    /// The program ended.
    Ended {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The directory in which it says that it ended. It may say anything.
        left: Option<PathBuf>,
    },
}

/// What the supervisor says while the program runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Send this signal to the program.
    Signal(i32),
    /// Say on which addresses programs listen.
    Listening,
    /// Make a TCP socket in the network of the sandbox and hand it over.
    Socket {
        /// Identifies it.
        id: u64,
        /// Of which version of the internet protocol.
        version_6: bool,
    },
    /// The answer to [`Report::Connect`]: an error number, or zero with a descriptor.
    Connected {
        /// Which one.
        id: u64,
        /// The error number.
        error: i32,
    },
}
