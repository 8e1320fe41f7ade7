//! What is known about the contents of a pipe or a substitution.

use serde::Serialize;

use crate::word::{ListedNames, Word};

/// What a program reads from its standard input, or writes to its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stream {
    /// The caller's standard input, which is empty for an agent.
    Unconnected,
    /// Exactly this text (here-documents, here-strings, `echo` and `printf` of known words).
    Text(String),
    /// Names at or below these directories, one per line or NUL-separated (`find`, `ls`, `git ls-files`).
    Names(Vec<Listing>),
    /// One plain word: no blanks, no slash, no dash in front (`uname -r`, `whoami`).
    Word,
    /// One whole number in digits (`wc -l < file`, `date +%s`).
    Number,
    /// One whole number in digits, with a dash in front if it is below zero (`date -d yesterday +%s`).
    Integer,
    /// Any number of whole numbers in digits, separated by blanks or newlines (`seq 5`, `pgrep sshd`).
    Numbers,
    /// The whole contents of the file at this absolute path (`< file`).
    File(String),
    /// The contents of these files or other local data; harmless as data, not as code.
    Data,
    /// The environment, with any secrets in it.
    Environment,
    /// Data without end (`yes`, `cat /dev/zero`).
    Endless,
    /// Comes from the network.
    Fetched,
    /// Not known.
    Unknown,
}

/// Names that a program lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Listing {
    /// The directory that they are at or below.
    pub directory: String,
    /// Which names.
    pub names: ListedNames,
}

impl Listing {
    /// All names at or below a directory.
    pub fn all(directory: impl Into<String>) -> Self {
        Listing { directory: directory.into(), names: ListedNames::All }
    }

    /// The words that they become.
    pub(crate) fn word(&self, many: bool) -> Word {
        Word::Below { directory: self.directory.clone(), many, names: self.names.clone() }
    }
}

impl Stream {
    /// What one of several commands finds in it, or a part of it: what was known of the whole is lost.
    pub(crate) fn in_part(self) -> Self {
        match self {
            Stream::Text(text) if !text.is_empty() => Stream::Data,
            Stream::File(_) => Stream::Data,
            other => other,
        }
    }
}

impl Default for &Stream {
    fn default() -> Self {
        &Stream::Unconnected
    }
}
