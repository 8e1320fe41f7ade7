//! Options and their values, style by style.

use super::{Given, Scanner, is_many, name_and_value};
use crate::programs::table::{OptionForm, Role, RoleKind, Style, Values};
use crate::word::Word;
use std::borrow::Cow;

/// What `options any` accepts.
static ANY_OPTION: OptionForm = OptionForm::NOTHING;
static ANY_VALUE: Role = Role::plain(RoleKind::AnyValue);

impl<'t> Scanner<'t> {
    /// The option of this name: its level, itself, and the name as the table has it.
    pub(super) fn exact(&self, name: &str) -> Option<(usize, &'t OptionForm, &'t str)> {
        let last = self.found.levels.len().saturating_sub(1);
        self.found.levels.iter().enumerate().rev().find_map(|(index, level)| {
            let (form, name) = level.index.find(&level.options, name)?;
            let accepted = index == last || level.everywhere || form.everywhere;
            // After a subcommand, only a request for help certainly belongs to the program.
            let foreign = index < last && form.ends && !matches!(name, "--help" | "-h" | "-help" | "-?");
            (accepted && !foreign).then_some((index, form, name))
        })
    }

    /// The option of one letter.
    pub(super) fn letter(&self, letter: char) -> Option<(usize, &'t OptionForm, &'t str)> {
        let mut name = [b'-', 0, 0, 0, 0];
        let length = letter.encode_utf8(name.get_mut(1..)?).len().saturating_add(1);
        self.exact(std::str::from_utf8(name.get(..length)?).ok()?)
    }

