//! The syntax tree of a shell script.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

/// A range of bytes in the source.
pub type Span = Range<usize>;

/// A list of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The parts between `;`, `&` and newlines.
    pub items: Vec<Item>,
}

/// One part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The first pipeline.
    pub first: Pipeline,
    /// The pipelines after `&&` and `||`.
    pub rest: Vec<(Connector, Pipeline)>,
    /// Ended by `&`.
    pub background: bool,
    /// It is the first part on its line.
    pub starts_line: bool,
}

/// What joins two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connector {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands joined by `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Starts with `!`, an odd number of times.
    pub negated: bool,
    /// Starts with `time`.
    pub timed: bool,
    /// The commands; none for a bare `!` or `time`.
    pub commands: Vec<Command>,
}

/// One command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it is.
    pub kind: CommandKind,
    /// Its redirections, in order.
    pub redirections: Vec<Redirection>,
    /// Its standard error goes into the pipe too (`|&`).
    pub pipes_errors: bool,
    /// Where it is in the source.
    pub span: Span,
}

/// The kinds of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// Assignments and words.
    Simple {
        /// `x=1` before the words.
        assignments: Vec<Assignment>,
        /// The words. An argument of `declare` or a similar builtin that assigns an array is kept as an assignment.
        words: Vec<Argument>,
    },
    /// `( … )`
    Subshell(Script),
    /// `{ …; }`
    Group(Script),
    /// `if … then … elif … else … fi`
    If {
        /// Conditions with their bodies.
        branches: Vec<(Script, Script)>,
        /// The body of `else`.
        otherwise: Option<Script>,
    },
    /// `while … do … done`, also `until`.
    While {
        /// The condition.
        condition: Script,
        /// What is repeated.
        body: Script,
    },
    /// `for x in … do … done`, also `select`.
    For {
        /// The variable.
        name: String,
        /// The items; `None`: the positional parameters.
        items: Option<Vec<SourceWord>>,
        /// What is repeated.
        body: Script,
        /// It is a `select`: the person at the terminal chooses.
        asks: bool,
    },
    /// `for ((a; b; c)) do … done`
    ArithmeticFor {
        /// The three expressions.
        expressions: Vec<Vec<Part>>,
        /// What is repeated.
        body: Script,
    },
    /// `case … in … esac`
    Case {
        /// What is compared.
        subject: SourceWord,
        /// The arms: patterns and body.
        arms: Vec<Arm>,
    },
    /// `(( … ))`
    Arithmetic(Vec<Part>),
    /// `[[ … ]]`
    Conditional(TestExpression),
    /// `name() …`
    Function {
        /// Its name.
        name: String,
        /// Its body.
        body: Rc<Command>,
    },
    /// `coproc [name] …`
    Coprocess {
        /// The variable with the descriptors.
        name: String,
        /// What runs.
        body: Box<Command>,
    },
}

/// One arm of a `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// The patterns.
    pub patterns: Vec<SourceWord>,
    /// What runs.
    pub body: Script,
    /// Ended by `;&` or `;;&`: a later arm may run too.
    pub falls_through: bool,
}

/// A word of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A plain word.
    Word(SourceWord),
    /// `declare a=(…)`: the array is not a word.
    Assignment(Box<Assignment>),
}

/// `name=value`, `name[index]+=value`, `name=(…)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The index, if there is one.
    pub index: Option<Vec<Part>>,
    /// `+=`
    pub appends: bool,
    /// What is assigned.
    pub value: AssignedValue,
    /// Where it is in the source.
    pub span: Span,
}

/// The right-hand side of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignedValue {
    /// A word.
    Word(SourceWord),
    /// `(a b [3]=c)`: elements with their index.
    Array(Vec<(Option<Vec<Part>>, SourceWord)>),
}

/// A word before expansion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceWord {
    /// Its parts, side by side.
    pub parts: Vec<Part>,
    /// Where it is in the source.
    pub span: Span,
}

