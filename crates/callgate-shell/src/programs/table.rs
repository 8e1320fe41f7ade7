//! The model of a program table: what `docs/program-tables.md` describes, as types.

use super::index::OptionIndex;
use crate::effect::{Action, CodeOrigin, Mark};
use callgate_model::description::{GitTask, LoadMatters};
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

/// Text of a table, borrowed from the binary for bundled tables.
pub type Text = Cow<'static, str>;

/// What is known about one program, or about several that behave the same.
#[derive(Debug, Clone)]
pub struct Table {
    /// The names of the program.
    pub names: Vec<String>,
    /// A short description.
    pub description: String,
    /// The file that contains the table, for messages.
    pub origin: String,
    /// The line of its header.
    pub line: usize,
    /// It was compared with a version of the program, or somebody vouches for it in a policy.
    pub compared: bool,
    /// Its options, operands and subcommands.
    pub level: Level,
    /// Commands and the effects they must have.
    pub examples: Vec<Example>,
}

/// A command and the effects it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its line number.
    pub line: usize,
    /// The command.
    pub command: String,
    /// All its effects, except `run` of known programs.
    pub expected: Vec<EffectForm>,
}

/// One level of a table: the program itself, or one of its subcommands.
#[derive(Debug, Clone, Default)]
pub struct Level {
    /// How options are written. A subcommand without a `style` line has that of its parent.
    pub style: Style,
    /// The options.
    pub options: Vec<OptionForm>,
    /// The operands; the first whose condition holds.
    pub args: Vec<When<Vec<Slot>>>,
    /// The effects of a call without operands; the first whose condition holds.
    pub none: Vec<When<Vec<EffectForm>>>,
    /// The effects of every call; all whose conditions hold.
    pub does: Vec<When<Vec<EffectForm>>>,
    /// When path operands include everything below them.
    pub tree: Vec<Condition>,
    /// What it does with standard input; the first whose condition holds.
    pub stdin: Vec<When<Role>>,
    /// What comes out; the first whose condition holds.
    pub stdout: Vec<When<Output>>,
    /// The subcommands; the first whose name matches.
    pub subs: Vec<Sub>,
    /// Effects that count only where their conditions hold for certain.
    pub warns: Vec<When<Vec<EffectForm>>>,
    /// The effects when nothing comes in on standard input; all whose conditions hold.
    pub no_input: Vec<When<Vec<EffectForm>>>,
    /// Traits of the program, and when it has them.
    pub traits: Vec<When<ProgramTrait>>,
    /// Finds the options.
    pub index: OptionIndex,
    /// Options of this level are accepted after the subcommand, too.
    pub everywhere: bool,
    /// File names from wildcards may be taken for options with effects.
    pub globs_unsafe: bool,
    /// An option that no line names is accepted, here and below; its values are text.
    pub options_any: bool,
    /// What the value of an option is under a condition; the first that holds.
    pub values: Vec<(Text, When<Role>)>,
    /// Where the commands that it wraps run, if not here.
    pub elsewhere: Option<String>,
    /// Files that it loads as code, or as configuration that can change what it does.
    pub loads: Vec<When<LoadedFiles>>,
    /// What it does with the files of a git repository, and when. What only looks counts in doubt, everything else for certain.
    pub git: Vec<When<GitTask>>,
    /// Variables of the environment that change what it does, possibly globs.
    pub heeds: Vec<Text>,
    /// Beside these it heeds only what the C library does.
    pub heeds_only: bool,
    /// Globs of the only files that it visits in trees; empty: all.
    pub only: Vec<Text>,
    /// Words that may name a host although their role is not `<host>`, `<url>` or the like, and hosts that are no others; empty if
    /// no other word can name one, `None` if the table does not say.
    pub hosts: Option<Vec<HostPlace>>,
}

/// Files that a program loads, relative to a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFiles {
    /// The directory.
    pub place: LoadPlace,
    /// Their names, possibly globs.
    pub files: Vec<Text>,
    /// When they matter.
    pub matters: LoadMatters,
    /// They are loaded even if an option ends the program.
    pub first: bool,
}

/// Where a program looks for files that it loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPlace {
    /// The working directory, or one above it.
    Project,
    /// The home directory.
    Home,
    /// The root directory.
    System,
}

