//! Shell builtins.

use super::language::{is_number_word, may_start_with};
use super::nested::Trap;
use super::simple::{By, Call};
use super::state::{Ends, State, Value, join};
use super::{Evaluator, opaque, run};
use crate::effect::{Action, CodeOrigin, Effect, Names, PathTarget, Target};
use crate::secret_names::is_secret;
use crate::stream::Stream;
use crate::syntax::{DECLARATIONS, Dialect, RESERVED};
use crate::word::Word;
use callgate_model::lexical::absolute;
use std::sync::Arc;

/// Builtins that may run code or change the shell in ways that are not tracked.
const NOT_TRACKED: [&str; 8] = ["enable", "bind", "complete", "compgen", "compopt", "history", "fc", "hash"];

impl Evaluator<'_> {
    /// Runs the builtin of this name, or the program if the shell leaves it to one.
    pub fn builtin_or_program(&mut self, name: &str, call: &Call, mut state: State) -> (Ends, Stream) {
        let silent = Stream::Text(String::new());
        self.check_options(name, call.words, call.span);
        match name {
            "cd" | "pushd" => {
                self.note(name, call);
                return self.change_directory(call, state);
            }
            "popd" => {
                self.note(name, call);
                return self.pop_directory(call, state);
            }
            "eval" | "source" | "." | "exec" | "command" | "builtin" | "trap" => {
                return self.runs_something(name, call, state);
            }
            "exit" | "return" | "break" | "continue" => {
                self.note(name, call);
                self.needs_number(call);
                return (self.leaves(name, call, state), silent);
            }
            "printf" if call.words.get(1).is_some_and(may_be_option_v) => self.print_into_variable(call, &mut state),
            "printf" => {
                self.look_into_format(call);
                return self.program(name, call, state);
            }
            "ulimit" => {
                let shows = |word: &Word| word.known().is_some_and(|word| word.starts_with('-'));
                if !call.words.iter().skip(1).all(shows) {
                    self.doubt("a limit makes later commands fail", call.span);
                }
                return self.program(name, call, state);
            }
            "test" | "[" => {
                self.look_into_test(call.words, call.span);
                return self.program(name, call, state);
            }
            _ if DECLARATIONS.contains(&name) => self.declare(name, call, &mut state),
            "unset" => self.unset(call, &mut state),
            "read" | "mapfile" | "readarray" | "getopts" => {
                if name == "getopts" && state.positional.is_none() {
                    state.forget_variables("options are read");
                }
                self.read_variables(name, call, &mut state);
            }
            "set" => self.set_options(call, &mut state),
            "shopt" => self.shell_options(call),
            "shift" => {
                self.needs_number(call);
                shift(call, &mut state);
            }
            "let" => {
                if !call.assignments.is_empty() {
                    self.doubt("variables are set for `let` alone", call.span);
                }
                for word in call.words.iter().skip(1) {
                    match word.known() {
                        Some(text) => {
                            let text = text.to_owned();
                            self.expression(&text, call.span, &mut state);
                        }
                        None => {
                            self.doubt("an unknown value in an arithmetic expression may run code", call.span);
                            state.forget_variables("an expression may have changed it");
                        }
                    }
                }
            }
            "alias" => {
                for word in call.words.iter().skip(1) {
                    match word.known() {
                        Some(text) => {
                            if let Some((alias, meaning)) = text.split_once('=') {
                                self.alias_meaning(meaning, call, &state);
                                // bash expands an alias before it recognizes reserved words, zsh even without a terminal.
                                if RESERVED.contains(&alias) || self.dialect == Dialect::Any {
                                    self.doubt("`alias` changes what later commands mean", call.span);
                                }
                                Arc::make_mut(&mut state.aliases).insert(alias.to_owned());
                            } else if text.starts_with('-') && text != "-p" {
                                self.doubt(&format!("callgate does not track `alias {text}`"), call.span);
                            }
                        }
                        None => self.doubt("`alias` defines an unknown name", call.span),
                    }
                }
            }
            "unalias" => {}
            _ if shows_only(name, call.words.get(1..).unwrap_or(&[])) => {
                self.note(name, call);
                return (Ends::Either(state), Stream::Data);
            }
            _ if NOT_TRACKED.contains(&name) => {
                self.doubt(&format!("callgate does not track what `{name}` does"), call.span)
            }
            _ => return self.program(name, call, state),
        }
        self.note(name, call);
        if DECLARATIONS.contains(&name) && call.words.iter().any(|word| word.known() == Some("-p")) {
            let shown = call.words.iter().skip(1).filter_map(Word::known);
            if let Some(secret) = shown.into_iter().find(|name| is_secret(name)) {
                self.doubt(&format!("the value of ${secret} looks like a secret"), call.span);
            }
        }
        let prints =
            matches!(name, "declare" | "typeset" | "local" | "export" | "readonly" | "set" | "alias" | "shopt");
        let is_option =
            |word: &Word| word.known().is_some_and(|text| text.starts_with('-') && !text.contains(['f', 'F']));
        let dumps = match name {
            "set" => call.words.len() == 1,
            _ => DECLARATIONS.contains(&name) && call.arrays.is_empty() && call.words.iter().skip(1).all(is_option),
        };
        let output = match (prints, dumps) {
            (_, true) => Stream::Environment,
            (true, false) => Stream::Data,
            (false, false) => silent,
        };
        (Ends::Either(state), output)
    }

    /// Records that a builtin runs.
    fn note(&mut self, name: &str, call: &Call) {
        self.add(call.slot, run(name, CodeOrigin::Known, "builtin"));
    }

    /// Checks the number after `exit` and similar builtins, which zsh evaluates.
    fn needs_number(&mut self, call: &Call) {
        if self.dialect == Dialect::Any && !call.words.iter().skip(1).all(is_number_word) {
            self.doubt("zsh evaluates this number, which may run code", call.span);
        }
    }

    /// Checks the arguments of `printf`: zsh evaluates those that are printed as numbers.
    fn look_into_format(&mut self, call: &Call) {
        let arguments = call.words.get(2..).unwrap_or(&[]);
        let format = call.words.get(1).and_then(Word::known);
        let numbers = format.is_none_or(|format| {
            format.split('%').skip(1).any(|rest| {
                let rest = rest.trim_start_matches(|flag: char| "-+ #0123456789.'lhjztL".contains(flag));
                !rest.starts_with(['s', 'b', 'q', 'c', '%'])
            })
        });
        if self.dialect == Dialect::Any && numbers && !arguments.iter().all(is_number_word) {
            self.doubt("zsh evaluates what `printf` prints as a number, which may run code", call.span);
        }
    }

    /// Walks the meaning of an alias once, because it runs when its name is typed. For a shell that the agent keeps, only the
    /// name is remembered, and later uses of it are doubtful.
    fn alias_meaning(&mut self, meaning: &str, call: &Call, state: &State) {
        if self.context.state.is_some() {
            return;
        }
        self.apart(|evaluator| {
            evaluator.in_child(|evaluator| evaluator.source(meaning, call.span, state.clone(), &Stream::Unconnected))
        });
    }

    fn runs_something(&mut self, name: &str, call: &Call, state: State) -> (Ends, Stream) {
        self.note(name, call);
        let rest = call.words.get(1..).unwrap_or(&[]);
        match name {
            "eval" => self.eval(rest, call, state),
            "source" | "." => {
                self.run_file(name, rest, call, &state);
                self.loses_track("a file was sourced in it");
                (Ends::Either(self.forgotten(state)), Stream::Unknown)
            }
            "exec" => self.exec(rest, call, state),
            "trap" => {
                self.trap(rest, call);
                let prints = rest.len() < 2 || rest.first().and_then(Word::known) == Some("-p");
                (Ends::Either(state), if prints { Stream::Unknown } else { Stream::Text(String::new()) })
            }
            _ => {
                let (options, command) = split_options(rest);
                let looks = options.iter().any(|option| option.contains(['v', 'V']));
                let odd = options
                    .iter()
                    .any(|option| name == "builtin" || !matches!(option.as_str(), "-p" | "-v" | "-V" | "-pv" | "-pV"));
                if odd {
                    self.doubt(&format!("unknown option of `{name}`"), call.span);
                }
                if looks || command.is_empty() {
                    return (Ends::Either(state), Stream::Data);
                }
                // `declare` after `command` no longer assigns without splitting; the words are expanded already.
                let inner = Call { words: command, by: By::NoFunction, ..*call };
                let before = (name == "command" && self.dialect == Dialect::Any).then(|| state.clone());
                let (ends, stdout) = self.rerun(name, &inner, state);
                // In zsh `command` only runs programs, no builtins.
                let ends = match before {
                    Some(before) => ends.or_failed(before),
                    None => ends,
                };
                (ends, if name == "builtin" { Stream::Unknown } else { stdout })
            }
        }
    }

    /// Runs the rest of a command's words as what `wrapper` runs, under the same entry.
    fn rerun(&mut self, wrapper: &str, call: &Call, state: State) -> (Ends, Stream) {
        if let Some(entry) = self.commands.get_mut(call.slot) {
            entry.wrappers.push(wrapper.to_owned());
        }
        self.dispatch(call, state)
    }

    fn eval(&mut self, words: &[Word], call: &Call, state: State) -> (Ends, Stream) {
        let words = match words.first().and_then(Word::known) {
            Some("--") => words.get(1..).unwrap_or(&[]),
            _ => words,
        };
        let texts: Option<Vec<&str>> = words.iter().map(Word::known).collect();
        let Some(texts) = texts else {
            self.doubt("`eval` runs unknown code", call.span);
            return (Ends::Either(self.forgotten(state)), Stream::Unknown);
        };
        let mut state = state;
        for (name, word) in call.assignments {
            self.set(name, Value::of_word(word), call.span, &mut state);
            state.variable_mut(name).exported = true;
        }
        let code = texts.join(" ");
        let (ends, stdout) = self.apart(|evaluator| evaluator.source(&code, call.span, state, call.stdin));
        // Whether assignments before `eval` persist depends on the shell.
        let forget = |mut state: State| {
            for (name, _) in call.assignments {
                state.set(name, Value::unknown("it was set for `eval`"));
            }
            state
        };
        (ends.map(forget), stdout)
    }

    fn run_file(&mut self, name: &str, words: &[Word], call: &Call, state: &State) {
        match words.first() {
            Some(Word::Known(path)) => {
                self.add(call.slot, run(path, CodeOrigin::File, name));
                if path.contains('/') {
                    for directory in state.directories.iter() {
                        let names = Names::Exact(absolute(directory.as_deref(), path));
                        let target = Target::Path(PathTarget::new(names, false));
                        self.add(call.slot, Effect::new(Action::Read, target, name));
                    }
                }
                self.add(call.slot, opaque(&format!("the contents of {path} are unknown"), name));
            }
            _ => self.doubt("`source` runs an unknown file", call.span),
        }
    }

    fn exec(&mut self, words: &[Word], call: &Call, mut state: State) -> (Ends, Stream) {
        let mut rest = words;
        loop {
            rest = match rest {
                [Word::Known(option), _, after @ ..] if option == "-a" => after,
                [Word::Known(option), after @ ..] if matches!(option.as_str(), "-c" | "-l" | "-cl" | "--") => after,
                [Word::Known(option), after @ ..] if option.starts_with('-') => {
                    self.doubt("unknown option of `exec`", call.span);
                    after
                }
                _ => break,
            };
        }
        if rest.is_empty() {
            // The redirections stay.
            state.input_changed = true;
            return (Ends::Either(state), Stream::Text(String::new()));
        }
        // If the program cannot be started, the shell may go on.
        self.left = true;
        self.may_have_ended |= self.children == 0;
        let inner = Call { words: rest, by: By::Program, ..*call };
        self.rerun("exec", &inner, state)
    }

    fn trap(&mut self, words: &[Word], call: &Call) {
        let words = match words.first().and_then(Word::known) {
            Some("-p" | "-l") => return,
            Some("--") => words.get(1..).unwrap_or(&[]),
            _ => words,
        };
        match words {
            [] | [_] => {}
            [Word::Known(code), ..] if matches!(code.as_str(), "" | "-") => {}
            [Word::Known(code), signals @ ..] => {
                if signals.iter().any(|word| !matches!(word.known(), Some("EXIT" | "0"))) {
                    self.doubt("`trap` runs code between commands", call.span);
                }
                self.traps_set = true;
                self.traps.push(Trap {
                    code: code.clone(),
                    span: call.span.clone(),
                    dialect: self.dialect,
                    elsewhere: self.elsewhere.clone(),
                });
            }
            _ => self.doubt("`trap` sets unknown code", call.span),
        }
    }

    /// `exit`, `return`, `break`, `continue`
    fn leaves(&mut self, name: &str, call: &Call, state: State) -> Ends {
        let count = match call.words {
            [_] => Some(1),
            [_, Word::Known(number)] if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok(),
            _ => None,
        };
        self.left = true;
        let place = self.loops.len().checked_sub(count.unwrap_or(1).max(1));
        let left = match (name, place) {
            ("exit", _) => {
                self.may_have_ended |= self.children == 0;
                true
            }
            ("return", _) => match self.returns.last_mut() {
                Some(returned) => {
                    *returned = Some(join(returned.take(), state.clone()));
                    true
                }
                None => false,
            },
            (_, Some(place)) => match self.loops.get_mut(place) {
                Some(leaving) => {
                    let kept = if name == "break" { &mut leaving.broken } else { &mut leaving.continued };
                    *kept = Some(Box::new(join(kept.take().map(|state| *state), state.clone())));
                    true
                }
                None => false,
            },
            (_, None) if !self.calls.is_empty() => {
                self.doubt(&format!("`{name}` may leave a loop around the function"), call.span);
                false
            }
            (_, None) => {
                // More loops than there are: it leaves all of them.
                for leaving in &mut self.loops {
                    leaving.broken = Some(Box::new(join(leaving.broken.take().map(|state| *state), state.clone())));
                }
                false
            }
        };
        // A shell with a terminal may refuse to end while it has jobs.
        let refuses = name == "exit" && self.context.state.is_some() && self.children == 0;
        let certain = left && count.is_some() && call.assignments.is_empty() && call.by == By::Shell && !refuses;
        Ends::Either(if certain { state.unreachable() } else { state })
    }
}

