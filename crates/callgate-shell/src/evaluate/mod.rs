//! From source to simple commands: walks a script as the shell would, expands what is certain, and says what is not.

mod arithmetic;
mod braces;
mod builtins;
mod conditions;
mod control;
mod declarations;
mod directories;
mod expand;
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
use serde::Serialize;
pub use shell_state::ShellState;
use state::State;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// So many words, or bytes, take as much work as a command.
const WORDS: usize = 16;
const BYTES: usize = 4096;

/// What is known about the place where the command would run.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The working directory, absolute.
    pub directory: Option<&'a str>,
    /// The home directory.
    pub home: Option<&'a str>,
    /// Environment variables whose values are known.
    pub variables: &'a BTreeMap<String, String>,
    /// What programs do.
    pub programs: &'a Programs,
    /// Which shell reads the command.
    pub dialect: Dialect,
    /// How much work is done before giving up.
    pub limits: Limits,
    /// The state of the shell, if it lives on after the command; `None`: it is started for this command and ends with it.
    pub state: Option<&'a ShellState>,
}

/// What a command would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Every simple command that may run, wrapped and substituted ones included.
    pub commands: Vec<SimpleCommand>,
    /// Whether that is everything.
    pub coverage: Coverage,
    /// What was not understood.
    pub doubts: Vec<Doubt>,
    /// How the command is built.
    pub flags: Flags,
    /// What the command leaves in a shell that lives on; `None` if it does not.
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
pub struct SimpleCommand {
    /// The words, the program first; none for an assignment or a redirection alone.
    pub words: Vec<Word>,
    /// The programs that run it in turn, outermost first (`sudo`, `env`).
    pub wrappers: Vec<String>,
    /// Its working directory, if known.
    pub directory: Option<String>,
    /// The machine or container it runs in, if not here.
    pub elsewhere: Option<String>,
    /// Variables set for it alone, or by it.
    pub assignments: Vec<(String, Word)>,
    /// What it does.
    pub effects: Vec<Effect>,
    /// Where it stands in the source.
    pub span: Range<usize>,
    /// The table that told what it does.
    pub table: Option<String>,
    /// The command that runs it: a wrapper, or the one whose word holds the substitution.
    pub parent: Option<usize>,
}

/// Something that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// What.
    pub what: String,
    /// Where.
    pub span: Range<usize>,
}

/// How a command is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Flags {
    /// Has a pipe.
    pub pipe: bool,
    /// Has `;`, `&&`, `||` or several lines.
    pub chain: bool,
    /// Has a subshell or a substitution.
    pub subshell: bool,
    /// Has a redirection.
    pub redirect: bool,
    /// Runs something in the background.
    pub background: bool,
    /// Has a branch, a loop or a function.
    pub control: bool,
    /// Acts with other rights.
    pub privilege: bool,
}

/// Works out what a command would do. Never panics; what is not understood is in the result.
///
/// ```
/// use callgate_shell::{analyze, Context, Dialect, Limits};
/// use callgate_shell::effect::Coverage;
/// use callgate_shell::programs::Programs;
///
/// let variables = Default::default();
/// let context = Context {
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
pub fn analyze(source: &str, context: &Context) -> Analysis {
    analyze_with_input(source, context, &Stream::Unconnected)
}

/// The same with something on the command's standard input.
pub fn analyze_with_input(source: &str, context: &Context, input: &Stream) -> Analysis {
    let mut evaluator = Evaluator::new(context, input);
    let reading = parse(source, context.dialect, context.limits);
    let state = match context.state {
        Some(before) => evaluator.begin(before, source),
        None => State::new(context.directory),
    };
    let input_changed = state.input_changed;
    let (ends, _) = evaluator.list(&reading.script, state, input);
    if let Some(mistake) = reading.mistake {
        evaluator.doubt(&mistake.what, &mistake.span);
    }
    let after = context.state.map(|before| {
        let end = ends.merged();
        let uncertain = end.as_ref().is_some_and(|end| end.directory().is_none());
        let after = evaluator.leave_shell(before, end, input_changed, source);
        if uncertain { expected(after, before, source, context, input) } else { after }
    });
    evaluator.run_traps();
    if context.state.is_none() {
        evaluator.walk_uncalled_functions();
    }
    evaluator.finish(after)
}

