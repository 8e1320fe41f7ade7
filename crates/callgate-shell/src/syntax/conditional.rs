//! `[[ … ]]`

use super::ast::{CommandKind, Connector, TestExpression};
use super::cursor::{Parsed, Parser, is_metacharacter};
use super::words::WordPlace;

const BINARY: [&str; 15] =
    ["=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "<", ">"];

const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";

impl Parser<'_> {
    /// Reads from after `[[` to `]]`.
    pub fn double_bracket(&mut self) -> Parsed<CommandKind> {
        let condition = self.either()?;
        self.skip_lines()?;
        self.expect("]]")?;
        Ok(CommandKind::Conditional(condition))
    }

    fn either(&mut self) -> Parsed<TestExpression> {
        let mut left = self.deeper(Self::both)?;
        loop {
            self.skip_lines()?;
            if !self.take("||") {
                return Ok(left);
            }
            let right = self.deeper(Self::both)?;
            left = TestExpression::Both(Box::new(left), Connector::Or, Box::new(right));
        }
    }

    fn both(&mut self) -> Parsed<TestExpression> {
        let mut left = self.primary()?;
        loop {
            self.skip_lines()?;
            if !self.take("&&") {
                return Ok(left);
            }
            let right = self.primary()?;
            left = TestExpression::Both(Box::new(left), Connector::And, Box::new(right));
        }
    }

    fn primary(&mut self) -> Parsed<TestExpression> {
        self.skip_lines()?;
        if self.take("(") {
            let inner = self.deeper(Self::either)?;
            self.skip_lines()?;
            self.require(")")?;
            return Ok(inner);
        }
        if self.take_reserved("!") {
            return Ok(TestExpression::Not(Box::new(self.deeper(Self::primary)?)));
        }
        if matches!(self.reserved(), Some(("]]", _))) {
            return self.fail("expected a condition");
        }
        let first = self.word_in(WordPlace::Pattern)?;
        self.skip_blanks();
        if let Some(operator) = first.plain().and_then(unary_operator)
            && !self.at_end_of_operand()
            && self.binary_operator().is_none()
        {
            let operand = self.word_in(WordPlace::Pattern)?;
            return Ok(TestExpression::Unary(operator.to_owned(), operand));
        }
        if self.at_end_of_operand() {
            return Ok(TestExpression::Word(first));
        }
        let Some(operator) = self.binary_operator() else {
            return self.fail("expected an operator");
        };
        self.advance(operator.len());
        self.skip_blanks();
        let second = self.word_in(if operator == "=~" { WordPlace::Expression } else { WordPlace::Pattern })?;
        Ok(TestExpression::Binary(first, operator.to_owned(), second))
    }

    /// Whether the condition ends here: `]]`, `)`, `&&`, `||` or a line break.
    fn at_end_of_operand(&self) -> bool {
        self.peek().is_none_or(|byte| matches!(byte, b')' | b'\n'))
            || self.starts_with("&&")
            || self.starts_with("||")
            || self.reserved().is_some_and(|(word, _)| word == "]]")
    }

    fn binary_operator(&self) -> Option<&'static str> {
        let rest = self.rest();
        if rest.starts_with(['<', '>']) {
            return if rest.starts_with('<') { Some("<") } else { Some(">") };
        }
        let length = rest.bytes().position(is_metacharacter).unwrap_or(rest.len());
        let word = rest.get(..length)?;
        BINARY.iter().find(|operator| **operator == word).copied()
    }
}

fn unary_operator(word: &str) -> Option<&str> {
    let letter = word.strip_prefix('-')?;
    (letter.len() == 1 && UNARY.contains(letter)).then_some(word)
}
