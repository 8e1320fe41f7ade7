//! Telling options, their values, operands and subcommands apart, as the real parsers do.

use super::matching::matches_glob;
use super::paths::literal_prefix;
use super::table::{Atom, Level, OptionForm, Role, RoleKind, Style, Values};

/// What `options any` accepts.
static ANY_OPTION: OptionForm = OptionForm {
    names: Vec::new(),
    values: Values::None,
    ends: false,
    tree: false,
    rest: false,
    effects: Vec::new(),
    line: 0,
};
static ANY_VALUE: Role = Role {
    kind: RoleKind::AnyValue,
    tree: false,
    marks: Vec::new(),
    elsewhere: None,
};

use crate::word::Word;

/// How many words of a group path are followed (`gcloud compute instances list`).
const MAX_GROUPS: usize = 10;

/// What the words of an invocation are.
pub(super) struct Scan<'t> {
    /// The levels, from the program to its innermost subcommand.
    pub(super) levels: Vec<&'t Level>,
    /// The names of the levels.
    pub(super) names: Vec<String>,
    /// Options and operands in their order.
    pub(super) events: Vec<Event<'t>>,
    /// The operands of the innermost level.
    pub(super) operands: Vec<Word>,
    /// What was not understood.
    pub(super) doubts: Vec<String>,
    /// An option ends the program.
    pub(super) ended: bool,
    /// The subcommand is not known, so nothing behind it is.
    pub(super) lost: bool,
}

pub(super) enum Event<'t> {
    Given(Given<'t>),
    /// The operand with this index.
    Operand(usize),
}

/// An option that was given.
pub(super) struct Given<'t> {
    pub(super) form: &'t OptionForm,
    /// The level that declares it.
    pub(super) level: usize,
    /// As it was written.
    pub(super) name: String,
    pub(super) values: Vec<(Word, &'t Role)>,
    /// All words that follow, if its value is a command.
    pub(super) rest: Option<(Vec<Word>, &'t Role)>,
    /// `--flag=false`.
    pub(super) negated: bool,
}

impl<'t> Scan<'t> {
    /// The innermost level.
    pub(super) fn level(&self) -> Option<&'t Level> {
        self.levels.last().copied()
    }

    /// The options that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &Given<'t>> {
        self.events.iter().filter_map(|event| match event {
            Event::Given(given) => Some(given),
            Event::Operand(_) => None,
        })
    }
}

/// Scans the words behind the program's name.
pub(super) fn scan<'t>(program: &str, level: &'t Level, words: &[Word]) -> Scan<'t> {
    let mut scanner = Scanner {
        words,
        at: 0,
        options_over: false,
        found: Scan {
            levels: vec![level],
            names: vec![program.to_owned()],
            events: Vec::new(),
            operands: Vec::new(),
            doubts: Vec::new(),
            ended: false,
            lost: false,
        },
    };
    scanner.run();
    scanner.found
}

/// Whether a word may stand for any number of words.
pub(super) fn is_many(word: &Word) -> bool {
    match word {
        Word::Known(_) => false,
        Word::Glob(_) => true,
        Word::Below { many, .. } | Word::Partly { many, .. } | Word::Unknown { many, .. } => *many,
    }
}

struct Scanner<'t, 'w> {
    words: &'w [Word],
    at: usize,
    options_over: bool,
    found: Scan<'t>,
}

