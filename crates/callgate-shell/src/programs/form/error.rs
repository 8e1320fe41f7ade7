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
    #[error("unexpected indentation of {found} spaces (at most {expected} here): indent by 2 for each level")]
    Indent {
        /// What was found.
        found: usize,
        /// What would have been possible.
        expected: usize,
    },
    /// An odd number of spaces.
    #[error("odd indentation of {0} spaces: indent by 2 for each level")]
    OddIndent(usize),
    /// Subcommands inside subcommands without end.
    #[error("subcommands are nested too deeply (at most {0})")]
    TooDeep(usize),
    /// A line that needs a colon has none.
    #[error("missing colon after `{0}`: write `{0}: …` or `{0} if CONDITION: …`")]
    Colon(String),
    /// A keyword that is not known stands where `if` or a colon should.
    #[error("unexpected `{0}`: write `if CONDITION` or a colon")]
    ExpectedIf(String),
    /// A role that is not known.
    #[error("unknown role `<{0}>`: the roles are listed in docs/program-tables.md")]
    Role(String),
    /// Something else than a role where one should stand.
    #[error("`{0}` is not a role: write roles in angle brackets, like `<text>` or `<read>*`")]
    NotARole(String),
    /// A bracket that is never closed.
    #[error("unclosed `{0}`")]
    Unclosed(char),
    /// Two roles that repeat.
    #[error("only one role of an `args` line can repeat")]
    TwoRepeats,
    /// Something follows `<command>`.
    #[error("`<command>` takes all words that follow, so it must be the last role")]
    CommandLast,
    /// An option line without a name.
    #[error("an option line starts with the option's names")]
    NoName,
    /// A role before the first name, or a name behind a role.
    #[error("unexpected `{0}` after the values: write `NAMES VALUES ends tree => EFFECTS`")]
    NameAfterValue(String),
    /// Optional and required values mixed.
    #[error("an option takes either one optional value `[<role>]` or required ones")]
    MixedValues,
    /// A repeated value of an option.
    #[error("an option's value cannot repeat: write one role for each word")]
    RepeatedValue,
    /// The same option twice.
    #[error("duplicate option `{0}`")]
    TwiceOption(String),
    /// An effect that is not known.
    #[error("unknown action `{0}`: write list, read, write, delete, run, connect, send, privilege or opaque")]
    Action(String),
    /// An effect without target.
    #[error("`{0}` needs {1}")]
    Target(String, &'static str),
    /// A mark that is not known.
    #[error("unexpected `{0}` after an effect: write tree, !destructive or !credentials")]
    Mark(String),
    /// A condition that is not understood.
    #[error(
        "invalid condition `{0}`: write `-x`, `-x|-y`, `-x=VALUE|VALUE`, `-x not VALUE|VALUE`, `args`, `no args`, `arg1=VALUE`, `not …`, joined by `and`"
    )]
    Condition(String),
    /// A condition on an option that does not exist.
    #[error("unknown option `{0}` in a condition or a `hosts` line: this table does not have it")]
    ConditionOption(String),
    /// A style that is not known.
    #[error("unknown style `{0}`: write gnu, posix, long, long-first, single, single-first, tar, none or custom NAME")]
    Style(String),
    /// An output that is not known.
    #[error("unknown output `{0}`: the outputs are listed in docs/program-tables.md")]
    Output(String),
    /// An example without arrow.
    #[error("invalid example: write `example COMMAND => EFFECTS`")]
    Example,
    /// A `from` line that is not understood.
    #[error(
        "invalid `from` line: write `from PROGRAM VERSION: SOURCES` at the top level; the sources are manual, --help, completion and source"
    )]
    Source,
    /// A `loads` line that is not understood.
    #[error(
        "invalid `loads {0}`: write `loads project: FILES`, `loads home: FILES` or `loads system: FILES`, relative to that directory"
    )]
    LoadPlace(String),
    /// Something else than a variable behind `heeds`.
    #[error("invalid variable name `{0}`")]
    Variable(String),
    /// A `hosts` line that is not understood.
    #[error("invalid `hosts` line: write `hosts: none`, or list `args`, `arg1` and options")]
    HostPlace,
    /// A line that is about the whole program, below a subcommand.
    #[error("`{0}` describes the whole program: move it to the top level of the table")]
    TopLevel(String),
    /// `globs` without `unsafe`.
    #[error("write `globs unsafe`")]
    Globs,
    /// A condition, part of which holds for no command line.
    #[error("the condition `{0}` can never hold here")]
    NeverMatches(String),
    /// A line that an earlier one of its kind hides.
    #[error("unreachable `{0}` line: an earlier one always holds, or has the same condition")]
    Unreachable(String),
    /// A star in the middle of an option's name.
    #[error("the first `*` in `{0}` is a literal character: only a `*` at the end matches the rest of a word")]
    LiteralStar(String),
    /// Options on one line, one of which a condition names.
    #[error("a condition on one of `{0}` holds for all of them: give each option a line of its own, or add `together`")]
    NotTogether(String),
    /// A line that does not fit on a screen.
    #[error("line too long ({length} columns, at most {most}): end it with ` \\` and continue on the next line")]
    TooLong {
        /// How many there are.
        length: usize,
        /// How many there may be.
        most: usize,
    },
    /// Words behind a line that takes none.
    #[error("unexpected text after `{0}`")]
    Trailing(String),
    /// `use` of something that is not shared.
    #[error("unknown shared lines `{0}`: see programs/shared, or add a block `share {0}: …`")]
    Share(String),
    /// Shared lines that no table uses.
    #[error("unused shared lines `{0}`")]
    UnusedShare(String),
    /// Two blocks of shared lines for one name.
    #[error("duplicate shared lines `{name}`: the others are in {other}")]
    TwiceShare {
        /// The name.
        name: String,
        /// Where the other block stands.
        other: String,
    },
    /// Two tables for one name.
    #[error("duplicate table for `{name}`: the other one is in {other}")]
    TwiceProgram {
        /// The program.
        name: String,
        /// Where its other table stands.
        other: String,
    },
}
