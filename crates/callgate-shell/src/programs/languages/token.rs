//! Tokens of code.

/// A piece of code. Each language uses those it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a keyword; in upper case in SQL, where case does not matter.
    Word(String),
    /// A quoted name.
    Name(String),
    /// A quoted text.
    Text(String),
    Number,
    /// A regular expression.
    Pattern,
    /// An operator of several characters.
    Operator(&'static str),
    /// Any other character.
    Other(char),
    Newline,
    /// A command of the shell around the language, to the end of its line.
    Meta(String),
}
