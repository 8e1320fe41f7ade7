//! Splits words into options, values, operands and subcommands, as the programs' own parsers do.

mod options;
mod short;
mod uncertain;

#[cfg(test)]
mod tests;

use crate::distinct::Distinct;
use crate::programs::matching::matches_glob;
use crate::programs::paths::literal_prefix;
use crate::programs::table::{Level, OptionForm, Role, Style, Sub};

use crate::word::{PLAIN, Word};
use short::Short;
use std::borrow::Cow;

/// How many words of a group path are followed (`gcloud compute instances list`).
const MAX_GROUPS: usize = 10;

/// How many options are tracked.
const MAX_GIVEN: usize = 2_000;

/// How many levels of subcommands are followed; tables have fewer.
const MAX_LEVELS: usize = 10;

/// The words of an invocation, classified.
pub(in crate::programs) struct Scan<'t> {
    /// The levels, from the program to its innermost subcommand.
    pub(in crate::programs) levels: Short<&'t Level, MAX_LEVELS>,
    /// The names of the levels.
    pub(in crate::programs) names: Short<&'t str, { MAX_LEVELS + MAX_GROUPS }>,
    /// Options and operands in their order.
    pub(in crate::programs) events: Vec<ScannedWord<'t>>,
    /// Each given option with its level, and whether it was ever given other than as `--flag=false`.
    forms: Vec<(usize, &'t OptionForm, bool)>,
    /// The operands of the innermost level.
    pub(in crate::programs) operands: Vec<Cow<'t, Word>>,
    /// How many of them stand in front of `--`.
    pub(in crate::programs) before_dashes: Option<usize>,
    /// What could not be understood.
    pub(in crate::programs) doubts: Vec<String>,
    /// Options may have been given that are not seen; none of them does any harm, but what comes out may differ.
    pub(in crate::programs) unseen_options: bool,
    /// An option ends the program.
    pub(in crate::programs) ended: bool,
    /// The subcommand is unknown, and so is everything after it.
    pub(in crate::programs) lost: bool,
}

pub(in crate::programs) enum ScannedWord<'t> {
    Given(Given<'t>),
    /// The operand with this index.
    Operand(usize),
}

/// An option that was given.
pub(in crate::programs) struct Given<'t> {
    pub(in crate::programs) form: &'t OptionForm,
    /// The level that declares it.
    pub(in crate::programs) level: usize,
    /// As it was written.
    pub(in crate::programs) name: Cow<'t, str>,
    pub(in crate::programs) values: Vec<(Cow<'t, Word>, &'t Role)>,
    /// All words that follow, if its value is a command.
    pub(in crate::programs) rest: Option<(Vec<Word>, &'t Role)>,
    /// `--flag=false`.
    pub(in crate::programs) negated: bool,
}

impl<'t> Scan<'t> {
    /// The innermost level.
    pub(in crate::programs) fn level(&self) -> Option<&'t Level> {
        self.levels.last().copied()
    }

    /// Records a given option.
    fn note(&mut self, given: Given<'t>) {
        match self.forms.iter_mut().find(|(level, form, _)| *level == given.level && std::ptr::eq(*form, given.form)) {
            Some((_, _, positive)) => *positive |= !given.negated,
            None => self.forms.push((given.level, given.form, !given.negated)),
        }
        self.events.push(ScannedWord::Given(given));
    }

    /// The innermost level that declares an option of this name, if such an option was given.
    pub(in crate::programs) fn level_of(&self, name: &str) -> Option<usize> {
        // Few options are given, and conditions ask for even fewer.
        let given = self.forms.iter().any(|(_, form, _)| form.names.iter().any(|other| other == name));
        let declares = |level: &&Level| level.index.find(&level.options, name).is_some();
        if given { self.levels.iter().rposition(declares) } else { None }
    }

    /// Whether an option was given and not switched off.
    pub(in crate::programs) fn has(&self, name: &str) -> bool {
        let named = |form: &OptionForm| form.names.iter().any(|other| other == name);
        match self.level_of(name) {
            Some(wanted) => self.forms.iter().any(|(level, form, on)| *level == wanted && *on && named(form)),
            None => false,
        }
    }

    /// The options that were given.
    pub(in crate::programs) fn given(&self) -> impl Iterator<Item = &Given<'t>> {
        self.events.iter().filter_map(|event| match event {
            ScannedWord::Given(given) => Some(given),
            ScannedWord::Operand(_) => None,
        })
    }
}

/// Scans the words after the program's name. The style is the table's, unless code reads the words.
pub(in crate::programs) fn scan_as<'t>(
    style: &'t Style,
    program: &'t str,
    level: &'t Level,
    words: &'t [Word],
) -> Scan<'t> {
    let mut scanner = Scanner {
        words,
        outer_style: style,
        distinct: Distinct::default(),
        at: 0,
        options_over: false,
        found: Scan {
            levels: Short::new(level),
            names: Short::new(program),
            events: Vec::new(),
            forms: Vec::new(),
            operands: Vec::new(),
            before_dashes: None,
            doubts: Vec::new(),
            unseen_options: false,
            ended: false,
            lost: false,
        },
    };
    scanner.run();
    scanner.groups_without_end();
    scanner.found
}

/// Whether a subcommand goes by this name.
fn is_named(sub: &Sub, text: &str) -> bool {
    match sub.globs {
        true => sub.names.iter().any(|name| matches_glob(name, text)),
        false => sub.names.iter().any(|name| name == text),
    }
}

