//! What is known about the contents of a pipe or a substitution.

use serde::Serialize;

/// What a program reads from its standard input, or writes to its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Nothing is connected: the caller's standard input, which for an agent is empty.
    Unconnected,
    /// Exactly this text (here-documents, here-strings, `echo` and `printf` of known words).
    Text(String),
    /// Names at or below these directories, one a line or NUL-separated (`find`, `ls`, `git ls-files`).
    Names(Vec<String>),
    /// One plain word: no blanks, no slash, no dash in front (`uname -r`, `whoami`).
    Word,
    /// One whole number in digits (`wc -l < file`, `date +%s`).
    Number,
    /// One whole number in digits, with a dash in front if it is below zero (`date -d yesterday +%s`).
    Integer,
    /// Whole numbers in digits, any number of them, with blanks or newlines between (`seq 5`, `pgrep sshd`).
    Numbers,
    /// The contents of these files or other local data; harmless as data, not as code.
    Data,
    /// The environment, with whatever secrets it holds.
    Environment,
    /// Data without end (`yes`, `cat /dev/zero`).
    Endless,
    /// Comes from the network.
    Fetched,
    /// Not known.
    Unknown,
}
