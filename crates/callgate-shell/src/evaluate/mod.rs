//! Evaluates a script as the shell would: finds its simple commands, expands what is certain, and reports what is not.

mod arithmetic;
mod braces;
mod builtins;
mod conditions;
mod control;
mod declarations;
mod directories;
mod expand;
mod language;
mod loops;
mod nested;
mod parameters;
mod patterns;
mod pieces;
mod programs;
mod redirections;
mod shell_state;
mod simple;
mod state;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use crate::distinct::{self, Distinct};
use crate::effect::{Action, CodeOrigin, Coverage, Effect, Mark, Program, Target};
use crate::programs::Programs;
use crate::stream::Stream;
use crate::syntax::ast::{Command, Span};
use crate::syntax::{Dialect, Limits, parse};
use crate::word::Word;
use callgate_model::description::{GitUse, Loads};
use serde::Serialize;
pub use shell_state::ShellState;
use state::State;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// How many words, and how many bytes, cost as much as one more command.
const WORDS: usize = 16;
const BYTES: usize = 4096;

/// What is known about the shell that would run the command.
#[derive(Debug, Clone, Copy)]
pub struct ShellContext<'a> {
    /// The working directory, absolute.
    pub directory: Option<&'a str>,
    /// The home directory.
    pub home: Option<&'a str>,
    /// Environment variables whose values are known.
    pub variables: &'a BTreeMap<String, String>,
    /// The tables that describe programs.
    pub programs: &'a Programs,
    /// Which shell reads the command.
    pub dialect: Dialect,
    /// Limits on the work.
    pub limits: Limits,
    /// The state of the shell, if the agent keeps it; `None`: the shell starts for this command and ends with it.
    pub state: Option<&'a ShellState>,
}

/// What a command would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Analysis {
    /// Every simple command that may run, including wrapped and substituted ones.
    pub commands: Vec<SimpleCommand>,
    /// Whether these are all commands and effects.
    pub coverage: Coverage,
    /// What could not be understood.
    pub doubts: Vec<Doubt>,
    /// The state of the shell after the command, if the agent keeps the shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ShellState>,
}

impl Analysis {
    /// All effects, in the order of the commands.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.commands.iter().flat_map(|command| &command.effects)
    }
}

/// One simple command that may run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SimpleCommand {
    /// The words, the program first; none for an assignment or a redirection alone.
    pub words: Vec<Word>,
    /// The programs that run it, outermost first (`sudo`, `env`).
    pub wrappers: Vec<String>,
    /// Its working directory, if known.
    pub directory: Option<String>,
    /// The machine or container it runs in, if not here.
    pub elsewhere: Option<String>,
    /// Variables set for it alone, or by it.
    pub assignments: Vec<(String, Word)>,
    /// What it does.
    pub effects: Vec<Effect>,
    /// Where it is in the source.
    pub span: Range<usize>,
    /// The table that describes it.
    pub table: Option<String>,
    /// The files of the project that its program would load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Loads>,
    /// What it does with the files of a git repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<GitUse>,
}

/// Something that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Doubt {
    /// What.
    pub what: String,
    /// Where.
    pub span: Range<usize>,
}

/// Works out what a command would do. Never panics; the result contains what could not be understood.
///
/// ```
/// use callgate_shell::{analyze, ShellContext, Dialect, Limits};
/// use callgate_shell::effect::Coverage;
/// use callgate_shell::programs::Programs;
///
/// let variables = Default::default();
/// let context = ShellContext {
///     directory: Some("/work"),
///     home: Some("/home/me"),
///     variables: &variables,
///     programs: Programs::bundled(),
///     dialect: Dialect::Bash,
///     limits: Limits::default(),
///     state: None,
/// };
/// let analysis = analyze("x=cp; $x a 'b c'", &context);
/// let words: Vec<_> = analysis.commands.last().unwrap().words.iter().map(|word| word.known()).collect();
/// assert_eq!(words, [Some("cp"), Some("a"), Some("b c")]);
/// assert_eq!(analyze("$(curl example.com)", &context).coverage, Coverage::Partial);
/// ```
pub fn analyze(source: &str, context: &ShellContext) -> Analysis {
    analyze_with_input(source, context, &Stream::Unconnected)
}

