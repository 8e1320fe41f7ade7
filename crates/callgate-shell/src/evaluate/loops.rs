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

/// A `for` or `select` loop.
#[derive(Clone, Copy)]
pub(super) struct ForLoop<'a> {
    pub name: &'a str,
    /// The items; `None`: the positional parameters.
    pub items: Option<&'a [SourceWord]>,
    pub body: &'a Script,
    /// It is a `select`.
    pub asks: bool,
    pub span: &'a Span,
}

impl Evaluator<'_> {
    /// Walks a body once. Returns the state at its end, `continue` included.
    fn round(&mut self, body: &Script, state: State, stdin: &Stream) -> State {
        let (ends, _) = self.list(body, state, stdin);
        let continued = self.loops.last_mut().and_then(|leaving| leaving.continued.take());
        join(continued.map(|state| *state), ends.merged())
    }

    fn leave(&mut self) -> Option<State> {
        self.loops.pop().and_then(|leaving| leaving.broken).map(|state| *state)
    }

    /// Walks rounds until the state before the loop covers every round. `step` walks one round and returns
    /// the state with which the loop ends, and the one with which it continues.
    fn settle(&mut self, state: State, mut step: impl FnMut(&mut Self, State) -> (State, State)) -> State {
        let mut entry = state;
        let mut round = 0;
        loop {
            let (done, goes_on) = step(self, entry.clone());
            let joined = entry.clone().join(goes_on);
            if joined == entry || round > ROUNDS || self.exhausted() {
                return done;
            }
            entry = joined;
            if round == ROUNDS {
                entry.forget_variables("a loop changes it");
                entry.directories = std::sync::Arc::from([None]);
            }
            round = round.saturating_add(1);
        }
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
            let (ends, _) = evaluator.tested(|evaluator| evaluator.list(condition, state, stdin));
            // `until` swaps success and failure; both are followed.
            let either = ends.merged();
            let goes_on = evaluator.round(body, either.clone(), stdin);
            (either, goes_on)
        });
        let broken = self.leave();
        if is_never_left(broken.as_ref()) && is_constant(condition) {
            self.doubt(ENDLESS, span);
        }
        (Ends::Either(join(broken, done)), LOOP_OUTPUT)
    }

    pub fn for_loop(&mut self, walked: &ForLoop, mut state: State, stdin: &Stream) -> (Ends, Stream) {
        let items = match walked.items {
            Some(sources) => self.words(sources, &mut state),
            None => match &state.positional {
                Some(values) => values.iter().map(Value::to_word).collect(),
                None => vec![Word::Unknown { why: "the arguments are unknown".to_owned(), many: true }],
            },
        };
        if walked.asks {
            state.set("REPLY", Value::unknown("a person's answer"));
        }
        self.loops.push(Leaving::default());
        let after = if walked.asks || items.len() > self.context.limits.unrolled {
            let value = items.iter().map(Value::of_word).reduce(|all, value| all.join(&value)).unwrap_or(Value::Unset);
            self.repeat(walked, &value, state, stdin)
        } else {
            self.unrolled(walked, &items, state, stdin)
        };
        let broken = self.leave();
        (Ends::Either(join(broken, after)), LOOP_OUTPUT)
    }

    fn unrolled(&mut self, walked: &ForLoop, items: &[Word], state: State, stdin: &Stream) -> State {
        if items.is_empty() {
            // The body does not run. It is judged all the same.
            let mut inside = state.clone().unreachable();
            self.set(walked.name, Value::Unset, walked.span, &mut inside);
            return state.join(self.round(walked.body, inside, stdin));
        }
        let mut current = state;
        for item in items {
            let value = Value::of_word(item);
            current = if item.may_be_many() {
                self.repeat(walked, &value, current, stdin)
            } else {
                self.set(walked.name, value, walked.span, &mut current);
                self.round(walked.body, current, stdin)
            };
            if current.unreachable || self.exhausted() {
                break;
            }
        }
        current
    }

    /// Walks any number of rounds with a value of this kind.
    fn repeat(&mut self, walked: &ForLoop, value: &Value, state: State, stdin: &Stream) -> State {
        self.settle(state, |evaluator, state| {
            let mut inside = state.clone();
            evaluator.set(walked.name, value.clone(), walked.span, &mut inside);
            let goes_on = evaluator.round(walked.body, inside, stdin);
            (state, goes_on)
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
            evaluate(evaluator, 2, &mut goes_on);
            (state, goes_on)
        });
        let broken = self.leave();
        let blank = |part: &Part| matches!(part, Part::Literal(text) if text.trim().is_empty());
        if is_never_left(broken.as_ref()) && expressions.get(1).is_none_or(|parts| parts.iter().all(blank)) {
            self.doubt(ENDLESS, span);
        }
        (Ends::Either(join(broken, done)), LOOP_OUTPUT)
    }
}

/// Whether nothing leaves a loop early.
fn is_never_left(broken: Option<&State>) -> bool {
    broken.is_none_or(|state| state.unreachable)
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