/// A word that may name a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPlace {
    /// Any operand.
    Operands,
    /// The operand at this place, from 1.
    Operand(usize),
    /// The value of this option.
    Option(Text),
    /// Not a place: the host, possibly a glob, is the service that the program talks to anyway.
    Own(Text),
}

impl Level {
    /// The conditions of all its lines.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let effects =
            [&self.none, &self.does, &self.warns, &self.no_input].into_iter().flat_map(|lines| conditions(lines));
        let streams = conditions(&self.stdin).chain(conditions(&self.stdout));
        let values = self.values.iter().map(|(_, line)| &line.condition);
        let traits = conditions(&self.traits).chain(conditions(&self.loads)).chain(conditions(&self.git));
        conditions(&self.args).chain(effects).chain(streams).chain(values).chain(traits).chain(&self.tree)
    }
}

/// The conditions of lines.
pub(super) fn conditions<T>(lines: &[When<T>]) -> impl Iterator<Item = &Condition> {
    lines.iter().map(|line| &line.condition)
}

/// A property of a program that is not an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramTrait {
    /// It takes commands on a terminal, or shows long output in a pager that does.
    Interactive,
    /// It writes links to the paths that it lists.
    Links,
    /// It can change which names a pattern matches in later commands.
    Globbing,
    /// It is the dynamic loader, in whatever directory, and runs the program it is given.
    Loader,
    /// Its output never ends.
    Endless,
    /// It follows the symlinks in the trees that it visits.
    Follows,
    /// In trees, it leaves out names that begin with a dot.
    SkipsHidden,
    /// In trees, it leaves out what `.gitignore` files name.
    SkipsIgnored,
    /// In trees, it visits only files that git tracks.
    Tracked,
}

impl ProgramTrait {
    /// Whether a subcommand may have it too: it is about the names that are visited.
    pub fn is_selection(self) -> bool {
        matches!(self, Self::Follows | Self::SkipsHidden | Self::SkipsIgnored | Self::Tracked)
    }
}

/// A subcommand.
#[derive(Debug, Clone)]
pub struct Sub {
    /// Its names, possibly globs.
    pub names: Vec<Text>,
    /// One of the names is a glob.
    pub globs: bool,
    /// A short description.
    pub description: Text,
    /// Its line number.
    pub line: usize,
    /// Below this word the subcommands of the same level apply once more.
    pub again: bool,
    /// Its options, operands and subcommands.
    pub level: Deferred,
}

/// The level of a subcommand. One of a bundled table is read when it is first looked at: of git's hundred and more, a
/// call needs one.
#[derive(Clone, Default)]
pub struct Deferred {
    read: OnceLock<Box<Level>>,
    /// The packed lines, and the style of the level around them.
    source: Option<(&'static str, Style)>,
}

impl Deferred {
    /// Lines that `build.rs` has packed.
    pub(super) fn packed(lines: &'static str) -> Deferred {
        Deferred { read: OnceLock::new(), source: Some((lines, Style::default())) }
    }

    /// Hands down the style of the level around.
    pub(super) fn inherit(&mut self, style: &Style) {
        if let Some((_, inherited)) = &mut self.source {
            *inherited = style.clone();
        }
    }

    /// The level, if it has been read.
    pub(super) fn read_mut(&mut self) -> Option<&mut Level> {
        self.read.get_mut().map(Box::as_mut)
    }
}

impl From<Level> for Deferred {
    fn from(level: Level) -> Self {
        Deferred { read: OnceLock::from(Box::new(level)), source: None }
    }
}

impl Deref for Deferred {
    type Target = Level;

    fn deref(&self) -> &Level {
        self.read.get_or_init(|| {
            let level = self.source.as_ref().map(|(lines, style)| super::form::packed_level(lines, style));
            Box::new(level.unwrap_or_default())
        })
    }
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(formatter)
    }
}

/// Something that counts only under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When<T> {
    /// The condition; empty: always.
    pub condition: Condition,
    /// What counts then.
    pub then: T,
}

/// Terms that must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    /// The terms.
    pub all: Vec<Term>,
}

/// One of several atoms holds, or, negated, none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The term holds if no atom does.
    pub negated: bool,
    /// The atoms.
    pub any: Vec<Atom>,
}

