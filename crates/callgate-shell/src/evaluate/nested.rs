//! What a command runs: wrapped words, shell source, functions, traps.

use super::Evaluator;
use super::simple::{By, Call};
use super::state::{Ends, State, Value, Variable, join};
use crate::programs::{Nested, NestedBody};
use crate::stream::Stream;
use crate::syntax::ast::{Command, Span};
use crate::syntax::{Dialect, parse_at};
use crate::word::Word;
use std::rc::Rc;
use std::sync::Arc;

/// How deeply function calls may be nested.
const CALLS: usize = 20;

/// The code of a trap, and where it was set.
pub(super) struct Trap {
    pub code: String,
    pub span: Span,
    pub dialect: Dialect,
    pub elsewhere: Option<String>,
}

impl Evaluator<'_> {
    /// Walks what a program runs. Returns its output.
    pub fn nested(
        &mut self,
        name: &str,
        nested: &Nested,
        call: &Call,
        directory: Option<&str>,
        state: &State,
    ) -> Stream {
        if self.depth >= self.context.limits.depth || self.wrappers.len() >= CALLS {
            self.doubt("nested too deeply", call.span);
            return Stream::Unknown;
        }
        let mut inner = self.child_state(nested, call, directory, state);
        let stdin = nested.stdin.as_ref().unwrap_or(call.stdin);
        let saved = (self.current, self.elsewhere.clone(), self.dialect);
        let around = (self.dropped.take(), std::mem::take(&mut self.left), std::mem::take(&mut self.tested));
        self.wrappers.push(name.to_owned());
        self.depth = self.depth.saturating_add(1);
        if nested.elsewhere.is_some() {
            self.elsewhere.clone_from(&nested.elsewhere);
        }
        self.children = self.children.saturating_add(1);
        let stdout = match &nested.body {
            NestedBody::Words(words) if self.charge(words.len(), 0, call.span) => {
                self.nested_words(words, nested, call, stdin, inner)
            }
            NestedBody::Words(_) => Stream::Unknown,
            NestedBody::Shell { source: Word::Known(source), parameters } => {
                self.dialect = match name {
                    "bash" | "rbash" => Dialect::Bash,
                    "sh" | "dash" | "ash" => Dialect::Sh,
                    _ => Dialect::Any,
                };
                let mut values = parameters.iter().map(Value::of_word);
                inner.zero = values.next();
                inner.positional = (!parameters.iter().any(Word::may_be_many)).then(|| values.collect());
                self.current = None;
                self.enclosed(|evaluator| evaluator.source(source, call.span, inner, stdin).1)
            }
            NestedBody::Shell { .. } => {
                self.current = Some(call.slot);
                self.doubt("runs unknown shell code", call.span);
                Stream::Unknown
            }
        };
        self.children = self.children.saturating_sub(1);
        self.depth = self.depth.saturating_sub(1);
        self.wrappers.pop();
        (self.current, self.elsewhere, self.dialect) = saved;
        (self.dropped, self.left, self.tested) = around;
        stdout
    }

    fn nested_words(&mut self, words: &[Word], nested: &Nested, call: &Call, stdin: &Stream, state: State) -> Stream {
        let slot = self.reserve(state.directory(), call.span);
        if let Some(entry) = self.commands.get_mut(slot) {
            entry.assignments.clone_from(&nested.environment);
        }
        self.current = Some(slot);
        for (name, value) in &nested.environment {
            self.environment_effect(name, value.known(), slot);
        }
        let inner = Call {
            words,
            assignments: &nested.environment,
            arrays: &[],
            slot,
            span: call.span,
            stdin,
            by: By::Program,
        };
        let (_, stdout) = self.dispatch(&inner, state);
        if let Some(entry) = self.commands.get_mut(slot) {
            entry.words = words.to_vec();
        }
        stdout
    }

    /// The state a child process starts with: what is exported, nothing else.
    fn child_state(&mut self, nested: &Nested, call: &Call, directory: Option<&str>, state: &State) -> State {
        let mut inner = State::new(directory);
        inner.path_changed = state.path_changed;
        inner.swayed = state.swayed;
        inner.anything_set = state.anything_set;
        if !state.variables.is_empty() {
            let unknown = Value::unknown("it may not be exported");
            let variables = state.variables.iter().map(|(name, variable)| {
                // It is unknown whether a variable from before is exported.
                let kept = variable.exported || self.context.variables.contains_key(&**name);
                (Arc::clone(name), if kept { variable.clone() } else { Variable::new(unknown.clone()) })
            });
            inner.variables = Arc::new(variables.collect());
        }
        for (name, word) in call.assignments.iter().chain(&nested.environment) {
            if let NestedBody::Shell { .. } = nested.body {
                self.check_assignment(name, &Value::of_word(word), call.span, state);
            }
            inner.set(name, Value::of_word(word));
            inner.variable_mut(name).exported = true;
        }
        if let NestedBody::Shell { .. } = nested.body {
            // A new shell starts with the usual separators.
            if inner.variables.contains_key("IFS") {
                Arc::make_mut(&mut inner.variables).remove("IFS");
            }
        }
        match &nested.directory {
            Some(Some(directory)) => inner.directories = Arc::from([Some(Arc::from(directory.as_str()))]),
            Some(None) => inner.directories = Arc::from([None]),
            None if nested.elsewhere.is_some() => inner.directories = Arc::from([None]),
            None => {}
        }
        if nested.elsewhere.is_some() {
            inner.variables = Arc::default();
        }
        inner
    }

    /// Walks shell source in the given state.
    pub fn source(&mut self, text: &str, span: &Span, state: State, stdin: &Stream) -> (Ends, Stream) {
        let parsed = parse_at(text, self.dialect, self.context.limits, Some(span.clone()), self.depth);
        let result = self.list(&parsed.script, state, stdin);
        if let Some(mistake) = parsed.mistake {
            self.doubt(&format!("cannot parse the shell code: {}", mistake.what), span);
        }
        result
    }

    pub fn call_function(&mut self, name: &str, body: &Rc<Command>, call: &Call, mut state: State) -> (Ends, Stream) {
        if self.calls.iter().any(|caller| caller == name) || self.calls.len() >= CALLS {
            self.doubt(&format!("the function `{name}` calls itself"), call.span);
            return (Ends::Either(self.forgotten(state)), Stream::Unknown);
        }
        let arguments = call.words.get(1..).unwrap_or(&[]);
        let positional = state.positional.clone();
        state.set_positional(arguments);
        let mut hidden = Vec::new();
        for (name, word) in call.assignments {
            hidden.push((name.clone(), state.variables.get(name.as_str()).cloned()));
            self.set(name, Value::of_word(word), call.span, &mut state);
            state.variable_mut(name).exported = true;
        }
        self.bodies.insert(Rc::as_ptr(body), true);
        self.calls.push(name.to_owned());
        self.returns.push(None);
        self.locals.push(hidden);
        let loops = std::mem::take(&mut self.loops);
        let (ends, stdout) = self.apart(|evaluator| evaluator.command(body, state, call.stdin));
        self.loops = loops;
        self.calls.pop();
        let returned = self.returns.pop().flatten();
        let hidden = self.locals.pop().unwrap_or_default();
        if let Some(dropped) = &mut self.dropped {
            // The function's own variables end with it.
            dropped.positional = None;
            for (name, _) in &hidden {
                dropped.set(name, Value::unknown("a function hid it"));
            }
        }
        let early = returned.is_some();
        let mut after = join(returned, ends.merged());
        after.positional = positional;
        let variables = Arc::make_mut(&mut after.variables);
        for (name, variable) in hidden.into_iter().rev() {
            match variable {
                Some(variable) => variables.insert(Arc::from(name), variable),
                None => variables.remove(name.as_str()),
            };
        }
        let stdout = match stdout {
            stdout if early => stdout.in_part(),
            other => other,
        };
        (Ends::Either(after), stdout)
    }

    /// Walks what nothing in the script starts: the code of traps, and functions that nothing calls. Both may define more.
    pub fn walk_the_rest(&mut self) {
        loop {
            let traps = std::mem::take(&mut self.traps);
            let walked = |body: &Rc<Command>| self.bodies.get(&Rc::as_ptr(body)) == Some(&true);
            let uncalled: Vec<(String, Rc<Command>)> = self
                .functions
                .iter()
                .flat_map(|(name, bodies)| bodies.iter().map(move |body| (name, body)))
                .filter(|(_, body)| !walked(body))
                .map(|(name, body)| (name.clone(), Rc::clone(body)))
                .collect();
            if traps.is_empty() && uncalled.is_empty() || self.exhausted() {
                return;
            }
            for trap in traps {
                self.walk_trap(trap);
            }
            for (name, body) in uncalled {
                self.walk_uncalled_function(name, &body);
            }
        }
    }

    /// Walks a function that nothing here calls, with unknown arguments: it is defined to be called later.
    fn walk_uncalled_function(&mut self, name: String, body: &Rc<Command>) {
        self.bodies.insert(Rc::as_ptr(body), true);
        let mut state = State::new(self.context.directory);
        state.forget_variables("a function is called later");
        self.calls.push(name);
        self.returns.push(None);
        self.locals.push(Vec::new());
        self.in_child(|evaluator| evaluator.command(body, state, &Stream::Unknown));
        self.locals.pop();
        self.returns.pop();
        self.calls.pop();
    }

    /// Walks the code of a trap: it runs at some later time, in some later state.
    fn walk_trap(&mut self, trap: Trap) {
        let mut state = State::new(None);
        state.forget_variables("a trap runs later");
        let functions = self.functions.iter().map(|(name, bodies)| {
            let only = match bodies.as_slice() {
                [body] => Some(Rc::clone(body)),
                _ => None,
            };
            (name.clone(), only)
        });
        state.functions = Rc::new(functions.collect());
        let saved = (self.dialect, self.elsewhere.clone());
        (self.dialect, self.elsewhere) = (trap.dialect, trap.elsewhere);
        self.source(&trap.code, &trap.span, state, &Stream::Unknown);
        (self.dialect, self.elsewhere) = saved;
    }
}
