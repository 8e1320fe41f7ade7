//! What one call leaves in a shell that the agent keeps, for the next call to start from.
//!
//! Everything that is said to be known here is certain; what is not certain says so. Functions are kept by name alone: what
//! the shell would run for such a name is then not what a table says, and is not understood.

use super::state::{Directories, Options, State, Value, Variable};
use crate::secret_names::is_secret;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A state with more text than this is not kept.
const LARGEST: usize = 1 << 15;

/// How many directories of `pushd` are kept.
const DEEPEST: usize = 16;

/// The state a shell is in between two calls. The default is that of a shell that has just been started.
///
/// ```
/// use callgate_shell::programs::Programs;
/// use callgate_shell::{ShellContext, Dialect, Limits, ShellState, analyze};
/// use callgate_shell::effect::Coverage;
///
/// let variables = Default::default();
/// let before = ShellState::default();
/// let context = ShellContext {
///     directory: Some("/work"),
///     home: None,
///     variables: &variables,
///     programs: Programs::bundled(),
///     dialect: Dialect::Bash,
///     limits: Limits::default(),
///     state: Some(&before),
/// };
/// let after = analyze("export NAME=value; ls() { rm -rf .; }", &context).state.unwrap();
/// assert_eq!(after.variable("NAME"), Some("value"));
/// let later = ShellContext { state: Some(&after), ..context };
/// assert_eq!(analyze("ls", &later).coverage, Coverage::Partial);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellState {
    /// The directories it may be in; none: where it was started. `None`: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    directories: Vec<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<Vec<Option<String>>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<String, KeptVariable>,
    /// `$1` …; `None`: not known.
    positional: Positional,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    functions: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    aliases: BTreeSet<String>,
    /// The letters of `set -o` options that count: `e`, `f`, `a`.
    #[serde(skip_serializing_if = "String::is_empty")]
    options: String,
    path_changed: bool,
    swayed: bool,
    input_changed: bool,
    anything_set: bool,
    traps: bool,
    /// Why anything at all may be different from what is said here.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
    /// The call that left this state was judged in the light of that.
    told: bool,
    /// Where the shell is if every `cd` of the last call succeeds.
    #[serde(skip)]
    expected: Option<Expected>,
}

/// Where a shell is if it could go to all of these directories.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    entered: Vec<String>,
    place: Place,
}

