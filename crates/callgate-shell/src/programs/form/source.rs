//! The lines of a table file: comments cut off, long lines joined, shared lines put in. `build.rs` uses this file, too.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// A line without its indentation and comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine<'a> {
    /// The line of the file, from 1.
    pub number: usize,
    pub indent: usize,
    pub text: Cow<'a, str>,
}

/// How deep shared lines may use other shared lines.
const MAX_USES: usize = 8;

/// The lines of a text. A line that ends in ` \` goes on in the next one.
pub fn source_lines(text: &str) -> Vec<SourceLine<'_>> {
    let mut lines: Vec<SourceLine<'_>> = Vec::new();
    let mut goes_on = false;
    for (number, raw) in (1..).zip(text.lines()) {
        let inner = raw.trim_start_matches(' ');
        let text = without_comment(inner);
        if text.is_empty() {
            continue;
        }
        let whole = text.strip_suffix(" \\").map(str::trim_end);
        let part = whole.unwrap_or(text);
        match lines.last_mut().filter(|_| goes_on) {
            Some(line) => {
                let joined = line.text.to_mut();
                if !joined.ends_with('|') && !part.starts_with('|') {
                    joined.push(' ');
                }
                joined.push_str(part);
            }
            None => lines.push(SourceLine { number, indent: raw.len() - inner.len(), text: Cow::Borrowed(part) }),
        }
        goes_on = whole.is_some();
    }
    lines
}

/// Lines that stand once, in a block `share NAME: DESCRIPTION`, and that tables take with `use NAME`. The header is the
/// first line of each.
#[derive(Debug, Clone, Default)]
pub struct Shares {
    pub own: BTreeMap<String, Vec<SourceLine<'static>>>,
    /// Where to look for a name that is not among these.
    pub further: Option<fn() -> &'static Shares>,
}

impl Shares {
    /// Takes the `share` blocks out of a file's lines.
    pub fn take<'a>(&mut self, lines: Vec<SourceLine<'a>>) -> Vec<SourceLine<'a>> {
        let mut kept = Vec::new();
        let mut current: Option<&mut Vec<SourceLine<'static>>> = None;
        for line in lines {
            if line.indent == 0 {
                let header = line.text.strip_prefix("share ").and_then(header);
                current =
                    header.map(|(name, _)| self.own.entry(name.trim().to_owned()).insert_entry(Vec::new()).into_mut());
            }
            match &mut current {
                Some(share) => share.push(SourceLine { text: Cow::Owned(line.text.into_owned()), ..line }),
                None => kept.push(line),
            }
        }
        kept
    }

    fn get(&self, name: &str) -> Option<&[SourceLine<'static>]> {
        self.own.get(name).map(Vec::as_slice).or_else(|| (self.further?)().get(name))
    }

    /// Puts shared lines where they are used. Gives the `use` lines that name nothing, too.
    pub fn expand<'a>(&self, lines: Vec<SourceLine<'a>>) -> (Vec<SourceLine<'a>>, Vec<SourceLine<'a>>) {
        let (mut expanded, mut unknown) = (Vec::new(), Vec::new());
        for line in lines {
            self.put(line, 0, &mut expanded, &mut unknown);
        }
        (expanded, unknown)
    }

    fn put<'a>(
        &self,
        line: SourceLine<'a>,
        depth: usize,
        expanded: &mut Vec<SourceLine<'a>>,
        unknown: &mut Vec<SourceLine<'a>>,
    ) {
        let Some(name) = used(&line) else {
            return expanded.push(line);
        };
        match self.get(name) {
            Some(share) if depth < MAX_USES => {
                for shared in share.iter().skip(1) {
                    let indent = (line.indent + shared.indent).saturating_sub(2);
                    let shared = SourceLine { number: line.number, indent, text: shared.text.clone() };
                    self.put(shared, depth + 1, expanded, unknown);
                }
            }
            _ => unknown.push(line),
        }
    }
}

/// The names and the description of a header: `NAMES: DESCRIPTION`. A colon alone is a name, too.
pub fn header(text: &str) -> Option<(&str, &str)> {
    text.split_once(": ").or_else(|| text.strip_suffix(':').map(|names| (names, "")))
}

/// The name behind `use`.
pub fn used<'l>(line: &'l SourceLine<'_>) -> Option<&'l str> {
    line.text.strip_prefix("use ").map(str::trim)
}

/// Cuts a comment off: `#` at the front, or after two spaces and outside quotes.
fn without_comment(text: &str) -> &str {
    if text.starts_with('#') {
        return "";
    }
    let single_quotes = text.starts_with("example ");
    let mut quote = None;
    let mut spaces = 0usize;
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '"' || (character == '\'' && single_quotes) => quote = Some(character),
            None if character == '#' && spaces >= 2 => {
                return text.get(..at).unwrap_or_default().trim_end();
            }
            None => {}
        }
        spaces = if character == ' ' { spaces + 1 } else { 0 };
    }
    text.trim_end()
}
