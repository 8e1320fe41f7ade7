//! Simple commands: assignments, words, redirections, and function definitions, which start the same way.

use super::ast::{
    Argument, AssignedValue, Assignment, Command, CommandKind, Descriptor, Part, Redirection, RedirectionKind,
    SourceWord,
};
use super::cursor::{Parsed, Parser, is_metacharacter, name_length};
use super::words::{Stop, WordPlace};

/// The builtins whose arguments are assignments, of arrays too.
pub(crate) const DECLARATIONS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

/// Whether a text may start with `{name[index]}>`.
fn names_element(rest: &str) -> bool {
    let line = rest.split('\n').next().unwrap_or("");
    line.contains("]}<") || line.contains("]}>")
}

impl Parser<'_> {
    pub fn simple_command(&mut self) -> Parsed<Command> {
        let start = self.position;
        let mut assignments = Vec::new();
        let mut words: Vec<Argument> = Vec::new();
        let mut declares = false;
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            let Some(byte) = self.peek() else { break };
            if byte == b'#' {
                break;
            }
            if let Some(redirection) = self.redirection()? {
                redirections.push(redirection);
                continue;
            }
            if byte == b'(' {
                return self.function_definition(&words, assignments.is_empty() && redirections.is_empty(), start);
            }
            if is_metacharacter(byte) && !self.at_process_substitution() {
                break;
            }
            if words.is_empty() {
                match self.assignment()? {
                    Some(assignment) => assignments.push(assignment),
                    None => {
                        let word = self.word()?;
                        declares = word.plain().is_some_and(|name| DECLARATIONS.contains(&name));
                        words.push(Argument::Word(word));
                    }
                }
            } else {
                words.push(self.argument(declares)?);
            }
        }
        if assignments.is_empty() && words.is_empty() && redirections.is_empty() {
            return self.fail("expected a command");
        }
        let span = self.stands_at.clone().unwrap_or_else(|| start..self.end_of_token(start));
        Ok(Command { kind: CommandKind::Simple { assignments, words }, redirections, pipes_errors: false, span })
    }

    /// Where the last token ends, without the blanks after it.
    fn end_of_token(&self, start: usize) -> usize {
        let text = self.text(start, self.position);
        start.saturating_add(text.trim_end_matches([' ', '\t']).len())
    }

    /// Reads an argument. Arguments of declarations may be arrays.
    fn argument(&mut self, declares: bool) -> Parsed<Argument> {
        if declares {
            let length = name_length(self.rest());
            let behind = self.rest().get(length..).unwrap_or("");
            let array = length > 0 && (behind.starts_with("=(") || behind.starts_with("+=("));
            if array && let Some(assignment) = self.assignment()? {
                return Ok(Argument::Assignment(Box::new(assignment)));
            }
        }
        self.word().map(Argument::Word)
    }

    fn function_definition(&mut self, words: &[Argument], alone: bool, start: usize) -> Parsed<Command> {
        let name = match words {
            [Argument::Word(word)] if alone => word.plain().map(str::to_owned),
            _ => None,
        };
        let Some(name) = name else {
            return self.unexpected();
        };
        self.take("(");
        self.skip_blanks();
        if !self.take(")") {
            return self.unexpected();
        }
        let kind = self.function_body(name)?;
        Ok(Command { kind, redirections: Vec::new(), pipes_errors: false, span: self.span_from(start) })
    }

    /// Reads `name=…` if it is next.
    fn assignment(&mut self) -> Parsed<Option<Assignment>> {
        let start = self.position;
        let length = name_length(self.rest());
        if length == 0 {
            return Ok(None);
        }
        let behind = self.rest().get(length..).unwrap_or("");
        if behind.starts_with("\\\n") {
            let next = behind.trim_start_matches("\\\n");
            return if next.starts_with(['=', '+', '[', '('])
                || next.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            {
                self.fail("a line continuation inside a name")
            } else {
                Ok(None)
            };
        }
        if !behind.starts_with(['=', '[']) && !behind.starts_with("+=") {
            return Ok(None);
        }
        let name = self.text(start, start.saturating_add(length)).to_owned();
        self.advance(length);
        let mut index = None;
        if self.peek() == Some(b'[') {
            match self.assigned_index()? {
                Some(parts) => index = Some(parts),
                None => {
                    let blank = self.text(start, self.position).bytes().any(is_metacharacter);
                    if blank {
                        return self.fail("an array index without an assignment");
                    }
                    self.position = start;
                    return Ok(None);
                }
            }
        }
        let appends = self.take("+=");
        if !appends {
            self.take("=");
        }
        if appends || index.is_some() || self.peek() == Some(b'(') {
            self.bash_only("an array or `+=` assignment")?;
        }
        let value = if self.peek() == Some(b'(') {
            AssignedValue::Array(self.deeper(Self::array)?)
        } else {
            let value_start = self.position;
            let parts = self.word_parts(WordPlace::Command)?;
            AssignedValue::Word(SourceWord { parts, span: self.span_from(value_start) })
        };
        Ok(Some(Assignment { name, index, appends, value, span: self.span_from(start) }))
    }

    /// `[…]` in front of `=` or `+=`. `None`: nothing is assigned; the position is after the bracket.
    fn assigned_index(&mut self) -> Parsed<Option<Vec<Part>>> {
        self.advance(1);
        let parts = self.arithmetic_parts(Stop::Bracket)?;
        self.advance(1);
        Ok((self.starts_with("=") || self.starts_with("+=")).then_some(parts))
    }

    /// `(a b [3]=c)`
    fn array(&mut self) -> Parsed<Vec<(Option<Vec<Part>>, SourceWord)>> {
        self.take("(");
        let mut elements = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take(")") {
                return Ok(elements);
            }
            let start = self.position;
            let mut index = None;
            if self.peek() == Some(b'[') {
                index = self.assigned_index()?;
                if index.is_some() {
                    if !self.take("+=") {
                        self.take("=");
                    }
                    let parts = self.word_parts(WordPlace::Command)?;
                    elements.push((index, SourceWord { parts, span: self.span_from(start) }));
                    continue;
                }
                self.position = start;
            }
            elements.push((index, self.word()?));
        }
    }

    /// Reads a redirection if one is next.
    pub fn redirection(&mut self) -> Parsed<Option<Redirection>> {
        if !matches!(self.peek(), Some(b'0'..=b'9' | b'{' | b'<' | b'>' | b'&')) {
            return Ok(None);
        }
        let start = self.position;
        let rest = self.rest();
        let (descriptor, length) = match rest.as_bytes().first() {
            Some(byte) if byte.is_ascii_digit() => {
                let length = rest.bytes().take_while(u8::is_ascii_digit).count();
                (Descriptor::Number(rest.get(..length).unwrap_or("").parse().unwrap_or(u32::MAX)), length)
            }
            Some(b'{') => {
                let length = name_length(rest.get(1..).unwrap_or(""));
                let name = rest.get(1..length.saturating_add(1)).unwrap_or("");
                if length > 0 && rest.as_bytes().get(length.saturating_add(1)) == Some(&b'[') && names_element(rest) {
                    return self.fail("a descriptor in an array element");
                }
                if length == 0 || rest.as_bytes().get(length.saturating_add(1)) != Some(&b'}') {
                    return Ok(None);
                }
                (Descriptor::Variable(name.to_owned()), length.saturating_add(2))
            }
            _ => (Descriptor::Usual, 0),
        };
        let behind = rest.get(length..).unwrap_or("");
        let both = behind.starts_with("&>") && length == 0;
        let redirects = behind.starts_with(['<', '>']) && !behind.starts_with("<(") && !behind.starts_with(">(");
        if !both && !redirects {
            return Ok(None);
        }
        self.pay()?;
        if both || behind.starts_with("<<<") || matches!(descriptor, Descriptor::Variable(_)) {
            self.bash_only("this redirection")?;
        }
        if length > 9 && matches!(descriptor, Descriptor::Number(_)) {
            return self.fail("the file descriptor number is too large");
        }
        if behind.starts_with("<\\\n") || behind.starts_with(">\\\n") || behind.starts_with("<<\\\n") {
            return self.fail("a line continuation inside an operator");
        }
        self.advance(length);
        let kind = self.redirection_kind()?;
        Ok(Some(Redirection { descriptor, kind, span: self.span_from(start) }))
    }

    fn redirection_kind(&mut self) -> Parsed<RedirectionKind> {
        const OPERATORS: [&str; 12] = ["<<<", "<<-", "&>>", "<<", "<&", "<>", ">>", ">&", ">|", "&>", "<", ">"];
        let Some(operator) = OPERATORS.iter().find(|operator| self.starts_with(operator)) else {
            return self.unexpected();
        };
        self.take(operator);
        if matches!(*operator, "<<" | "<<-") {
            return self.announce_here_document(*operator == "<<-").map(RedirectionKind::HereDocument);
        }
        self.skip_blanks();
        let word = self.word()?;
        Ok(match *operator {
            "<<<" => RedirectionKind::HereString(word),
            "&>" | "&>>" => RedirectionKind::WriteBoth(word),
            "<&" => RedirectionKind::DuplicateInput(word),
            ">&" => RedirectionKind::DuplicateOutput(word),
            "<>" => RedirectionKind::ReadWrite(word),
            "<" => RedirectionKind::Read(word),
            _ => RedirectionKind::Write(word),
        })
    }
}
