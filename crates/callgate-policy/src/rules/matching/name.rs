//! Patterns on one name: `*`, `?`, `[…]` and `\` within a path component, a word or a tool's name.
//!
//! Work is bounded by the product of the two lengths; there is no backtracking beyond the last `*`.

/// Whether `pattern` has characters that are not taken literally.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    pattern.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
}

/// Whether `pattern` is written correctly: every `[` is closed and `\` is followed by something.
pub(crate) fn check(pattern: &str) -> Result<(), &'static str> {
    let mut rest = pattern.as_bytes();
    while let Some(&byte) = rest.first() {
        rest = match byte {
            b'\\' if rest.len() == 1 => return Err("trailing `\\`; write `\\\\` for the character itself"),
            b'\\' => rest.get(2..).unwrap_or_default(),
            b'[' => match class_end(rest) {
                Some(length) => rest.get(length..).unwrap_or_default(),
                None => return Err("unclosed `[`; write `\\[` for the character itself"),
            },
            _ => rest.get(1..).unwrap_or_default(),
        };
    }
    Ok(())
}

/// The length of the class that starts at the front of `pattern`.
fn class_end(pattern: &[u8]) -> Option<usize> {
    let mut index = 1;
    if matches!(pattern.get(index), Some(b'!' | b'^')) {
        index += 1;
    }
    // A `]` right at the front stands for itself.
    if pattern.get(index) == Some(&b']') {
        index += 1;
    }
    while let Some(byte) = pattern.get(index) {
        match byte {
            b']' => return Some(index + 1),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
    None
}

/// Whether the class at the front of `pattern` has `character`; `body` excludes the brackets.
fn class_has(body: &[u8], character: char) -> bool {
    let (negated, body) = match body.first() {
        Some(b'!' | b'^') => (true, body.get(1..).unwrap_or_default()),
        _ => (false, body),
    };
    let Ok(body) = std::str::from_utf8(body) else {
        return !negated;
    };
    let mut characters = body.chars().peekable();
    let mut found = false;
    while let Some(mut low) = characters.next() {
        if low == '\\' {
            low = characters.next().unwrap_or('\\');
        }
        let mut high = low;
        let mut ahead = characters.clone();
        if ahead.next() == Some('-')
            && let Some(end) = ahead.next()
        {
            high = if end == '\\' { ahead.next().unwrap_or('\\') } else { end };
            characters = ahead;
        }
        found |= (low..=high).contains(&character);
    }
    found != negated
}

/// The first character of `bytes` and how many bytes it takes; a byte that is no UTF-8 counts as one character.
fn first_character(bytes: &[u8]) -> Option<(char, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((char::from(first), 1));
    }
    let length = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    let character =
        bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|text| text.chars().next());
    Some(character.map_or((char::REPLACEMENT_CHARACTER, 1), |character| (character, length)))
}

/// How many bytes of the pattern and of the name the first element of a pattern takes; `None` if it does not match. The
/// element is not `*`.
fn step(pattern: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let byte = pattern.first()?;
    let (character, length) = first_character(name)?;
    match byte {
        b'?' => Some((1, length)),
        b'[' => {
            let end = class_end(pattern)?;
            let body = pattern.get(1..end.saturating_sub(1)).unwrap_or_default();
            class_has(body, character).then_some((end, length))
        }
        b'\\' => (pattern.get(1) == name.first()).then_some((2, 1)),
        byte => (Some(byte) == name.first()).then_some((1, 1)),
    }
}

/// Whether the whole `name` matches `pattern`.
pub(crate) fn matches(pattern: &str, name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name);
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        if let Some(after_star) = pattern.strip_prefix(b"*") {
            if after_star.is_empty() {
                return true;
            }
            pattern = after_star;
            retry = Some((pattern, name));
        } else if let Some((from_pattern, from_name)) = step(pattern, name) {
            pattern = pattern.get(from_pattern..).unwrap_or_default();
            name = name.get(from_name..).unwrap_or_default();
        } else {
            // Let the last `*` take one character more.
            let Some((after_star, from)) = retry else { return false };
            let Some((_, length)) = first_character(from) else { return false };
            (pattern, name) = (after_star, from.get(length..).unwrap_or_default());
            retry = Some((pattern, name));
        }
    }
}

/// The literal text after the last special character. Empty if the pattern quotes characters, to stay simple.
pub(crate) fn literal_back(pattern: &str) -> &str {
    if pattern.contains('\\') {
        return "";
    }
    match pattern.rfind(['*', '?', ']']) {
        Some(index) => pattern.get(index.saturating_add(1)..).unwrap_or_default(),
        None => pattern,
    }
}

/// One token of a pattern, for comparing two patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Star,
    /// An extended group such as `@(a|b)`: anything, but somebody was after something.
    Group,
    Any,
    Class(String),
    Character(char),
}

/// A pattern that has been taken apart so that it can be compared with other patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens(Vec<Token>);

/// Longer patterns are not compared; they count as overlapping.
const MAXIMUM_TOKENS: usize = 256;

impl Tokens {
    /// Takes a pattern apart. With `extended`, shell groups such as `@(a|b)` are known.
    pub(crate) fn new(pattern: &str, extended: bool) -> Self {
        let mut tokens = Vec::new();
        let mut rest = pattern;
        while let Some(character) = rest.chars().next() {
            let mut taken = character.len_utf8();
            let after = rest.get(taken..).unwrap_or_default();
            tokens.push(match character {
                '?' | '*' | '+' | '@' | '!' if extended && after.starts_with('(') => {
                    taken = group_length(rest);
                    Token::Group
                }
                '*' => Token::Star,
                '?' => Token::Any,
                '[' => match class_end(rest.as_bytes()) {
                    Some(end) => {
                        taken = end;
                        Token::Class(rest.get(1..end.saturating_sub(1)).unwrap_or_default().to_owned())
                    }
                    None => Token::Character('['),
                },
                '\\' => match after.chars().next() {
                    Some(quoted) => {
                        taken = taken.saturating_add(quoted.len_utf8());
                        Token::Character(quoted)
                    }
                    None => Token::Character('\\'),
                },
                other => Token::Character(other),
            });
            rest = rest.get(taken..).unwrap_or_default();
        }
        Self(tokens)
    }

