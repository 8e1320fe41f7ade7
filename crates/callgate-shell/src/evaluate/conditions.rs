//! `[[ … ]]`, and what `test` may run.

use super::Evaluator;
use super::language::is_number_word;
use super::state::{State, Value};
use crate::syntax::Dialect;
use crate::syntax::ast::{Span, TestExpression};
use crate::syntax::is_name;
use crate::word::{PLAIN, Word, is_number};

/// Whether `-v` only looks up a variable of this name.
fn is_plain_name(text: &str) -> bool {
    is_name(text) || text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Evaluator<'_> {
    /// Evaluates a condition: its substitutions run, and its arithmetic may run code.
    pub fn condition(&mut self, condition: &TestExpression, span: &Span, state: &mut State) {
        match condition {
            TestExpression::Both(left, _, right) => {
                self.condition(left, span, state);
                let mut aside = state.clone();
                self.condition(right, span, &mut aside);
                *state = std::mem::replace(state, State::new(None)).join(aside);
            }
            TestExpression::Not(inner) => self.condition(inner, span, state),
            TestExpression::Word(word) => {
                self.single(&word.parts, state);
            }
            TestExpression::Unary(operator, word) => {
                let value = self.value(&word.parts, state);
                let plain = value.known().is_some_and(is_plain_name);
                if matches!(operator.as_str(), "-v" | "-R") && !plain {
                    self.doubt("`-v` with an unknown name may run code", span);
                }
            }
            TestExpression::Binary(left, operator, right) => {
                let values = [self.value(&left.parts, state), self.value(&right.parts, state)];
                if operator.starts_with('-') && !matches!(operator.as_str(), "-nt" | "-ot" | "-ef") {
                    for value in values {
                        match value {
                            Value::Text(text) => {
                                self.expression(&text, span, state);
                            }
                            Value::Number | Value::Unset => {}
                            Value::Glob(pattern) if is_number(&pattern) => {}
                            _ => self.doubt("a numeric comparison with an unknown value may run code", span),
                        }
                    }
                }
            }
        }
    }

    /// Checks the numbers of `test` and `[`, which zsh evaluates.
    fn look_into_numbers(&mut self, words: &[Word], span: &Span) {
        const COMPARISONS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        for window in words.windows(3) {
            if let [left, Word::Known(operator), right] = window
                && COMPARISONS.contains(&operator.as_str())
                && !(is_number_word(left) && is_number_word(right))
            {
                self.doubt("zsh evaluates the numbers that `test` compares, which may run code", span);
            }
        }
    }

    /// Checks the words of `test` and `[`: `-v 'a[$(x)]'` runs code.
    pub fn look_into_test(&mut self, words: &[Word], span: &Span) {
        const OPERATORS: [&str; 18] = [
            "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o", ")",
            "]",
        ];
        if self.dialect == Dialect::Any {
            self.look_into_numbers(words, span);
        }
        let mut arguments = words.iter().skip(1).peekable();
        let mut previous: Option<&str> = None;
        while let Some(word) = arguments.next() {
            let risky = match word {
                Word::Known(operator) if matches!(operator.as_str(), "-v" | "-R") => {
                    let plain = |word: &&Word| word.known().is_some_and(is_plain_name);
                    arguments.peek().is_some_and(|word| !plain(word))
                }
                Word::Known(_) => false,
                Word::Glob(pattern) if is_number(pattern) || pattern == PLAIN => false,
                // File names may be `-v` and `a[$(x)]`, unless an operator precedes them.
                Word::Glob(pattern) => {
                    let first = previous.is_none_or(|word| matches!(word, "!" | "(" | "-a" | "-o"));
                    first && (pattern.contains(['[', '(']) || pattern.chars().all(|one| "*?-vR".contains(one)))
                }
                Word::Below { many, .. } | Word::Partly { many, .. } => *many,
                // It may be `-v`.
                Word::Unknown { many, .. } => {
                    let operator = |word: &&Word| word.known().is_some_and(|text| OPERATORS.contains(&text));
                    *many || arguments.peek().is_some_and(|next| !operator(next))
                }
            };
            previous = Some(word.known().unwrap_or(""));
            if risky {
                self.doubt("`test` with unknown words may run code", span);
                return;
            }
        }
    }
}
