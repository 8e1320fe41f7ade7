//! What the shell knows at one point of the script: variables, directories, functions, options.

use super::shell_state::is_default;
use crate::environment::influence;
use crate::syntax::ast::Command;
use crate::word::{ListedNames, Word};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// How many variables are tracked.
const VARIABLES: usize = 200;

/// Longer values are not tracked.
const LONGEST_VALUE: usize = 1 << 16;

/// With more possible directories than this, the directory is unknown.
const DIRECTORIES: usize = 4;

/// The value of a variable, as far as it is certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Value {
    /// Exactly this text.
    Text(Arc<str>),
    /// Some whole number.
    Number,
    /// A path at or below this directory.
    Below(Arc<str>, ListedNames),
    /// One of the names that this pattern matches.
    Glob(Arc<str>),
    /// Text that starts like this.
    Prefix(Arc<str>, Arc<str>),
    /// Not known, and why.
    Unknown(Arc<str>),
    /// Not set.
    Unset,
}

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Text(Arc::from(text))
    }

    pub fn unknown(why: &str) -> Value {
        Value::Unknown(Arc::from(why))
    }

    pub fn of_word(word: &Word) -> Value {
        match word {
            Word::Known(text) => Value::text(text),
            Word::Glob(pattern) => Value::Glob(Arc::from(pattern.as_str())),
            Word::Below { directory, names, .. } => Value::Below(Arc::from(directory.as_str()), names.clone()),
            Word::Partly { prefix, why, .. } => Value::Prefix(Arc::from(prefix.as_str()), Arc::from(why.as_str())),
            Word::Unknown { why, .. } => Value::unknown(why),
        }
    }

    /// The text, if it is certain.
    pub fn known(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The place in an array that it names, if it is certain.
    pub fn index(&self) -> Option<usize> {
        self.known()?.parse().ok()
    }

    /// The word that it becomes between quotes.
    pub fn to_word(&self) -> Word {
        match self {
            Value::Text(text) => Word::Known(text.to_string()),
            Value::Number => Word::Unknown { why: "an unknown number".to_owned(), many: false },
            Value::Below(directory, names) => {
                Word::Below { directory: directory.to_string(), many: false, names: names.clone() }
            }
            Value::Glob(pattern) => Word::Glob(pattern.to_string()),
            Value::Prefix(text, why) => Word::Partly { prefix: text.to_string(), why: why.to_string(), many: false },
            Value::Unknown(why) => Word::Unknown { why: why.to_string(), many: false },
            Value::Unset => Word::Known(String::new()),
        }
    }

    /// The text that it contains or starts with, if any is certain.
    pub fn certain_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Below(text, _) | Value::Glob(text) | Value::Prefix(text, _) => Some(text),
            Value::Number | Value::Unknown(_) | Value::Unset => None,
        }
    }

    /// How many bytes of text it holds.
    pub fn weight(&self) -> usize {
        let why = match self {
            Value::Prefix(_, why) | Value::Unknown(why) => why.len(),
            _ => 0,
        };
        self.certain_text().map_or(0, str::len).saturating_add(why)
    }

    fn is_number(&self) -> bool {
        match self {
            Value::Number => true,
            Value::Text(text) => text.parse::<i64>().is_ok(),
            _ => false,
        }
    }

    /// Keeps what is certain in both cases.
    pub fn join(&self, other: &Value) -> Value {
        if self == other {
            self.clone()
        } else if self.is_number() && other.is_number() {
            Value::Number
        } else if let Value::Unknown(_) = self {
            self.clone()
        } else {
            Value::unknown("it depends on earlier commands")
        }
    }
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Variable {
    pub value: Value,
    /// The elements, if it is an array whose elements are all counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elements: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub exported: bool,
    /// It is or was an array: assigning to its name alone changes only its first element.
    #[serde(default, skip_serializing_if = "is_default")]
    pub array: bool,
    /// `declare -A`: its indices are text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keyed: bool,
    /// `readonly`: assigning to it fails.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fixed: bool,
}

impl Variable {
    pub fn new(value: Value) -> Variable {
        Variable { value, elements: None, exported: false, array: false, keyed: false, fixed: false }
    }

    /// Forgets the value, and says why.
    pub fn forget(&mut self, why: &str) {
        self.value = Value::unknown(why);
        self.elements = None;
    }

