//! Expansion of words.

use super::Evaluator;
use super::braces;
use super::pieces::{Field, Piece};
use super::state::{State, Value};
use crate::stream::{Listing, Stream};
use crate::syntax::ast::{Part, SourceWord, Span, Substitution};
use crate::syntax::{Dialect, is_name};
use crate::word::{DIGITS, INTEGER, ListedNames, PLAIN, Word};
use std::sync::Arc;

impl Evaluator<'_> {
    /// Expands the words of a command.
    pub fn words(&mut self, sources: &[SourceWord], state: &mut State) -> Vec<Word> {
        let mut words = Vec::with_capacity(sources.len());
        for source in sources {
            self.word(source, state, &mut words);
        }
        words
    }

    /// Expands one word to any number of words.
    pub fn word(&mut self, source: &SourceWord, state: &mut State, words: &mut Vec<Word>) {
        if let Some(text) = source.plain()
            && !text.contains(['{', '~', '*', '?', '[', '(', '$'])
            && !text.starts_with('=')
        {
            words.push(Word::Known(text.to_owned()));
            return;
        }
        self.doubt_if(self.language().word_difference(&source.parts), &source.span);
        match self.alternatives(source) {
            None => self.word_without_braces(&source.parts, state, words),
            Some(several) => {
                let empty = |part: &Part| matches!(part, Part::Literal(text) if text.is_empty());
                if self.dialect == Dialect::Any && several.iter().any(|parts| parts.iter().all(empty)) {
                    self.doubt("zsh keeps the empty words that braces make", &source.span);
                }
                several.iter().for_each(|parts| self.word_without_braces(parts, state, words));
            }
        }
    }

    fn word_without_braces(&mut self, parts: &[Part], state: &mut State, words: &mut Vec<Word>) {
        if let [Part::Quoted(text)] = parts {
            words.push(Word::Known(text.clone()));
            return;
        }
        let lone_dollar = |part: &Part| matches!(part, Part::Literal(text) if text.contains('$'));
        if parts.len() > 1 && parts.iter().any(lone_dollar) {
            // bash does not split such a word. Its substitutions still run.
            self.fields(parts, state, true);
            let why = "bash may or may not split this word".to_owned();
            words.push(Word::Unknown { why, many: true });
            return;
        }
        let globs = !state.options.no_globs;
        let Fields { done, open, differs, .. } = self.fields(parts, state, true);
        if differs && self.dialect == Dialect::Any {
            self.doubt_here("zsh does not split or expand an unquoted variable as bash does");
        }
        // An empty last field vanishes like any other.
        let fields = done.into_iter().chain(std::iter::once(open));
        let before = words.len();
        words.extend(fields.filter(|field| !field.vanishes()).map(|field| field.into_word(globs)));
        let glob = |word: &Word| matches!(word, Word::Glob(_));
        let odd = |part: &Part| matches!(part, Part::Literal(text) if text.contains('[') || text.starts_with('='));
        if self.dialect == Dialect::Any
            && (parts.iter().any(odd) || words.get(before..).is_some_and(|words| words.iter().any(glob)))
        {
            // In zsh a pattern that matches nothing is an error, and so is `==`.
            self.may_drop_line(state);
        }
    }

    /// The words that brace expansion makes of one; `None`: it has no braces.
    pub fn alternatives(&mut self, source: &SourceWord) -> Option<Vec<Vec<Part>>> {
        if !braces::has_braces(&source.parts) {
            return None;
        }
        let most = self.context.limits.unrolled.saturating_mul(16);
        let expanded = braces::expand(&source.parts, most);
        Some(match expanded {
            Some(words) if self.dialect != Dialect::Sh || words.len() == 1 => words,
            // The resulting words are unknown, but substitutions inside the braces still run.
            _ => {
                let mut parts = source.parts.clone();
                parts.insert(0, Part::Unclear("braces".to_owned(), source.span.clone()));
                vec![parts]
            }
        })
    }

    /// Expands to one field: no splitting, no wildcards (assignments, `case`, redirections, here-strings).
    pub fn single(&mut self, parts: &[Part], state: &mut State) -> Field {
        self.fields(parts, state, false).joined()
    }

    /// Expands the contents of double quotes to one field.
    pub fn double_quoted(&mut self, parts: &[Part], state: &mut State) -> Field {
        let mut fields = Fields::new(false);
        self.double_quotes(parts, state, &mut fields);
        fields.joined()
    }

    fn double_quotes(&mut self, parts: &[Part], state: &mut State, fields: &mut Fields) {
        // `"$@"` alone may expand to no word.
        let only_list = matches!(parts, [Part::Parameter(parameter)]
            if parameter.name == "@" || parameter.index == Some(crate::syntax::ast::ArrayIndex::Each));
        fields.open.quoted |= !only_list;
        self.doubt_about_difference(parts, true);
        for part in parts {
            self.expansion(part, state, true, fields);
        }
    }

    /// Expands to a value.
    pub fn value(&mut self, parts: &[Part], state: &mut State) -> Value {
        self.single(parts, state).value()
    }

    /// Expands parts to fields; `splits` says whether unquoted expansions are split at blanks.
    pub fn fields(&mut self, parts: &[Part], state: &mut State, splits: bool) -> Fields {
        let mut fields = Fields::new(splits);
        self.doubt_about_difference(parts, false);
        for (place, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) => {
                    let rest = if place == 0 { self.tilde(text, parts.len() == 1, state, &mut fields) } else { text };
                    fields.open.push_text(rest, false);
                }
                Part::Quoted(text) => {
                    fields.open.push_text(text, true);
                    fields.open.quoted = true;
                }
                Part::Double(parts) => self.double_quotes(parts, state, &mut fields),
                other => self.expansion(other, state, false, &mut fields),
            }
        }
        fields
    }

    /// `~` at the start of a word; returns what is left of the text.
    fn tilde<'t>(&mut self, text: &'t str, whole: bool, state: &State, fields: &mut Fields) -> &'t str {
        let named = text.find("=~").filter(|end| is_name(text.get(..*end).unwrap_or("").trim_end_matches('+')));
        let text = match named.map(|end| text.split_at(end.saturating_add(1))) {
            // A word that looks like an assignment.
            Some((name, value)) => {
                fields.open.push_text(name, false);
                value
            }
            None => text,
        };
        let Some(rest) = text.strip_prefix('~') else {
            return text;
        };
        let end = rest.find('/');
        let user = rest.get(..end.unwrap_or(rest.len())).unwrap_or("");
        let left = end.and_then(|end| rest.get(end..)).unwrap_or("");
        if end.is_none() && !whole {
            // `~"x"`: quotes in the name part; `~$x`: no tilde expansion.
            fields.unknown("a home directory", false);
            return left;
        }
        let place = match user {
            "" => self.lookup("HOME", state),
            // The shell takes what the variable says, which an assignment may have changed.
            "+" if state.variables.contains_key("PWD") => Value::unknown("PWD was assigned to"),
            "-" if state.variables.contains_key("OLDPWD") => Value::unknown("OLDPWD was assigned to"),
            "+" => match state.directories.as_ref() {
                [Some(directory)] => Value::Text(Arc::clone(directory)),
                _ => Value::unknown("the working directory is unknown"),
            },
            "-" => match &state.previous {
                Some(directory) => Value::Text(Arc::clone(directory)),
                None => Value::unknown("the previous directory is unknown"),
            },
            _ => Value::unknown("another user's home directory"),
        };
        match place {
            Value::Text(directory) => fields.open.push_text(&directory, true),
            _ => fields.unknown("a home directory", false),
        }
        left
    }

    /// Expands text with tildes as in assignments: at the start and after colons.
    pub fn assigned_text(&mut self, parts: &[Part], state: &mut State) -> Field {
        if let Some(why) = self.language().value_difference(parts) {
            self.doubt_here(why);
        }
        let tilde = |part: &Part| matches!(part, Part::Literal(text) if text.contains(":~"));
        if parts.iter().any(tilde) {
            let mut field = self.single(parts, state);
            field.pieces.insert(0, Piece::Unknown { why: Arc::from("home directories in a list"), many: false });
            return field;
        }
        self.single(parts, state)
    }

    /// Expands anything but unquoted text.
    pub fn expansion(&mut self, part: &Part, state: &mut State, quoted: bool, fields: &mut Fields) {
        match part {
            Part::Literal(text) => fields.open.push_text(text, quoted),
            Part::Quoted(text) => fields.open.push_text(text, true),
            Part::Double(parts) => {
                fields.open.quoted = true;
                for part in parts {
                    self.expansion(part, state, true, fields);
                }
            }
            Part::Parameter(parameter) => self.parameter(parameter, state, quoted, fields),
            Part::Command(body) => {
                let output = self.substitution(body, state, self.input);
                self.output(output, state, quoted, fields);
            }
            Part::Arithmetic(parts, span) => {
                let value = self.arithmetic(parts, span, state);
                fields.push(&value, quoted, self.splitting(state));
            }
            Part::Process { reads, body } => {
                let input = if *reads { self.input } else { &Stream::Unknown };
                self.substitution(body, state, input);
                fields.open.push_text("/dev/fd/63", true);
            }
            Part::Unclear(why, span) => {
                self.doubt(why, span);
                fields.unknown(why, !quoted);
            }
        }
    }

    /// Runs the commands of a substitution in a subshell and returns what they print.
    pub fn substitution(&mut self, body: &Substitution, state: &State, stdin: &Stream) -> Stream {
        if let Some(why) = body.doubt {
            self.doubt(why, &body.span);
        }
        // `set -e` does not count in a substitution.
        self.tested(|evaluator| evaluator.apart(|evaluator| evaluator.in_subshell(&body.script, state.clone(), stdin)))
    }

    /// Adds the output of a substitution to a word.
    pub(super) fn output(&mut self, output: Stream, state: &State, quoted: bool, fields: &mut Fields) {
        match output {
            Stream::Text(text) => {
                let value = Value::text(text.trim_end_matches('\n'));
                fields.push(&value, quoted, self.splitting(state));
            }
            Stream::Names(directories) => match common(&directories) {
                Some(directory) => {
                    let names = match directories.as_slice() {
                        [only] => only.names.clone(),
                        _ => ListedNames::All,
                    };
                    let directory = Arc::from(directory);
                    fields.open.pieces.push(Piece::Below { directory, many: !quoted, names });
                }
                None => fields.unknown("names from several directories", !quoted),
            },
            Stream::Word => fields.printed(if quoted || !fields.splits { PLAIN } else { "*" }),
            Stream::Number => fields.printed(DIGITS),
            Stream::Integer if quoted || !fields.splits => fields.printed(INTEGER),
            Stream::Numbers if !quoted && fields.splits && self.splitting(state) == Splitting::Blanks => {
                fields.printed(DIGITS);
            }
            _ => fields.unknown("the output of a command", !quoted),
        }
    }

    /// How unquoted expansions are split here.
    pub fn splitting(&self, state: &State) -> Splitting {
        match state.variables.get("IFS").map(|variable| &variable.value) {
            None if state.anything_set => Splitting::Unknown,
            None | Some(Value::Unset) => Splitting::Blanks,
            Some(Value::Text(text)) if &**text == " \t\n" => Splitting::Blanks,
            Some(_) => Splitting::Unknown,
        }
    }

    pub(super) fn doubt_about_difference(&mut self, parts: &[Part], quoted: bool) {
        if let Some(why) = self.language().difference(parts, quoted) {
            self.doubt_here(why);
        }
    }

    /// Adds a doubt and returns an unknown value.
    pub fn doubt_value(&mut self, why: &str, span: &Span) -> Value {
        self.doubt(why, span);
        Value::unknown(why)
    }
}

