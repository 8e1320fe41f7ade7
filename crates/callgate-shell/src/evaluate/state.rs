//! What the shell knows at one point of the script: variables, directories, functions, options.

use crate::environment::influence;
use crate::lists::listed;
use crate::syntax::ast::Command;
use crate::word::Word;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How many variables are followed.
const VARIABLES: usize = 200;

/// Longer values are not followed.
const LONGEST_VALUE: usize = 1 << 16;

/// More possible directories than this count as not known.
const DIRECTORIES: usize = 4;

/// Variables that do not keep what is assigned to them.
const KEPT_BY_THE_SHELL: &str = "_ BASHOPTS BASHPID BASH_ARGV0 BASH_COMMAND BASH_LINENO BASH_SOURCE BASH_SUBSHELL DIRSTACK EPOCHREALTIME \
    EPOCHSECONDS EUID FUNCNAME GROUPS LINENO OLDPWD PIPESTATUS PPID PWD RANDOM SECONDS SRANDOM UID";

/// The value of a variable, as far as it is certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Exactly this text.
    Text(Rc<str>),
    /// Some whole number.
    Number,
    /// A path at or below this directory.
    Below(Rc<str>),
    /// One of the names that this pattern matches.
    Glob(Rc<str>),
    /// Text that starts like this.
    Prefix(Rc<str>, Rc<str>),
    /// Not known, and why.
    Unknown(Rc<str>),
    /// Not set.
    Unset,
}

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Text(Rc::from(text))
    }

    pub fn unknown(why: &str) -> Value {
        Value::Unknown(Rc::from(why))
    }

    pub fn of_word(word: &Word) -> Value {
        match word {
            Word::Known(text) => Value::text(text),
            Word::Glob(pattern) => Value::Glob(Rc::from(pattern.as_str())),
            Word::Below { directory, .. } => Value::Below(Rc::from(directory.as_str())),
            Word::Partly { prefix, why, .. } => Value::Prefix(Rc::from(prefix.as_str()), Rc::from(why.as_str())),
            Word::Unknown { why, .. } => Value::unknown(why),
        }
    }

    fn is_number(&self) -> bool {
        match self {
            Value::Number => true,
            Value::Text(text) => text.parse::<i64>().is_ok(),
            _ => false,
        }
    }

    /// What is certain whichever of the two it is.
    pub fn join(&self, other: &Value) -> Value {
        if self == other {
            self.clone()
        } else if self.is_number() && other.is_number() {
            Value::Number
        } else if let Value::Unknown(_) = self {
            self.clone()
        } else {
            Value::unknown("it depends on what happened before")
        }
    }
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub value: Value,
    /// The elements, if it is an array whose elements are all counted.
    pub elements: Option<Vec<Value>>,
    pub exported: bool,
    /// `declare -i`: assigning to it evaluates.
    pub integer: bool,
    /// `declare -A`: its indices are text.
    pub keyed: bool,
    /// `readonly`: assigning to it fails.
    pub fixed: bool,
}

impl Variable {
    pub fn new(value: Value) -> Variable {
        Variable { value, elements: None, exported: false, integer: false, keyed: false, fixed: false }
    }

    fn join(&self, other: &Variable) -> Variable {
        Variable {
            value: self.value.join(&other.value),
            elements: if self.elements == other.elements { self.elements.clone() } else { None },
            exported: self.exported || other.exported,
            integer: self.integer || other.integer,
            keyed: self.keyed && other.keyed,
            fixed: self.fixed || other.fixed,
        }
    }
}

/// The options that change what words expand to or what runs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub no_globs: bool,
    pub exits_on_error: bool,
    pub exports_all: bool,
}

/// Directories of which one is meant; `None`: not known.
pub(super) type Directories = Rc<[Option<Rc<str>>]>;