    fn join(&self, other: &Variable) -> Variable {
        Variable {
            value: self.value.join(&other.value),
            elements: if self.elements == other.elements { self.elements.clone() } else { None },
            exported: self.exported || other.exported,
            array: self.array || other.array,
            keyed: self.keyed && other.keyed,
            fixed: self.fixed || other.fixed,
        }
    }
}

/// The options that change what words expand to or what runs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Options {
    pub no_globs: bool,
    pub exits_on_error: bool,
    pub exports_all: bool,
}

/// Variables by name.
pub(super) type Variables = BTreeMap<Arc<str>, Variable>;

/// Directories, one of which is meant; `None`: unknown.
pub(super) type Directories = Arc<[Option<Arc<str>>]>;

/// Functions by name; `None`: it is not certain which one it is.
pub(super) type Functions = BTreeMap<String, Option<Rc<Command>>>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub variables: Arc<Variables>,
    /// The possible working directories; at least one; `None`: unknown.
    pub directories: Directories,
    /// What `cd -` goes back to.
    pub previous: Option<Arc<str>>,
    /// What `popd` goes back to.
    pub stack: Vec<Directories>,
    /// `$0`; `None`: not known.
    pub zero: Option<Value>,
    /// `$1` …; `None`: not known.
    pub positional: Option<Arc<[Value]>>,
    pub functions: Rc<Functions>,
    pub aliases: Arc<BTreeSet<String>>,
    pub options: Options,
    /// `PATH` may have changed, so a bare name may mean another program.
    pub path_changed: bool,
    /// A variable that changes what runs was set, for example by a loop, `:=` or arithmetic.
    pub swayed: bool,
    /// `exec <file` has changed standard input.
    pub input_changed: bool,
    /// Something not understood may have set any variable.
    pub anything_set: bool,
    /// The shell is proven not to get here. The commands here are judged all the same; only a join leaves the state out.
    pub unreachable: bool,
}

impl State {
    pub fn new(directory: Option<&str>) -> State {
        State {
            variables: Arc::default(),
            directories: Arc::from([directory.map(Arc::from)]),
            previous: None,
            stack: Vec::new(),
            zero: None,
            positional: Some(Arc::default()),
            functions: Rc::default(),
            aliases: Arc::default(),
            options: Options::default(),
            path_changed: false,
            swayed: false,
            input_changed: false,
            anything_set: false,
            unreachable: false,
        }
    }

    /// The state for commands that the shell is proven not to reach.
    #[must_use]
    pub fn unreachable(mut self) -> State {
        self.unreachable = true;
        self
    }

    pub fn set(&mut self, name: &str, value: Value) {
        let exports_all = self.options.exports_all;
        self.path_changed |= name == "PATH";
        self.swayed |= value != Value::Unset && influence(name, value.known()).is_some();
        let value = match name {
            // The shell overwrites what is assigned to these.
            "_" | "BASHOPTS" | "BASHPID" | "BASH_ARGV0" | "BASH_COMMAND" | "BASH_LINENO" | "BASH_SOURCE"
            | "BASH_SUBSHELL" | "DIRSTACK" | "EPOCHREALTIME" | "EPOCHSECONDS" | "EUID" | "FUNCNAME" | "GROUPS"
            | "LINENO" | "OLDPWD" | "PIPESTATUS" | "PPID" | "PWD" | "RANDOM" | "SECONDS" | "SRANDOM" | "UID"
                if value != Value::Number =>
            {
                Value::unknown("the shell sets it")
            }
            _ if value.weight() > LONGEST_VALUE => Value::unknown("a long value"),
            _ => value,
        };
        let full = self.variables.len() >= VARIABLES;
        let variables = Arc::make_mut(&mut self.variables);
        match variables.get_mut(name) {
            Some(variable) => {
                variable.value = match value {
                    _ if variable.fixed => Value::unknown("it is read-only"),
                    _ if variable.array => Value::unknown("an array"),
                    value => value,
                };
                variable.elements = None;
            }
            // Too many to track one by one.
            None if full => self.anything_set = true,
            None => {
                variables.insert(Arc::from(name), Variable { exported: exports_all, ..Variable::new(value) });
            }
        }
    }