/// Whether the first word of `printf` may be `-v`.
fn may_be_option_v(word: &Word) -> bool {
    match word.known() {
        Some(text) => text.starts_with("-v"),
        None => may_start_with(word, '-'),
    }
}

/// Whether a builtin that is not tracked only prints something here. The history of a shell
/// without a terminal contains this shell's commands, not the user's history file.
fn shows_only(name: &str, words: &[Word]) -> bool {
    // Every command is checked here, so this must be fast.
    if !matches!(name, "history" | "hash" | "compgen" | "complete" | "bind" | "enable") {
        return false;
    }
    let Some(words) = words.iter().map(Word::known).collect::<Option<Vec<&str>>>() else {
        return false;
    };
    let flags = |letters: &str| {
        words.iter().all(|word| match word.strip_prefix('-') {
            Some(flags) => !flags.is_empty() && flags.chars().all(|flag| letters.contains(flag)),
            None => false,
        })
    };
    let number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match (name, words.as_slice()) {
        ("history", []) => true,
        ("history", [count]) => number(count),
        ("hash", words) => {
            matches!(words, [] | ["-r" | "-l"])
                || words.first() == Some(&"-t") && words.iter().all(|word| !word.contains('='))
        }
        ("compgen", [_, ..]) => flags("abcdefgjksuv"),
        ("complete", words) => matches!(words, [] | ["-p", ..]),
        ("bind", [_, ..]) => flags("lpPsSvVX"),
        ("enable", _) => flags("apsn") && words.first() != Some(&"-n"),
        _ => false,
    }
}

fn shift(call: &Call, state: &mut State) {
    let count = match call.words {
        [_] => Some(1),
        [_, Word::Known(number)] => number.parse::<usize>().ok(),
        _ => None,
    };
    state.positional = match (&state.positional, count) {
        (Some(values), Some(count)) => values.get(count..).map(Arc::from).or_else(|| Some(Arc::clone(values))),
        _ => None,
    };
}

/// Options at the front, and what follows them.
fn split_options(words: &[Word]) -> (Vec<String>, &[Word]) {
    let mut options = Vec::new();
    let mut rest = words;
    while let Some(Word::Known(text)) = rest.first() {
        if text == "--" {
            return (options, rest.get(1..).unwrap_or(&[]));
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        options.push(text.clone());
        rest = rest.get(1..).unwrap_or(&[]);
    }
    (options, rest)
}