/// A function by name; `None`: which one it is is not certain.
pub(super) type Functions = BTreeMap<String, Option<Rc<Command>>>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub variables: Rc<BTreeMap<Rc<str>, Variable>>,
    /// The directories this may be; at least one; `None`: not known.
    pub directories: Directories,
    /// What `cd -` goes back to.
    pub previous: Option<Rc<str>>,
    /// What `popd` goes back to.
    pub stack: Vec<Directories>,
    /// `$0`
    pub zero: Value,
    /// `$1` …; `None`: not known.
    pub positional: Option<Rc<[Value]>>,
    pub functions: Rc<Functions>,
    pub aliases: Rc<BTreeSet<String>>,
    pub options: Options,
    /// Bare names may be found elsewhere than usual.
    pub path_changed: bool,
    /// A variable that changes what runs was set in some way, be it by a loop, `:=` or arithmetic.
    pub swayed: bool,
    /// `exec <file` has changed standard input.
    pub input_changed: bool,
    /// Something not understood may have set any variable.
    pub anything_set: bool,
}

impl State {
    pub fn new(directory: Option<&str>) -> State {
        State {
            variables: Rc::default(),
            directories: Rc::from([directory.map(Rc::from)]),
            previous: None,
            stack: Vec::new(),
            zero: Value::unknown("`$0` is not known"),
            positional: Some(Rc::from([])),
            functions: Rc::default(),
            aliases: Rc::default(),
            options: Options::default(),
            path_changed: false,
            swayed: false,
            input_changed: false,
            anything_set: false,
        }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        let exports_all = self.options.exports_all;
        self.path_changed |= name == "PATH";
        self.swayed |= match &value {
            Value::Unset => false,
            Value::Text(text) => influence(name, Some(text)).is_some(),
            _ => influence(name, None).is_some(),
        };
        let value = match value {
            _ if listed(KEPT_BY_THE_SHELL, name) => Value::unknown("the shell sets it itself"),
            Value::Text(text) if text.len() > LONGEST_VALUE => Value::unknown("a long value"),
            other => other,
        };
        let full = self.variables.len() >= VARIABLES;
        let variables = Rc::make_mut(&mut self.variables);
        match variables.get_mut(name) {
            Some(variable) => {
                variable.value = if variable.fixed { Value::unknown("it is read-only") } else { value };
                variable.elements = None;
            }
            // So many are not followed one by one.
            None if full => self.anything_set = true,
            None => {
                variables.insert(Rc::from(name), Variable { exported: exports_all, ..Variable::new(value) });
            }
        }
    }

    /// Sets `$1`, `$2` and so on.
    pub fn set_positional(&mut self, words: &[Word]) {
        let known = !words.iter().any(Word::may_be_many);
        self.positional = known.then(|| words.iter().map(Value::of_word).collect());
    }

    pub fn variable_mut(&mut self, name: &str) -> &mut Variable {
        Rc::make_mut(&mut self.variables)
            .entry(Rc::from(name))
            .or_insert_with(|| Variable::new(Value::unknown("it was declared without a value")))
    }

    /// Forgets every variable: something that is not understood may have changed them.
    pub fn forget_variables(&mut self, why: &str) {
        for variable in Rc::make_mut(&mut self.variables).values_mut() {
            variable.value = Value::unknown(why);
            variable.elements = None;
        }
        self.positional = None;
        self.anything_set = true;
    }

    pub fn go(&mut self, directories: Vec<Option<Rc<str>>>) {
        self.previous = match self.directories.as_ref() {
            [only] => only.clone(),
            _ => None,
        };
        self.directories = limited(directories);
    }

    /// The directory this is, if that is certain.
    pub fn directory(&self) -> Option<&str> {
        match self.directories.as_ref() {
            [Some(directory)] => Some(directory),
            _ => None,
        }
    }

