//! The part of the shell that callgate proves. Whatever is outside it is a doubt.
//!
//! **Words** are literal or quoted text, tildes, braces, wildcards, `$(…)`, `<(…)`, arithmetic over numbers, and the values of
//! variables with the usual operators. `$"…"`, `${x@P}`, indices and offsets that are not numbers, and indirect names that are
//! not known are outside.
//!
//! **Commands** are simple commands, pipes, lists, groups, subshells, functions, `if`, `case`, `for`, `while`, `[[ … ]]` and
//! `((…))`. Control flow adds states and never removes a command: what follows `exit` or `break`, what a failed redirection
//! skips, functions that nothing calls and the code of traps are judged too.
//!
//! **Variables** are plain: names that no shell's manual lists ([`Language::why_not_plain`]) and that
//! [`crate::environment`] does not list. A few listed ones take a number or a plain word. Every form of assignment comes through
//! [`Evaluator::set`].
//!
//! **Builtins** have the options in [`OPTIONS`]. Attributes that change what an assignment means (`declare -i`, `-n`, `-u`) are
//! outside.
//!
//! **Dialect.** Where nobody says which shell runs the command, and in zsh, what bash and zsh read differently is outside
//! ([`Language::difference`]).

use super::Evaluator;
use super::state::{State, Value};
use crate::environment::influence;
use crate::lists::listed;
use crate::syntax::ast::{Part, Span};
use crate::syntax::{DECLARATIONS, Dialect, is_name};
use crate::word::{Word, is_number};

/// Variables that bash's manual lists. `NAME*` stands for every name that starts like this.
const BASH_VARIABLES: &str = "_ auto_resume histchars ignoreeof BASH* CDPATH CHILD_MAX COLUMNS COMPREPLY COMP_* COPROC DIRSTACK EMACS ENV \
    EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FCEDIT FIGNORE FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT GROUPS HIST* HOME HOSTFILE \
    HOSTNAME HOSTTYPE IFS IGNOREEOF INPUTRC INSIDE_EMACS LANG LANGUAGE LC_* LINENO LINES MACHTYPE MAIL MAILCHECK MAILPATH MAPFILE \
    OLDPWD OPTARG OPTERR OPTIND OSTYPE PATH PIPESTATUS POSIXLY_CORRECT POSIX_PEDANTIC PPID PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS1 \
    PS2 PS3 PS4 PWD RANDOM READLINE_* REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM TERM TERMCAP TERMINFO TEXTDOMAIN* TIMEFORMAT \
    TMOUT TMPDIR TZ UID";

/// Variables that zsh's manual lists beside those.
const ZSH_VARIABLES: &str = "aliases argv builtins cdpath chpwd_functions commands dirstack dis_* epochtime errnos fignore fpath \
    funcfiletrace funcsourcetrace funcstack functions functions_source functrace galiases history historywords jobdirs jobstates \
    jobtexts keymaps langinfo mailpath manpath mapfile match mbegin mend module_path modules nameddirs options parameters \
    patchars path periodic_functions pipestatus precmd_functions preexec_functions prompt psvar reply reswords saliases signals \
    status sysparams termcap terminfo userdirs usergroups watch widgets zle_* zsh* ARGC ARGV0 BAUD CORRECT_IGNORE* CPUTYPE \
    DIRSTACKSIZE EGID ERRNO FPATH GID HOST KEYBOARD_HACK KEYTIMEOUT LISTMAX LOGCHECK LOGNAME MANPATH MATCH MBEGIN MEND \
    MODULE_PATH NULLCMD POSTEDIT PROMPT* PSVAR READNULLCMD REPORTMEMORY REPORTTIME RPROMPT* RPS1 RPS2 SAVEHIST SPROMPT STTY \
    TERMINFO_DIRS TIMEFMT TMPPREFIX TMPSUFFIX TRY_BLOCK_* TTY TTYIDLE USERNAME VENDOR WATCH WATCHFMT WORDCHARS ZBEEP ZDOTDIR \
    ZLE_* ZSH_*";

