//! The fence: what a contained call may reach. The gate derives it from the policy and the boundary; the sandbox enforces it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a contained call may reach. Everything that is not named here is out of reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Directories that may be read and written, resolved. Without the temporary ones: a contained call has its own.
    pub roots: Vec<PathBuf>,
    /// Files and directories that may only be read, resolved.
    pub readable: Vec<PathBuf>,
    /// Directories of caches: what is written there stays in a layer that belongs to the workspace.
    pub caches: Vec<PathBuf>,
    /// Paths in the temporary directories that the call names and that the policy allows it to use.
    pub shared: Vec<SharedPath>,
    /// Globs of files that are hidden, also below roots. Later entries win, and `!` takes names out again.
    pub hidden: Globs,
    /// Globs of what something outside runs by itself: nothing inside makes, changes or removes it.
    pub protected: Globs,
    /// Protected paths in the roots that a person has opened for this call, each by itself: nothing below them, and no link there.
    #[serde(default)]
    pub allowed: Vec<PathBuf>,
    /// Globs of callgate's own files, which nobody can open for a call.
    #[serde(default)]
    pub own: Globs,
    /// Whether the call is git, which may change its repository except for what is protected in any case.
    pub git: bool,
    /// The network.
    pub network: Network,
    /// The limits.
    pub limits: Limits,
    /// What must be held. A machine that cannot hold it refuses the call.
    pub required: Vec<Protection>,
    /// The user's home directory, resolved.
    pub home: Option<PathBuf>,
    /// The workspace, to which layers belong.
    pub workspace: Option<PathBuf>,
}

/// A list of globs. It is one text, because a fence has thousands of them and goes from process to process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Globs {
    text: String,
    /// Where each glob ends in the text, so that going through them does not mean searching the text.
    ends: Vec<usize>,
}

impl Globs {
    /// Ends each glob: the one character that no path contains.
    const END: char = '\0';
    const END_BYTE: u8 = 0;

    /// Appends the parts of a glob, put together.
    pub fn push(&mut self, parts: &[&str]) {
        for part in parts.iter().filter(|part| !part.is_empty()) {
            // INVARIANT: a glob with an end in it is two globs, here as for whoever reads the text.
            if part.as_bytes().contains(&Self::END_BYTE) {
                self.find_ends(part);
            }
            self.text.push_str(part);
        }
        self.ends.push(self.text.len());
        self.text.push(Self::END);
    }

    /// Notes where globs end in a text that is about to be appended.
    fn find_ends(&mut self, text: &str) {
        let start = self.text.len();
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == Self::END_BYTE);
        self.ends.extend(ends.map(|(at, _)| start.saturating_add(at)));
    }

    /// The globs in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        let mut start = 0_usize;
        self.ends.iter().map(move |end| {
            let glob = self.text.get(start..*end).unwrap_or_default();
            start = end.saturating_add(1);
            glob
        })
    }

    /// The list as one text, which [`Globs::from_text`] reads.
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// Reads what [`Globs::as_text`] gave.
    pub fn from_text(mut text: String) -> Self {
        if !text.is_empty() && !text.ends_with(Self::END) {
            text.push(Self::END);
        }
        let mut all = Globs::default();
        all.find_ends(&text);
        Globs { text, ..all }
    }
}

impl<T: AsRef<str>> FromIterator<T> for Globs {
    fn from_iter<I: IntoIterator<Item = T>>(globs: I) -> Self {
        let mut all = Globs::default();
        all.extend(globs);
        all
    }
}

impl<T: AsRef<str>> Extend<T> for Globs {
    fn extend<I: IntoIterator<Item = T>>(&mut self, globs: I) {
        for glob in globs {
            self.push(&[glob.as_ref()]);
        }
    }
}

impl From<Vec<String>> for Globs {
    fn from(globs: Vec<String>) -> Self {
        globs.iter().collect()
    }
}

impl From<Globs> for Vec<String> {
    fn from(globs: Globs) -> Self {
        globs.iter().map(str::to_owned).collect()
    }
}

/// A path outside the roots that a call names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPath {
    /// The path, resolved.
    pub path: PathBuf,
    /// Whether the call may write it.
    pub writable: bool,
    /// Whether a redirection makes it, so that it is a file.
    pub redirected: bool,
}

/// The network of a contained call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Only what runs in the same call.
    #[default]
    None,
    /// These hosts too: names, `*.name`, addresses, address ranges, each with an optional port.
    Hosts(Vec<String>),
    /// All public hosts.
    All,
}

