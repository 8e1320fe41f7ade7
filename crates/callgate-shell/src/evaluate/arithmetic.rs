//! Arithmetic. Variables are looked up by name, and an array index inside a value runs code, so a
//! value that may not be a number is a doubt.

use super::Evaluator;
use super::pieces::Piece;
use super::state::{State, Value};
use crate::cursor::Cursor;
use crate::syntax::Dialect;
use crate::syntax::ast::{Part, Span};
use crate::word::is_number;

/// Longer expressions are not evaluated.
const LONGEST: usize = 2_000;

/// Represents an unknown number in the text of an expression.
const SOME_NUMBER: char = '\u{1}';

/// A result; `None`: an unknown number.
type Number = Option<i64>;

/// Something in an expression that is not understood.
struct Unclear(&'static str);

const NOT_PARSED: Unclear = Unclear("the arithmetic expression cannot be parsed");

impl Evaluator<'_> {
    /// Evaluates an expression to a number, or to an unknown value with a doubt.
    pub fn arithmetic(&mut self, parts: &[Part], span: &Span, state: &mut State) -> Value {
        let mut text = String::new();
        let field = self.single(parts, state);
        for piece in &field.pieces {
            match piece {
                Piece::Text { text: more, .. } => text.push_str(more),
                Piece::Number => text.push(SOME_NUMBER),
                Piece::Pattern { pattern, .. } if is_number(pattern) => {
                    // A program that fails prints nothing.
                    self.may_drop_line(state);
                    text.push(SOME_NUMBER);
                }
                _ => {
                    return self.doubt_value("an unknown value in an arithmetic expression may run code", span);
                }
            }
        }
        self.expression(&text, span, state)
    }

    /// Evaluates the text of an expression.
    pub fn expression(&mut self, text: &str, span: &Span, state: &mut State) -> Value {
        if text.len() > LONGEST {
            return self.doubt_value("the arithmetic expression is too long", span);
        }
        // Only these operators can fail on numbers.
        let before = text.contains(['/', '%', '*']).then(|| state.clone());
        let mut reader = ExpressionReader {
            cursor: Cursor::new(text),
            depth: 0,
            unsure: 0,
            may_fail: false,
            assigned: Vec::new(),
            evaluator: self,
            state,
        };
        let result = reader.whole();
        let ExpressionReader { may_fail, assigned, .. } = reader;
        if let Some(before) = before.filter(|_| may_fail) {
            self.may_drop_line(&before);
        }
        for name in assigned {
            self.check_assignment(&name, &Value::Number, span, state);
        }
        match result {
            Ok(Some(number)) => Value::text(&number.to_string()),
            Ok(None) => Value::Number,
            Err(Unclear(why)) => self.doubt_value(why, span),
        }
    }
}

struct ExpressionReader<'r, 'c> {
    cursor: Cursor,
    depth: usize,
    /// How many enclosing parts may not be evaluated.
    unsure: usize,
    /// The expression may be wrong, so that the shell drops the rest of the line.
    may_fail: bool,
    /// The variables that were assigned to.
    assigned: Vec<String>,
    evaluator: &'r Evaluator<'c>,
    state: &'r mut State,
}