    /// What is certain whichever of the two it is.
    pub fn join(mut self, other: State) -> State {
        if self == other {
            return self;
        }
        if !Rc::ptr_eq(&self.variables, &other.variables) {
            let unknown = Variable::new(Value::unknown("it depends on what happened before"));
            let mine = Rc::make_mut(&mut self.variables);
            // Both are sorted: they are walked side by side.
            let mut theirs = other.variables.iter().peekable();
            let mut missing = Vec::new();
            for (name, variable) in mine.iter_mut() {
                crate::work::count(1);
                while let Some((absent, other)) = theirs.next_if(|(other, _)| *other < name) {
                    missing.push((Rc::clone(absent), unknown.join(other)));
                }
                let other = theirs.next_if(|(other, _)| *other == name).map_or(&unknown, |(_, other)| other);
                if variable != other {
                    *variable = variable.join(other);
                }
            }
            missing.extend(theirs.map(|(absent, other)| (Rc::clone(absent), unknown.join(other))));
            mine.extend(missing);
        }
        if self.directories != other.directories {
            let mut directories = self.directories.to_vec();
            for directory in other.directories.iter() {
                if !directories.contains(directory) {
                    directories.push(directory.clone());
                }
            }
            self.directories = limited(directories);
        }
        if self.previous != other.previous {
            self.previous = None;
        }
        if self.stack != other.stack {
            self.stack.clear();
        }
        self.zero = self.zero.join(&other.zero);
        if self.positional != other.positional {
            self.positional = None;
        }
        if !Rc::ptr_eq(&self.functions, &other.functions) {
            let mine = Rc::make_mut(&mut self.functions);
            for (name, body) in mine.iter_mut() {
                if other.functions.get(name) != Some(body) {
                    *body = None;
                }
            }
            for name in other.functions.keys() {
                mine.entry(name.clone()).or_insert(None);
            }
        }
        if self.aliases != other.aliases {
            let mine = Rc::make_mut(&mut self.aliases);
            mine.extend(other.aliases.iter().cloned());
        }
        self.options = Options {
            // Globs are kept apart from text; a pattern that is text is the smaller harm.
            no_globs: self.options.no_globs && other.options.no_globs,
            exits_on_error: self.options.exits_on_error && other.options.exits_on_error,
            exports_all: self.options.exports_all || other.options.exports_all,
        };
        self.path_changed |= other.path_changed;
        self.swayed |= other.swayed;
        self.input_changed |= other.input_changed;
        self.anything_set |= other.anything_set;
        self
    }
}

fn limited(mut directories: Vec<Option<Rc<str>>>) -> Directories {
    directories.dedup();
    if directories.len() > DIRECTORIES || directories.contains(&None) || directories.is_empty() {
        return Rc::from([None]);
    }
    Rc::from(directories)
}

/// Joins two states of which either may be unreachable.
pub(super) fn join(first: Option<State>, second: Option<State>) -> Option<State> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.join(second)),
        (first, second) => first.or(second),
    }
}

/// How a command ends.
#[derive(Debug, Clone)]
pub(super) enum Ends {
    /// The state is the same whether it succeeded or not.
    Either(State),
    /// The state after success and after failure; `None`: that does not happen.
    Split(Option<State>, Option<State>),
}

impl Ends {
    pub fn never() -> Ends {
        Ends::Split(None, None)
    }

    pub fn of(state: Option<State>) -> Ends {
        match state {
            Some(state) => Ends::Either(state),
            None => Ends::never(),
        }
    }

    pub fn split(self) -> (Option<State>, Option<State>) {
        match self {
            Ends::Either(state) => (Some(state.clone()), Some(state)),
            Ends::Split(success, failure) => (success, failure),
        }
    }

    pub fn merged(self) -> Option<State> {
        match self {
            Ends::Either(state) => Some(state),
            Ends::Split(success, failure) => join(success, failure),
        }
    }

    pub fn map(self, mut change: impl FnMut(State) -> State) -> Ends {
        match self {
            Ends::Either(state) => Ends::Either(change(state)),
            Ends::Split(success, failure) => Ends::Split(success.map(&mut change), failure.map(change)),
        }
    }

    pub fn negated(self) -> Ends {
        match self {
            Ends::Split(success, failure) => Ends::Split(failure, success),
            either => either,
        }
    }
}