/// Adds where the shell would be if every `cd` succeeded. What that walk finds beside is not looked at: a `cd` may fail.
fn expected(after: ShellState, before: &ShellState, source: &str, context: &Context, input: &Stream) -> ShellState {
    let mut evaluator = Evaluator::new(context, input);
    evaluator.entered = Some(Vec::new());
    let reading = parse(source, context.dialect, context.limits);
    let (ends, _) = evaluator.list(&reading.script, before.restored(context.directory), input);
    match (ends.merged(), evaluator.entered) {
        (Some(end), Some(entered)) if !evaluator.may_have_ended => after.expecting(end, entered),
        _ => after,
    }
}

/// Walks scripts and collects what runs.
struct Evaluator<'c> {
    context: &'c Context<'c>,
    /// What the whole script finds on its standard input, and so do its substitutions.
    input: &'c Stream,
    dialect: Dialect,
    commands: Vec<SimpleCommand>,
    /// What is among the effects of commands that have many.
    distinct: BTreeMap<usize, Distinct>,
    doubts: Vec<Doubt>,
    flags: Flags,
    steps: usize,
    /// How many bytes variables have been expanded to.
    expanded: Cell<usize>,
    depth: usize,
    /// The wrappers around what is being walked.
    wrappers: Vec<String>,
    elsewhere: Option<String>,
    parent: Option<usize>,
    /// Where doubts go: the command that is being read.
    current: Option<usize>,
    /// States with which `break` and `continue` leave the loops around.
    loops: Vec<loops::Leaving>,
    /// States with which `return` leaves the functions around.
    returns: Vec<Option<State>>,
    /// The functions that are being called.
    calls: Vec<String>,
    /// What `local` has hidden, a list for each call.
    locals: Vec<Vec<(String, Option<state::Variable>)>>,
    /// Code for `trap`, with the place it was set.
    traps: Vec<(String, Span)>,
    /// How many shells that end earlier than the first one are around what is being walked.
    children: usize,
    /// Why the first shell may have been changed in ways that are not followed.
    lost: Option<String>,
    /// The first shell may have ended on the way.
    may_have_ended: bool,
    /// The directories that `cd` goes to, if it is taken to succeed.
    entered: Option<Vec<String>>,
    /// The functions that were called.
    called: BTreeSet<String>,
    /// Every function ever defined.
    functions: BTreeMap<String, Vec<Rc<Command>>>,
}

impl<'c> Evaluator<'c> {
    fn new(context: &'c Context<'c>, input: &'c Stream) -> Self {
        Evaluator {
            context,
            input,
            dialect: context.dialect,
            commands: Vec::new(),
            distinct: BTreeMap::new(),
            doubts: Vec::new(),
            flags: Flags::default(),
            steps: 0,
            expanded: Cell::new(0),
            depth: 0,
            wrappers: Vec::new(),
            elsewhere: None,
            parent: None,
            current: None,
            loops: Vec::new(),
            returns: Vec::new(),
            calls: Vec::new(),
            locals: Vec::new(),
            traps: Vec::new(),
            children: 0,
            lost: None,
            may_have_ended: false,
            entered: None,
            called: BTreeSet::new(),
            functions: BTreeMap::new(),
        }
    }