/// The name and the value of `NAME=VALUE`; `None`: there is no value.
pub(in crate::programs) fn name_and_value(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// Whether a word may become any number of words.
pub(in crate::programs) fn is_many(word: &Word) -> bool {
    word.may_be_many() && !matches!(word, Word::Glob(pattern) if pattern == PLAIN)
}

struct Scanner<'t> {
    words: &'t [Word],
    /// The style of the outermost level.
    outer_style: &'t Style,
    distinct: Distinct,
    at: usize,
    options_over: bool,
    found: Scan<'t>,
}

impl<'t> Scanner<'t> {
    /// Reports a path of groups that does not lead to a subcommand.
    fn groups_without_end(&mut self) {
        let in_group = self.found.names.len() > self.found.levels.len();
        let open = self.found.level().is_some_and(|level| level.subs.iter().any(|sub| sub.again));
        if in_group && open && !self.found.lost {
            self.doubt(|program| format!("unknown subcommand {program}"));
        }
    }

    fn run(&mut self) {
        if self.style() == &Style::Tar {
            self.bundle_without_dash();
        }
        while let Some(word) = self.words.get(self.at) {
            self.at += 1;
            if self.found.lost {
                return;
            }
            if self.found.events.len().saturating_sub(self.found.operands.len()) > MAX_GIVEN {
                self.doubt(|program| format!("{program} has too many options to track"));
                self.found.lost = true;
                return;
            }
            if self.options_over || self.style() == &Style::None {
                self.operand(Cow::Borrowed(word));
                continue;
            }
            match word {
                Word::Known(text) => self.known(word, text),
                Word::Partly { prefix, why, many } => self.partly(word, prefix, why, *many),
                Word::Glob(pattern) if self.text_option(&literal_prefix(pattern), pattern) => {}
                Word::Glob(pattern) if self.starts_with_number(pattern) => self.operand(Cow::Borrowed(word)),
                Word::Glob(pattern) => {
                    self.perhaps_names(&literal_prefix(pattern), pattern);
                    self.operand(Cow::Borrowed(word));
                }
                Word::Below { directory, .. } => {
                    let prefix = if directory == "." { "" } else { directory };
                    self.perhaps_names(prefix, directory);
                    self.operand(Cow::Borrowed(word));
                }
                Word::Unknown { why, .. } => {
                    if self.options_matter() {
                        let why = why.clone();
                        self.doubt(|name| format!("an unknown word ({why}) may be an option of {name}"));
                    }
                    self.operand(Cow::Borrowed(word));
                }
            }
        }
    }

    fn style(&self) -> &'t Style {
        match &*self.found.levels {
            [_, .., level] => &level.style,
            _ => self.outer_style,
        }
    }

    fn doubt(&mut self, say: impl FnOnce(&str) -> String) {
        let doubt = say(&self.found.names.join(" "));
        if !self.distinct.contains(&self.found.doubts, &doubt.as_str(), String::as_str) {
            self.found.doubts.push(doubt);
        }
    }

    /// The levels whose options are accepted here, innermost first.
    fn active(&self) -> impl Iterator<Item = (usize, &'t Level)> {
        let last = self.found.levels.len().saturating_sub(1);
        let levels = self.found.levels.iter().enumerate().rev();
        levels.filter(move |(index, level)| *index == last || level.everywhere).map(|(index, level)| (index, *level))
    }

    /// The options that are accepted here, innermost first.
    fn forms(&self) -> impl Iterator<Item = (usize, &'t OptionForm)> {
        let last = self.found.levels.len().saturating_sub(1);
        let levels = self.found.levels.iter().enumerate().rev();
        levels.flat_map(move |(index, level)| {
            let all = index == last || level.everywhere;
            let forms = level.options.iter().map(move |form| (index, form));
            forms.filter(move |(_, form)| all || form.everywhere)
        })
    }

    fn operand(&mut self, word: Cow<'t, Word>) {
        let Some(level) = self.found.level() else {
            return;
        };
        if self.found.operands.is_empty() && !level.subs.is_empty() {
            if let Cow::Borrowed(Word::Known(text)) = word
                && let Some(sub) = level.subs.iter().find(|sub| is_named(sub, text))
            {
                let named = self.found.names.push(text);
                if named && !sub.again && self.found.levels.push(&sub.level) {
                    self.options_over = false;
                } else if !named || !sub.again || self.found.names.len() > MAX_GROUPS {
                    self.doubt(|program| format!("{program} is nested too deeply"));
                    self.found.lost = true;
                }
                return;
            }
            let own = word.known().is_some() && !level.args.is_empty();
            if !own {
                let shown = word.known().map_or(String::new(), |text| format!(" {text}"));
                self.doubt(|program| format!("unknown subcommand{shown} of {program}"));
                self.found.lost = true;
                return;
            }
        }
        let ends_options = match self.style() {
            Style::Posix | Style::LongFirst | Style::SingleFirst => true,
            _ => level.args.iter().any(|when| {
                let at = when.then.iter().position(|slot| slot.role.takes_rest());
                at.is_some_and(|at| at <= self.found.operands.len())
            }),
        };
        self.options_over |= ends_options;
        self.found.events.push(ScannedWord::Operand(self.found.operands.len()));
        self.found.operands.push(word);
    }
}
