//! What one call leaves in a shell that the agent keeps, for the next call to start from.
//!
//! Everything that the state claims is certain; what is not certain says so. Functions are kept by name alone, so calling one
//! later is not understood: a table of that name would describe something else.

use super::state::{Directories, Options, State, Value, Variables};
use crate::secret_names::is_secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// A state with more text than this is not kept.
const LARGEST: usize = 1 << 15;

/// How many directories of `pushd` are kept.
const DEEPEST: usize = 16;

/// The state of a shell between two calls. The default is the state of a shell that has just started.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellState {
    /// The directories it may be in; empty: where it was started. `None`: not known.
    #[serde(skip_serializing_if = "is_default")]
    directories: Vec<Option<Arc<str>>>,
    #[serde(skip_serializing_if = "is_default")]
    previous: Option<Arc<str>>,
    #[serde(skip_serializing_if = "is_default")]
    stack: Vec<Directories>,
    #[serde(skip_serializing_if = "is_default")]
    variables: Arc<Variables>,
    /// `$1`, `$2` and so on; `None`: not known.
    #[serde(skip_serializing_if = "has_no_arguments")]
    positional: Option<Arc<[Value]>>,
    #[serde(skip_serializing_if = "is_default")]
    functions: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_default")]
    aliases: Arc<BTreeSet<String>>,
    #[serde(skip_serializing_if = "is_default")]
    options: Options,
    #[serde(skip_serializing_if = "is_default")]
    path_changed: bool,
    #[serde(skip_serializing_if = "is_default")]
    swayed: bool,
    #[serde(skip_serializing_if = "is_default")]
    input_changed: bool,
    #[serde(skip_serializing_if = "is_default")]
    anything_set: bool,
    #[serde(skip_serializing_if = "is_default")]
    traps: bool,
    /// Why anything may differ from this state.
    #[serde(skip_serializing_if = "is_default")]
    lost: Option<String>,
    /// The call that left this state was judged with that in mind.
    #[serde(skip_serializing_if = "is_default")]
    told: bool,
    /// Where the shell is if every `cd` of the last call succeeds.
    #[serde(skip)]
    expected: Option<ExpectedDirectory>,
}

/// Where a shell is if it could enter all the directories in `entered`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExpectedDirectory {
    entered: Vec<String>,
    directories: Vec<Option<Arc<str>>>,
    previous: Option<Arc<str>>,
    stack: Vec<Directories>,
}

/// Skips what a new shell has. Every hook reads all states of its session, so they should be short.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn has_no_arguments(positional: &Option<Arc<[Value]>>) -> bool {
    positional.as_ref().is_some_and(|values| values.is_empty())
}

impl Default for ShellState {
    fn default() -> Self {
        ShellState::of(State::new(None)).anywhere()
    }
}

impl ShellState {
    /// The state of a shell about which nothing is known any more.
    pub fn lost(why: &str) -> Self {
        ShellState {
            directories: vec![None],
            positional: None,
            anything_set: true,
            lost: Some(why.chars().take(200).collect()),
            ..ShellState::default()
        }
    }

    /// Why anything may be different in this shell, if that is so.
    pub fn why_lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The state after the call that left it has run. If that call was judged knowing that anything may be different in this
    /// shell, the person who allowed it knows, and does not need the warning again.
    #[must_use]
    pub fn after_running(mut self) -> Self {
        if std::mem::take(&mut self.told) {
            self.lost = None;
        }
        self
    }

    /// Settles where the shell is, if it can enter all the directories that the last call wants to enter. Look at them before
    /// the call runs.
    pub fn settle_directory(&mut self, can_enter: impl Fn(&str) -> bool) {
        if let Some(expected) = self.expected.take()
            && expected.entered.iter().all(|directory| can_enter(directory))
        {
            (self.directories, self.previous, self.stack) = (expected.directories, expected.previous, expected.stack);
        }
    }

    /// Adds where the shell is if it could enter these directories.
    pub(super) fn expecting(mut self, state: State, entered: Vec<String>) -> Self {
        let ShellState { directories, previous, stack, .. } = ShellState::of(state);
        self.expected = Some(ExpectedDirectory { entered, directories, previous, stack });
        self
    }