/// The smallest part of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Atom {
    /// The option is given, under any of its names.
    Option(Text),
    /// The option is given with one of these values.
    Value(Text, ValueSet),
    /// There are at least so many operands.
    Count(usize),
    /// The operand at this place (from 1) is one of these.
    Operand(usize, ValueSet),
    /// One of the operands is one of these.
    AnyOperand(ValueSet),
}

impl Atom {
    /// The option it is about.
    pub fn option(&self) -> Option<&Text> {
        match self {
            Atom::Option(name) | Atom::Value(name, _) => Some(name),
            Atom::Count(_) | Atom::Operand(..) | Atom::AnyOperand(_) => None,
        }
    }
}

/// The values that match one of several globs, or none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    /// The globs.
    pub globs: Vec<Text>,
    /// The values that match no glob are meant.
    pub others: bool,
}

/// How options are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// `--long`, abbreviations, bundles, options anywhere.
    #[default]
    Gnu,
    /// The same, but the first operand ends the options.
    Posix,
    /// As gnu, without abbreviations.
    Long,
    /// As long, but the first operand ends the options.
    LongFirst,
    /// `-word value` or `-word=value`, one or two dashes, no bundles.
    Single,
    /// The same, but the first operand ends the options.
    SingleFirst,
    /// As gnu, but the first word may be a bundle without dash.
    Tar,
    /// No options.
    None,
    /// Read by code.
    #[serde(skip)]
    Custom(String),
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionForm {
    /// Its names, with their dashes.
    pub names: Vec<Text>,
    /// One of the names stands for the front of a word (`-D*`, `if=`, `-NUMBER`).
    pub fronts: bool,
    /// The values it takes.
    pub values: Values,
    /// It prints something and ends the program: nothing else happens.
    pub ends: bool,
    /// Path operands mean everything below them.
    pub tree: bool,
    /// All words behind it are operands.
    pub rest: bool,
    /// It is accepted behind subcommands, too, where they have none of that name.
    pub everywhere: bool,
    /// Its names are different options, and a condition on one of them holds for all.
    pub together: bool,
    /// Effects of its own.
    pub effects: Vec<EffectForm>,
    /// Its line number.
    pub line: usize,
}

impl OptionForm {
    /// A flag without names and effects, as a base for others.
    pub(super) const NOTHING: OptionForm = OptionForm {
        names: Vec::new(),
        fronts: false,
        values: Values::None,
        ends: false,
        tree: false,
        rest: false,
        everywhere: false,
        together: false,
        effects: Vec::new(),
        line: 0,
    };
}

/// The values of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// It is a flag.
    None,
    /// A value may be glued to it.
    Optional(Role),
    /// It takes that many words, the first possibly glued.
    Words(Vec<Role>),
}

impl Values {
    /// What the values are.
    pub(super) fn roles(&self) -> &[Role] {
        match self {
            Values::None => &[],
            Values::Optional(role) => std::slice::from_ref(role),
            Values::Words(roles) => roles,
        }
    }
}

/// A place for operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// What the operand is.
    pub role: Role,
    /// How often it may stand there.
    pub repeat: Repeat,
}

/// How often an operand may stand in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Exactly once.
    Once,
    /// Once or not at all.
    Optional,
    /// Any number of times.
    Any,
    /// At least once.
    Some,
}

/// What a word is to the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The kind.
    pub kind: RoleKind,
    /// Everything below the path, too.
    pub tree: bool,
    /// Marks of its effects.
    pub marks: Vec<Mark>,
    /// Where what it names runs, if not here.
    pub elsewhere: Option<String>,
    /// How the program derives the name of another file that it writes.
    pub derived: Option<Derived>,
    /// The names in the file are those that the program writes.
    pub members: Option<MemberRole>,
}

/// What a file is whose contents name the files that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRole {
    /// An archive.
    Archive,
    /// A patch. So many components are taken off its names if no option says so; `None`: any number.
    Patch(Option<usize>),
}

/// How a program derives the name of a file that it writes from a name that it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Derived {
    /// It puts a suffix on: `gzip a` writes `a.gz`.
    Adds(String),
    /// It takes one of these suffixes off and puts another one in its place: `gunzip a.tgz` writes `a.tar`.
    Drops(Vec<(String, String)>),
    /// The name is the front of the names of several files, which go on like one of these globs: `split a part-` writes
    /// `part-aa` and so on.
    Pieces(Vec<String>),
    /// It makes a name that is not known, in the directory of the file or below it.
    Anything,
}