/// Operators from loosest to tightest.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl ExpressionReader<'_, '_> {
    fn whole(&mut self) -> Result<Number, Unclear> {
        self.blanks();
        if self.cursor.peek().is_none() {
            return Ok(Some(0));
        }
        let value = self.list()?;
        if self.cursor.peek().is_some() { Err(NOT_PARSED) } else { Ok(value) }
    }

    /// Assignments with commas between them; the last one counts.
    fn list(&mut self) -> Result<Number, Unclear> {
        let mut value = self.assignment()?;
        while self.take(",") {
            value = self.assignment()?;
        }
        Ok(value)
    }

    fn blanks(&mut self) {
        self.cursor.take_while(|character| character.is_ascii_whitespace());
    }

    fn take(&mut self, text: &str) -> bool {
        self.blanks();
        let there = self.cursor.starts_with(text);
        if there {
            self.cursor.skip(text.len());
            self.blanks();
        }
        there
    }

    fn name(&mut self) -> Option<String> {
        self.blanks();
        self.cursor.peek().filter(|first| first.is_ascii_alphabetic() || *first == '_')?;
        Some(self.cursor.name())
    }

    fn deeper(&mut self) -> Result<(), Unclear> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > 200 { Err(Unclear("the arithmetic expression is nested too deeply")) } else { Ok(()) }
    }

    fn assignment(&mut self) -> Result<Number, Unclear> {
        self.deeper()?;
        let start = self.cursor.clone();
        if let Some(name) = self.name() {
            self.blanks();
            const ASSIGNMENTS: [&str; 11] = ["=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="];
            let operator = ASSIGNMENTS.iter().find(|operator| {
                self.cursor.starts_with(operator) && !(**operator == "=" && self.cursor.starts_with("=="))
            });
            if let Some(operator) = operator {
                self.take(operator);
                let right = self.assignment()?;
                let value = match operator.strip_suffix('=') {
                    Some("") | None => right,
                    Some(operator) => {
                        let left = self.variable(&name)?;
                        self.calculate(operator, left, right)?
                    }
                };
                self.set(&name, value);
                return Ok(value);
            }
            self.cursor = start;
        }
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        self.unsure = self.unsure.saturating_add(1);
        let yes = self.assignment()?;
        if !self.take(":") {
            return Err(NOT_PARSED);
        }
        let no = self.assignment()?;
        self.unsure = self.unsure.saturating_sub(1);
        Ok(match condition {
            Some(0) => no,
            Some(_) => yes,
            None => None,
        })
    }

    fn set(&mut self, name: &str, value: Number) {
        let value = value.filter(|_| self.unsure == 0);
        self.assigned.push(name.to_owned());
        self.state.set(name, value.map_or(Value::Number, |number| Value::text(&number.to_string())));
    }

    fn binary(&mut self, level: usize) -> Result<Number, Unclear> {
        let Some(operators) = LEVELS.get(level) else {
            return self.power();
        };
        let mut left = self.binary(level.saturating_add(1))?;
        loop {
            self.blanks();
            let found =
                operators.iter().find(|operator| self.cursor.starts_with(operator) && !self.part_of_longer(operator));
            let Some(operator) = found else {
                return Ok(left);
            };
            self.take(operator);
            let may_stop = usize::from(matches!(*operator, "&&" | "||"));
            self.unsure = self.unsure.saturating_add(may_stop);
            let right = self.binary(level.saturating_add(1))?;
            self.unsure = self.unsure.saturating_sub(may_stop);
            left = self.calculate(operator, left, right)?;
        }
    }

    /// Whether the next operator is longer than this one.
    fn part_of_longer(&self, operator: &str) -> bool {
        const LONGER: [&str; 8] = ["||", "&&", "<<", ">>", "**", "<=", ">=", "=="];
        LONGER.iter().any(|longer| {
            longer.len() > operator.len() && longer.starts_with(operator) && self.cursor.starts_with(longer)
        })
    }

    fn calculate(&mut self, operator: &str, left: Number, right: Number) -> Result<Number, Unclear> {
        self.may_fail |= matches!(operator, "/" | "%") && right.is_none();
        let value = calculate(operator, left, right)?;
        // zsh gives other operators other ranks.
        Ok(value.filter(|_| self.evaluator.dialect != Dialect::Any || matches!(operator, "+" | "-" | "*")))
    }

    fn power(&mut self) -> Result<Number, Unclear> {
        let base = self.unary()?;
        if !self.take("**") {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.power()?;
        self.may_fail |= exponent.is_none_or(|exponent| exponent < 0);
        Ok(match (base, exponent.map(u32::try_from)) {
            (Some(base), Some(Ok(exponent))) => base.checked_pow(exponent),
            _ => None,
        })
    }

    fn unary(&mut self) -> Result<Number, Unclear> {
        self.deeper()?;
        self.blanks();
        for operator in ["++", "--"] {
            if self.take(operator) {
                let Some(name) = self.name() else {
                    return Err(NOT_PARSED);
                };
                let value = self.variable(&name)?.and_then(|number| step(number, operator));
                self.set(&name, value);
                return Ok(value);
            }
        }
        for operator in ["!", "~", "-", "+"] {
            if self.take(operator) {
                let value = self.unary()?;
                return Ok(match operator {
                    "!" => value.map(|number| i64::from(number == 0)),
                    "~" => value.map(|number| !number),
                    "-" => value.and_then(i64::checked_neg),
                    _ => value,
                });
            }
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Number, Unclear> {
        if self.take("(") {
            let value = self.list()?;
            return if self.take(")") { Ok(value) } else { Err(NOT_PARSED) };
        }
        if let Some(name) = self.name() {
            if self.cursor.starts_with("[") {
                return Err(Unclear("an array index in an arithmetic expression may run code"));
            }
            let value = self.variable(&name)?;
            for operator in ["++", "--"] {
                if self.take(operator) {
                    self.set(&name, value.and_then(|number| step(number, operator)));
                    break;
                }
            }
            return Ok(value);
        }
        self.number()
    }

    fn number(&mut self) -> Result<Number, Unclear> {
        let text = self
            .cursor
            .take_while(|character| character.is_ascii_alphanumeric() || character == SOME_NUMBER || character == '#');
        self.blanks();
        if text.contains(SOME_NUMBER) {
            // The number may be missing, and then letters beside it name a variable.
            let digits = text.chars().all(|character| character.is_ascii_digit() || character == SOME_NUMBER);
            return if digits { Ok(None) } else { Err(NOT_PARSED) };
        }
        self.literal(&text).ok_or(NOT_PARSED)
    }

    /// The number that a literal stands for, if every shell reads it the same way.
    fn literal(&self, text: &str) -> Option<Number> {
        let octal = text.len() > 1 && text.starts_with('0') && self.evaluator.dialect == Dialect::Any;
        literal(text).map(|number| (!octal).then_some(number))
    }

    fn variable(&self, name: &str) -> Result<Number, Unclear> {
        match self.evaluator.lookup(name, self.state) {
            Value::Number => Ok(None),
            Value::Glob(pattern) if is_number(&pattern) => Ok(None),
            Value::Unset => Ok(Some(0)),
            Value::Text(text) if text.trim().is_empty() => Ok(Some(0)),
            Value::Text(text) => {
                let trimmed = text.trim();
                let (sign, digits) = match trimmed.strip_prefix('-') {
                    Some(digits) => (-1, digits),
                    None => (1, trimmed),
                };
                match self.literal(digits) {
                    Some(number) => Ok(number.and_then(|number| number.checked_mul(sign))),
                    None => Err(Unclear("a variable in an arithmetic expression contains text, which may run code")),
                }
            }
            _ => Err(Unclear("a variable in an arithmetic expression has an unknown value, which may run code")),
        }
    }
}

fn step(number: i64, operator: &str) -> Number {
    if operator == "++" { number.checked_add(1) } else { number.checked_sub(1) }
}

/// `12`, `0x1f`, `017`, `2#101`.
fn literal(text: &str) -> Option<i64> {
    if let Some((base, digits)) = text.split_once('#') {
        // Above base 36, upper-case letters are separate digits.
        let base: u32 = base.parse().ok().filter(|base| (2..=36).contains(base))?;
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return plain.then(|| i64::from_str_radix(digits, base).ok()).flatten();
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(digits, 16).ok();
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => i64::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn calculate(operator: &str, left: Number, right: Number) -> Result<Number, Unclear> {
    let (Some(left), Some(right)) = (left, right) else {
        return Ok(None);
    };
    let truth = |holds: bool| Some(i64::from(holds));
    Ok(match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" | "%" if right == 0 => return Err(Unclear("division by zero")),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "<<" => u32::try_from(right).ok().and_then(|bits| left.checked_shl(bits)),
        ">>" => u32::try_from(right).ok().and_then(|bits| left.checked_shr(bits)),
        "&" => Some(left & right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&&" => truth(left != 0 && right != 0),
        "||" => truth(left != 0 || right != 0),
        "==" => truth(left == right),
        "!=" => truth(left != right),
        "<" => truth(left < right),
        ">" => truth(left > right),
        "<=" => truth(left <= right),
        ">=" => truth(left >= right),
        _ => return Err(NOT_PARSED),
    })
}
