//! `declare`, `export`, `local`, `readonly`, `unset`, `read` and others that set variables.

use super::Evaluator;
use super::simple::Call;
use super::state::{State, Value};
use crate::lists::listed;
use crate::stream::Stream;
use crate::syntax::{Dialect, is_name};
use crate::word::Word;
use std::rc::Rc;
use std::sync::Arc;

impl Evaluator<'_> {
    pub fn declare(&mut self, name: &str, call: &Call, state: &mut State) {
        let mut letters = String::new();
        let mut operands = Vec::new();
        let mut options = true;
        for word in call.words.iter().skip(1) {
            match word.known() {
                Some("--") if options => options = false,
                Some(text) if options && text.len() > 1 && text.starts_with(['-', '+']) => letters.push_str(text),
                _ => {
                    options = false;
                    operands.push(word);
                }
            }
        }
        let has = |letter: char| letters.contains(letter);
        if !call.assignments.is_empty() {
            self.doubt(&format!("variables are set for `{name}` alone"), call.span);
        }
        if has('f') && name == "export" {
            self.doubt("`export -f` exports a function", call.span);
        }
        if has('f') && (has('r') || name == "readonly") {
            self.doubt("a read-only function ignores later definitions", call.span);
        }
        for assignment in call.arrays {
            let hides = self.hide(&assignment.name, name, has('g'), state);
            self.makes_keyed(&assignment.name, has('A'), hides, state);
            self.assign(assignment, state);
            self.attributes(&assignment.name, name, &letters, state);
        }
        for word in operands {
            let Some((target, value, appends)) = split(word).filter(|_| !word.may_be_many()) else {
                self.doubt("a declaration sets an unknown variable", call.span);
                continue;
            };
            match value {
                Some(value) if is_name(&target) => {
                    let hides = self.hide(&target, name, has('g'), state);
                    self.makes_keyed(&target, has('A'), hides, state);
                    self.declare_value(name, &target, value, appends, &letters, call, state);
                }
                // Options that print take a name and no value.
                None if has('p') || has('f') || has('F') => {}
                None if is_name(&target) => {
                    let hides = self.hide(&target, name, has('g'), state);
                    self.makes_keyed(&target, has('A'), hides, state);
                    self.declare_name(name, &target, &letters, call, state);
                }
                _ => {
                    let array = target.split('[').next().unwrap_or("");
                    let digits = target.get(array.len()..).unwrap_or("").trim_matches(['[', ']']);
                    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || self.dialect == Dialect::Any {
                        self.doubt("an array index in a declaration may run code", call.span);
                    }
                    self.set(array, Value::unknown("an array"), call.span, state);
                }
            }
        }
    }

    /// `declare name=value`
    #[allow(clippy::too_many_arguments, reason = "a struct for them would be made and taken apart in one place")]
    fn declare_value(
        &mut self,
        name: &str,
        target: &str,
        value: Value,
        appends: bool,
        letters: &str,
        call: &Call,
        state: &mut State,
    ) {
        let array =
            letters.contains(['a', 'A']) || state.variables.get(target).is_some_and(|known| known.elements.is_some());
        let compound = matches!(&value, Value::Text(text) if text.starts_with('('))
            || !matches!(value, Value::Text(_) | Value::Number);
        if matches!(&value, Value::Text(text) if text.starts_with('(')) || compound && array {
            self.doubt("an array assigned from text may run code", call.span);
        }
        let value = if array {
            Value::unknown("an array")
        } else if letters.contains(['p', 'f', 'F']) {
            Value::unknown("an option that prints, with a value")
        } else if name == "local" && self.calls.is_empty() {
            Value::unknown("`local` outside of a function")
        } else {
            value
        };
        self.assign_value(target, value, appends, call.span, state);
        self.attributes(target, name, letters, state);
    }

    /// `declare name`
    fn declare_name(&mut self, name: &str, target: &str, letters: &str, call: &Call, state: &mut State) {
        if !state.variables.contains_key(target) {
            let value = match name {
                "local" | "declare" | "typeset" => Value::Unset,
                _ => self.lookup(target, state),
            };
            if value != Value::Unset
                || !self.calls.is_empty()
                || self.context.variables.get(target).is_none() && name != "declare"
            {
                state.set(target, value);
            }
        } else if name == "local" {
            state.set(target, Value::unknown("a local variable without a value"));
        }
        self.attributes(target, name, letters, state);
        let known = state.variables.get(target).and_then(|variable| variable.value.known());
        self.environment_effect(target, known, call.slot);
        // Inside a function the declaration takes the value away.
        if name != "export" && !self.calls.is_empty() {
            self.check_assignment(target, &Value::unknown("it was declared"), call.span, state);
        }
    }

    /// `declare -A` makes an array with keys, unless the variable is an array with numbers already.
    fn makes_keyed(&mut self, target: &str, keyed: bool, hides: bool, state: &mut State) {
        let fresh = hides || !state.variables.contains_key(target) && !state.anything_set;
        if keyed && fresh {
            let variable = state.variable_mut(target);
            variable.forget("an array");
            variable.keyed = true;
        }
    }

    /// Inside a function a declaration hides the variable of that name until the function ends.
    /// Returns whether it now does.
    fn hide(&mut self, target: &str, name: &str, global: bool, state: &State) -> bool {
        if matches!(name, "local" | "declare" | "typeset")
            && !global
            && let Some(hidden) = self.locals.last_mut()
            && !hidden.iter().any(|(known, _)| known == target)
        {
            hidden.push((target.to_owned(), state.variables.get(target).cloned()));
            return true;
        }
        false
    }

    fn attributes(&mut self, target: &str, name: &str, letters: &str, state: &mut State) {
        if letters.is_empty() && !matches!(name, "export" | "readonly") {
            return;
        }
        let set = |letter: char| {
            letters.split('-').skip(1).any(|group| group.split('+').next().is_some_and(|group| group.contains(letter)))
        };
        let known = state.variables.contains_key(target);
        let initial = if known { None } else { Some(self.lookup(target, state)) };
        let variable = state.variable_mut(target);
        if let Some(value) = initial {
            variable.value = value;
        }
        variable.exported |= name == "export" && !set('n') || set('x');
        variable.fixed |= name == "readonly" || set('r');
        variable.array |= set('a') || set('A');
    }

    pub fn unset(&mut self, call: &Call, state: &mut State) {
        let mut functions = false;
        for word in call.words.iter().skip(1) {
            match word.known() {
                Some("-f") => functions = true,
                Some("-v" | "-n" | "--") => {}
                Some(name) if functions => {
                    Rc::make_mut(&mut state.functions).remove(name);
                }
                Some(name) if is_name(name) => {
                    // Without `-v`, bash removes the function of that name if there is no such variable.
                    if let Some(body) = Rc::make_mut(&mut state.functions).get_mut(name) {
                        *body = None;
                    }
                    let fixed = state.variables.get(name).is_some_and(|variable| variable.fixed);
                    // Where a function's variable goes away, that of its caller shows.
                    let hidden = self.locals.iter().flatten().any(|(hidden, _)| hidden == name);
                    let uncertain = name == "IFS" || fixed || hidden;
                    if self.language().why_not_plain(name, &Value::Unset).is_some() {
                        self.doubt(&format!("unsets {name}, which the shell heeds"), call.span);
                    }
                    if fixed {
                        self.may_drop_line(state);
                    }
                    state.set(name, if uncertain { Value::unknown("it was unset") } else { Value::Unset });
                    if name == "HISTFILE" {
                        self.doubt("unsetting HISTFILE stops the command history", call.span);
                    }
                }
                Some(name) => {
                    let array = name.split('[').next().unwrap_or("");
                    let index = name.get(array.len()..).unwrap_or("").trim_matches(['[', ']']);
                    if !index.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'@' | b'*' | b'-')) {
                        self.doubt("an array index may run code", call.span);
                    }
                    state.set(array, Value::unknown("an element was unset"));
                }
                None => {
                    self.doubt("`unset` removes an unknown variable", call.span);
                    state.forget_variables("`unset` may have removed it");
                }
            }
        }
    }

    /// Evaluates `read`, `mapfile` and `getopts`: the variables they set.
    pub fn read_variables(&mut self, name: &str, call: &Call, state: &mut State) {
        let with_value: &str = match name {
            "read" => "adinNptu",
            "mapfile" | "readarray" => "dnOsuCc",
            _ => "",
        };
        let mut names = Vec::new();
        let mut array = false;
        let mut words = call.words.iter().skip(1);
        let mut options = name != "getopts";
        while let Some(word) = words.next() {
            match word.known() {
                Some("--") if options => options = false,
                Some(text) if options && text.len() > 1 && text.starts_with('-') => {
                    let letters = text.get(1..).unwrap_or("");
                    if letters.contains('C') && name != "read" {
                        self.doubt("`mapfile -C` runs code for each line", call.span);
                    }
                    if let Some(place) = letters.find(|letter| with_value.contains(letter)) {
                        let fills = name == "read" && letters.get(place..).is_some_and(|rest| rest.starts_with('a'));
                        array |= fills;
                        let glued = letters.get(place.saturating_add(1)..).unwrap_or("");
                        let value =
                            if glued.is_empty() { words.next().cloned() } else { Some(Word::Known(glued.to_owned())) };
                        if fills {
                            names.extend(value);
                        }
                    }
                }
                _ => {
                    options = false;
                    names.push(word.clone());
                }
            }
        }
        if name == "getopts" {
            names = names.get(1..2).map(<[Word]>::to_vec).unwrap_or_default();
            state.set("OPTARG", Value::unknown("`getopts` sets it"));
            state.set("OPTIND", Value::Number);
        } else if names.is_empty() {
            state.set(if name == "read" { "REPLY" } else { "MAPFILE" }, Value::unknown("a line that `read` reads"));
        }
        let whole_line = name == "read" && names.len() == 1 && !array;
        let value = match call.stdin {
            Stream::Names(directories) if whole_line => match directories.as_slice() {
                [listing] => Value::Below(Arc::from(listing.directory.as_str()), listing.names.clone()),
                _ => Value::unknown("a line that was read from several directories"),
            },
            _ => Value::unknown("a line that `read` reads"),
        };
        for word in &names {
            match word.known() {
                Some(target) if is_name(target) => {
                    self.set(target, value.clone(), call.span, state);
                    if array || name == "mapfile" || name == "readarray" {
                        state.variable_mut(target).array = true;
                    }
                }
                _ => {
                    self.doubt("`read` sets an unknown variable, or its index may run code", call.span);
                    state.forget_variables("`read` may have set it");
                }
            }
        }
    }

    /// `printf -v name …`
    pub fn print_into_variable(&mut self, call: &Call, state: &mut State) {
        let glued = call.words.get(1).and_then(Word::known).and_then(|option| option.strip_prefix("-v"));
        let name = match glued {
            Some("") => call.words.get(2).and_then(Word::known),
            glued => glued,
        };
        match name {
            Some(name) if is_name(name) => self.set(name, Value::unknown("`printf -v` set it"), call.span, state),
            _ => {
                self.doubt("`printf -v` sets an unknown variable, or its index may run code", call.span);
                state.forget_variables("`printf -v` may have set it");
            }
        }
    }

    /// `set …`
    pub fn set_options(&mut self, call: &Call, state: &mut State) {
        let mut words = call.words.get(1..).unwrap_or(&[]).iter();
        while let Some(word) = words.next() {
            match word.known() {
                // Without words, `--` clears the parameters and `-` leaves them.
                Some("-") if words.as_slice().is_empty() => return,
                Some("--" | "-") => return state.set_positional(words.as_slice()),
                Some(text) if text.starts_with(['-', '+']) => {
                    let on = text.starts_with('-');
                    for letter in text.chars().skip(1) {
                        match letter {
                            'e' => state.options.exits_on_error = on,
                            'f' | 'h' | 'E' | 'T' if self.dialect == Dialect::Any => {
                                self.doubt("this letter names another option in zsh", call.span);
                            }
                            'f' => state.options.no_globs = on,
                            'a' => state.options.exports_all = on,
                            // A variable without a value ends the shell.
                            'u' => self.left = true,
                            'x' | 'v' | 'C' | 'h' | 'b' | 'm' | 'E' | 'T' | 'n' => {}
                            'o' => match words.next().map(Word::known) {
                                None => {}
                                Some(Some("nounset")) => self.left = true,
                                Some(Some("errexit")) => state.options.exits_on_error = on,
                                Some(Some("noglob")) => state.options.no_globs = on,
                                Some(Some("allexport")) => state.options.exports_all = on,
                                Some(Some(
                                    "pipefail" | "xtrace" | "verbose" | "noclobber" | "errtrace" | "functrace"
                                    | "monitor" | "notify" | "hashall" | "noexec",
                                )) => {}
                                Some(_) => self.doubt("unknown shell option", call.span),
                            },
                            // With `H`, later lines are expanded from the history.
                            'H' if !on => {}
                            _ => self.doubt("unknown shell option", call.span),
                        }
                    }
                }
                Some(_) => {
                    let mut all = vec![word.clone()];
                    all.extend(words.cloned());
                    state.set_positional(&all);
                    return;
                }
                None => {
                    self.doubt("`set` receives unknown options", call.span);
                    state.positional = None;
                    return;
                }
            }
        }
    }

    /// `shopt …`
    pub fn shell_options(&mut self, call: &Call) {
        const HARMLESS: &str = "extglob nullglob globstar inherit_errexit checkwinsize cmdhist histappend \
            globasciiranges checkjobs huponexit";
        for word in call.words.iter().skip(1) {
            match word.known() {
                Some("-s" | "-u" | "-q" | "-p" | "-qs" | "-qu") => {}
                Some(name) if listed(HARMLESS, name) => {}
                _ => self.doubt("unknown shell option", call.span),
            }
        }
    }
}

/// Splits `name=value` into the name, the value if there is one, and whether it is appended.
fn split(word: &Word) -> Option<(String, Option<Value>, bool)> {
    let (text, rest) = match word {
        Word::Known(text) => (text, None),
        Word::Partly { prefix, why, .. } => (prefix, Some(why)),
        _ => return None,
    };
    let Some((name, value)) = text.split_once('=') else {
        return rest.is_none().then(|| (text.clone(), None, false));
    };
    let (name, appends) = match name.strip_suffix('+') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let value = match rest {
        None => Value::text(value),
        Some(why) if value.is_empty() => Value::unknown(why),
        Some(why) => Value::Prefix(Arc::from(value), Arc::from(why.as_str())),
    };
    Some((name.to_owned(), Some(value), appends))
}
