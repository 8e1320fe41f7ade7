//! What can be wrong with a table, and what to write instead.

use thiserror::Error;

/// A mistake in a table, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}:{line}:{column}: {problem}")]
pub struct TableError {
    /// The file or policy the table stands in.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: TableProblem,
}

/// The kinds of mistakes in a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableProblem {
    /// A block's header lacks its colon or its names.
    #[error("a table starts with `NAMES: DESCRIPTION` in the first column")]
    Header,
    /// A line is indented by something else than spaces.
    #[error("indent with spaces, not tabs")]
    Tab,
    /// A line stands deeper than anything it could belong to.
    #[error(
        "indented by {found} spaces, expected at most {expected}: lines of a program by 2, those of a subcommand by 2 more"
    )]
    Indent {
        /// What was found.
        found: usize,
        /// What would have been possible.
        expected: usize,
    },
    /// An odd number of spaces.
    #[error("indented by {0} spaces: use multiples of 2")]
    OddIndent(usize),
    /// Subcommands inside subcommands without end.
    #[error("subcommands are nested too deeply (at most {0})")]
    TooDeep(usize),
    /// A line that needs a colon has none.
    #[error("`{0}` needs a colon: `{0}: …` or `{0} if CONDITION: …`")]
    Colon(String),
    /// A keyword that is not known stands where `if` or a colon should.
    #[error("`{0}` is not understood here: write `if CONDITION` or a colon")]
    ExpectedIf(String),
    /// A role that is not known.
    #[error("there is no role `<{0}>`: see the table of roles in docs/program-tables.md")]
    Role(String),
    /// Something else than a role where one should stand.
    #[error("`{0}` is not a role: write roles in angle brackets, like `<text>` or `<read>*`")]
    NotARole(String),
    /// A bracket that is never closed.
    #[error("`{0}` is never closed")]
    Unclosed(char),
    /// Two roles that repeat.
    #[error("only one role of an `args` line may repeat")]
    TwoRepeats,
    /// Something follows `<command>`.
    #[error("`<command>` takes all words that follow: it must be the last role")]
    CommandLast,
    /// An option line without a name.
    #[error("an option line starts with the option's names")]
    NoName,
    /// A role before the first name, or a name behind a role.
    #[error("`{0}` stands behind the values: write `NAMES VALUES ends tree => EFFECTS`")]
    NameAfterValue(String),
    /// Optional and required values mixed.
    #[error("an optional value `[<role>]` stands alone")]
    MixedValues,
    /// A repeated value of an option.
    #[error("an option's value cannot repeat: write one role for each word")]
    RepeatedValue,
    /// The same option twice.
    #[error("option `{0}` is there twice")]
    TwiceOption(String),
    /// An effect that is not known.
    #[error("`{0}` is not an action: write list, read, write, delete, run, connect, send, privilege or opaque")]
    Action(String),
    /// An effect without target.
    #[error("`{0}` needs {1}")]
    Target(String, &'static str),
    /// A mark that is not known.
    #[error("`{0}` is not understood behind an effect: write tree, !destructive or !credentials")]
    Mark(String),
    /// A condition that is not understood.
    #[error(
        "`{0}` is not a condition: write `-x`, `-x|-y`, `-x=VALUE|VALUE`, `-x not VALUE|VALUE`, `args`, `no args`, `arg1=VALUE`, `not …`, joined by `and`"
    )]
    Condition(String),
    /// A condition on an option that does not exist.
    #[error("the condition names option `{0}`, which this table does not have")]
    ConditionOption(String),
    /// A style that is not known.
    #[error(
        "there is no style `{0}`: write gnu, posix, long, long-first, single, single-first, tar, none or custom NAME"
    )]
    Style(String),
    /// An output that is not known.
    #[error("there is no output `{0}`: see `stdout` in docs/program-tables.md")]
    Output(String),
    /// An example without arrow.
    #[error("an example reads `example COMMAND => EFFECTS`")]
    Example,
    /// A `from` line that is not understood.
    #[error(
        "say where a table comes from as `from PROGRAM VERSION: SOURCES`, at its top level; sources are manual, --help, completion, source"
    )]
    Source,
    /// A `loads` line that is not understood.
    #[error(
        "`{0}` is not understood behind `loads`: write `loads project: FILES`, `loads home: FILES` or `loads system: FILES`, relative to that directory"
    )]
    LoadPlace(String),
    /// Something else than a variable behind `heeds`.
    #[error("`{0}` is not the name of a variable")]
    Variable(String),
    /// A `hosts` line that is not understood.
    #[error("say where hosts may stand as `hosts: none`, or with `args`, `arg1` and options")]
    HostPlace,
    /// A line that is about the whole program, below a subcommand.
    #[error("`{0}` is about the whole program: it stands at the top level of a table")]
    TopLevel(String),
    /// `globs` without `unsafe`.
    #[error("write `globs unsafe`")]
    Globs,
    /// A condition, part of which holds for no command line.
    #[error("the condition `{0}` can never hold here")]
    NeverMatches(String),
    /// A line that an earlier one of its kind hides.
    #[error("this `{0}` line never counts: an earlier one always holds, or has the same condition")]
    Unreachable(String),
    /// A star in the middle of an option's name.
    #[error("the first star of `{0}` is a plain character: only a star at the end stands for the rest of a word")]
    LiteralStar(String),
    /// Options on one line, one of which a condition names.
    #[error(
        "a condition names one of `{0}` and holds for all: give each option a line of its own, or write `together` behind them"
    )]
    NotTogether(String),
    /// A line that does not fit on a screen.
    #[error("{length} columns, at most {most}: end the line with ` \\` and go on in the next one")]
    TooLong {
        /// How many there are.
        length: usize,
        /// How many there may be.
        most: usize,
    },
    /// Words behind a line that takes none.
    #[error("nothing may follow `{0}`")]
    Trailing(String),
    /// `use` of something that is not shared.
    #[error("nothing is shared under the name `{0}`: see programs/shared, or write a block `share {0}: …`")]
    Share(String),
    /// Shared lines that no table uses.
    #[error("nothing uses the shared lines `{0}`")]
    UnusedShare(String),
    /// Two blocks of shared lines for one name.
    #[error("`{name}` is shared already, in {other}")]
    TwiceShare {
        /// The name.
        name: String,
        /// Where the other block stands.
        other: String,
    },
    /// Two tables for one name.
    #[error("`{name}` has a table already, in {other}")]
    TwiceProgram {
        /// The program.
        name: String,
        /// Where its other table stands.
        other: String,
    },
}
