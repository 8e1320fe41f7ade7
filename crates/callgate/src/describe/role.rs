//! The vocabulary of the table of tools: what a parameter carries, and how the parameters of a tool work together.

use callgate_model::effect::Action;
use callgate_model::redact::Shown;

/// What a parameter carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A path, or a list of paths, and what is done there.
    Path(Access),
    /// A file of a skill, whose directory callgate does not know.
    BundlePath,
    /// The directory, or the file, where a search starts.
    Base,
    /// A glob pattern, or a list of them, relative to the base.
    Pattern,
    /// Shell source.
    Command,
    /// A command as a list of words.
    Words,
    /// Shell source or a list of words.
    CommandOrWords,
    /// The name of the shell that runs the command.
    ShellName,
    /// The working directory of the command, and the base of relative paths.
    Directory,
    /// A map of environment variables.
    Environment,
    /// The sandbox that the call asks for.
    Sandbox,
    /// Text typed into a running program.
    Typed,
    /// The id of a running program.
    Process,
    /// A URL to fetch.
    Url,
    /// Text that contains URLs to fetch.
    UrlsInText,
    /// A resource identifier: `file:` is a path, `http:` a URL.
    Resource,
    /// Text sent to a search service.
    Query,
    /// A patch that names its own paths.
    Patch,
    /// Contents of files: shown by size and digest.
    Content,
    /// Anything without an effect of its own.
    NoEffect,
}

impl Role {
    /// How such a parameter is shown to people and written to logs.
    pub(super) fn shown(self) -> Shown {
        match self {
            Role::Environment => Shown::Keys,
            Role::Content | Role::Patch | Role::Typed => Shown::Digest,
            _ => Shown::Text,
        }
    }
}

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    List,
    Read,
    ReadTree,
    Write,
    /// Read and written in place.
    Update,
    Delete,
}

impl Access {
    pub(super) fn actions(self) -> &'static [Action] {
        match self {
            Access::List => &[Action::List],
            Access::Read | Access::ReadTree => &[Action::Read],
            Access::Write => &[Action::Write],
            Access::Update => &[Action::Read, Action::Write],
            Access::Delete => &[Action::Delete],
        }
    }
}

/// How the parameters of a tool work together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// Each parameter stands for itself.
    Plain,
    /// The patterns are paths below the base.
    Globs(Action),
    /// A search below the base; the patterns narrow it down.
    Search(Action),
    /// The parameter `command` says what is done to the path.
    Editor,
    /// Runs an action of a skill.
    Skill,
    /// Writes these files.
    Writes(Vec<&'static str>),
    /// Cannot be analyzed, and why.
    Opaque(String),
}

/// One parameter, under all the names it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub names: Vec<&'static str>,
    pub role: Role,
    /// Whether at least one of the names must be there.
    pub required: bool,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolEntry {
    /// The names that agents use for it.
    pub names: Vec<&'static str>,
    pub category: &'static str,
    pub kind: ToolKind,
    pub parameters: Vec<Parameter>,
}

impl ToolEntry {
    /// The role of a parameter of that name.
    pub(super) fn role(&self, name: &str) -> Option<Role> {
        let named = |name| self.parameters.iter().find(|parameter| parameter.names.contains(&name));
        named(name).or_else(|| named("*")).map(|parameter| parameter.role)
    }
}
