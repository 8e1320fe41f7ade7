//! A position in code that is read character by character.

/// A place in code.
#[derive(Clone)]
pub(crate) struct Cursor {
    characters: std::rc::Rc<[char]>,
    at: usize,
}

impl Cursor {
    pub(crate) fn new(text: &str) -> Self {
        Cursor { characters: text.chars().collect(), at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    pub(crate) fn ahead(&self, distance: usize) -> Option<char> {
        self.characters.get(self.at.saturating_add(distance)).copied()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(character)
    }

    pub(crate) fn take_if(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at = self.at.saturating_add(1);
        }
        found
    }

    pub(crate) fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(distance, character)| self.ahead(distance) == Some(character))
    }

    /// Takes characters as long as `fits` holds.
    pub(crate) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) = self.peek().filter(|character| fits(*character)) {
            taken.push(character);
            self.at = self.at.saturating_add(1);
        }
        taken
    }

    pub(crate) fn skip_blanks(&mut self) {
        self.take_while(|character| matches!(character, ' ' | '\t'));
    }

    pub(crate) fn skip_white_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    /// Takes the rest of the line and the line break.
    pub(crate) fn line(&mut self) -> String {
        let line = self.take_while(|character| character != '\n');
        self.next();
        line
    }

    /// Takes a name: ASCII letters, digits and underscores.
    pub(crate) fn name(&mut self) -> String {
        self.take_while(is_name_character)
    }

    /// Takes a quote and the text up to the next one like it; escapes stay as they are.
    pub(crate) fn quoted(&mut self) -> Option<String> {
        let quote = self.next()?;
        self.until(quote)
    }

    /// Whether a parenthesis follows, perhaps after white space.
    pub(crate) fn at_call(&mut self) -> bool {
        self.skip_white_space();
        self.peek() == Some('(')
    }

    /// Takes text up to and including an unescaped `end`; escapes stay as they are.
    pub(crate) fn until(&mut self, end: char) -> Option<String> {
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
pub(crate) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
