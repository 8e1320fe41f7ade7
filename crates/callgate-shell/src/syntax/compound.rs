//! Compound commands: branches, loops, cases, functions.

use super::Dialect;
use super::ast::{Arm, CommandKind, Part, Script};
use super::cursor::{Parsed, Parser, is_metacharacter, name_length};
use super::words::Stop;
use std::rc::Rc;

impl Parser<'_> {
    /// `( … )` or `(( … ))`.
    pub fn parenthesis(&mut self) -> Parsed<CommandKind> {
        let start = self.position;
        if self.starts_with("((") && !self.not_arithmetic.contains(&start) {
            if self.dialect == Dialect::Sh {
                return self.fail("`((` differs between shells");
            }
            self.advance(2);
            if let Some(parts) = self.arithmetic_until_double_parenthesis()? {
                return Ok(CommandKind::Arithmetic(parts));
            }
            self.not_arithmetic.insert(start);
            self.position = start;
        }
        self.take("(");
        let body = self.list()?;
        self.require(")")?;
        Ok(CommandKind::Subshell(body))
    }

    /// Reads up to `))`. `None`: it is not arithmetic; the caller goes back.
    pub fn arithmetic_until_double_parenthesis(&mut self) -> Parsed<Option<Vec<Part>>> {
        match self.arithmetic_parts(Stop::Parenthesis) {
            Ok(parts) if self.starts_with("))") => {
                self.advance(2);
                Ok(Some(parts))
            }
            Err(mistake) if self.fuel.get() == 0 => Err(mistake),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    pub fn conditional_branches(&mut self) -> Parsed<CommandKind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.list()?;
            self.expect("then")?;
            branches.push((condition, self.list()?));
            if !self.take_reserved("elif") {
                let otherwise = if self.take_reserved("else") { Some(self.list()?) } else { None };
                self.expect("fi")?;
                return Ok(CommandKind::If { branches, otherwise });
            }
        }
    }

    pub fn do_group(&mut self) -> Parsed<Script> {
        self.expect("do")?;
        let body = self.list()?;
        self.expect("done")?;
        Ok(body)
    }

    /// `do … done` or `{ … }`, as loops over items allow.
    fn loop_body(&mut self) -> Parsed<Script> {
        if self.dialect != Dialect::Sh && self.take_reserved("{") {
            let body = self.list()?;
            self.expect("}")?;
            return Ok(body);
        }
        self.do_group()
    }

    pub fn for_loop(&mut self, asks: bool) -> Parsed<CommandKind> {
        self.skip_blanks();
        if !asks && self.starts_with("((") {
            return self.arithmetic_for();
        }
        let length = name_length(self.rest());
        if length == 0 || !self.peek_at(length).is_none_or(is_metacharacter) {
            return self.fail("the loop variable is not a valid name");
        }
        let name = self.text(self.position, self.position.saturating_add(length)).to_owned();
        self.advance(length);
        self.skip_to_token();
        let mut items = None;
        if self.take(";") {
            self.skip_lines()?;
        } else {
            self.skip_lines()?;
            if self.take_reserved("in") {
                items = Some(self.loop_items()?);
            }
        }
        let body = self.loop_body()?;
        Ok(CommandKind::For { name, items, body, asks })
    }

    fn loop_items(&mut self) -> Parsed<Vec<super::ast::SourceWord>> {
        let mut items = Vec::new();
        loop {
            self.skip_to_token();
            match self.peek() {
                Some(b';') if self.peek_at(1) != Some(b';') => {
                    self.take(";");
                    break;
                }
                Some(b'\n') => {
                    self.newline()?;
                    break;
                }
                Some(byte) if is_metacharacter(byte) && !self.at_process_substitution() => {
                    return self.fail("unexpected character in the items of a loop");
                }
                None => return self.fail("expected `do`"),
                Some(_) => items.push(self.word()?),
            }
        }
        self.skip_lines()?;
        Ok(items)
    }

    fn arithmetic_for(&mut self) -> Parsed<CommandKind> {
        self.bash_only("`for ((`")?;
        self.take("((");
        let mut expressions = Vec::new();
        for _ in 0..2 {
            expressions.push(self.arithmetic_parts(Stop::Semicolon)?);
            self.require(";")?;
        }
        expressions.push(self.arithmetic_parts(Stop::Parenthesis)?);
        self.require("))")?;
        self.skip_to_token();
        self.take(";");
        self.skip_lines()?;
        let body = self.loop_body()?;
        Ok(CommandKind::ArithmeticFor { expressions, body })
    }

    pub fn case(&mut self) -> Parsed<CommandKind> {
        self.skip_blanks();
        let subject = self.word()?;
        self.skip_lines()?;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(CommandKind::Case { subject, arms });
            }
            self.pay()?;
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.word()?);
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                if !self.take("|") {
                    return self.fail("expected `)` after a pattern");
                }
            }
            let mut body = Script::default();
            self.deeper(|parser| parser.items(&mut body))?;
            let falls_through = self.starts_with(";&") || self.starts_with(";;&");
            arms.push(Arm { patterns, body, falls_through });
            let ended = self.take(";;&") || self.take(";;") || self.take(";&");
            if !ended {
                self.expect("esac")?;
                return Ok(CommandKind::Case { subject, arms });
            }
        }
    }

    /// The body of a function: a compound command with its redirections.
    pub fn function_body(&mut self, name: String) -> Parsed<CommandKind> {
        self.skip_lines()?;
        let body = self.deeper(Self::command)?;
        match body.kind {
            CommandKind::Simple { .. } | CommandKind::Function { .. } | CommandKind::Coprocess { .. } => {
                self.fail("the body of a function is not a compound command")
            }
            _ => Ok(CommandKind::Function { name, body: Rc::new(body) }),
        }
    }

    pub fn function_keyword(&mut self) -> Parsed<CommandKind> {
        self.skip_blanks();
        let word = self.word()?;
        let Some(name) = word.plain().map(str::to_owned) else {
            return self.fail("the name of a function is not plain text");
        };
        self.skip_blanks();
        if self.take("(") {
            self.skip_blanks();
            self.require(")")?;
        }
        self.function_body(name)
    }

    pub fn coprocess(&mut self) -> Parsed<CommandKind> {
        self.skip_blanks();
        let start = self.position;
        let mut name = "COPROC".to_owned();
        let length = name_length(self.rest());
        if length > 0 && self.reserved().is_none() {
            // A name is only allowed before a compound command.
            self.advance(length);
            self.skip_blanks();
            let compound = self.peek() == Some(b'(')
                || self.reserved().is_some_and(|(word, _)| {
                    matches!(word, "{" | "if" | "while" | "until" | "for" | "select" | "case" | "[[")
                });
            if compound {
                name = self.text(start, start.saturating_add(length)).to_owned();
            } else {
                self.position = start;
            }
        }
        if name == "COPROC" && self.reserved_behind_a_word() {
            return self.fail("a reserved word after the name of a coprocess");
        }
        let body = self.deeper(Self::command)?;
        Ok(CommandKind::Coprocess { name, body: Box::new(body) })
    }

    /// Whether a reserved word follows the next word.
    fn reserved_behind_a_word(&self) -> bool {
        let rest = self.rest();
        let word = rest.bytes().position(is_metacharacter).unwrap_or(rest.len());
        let blanks = rest.get(word..).unwrap_or("").bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let mut behind = self.inner(rest, 0..0);
        behind.position = word.saturating_add(blanks);
        blanks > 0 && behind.reserved().is_some()
    }
}
