//! Simple commands: their words, assignments and redirections, and who runs them.

use super::control::uncertain;
use super::redirections::may_fail;
use super::state::{Ends, State, Value};
use super::{Evaluator, opaque, run};
use crate::effect::{Action, CodeOrigin, Effect, Mark};
use crate::environment::influence;
use crate::stream::Stream;
use crate::syntax::ast::{Argument, AssignedValue, Assignment, Command, Part, RedirectionKind, SourceWord, Span};
use crate::syntax::{DECLARATIONS, Dialect};
use crate::word::Word;
use std::sync::Arc;

/// A command after expansion.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub words: &'a [Word],
    /// Variables for this command alone.
    pub assignments: &'a [(String, Word)],
    /// Arrays among the arguments of a declaration.
    pub arrays: &'a [&'a Assignment],
    pub slot: usize,
    pub span: &'a Span,
    pub stdin: &'a Stream,
    /// What may run it.
    pub by: By,
}

/// Who may run a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Functions, builtins and programs.
    Shell,
    /// Builtins and programs (`command`).
    NoFunction,
    /// Programs (what a wrapper runs).
    Program,
}

impl Evaluator<'_> {
    pub fn simple(
        &mut self,
        assignments: &[Assignment],
        arguments: &[Argument],
        command: &Command,
        mut state: State,
        stdin: &Stream,
    ) -> (Ends, Stream) {
        let first = self.commands.len();
        let slot = self.reserve(state.directory(), &command.span);
        let outer = self.current.replace(slot);

        if let Some(Argument::Word(name)) = arguments.first()
            && self.alternatives(name).is_some()
        {
            self.doubt("the program name comes from a brace expansion", &command.span);
        }
        if super::control::is_shell(command)
            && command.redirections.iter().any(|other| match &other.kind {
                RedirectionKind::HereString(_) => true,
                RedirectionKind::Read(source) => matches!(source.parts.as_slice(), [Part::Process { .. }]),
                _ => false,
            })
        {
            self.doubt("a shell reads its commands from a here-string or a process substitution", &command.span);
        }
        let (words, arrays) = self.arguments(arguments, &mut state);
        let bytes: usize = words.iter().map(|word| word.known().map_or(0, str::len)).sum();
        self.spend(words.len(), bytes, &command.span);
        let before = (!command.redirections.is_empty()).then(|| state.clone());
        let redirected = self.redirect(&command.redirections, &mut state, slot);
        let input = match &redirected.stdin {
            Some(stream) => stream,
            None if state.input_changed => &Stream::Unknown,
            None => stdin,
        };
        let result = if words.is_empty() && arguments.is_empty() {
            self.assign_all(assignments, slot, &mut state);
            let reads = !command.redirections.is_empty();
            (Ends::Either(state), if reads { Stream::Data } else { Stream::Text(String::new()) })
        } else {
            let reads = words.first().and_then(Word::known) == Some("read") && !state.functions.contains_key("read");
            let temporary = self.temporary(assignments, reads, &mut state);
            let call = Call {
                words: &words,
                assignments: &temporary,
                arrays: &arrays,
                slot,
                span: &command.span,
                stdin: input,
                by: By::Shell,
            };
            let outcome = self.dispatch(&call, state);
            if let Some(entry) = self.commands.get_mut(slot) {
                entry.assignments = temporary;
            }
            outcome
        };
        // A command that prints nothing empties the file it is redirected to. The redirections of `exec` are for later commands.
        let prints_nothing = matches!(&result.1, Stream::Text(text) if text.is_empty());
        if words.is_empty() || prints_nothing && words.first().and_then(Word::known) != Some("exec") {
            self.cuts_files(slot);
        }
        if result.1 == Stream::Environment
            && self.commands.get(slot).is_some_and(|entry| entry.effects.iter().any(writes_by_redirection))
        {
            self.doubt("the environment, which may contain secrets, is written to a file", &command.span);
        }
        if let Some(entry) = self.commands.get_mut(slot) {
            entry.words = words;
        }
        if result.1 == Stream::Endless
            && self.commands.get(slot).is_some_and(|entry| entry.effects.iter().any(writes_by_redirection))
        {
            self.doubt("endless output fills the disk", &command.span);
        }
        self.current = outer;
        self.drop_repeated(slot, first);
        let ends = match before {
            Some(before) => result.0.or_failed(before),
            None => result.0,
        };
        let stdout = if may_fail(&command.redirections) { uncertain(result.1) } else { result.1 };
        (ends, redirected.output.apply(stdout))
    }

    /// Turns the writes of redirections into deletions: the files are emptied.
    fn cuts_files(&mut self, slot: usize) {
        self.distinct.remove(&slot);
        let effects = self.commands.get_mut(slot).map(|entry| entry.effects.iter_mut());
        for effect in effects.into_iter().flatten() {
            if effect.action == Action::Write && effect.marks.contains(&Mark::Redirection) {
                effect.action = Action::Delete;
            }
        }
    }

    /// Drops a repetition of a command that adds nothing: loops are walked more than once.
    fn drop_repeated(&mut self, slot: usize, first: usize) {
        let last = self.commands.len().saturating_sub(1);
        if slot != first || slot != last {
            return;
        }
        let Some((new, old)) = self.commands.split_last() else {
            return;
        };
        let nothing = new.words.is_empty() && new.effects.is_empty() && new.assignments.is_empty();
        let repeated = || old.iter().rev().take(64).any(|command| command.span == new.span && command == new);
        if nothing || repeated() {
            self.commands.pop();
            self.distinct.remove(&slot);
        }
    }

    fn arguments<'a>(&mut self, arguments: &'a [Argument], state: &mut State) -> (Vec<Word>, Vec<&'a Assignment>) {
        let mut words = Vec::with_capacity(arguments.len());
        let mut arrays = Vec::new();
        let declares = match arguments.first() {
            Some(Argument::Word(word)) => word.plain().is_some_and(|name| DECLARATIONS.contains(&name)),
            _ => false,
        };
        for argument in arguments {
            match argument {
                // `dash` splits such a word.
                Argument::Word(source) if declares && assigns(source) && self.dialect != Dialect::Sh => {
                    // Braces count even here: `export x={a,b}` assigns twice.
                    let several = self.alternatives(source).unwrap_or_else(|| vec![source.parts.clone()]);
                    if several.len() > 1 && self.dialect == Dialect::Any {
                        self.doubt("zsh does not expand braces in an assignment", &source.span);
                    }
                    for parts in several {
                        words.push(self.assigned_text(&parts, state).into_word(false));
                    }
                }
                Argument::Word(source) => self.word(source, state, &mut words),
                Argument::Assignment(assignment) => arrays.push(assignment.as_ref()),
            }
        }
        (words, arrays)
    }

    /// Evaluates the assignments before a command. `IFS` before `read` only changes how `read` splits its line.
    fn temporary(&mut self, assignments: &[Assignment], reads: bool, state: &mut State) -> Vec<(String, Word)> {
        let mut temporary = Vec::new();
        for assignment in assignments {
            let word = match &assignment.value {
                AssignedValue::Word(source) => self.assigned_text(&source.parts, state).into_word(false),
                AssignedValue::Array(elements) => {
                    self.array_elements(elements, false, state);
                    Word::Unknown { why: "an array".to_owned(), many: false }
                }
            };
            if let Some(index) = &assignment.index {
                self.array_index(index, &assignment.span, state);
            }
            let word = if assignment.appends {
                Word::Unknown { why: "something was appended to it".to_owned(), many: false }
            } else {
                word
            };
            if !(reads && assignment.name == "IFS") {
                self.check_assignment(&assignment.name, &Value::of_word(&word), &assignment.span, state);
            }
            temporary.push((assignment.name.clone(), word));
        }
        temporary
    }

    /// Evaluates assignments without a command.
    fn assign_all(&mut self, assignments: &[Assignment], slot: usize, state: &mut State) {
        for assignment in assignments {
            let value = self.assign(assignment, state);
            if let Some(entry) = self.commands.get_mut(slot) {
                entry.assignments.push((assignment.name.clone(), value.to_word()));
            }
        }
    }

    /// Carries out one assignment and returns the new value.
    pub fn assign(&mut self, assignment: &Assignment, state: &mut State) -> Value {
        let name = assignment.name.as_str();
        let keyed = state.variables.get(name).is_some_and(|variable| variable.keyed);
        match &assignment.value {
            AssignedValue::Array(sources) => {
                let elements = self.array_elements(sources, keyed, state);
                let earlier = match assignment.appends {
                    true if state.variables.contains_key(name) => state.variable_mut(name).elements.take(),
                    true => None,
                    false => Some(Vec::new()),
                };
                let elements = earlier.zip(elements).map(|(mut earlier, elements)| {
                    earlier.extend(elements);
                    earlier
                });
                let first = match &elements {
                    // In zsh the name alone stands for all elements.
                    Some(_) if self.dialect == Dialect::Any => Value::unknown("an array"),
                    Some(elements) => elements.first().cloned().unwrap_or(Value::Unset),
                    None => Value::unknown("an array"),
                };
                self.check_assignment(name, &Value::unknown("an array"), &assignment.span, state);
                state.set(name, first.clone());
                let variable = state.variable_mut(name);
                (variable.elements, variable.array) = (elements, true);
                if !variable.fixed {
                    variable.value = first;
                }
                Value::unknown("an array")
            }
            AssignedValue::Word(source) => {
                let value = self.assigned_text(&source.parts, state).value();
                match &assignment.index {
                    Some(index) => {
                        // The first element of `PATH` is `PATH`.
                        self.check_assignment(name, &Value::unknown("an array"), &assignment.span, state);
                        state.swayed |= influence(name, None).is_some();
                        state.path_changed |= name == "PATH";
                        self.assign_element(name, index, value, assignment, state)
                    }
                    None => self.assign_value(name, value, assignment.appends, &assignment.span, state),
                }
            }
        }
    }

    fn array_elements(
        &mut self,
        sources: &[(Option<Vec<Part>>, SourceWord)],
        keyed: bool,
        state: &mut State,
    ) -> Option<Vec<Value>> {
        let mut known = !keyed;
        let mut words = Vec::new();
        for (index, source) in sources {
            match index {
                Some(index) => {
                    known = false;
                    if keyed {
                        self.key(index, &source.span, state);
                    } else {
                        self.array_index(index, &source.span, state);
                    }
                    self.single(&source.parts, state);
                }
                None => self.word(source, state, &mut words),
            }
        }
        (known && !words.iter().any(Word::may_be_many)).then(|| words.iter().map(Value::of_word).collect())
    }

    /// Gives a variable a value.
    pub fn assign_value(&mut self, name: &str, value: Value, appends: bool, span: &Span, state: &mut State) -> Value {
        let value = match (appends, self.lookup(name, state), value) {
            (false, _, value) => value,
            (true, Value::Unset, value) => value,
            (true, Value::Text(old), Value::Text(new)) if self.charge(0, old.len(), span) => {
                Value::text(&[&*old, &*new].concat())
            }
            (true, Value::Text(_), Value::Text(_)) => Value::unknown("something was appended to it"),
            (true, Value::Text(old), _) if !old.is_empty() => {
                Value::Prefix(old, Arc::from("something was appended to it"))
            }
            (true, _, _) => Value::unknown("something was appended to it"),
        };
        self.set(name, value.clone(), span, state);
        value
    }

    fn assign_element(
        &mut self,
        name: &str,
        index: &[Part],
        value: Value,
        assignment: &Assignment,
        state: &mut State,
    ) -> Value {
        if state.variables.get(name).is_some_and(|variable| variable.keyed) {
            self.key(index, &assignment.span, state);
            return Value::unknown("an array");
        }
        let place = self.array_index(index, &assignment.span, state);
        if place.is_none() {
            self.may_drop_line(state);
        }
        if state.variables.get(name).is_none() {
            state.set(name, Value::unknown("an array"));
        }
        let variable = state.variable_mut(name);
        variable.array = true;
        variable.value = Value::unknown("an array");
        if let (Some(mut elements), Some(place), false) = (variable.elements.take(), place, assignment.appends)
            && place <= elements.len()
        {
            elements.splice(place..elements.len().min(place.saturating_add(1)), [value]);
            variable.elements = Some(elements);
        }
        Value::unknown("an array")
    }

    /// Adds an effect if a variable changes what runs.
    pub fn environment_effect(&mut self, name: &str, value: Option<&str>, slot: usize) {
        if let Some(what) = influence(name, value) {
            self.add(slot, opaque(&format!("{name} {what}"), "environment").marked(Mark::Environment));
        }
    }

    /// Runs a command as a function, a builtin or a program.
    pub fn dispatch(&mut self, call: &Call, state: State) -> (Ends, Stream) {
        let name = match call.words.first() {
            Some(Word::Known(name)) if !name.is_empty() => name.as_str(),
            Some(_) => {
                self.doubt("the program name is unknown", call.span);
                return (Ends::Either(self.forgotten(state)), Stream::Unknown);
            }
            // Everything expanded to nothing.
            None => return (Ends::Either(state), Stream::Text(String::new())),
        };
        if state.aliases.contains(name) && call.by == By::Shell {
            self.doubt(&format!("`{name}` may be an alias"), call.span);
        }
        if call.by == By::Shell
            && let Some(function) = state.functions.get(name)
        {
            return match function.clone() {
                Some(body) => {
                    self.add(call.slot, run(name, CodeOrigin::Defined, "function"));
                    self.call_function(name, &body, call, state)
                }
                None => {
                    self.doubt(&format!("`{name}` may be a shell function whose code is unknown"), call.span);
                    (Ends::Either(self.forgotten(state)), Stream::Unknown)
                }
            };
        }
        match call.by {
            By::Program => self.program(name, call, state),
            By::Shell | By::NoFunction => self.builtin_or_program(name, call, state),
        }
    }

    /// Returns the state after something that may have changed any variable.
    pub fn forgotten(&self, mut state: State) -> State {
        state.forget_variables("an unknown command may have changed it");
        state
    }
}

fn writes_by_redirection(effect: &Effect) -> bool {
    effect.action == Action::Write && effect.marks.contains(&Mark::Redirection)
}

/// Whether a word looks like an assignment before expansion.
fn assigns(source: &SourceWord) -> bool {
    match source.parts.first() {
        Some(Part::Literal(text)) => {
            let name = text.split(['=', '+', '[']).next().unwrap_or("");
            let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            named && text.contains('=')
        }
        _ => false,
    }
}