/// Listed variables to which a number does no harm.
const TAKE_NUMBERS: &str = "COLUMNS LINENO LINES OPTERR OPTIND RANDOM SECONDS";

/// Listed variables to which a plain word does no harm.
const TAKE_WORDS: &str = "LANG LANGUAGE LC_* TERM TZ";

/// Functions that a shell calls without being told to.
const CALLED_BY_BASH: &str = "command_not_found_handle";
const CALLED_BY_ZSH: &str = "command_not_found_handler chpwd periodic precmd preexec zsh* TRAP*";

/// Builtins that POSIX shells find before functions of the same name.
const SPECIAL_BUILTINS: &str =
    ". : break continue eval exec exit export readonly return set shift source times trap unset";

/// The options of builtins that are proven: those without a value, and those with one.
const OPTIONS: [(&str, &str, &str); 13] = [
    ("declare", "AFafgprx", ""),
    ("export", "fnp", ""),
    ("getopts", "", ""),
    ("let", "", ""),
    ("local", "AFafgprx", ""),
    ("mapfile", "t", "dnOsu"),
    ("read", "ers", "adinNptu"),
    ("readarray", "t", "dnOsu"),
    ("readonly", "Aafp", ""),
    ("shift", "", ""),
    ("typeset", "AFafgprx", ""),
    ("unalias", "a", ""),
    ("unset", "fv", ""),
];

/// Options of declarations that zsh does not have or reads differently.
const OTHER_IN_ZSH: [char; 3] = ['F', 'g', 'n'];

/// Options whose value is a number, which some shells evaluate.
const NUMBER_OPTIONS: &str = "nNOstu";

/// What a shell reads as written, and what it does not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Language(pub Dialect);

/// Whether a name fits an entry of a list of names and `NAME*`.
fn fits(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|entry| match entry.strip_suffix('*') {
        Some(front) => name.starts_with(front),
        None => entry == name,
    })
}