/// Like [`analyze`], with `input` as the command's standard input.
pub fn analyze_with_input(source: &str, context: &ShellContext, input: &Stream) -> Analysis {
    let mut evaluator = Evaluator::new(context, input);
    let parsed = parse(source, context.dialect, context.limits);
    let state = match context.state {
        Some(before) => evaluator.begin(before, source),
        None => State::new(context.directory),
    };
    let input_changed = state.input_changed;
    let (ends, _) = evaluator.list(&parsed.script, state, input);
    let mut end = ends.merged();
    if let Some(dropped) = evaluator.dropped.take() {
        end = end.join(dropped);
    }
    if let Some(mistake) = parsed.mistake {
        let what = format!("cannot parse the command at {}: {}", position(source, mistake.span.start), mistake.what);
        evaluator.doubt(&what, &mistake.span);
    }
    let after = context.state.map(|before| {
        let uncertain = end.directory().is_none();
        let after = evaluator.leave_shell(before, end, input_changed, source);
        if uncertain { expected(after, before, source, context, input) } else { after }
    });
    evaluator.walk_the_rest();
    evaluator.finish(after)
}

/// A place in the source as people count it.
fn position(source: &str, at: usize) -> String {
    let before = source.get(..at).unwrap_or(source);
    let line = before.matches('\n').count().saturating_add(1);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count().saturating_add(1);
    format!("line {line}, column {column}")
}

/// Adds where the shell would be if every `cd` succeeded. Everything else that this walk finds is ignored, because a `cd` may fail.
fn expected(
    after: ShellState,
    before: &ShellState,
    source: &str,
    context: &ShellContext,
    input: &Stream,
) -> ShellState {
    let mut evaluator = Evaluator::new(context, input);
    evaluator.entered = Some(Vec::new());
    let parsed = parse(source, context.dialect, context.limits);
    let (ends, _) = evaluator.list(&parsed.script, before.restored(context.directory), input);
    match (ends.merged(), evaluator.entered) {
        (end, Some(entered)) if !evaluator.may_have_ended && !end.unreachable => after.expecting(end, entered),
        _ => after,
    }
}

/// Walks scripts and collects what runs.
struct Evaluator<'c> {
    context: &'c ShellContext<'c>,
    /// The standard input of the script and of its substitutions.
    input: &'c Stream,
    dialect: Dialect,
    commands: Vec<SimpleCommand>,
    /// Indexes over the effects of commands that have many.
    distinct: BTreeMap<usize, Distinct>,
    doubts: Vec<Doubt>,
    steps: usize,
    /// How many bytes of variables have been expanded.
    expanded: Cell<usize>,
    depth: usize,
    /// The wrappers around what is being walked.
    wrappers: Vec<String>,
    elsewhere: Option<String>,
    /// The command that is being read, which gets the doubts.
    current: Option<usize>,
    /// The states in which `break` and `continue` leave the enclosing loops.
    loops: Vec<loops::Leaving>,
    /// The states in which `return` leaves the enclosing functions.
    returns: Vec<Option<State>>,
    /// The states in which an error may have dropped the rest of a line. The next line runs all the same.
    dropped: Option<State>,
    /// The shell may have left the list that is being walked, so that later commands print nothing.
    left: bool,
    /// How many enclosing places test what fails in them, so that `set -e` does not end the shell there.
    tested: usize,
    /// The functions that are being called.
    calls: Vec<String>,
    /// The variables that `local` hides, one list for each call.
    locals: Vec<Vec<(String, Option<state::Variable>)>>,
    /// The code of traps.
    traps: Vec<nested::Trap>,
    /// Whether any trap was set.
    traps_set: bool,
    /// How many child shells enclose what is being walked.
    children: usize,
    /// Why the first shell may have changed in ways that are not tracked.
    lost: Option<String>,
    /// The first shell may have ended before the end of the script.
    may_have_ended: bool,
    /// The directories that `cd` goes to, if it is taken to succeed.
    entered: Option<Vec<String>>,
    /// Every function ever defined.
    functions: BTreeMap<String, Vec<Rc<Command>>>,
    /// The bodies of those functions, and which of them were walked. `functions` keeps them alive.
    bodies: BTreeMap<*const Command, bool>,
}