    /// Sets `$1`, `$2` and so on.
    pub fn set_positional(&mut self, words: &[Word]) {
        let known = !words.iter().any(Word::may_be_many);
        self.positional = known.then(|| words.iter().map(Value::of_word).collect());
    }

    pub fn variable_mut(&mut self, name: &str) -> &mut Variable {
        Arc::make_mut(&mut self.variables)
            .entry(Arc::from(name))
            .or_insert_with(|| Variable::new(Value::unknown("it was declared without a value")))
    }

    /// Forgets every variable: something that is not understood may have changed them.
    pub fn forget_variables(&mut self, why: &str) {
        for variable in Arc::make_mut(&mut self.variables).values_mut() {
            variable.forget(why);
        }
        self.positional = None;
        self.anything_set = true;
    }

    pub fn go(&mut self, directories: Vec<Option<Arc<str>>>) {
        self.previous = match self.directories.as_ref() {
            [only] => only.clone(),
            _ => None,
        };
        self.directories = limited(directories);
    }

    /// The working directory, if it is certain.
    pub fn directory(&self) -> Option<&str> {
        match self.directories.as_ref() {
            [Some(directory)] => Some(directory),
            _ => None,
        }
    }

    /// Keeps what is certain in both cases.
    #[must_use]
    pub fn join(mut self, other: State) -> State {
        if self.unreachable != other.unreachable {
            return if self.unreachable { other } else { self };
        }
        if self == other {
            return self;
        }
        if !Arc::ptr_eq(&self.variables, &other.variables) {
            let unknown = Variable::new(Value::unknown("it depends on earlier commands"));
            let mine = Arc::make_mut(&mut self.variables);
            // Both are sorted, so one pass over both is enough.
            let mut theirs = other.variables.iter().peekable();
            let mut missing = Vec::new();
            for (name, variable) in mine.iter_mut() {
                crate::work::count(1);
                while let Some((absent, other)) = theirs.next_if(|(other, _)| *other < name) {
                    missing.push((Arc::clone(absent), unknown.join(other)));
                }
                let other = theirs.next_if(|(other, _)| *other == name).map_or(&unknown, |(_, other)| other);
                if variable != other {
                    *variable = variable.join(other);
                }
            }
            missing.extend(theirs.map(|(absent, other)| (Arc::clone(absent), unknown.join(other))));
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
        if self.zero != other.zero {
            self.zero = None;
        }
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
            let mine = Arc::make_mut(&mut self.aliases);
            mine.extend(other.aliases.iter().cloned());
        }
        self.options = Options {
            // If globbing may be on, a word may still match files, so it stays a pattern.
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

fn limited(mut directories: Vec<Option<Arc<str>>>) -> Directories {
    directories.dedup();
    if directories.len() > DIRECTORIES || directories.contains(&None) || directories.is_empty() {
        return Arc::from([None]);
    }
    Arc::from(directories)
}

/// Joins two states, the first of which may not exist yet.
pub(super) fn join(first: Option<State>, second: State) -> State {
    match first {
        Some(first) => first.join(second),
        None => second,
    }
}

/// How a command ends.
#[derive(Debug, Clone)]
pub(super) enum Ends {
    /// The state is the same whether it succeeded or not.
    Either(State),
    /// The state after success and after failure.
    Split(State, State),
}

impl Ends {
    pub fn split(self) -> (State, State) {
        match self {
            Ends::Either(state) => (state.clone(), state),
            Ends::Split(success, failure) => (success, failure),
        }
    }

    pub fn merged(self) -> State {
        match self {
            Ends::Either(state) => state,
            Ends::Split(success, failure) => success.join(failure),
        }
    }

    pub fn map(self, mut change: impl FnMut(State) -> State) -> Ends {
        match self {
            Ends::Either(state) => Ends::Either(change(state)),
            Ends::Split(success, failure) => Ends::Split(change(success), change(failure)),
        }
    }

    pub fn negated(self) -> Ends {
        match self {
            Ends::Split(success, failure) => Ends::Split(failure, success),
            either => either,
        }
    }

    /// Adds that the command may fail before it starts, in this state: a redirection may fail.
    pub fn or_failed(self, before: State) -> Ends {
        match self {
            Ends::Either(state) if state == before => Ends::Either(state),
            other => {
                let (success, failure) = other.split();
                Ends::Split(success, failure.join(before))
            }
        }
    }
}