impl<'t> Scanner<'t, '_> {
    fn run(&mut self) {
        if self.style() == &Style::Tar {
            self.bundle_without_dash();
        }
        while let Some(word) = self.words.get(self.at) {
            self.at += 1;
            if self.found.lost {
                return;
            }
            if self.options_over || self.style() == &Style::None {
                self.operand(word.clone());
                continue;
            }
            match word {
                Word::Known(text) => self.known(text),
                Word::Partly { prefix, why, many } => self.partly(prefix, why, *many),
                Word::Glob(pattern) => {
                    self.perhaps_names(&literal_prefix(pattern), pattern);
                    self.operand(word.clone());
                }
                Word::Below { directory, .. } => {
                    let prefix = if directory == "." { "" } else { directory };
                    self.perhaps_names(prefix, directory);
                    self.operand(word.clone());
                }
                Word::Unknown { why, .. } => {
                    if self.options_matter() {
                        let why = why.clone();
                        self.doubt(|name| format!("{why} may be an option of {name}"));
                    }
                    self.operand(word.clone());
                }
            }
        }
    }

    fn style(&self) -> &'t Style {
        const GNU: &Style = &Style::Gnu;
        self.found.level().map_or(GNU, |level| &level.style)
    }

    fn doubt(&mut self, say: impl FnOnce(&str) -> String) {
        let doubt = say(&self.found.names.join(" "));
        if !self.found.doubts.contains(&doubt) {
            self.found.doubts.push(doubt);
        }
    }

    /// The levels whose options are accepted here, innermost first.
    fn active(&self) -> impl Iterator<Item = (usize, &'t Level)> {
        let last = self.found.levels.len().saturating_sub(1);
        let levels = self.found.levels.iter().enumerate().rev();
        levels
            .filter(move |(index, level)| *index == last || level.everywhere)
            .map(|(index, level)| (index, *level))
    }

    fn exact(&self, name: &str) -> Option<(usize, &'t OptionForm)> {
        let last = self.found.levels.len().saturating_sub(1);
        self.active().find_map(|(index, level)| {
            let form = level
                .options
                .iter()
                .find(|form| form.names.iter().any(|other| other == name))?;
            // Behind a subcommand, only a call for help is certain to be the program's own.
            let foreign =
                index < last && form.ends && !matches!(name, "--help" | "-h" | "-help" | "-?");
            (!foreign).then_some((index, form))
        })
    }

    /// The option whose name, ending in `=` or `*`, is at the front of the word; and the rest.
    fn at_front<'x>(&self, text: &'x str) -> Option<(usize, &'t OptionForm, &'x str)> {
        let mut best: Option<(usize, &'t OptionForm, &'x str)> = None;
        for (index, level) in self.active() {
            for form in &level.options {
                for name in &form.names {
                    let rest = match name.strip_suffix('*') {
                        Some(front) if !front.is_empty() => text.strip_prefix(front),
                        _ if name.ends_with('=') && name.len() > 1 => {
                            text.strip_prefix(name.as_str())
                        }
                        _ if name.ends_with("NUMBER") => {
                            let front = name.strip_suffix("NUMBER").unwrap_or_default();
                            text.strip_prefix(front).filter(|rest| {
                                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
                            })
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

    fn known(&mut self, text: &str) {
        if let Some((level, form)) = self.exact(text) {
            return self.give(level, form, text, None);
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
            self.operand(Word::Known(text.to_owned()));
        }
    }

    fn give_front(&mut self, level: usize, form: &'t OptionForm, text: &str, rest: &str) {
        let number = form.names.iter().any(|name| name.ends_with("NUMBER"));
        let glued = (!rest.is_empty() && !number || text.ends_with('='))
            .then(|| Word::Known(rest.to_owned()));
        let glued = glued.filter(|_| form.values != Values::None);
        self.give(level, form, text, glued);
    }

    /// `-word`, `--word`, `-word=value`.
    fn single(&mut self, text: &str) {
        let bare = |name: &str| {
            name.strip_prefix("--")
                .or(name.strip_prefix('-'))
                .unwrap_or(name)
                .to_owned()
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let wanted = bare(name);
        let found = self.active().find_map(|(index, level)| {
            let form = level.options.iter().find(|form| {
                form.names.iter().any(|other| {
                    other.starts_with('-') && !other.ends_with(['*', '=']) && bare(other) == wanted
                })
            });
            form.map(|form| (index, form))
        });
        match found {
            Some((level, form)) => self.give_with(level, form, name, value),
            None => match self.at_front(text) {
                Some((level, form, rest)) => self.give_front(level, form, text, rest),
                None => self.unknown_option(name, value),
            },
        }
    }

    fn long(&mut self, text: &str) {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if let Some((level, form)) = self.exact(name) {
            return self.give_with(level, form, name, value);
        }
        if let Some((level, form, rest)) = self.at_front(text) {
            return self.give_front(level, form, text, rest);
        }
        let abbreviates = matches!(self.style(), Style::Gnu | Style::Posix | Style::Tar);
        if name == "--help" || (abbreviates && name == "--version") {
            self.found.ended = true;
            return;
        }
        if abbreviates {
            match self.abbreviated(name) {
                Abbreviation::Option(level, form) => {
                    return self.give_with(level, form, name, value);
                }
                Abbreviation::Ends => {
                    self.found.ended = true;
                    return;
                }
                Abbreviation::Unclear => {
                    return self
                        .doubt(|program| format!("option {name} of {program} is ambiguous"));
                }
                Abbreviation::None => {}
            }
        }
        self.unknown_option(name, value);
    }

    fn abbreviated(&self, name: &str) -> Abbreviation<'t> {
        if name.len() < 3 {
            return Abbreviation::Unclear;
        }
        let mut found: Vec<(usize, &'t OptionForm)> = Vec::new();
        for (index, level) in self.active() {
            for form in &level.options {
                if form
                    .names
                    .iter()
                    .any(|other| other.starts_with("--") && other.starts_with(name))
                {
                    found.push((index, form));
                }
            }
        }
        let declared = |wanted: &str| self.exact(wanted).is_some();
        let builtin = ["--help", "--version"]
            .iter()
            .filter(|other| other.starts_with(name) && !declared(other))
            .count();
        match (found.as_slice(), builtin) {
            ([], 0) => Abbreviation::None,
            ([], 1) => Abbreviation::Ends,
            ([(level, form)], 0) => Abbreviation::Option(*level, form),
            _ => Abbreviation::Unclear,
        }
    }

    /// `-abc`: flags, the last of which may have its value glued.
    fn short(&mut self, text: &str) {
        if let Some((name, value)) = text.split_once('=')
            && name.len() > 2
            && let Some((level, form)) = self.exact(name)
        {
            return self.give_with(level, form, name, Some(value));
        }
        if let Some((level, form, rest)) = self.at_front(text) {
            return self.give_front(level, form, text, rest);
        }
        let body = text.get(1..).unwrap_or_default();
        for (at, letter) in body.char_indices() {
            let name = format!("-{letter}");
            let rest = body.get(at + letter.len_utf8()..).unwrap_or_default();
            if let Some((level, form)) = self.exact(&name) {
                if form.values == Values::None {
                    self.give(level, form, &name, None);
                    continue;
                }
                let stripped = match self.style() {
                    Style::Long | Style::LongFirst => rest.strip_prefix('=').unwrap_or(rest),
                    _ => rest,
                };
                let glued = (!rest.is_empty()).then(|| Word::Known(stripped.to_owned()));
                return self.give(level, form, &name, glued);
            }
            if letter.is_ascii_digit()
                && let Some((level, form, "")) = self
                    .at_front(&format!("-{letter}{rest}"))
                    .map(|(l, f, _)| (l, f, ""))
                && form.names.iter().any(|name| name.ends_with("NUMBER"))
            {
                return self.give(level, form, &name, None);
            }
            // Where any option is accepted, `-x5` and `-xyz` may be one.
            let glued = (!rest.is_empty()).then_some(rest);
            self.unknown_option(&name, glued);
            return;
        }
    }

    /// `tar xzf a.tar`: the letters' values are the words that follow, in order.
    fn bundle_without_dash(&mut self) {
        let Some(Word::Known(text)) = self.words.first() else {
            return;
        };
        if text.starts_with('-') || text.is_empty() {
            return;
        }
        self.at = 1;
        for letter in text.clone().chars() {
            let name = format!("-{letter}");
            match self.exact(&name) {
                Some((level, form)) => self.give(level, form, &name, None),
                None => self.unknown_option(&name, None),
            }
        }
    }

    fn unknown_option(&mut self, name: &str, value: Option<&str>) {
        if self.found.levels.iter().any(|level| level.options_any) && self.any_option(name, value) {
            return;
        }
        let name = name.to_owned();
        self.doubt(|program| format!("option {name} of {program} is not known"));
    }

    /// An option where any is accepted: words up to the next option are its values.
    fn any_option(&mut self, name: &str, value: Option<&str>) -> bool {
        let Some(level) = self.found.level() else {
            return false;
        };
        let mut given = Given {
            form: &ANY_OPTION,
            level: self.found.levels.len().saturating_sub(1),
            name: name.to_owned(),
            values: value
                .map(|value| (Word::Known(value.to_owned()), &ANY_VALUE))
                .into_iter()
                .collect(),
            rest: None,
            negated: false,
        };
        let is_option = |word: &Word| match word {
            Word::Known(text) | Word::Partly { prefix: text, .. } => {
                text.starts_with('-') && text.len() > 1
            }
            _ => false,
        };
        if value.is_none() && self.words.get(self.at).is_some_and(|word| !is_option(word)) {
            // Whether they are its values or operands makes no difference only if operands are text.
            let text_only = level
                .args
                .iter()
                .flat_map(|line| &line.then)
                .all(|slot| slot.role.kind == RoleKind::Text);
            if !text_only || !level.subs.is_empty() {
                return false;
            }
            while let Some(word) = self.words.get(self.at).filter(|word| !is_option(word)) {
                given.values.push((word.clone(), &ANY_VALUE));
                self.at += 1;
            }
        }
        self.found.events.push(Event::Given(given));
        true
    }

    fn give_with(&mut self, level: usize, form: &'t OptionForm, name: &str, value: Option<&str>) {
        let Some(value) = value else {
            return self.give(level, form, name, None);
        };
        if form.values != Values::None {
            return self.give(level, form, name, Some(Word::Known(value.to_owned())));
        }
        let switches = matches!(
            self.style(),
            Style::Long | Style::LongFirst | Style::Single | Style::SingleFirst
        );
        match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" if switches => self.give(level, form, name, None),
            "false" | "0" | "no" | "off" if switches => {
                let given = Given {
                    form,
                    level,
                    name: name.to_owned(),
                    values: Vec::new(),
                    rest: None,
                    negated: true,
                };
                self.found.events.push(Event::Given(given));
            }
            _ => {
                let name = name.to_owned();
                self.doubt(|program| {
                    format!("option {name} of {program} takes no value that we know of")
                });
            }
        }
    }

    /// Notes an option and takes its values.
    fn give(&mut self, level: usize, form: &'t OptionForm, name: &str, glued: Option<Word>) {
        let mut given = Given {
            form,
            level,
            name: name.to_owned(),
            values: Vec::new(),
            rest: None,
            negated: false,
        };
        let mut surplus = Vec::new();
        match &form.values {
            Values::None => {}
            Values::Optional(role) => given.values.extend(glued.map(|word| (word, role))),
            Values::Words(roles) => {
                let mut glued = glued;
                for role in roles {
                    if role.takes_rest() {
                        let mut rest: Vec<Word> = glued.take().into_iter().collect();
                        rest.extend(
                            self.words
                                .get(self.at..)
                                .unwrap_or_default()
                                .iter()
                                .cloned(),
                        );
                        self.at = self.words.len();
                        given.rest = Some((rest, role));
                        break;
                    }
                    if matches!(role.kind, RoleKind::Command { until: true, .. }) {
                        given.rest = Some((self.until_semicolon(), role));
                        continue;
                    }
                    let word = match glued.take() {
                        Some(word) => word,
                        None => match self.words.get(self.at) {
                            Some(word) => {
                                self.at += 1;
                                word.clone()
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
        self.found.ended |= form.ends;
        self.options_over |= form.rest;
        self.found.events.push(Event::Given(given));
        // A value that may be several words leaves the others as operands, or as options.
        for word in surplus {
            if !matches!(word, Word::Glob(_)) && self.options_matter() && !self.options_over {
                self.doubt(|program| format!("an unquoted value may hold options of {program}"));
            }
            self.operand(word);
        }
    }

    fn until_semicolon(&mut self) -> Vec<Word> {
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

    /// A word with a known front: an option if that starts like one.
    fn partly(&mut self, prefix: &str, why: &str, many: bool) {
        let value = |rest: &str| match rest {
            "" => Word::Unknown {
                why: why.to_owned(),
                many,
            },
            _ => Word::Partly {
                prefix: rest.to_owned(),
                why: why.to_owned(),
                many,
            },
        };
        let word = Word::Partly {
            prefix: prefix.to_owned(),
            why: why.to_owned(),
            many,
        };
        let shown = format!("{prefix}{why}");
        if let Some((level, form, rest)) = self.at_front(prefix)
            && form.values != Values::None
        {
            return self.give(level, form, prefix, Some(value(rest)));
        }
        if !prefix.starts_with('-') {
            let may_become = self.active().any(|(_, level)| {
                level
                    .options
                    .iter()
                    .flat_map(|form| &form.names)
                    .any(|name| name.starts_with(prefix))
            });
            if may_become && self.options_matter() {
                self.doubt(|program| format!("{shown} may be an option of {program}"));
            }
            return self.operand(word);
        }
        if let Some((name, rest)) = prefix.split_once('=') {
            let found = self.exact(name).or_else(|| match self.abbreviated(name) {
                Abbreviation::Option(level, form) if self.style() != &Style::Long => {
                    Some((level, form))
                }
                _ => None,
            });
            if let Some((level, form)) = found.filter(|(_, form)| form.values != Values::None) {
                return self.give(level, form, name, Some(value(rest)));
            }
        } else if !prefix.starts_with("--")
            && !matches!(self.style(), Style::Single | Style::SingleFirst)
        {
            let body = prefix.get(1..).unwrap_or_default();
            for (at, letter) in body.char_indices() {
                let name = format!("-{letter}");
                let Some((level, form)) = self.exact(&name) else {
                    break;
                };
                if form.values == Values::None {
                    self.give(level, form, &name, None);
                    continue;
                }
                let rest = body.get(at + letter.len_utf8()..).unwrap_or_default();
                return self.give(level, form, &name, Some(value(rest)));
            }
        }
        self.doubt(|program| format!("{shown} may be any option of {program}"));
    }

    /// File names that a program may take for options.
    fn perhaps_names(&mut self, prefix: &str, shown: &str) {
        let is_unsafe = self.active().any(|(_, level)| level.globs_unsafe);
        if prefix.starts_with('-') || (prefix.is_empty() && is_unsafe) {
            let shown = shown.to_owned();
            self.doubt(|program| {
                format!("a file name of {shown} may be taken for an option of {program}")
            });
        }
    }

    /// Whether an option that we do not see could change what happens.
    fn options_matter(&self) -> bool {
        self.active().any(|(_, level)| {
            let conditions = level
                .args
                .iter()
                .map(|when| &when.condition)
                .chain(level.none.iter().map(|when| &when.condition))
                .chain(level.does.iter().map(|when| &when.condition))
                .chain(level.stdin.iter().map(|when| &when.condition))
                .chain(level.tree.iter());
            let mut atoms = conditions
                .flat_map(|condition| &condition.all)
                .flat_map(|term| &term.any);
            atoms.any(|atom| matches!(atom, Atom::Option(_) | Atom::Value(..)))
                || level.options.iter().any(|form| {
                    let harmless = match &form.values {
                        Values::None => true,
                        Values::Optional(role) => role.kind == RoleKind::Text,
                        Values::Words(roles) => {
                            roles.iter().all(|role| role.kind == RoleKind::Text)
                        }
                    };
                    !harmless || form.tree || !form.effects.is_empty()
                })
        })
    }

    fn operand(&mut self, word: Word) {
        let Some(level) = self.found.level() else {
            return;
        };
        if self.found.operands.is_empty() && !level.subs.is_empty() {
            if let Some(text) = word.known()
                && let Some(sub) = level
                    .subs
                    .iter()
                    .find(|sub| sub.names.iter().any(|name| matches_glob(name, text)))
            {
                self.found.names.push(text.to_owned());
                if !sub.again {
                    self.found.levels.push(&sub.level);
                    self.options_over = false;
                } else if self.found.names.len() > MAX_GROUPS {
                    self.doubt(|program| format!("{program} is nested too deeply"));
                    self.found.lost = true;
                }
                return;
            }
            let own = word.known().is_some() && !level.args.is_empty();
            if !own {
                let shown = match &word {
                    Word::Known(text) => format!("subcommand {text}"),
                    _ => "the subcommand".to_owned(),
                };
                self.doubt(|program| format!("{shown} of {program} is not known"));
                self.found.lost = true;
                return;
            }
        }
        let ends_options = match &level.style {
            Style::Posix | Style::LongFirst | Style::SingleFirst => true,
            _ => level.args.iter().any(|when| {
                let at = when.then.iter().position(|slot| slot.role.takes_rest());
                at.is_some_and(|at| at <= self.found.operands.len())
            }),
        };
        self.options_over |= ends_options;
        self.found
            .events
            .push(Event::Operand(self.found.operands.len()));
        self.found.operands.push(word);
    }
}

enum Abbreviation<'t> {
    Option(usize, &'t OptionForm),
    Ends,
    Unclear,
    None,
}
