//! What a parameter of a tool means: the vocabulary of the table in `tools.rs`.

use callgate_model::effect::{Action, CodeOrigin};

use callgate_model::redact::Shown;

/// What a parameter carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A path, or a list of paths, and what is done there.
    Path(Access),
    /// A file of some bundle whose place is not known here.
    BundlePath,
    /// The directory, or the file, where a search starts.
    Base,
    /// A glob pattern, or a list of them, relative to the base.
    Pattern,
    /// Patterns of what a search leaves out: no effect.
    Exclude,
    /// Shell source.
    Command,
    /// A command as a list of words.
    Words,
    /// Shell source or a list of words.
    CommandOrWords,
    /// Which shell reads the command.
    ShellName,
    /// The working directory of the command or of the other paths.
    Directory,
    /// A map of variables.
    Environment,
    /// How the tool wants to be sandboxed.
    Sandbox,
    /// Typed into a running program.
    Keys,
    /// Which running program.
    Running,
    /// A URL to fetch.
    Url,
    /// Text in which URLs to fetch stand.
    UrlsInText,
    /// A resource identifier: `file:` is a path, `http:` a URL.
    Resource,
    /// Sent to a search service.
    Query,
    /// A patch with its own paths.
    Patch,
    /// Contents of files: shown by size and digest.
    Content,
    /// No effect.
    Text,
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

impl Role {
    /// How such a parameter is shown to people and written to logs.
    pub(super) fn shown(self) -> Shown {
        match self {
            Role::Environment => Shown::Keys,
            Role::Content | Role::Patch | Role::Keys => Shown::Digest,
            _ => Shown::Text,
        }
    }
}

/// How the parameters of a tool work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each for itself.
    Plain,
    /// The patterns are paths below the base, names only or contents.
    Globs(Action),
    /// A search below the base; the patterns only narrow it down.
    Search(Action),
    /// A shell command.
    Shell,
    /// The parameter `command` says what is done to the path.
    Editor,
    /// Runs something that is named, not given.
    Runs(CodeOrigin),
    /// Writes to files of its own.
    Writes(&'static [&'static str]),
    /// Its argument is a program in a language that is not read.
    Opaque(&'static str),
}

/// One parameter, under all the names it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    pub names: &'static [&'static str],
    pub role: Role,
    /// Whether at least one of the names must be there.
    pub required: bool,
}

/// One tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolEntry {
    /// The names it goes by.
    pub names: &'static [&'static str],
    pub category: &'static str,
    pub shape: Shape,
    pub parameters: &'static [Parameter],
}

impl ToolEntry {
    /// The role of a parameter of that name.
    pub(super) fn role(&self, name: &str) -> Option<Role> {
        self.parameters.iter().find(|parameter| parameter.names.contains(&name)).map(|parameter| parameter.role)
    }
}

pub(super) const fn tool(
    names: &'static [&'static str],
    category: &'static str,
    shape: Shape,
    parameters: &'static [Parameter],
) -> ToolEntry {
    ToolEntry { names, category, shape, parameters }
}

/// A parameter that must be there.
pub(super) const fn must(names: &'static [&'static str], role: Role) -> Parameter {
    Parameter { names, role, required: true }
}

/// A parameter that may be there.
pub(super) const fn may(names: &'static [&'static str], role: Role) -> Parameter {
    Parameter { names, role, required: false }
}
