//! Lists, pipelines and compound commands.

use super::Evaluator;
use super::loops::ForLoop;
use super::redirections::may_fail;
use super::state::{Ends, State, Value, join};
use crate::stream::Stream;
use crate::syntax::Dialect;
use crate::syntax::ast::{Argument, Arm, Command, CommandKind, Connector, Item, Pipeline, Script, SourceWord};
use std::rc::Rc;

/// Joins what two commands print, one after the other.
fn together(first: Stream, second: Stream, certain: bool) -> Stream {
    match (first, second) {
        (Stream::Text(first), other) if first.is_empty() && certain => other,
        (other, Stream::Text(second)) if second.is_empty() => other,
        (Stream::Text(mut first), Stream::Text(second))
            if certain && first.len().saturating_add(second.len()) < 100_000 =>
        {
            first.push_str(&second);
            Stream::Text(first)
        }
        (Stream::Names(mut first), Stream::Names(second)) => {
            first.extend(second);
            first.sort();
            first.dedup();
            Stream::Names(first)
        }
        (Stream::Fetched, _) | (_, Stream::Fetched) => Stream::Fetched,
        (Stream::Unknown, _) | (_, Stream::Unknown) => Stream::Unknown,
        _ => Stream::Data,
    }
}

/// A stream that may be incomplete.
pub(super) fn uncertain(stream: Stream) -> Stream {
    stream.in_part()
}

/// Whether a command starts a shell by its plain name.
pub(super) fn is_shell(command: &Command) -> bool {
    let CommandKind::Simple { words, .. } = &command.kind else {
        return false;
    };
    match words.first() {
        Some(Argument::Word(word)) => word
            .plain()
            .filter(|name| name.ends_with("sh"))
            .and_then(|name| name.rsplit('/').next())
            .is_some_and(|name| matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "fish")),
        _ => false,
    }
}

/// Whether `set -e` ends the shell if this fails. It does not if the last command of a group fails after `&&`.
fn is_one_simple_command(item: &Item) -> bool {
    let simple = |command: &Command| matches!(command.kind, CommandKind::Simple { .. });
    item.rest.is_empty() && !item.first.negated && matches!(item.first.commands.as_slice(), [only] if simple(only))
}