impl SourceWord {
    /// The text, if all of it is unquoted text.
    pub fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Unquoted text: braces, tildes and wildcards count.
    Literal(String),
    /// Quoted text: exactly this.
    Quoted(String),
    /// `"…"`
    Double(Vec<Part>),
    /// `$x`, `${x…}`
    Parameter(Box<Parameter>),
    /// `$(…)` or backticks.
    Command(Substitution),
    /// `$((…))`
    Arithmetic(Vec<Part>, Span),
    /// `<(…)` or `>(…)`
    Process {
        /// `<(…)`: its output is read.
        reads: bool,
        /// What runs.
        body: Substitution,
    },
    /// Its value is not known, and why.
    Unclear(String, Span),
}

/// Commands inside a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// The commands.
    pub script: Script,
    /// Why bash may run something else than is written.
    pub doubt: Option<&'static str>,
    /// Where it is in the source.
    pub span: Span,
}

/// `${…}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The variable or special parameter.
    pub name: String,
    /// Written with braces: what follows cannot become part of the name.
    pub braced: bool,
    /// `${!x}`
    pub indirect: bool,
    /// `${#x}`
    pub length: bool,
    /// `${x[…]}`
    pub index: Option<ArrayIndex>,
    /// What is done with the value.
    pub operator: Operator,
    /// Where it is in the source.
    pub span: Span,
}

/// The index of an array element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrayIndex {
    /// `[@]`
    Each,
    /// `[*]`
    Joined,
    /// An expression.
    Expression(Vec<Part>),
}

/// The operators inside `${…}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// The value itself.
    Plain,
    /// `-`, `=`, `?`, `+`, with or without `:`.
    Test {
        /// Which of the four.
        kind: TestKind,
        /// With `:`, an empty value counts as unset.
        colon: bool,
        /// The word after it.
        operand: Vec<Part>,
    },
    /// `#`, `##`, `%`, `%%`
    Remove {
        /// At the front (`#`) or at the back (`%`).
        front: bool,
        /// The longest match.
        longest: bool,
        /// What is removed.
        pattern: Vec<Part>,
    },
    /// `/`, `//`, `/#`, `/%`
    Replace {
        /// All matches.
        all: bool,
        /// What is replaced; an anchor `#` or `%` is its first character.
        pattern: Vec<Part>,
        /// By what.
        replacement: Vec<Part>,
    },
    /// `:offset:length`
    Substring {
        /// From where.
        offset: Vec<Part>,
        /// How much.
        length: Option<Vec<Part>>,
    },
    /// `^`, `^^`, `,`, `,,`, `~`, `~~`
    Case {
        /// The operator as written.
        kind: String,
        /// Which characters.
        pattern: Vec<Part>,
    },
    /// `@Q`, `@P` …
    Transform(char),
    /// `${!prefix*}`, `${!prefix@}`
    Names,
}

/// The operators that test whether a variable is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    /// `-`
    Default,
    /// `=`
    Assign,
    /// `?`
    Error,
    /// `+`
    Alternative,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The descriptor in front.
    pub descriptor: Descriptor,
    /// What it does.
    pub kind: RedirectionKind,
    /// Where it is in the source.
    pub span: Span,
}

/// The descriptor in front of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descriptor {
    /// None: 0 or 1, depending on the operator.
    Usual,
    /// `2>`
    Number(u32),
    /// `{name}>`
    Variable(String),
}

/// The kinds of redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectionKind {
    /// `<`
    Read(SourceWord),
    /// `>`, `>>`, `>|`
    Write(SourceWord),
    /// `<>`
    ReadWrite(SourceWord),
    /// `&>`, `&>>`
    WriteBoth(SourceWord),
    /// `<&`
    DuplicateInput(SourceWord),
    /// `>&`
    DuplicateOutput(SourceWord),
    /// `<<<`
    HereString(SourceWord),
    /// `<<`, `<<-`
    HereDocument(HereDocument),
}

/// A here-document. Its body follows the line and is filled in when the parser reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HereDocument {
    /// The parts of the body; one quoted part if nothing in it expands.
    pub body: Rc<OnceCell<Vec<Part>>>,
}

/// A condition between `[[` and `]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestExpression {
    /// `&&` and `||`
    Both(Box<TestExpression>, Connector, Box<TestExpression>),
    /// `!`
    Not(Box<TestExpression>),
    /// A word that is tested for not being empty.
    Word(SourceWord),
    /// `-f x`
    Unary(String, SourceWord),
    /// `x == y`
    Binary(SourceWord, String, SourceWord),
}
