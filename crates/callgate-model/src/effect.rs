//! Effects: what a call would do.

use serde::{Deserialize, Serialize};

/// The kind of an effect.
///
/// *List* sees names and metadata, *read* sees contents.
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
    /// Cannot be analyzed. Allow rules for known effects do not cover it.
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

/// The target of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A place in the file system (list, read, write, delete; run of a file).
    Path(PathTarget),
    /// A program (run).
    Program(Program),
    /// A machine or service (connect, send).
    Host(Host),
    /// A description in words: why the effect is opaque, which privilege, which recipient.
    Text(String),
}

/// A path as the program would name it: absolute by the tracked working directory, without resolving symlinks and `..`,
/// which needs the file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathTarget {
    /// The names that the path stands for.
    pub names: Names,
    /// Whether everything below is included.
    pub tree: bool,
    /// Which names below are meant, if everything below is included or the names are only known to be below a directory.
    #[serde(default, skip_serializing_if = "TreeNames::is_default")]
    pub below: TreeNames,
}

impl PathTarget {
    /// A path, or a tree with all names that exist below it.
    pub fn new(names: Names, tree: bool) -> Self {
        PathTarget { names, tree, below: TreeNames::default() }
    }

    /// Whether it stands for names that the call does not spell out.
    pub fn is_open(&self) -> bool {
        self.tree
            || matches!(self.names, Names::Below(_) | Names::Glob(_))
            || !matches!(self.below, TreeNames::Existing(_))
    }
}

/// The names that an effect touches below a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeNames {
    /// Those that exist there.
    Existing(Selection),
    /// Any, and why: the program, an archive that cannot be read or another machine chooses them.
    Any(String),
    /// The names that stand in archives or patches.
    Members(Members),
    /// The names that this source has, and those below it if it is a tree.
    Copied(Box<PathTarget>),
}

impl Default for TreeNames {
    fn default() -> Self {
        TreeNames::Existing(Selection::default())
    }
}

impl TreeNames {
    fn is_default(&self) -> bool {
        *self == TreeNames::default()
    }
}

/// Which of the names in a tree a program visits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Symlinks below are followed.
    pub follows: bool,
    /// Names that begin with a dot are left out, unless `only` names them.
    pub skips_hidden: bool,
    /// Only files that git tracks.
    pub tracked: bool,
    /// What the `.gitignore` files of a repository name is left out, unless `only` names it.
    pub skips_ignored: bool,
    /// If not empty, only files whose name matches one of these globs.
    pub only: Vec<String>,
    /// Without files whose name matches one of these globs, unless `only` names them.
    pub except: Vec<String>,
    /// Without directories whose name matches one of these globs.
    pub except_directories: Vec<String>,
}

/// Files whose contents name other files: archives and patches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Members {
    /// The files.
    pub sources: Vec<MemberSource>,
    /// How many components are taken off the front of each name; `None` if it may be any number.
    pub strip: Option<usize>,
}

/// Where the names of members stand.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberSource {
    /// In the archive at this absolute path.
    Archive(String),
    /// In the patch at this absolute path.
    Patch(String),
    /// In this text of a patch.
    Text(String),
}

/// Which names a path word stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// Exactly this path. Relative only if the working directory is unknown.
    Exact(String),
    /// All matches of this shell pattern (`*`, `?`, `[…]`, extended globs).
    Glob(String),
    /// Unknown names at or below this directory, such as the output of `find`.
    Below(String),
    /// Unknown, and why.
    Unknown(String),
}

/// A program and the origin of its code.
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
    /// Files of the project (`make`, `npm run`, git hooks, linter plugins).
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
    /// The host name or address as written, lower case, without user, port and path; or a service name in angle brackets
    /// (`<kubernetes>`, `<aws>`); `None` if unknown.
    pub name: Option<String>,
    /// The whole URL or address as written, for showing.
    pub shown: String,
}

/// A special property of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Cannot be undone (drop a table, delete a bucket, force push).
    Destructive,
    /// Happens on another machine or in a container.
    Elsewhere,
    /// Comes from a redirection, not from the command's words.
    Redirection,
    /// The environment of the command changes what runs.
    Environment,
    /// Files of the project decide what runs.
    ProjectCode,
    /// Touches the program's own files, which the call does not name: its configuration, cache or credentials.
    OwnFiles,
    /// Secrets are shown or handed out (`gh auth token`, `aws secretsmanager get-secret-value`).
    Credentials,
    /// Is in a directory that everyone can write to, where another user may have placed a symlink or file.
    Shared,
    /// Was found below a directory that the call names as a whole.
    Inside,
    /// Loses nothing: git has the file as it is, or there is none.
    Recoverable,
    /// Is a tree in a repository that the committed rules ignore and that contains no tracked file and no other repository.
    Expendable,
    /// Changes only keys of a manifest that describe it, such as its version.
    Metadata,
}

/// One thing a call would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Effect {
    /// The action.
    pub action: Action,
    /// Its target.
    pub target: Target,
    /// Its special properties, sorted, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// The source of this effect: a table entry (`cp: last operand`) or a construct (`redirection`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

impl Effect {
    /// Creates an effect without marks.
    pub fn new(action: Action, target: Target, because: impl Into<String>) -> Self {
        Effect { action, target, marks: Vec::new(), because: because.into() }
    }

    /// Creates an effect for something that cannot be analyzed.
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

    /// Whether this may change which names exist, and so what a later pattern or `cd` finds.
    pub fn may_change_names(&self) -> bool {
        match (self.action, &self.target) {
            (Action::List | Action::Read | Action::Connect, _) => false,
            (Action::Run, Target::Program(program)) => program.origin != CodeOrigin::Known,
            (Action::Write, Target::Path(path)) => path.names != Names::Exact("/dev/null".to_owned()),
            _ => true,
        }
    }
}

/// Whether the list of effects is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Everything the call would do is among its effects.
    Complete,
    /// Something could not be analyzed; at least one effect is opaque.
    Partial,
}