impl Evaluator<'_> {
    /// Walks a list. Returns how it ends and what it prints.
    pub fn list(&mut self, script: &Script, state: State, stdin: &Stream) -> (Ends, Stream) {
        if self.depth >= self.context.limits.depth {
            let span = script
                .items
                .first()
                .and_then(|item| item.first.commands.first())
                .map_or(0..0, |command| command.span.clone());
            self.doubt("nested too deeply", &span);
            return (Ends::Either(state), Stream::Unknown);
        }
        self.depth = self.depth.saturating_add(1);
        let is_one =
            matches!(script.items.as_slice(), [] | [_]) && script.items.iter().all(|item| item.rest.is_empty());
        let result = match is_one {
            true => self.items(script, state, stdin),
            false => self.items(script, state, &stdin.clone().in_part()),
        };
        self.depth = self.depth.saturating_sub(1);
        result
    }

    fn items(&mut self, script: &Script, state: State, stdin: &Stream) -> (Ends, Stream) {
        let mut ends = Ends::Either(state);
        let mut stdout = Stream::Text(String::new());
        for item in &script.items {
            if self.exhausted() {
                break;
            }
            let mut state = ends.merged();
            if item.starts_line
                && let Some(dropped) = self.dropped.clone()
            {
                state = state.join(dropped);
            }
            if item.background {
                let nothing = Stream::Text(String::new());
                let (_, output) = self.in_child(|evaluator| evaluator.item(item, state.clone(), &nothing));
                stdout = together(stdout, uncertain(output), false);
                ends = Ends::Either(state);
                continue;
            }
            self.may_have_ended |= state.options.exits_on_error && self.children == 0;
            let strict = state.options.exits_on_error && self.tested == 0 && is_one_simple_command(item);
            let left = self.left;
            let (after, output) = self.item(item, state, stdin);
            stdout = if left { together(stdout, uncertain(output), false) } else { together(stdout, output, true) };
            self.left |= strict;
            ends = match after {
                Ends::Split(success, failure) if strict => Ends::Split(success, failure.unreachable()),
                other => other,
            };
        }
        (ends, stdout)
    }

    /// Walks something whose failure does not end the shell, even after `set -e`.
    pub fn tested<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.tested = self.tested.saturating_add(1);
        let result = walk(self);
        self.tested = self.tested.saturating_sub(1);
        result
    }

    fn item(&mut self, item: &Item, state: State, stdin: &Stream) -> (Ends, Stream) {
        let mut rest = item.rest.iter().peekable();
        let (mut ends, mut stdout) = match rest.peek() {
            Some(_) => self.tested(|evaluator| evaluator.pipeline(&item.first, state, stdin)),
            None => self.pipeline(&item.first, state, stdin),
        };
        while let Some((connector, pipeline)) = rest.next() {
            let (success, failure) = ends.split();
            let (goes_on, aside) = match connector {
                Connector::And => (success, failure),
                Connector::Or => (failure, success),
            };
            let (after, output) = match rest.peek() {
                Some(_) => self.tested(|evaluator| evaluator.pipeline(pipeline, goes_on, stdin)),
                None => self.pipeline(pipeline, goes_on, stdin),
            };
            stdout = together(stdout, uncertain(output), false);
            ends = match (connector, after) {
                // Nothing changed: no need to keep two copies.
                (_, Ends::Either(state)) if state == aside => Ends::Either(state),
                (Connector::And, after) => {
                    let (success, failure) = after.split();
                    Ends::Split(success, aside.join(failure))
                }
                (Connector::Or, after) => {
                    let (success, failure) = after.split();
                    Ends::Split(aside.join(success), failure)
                }
            };
        }
        (ends, stdout)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: State, stdin: &Stream) -> (Ends, Stream) {
        if pipeline.negated {
            let (ends, stdout) = self.tested(|evaluator| evaluator.positive_pipeline(pipeline, state, stdin));
            return (ends.negated(), stdout);
        }
        self.positive_pipeline(pipeline, state, stdin)
    }

    fn positive_pipeline(&mut self, pipeline: &Pipeline, state: State, stdin: &Stream) -> (Ends, Stream) {
        if pipeline.timed {
            self.wrappers.push("time".to_owned());
        }
        let (ends, stdout) = match pipeline.commands.as_slice() {
            [] => (Ends::Either(state), Stream::Text(String::new())),
            [only] => {
                if pipeline.negated && is_shell(only) {
                    self.doubt("`!` inverts the exit status of a shell", &only.span);
                }
                self.command(only, state, stdin)
            }
            several => {
                let mut stream = stdin.clone();
                let mut state = state;
                for (place, command) in several.iter().enumerate() {
                    if place > 0 && matches!(&stream, Stream::Text(text) if !text.is_empty()) && is_shell(command) {
                        self.doubt("text is piped into a shell", &command.span);
                    }
                    if stream == Stream::Environment && !matches!(command.kind, CommandKind::Simple { .. }) {
                        self.doubt("the environment, which may hold secrets, is read line by line", &command.span);
                    }
                    let (ends, output) = self.in_child(|evaluator| evaluator.command(command, state.clone(), &stream));
                    if place.saturating_add(1) == several.len() && self.dialect == Dialect::Any {
                        // zsh runs the last command of a pipeline in the shell itself.
                        state = state.join(ends.merged());
                    }
                    stream = match output {
                        Stream::Text(_) | Stream::Names(_) | Stream::File(_) if command.pipes_errors => Stream::Data,
                        other => other,
                    };
                }
                (Ends::Either(state), stream)
            }
        };
        if pipeline.timed {
            self.wrappers.pop();
        }
        if stdout == Stream::Environment
            && let Some(last) = pipeline.commands.last()
        {
            let why = "prints the whole environment, which may hold secrets; name the variables that are needed (printenv PATH)";
            self.doubt(why, &last.span);
        }
        (ends, stdout)
    }

    /// Walks commands whose changes to the shell's state are lost. Returns what they print.
    pub fn in_subshell(&mut self, script: &Script, state: State, stdin: &Stream) -> Stream {
        let list = |evaluator: &mut Self| evaluator.list(script, state, stdin).1;
        self.enclosed(|evaluator| evaluator.in_child(list))
    }

    pub fn command(&mut self, command: &Command, state: State, stdin: &Stream) -> (Ends, Stream) {
        if let CommandKind::Simple { assignments, words } = &command.kind {
            return self.simple(assignments, words, command, state, stdin);
        }
        self.spend(0, 0, &command.span);
        let mut state = state;
        let before = (!command.redirections.is_empty()).then(|| state.clone());
        let mut input = stdin.clone();
        let mut away = super::redirections::StandardOutput::Kept;
        if !command.redirections.is_empty() {
            let slot = self.reserve(None, &command.span);
            let current = self.current.replace(slot);
            let redirected = self.redirect(&command.redirections, &mut state, slot);
            self.current = current;
            away = redirected.output;
            input = redirected.stdin.unwrap_or(input);
        }
        // Several commands share it, so none is certain to read all of it.
        let shared = input.in_part();
        let (ends, stdout) = self.compound(command, state, &shared);
        let ends = match before {
            Some(before) => ends.or_failed(before),
            None => ends,
        };
        (ends, away.apply(if may_fail(&command.redirections) { uncertain(stdout) } else { stdout }))
    }

    fn compound(&mut self, command: &Command, mut state: State, stdin: &Stream) -> (Ends, Stream) {
        match &command.kind {
            CommandKind::Simple { .. } => (Ends::Either(state), Stream::Unknown),
            CommandKind::Subshell(body) => {
                let stdout = self.in_subshell(body, state.clone(), stdin);
                (Ends::Either(state), stdout)
            }
            CommandKind::Group(body) => self.list(body, state, stdin),
            CommandKind::If { branches, otherwise } => self.branches(branches, otherwise.as_ref(), state, stdin),
            CommandKind::While { condition, body } => self.while_loop(condition, body, &command.span, state, stdin),
            CommandKind::For { name, items, body, asks } => {
                let walked = ForLoop { name, items: items.as_deref(), body, asks: *asks, span: &command.span };
                self.for_loop(&walked, state, stdin)
            }
            CommandKind::ArithmeticFor { expressions, body } => {
                self.arithmetic_loop(expressions, body, &command.span, state, stdin)
            }
            CommandKind::Case { subject, arms } => self.case(subject, arms, state, stdin),
            CommandKind::Arithmetic(parts) => {
                self.arithmetic(parts, &command.span, &mut state);
                (Ends::Either(state), Stream::Text(String::new()))
            }
            CommandKind::Conditional(condition) => {
                self.condition(condition, &command.span, &mut state);
                (Ends::Either(state), Stream::Text(String::new()))
            }
            CommandKind::Function { name, body } => {
                if self.language().calls_function(name) {
                    self.doubt(&format!("the shell itself calls a function named `{name}`"), &command.span);
                }
                let walked = self.bodies.entry(Rc::as_ptr(body));
                if let std::collections::btree_map::Entry::Vacant(entry) = walked {
                    entry.insert(false);
                    self.functions.entry(name.clone()).or_default().push(Rc::clone(body));
                }
                Rc::make_mut(&mut state.functions).insert(name.clone(), Some(Rc::clone(body)));
                (Ends::Either(state), Stream::Text(String::new()))
            }
            CommandKind::Coprocess { name, body } => {
                if is_shell(body) {
                    self.doubt("a shell runs as a coprocess and reads commands from a descriptor", &body.span);
                }
                self.in_child(|evaluator| evaluator.command(body, state.clone(), &Stream::Unknown));
                self.set(name, Value::unknown("descriptors of a coprocess"), &command.span, &mut state);
                state.set(&format!("{name}_PID"), Value::Number);
                (Ends::Either(state), Stream::Unknown)
            }
        }
    }

    fn branches(
        &mut self,
        branches: &[(Script, Script)],
        otherwise: Option<&Script>,
        state: State,
        stdin: &Stream,
    ) -> (Ends, Stream) {
        let mut waiting = state;
        let mut after = None;
        let mut stdout = Stream::Text(String::new());
        for (condition, body) in branches {
            let (ends, output) = self.tested(|evaluator| evaluator.list(condition, waiting, stdin));
            stdout = together(stdout, uncertain(output), false);
            let (success, failure) = ends.split();
            let (ends, output) = self.list(body, success, stdin);
            stdout = together(stdout, uncertain(output), false);
            after = Some(join(after, ends.merged()));
            waiting = failure;
        }
        if let Some(body) = otherwise {
            let (ends, output) = self.list(body, waiting, stdin);
            stdout = together(stdout, uncertain(output), false);
            waiting = ends.merged();
        }
        (Ends::Either(join(after, waiting)), stdout)
    }

    fn case(&mut self, subject: &SourceWord, arms: &[Arm], mut state: State, stdin: &Stream) -> (Ends, Stream) {
        self.single(&subject.parts, &mut state);
        let mut after = None;
        let mut falling: Option<State> = None;
        let mut stdout = Stream::Text(String::new());
        for arm in arms {
            for pattern in &arm.patterns {
                self.single(&pattern.parts, &mut state);
            }
            // After `;;&` any later arm may run, not only the next one.
            let entry = join(falling.clone(), state.clone());
            let (ends, output) = self.list(&arm.body, entry, stdin);
            stdout = together(stdout, uncertain(output), false);
            let end = ends.merged();
            if arm.falls_through {
                falling = Some(join(falling, end.clone()));
            }
            after = Some(join(after, end));
        }
        (Ends::Either(join(after, state)), stdout)
    }
}
