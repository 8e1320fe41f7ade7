//! Wildcard patterns: `*`, `?` and character classes.

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// Any text, also the empty one.
    Run,
    /// Any character.
    One,
    /// This character.
    Char(char),
    /// A character in one of these ranges, or in none of them if negated.
    Class { ranges: Vec<(char, char)>, negated: bool },
}

impl Token {
    fn fits(&self, character: char) -> bool {
        match self {
            Token::Run => false,
            Token::One => true,
            Token::Char(wanted) => *wanted == character,
            Token::Class { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }

    /// A character that fits.
    pub(crate) fn sample(&self) -> char {
        match self {
            Token::Char(character) => *character,
            Token::Class { ranges, negated: false } => ranges.first().map_or('x', |(low, _)| *low),
            Token::Run | Token::One | Token::Class { .. } => 'x',
        }
    }
}

/// Whether a text fits.
pub(crate) fn fits(tokens: &[Token], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    fits_items(tokens, &text, |token| *token == Token::Run, |token, character| token.fits(*character))
}

/// Whether items fit a pattern in which some parts stand for any number of items: in one pass that returns to the last such
/// part on a mismatch.
pub(crate) fn fits_items<P, T>(
    pattern: &[P],
    items: &[T],
    is_run: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut part, mut at) = (0_usize, 0_usize);
    let mut back: Option<(usize, usize)> = None;
    while let Some(item) = items.get(at) {
        match pattern.get(part) {
            Some(wanted) if is_run(wanted) => {
                part = part.saturating_add(1);
                back = Some((part, at));
            }
            Some(wanted) if fits(wanted, item) => {
                part = part.saturating_add(1);
                at = at.saturating_add(1);
            }
            _ => match back {
                Some((after, from)) => {
                    let next = from.saturating_add(1);
                    (part, at, back) = (after, next, Some((after, next)));
                }
                None => return false,
            },
        }
    }
    pattern.get(part..).unwrap_or_default().iter().all(is_run)
}

/// Parses one component of a `.gitignore` pattern.
pub(crate) fn component(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::Run,
            '?' => Token::One,
            '\\' => Token::Char(characters.next().unwrap_or('\\')),
            '[' => {
                let negated = characters.next_if(|next| matches!(next, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                while let Some(low) = characters.next() {
                    if low == ']' && !ranges.is_empty() {
                        break;
                    }
                    let mut high = low;
                    let mut ahead = characters.clone();
                    if ahead.next() == Some('-')
                        && let Some(end) = ahead.next().filter(|end| *end != ']')
                    {
                        high = end;
                        characters = ahead;
                    }
                    ranges.push((low, high));
                }
                Token::Class { ranges, negated }
            }
            other => Token::Char(other),
        });
    }
    tokens
}