impl<'c> Evaluator<'c> {
    fn new(context: &'c ShellContext<'c>, input: &'c Stream) -> Self {
        Evaluator {
            context,
            input,
            dialect: context.dialect,
            commands: Vec::new(),
            distinct: BTreeMap::new(),
            doubts: Vec::new(),
            steps: 0,
            expanded: Cell::new(0),
            depth: 0,
            wrappers: Vec::new(),
            elsewhere: None,
            current: None,
            loops: Vec::new(),
            returns: Vec::new(),
            dropped: None,
            left: false,
            tested: 0,
            calls: Vec::new(),
            locals: Vec::new(),
            traps: Vec::new(),
            traps_set: false,
            children: 0,
            lost: None,
            may_have_ended: false,
            entered: None,
            functions: BTreeMap::new(),
            bodies: BTreeMap::new(),
        }
    }

    /// Whether the budget is used up. Nothing more is walked then.
    fn exhausted(&self) -> bool {
        self.steps > self.context.limits.steps
    }

    /// Pays for a command, its words and their bytes.
    fn spend(&mut self, words: usize, bytes: usize, span: &Span) {
        let limit = self.context.limits.steps;
        let before = self.exhausted();
        self.steps = self.steps.saturating_add(1).saturating_add(words / WORDS).saturating_add(bytes / BYTES);
        if self.exhausted() && !before {
            self.current = None;
            self.doubt(&format!("the command runs more than {limit} steps"), span);
        }
    }

    /// Pays for words and bytes that are copied in addition to a command's own. Returns whether the budget allows it.
    fn charge(&mut self, words: usize, bytes: usize, span: &Span) -> bool {
        let before = self.exhausted();
        self.steps = self.steps.saturating_add(words / WORDS).saturating_add(bytes / BYTES);
        if self.exhausted() && !before {
            let current = self.current.take();
            self.doubt("the command has too many words to track", span);
            self.current = current;
        }
        !self.exhausted()
    }

    /// Records that something is not understood, as an effect of the current command.
    fn doubt(&mut self, what: &str, span: &Span) {
        if self.children == 0 {
            self.loses_track(what);
        }
        let doubt = Doubt { what: what.to_owned(), span: span.clone() };
        let again = self.doubts.len() < 1000 && self.doubts.contains(&doubt);
        if !again && self.doubts.len() < 1000 {
            self.doubts.push(doubt);
        }
        let effect = opaque(what, "shell");
        match self.current.filter(|slot| *slot < self.commands.len()) {
            Some(slot) => self.push(slot, effect),
            None if again => {}
            None => {
                let slot = self.reserve(None, span);
                self.add(slot, effect);
            }
        }
    }

    /// The same, at the place of the current command.
    fn doubt_here(&mut self, what: &str) {
        let span = self.current.and_then(|slot| self.commands.get(slot)).map_or(0..0, |command| command.span.clone());
        self.doubt(what, &span);
    }

    /// Adds an effect to a command that does not have it.
    fn push(&mut self, slot: usize, effect: Effect) {
        let Some(command) = self.commands.get_mut(slot) else {
            return;
        };
        let there = if command.effects.len() < distinct::SHORT {
            command.effects.contains(&effect)
        } else {
            self.distinct.entry(slot).or_default().contains(&command.effects, &&effect, |other| other)
        };
        if !there {
            command.effects.push(effect);
        }
    }

    /// Adds an empty entry for a command that is about to be read.
    fn reserve(&mut self, directory: Option<&str>, span: &Span) -> usize {
        self.commands.push(SimpleCommand {
            words: Vec::new(),
            wrappers: self.wrappers.clone(),
            directory: directory.map(str::to_owned),
            elsewhere: self.elsewhere.clone(),
            assignments: Vec::new(),
            effects: Vec::new(),
            span: span.clone(),
            table: None,
            loads: Vec::new(),
            git: Vec::new(),
        });
        self.commands.len().saturating_sub(1)
    }

