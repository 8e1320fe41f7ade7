//! Loops: unrolled where the items are known, otherwise walked until the state no longer changes.

use super::Evaluator;
use super::state::{Ends, State, Value, join};
use crate::stream::Stream;
use crate::syntax::ast::{Argument, CommandKind, Part, Script, SourceWord, Span};
use crate::word::Word;

/// How often a loop is walked before everything it may change is forgotten.
const ROUNDS: usize = 4;

/// The doubt about a loop that nothing ends: it may start processes or fill the disk without limit.
const ENDLESS: &str = "an endless loop";

/// The output of a loop is not computed.
const LOOP_OUTPUT: Stream = Stream::Unknown;

/// The states in which a loop is left early. Boxed, because most loops are not.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    pub broken: Option<Box<State>>,
    pub continued: Option<Box<State>>,
}

impl Evaluator<'_> {
    /// Walks a body once. Returns the state at its end, `continue` included.
    fn round(&mut self, body: &Script, state: State, stdin: &Stream) -> Option<State> {
        let (ends, _) = self.list(body, state, stdin);
        let continued = self.loops.last_mut().and_then(|leaving| leaving.continued.take());
        join(ends.merged(), continued.map(|state| *state))
    }

    fn leave(&mut self) -> Option<State> {
        self.loops.pop().and_then(|leaving| leaving.broken).map(|state| *state)
    }

    /// Walks rounds until the state before the loop covers every round. `step` walks one round and returns
    /// the state with which the loop ends, and the one with which it continues.
    fn settle(
        &mut self,
        state: State,
        mut step: impl FnMut(&mut Self, State) -> (Option<State>, Option<State>),
    ) -> Option<State> {
        let mut entry = state;
        for round in 0.. {
            let (done, goes_on) = step(self, entry.clone());
            let Some(next) = goes_on else {
                return done;
            };
            let joined = entry.clone().join(next);
            if joined == entry || round > ROUNDS || self.exhausted() {
                return done;
            }
            entry = joined;
            if round == ROUNDS {
                entry.forget_variables("a loop changes it");
                entry.directories = std::sync::Arc::from([None]);
            }
        }
        None
    }

    pub fn while_loop(
        &mut self,
        condition: &Script,
        body: &Script,
        span: &Span,
        state: State,
        stdin: &Stream,
    ) -> (Ends, Stream) {
        self.loops.push(Leaving::default());
        let done = self.settle(state, |evaluator, state| {
            let (ends, _) = evaluator.list(condition, state, stdin);
            // `until` swaps success and failure; both are followed.
            let (success, failure) = ends.split();
            let either = join(success, failure);
            let goes_on = either.clone().and_then(|state| evaluator.round(body, state, stdin));
            (either, goes_on)
        });
        let broken = self.leave();
        if broken.is_none() && is_constant(condition) {
            self.doubt(ENDLESS, span);
        }
        (Ends::of(join(done, broken)), LOOP_OUTPUT)
    }

    pub fn for_loop(
        &mut self,
        name: &str,
        items: Option<&[SourceWord]>,
        body: &Script,
        asks: bool,
        mut state: State,
        stdin: &Stream,
    ) -> (Ends, Stream) {
        let items = match items {
            Some(sources) => self.words(sources, &mut state),
            None => match &state.positional {
                Some(values) => values.iter().map(Value::to_word).collect(),
                None => vec![Word::Unknown { why: "the arguments are unknown".to_owned(), many: true }],
            },
        };
        self.loops.push(Leaving::default());
        let after = if asks || items.len() > self.context.limits.unrolled {
            let value = items.iter().map(Value::of_word).reduce(|all, value| all.join(&value)).unwrap_or(Value::Unset);
            self.repeat(name, &value, body, state, stdin)
        } else {
            self.unrolled(name, &items, body, state, stdin)
        };
        let broken = self.leave();
        (Ends::of(join(after, broken)), LOOP_OUTPUT)
    }

    fn unrolled(&mut self, name: &str, items: &[Word], body: &Script, state: State, stdin: &Stream) -> Option<State> {
        let mut current = Some(state);
        for item in items {
            if self.exhausted() {
                break;
            }
            let mut state = current.take()?;
            let value = Value::of_word(item);
            current = if item.may_be_many() {
                self.repeat(name, &value, body, state, stdin)
            } else {
                state.set(name, value);
                self.round(body, state, stdin)
            };
        }
        current
    }

    /// Walks any number of rounds with a value of this kind.
    fn repeat(&mut self, name: &str, value: &Value, body: &Script, state: State, stdin: &Stream) -> Option<State> {
        self.settle(state, |evaluator, state| {
            let mut inside = state.clone();
            inside.set(name, value.clone());
            let goes_on = evaluator.round(body, inside, stdin);
            (Some(state), goes_on)
        })
    }

    pub fn arithmetic_loop(
        &mut self,
        expressions: &[Vec<Part>],
        body: &Script,
        span: &Span,
        mut state: State,
        stdin: &Stream,
    ) -> (Ends, Stream) {
        let evaluate = |evaluator: &mut Self, which: usize, state: &mut State| {
            if let Some(parts) = expressions.get(which) {
                evaluator.arithmetic(parts, span, state);
            }
        };
        evaluate(self, 0, &mut state);
        self.loops.push(Leaving::default());
        let done = self.settle(state, |evaluator, mut state| {
            evaluate(evaluator, 1, &mut state);
            let mut goes_on = evaluator.round(body, state.clone(), stdin);
            if let Some(state) = &mut goes_on {
                evaluate(evaluator, 2, state);
            }
            (Some(state), goes_on)
        });
        let broken = self.leave();
        let blank = |part: &Part| matches!(part, Part::Literal(text) if text.trim().is_empty());
        if broken.is_none() && expressions.get(1).is_none_or(|parts| parts.iter().all(blank)) {
            self.doubt(ENDLESS, span);
        }
        (Ends::of(join(done, broken)), LOOP_OUTPUT)
    }
}

/// Whether a condition is constant (`while :`, `until false`).
fn is_constant(condition: &Script) -> bool {
    let [item] = condition.items.as_slice() else {
        return false;
    };
    let [command] = item.first.commands.as_slice() else {
        return false;
    };
    item.rest.is_empty()
        && match &command.kind {
            CommandKind::Simple { words, .. } => match words.as_slice() {
                [Argument::Word(first)] | [Argument::Word(first), Argument::Word(_)] => {
                    matches!(first.plain(), Some(":" | "true" | "false"))
                }
                _ => false,
            },
            CommandKind::Arithmetic(parts) => {
                matches!(parts.as_slice(), [Part::Literal(text)] if text.trim().parse::<i64>().is_ok())
            }
            _ => false,
        }
}
