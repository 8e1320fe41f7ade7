//! `sed` scripts: `w` and `r` name files, `e` runs commands.

use super::CodeEffects;
use crate::cursor::Cursor;

pub(super) fn read(script: &str) -> CodeEffects {
    let mut reader = SedReader { cursor: Cursor::new(script), found: CodeEffects::default() };
    if reader.script().is_none() {
        reader.found.doubt("cannot parse the sed script");
    }
    reader.found
}

struct SedReader {
    cursor: Cursor,
    found: CodeEffects,
}

impl SedReader {
    /// `None`: something that is invalid, or that sed versions read differently.
    fn script(&mut self) -> Option<()> {
        loop {
            self.cursor.take_while(|character| character.is_whitespace() || character == ';');
            if self.cursor.peek().is_none() {
                return Some(());
            }
            self.addresses()?;
            self.cursor.skip_blanks();
            while self.cursor.take_if('!') {
                self.cursor.skip_blanks();
            }
            self.command()?;
        }
    }

    fn addresses(&mut self) -> Option<()> {
        if !self.address()? {
            return Some(());
        }
        self.cursor.skip_blanks();
        if self.cursor.take_if(',') {
            self.cursor.skip_blanks();
            if matches!(self.cursor.peek(), Some('+' | '~')) {
                self.cursor.next();
                self.cursor.take_while(|character| character.is_ascii_digit());
            } else if !self.address()? {
                return None;
            }
        }
        Some(())
    }

    fn address(&mut self) -> Option<bool> {
        match self.cursor.peek() {
            Some(character) if character.is_ascii_digit() => {
                self.cursor.take_while(|character| character.is_ascii_digit() || character == '~');
                Some(true)
            }
            Some('$') => {
                self.cursor.next();
                Some(true)
            }
            Some('/') => {
                self.cursor.next();
                self.pattern('/')?;
                self.cursor.take_while(|character| matches!(character, 'I' | 'M'));
                Some(true)
            }
            Some('\\') => {
                self.cursor.next();
                let delimiter = self.cursor.next().filter(|delimiter| !matches!(delimiter, '\n' | '\\'))?;
                self.pattern(delimiter)?;
                self.cursor.take_while(|character| matches!(character, 'I' | 'M'));
                Some(true)
            }
            _ => Some(false),
        }
    }

    /// Reads a pattern up to its delimiter. Whether a delimiter inside `[…]` ends it depends on the sed version.
    fn pattern(&mut self, delimiter: char) -> Option<()> {
        let text = self.cursor.until(delimiter)?;
        let mut in_class = false;
        let mut escaped = false;
        for character in text.chars() {
            match character {
                '\\' if !escaped && !in_class => {
                    escaped = true;
                    continue;
                }
                '[' if !escaped => in_class = true,
                ']' => in_class = false,
                _ => {}
            }
            escaped = false;
        }
        // `[]abc]` and `[^]abc]` look closed too early, never too late.
        (!in_class).then_some(())
    }

    fn command(&mut self) -> Option<()> {
        match self.cursor.next()? {
            '{' => Some(()),
            '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => self.end(),
            '#' => {
                self.cursor.line();
                Some(())
            }
            ':' => {
                self.cursor.skip_blanks();
                let label = self.cursor.take_while(|character| !character.is_whitespace() && character != ';');
                (!label.is_empty() && !label.contains('}')).then_some(())
            }
            'b' | 't' | 'T' => {
                self.cursor.skip_blanks();
                self.cursor.take_while(|character| !character.is_whitespace() && !matches!(character, ';' | '}'));
                self.end()
            }
            'q' | 'Q' | 'l' | 'L' => {
                self.cursor.skip_blanks();
                self.cursor.take_while(|character| character.is_ascii_digit());
                self.end()
            }
            'v' => {
                self.cursor.take_while(|character| !matches!(character, '\n' | ';'));
                Some(())
            }
            'a' | 'i' | 'c' => {
                self.text();
                Some(())
            }
            'r' | 'R' => {
                let file = self.file()?;
                self.found.reads.push(file);
                Some(())
            }
            'w' | 'W' => {
                let file = self.file()?;
                self.found.writes.push(file);
                Some(())
            }
            'e' => {
                self.cursor.skip_blanks();
                let source = self.cursor.line();
                match source.trim() {
                    "" | "}" | ";" => self.found.doubt("sed runs its input as commands"),
                    source => self.found.shell.push(source.to_owned()),
                }
                Some(())
            }
            's' => self.substitution(),
            'y' => {
                let delimiter = self.cursor.next().filter(|delimiter| !matches!(delimiter, '\n' | '\\'))?;
                self.cursor.until(delimiter)?;
                self.cursor.until(delimiter)?;
                self.end()
            }
            _ => None,
        }
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.cursor.next().filter(|delimiter| !matches!(delimiter, '\n' | '\\'))?;
        self.pattern(delimiter)?;
        self.cursor.until(delimiter)?;
        loop {
            match self.cursor.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => self.cursor.skip(1),
                Some('e') => {
                    self.cursor.next();
                    self.found.doubt("sed runs the replaced text as a command");
                }
                Some('w') => {
                    self.cursor.next();
                    let file = self.file()?;
                    self.found.writes.push(file);
                    return Some(());
                }
                _ => return self.end(),
            }
        }
    }

    /// A file name extends to the end of the line, whatever it contains.
    fn file(&mut self) -> Option<String> {
        self.cursor.skip_blanks();
        let name = self.cursor.line();
        (!name.is_empty()).then_some(name)
    }

    /// The text of `a`, `i` and `c`: lines, as long as they end in a backslash.
    fn text(&mut self) {
        loop {
            let line = self.cursor.line();
            let backslashes = line.chars().rev().take_while(|character| *character == '\\').count();
            if backslashes % 2 == 0 || self.cursor.peek().is_none() {
                return;
            }
        }
    }

    /// A separator, a closing brace or a comment must follow a command.
    fn end(&mut self) -> Option<()> {
        self.cursor.skip_blanks();
        match self.cursor.peek() {
            None | Some(';' | '\n' | '}' | '#') => Some(()),
            _ => None,
        }
    }
}