/// The kinds of roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleKind {
    /// No effect.
    Text,
    /// A path that is seen.
    List,
    /// A path that is read.
    Read,
    /// A path that is written.
    Write,
    /// A file, or a directory into which the sources go.
    WriteInto,
    /// A path that is removed.
    Delete,
    /// A path that is read and written in place.
    Update,
    /// A path that is read, and written too unless the code of the same call only looks.
    UpdateByCode,
    /// A path that is read and removed here.
    Move,
    /// A file whose contents are executed.
    RunFile,
    /// A directory that later relative paths start from.
    Directory,
    /// Shell source.
    Shell,
    /// This word and all that follow, joined by spaces, are shell source.
    ShellWords,
    /// This word and all that follow are a command; with `until`, up to a word `;` or `+`.
    Command {
        /// It ends at `;` or `+`.
        until: bool,
        /// Its table is named after this and its first word (`python-m-` and `pip`).
        prefix: Option<String>,
    },
    /// `NAME=value`, put into the environment.
    Assign,
    /// A little language.
    Code(String),
    /// A host to connect to.
    Host,
    /// A host that is handed data.
    HostSend,
    /// A URL to fetch from.
    Url,
    /// A URL that is handed data.
    UrlSend,
    /// `host:path`, a URL or a local path, read.
    RemoteRead,
    /// `host:path`, a URL or a local path, written.
    RemoteWrite,
    /// Text, but `@file` reads the file.
    AtRead,
    /// A version, of which `version:file` shows a file.
    Revision,
    /// A path that is read, unless it has wildcards or magic of git: then it only says which names a `git` line means.
    Pathspec,
    /// The value of an option that is not named: text, but `file://…` and `@…` read a file.
    AnyValue,
    /// A suffix under which the old contents of updated files are kept.
    BackupSuffix,
    /// A glob: only files whose name matches are visited in trees; with `!` in front, they are left out.
    Only,
    /// A glob: files whose name matches are left out.
    Except,
    /// A glob: directories whose name matches are left out.
    ExceptDirectory,
    /// How many components are taken off the names of members.
    Strip,
    /// Not understood, and why.
    Opaque(String),
}

impl RoleKind {
    /// Whether the word has no effect of its own.
    pub fn is_text(&self) -> bool {
        use RoleKind::{Except, ExceptDirectory, Only, Strip, Text};
        matches!(self, Text | Only | Except | ExceptDirectory | Strip)
    }
}

/// What comes out of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Paths at or below the listed operands.
    Names,
    /// Names relative to the listed operands, or the operands themselves.
    Entries,
    /// A selection of the lines that came in, if there is no file operand.
    Same,
    /// Exactly what came in.
    Input,
    /// The whole paths of the listed operands, with links followed.
    Resolved,
    /// The working directory.
    Directory,
    /// The path of an installed program.
    Program,
    /// One plain word: no blanks, no slash, no dash in front.
    Word,
    /// One whole number in digits.
    Number,
    /// One whole number, which may be below zero.
    Integer,
    /// Whole numbers in digits, any number of them.
    Numbers,
    /// Local data.
    Data,
    /// Nothing.
    Nothing,
    /// The environment, unless it runs something.
    Environment,
    /// Something from the network.
    Fetched,
    /// Not known.
    Unknown,
}

/// An effect as a table states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectForm {
    /// What is done.
    pub action: Action,
    /// To what.
    pub target: EffectTarget,
    /// Everything below the path, too.
    pub tree: bool,
    /// What is special about it.
    pub marks: Vec<Mark>,
}

/// What an effect of a table is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectTarget {
    /// A path, relative to the working directory or starting with `~` or `/`.
    Path(String),
    /// Code that runs.
    Program(CodeOrigin, String),
    /// A host or a service in angle brackets; `None`: not known.
    Host(Option<String>),
    /// Words that say why. `None` in an example: any.
    Words(Option<String>),
}

impl Role {
    /// A role of which nothing but its kind is said.
    pub(super) const fn plain(kind: RoleKind) -> Role {
        Role { kind, tree: false, marks: Vec::new(), elsewhere: None, derived: None, members: None }
    }

    /// It takes all words that follow.
    pub fn takes_rest(&self) -> bool {
        matches!(self.kind, RoleKind::Command { until: false, .. } | RoleKind::ShellWords)
    }
}