/// A directory that contains all of these names: one of them, or the working directory.
fn common(listings: &[Listing]) -> Option<&str> {
    let directories: Vec<&str> = listings.iter().map(|listing| listing.directory.as_str()).collect();
    let first = *directories.iter().min_by_key(|directory| directory.len())?;
    let is_below = |name: &&str| {
        let rest = name.strip_prefix(first.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && !climbs(name)
    };
    if directories.len() == 1 || directories.iter().all(is_below) {
        return Some(first);
    }
    let starts_here = |name: &&str| !name.starts_with(['/', '~', '-']) && !climbs(name);
    directories.iter().all(starts_here).then_some(".")
}

fn climbs(path: &str) -> bool {
    path.split('/').any(|component| component == "..")
}

/// How unquoted expansions are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Splitting {
    /// At spaces, tabs and newlines.
    Blanks,
    /// `IFS` has been changed.
    Unknown,
}

/// The fields of a word: those that are complete, and the last one.
pub(super) struct Fields {
    done: Vec<Field>,
    pub open: Field,
    pub splits: bool,
    /// A value was split or may be a pattern, which only bash does.
    differs: bool,
}

impl Fields {
    fn new(splits: bool) -> Fields {
        Fields { done: Vec::new(), open: Field::default(), splits, differs: false }
    }