    /// Whether the work that may be done is done. Nothing more is walked then.
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
            self.doubt(&format!("more than {limit} commands"), span);
        }
    }

    /// Pays for words and bytes that are copied beside those of a command; whether they may be.
    fn charge(&mut self, words: usize, bytes: usize, span: &Span) -> bool {
        let before = self.exhausted();
        self.steps = self.steps.saturating_add(words / WORDS).saturating_add(bytes / BYTES);
        if self.exhausted() && !before {
            let current = self.current.take();
            self.doubt("more words than are followed", span);
            self.current = current;
        }
        !self.exhausted()
    }

    /// Notes that something is not understood, as an effect of the command at hand.
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

    /// Makes room for a command that is about to be read.
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
            parent: self.parent,
        });
        self.commands.len().saturating_sub(1)
    }

    /// Adds an effect to a command.
    fn add(&mut self, slot: usize, mut effect: Effect) {
        if self.elsewhere.is_some() && !effect.marks.contains(&Mark::Elsewhere) {
            effect.marks.push(Mark::Elsewhere);
            effect.marks.sort_unstable();
        }
        if effect.action == Action::Privilege {
            self.flags.privilege = true;
        }
        self.push(slot, effect);
    }

    /// Adds effects of which no two are the same.
    fn add_all(&mut self, slot: usize, effects: Vec<Effect>) {
        if self.elsewhere.is_none()
            && let Some(command) = self.commands.get_mut(slot)
            && command.effects.is_empty()
        {
            self.flags.privilege |= effects.iter().any(|effect| effect.action == Action::Privilege);
            command.effects = effects;
            return;
        }
        for effect in effects {
            self.add(slot, effect);
        }
    }

    /// What is done may change the first shell in ways that are not followed.
    fn loses_track(&mut self, why: &str) {
        if self.children == 0 && self.lost.is_none() {
            self.lost = Some(why.to_owned());
        }
    }

    /// Walks something in a shell of its own.
    fn in_child<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.children = self.children.saturating_add(1);
        let result = walk(self);
        self.children = self.children.saturating_sub(1);
        result
    }

    /// The state to start with in a shell that was there before.
    fn begin(&mut self, before: &ShellState, source: &str) -> State {
        if let Some(why) = before.why_lost() {
            let what = format!("an earlier call may have changed anything in this shell ({why})");
            self.in_child(|evaluator| evaluator.doubt(&what, &(0..source.len())));
        }
        before.restored(self.context.directory)
    }

    /// The state in which a shell that lives on is left.
    fn leave_shell(
        &mut self,
        before: &ShellState,
        end: Option<State>,
        input_changed: bool,
        source: &str,
    ) -> ShellState {
        let whole = 0..source.len();
        if before.runs_functions_later() && !self.functions.is_empty() {
            self.doubt("what was set earlier may run a function that is defined here", &whole);
        }
        let fresh = || State::new(self.context.directory);
        let end = match end {
            Some(end) if self.may_have_ended => end.join(fresh()),
            Some(end) => end,
            None => fresh(),
        };
        if end.input_changed && !input_changed {
            self.doubt("the shell would go on to read its commands from elsewhere", &whole);
        }
        ShellState::after(before, end, !self.traps.is_empty(), self.lost.take())
    }

    fn finish(self, state: Option<ShellState>) -> Analysis {
        let opaque = |command: &SimpleCommand| command.effects.iter().any(|effect| effect.action == Action::Opaque);
        let partial = !self.doubts.is_empty() || self.commands.iter().any(opaque);
        Analysis {
            commands: self.commands,
            coverage: if partial { Coverage::Partial } else { Coverage::Complete },
            doubts: self.doubts,
            flags: self.flags,
            state,
        }
    }
}

/// An effect that says: not understood.
fn opaque(why: &str, because: &str) -> Effect {
    Effect {
        action: Action::Opaque,
        target: Target::Text(why.to_owned()),
        marks: Vec::new(),
        because: because.to_owned(),
    }
}

/// An effect that says: this runs.
fn run(name: &str, origin: CodeOrigin, because: &str) -> Effect {
    Effect {
        action: Action::Run,
        target: Target::Program(Program { name: name.to_owned(), origin }),
        marks: Vec::new(),
        because: because.to_owned(),
    }
}
