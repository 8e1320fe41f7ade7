//! What a call would do: the vocabulary that every other room speaks.

use serde::{Deserialize, Serialize};

/// The kind of an effect.
///
/// To *list* is to see names and metadata, to *read* is to see contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// See names and metadata.
    List,
    /// See contents.
    Read,
    /// Create or change contents or metadata.
    Write,
    /// Remove, or overwrite beyond recovery.
    Delete,
    /// Start a program.
    Run,
    /// Fetch from another machine or a local service.
    Connect,
    /// Hand data to, or change something at, another machine or a service.
    Send,
    /// Act with, or change, rights: another user, setuid bits, accounts, kernel settings, services.
    Privilege,
    /// Not understood. No allow rule for known effects covers it.
    Opaque,
}

impl Action {
    /// The name, as in policies and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::List => "list",
            Action::Read => "read",
            Action::Write => "write",
            Action::Delete => "delete",
            Action::Run => "run",
            Action::Connect => "connect",
            Action::Send => "send",
            Action::Privilege => "privilege",
            Action::Opaque => "opaque",
        }
    }
}

/// What an effect is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A place in the file system (list, read, write, delete; run of a file).
    Path(PathTarget),
    /// A program (run).
    Program(Program),
    /// A machine or service (connect, send).
    Host(Host),
    /// Something that is described only in words: why it is opaque, which right, which recipient.
    Text(String),
}

/// A place in the file system as the program would name it: made absolute against the
/// tracked working directory, links and `..` not resolved (that needs the file system).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathTarget {
    /// Which names are meant.
    pub names: Names,
    /// Everything below is meant too.
    pub tree: bool,
}

/// Which names a path word stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// Exactly this one. Relative only if the working directory is not known.
    Exact(String),
    /// Whatever this shell pattern (`*`, `?`, `[…]`, extended globs) matches.
    Glob(String),
    /// Some unknown name at or below this directory (the output of `find`, say).
    Below(String),
    /// Not known, and why.
    Unknown(String),
}

/// How a program is named and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    /// The name the effect goes by: `git`, `./build.sh`, `Makefile`.
    pub name: String,
    /// Where its code comes from.
    pub origin: CodeOrigin,
}

/// Where the code that runs comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeOrigin {
    /// A program that has a table, found by its bare name or in a system directory.
    Known,
    /// A program without a table, found by its bare name or in a system directory.
    Unknown,
    /// A file named by a path (`./build.sh`, `python x.py`, `source ./env`).
    File,
    /// What the project's files say (`make`, `npm run`, git hooks, linter plugins).
    Project,
    /// Code given in the command itself (`python -c`, `perl -e`).
    Inline,
    /// Code that arrives through a pipe or from the network (`curl … | sh`, `npx pkg`).
    Fetched,
    /// A shell function or alias defined in the same command.
    Defined,
}

/// A machine or service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Host {
    /// The host name or address as written, lower case, without user, port and path; or a
    /// service name in angle brackets (`<kubernetes>`, `<aws>`); `None` if not known.
    pub name: Option<String>,
    /// The whole URL or address as written, for showing.
    pub shown: String,
}

/// What is special about an effect, beside its action and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Cannot be undone at the other end either (drop a table, delete a bucket, force push).
    Destructive,
    /// Happens on another machine or in a container.
    Elsewhere,
    /// Comes from a redirection, not from the command's words.
    Redirection,
    /// The environment of the command changes what runs.
    Environment,
    /// The program runs what files of the project say.
    ProjectCode,
    /// A file of the program's own that the call does not name: its configuration, cache or credentials.
    OwnFiles,
    /// Secrets are shown or handed out (`gh auth token`, `aws secretsmanager get-secret-value`).
    Credentials,
    /// Lies in a directory that everybody writes to, where somebody else's link or file may stand in its place.
    Shared,
}

/// One thing a call would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Effect {
    /// What is done.
    pub action: Action,
    /// To what.
    pub target: Target,
    /// What is special about it, sorted, without repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Where this knowledge comes from: a table entry (`cp: last operand`) or a construct (`redirection`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

impl Effect {
    /// An effect without marks.
    pub fn new(action: Action, target: Target, because: impl Into<String>) -> Self {
        Effect { action, target, marks: Vec::new(), because: because.into() }
    }

    /// Something that was not understood, and why.
    pub fn opaque(why: impl Into<String>) -> Self {
        Effect::new(Action::Opaque, Target::Text(why.into()), "")
    }

    /// Adds a mark.
    #[must_use]
    pub fn marked(mut self, mark: Mark) -> Self {
        if let Err(place) = self.marks.binary_search(&mark) {
            self.marks.insert(place, mark);
        }
        self
    }

    /// Whether this may change which names the file system has, and so what a later pattern or `cd` finds.
    pub fn may_change_names(&self) -> bool {
        match (self.action, &self.target) {
            (Action::List | Action::Read | Action::Connect, _) => false,
            (Action::Run, Target::Program(program)) => program.origin != CodeOrigin::Known,
            (Action::Write, Target::Path(path)) => path.names != Names::Exact("/dev/null".to_owned()),
            _ => true,
        }
    }
}

/// Whether the effects are all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Everything the call would do is among its effects.
    Complete,
    /// Something was not understood; at least one effect is opaque.
    Partial,
}