    /// The same state in a directory that the next caller names.
    #[must_use]
    pub fn anywhere(mut self) -> Self {
        self.directories.clear();
        self
    }

    /// Whether this state differs from another one at most in its directories.
    pub fn is_same_elsewhere(&self, other: &Self) -> bool {
        let placeless = |state: &Self| ShellState {
            directories: Vec::new(),
            previous: None,
            stack: Vec::new(),
            told: false,
            expected: None,
            ..state.clone()
        };
        placeless(self) == placeless(other)
    }

    /// Whether a shell that has just started in this directory is in the same state.
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
        self.variables.get(name)?.value.known()
    }

    /// The variables whose values are known.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.keys().filter_map(|name| Some((&**name, self.variable(name)?)))
    }

    /// The variables that are known not to be set.
    pub fn unset(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().filter(|(_, variable)| variable.value == Value::Unset).map(|(name, _)| &**name)
    }

    /// Forgets the values that `is_secret` recognizes, so that they are not stored with the state.
    pub fn forget_values(&mut self, is_secret: impl Fn(&str) -> bool) {
        let secret = |value: &Value| value.certain_text().is_some_and(&is_secret);
        for variable in Arc::make_mut(&mut self.variables).values_mut() {
            if secret(&variable.value) || variable.elements.iter().flatten().any(secret) {
                variable.forget(NOT_REMEMBERED);
            }
        }
        self.positional = self.positional.take().filter(|values| !values.iter().any(secret));
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

    /// Whether code that was set earlier may run a function without a call in this command.
    pub(super) fn runs_functions_later(&self) -> bool {
        self.traps || self.swayed
    }

    /// The state after a call that began in `before`. `lost`: why the call may have changed anything.
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

    fn of(mut state: State) -> Self {
        if state.variables.keys().any(|name| is_secret(name)) {
            for (name, variable) in Arc::make_mut(&mut state.variables) {
                if is_secret(name) && !matches!(variable.value, Value::Unset | Value::Unknown(_)) {
                    variable.forget(NOT_REMEMBERED);
                }
            }
        }
        let kept = ShellState {
            directories: state.directories.to_vec(),
            previous: state.previous,
            stack: if state.stack.len() > DEEPEST { Vec::new() } else { state.stack },
            variables: state.variables,
            positional: state.positional,
            functions: state.functions.keys().cloned().collect(),
            aliases: state.aliases,
            options: state.options,
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
        let mut state = State::new(directory);
        if !self.directories.is_empty() {
            state.directories = self.directories.as_slice().into();
        }
        state.previous = self.previous.clone();
        state.stack = self.stack.clone();
        state.variables = Arc::clone(&self.variables);
        state.positional = self.positional.clone();
        state.functions = Rc::new(self.functions.iter().map(|name| (name.clone(), None)).collect());
        state.aliases = Arc::clone(&self.aliases);
        state.options = self.options;
        state.path_changed = self.path_changed;
        state.swayed = self.swayed;
        state.input_changed = self.input_changed;
        state.anything_set = self.anything_set;
        state
    }

    /// Roughly how many bytes of text it holds.
    fn weight(&self) -> usize {
        let names = self.functions.iter().chain(self.aliases.iter()).map(String::len);
        let stacked = self.stack.iter().flat_map(|directories| directories.iter());
        let directories = self.directories.iter().chain(stacked).flatten().map(|directory| directory.len());
        let variables = self.variables.iter().map(|(name, variable)| {
            let elements = variable.elements.iter().flatten().map(Value::weight);
            elements.fold(name.len().saturating_add(variable.value.weight()), usize::saturating_add)
        });
        let arguments = self.positional.iter().flat_map(|values| values.iter()).map(Value::weight);
        let lengths = names.chain(directories).chain(variables).chain(arguments);
        lengths.fold(0, |sum, length| sum.saturating_add(length).saturating_add(16))
    }
}

/// Why the value of a variable that holds a secret is unknown.
const NOT_REMEMBERED: &str = "a secret is not remembered";
