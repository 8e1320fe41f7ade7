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
                self.dialect = if matches!(name, "sh" | "dash" | "ash") { Dialect::Sh } else { Dialect::Bash };
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
            inner.set(name, Value::of_word(word));
            inner.variable_mut(name).exported = true;
        }
        if let NestedBody::Shell { .. } = nested.body {
            for (name, word) in &nested.environment {
                self.environment_effect(name, word.known(), call.slot);
            }
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
            state.set(name, Value::of_word(word));
            state.variable_mut(name).exported = true;
        }
        self.called.insert(name.to_owned());
        self.calls.push(name.to_owned());
        self.returns.push(None);
        self.locals.push(hidden);
        let loops = std::mem::take(&mut self.loops);
        let (ends, stdout) = self.apart(|evaluator| evaluator.command(body, state, call.stdin));
        self.loops = loops;
        self.calls.pop();
        let returned = self.returns.pop().flatten();
        let hidden = self.locals.pop().unwrap_or_default();
        let early = returned.is_some();
        let mut after = join(ends.merged(), returned);
        if let Some(state) = &mut after {
            state.positional = positional;
            let variables = Arc::make_mut(&mut state.variables);
            for (name, variable) in hidden.into_iter().rev() {
                match variable {
                    Some(variable) => variables.insert(Arc::from(name), variable),
                    None => variables.remove(name.as_str()),
                };
            }
        }
        let stdout = match stdout {
            Stream::Text(text) if early && !text.is_empty() => Stream::Data,
            other => other,
        };
        (Ends::of(after), stdout)
    }

    /// Walks functions that nothing here calls, with unknown arguments: they are defined to be called later.
    /// If the agent keeps the shell, they are remembered instead, and the later call is doubtful.
    pub fn walk_uncalled_functions(&mut self) {
        let functions: Vec<(String, Vec<Rc<Command>>)> = self
            .functions
            .iter()
            .filter(|(name, _)| !self.called.contains(*name))
            .map(|(name, bodies)| (name.clone(), bodies.clone()))
            .collect();
        for (name, bodies) in functions {
            for body in bodies {
                let mut state = State::new(self.context.directory);
                state.forget_variables("a function is called later");
                state.positional = None;
                self.calls.push(name.clone());
                self.returns.push(None);
                self.locals.push(Vec::new());
                self.in_child(|evaluator| evaluator.command(&body, state, &Stream::Unknown));
                self.locals.pop();
                self.returns.pop();
                self.calls.pop();
            }
        }
    }

    /// Walks the code of traps: it runs at some later time, in some later state.
    pub fn run_traps(&mut self) {
        for (code, span) in std::mem::take(&mut self.traps) {
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
            self.source(&code, &span, state, &Stream::Unknown);
        }
    }
}