/// The limits of a contained call. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// From start to end.
    pub time: Option<Duration>,
    /// Bytes of memory of all processes together.
    pub memory: Option<u64>,
    /// Processes and threads at a time.
    pub processes: Option<u64>,
    /// Bytes written to disk by all processes together.
    pub written: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of standard output and standard error together.
    pub output: Option<u64>,
}

impl Limits {
    /// These limits, and those of `other` where these have none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Limits {
            time: self.time.or(other.time),
            memory: self.memory.or(other.memory),
            processes: self.processes.or(other.processes),
            written: self.written.or(other.written),
            file_size: self.file_size.or(other.file_size),
            open_files: self.open_files.or(other.open_files),
            output: self.output.or(other.output),
        }
    }

    /// The lower one of each two limits.
    #[must_use]
    pub fn lowest(self, other: Self) -> Self {
        fn low<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Limits {
            time: low(self.time, other.time),
            memory: low(self.memory, other.memory),
            processes: low(self.processes, other.processes),
            written: low(self.written, other.written),
            file_size: low(self.file_size, other.file_size),
            open_files: low(self.open_files, other.open_files),
            output: low(self.output, other.output),
        }
    }
}

/// A number of bytes: `4096`, `512MiB`, `10MB`.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "kB" | "KB" => 1_000,
        "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        "GB" => 1_000_000_000,
        "T" | "TiB" => 1 << 40,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Something that a sandbox can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Nothing outside the roots is written.
    Writes,
    /// Nothing is read that is not named.
    Reads,
    /// Hidden files inside the roots are not read.
    Secrets,
    /// Protected names inside the roots are not written.
    ProtectedNames,
    /// No byte leaves through the network.
    Network,
    /// No socket of a service outside is reached.
    Sockets,
    /// Other processes are neither seen nor touched.
    Processes,
    /// The kernel's interfaces that a contained program has no use for are closed.
    Kernel,
    /// Nothing outlives the call.
    Ending,
    /// Memory, processes and time are limited as stated.
    Limits,
}

impl Protection {
    /// All of them.
    pub const ALL: [Protection; 10] = [
        Protection::Writes,
        Protection::Reads,
        Protection::Secrets,
        Protection::ProtectedNames,
        Protection::Network,
        Protection::Sockets,
        Protection::Processes,
        Protection::Kernel,
        Protection::Ending,
        Protection::Limits,
    ];

    /// The name in policies and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protection::Writes => "writes",
            Protection::Reads => "reads",
            Protection::Secrets => "secrets",
            Protection::ProtectedNames => "protected_names",
            Protection::Network => "network",
            Protection::Sockets => "sockets",
            Protection::Processes => "processes",
            Protection::Kernel => "kernel",
            Protection::Ending => "ending",
            Protection::Limits => "limits",
        }
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A set of protections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Protections(u16);

impl Protections {
    /// All of them.
    pub fn all() -> Self {
        Protection::ALL.into_iter().collect()
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Protections(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn includes(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// These, in the usual order.
    pub fn iter(self) -> impl Iterator<Item = Protection> {
        Protection::ALL.into_iter().filter(move |protection| self.0 & (1 << *protection as u16) != 0)
    }

    /// The set as bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Reads what [`Protections::bits`] gave.
    pub const fn from_bits(bits: u16) -> Self {
        Protections(bits)
    }
}

impl FromIterator<Protection> for Protections {
    fn from_iter<I: IntoIterator<Item = Protection>>(protections: I) -> Self {
        Protections(protections.into_iter().fold(0, |bits, protection| bits | 1 << protection as u16))
    }
}

/// Something that a contained call wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldBack {
    /// What it wanted to do: `write`, `delete`, `connect`, `call`.
    pub action: String,
    /// The path, host or system call.
    pub target: String,
    /// Which part of the fence refused it: `protected`, `network`, `sockets`, `kernel`, `limits`.
    pub by: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_the_same_for_the_process_that_makes_them_and_for_the_one_that_reads_their_text() {
        let mut globs = Globs::default();
        globs.push(&["/home/me", "/", ".ssh/**"]);
        globs.push(&["", "é*"]);
        // One that would become another one on the way: whoever leaves `!` out must see it.
        globs.push(&["x\0!**/.envrc", "/**"]);
        globs.push(&[""]);
        assert_eq!(globs.iter().collect::<Vec<_>>(), ["/home/me/.ssh/**", "é*", "x", "!**/.envrc/**", ""]);
        assert_eq!(Globs::from_text(globs.as_text().to_owned()), globs);
        assert_eq!(Globs::from_text("a\0b".to_owned()).iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Globs::from_text(String::new()).iter().count(), 0);
    }
}