    /// The option whose name, ending in `=` or `*`, is a prefix of the word; and the rest.
    pub(super) fn at_front<'x>(&self, text: &'x str) -> Option<(usize, &'t OptionForm, &'x str)> {
        let mut best: Option<(usize, &'t OptionForm, &'x str)> = None;
        for (index, level) in self.active() {
            for form in level.index.fronts(&level.options) {
                for name in &form.names {
                    let rest = match name.strip_suffix('*') {
                        Some(front) if !front.is_empty() => text.strip_prefix(front),
                        _ if name.ends_with('=') && name.len() > 1 => text.strip_prefix(name.as_ref()),
                        _ if name.ends_with("NUMBER") => {
                            let front = name.strip_suffix("NUMBER").unwrap_or_default();
                            text.strip_prefix(front)
                                .filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
                        }
                        _ => None,
                    };
                    if let Some(rest) = rest
                        && best.is_none_or(|(_, _, shortest)| rest.len() < shortest.len())
                    {
                        best = Some((index, form, rest));
                    }
                }
            }
        }
        best
    }

    pub(super) fn known(&mut self, word: &'t Word, text: &'t str) {
        if text == "--" {
            self.found.before_dashes.get_or_insert(self.found.operands.len());
        }
        if let Some((level, form, name)) = self.exact(text) {
            return self.give(level, form, name, None);
        }
        if text == "--" {
            self.options_over = true;
            return;
        }
        if text.len() > 1 && text.starts_with('-') {
            match self.style() {
                Style::Single | Style::SingleFirst => self.single(text),
                _ if text.starts_with("--") => self.long(text),
                _ => self.short(text),
            }
        } else if let Some((level, form, rest)) = self.at_front(text) {
            self.give_front(level, form, text, rest);
        } else {
            self.operand(Cow::Borrowed(word));
        }
    }

    pub(super) fn give_front(&mut self, level: usize, form: &'t OptionForm, text: &'t str, rest: &str) {
        let number = form.names.iter().any(|name| name.ends_with("NUMBER"));
        let glued = (!rest.is_empty() && !number || text.ends_with('=')).then(|| Word::Known(rest.to_owned()));
        let glued = glued.filter(|_| form.values != Values::None);
        self.give(level, form, text, glued);
    }

    /// `-word`, `--word`, `-word=value`.
    pub(super) fn single(&mut self, text: &'t str) {
        fn bare(name: &str) -> &str {
            name.strip_prefix("--").or(name.strip_prefix('-')).unwrap_or(name)
        }
        let (name, value) = name_and_value(text);
        let wanted = bare(name);
        let found = self.forms().find(|(_, form)| {
            form.names
                .iter()
                .any(|other| other.starts_with('-') && !other.ends_with(['*', '=']) && bare(other) == wanted)
        });
        match found {
            Some((level, form)) => self.give_with(level, form, name, value),
            None => match self.at_front(text) {
                Some((level, form, rest)) => self.give_front(level, form, text, rest),
                None => self.unknown_option(name.into(), value),
            },
        }
    }

    pub(super) fn long(&mut self, text: &'t str) {
        let (name, value) = name_and_value(text);
        if let Some((level, form, name)) = self.exact(name) {
            return self.give_with(level, form, name, value);
        }
        if let Some((level, form, rest)) = self.at_front(text) {
            return self.give_front(level, form, text, rest);
        }
        let abbreviates = matches!(self.style(), Style::Gnu | Style::Posix | Style::Tar);
        // `--help=false` does not ask for help.
        if value.is_none() && (name == "--help" || (abbreviates && name == "--version")) {
            self.end();
            return;
        }
        if abbreviates {
            match self.abbreviated(name) {
                Abbreviation::Option(level, form) => {
                    return self.give_with(level, form, name, value);
                }
                Abbreviation::Ends if value.is_none() => {
                    self.end();
                    return;
                }
                Abbreviation::Ends => {}
                Abbreviation::Unclear => {
                    return self.doubt(|program| format!("ambiguous option {name} of {program}"));
                }
                Abbreviation::None => {}
            }
        }
        self.unknown_option(name.into(), value);
    }

    pub(super) fn abbreviated(&self, name: &str) -> Abbreviation<'t> {
        if name.len() < 3 {
            return Abbreviation::Unclear;
        }
        let mut found: Vec<(usize, &'t OptionForm)> = Vec::new();
        for (index, level) in self.active() {
            for form in &level.options {
                if form.names.iter().any(|other| other.starts_with("--") && other.starts_with(name)) {
                    found.push((index, form));
                }
            }
        }
        let declared = |wanted: &str| self.exact(wanted).is_some();
        let builtin =
            ["--help", "--version"].iter().filter(|other| other.starts_with(name) && !declared(other)).count();
        match (found.as_slice(), builtin) {
            ([], 0) => Abbreviation::None,
            ([], 1) => Abbreviation::Ends,
            ([(level, form)], 0) => Abbreviation::Option(*level, form),
            _ => Abbreviation::Unclear,
        }
    }

    /// `-abc`: flags, the last of which may have its value glued.
    pub(super) fn short(&mut self, text: &'t str) {
        if let Some((name, value)) = text.split_once('=')
            && name.len() > 2
            && let Some((level, form, name)) = self.exact(name)
        {
            return self.give_with(level, form, name, Some(value));
        }
        if let Some((level, form, rest)) = self.at_front(text) {
            return self.give_front(level, form, text, rest);
        }
        let body = text.get(1..).unwrap_or_default();
        for (at, letter) in body.char_indices() {
            let rest = body.get(at + letter.len_utf8()..).unwrap_or_default();
            if let Some((level, form, name)) = self.letter(letter) {
                if form.values == Values::None {
                    self.give(level, form, name, None);
                    continue;
                }
                let stripped = match self.style() {
                    Style::Long | Style::LongFirst => rest.strip_prefix('=').unwrap_or(rest),
                    _ => rest,
                };
                let glued = (!rest.is_empty()).then(|| Word::Known(stripped.to_owned()));
                return self.give(level, form, name, glued);
            }
            if letter.is_ascii_digit()
                && let Some((level, form, "")) = self.at_front(&format!("-{letter}{rest}")).map(|(l, f, _)| (l, f, ""))
                && form.names.iter().any(|name| name.ends_with("NUMBER"))
            {
                return self.give(level, form, format!("-{letter}"), None);
            }
            // Where any option is accepted, `-x5` and `-xyz` may be one.
            let glued = (!rest.is_empty()).then_some(rest);
            self.unknown_option(format!("-{letter}").into(), glued);
            return;
        }
    }

    /// `tar xzf a.tar`: the letters' values are the words that follow, in order.
    pub(super) fn bundle_without_dash(&mut self) {
        let Some(Word::Known(text)) = self.words.first() else {
            return;
        };
        if text.starts_with('-') || text.is_empty() {
            return;
        }
        self.at = 1;
        for letter in text.chars() {
            match self.letter(letter) {
                Some((level, form, name)) => self.give(level, form, name, None),
                None => self.unknown_option(format!("-{letter}").into(), None),
            }
        }
    }

    pub(super) fn unknown_option(&mut self, name: Cow<'t, str>, value: Option<&str>) {
        if self.found.levels.iter().any(|level| level.options_any) && self.any_option(&name, value) {
            return;
        }
        self.doubt(|program| format!("unknown option {name} of {program}"));
    }

    /// An option where any is accepted: words up to the next option are its values.
    pub(super) fn any_option(&mut self, name: &str, value: Option<&str>) -> bool {
        let Some(level) = self.found.level() else {
            return false;
        };
        let mut given = Given {
            form: &ANY_OPTION,
            level: self.found.levels.len().saturating_sub(1),
            name: Cow::Owned(name.to_owned()),
            values: value.map(|value| (Cow::Owned(Word::Known(value.to_owned())), &ANY_VALUE)).into_iter().collect(),
            rest: None,
            negated: false,
        };
        let is_option = |word: &Word| match word {
            Word::Known(text) | Word::Partly { prefix: text, .. } => text.starts_with('-') && text.len() > 1,
            _ => false,
        };
        if value.is_none() && self.words.get(self.at).is_some_and(|word| !is_option(word)) {
            // The words may be values or operands. That makes no difference only if operands are text.
            let text_only = level.args.iter().flat_map(|line| &line.then).all(|slot| slot.role.kind == RoleKind::Text);
            if !text_only || !level.subs.is_empty() {
                return false;
            }
            while let Some(word) = self.words.get(self.at).filter(|word| !is_option(word)) {
                given.values.push((Cow::Borrowed(word), &ANY_VALUE));
                self.at += 1;
            }
        }
        self.found.note(given);
        true
    }

    pub(super) fn give_with(&mut self, level: usize, form: &'t OptionForm, name: &'t str, value: Option<&str>) {
        let Some(value) = value else {
            return self.give(level, form, name, None);
        };
        if form.values != Values::None {
            return self.give(level, form, name, Some(Word::Known(value.to_owned())));
        }
        let switches = matches!(self.style(), Style::Long | Style::LongFirst | Style::Single | Style::SingleFirst);
        match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" if switches => self.give(level, form, name, None),
            "false" | "0" | "no" | "off" if switches => {
                let given = Given { form, level, name: name.into(), values: Vec::new(), rest: None, negated: true };
                self.found.note(given);
            }
            _ => {
                let name = name.to_owned();
                self.doubt(|program| format!("option {name} of {program} does not take a value"));
            }
        }
    }

    /// Records an option and takes its values.
    pub(super) fn give(
        &mut self,
        level: usize,
        form: &'t OptionForm,
        name: impl Into<Cow<'t, str>>,
        glued: Option<Word>,
    ) {
        let mut given = Given { form, level, name: name.into(), values: Vec::new(), rest: None, negated: false };
        let mut surplus = Vec::new();
        match &form.values {
            Values::None => {}
            Values::Optional(role) => given.values.extend(glued.map(|word| (Cow::Owned(word), role))),
            Values::Words(roles) => {
                let mut glued = glued;
                for role in roles {
                    if role.takes_rest() {
                        let mut rest: Vec<Word> = glued.take().into_iter().collect();
                        rest.extend(self.words.get(self.at..).unwrap_or_default().iter().cloned());
                        self.at = self.words.len();
                        given.rest = Some((rest, role));
                        break;
                    }
                    if matches!(role.kind, RoleKind::Command { until: true, .. }) {
                        given.rest = Some((self.until_semicolon(), role));
                        continue;
                    }
                    let word = match glued.take() {
                        Some(word) => Cow::Owned(word),
                        None => match self.words.get(self.at) {
                            Some(word) => {
                                self.at += 1;
                                Cow::Borrowed(word)
                            }
                            None => break,
                        },
                    };
                    if is_many(&word) {
                        surplus.push(word.clone());
                    }
                    given.values.push((word, role));
                }
            }
        }
        if form.ends {
            self.end();
        }
        self.options_over |= form.rest;
        self.found.note(given);
        // If a value may be several words, the others are operands or options.
        for word in surplus {
            if !matches!(word.as_ref(), Word::Glob(_)) && self.options_matter() && !self.options_over {
                self.doubt(|program| format!("an unquoted value may contain options of {program}"));
            }
            self.operand(word);
        }
    }

    /// An option that prints something and exits. After an operand it may be one more operand: other systems than
    /// GNU, and GNU with POSIXLY_CORRECT, end the options there (`rm x --help`).
    fn end(&mut self) {
        let permutes = matches!(self.style(), Style::Gnu | Style::Posix | Style::Tar);
        self.found.ended |= !permutes || self.found.operands.is_empty();
    }

    pub(super) fn until_semicolon(&mut self) -> Vec<Word> {
        let mut rest = Vec::new();
        while let Some(word) = self.words.get(self.at) {
            self.at += 1;
            if matches!(word.known(), Some(";" | "+")) {
                break;
            }
            rest.push(word.clone());
        }
        rest
    }
}

/// The meaning of an abbreviated long option.
pub(super) enum Abbreviation<'t> {
    Option(usize, &'t OptionForm),
    Ends,
    Unclear,
    None,
}
