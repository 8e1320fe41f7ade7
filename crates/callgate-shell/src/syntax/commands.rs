//! Lists, pipelines and the choice between kinds of commands.

use super::Dialect;
use super::ast::{Command, CommandKind, Connector, Item, Pipeline, Redirection, Script};
use super::cursor::{NotUnderstood, Parsed, Parser, is_metacharacter};

/// The reserved words of bash.
pub(crate) const RESERVED: [&str; 22] = [
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "in", "case", "esac",
    "function", "coproc", "time", "{", "}", "!", "[[", "]]",
];

/// Reserved words that end a list.
const ENDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Reserved words that POSIX does not have.
const BASH_ONLY: [&str; 5] = ["select", "function", "coproc", "[[", "]]"];

impl Parser<'_> {
    /// Parses the whole source. Keeps the commands before a mistake.
    pub fn whole_script(&mut self) -> (Script, Option<NotUnderstood>) {
        let mut script = Script::default();
        let result = self.items(&mut script).and_then(|()| match self.peek() {
            None => self.documents_at_the_end(),
            Some(_) => self.unexpected(),
        });
        (script, result.err().map(|mistake| *mistake))
    }

    /// Ends the here-documents that the source does not: bash takes what there is.
    fn documents_at_the_end(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            if pending.body.set(Vec::new()).is_err() {
                return self.fail("a here-document has two bodies");
            }
        }
        Ok(())
    }

    /// Reads a list that must not be empty.
    pub fn list(&mut self) -> Parsed<Script> {
        let mut script = Script::default();
        self.deeper(|parser| parser.items(&mut script))?;
        if script.items.is_empty() {
            return self.fail("expected a command");
        }
        Ok(script)
    }

    /// Reads items up to something that ends a list.
    pub fn items(&mut self, script: &mut Script) -> Parsed<()> {
        let mut starts_line = true;
        loop {
            let from = self.position;
            self.skip_lines()?;
            starts_line |= self.text(from, self.position).contains('\n');
            if self.at_end_of_list() {
                return Ok(());
            }
            let mut item = self.item()?;
            item.starts_line = std::mem::replace(&mut starts_line, false);
            self.skip_to_token();
            let mut ended = true;
            match self.peek() {
                Some(b'&') if self.peek_at(1) != Some(b'&') => {
                    self.refuse_split_operator()?;
                    item.background = self.take("&");
                }
                Some(b';') if self.peek_at(1) != Some(b';') && self.peek_at(1) != Some(b'&') => {
                    self.refuse_split_operator()?;
                    self.take(";");
                }
                Some(b'\n') => {
                    self.newline()?;
                    starts_line = true;
                }
                _ => ended = false,
            }
            script.items.push(item);
            if !ended {
                return Ok(());
            }
        }
    }

    fn at_end_of_list(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.peek_at(1) == Some(b';') || self.peek_at(1) == Some(b'&'),
            _ => self.reserved().is_some_and(|(word, _)| ENDS.contains(&word)),
        }
    }

    /// `&\` newline `&` is one operator for bash. Nobody writes that.
    pub fn refuse_split_operator(&self) -> Parsed<()> {
        if self.peek_at(1) == Some(b'\\') && self.peek_at(2) == Some(b'\n') {
            return self.fail("a line continuation inside an operator");
        }
        Ok(())
    }

    fn item(&mut self) -> Parsed<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_to_token();
            let connector = if self.take("&&") {
                Connector::And
            } else if self.take("||") {
                Connector::Or
            } else {
                return Ok(Item { first, rest, background: false, starts_line: false });
            };
            self.skip_lines()?;
            rest.push((connector, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let mut negated = false;
        let mut timed = false;
        let mut prefixed = false;
        loop {
            self.skip_blanks();
            match self.reserved() {
                Some(("!", length)) => {
                    self.advance(length);
                    negated = !negated;
                }
                Some(("time", length)) => {
                    self.time(length);
                    timed = true;
                }
                _ => break,
            }
            prefixed = true;
        }
        // Most pipelines have one command, and commands are large.
        let mut commands = Vec::with_capacity(1);
        self.skip_to_token();
        let bare = matches!(self.peek(), None | Some(b'\n' | b';')) && prefixed;
        if bare {
            return Ok(Pipeline { negated, timed, commands });
        }
        loop {
            let mut command = self.command()?;
            self.skip_to_token();
            let piped = self.peek() == Some(b'|') && self.peek_at(1) != Some(b'|');
            if !piped {
                commands.push(command);
                return Ok(Pipeline { negated, timed, commands });
            }
            self.refuse_split_operator()?;
            if self.take("|&") {
                self.bash_only("`|&`")?;
                command.pipes_errors = true;
            } else {
                self.take("|");
            }
            commands.push(command);
            self.skip_lines()?;
            if let Some(("time", length)) = self.reserved() {
                self.time(length);
                self.skip_blanks();
            }
        }
    }

    fn time(&mut self, length: usize) {
        self.advance(length);
        for option in ["-p", "--"] {
            self.skip_blanks();
            let ends = self.peek_at(option.len()).is_none_or(is_metacharacter);
            if self.starts_with(option) && ends {
                self.advance(option.len());
            }
        }
    }

    /// Reads one command with its redirections.
    pub fn command(&mut self) -> Parsed<Command> {
        self.pay()?;
        self.skip_blanks();
        let start = self.position;
        let kind = match self.peek() {
            Some(b'(') => self.deeper(Self::parenthesis)?,
            _ => match self.reserved() {
                Some((word, length)) => match self.deeper(|parser| parser.compound(word, length))? {
                    Some(kind) => kind,
                    None => return self.fail(format!("unexpected `{word}`")),
                },
                None => return self.simple_command(),
            },
        };
        let redirections = match kind {
            // They belong to the body.
            CommandKind::Function { .. } | CommandKind::Coprocess { .. } => Vec::new(),
            _ => self.redirections()?,
        };
        Ok(Command { kind, redirections, pipes_errors: false, span: self.span_from(start) })
    }

    /// Reads all redirections that are next.
    pub fn redirections(&mut self) -> Parsed<Vec<Redirection>> {
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => redirections.push(redirection),
                None => return Ok(redirections),
            }
        }
    }

    /// The reserved word that is next, and how many bytes it takes.
    pub fn reserved(&self) -> Option<(&'static str, usize)> {
        let bytes = self.rest().as_bytes();
        let first = bytes.first()?;
        if !first.is_ascii_lowercase() && !matches!(first, b'{' | b'}' | b'!' | b'[' | b']' | b'\\') {
            return None;
        }
        let mut letters = [0u8; 8];
        let mut count = 0usize;
        let mut place = 0usize;
        loop {
            match bytes.get(place) {
                Some(b'\\') if bytes.get(place.saturating_add(1)) == Some(&b'\n') => {
                    place = place.saturating_add(2);
                    continue;
                }
                None => break,
                Some(byte) if is_metacharacter(*byte) => break,
                Some(byte) => *letters.get_mut(count)? = *byte,
            }
            count = count.saturating_add(1);
            place = place.saturating_add(1);
        }
        let word = letters.get(..count)?;
        let found = RESERVED.iter().find(|reserved| reserved.as_bytes() == word)?;
        let known = match self.dialect {
            Dialect::Bash | Dialect::Any => true,
            Dialect::Sh => *found != "time",
        };
        known.then_some((*found, place))
    }

    /// Takes this reserved word or fails.
    pub fn expect(&mut self, word: &str) -> Parsed<()> {
        self.skip_blanks();
        if self.take_reserved(word) { Ok(()) } else { self.fail(format!("expected `{word}`")) }
    }

    /// Takes this reserved word if it is next.
    pub fn take_reserved(&mut self, word: &str) -> bool {
        match self.reserved() {
            Some((found, length)) if found == word => {
                self.advance(length);
                true
            }
            _ => false,
        }
    }

    fn compound(&mut self, word: &'static str, length: usize) -> Parsed<Option<CommandKind>> {
        if BASH_ONLY.contains(&word) {
            self.bash_only(format_args!("`{word}`"))?;
        }
        if ENDS.contains(&word) || matches!(word, "!" | "time" | "in" | "]]") {
            return Ok(None);
        }
        self.advance(length);
        match word {
            "{" => {
                let body = self.list()?;
                self.expect("}")?;
                Ok(Some(CommandKind::Group(body)))
            }
            "if" => self.conditional_branches().map(Some),
            "while" | "until" => {
                let condition = self.list()?;
                let body = self.do_group()?;
                Ok(Some(CommandKind::While { condition, body }))
            }
            "for" | "select" => self.for_loop(word == "select").map(Some),
            "case" => self.case().map(Some),
            "[[" => self.double_bracket().map(Some),
            "function" => self.function_keyword().map(Some),
            "coproc" => self.coprocess().map(Some),
            _ => Ok(None),
        }
    }
}
