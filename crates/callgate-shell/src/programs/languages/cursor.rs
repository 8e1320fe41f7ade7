//! Going through code character by character.

/// A place in code.
#[derive(Clone)]
pub(super) struct Cursor {
    characters: std::rc::Rc<[char]>,
    at: usize,
}

impl Cursor {
    pub(super) fn new(text: &str) -> Self {
        Cursor { characters: text.chars().collect(), at: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, distance: usize) -> Option<char> {
        self.characters.get(self.at.saturating_add(distance)).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(character)
    }

    pub(super) fn take_if(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at = self.at.saturating_add(1);
        }
        found
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(distance, character)| self.ahead(distance) == Some(character))
    }

    /// Takes characters as long as they fit.
    pub(super) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) = self.peek().filter(|character| fits(*character)) {
            taken.push(character);
            self.at = self.at.saturating_add(1);
        }
        taken
    }

    pub(super) fn skip_blanks(&mut self) {
        self.take_while(|character| matches!(character, ' ' | '\t'));
    }

    pub(super) fn skip_white_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    /// The rest of the line; the cursor stands behind its end.
    pub(super) fn line(&mut self) -> String {
        let line = self.take_while(|character| character != '\n');
        self.next();
        line
    }

    /// Takes a name: ASCII letters, digits and underscores.
    pub(super) fn name(&mut self) -> String {
        self.take_while(is_name_character)
    }

    /// Takes a quote and the text up to the next one like it; escapes stay as they are.
    pub(super) fn quoted(&mut self) -> Option<String> {
        let quote = self.next()?;
        self.until(quote)
    }

    /// Whether a parenthesis follows, perhaps after white space.
    pub(super) fn at_call(&mut self) -> bool {
        self.skip_white_space();
        self.peek() == Some('(')
    }

    /// Text up to an unescaped `end`, which is taken, too; escapes stay as they are.
    pub(super) fn until(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '\\' => {
                    text.push('\\');
                    text.push(self.next()?);
                }
                character if character == end => return Some(text),
                character => text.push(character),
            }
        }
    }
}

/// Whether a character may be part of a name.
pub(super) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