impl Language {
    /// Returns why assigning this value to a variable is not proven to only give it a value; `None`: the variable is plain.
    pub fn why_not_plain(self, name: &str, value: &Value) -> Option<&'static str> {
        let zsh = self.0 == Dialect::Any && fits(ZSH_VARIABLES, name);
        if !zsh && !fits(BASH_VARIABLES, name) {
            return None;
        }
        let text = value.known();
        let number = *value == Value::Number || text.is_some_and(is_plain_number);
        let word = text.is_some_and(|text| is_plain_word(text, name == "TZ"));
        let proven = number && fits(TAKE_NUMBERS, name) || word && fits(TAKE_WORDS, name);
        (!proven).then_some("the shell heeds this variable")
    }

    /// Whether a shell calls a function of this name without being told to, or does not call it when told to.
    pub fn calls_function(self, name: &str) -> bool {
        fits(CALLED_BY_BASH, name)
            || self.0 == Dialect::Any && fits(CALLED_BY_ZSH, name)
            || self.0 != Dialect::Bash && listed(SPECIAL_BUILTINS, name)
    }

    /// Returns what zsh reads differently in the parts of a word, if it may be the shell.
    pub fn difference(self, parts: &[Part], quoted: bool) -> Option<&'static str> {
        if self.0 != Dialect::Any {
            return None;
        }
        let text = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Quoted(text) if quoted => text.clone(),
            _ => String::new(),
        };
        for (part, next) in parts.iter().zip(parts.iter().skip(1).map(text)) {
            let Part::Parameter(parameter) = part else {
                continue;
            };
            let mut characters = next.chars();
            let (first, second) = (characters.next(), characters.next());
            if !parameter.braced && first == Some('[') {
                return Some("zsh takes `[` after a variable for an index");
            }
            let letter = |second: char| second.is_ascii_alphabetic() || second == '&';
            if !parameter.braced && first == Some(':') && second.is_some_and(letter) {
                return Some("zsh takes `:` and a letter after a variable for a modifier");
            }
            if !parameter.braced
                && parameter.name == "#"
                && !first.is_some_and(|one| one.is_whitespace() || ".,/:;)".contains(one))
            {
                return Some("zsh reads `$#name` as the length of a variable");
            }
        }
        let odd = |part: &Part| {
            let text = text(part);
            text.match_indices('$').any(|(place, _)| {
                text.get(place..).is_some_and(|rest| rest.chars().nth(1).is_some_and(|next| "+=~^".contains(next)))
            })
        };
        parts.iter().any(odd).then_some("zsh expands `$` before this character")
    }

    /// The same for an unquoted word of a command: wildcards and names that only zsh expands.
    pub fn word_difference(self, parts: &[Part]) -> Option<&'static str> {
        if self.0 != Dialect::Any {
            return None;
        }
        let expands = |part: &Part| matches!(part, Part::Parameter(_) | Part::Command(_) | Part::Arithmetic(..));
        let expands = parts.iter().any(expands);
        for (place, part) in parts.iter().enumerate() {
            let Part::Literal(text) = part else {
                continue;
            };
            if place == 0
                && text.starts_with('=')
                && (text.len() > 1 || parts.len() > 1)
                && !matches!(text.as_str(), "==" | "=~")
            {
                return Some("zsh replaces `=name` by the path of a program");
            }
            if text.contains('(') {
                return Some("zsh may run code in a wildcard with parentheses");
            }
            if text.contains("**") {
                return Some("`**` also matches directories further down in zsh");
            }
            if text.contains('{') && expands {
                return Some("zsh expands braces after variables");
            }
        }
        None
    }

    /// The same for an assigned value: `=name` also counts after a colon.
    pub fn value_difference(self, parts: &[Part]) -> Option<&'static str> {
        let named = |(place, part): (usize, &Part)| match part {
            Part::Literal(text) => place == 0 && text.len() > 1 && text.starts_with('=') || text.contains(":="),
            _ => false,
        };
        (self.0 == Dialect::Any && parts.iter().enumerate().any(named))
            .then_some("zsh replaces `=name` by the path of a program")
    }
}

impl Language {
    /// Returns what a shell with a terminal, such as one that an agent keeps, may read differently.
    pub fn typed_difference(self, source: &str) -> Option<&'static str> {
        let mut before = '\n';
        let mut quote = None;
        let mut characters = source.chars().peekable();
        while let Some(character) = characters.next() {
            match (character, quote) {
                // The history is expanded line by line.
                ('\n', _) => quote = None,
                ('\'' | '"', None) => quote = Some(character),
                (mark, Some(open)) if mark == open => quote = None,
                _ => {}
            }
            if quote == Some('\'') {
                before = character;
                continue;
            }
            let next = characters.peek().copied().unwrap_or(' ');
            if character == '!'
                && !matches!(before, '$' | '{' | '[')
                && (next.is_alphanumeric() || "!?$#-:^*{".contains(next))
            {
                return Some("a shell with a terminal replaces `!` by a command of its history");
            }
            let starts = before.is_whitespace() || matches!(before, ';' | '|' | '&' | '(');
            if character == '#' && starts && self.0 == Dialect::Any {
                return Some("a zsh with a terminal runs what looks like a comment");
            }
            before = character;
        }
        None
    }
}

/// Whether a text is a number in plain digits, the same in every base that a shell may assume.
pub(super) fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.len() < 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain && (digits == "0" || !digits.starts_with('0'))
}

/// Whether a text is the plain name of a locale, a terminal or a time zone, not a path.
fn is_plain_word(text: &str, slashes: bool) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.@+-".contains(&byte) || slashes && byte == b'/';
    text.bytes().all(plain) && !text.starts_with('/') && !text.contains("..")
}

/// Whether a text is a plain key of an associative array.
pub(super) fn is_plain_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/:".contains(&byte))
}