    /// Joins all fields with blanks, where one word is wanted (`x=$@`).
    fn joined(self) -> Field {
        let Fields { mut done, open, .. } = self;
        if done.is_empty() {
            return open;
        }
        if !open.vanishes() {
            done.push(open);
        }
        let mut whole = Field::default();
        for (place, field) in done.into_iter().enumerate() {
            if place > 0 {
                whole.push_text(" ", true);
            }
            whole.quoted |= field.quoted;
            whole.pieces.extend(field.pieces);
        }
        whole
    }

    /// Adds something unknown to the open field.
    pub fn unknown(&mut self, why: &str, many: bool) {
        self.open.pieces.push(Piece::Unknown { why: Arc::from(why), many });
    }

    /// Adds what a program prints to the open field.
    fn printed(&mut self, pattern: &str) {
        self.open.pieces.push(Piece::Pattern { pattern: Arc::from(pattern), quoted: true });
    }

    /// Ends the open field and starts another.
    pub fn next(&mut self) {
        self.done.push(std::mem::take(&mut self.open));
    }

    /// Adds the value of an expansion.
    pub fn push(&mut self, value: &Value, quoted: bool, splitting: Splitting) {
        let splits = self.splits && !quoted;
        match value {
            Value::Text(text) if !splits => self.open.push_text(text, quoted || !self.splits),
            Value::Text(text) if splitting == Splitting::Blanks => {
                self.differs |= text.contains([' ', '\t', '\n', '*', '?', '[', '(']);
                self.split(text);
            }
            Value::Text(_) => {
                self.unknown("IFS has been changed", true);
            }
            Value::Number => self.open.pieces.push(Piece::Number),
            Value::Below(directory, names) => {
                let (directory, names) = (Arc::clone(directory), names.clone());
                self.open.pieces.push(Piece::Below { directory, many: splits, names });
            }
            // Without quotes, an empty word disappears.
            Value::Glob(pattern) if splits && &**pattern == PLAIN => {
                self.printed("*");
            }
            Value::Glob(pattern) => {
                self.open.pieces.push(Piece::Pattern { pattern: Arc::clone(pattern), quoted: !splits });
            }
            Value::Prefix(prefix, why) => {
                if !splits {
                    self.open.push_text(prefix, true);
                } else if splitting == Splitting::Blanks && !prefix.contains([' ', '\t', '\n']) {
                    self.open.push_text(prefix, false);
                }
                self.open.pieces.push(Piece::Unknown { why: Arc::clone(why), many: splits });
            }
            Value::Unknown(why) => self.open.pieces.push(Piece::Unknown { why: Arc::clone(why), many: splits }),
            Value::Unset => {}
        }
        self.open.quoted |= quoted && !matches!(value, Value::Unset);
    }

    fn split(&mut self, text: &str) {
        const BLANKS: [char; 3] = [' ', '\t', '\n'];
        if text.starts_with(BLANKS) && !self.open.vanishes() {
            self.next();
        }
        let mut words = text.split(BLANKS).filter(|word| !word.is_empty()).peekable();
        let any = words.peek().is_some();
        while let Some(word) = words.next() {
            self.open.push_text(word, false);
            if words.peek().is_some() {
                self.next();
            }
        }
        if any && text.ends_with(BLANKS) {
            self.next();
        }
    }
}