    /// Adds an effect to a command.
    fn add(&mut self, slot: usize, mut effect: Effect) {
        if self.elsewhere.is_some() {
            effect = effect.marked(Mark::Elsewhere);
        }
        self.push(slot, effect);
    }

    /// Adds effects, no two of which are the same.
    fn add_all(&mut self, slot: usize, effects: Vec<Effect>) {
        if self.elsewhere.is_none()
            && let Some(command) = self.commands.get_mut(slot)
            && command.effects.is_empty()
        {
            command.effects = effects;
            return;
        }
        for effect in effects {
            self.add(slot, effect);
        }
    }

    /// Records that the first shell may change in ways that are not tracked.
    fn loses_track(&mut self, why: &str) {
        if self.children == 0 && self.lost.is_none() {
            self.lost = Some(why.to_owned());
        }
    }

    /// Walks something that runs in a child shell.
    fn in_child<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.children = self.children.saturating_add(1);
        let saved = (self.dropped.take(), std::mem::take(&mut self.left));
        let result = walk(self);
        (self.dropped, self.left) = saved;
        self.children = self.children.saturating_sub(1);
        result
    }

    /// Records that an error may drop the rest of the line here. The shell goes on with the next line in this state.
    fn may_drop_line(&mut self, state: &State) {
        self.left = true;
        self.dropped = Some(state::join(self.dropped.take(), state.clone()));
    }

    /// Walks something whose doubts do not belong to the current command.
    fn apart<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let current = self.current.take();
        let result = walk(self);
        self.current = current;
        result
    }

    /// Walks something that cannot leave the loops and functions around it.
    fn enclosed<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let saved = (std::mem::take(&mut self.loops), std::mem::take(&mut self.returns));
        let result = walk(self);
        (self.loops, self.returns) = saved;
        result
    }

    /// Returns the state to start with in a kept shell.
    fn begin(&mut self, before: &ShellState, source: &str) -> State {
        if let Some(why) = before.why_lost() {
            let what = format!("an earlier call may have changed anything in this shell: {why}");
            self.in_child(|evaluator| evaluator.doubt(&what, &(0..source.len())));
        }
        self.doubt_if(self.language().typed_difference(source), &(0..source.len()));
        before.restored(self.context.directory)
    }

    /// Returns the state of a kept shell after the script.
    fn leave_shell(&mut self, before: &ShellState, end: State, input_changed: bool, source: &str) -> ShellState {
        let whole = 0..source.len();
        if before.runs_functions_later() && !self.functions.is_empty() {
            self.doubt("code that an earlier call set may run a function defined here", &whole);
        }
        let fresh = || State::new(self.context.directory);
        let end = match end {
            end if end.unreachable => fresh(),
            end if self.may_have_ended => end.join(fresh()),
            end => end,
        };
        if end.input_changed && !input_changed {
            self.doubt("`exec` makes the shell read its next commands from another source", &whole);
        }
        ShellState::after(before, end, self.traps_set, self.lost.take())
    }

    fn finish(self, state: Option<ShellState>) -> Analysis {
        let opaque = |command: &SimpleCommand| command.effects.iter().any(|effect| effect.action == Action::Opaque);
        let partial = !self.doubts.is_empty() || self.commands.iter().any(opaque);
        Analysis {
            commands: self.commands,
            coverage: if partial { Coverage::Partial } else { Coverage::Complete },
            doubts: self.doubts,
            state,
        }
    }
}

/// An effect that says that something is not understood.
fn opaque(why: &str, because: &str) -> Effect {
    Effect::new(Action::Opaque, Target::Text(why.to_owned()), because)
}

/// An effect that says that something runs.
fn run(name: &str, origin: CodeOrigin, because: &str) -> Effect {
    Effect::new(Action::Run, Target::Program(Program { name: name.to_owned(), origin }), because)
}