    fn fixed(token: Option<&Token>) -> bool {
        match token {
            Some(Token::Character(_) | Token::Group) => true,
            // `[a-z]` and `[!x]` leave nearly everything open, `[v]` nothing.
            Some(Token::Class(class)) => class.len() <= 3 && !class.starts_with(['!', '^']) && !class.contains('-'),
            _ => false,
        }
    }

    /// Whether only one text fits.
    pub(crate) fn is_literal(&self) -> bool {
        self.0.iter().all(|token| matches!(token, Token::Character(_)))
    }

    /// Whether this fits every name.
    pub(crate) fn is_anything(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|token| *token == Token::Star)
    }

    /// Whether some name fits both patterns. Errs towards yes.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (left, right) = (&self.0, &other.0);
        if left.len() > MAXIMUM_TOKENS || right.len() > MAXIMUM_TOKENS {
            return true;
        }
        let wide = |token: &Token| matches!(token, Token::Star | Token::Group);
        // reachable[j]: the rest of `left` from here and the rest of `right` from j have a common name.
        let mut below: Vec<bool> = (0..=right.len()).map(|from| right.iter().skip(from).all(wide)).collect();
        for token in left.iter().rev() {
            let mut row = vec![false; below.len()];
            let end = right.len();
            if let (Some(last), Some(under)) = (row.get_mut(end), below.get(end)) {
                *last = wide(token) && *under;
            }
            for (index, other) in right.iter().enumerate().rev() {
                let under = below.get(index).copied().unwrap_or_default();
                let after = row.get(index.saturating_add(1)).copied().unwrap_or_default();
                let both = below.get(index.saturating_add(1)).copied().unwrap_or_default();
                let here = match (wide(token), wide(other)) {
                    (true, true) | (true, false) | (false, true) => under || after || both,
                    (false, false) => both && meet(token, other),
                };
                if let Some(cell) = row.get_mut(index) {
                    *cell = here;
                }
            }
            below = row;
        }
        below.first().copied().unwrap_or(true)
    }

    /// Whether a shell pattern (`self`) that overlaps a protected name was meant for it: `cat *` is about everything,
    /// `cat .e*` is about `.env`.
    pub(crate) fn aims_at(&self, protected: &Self) -> bool {
        if self.is_literal() || protected.is_anything() {
            return true;
        }
        if Self::fixed(protected.0.first()) {
            return Self::fixed(self.0.first());
        }
        if Self::fixed(protected.0.last()) {
            // `*.json` is about all of them, not about `*.auto.tfvars.json`.
            let run = |tokens: &Self| tokens.0.iter().rev().take_while(|token| Self::fixed(Some(token))).count();
            return run(self) >= run(protected);
        }
        // `*part*`: only a pattern that is open at neither end is meant for one name.
        Self::fixed(self.0.first()) && Self::fixed(self.0.last())
    }
}

fn group_length(text: &str) -> usize {
    let mut depth = 0_usize;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'(' => depth = depth.saturating_add(1),
            b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index.saturating_add(1);
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Whether one character can stand for both tokens.
fn meet(left: &Token, right: &Token) -> bool {
    match (left, right) {
        (Token::Character(left), Token::Character(right)) => left == right,
        (Token::Class(class), Token::Character(character)) | (Token::Character(character), Token::Class(class)) => {
            class_has(class.as_bytes(), *character)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*.pem", "x.pem", true),
            ("*.pem", "x.pem.txt", false),
            ("a*b*c", "axxbxxbc", true),
            ("?", "ü", true),
            ("??", "ü", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            (".env.*", ".env.local", true),
            (".env.*", ".env", false),
            ("*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern, name.as_bytes()), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_overlap() {
        for (left, right, overlap) in [
            (".e*", ".env", true),
            ("*", ".env", true),
            (".en[v]", ".env", true),
            (".en[a-c]", ".env", false),
            ("*.pem", "k*", true),
            ("*.pem", "*.key", false),
            ("a*b", "b*a", false),
            ("@(.env|x)", ".env", true),
        ] {
            assert_eq!(Tokens::new(left, true).overlaps(&Tokens::new(right, false)), overlap, "{left} {right}");
        }
    }

    #[test]
    fn only_patterns_that_are_after_a_name_aim_at_it() {
        for (shell, protected, aims) in [
            ("*", ".env", false),
            ("?env", ".env", false),
            (".e*", ".env", true),
            ("[.]env", ".env", true),
            ("@(.env)", ".env", true),
            ("*", "*.pem", false),
            ("k*", "*.pem", false),
            ("*.pem", "*.pem", true),
            ("*", "*", true),
        ] {
            assert_eq!(Tokens::new(shell, true).aims_at(&Tokens::new(protected, false)), aims, "{shell} {protected}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(pattern in ".{0,20}", name in ".{0,20}") {
            let _ = check(&pattern);
            matches(&pattern, name.as_bytes());
            let _ = Tokens::new(&pattern, true).overlaps(&Tokens::new(&name, false));
        }

        #[test]
        fn a_name_that_fits_overlaps(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            prop_assert_eq!(
                matches(&pattern, name.as_bytes()),
                Tokens::new(&pattern, false).overlaps(&Tokens::new(&name, false))
            );
        }
    }
}