/// Whether a word may start with this character, which makes it an option.
pub(super) fn may_start_with(word: &Word, first: char) -> bool {
    match word {
        Word::Known(text) | Word::Partly { prefix: text, .. } => text.starts_with(first),
        Word::Glob(pattern) => pattern.starts_with(['*', '?', '[', '(', first]) && !is_number(pattern),
        Word::Below { directory, .. } => directory.starts_with(first),
        Word::Unknown { .. } => true,
    }
}

/// Whether a word is a number wherever a shell may evaluate it.
pub(super) fn is_number_word(word: &Word) -> bool {
    match word {
        Word::Known(text) => is_plain_number(text),
        Word::Glob(pattern) => is_number(pattern),
        _ => false,
    }
}

impl Evaluator<'_> {
    pub fn language(&self) -> Language {
        Language(self.dialect)
    }

    /// Assigns a value that a script writes. Every form of assignment comes here.
    pub fn set(&mut self, name: &str, value: Value, span: &Span, state: &mut State) {
        self.check_assignment(name, &value, span, state);
        state.set(name, if fits(TAKE_NUMBERS, name) { Value::Number } else { value });
    }

    /// Checks an assignment that is or was carried out.
    pub fn check_assignment(&mut self, name: &str, value: &Value, span: &Span, state: &State) {
        if !is_name(name) {
            self.doubt("an assignment to something that is not a plain variable", span);
        } else if let Some(what) = influence(name, value.known()) {
            match self.current {
                Some(slot) => self.environment_effect(name, value.known(), slot),
                None => self.doubt(&format!("{name} {what}"), span),
            }
        } else if let Some(why) = self.language().why_not_plain(name, value) {
            self.doubt(&format!("assigns to {name}: {why}"), span);
        }
        if state.variables.get(name).is_some_and(|variable| variable.fixed) {
            self.may_drop_line(state);
        }
    }

    /// Adds a doubt if there is a reason for one.
    pub fn doubt_if(&mut self, why: Option<&str>, span: &Span) {
        if let Some(why) = why {
            self.doubt(why, span);
        }
    }

    /// Checks the options of a builtin against those that are proven.
    pub fn check_options(&mut self, name: &str, words: &[Word], span: &Span) {
        let Some((_, alone, with_value)) = OPTIONS.iter().find(|(builtin, ..)| *builtin == name) else {
            return;
        };
        let mut words = words.iter().skip(1);
        while let Some(word) = words.next() {
            let Some(text) = word.known() else {
                // It may be an option.
                if may_start_with(word, '-') || may_start_with(word, '+') {
                    self.doubt(&format!("`{name}` may receive an unknown option"), span);
                }
                return;
            };
            if text == "--" || text.len() < 2 || !text.starts_with(['-', '+']) {
                return;
            }
            if name == "shift" || name == "let" {
                return;
            }
            let letters = text.get(1..).unwrap_or("");
            let valued = letters.find(|letter| with_value.contains(letter));
            let (flags, rest) = letters.split_at(valued.unwrap_or(letters.len()));
            let other = self.dialect == Dialect::Any && DECLARATIONS.contains(&name) && flags.contains(OTHER_IN_ZSH);
            if other || text.starts_with('+') || flags.chars().any(|letter| !alone.contains(letter)) {
                self.doubt(&format!("callgate does not track `{name} {text}`"), span);
                return;
            }
            let mut characters = rest.chars();
            if let Some(letter) = characters.next() {
                let glued = characters.as_str();
                let value = if glued.is_empty() { words.next().cloned() } else { Some(Word::Known(glued.to_owned())) };
                let number = |word: &Word| {
                    let decimal =
                        |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit() || one == b'.');
                    is_number_word(word) || word.known().is_some_and(decimal)
                };
                if NUMBER_OPTIONS.contains(letter)
                    && !(name == "read" && letter == 's')
                    && !value.as_ref().is_some_and(number)
                {
                    self.doubt(&format!("`{name} -{letter}` needs a number"), span);
                }
            }
        }
    }
}
