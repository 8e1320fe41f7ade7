//! Cutting a line of a table into tokens.

use super::Problem;

/// One token and its column (from 0, in bytes, within the line).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableToken<'a> {
    pub(super) column: usize,
    pub(super) kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A plain word.
    Word(&'a str),
    /// `"…"`, without its quotes.
    Quoted(&'a str),
    /// `<…>` with the mark of repetition that follows it.
    Angle(&'a str, Option<char>),
    /// `[<…>]`.
    Optional(&'a str),
    /// `=>`.
    Arrow,
    /// `,` between effects.
    Comma,
}

impl Kind<'_> {
    /// The token as written, for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Kind::Word(text) => (*text).to_owned(),
            Kind::Quoted(text) => format!("\"{text}\""),
            Kind::Angle(text, None) => format!("<{text}>"),
            Kind::Angle(text, Some(mark)) => format!("<{text}>{mark}"),
            Kind::Optional(text) => format!("[<{text}>]"),
            Kind::Arrow => "=>".to_owned(),
            Kind::Comma => ",".to_owned(),
        }
    }
}

/// Whether commas separate effects or are part of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commas {
    Separate,
    Literal,
}

/// Cuts `text`, which starts at `column` of its line. After `=>`, commas separate.
pub(super) fn tokens(text: &str, column: usize, commas: Commas) -> Result<Vec<TableToken<'_>>, Problem> {
    let mut found = Vec::new();
    let mut commas = commas;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(' ');
        let at = column + (text.len() - rest.len());
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        let unclosed = |bracket: char| (at, format!("unclosed `{bracket}`"));
        let (kind, length) = match first {
            '"' => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = inner.find('"').ok_or_else(|| unclosed('"'))?;
                (Kind::Quoted(inner.get(..end).unwrap_or_default()), end + 2)
            }
            '<' if angle_follows(rest) => {
                let end = angle_end(rest).ok_or_else(|| unclosed('<'))?;
                let inner = rest.get(1..end).unwrap_or_default();
                let mark = rest.get(end + 1..).and_then(|after| after.chars().next());
                let mark = mark.filter(|mark| matches!(mark, '*' | '+' | '?'));
                (Kind::Angle(inner, mark), end + 1 + usize::from(mark.is_some()))
            }
            '[' if rest.starts_with("[<") => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = angle_end(inner).ok_or_else(|| unclosed('['))?;
                if !inner.get(end + 1..).unwrap_or_default().starts_with(']') {
                    return Err(unclosed('['));
                }
                (Kind::Optional(inner.get(1..end).unwrap_or_default()), end + 3)
            }
            ',' if commas == Commas::Separate => (Kind::Comma, 1),
            _ => {
                let end = rest
                    .find(|character| character == ' ' || (character == ',' && commas == Commas::Separate))
                    .unwrap_or(rest.len());
                let word = rest.get(..end).unwrap_or_default();
                if word == "=>" {
                    commas = Commas::Separate;
                    (Kind::Arrow, end)
                } else {
                    (Kind::Word(word), end)
                }
            }
        };
        found.push(TableToken { column: at, kind });
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// `<` alone, or before a space, is an ordinary word.
fn angle_follows(text: &str) -> bool {
    text.get(1..).and_then(|rest| rest.chars().next()).is_some_and(|next| next.is_ascii_alphabetic())
}

/// The place of the `>` that closes the `<` at the front; quotes hide it.
fn angle_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '>' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}