/// What `cd` changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    directories: Vec<Option<String>>,
    previous: Option<String>,
    stack: Vec<Vec<Option<String>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Positional {
    #[default]
    None,
    These(Vec<KeptValue>),
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptVariable {
    value: KeptValue,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    elements: Option<Vec<KeptValue>>,
    /// The letters of `declare`: `x`, `i`, `A`, `r`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    attributes: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptValue {
    Text(String),
    Number,
    Below(String),
    Glob(String),
    Prefix(String, String),
    Unknown(String),
    Unset,
}

impl ShellState {
    /// That of a shell of which nothing is known any more.
    pub fn lost(why: &str) -> Self {
        ShellState {
            directories: vec![None],
            positional: Positional::Unknown,
            anything_set: true,
            lost: Some(why.chars().take(200).collect()),
            ..ShellState::default()
        }
    }

    /// Why anything at all may be different in this shell, if so.
    pub fn why_lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The call that left this state did run. If it was judged knowing that anything may be different in this shell, then
    /// whoever let it run has been told, and need not be told again.
    #[must_use]
    pub fn after_running(mut self) -> Self {
        if std::mem::take(&mut self.told) {
            self.lost = None;
        }
        self
    }

    /// Settles where the shell is, if it can enter all the directories that the last call wants to go to. They must be looked
    /// at before the call runs.
    pub fn settle_directory(&mut self, can_enter: impl Fn(&str) -> bool) {
        if let Some(Expected { entered, place }) = self.expected.take()
            && entered.iter().all(|directory| can_enter(directory))
        {
            (self.directories, self.previous, self.stack) = (place.directories, place.previous, place.stack);
        }
    }

    /// Adds where the shell is if it could go to these directories.
    pub(super) fn expecting(mut self, state: State, entered: Vec<String>) -> Self {
        let ShellState { directories, previous, stack, .. } = ShellState::of(state);
        self.expected = Some(Expected { entered, place: Place { directories, previous, stack } });
        self
    }

    /// The same wherever the shell is: whoever calls next says where.
    #[must_use]
    pub fn anywhere(mut self) -> Self {
        self.directories.clear();
        self
    }

    /// Whether a shell that has just been started in this directory is in the same state.
    pub fn is_fresh(&self, directory: Option<&str>) -> bool {
        self.lost.is_none() && !self.traps && self.restored(directory) == State::new(directory)
    }

    /// The working directory, if it is known and was changed.
    pub fn directory(&self) -> Option<&str> {
        match self.directories.as_slice() {
            [Some(directory)] => Some(directory),
            _ => None,
        }
    }

    /// The value of a variable that was set, if it is known.
    pub fn variable(&self, name: &str) -> Option<&str> {
        match &self.variables.get(name)?.value {
            KeptValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The variables whose values are known.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.keys().filter_map(|name| Some((name.as_str(), self.variable(name)?)))
    }

    /// The variables that are known not to be set.
    pub fn unset(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().filter(|(_, variable)| variable.value == KeptValue::Unset).map(|(name, _)| name.as_str())
    }

    /// Forgets the values for which this says so: they are secrets, and nobody should find them where a state is kept.
    pub fn forget_values(&mut self, is_secret: impl Fn(&str) -> bool) {
        let secret = |value: &KeptValue| match value {
            KeptValue::Text(text) | KeptValue::Below(text) | KeptValue::Glob(text) | KeptValue::Prefix(text, _) => {
                is_secret(text)
            }
            KeptValue::Number | KeptValue::Unknown(_) | KeptValue::Unset => false,
        };
        for variable in self.variables.values_mut() {
            if secret(&variable.value) || variable.elements.iter().flatten().any(secret) {
                variable.value = not_remembered();
                variable.elements = None;
            }
        }
        if let Positional::These(values) = &self.positional
            && values.iter().any(secret)
        {
            self.positional = Positional::Unknown;
        }
    }

    /// What is certain if the call that leads from this state to `after` may not have run. `directory` is where the shell
    /// was started.
    #[must_use]
    pub fn possibly(self, after: Self, directory: Option<&str>) -> Self {
        let mut kept = ShellState::of(self.restored(directory).join(after.restored(directory)));
        kept.traps = self.traps || after.traps;
        if kept.lost.is_none() {
            kept.told = after.told;
            kept.lost = after.lost.or(self.lost);
        }
        kept
    }

    /// Whether code that was set earlier may run a function that nobody calls by name.
    pub(super) fn runs_functions_later(&self) -> bool {
        self.traps || self.swayed
    }

    /// The state at the end of a call that began with another one. `lost`: why the call may have changed anything.
    pub(super) fn after(before: &ShellState, mut state: State, traps: bool, lost: Option<String>) -> Self {
        if lost.is_some() {
            state.forget_variables("an earlier call may have changed it");
        }
        let mut kept = ShellState::of(state);
        kept.traps = traps || before.traps;
        if kept.lost.is_none() {
            kept.told = before.lost.is_some() && lost.is_none();
            kept.lost = lost.map(|why| why.chars().take(200).collect()).or_else(|| before.lost.clone());
        }
        kept
    }

    fn of(state: State) -> Self {
        let texts = |directories: &Directories| -> Vec<Option<String>> {
            directories.iter().map(|directory| directory.as_deref().map(str::to_owned)).collect()
        };
        let deep = state.stack.len() > DEEPEST;
        let kept = ShellState {
            directories: texts(&state.directories),
            previous: state.previous.as_deref().map(str::to_owned),
            stack: if deep { Vec::new() } else { state.stack.iter().map(texts).collect() },
            variables: state
                .variables
                .iter()
                .map(|(name, variable)| (name.to_string(), KeptVariable::of(name, variable)))
                .collect(),
            positional: match state.positional.as_deref() {
                Some([]) => Positional::None,
                Some(values) => Positional::These(values.iter().map(KeptValue::of).collect()),
                None => Positional::Unknown,
            },
            functions: state.functions.keys().cloned().collect(),
            aliases: state.aliases.iter().cloned().collect(),
            options: letters(&[
                ('e', state.options.exits_on_error),
                ('f', state.options.no_globs),
                ('a', state.options.exports_all),
            ]),
            path_changed: state.path_changed,
            swayed: state.swayed,
            input_changed: state.input_changed,
            anything_set: state.anything_set,
            traps: false,
            lost: None,
            told: false,
            expected: None,
        };
        if kept.weight() > LARGEST { ShellState::lost("more was set than is remembered") } else { kept }
    }

    /// The state for an analysis to start from; `directory` is where the shell was started.
    pub(super) fn restored(&self, directory: Option<&str>) -> State {
        let directories = |texts: &[Option<String>]| -> Directories {
            texts.iter().map(|text| text.as_deref().map(Rc::from)).collect()
        };
        let mut state = State::new(directory);
        if !self.directories.is_empty() {
            state.directories = directories(&self.directories);
        }
        state.previous = self.previous.as_deref().map(Rc::from);
        state.stack = self.stack.iter().map(|texts| directories(texts)).collect();
        if !self.variables.is_empty() {
            let variables = self.variables.iter().map(|(name, kept)| (Rc::from(name.as_str()), kept.restored()));
            state.variables = Rc::new(variables.collect());
        }
        state.positional = match &self.positional {
            Positional::None => state.positional,
            Positional::These(values) => Some(values.iter().map(KeptValue::restored).collect()),
            Positional::Unknown => None,
        };
        if !self.functions.is_empty() {
            state.functions = Rc::new(self.functions.iter().map(|name| (name.clone(), None)).collect());
        }
        if !self.aliases.is_empty() {
            state.aliases = Rc::new(self.aliases.clone());
        }
        state.options = Options {
            no_globs: self.options.contains('f'),
            exits_on_error: self.options.contains('e'),
            exports_all: self.options.contains('a'),
        };
        state.path_changed = self.path_changed;
        state.swayed = self.swayed;
        state.input_changed = self.input_changed;
        state.anything_set = self.anything_set;
        state
    }

    /// How many bytes of text it holds, about.
    fn weight(&self) -> usize {
        let names = self.functions.iter().chain(&self.aliases).map(String::len);
        let places = self.directories.iter().chain(self.stack.iter().flatten()).flatten().map(String::len);
        let variables = self.variables.iter().map(|(name, kept)| {
            let elements = kept.elements.iter().flatten().map(KeptValue::weight);
            elements.fold(name.len().saturating_add(kept.value.weight()), usize::saturating_add)
        });
        let arguments = match &self.positional {
            Positional::These(values) => values.as_slice(),
            Positional::None | Positional::Unknown => &[],
        };
        let arguments = arguments.iter().map(KeptValue::weight);
        names
            .chain(places)
            .chain(variables)
            .chain(arguments)
            .fold(0, |sum, length| sum.saturating_add(length).saturating_add(16))
    }
}

impl KeptVariable {
    fn of(name: &str, variable: &Variable) -> Self {
        let secret = is_secret(name) && !matches!(variable.value, Value::Unset | Value::Unknown(_));
        KeptVariable {
            value: if secret { not_remembered() } else { KeptValue::of(&variable.value) },
            elements: match &variable.elements {
                Some(elements) if !secret => Some(elements.iter().map(KeptValue::of).collect()),
                _ => None,
            },
            attributes: letters(&[
                ('x', variable.exported),
                ('i', variable.integer),
                ('A', variable.keyed),
                ('r', variable.fixed),
            ]),
        }
    }

    fn restored(&self) -> Variable {
        let has = |letter: char| self.attributes.contains(letter);
        Variable {
            value: self.value.restored(),
            elements: self.elements.as_ref().map(|elements| elements.iter().map(KeptValue::restored).collect()),
            exported: has('x'),
            integer: has('i'),
            keyed: has('A'),
            fixed: has('r'),
        }
    }
}

impl KeptValue {
    fn of(value: &Value) -> Self {
        match value {
            Value::Text(text) => KeptValue::Text(text.to_string()),
            Value::Number => KeptValue::Number,
            Value::Below(directory) => KeptValue::Below(directory.to_string()),
            Value::Glob(pattern) => KeptValue::Glob(pattern.to_string()),
            Value::Prefix(text, why) => KeptValue::Prefix(text.to_string(), why.to_string()),
            Value::Unknown(why) => KeptValue::Unknown(why.to_string()),
            Value::Unset => KeptValue::Unset,
        }
    }

    fn restored(&self) -> Value {
        match self {
            KeptValue::Text(text) => Value::text(text),
            KeptValue::Number => Value::Number,
            KeptValue::Below(directory) => Value::Below(Rc::from(directory.as_str())),
            KeptValue::Glob(pattern) => Value::Glob(Rc::from(pattern.as_str())),
            KeptValue::Prefix(text, why) => Value::Prefix(Rc::from(text.as_str()), Rc::from(why.as_str())),
            KeptValue::Unknown(why) => Value::unknown(why),
            KeptValue::Unset => Value::Unset,
        }
    }

    fn weight(&self) -> usize {
        match self {
            KeptValue::Text(text) | KeptValue::Below(text) | KeptValue::Glob(text) | KeptValue::Unknown(text) => {
                text.len()
            }
            KeptValue::Prefix(text, why) => text.len().saturating_add(why.len()),
            KeptValue::Number | KeptValue::Unset => 0,
        }
    }
}

fn not_remembered() -> KeptValue {
    KeptValue::Unknown("a secret is not remembered".to_owned())
}

fn letters(all: &[(char, bool)]) -> String {
    all.iter().filter(|(_, set)| *set).map(|(letter, _)| letter).collect()
}
