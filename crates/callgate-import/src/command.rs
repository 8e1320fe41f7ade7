//! Patterns on the text of commands, as agents write them, and their translation: into patterns on words where that means
//! the same, and into regular expressions on the text where a deny would otherwise be lost.

use crate::wildcard::{self, Token};

/// Programs that callgate looks behind, so that an allow for them would match nothing.
const PEELED: &str = "env nice ionice chrt taskset nohup setsid timeout time stdbuf unbuffer flock watch xargs parallel sudo doas su \
                      command builtin exec eval bash sh dash zsh ksh ash busybox toybox caffeinate";
/// Programs that run a command among their words.
const CARRIERS: &str = "find fd ssh docker podman kubectl fish script systemd-run chroot";

/// The possible ends of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The end of the text.
    End,
    /// The end of the text, or a space and anything.
    MoreWords,
}

/// A pattern on the text of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPattern {
    tokens: Vec<Token>,
    tail: Tail,
}

/// The translation of a pattern for a rule that denies or asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RestrictedCommands {
    /// Patterns on words.
    pub commands: Vec<String>,
    /// Regular expressions on the text.
    pub patterns: Vec<String>,
}

impl TextPattern {
    pub(crate) fn exact(text: &str) -> Self {
        TextPattern { tokens: text.chars().map(Token::Char).collect(), tail: Tail::End }
    }

    /// The text, alone or followed by a space and anything.
    pub(crate) fn prefix(text: &str) -> Self {
        TextPattern { tail: Tail::MoreWords, ..TextPattern::exact(text) }
    }

    /// `*` stands for any text. With `escapes`, `\*` is the character; with `questions`, `?` is any character.
    pub(crate) fn wild(text: &str, escapes: bool, questions: bool) -> Self {
        let mut tokens = Vec::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            tokens.push(match character {
                '\\' if escapes => Token::Char(characters.next_if(|next| matches!(next, '*' | '\\')).unwrap_or('\\')),
                '*' if tokens.last() == Some(&Token::Run) => continue,
                '*' => Token::Run,
                '?' if questions => Token::One,
                _ => Token::Char(character),
            });
        }
        TextPattern { tokens, tail: Tail::End }
    }

    /// Makes a space and `*` at the end optional together.
    #[must_use]
    pub(crate) fn optional_tail(mut self) -> Self {
        if self.tokens.ends_with(&[Token::Char(' '), Token::Run]) {
            self.tokens.truncate(self.tokens.len().saturating_sub(2));
            self.tail = Tail::MoreWords;
        }
        self
    }

    /// The number of `*`.
    pub(crate) fn wildcards(&self) -> usize {
        self.tokens.iter().filter(|token| **token == Token::Run).count()
    }

    /// Whether every text fits.
    pub(crate) fn is_everything(&self) -> bool {
        self.tokens == [Token::Run] || self.tokens.is_empty() && self.tail == Tail::MoreWords
    }

    /// Whether the agent would match a text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let fits = |text: &str| wildcard::fits(&self.tokens, text);
        fits(text)
            || self.tail == Tail::MoreWords
                && text
                    .char_indices()
                    .filter(|(_, character)| character.is_whitespace())
                    .any(|(index, _)| text.get(..index).is_some_and(fits))
    }

    /// Translates the pattern for a rule that denies or asks. The result covers at least what the pattern covers.
    pub(crate) fn restricting(&self) -> RestrictedCommands {
        if self.is_everything() {
            return RestrictedCommands { commands: vec!["**".to_owned()], patterns: Vec::new() };
        }
        let plain = self.is_plain();
        let words = self.words();
        let mut result = RestrictedCommands::default();
        if plain {
            let mut parts: Vec<String> = Vec::new();
            for word in &words {
                if word.first() == Some(&Token::Run) {
                    parts.push("**".to_owned());
                }
                if word.as_slice() != [Token::Run] {
                    parts.push(word_pattern(word));
                    parts.extend((word.last() == Some(&Token::Run)).then(|| "**".to_owned()));
                }
            }
            result.commands.push(self.joined(parts));
        }
        let open_inside =
            self.tokens.iter().rev().skip(1).any(|token| *token == Token::Run) || self.tokens.contains(&Token::One);
        let carries = self.starts_with_any(PEELED) || self.starts_with_any(CARRIERS);
        // Agents may take an option of a wrapper such as `nice` for the command.
        let option = self.tokens.first() == Some(&Token::Char('-'));
        if !plain || open_inside || carries || option {
            result.patterns.push(self.regular_expression());
        }
        result
    }

    /// Translates the pattern for a rule that allows. The result covers at most what the pattern covers. The error is the
    /// reason why there is no such pattern.
    pub(crate) fn permitting(&self) -> Result<String, &'static str> {
        if self.is_everything() {
            return Ok("**".to_owned());
        }
        if !self.is_plain() {
            return Err("it has quotes, variables or other shell syntax; callgate compares words, not text");
        }
        if self.starts_with_any(PEELED) {
            return Err(STARTS_OTHERS);
        }
        let words = self.words();
        if words.first().is_some_and(|word| word.first() == Some(&Token::Run)) {
            return Err("it names no program; callgate allows programs by their names");
        }
        let mut parts: Vec<String> = Vec::new();
        for word in words {
            parts.push(word_pattern(&word));
            parts.extend((word.last() == Some(&Token::Run)).then(|| "**".to_owned()));
        }
        Ok(self.joined(parts))
    }

    /// Joins word patterns, with the tail of the pattern.
    fn joined(&self, mut parts: Vec<String>) -> String {
        parts.extend((self.tail == Tail::MoreWords).then(|| "**".to_owned()));
        parts.dedup_by(|later, earlier| later == "**" && earlier == "**");
        parts.join(" ")
    }

    /// Whether the first word is one of these programs.
    fn starts_with_any(&self, programs: &str) -> bool {
        let first = self.words().first().map(|word| word_pattern(word)).unwrap_or_default();
        programs.split_whitespace().any(|program| program == first)
    }

    /// Whether the text means the same as its words: no quotes, expansions, operators or assignments.
    fn is_plain(&self) -> bool {
        let plain = self.tokens.iter().all(|token| match token {
            Token::Char(character) => character.is_ascii_alphanumeric() || " _-./:@%+,=".contains(*character),
            _ => true,
        });
        let assigns = self.words().first().is_some_and(|word| word.contains(&Token::Char('=')));
        plain && !assigns
    }

    /// The pattern split at spaces.
    fn words(&self) -> Vec<Vec<Token>> {
        let words = self.tokens.split(|token| *token == Token::Char(' '));
        words.filter(|word| !word.is_empty()).map(<[Token]>::to_vec).collect()
    }

    /// An expression that finds the pattern wherever a command could start in the text.
    fn regular_expression(&self) -> String {
        let mut expression = String::from("(?s)");
        if self.tokens.first() != Some(&Token::Run) {
            expression.push_str("(?:^|[\\s;&|(){}`$\"'/])");
        }
        let mut blank = false;
        for token in &self.tokens {
            let was_blank = std::mem::replace(&mut blank, matches!(token, Token::Char(c) if c.is_whitespace()));
            match token {
                Token::Run => expression.push_str(".*"),
                Token::Char(_) if blank && was_blank => {}
                Token::Char(_) if blank => expression.push_str("\\s+"),
                Token::Char(character) => escape_into(&mut expression, *character),
                Token::One | Token::Class { .. } => expression.push('.'),
            }
        }
        if self.tokens.last() != Some(&Token::Run) {
            expression.push_str("(?:$|[\\s;&|(){}`\"'<>])");
        }
        expression
    }

    /// Texts that fit, and some that nearly do.
    pub(crate) fn samples(&self) -> Vec<String> {
        let fill = |filling: &str| {
            self.tokens.iter().fold(String::new(), |mut text, token| {
                match token {
                    Token::Run => text.push_str(filling),
                    other => text.push(other.sample()),
                }
                text
            })
        };
        let mut samples = vec![fill(""), fill("x"), fill("--all x"), fill("a b c")];
        if self.tail == Tail::MoreWords {
            samples.extend([format!("{} --quiet x", fill("x")), format!("{}x", fill("x"))]);
        } else {
            samples.push(format!("{} more", fill("x")));
        }
        if let Some((front, _)) = fill("x").rsplit_once(' ') {
            samples.push(front.to_owned());
        }
        samples.into_iter().map(|sample| sample.trim().to_owned()).filter(|sample| !sample.is_empty()).collect()
    }
}

/// Why a rule for `sudo`, `timeout` and their like is left out.
pub(crate) const STARTS_OTHERS: &str = "it names a program that only starts others; callgate judges what is started";

fn word_pattern(word: &[Token]) -> String {
    word.iter().fold(String::new(), |mut pattern, token| {
        match token {
            Token::Run => pattern.push('*'),
            Token::Char(character) => pattern.push_str(&escape_word(&character.to_string())),
            Token::One | Token::Class { .. } => pattern.push('?'),
        }
        pattern
    })
}

/// Escapes a word so that callgate's patterns match it literally.
pub(crate) fn escape_word(word: &str) -> String {
    if word.is_empty() {
        return "''".to_owned();
    }
    word.chars().fold(String::with_capacity(word.len()), |mut escaped, character| {
        if character.is_whitespace() || "*?[]\\{},!'\"".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
        escaped
    })
}

fn escape_into(expression: &mut String, character: char) {
    if character.is_ascii() && !character.is_ascii_alphanumeric() && !matches!(character, '_' | '/' | ':' | ' ') {
        expression.push('\\');
    }
    expression.push(character);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wild(text: &str) -> TextPattern {
        TextPattern::wild(text, true, false).optional_tail()
    }

    #[test]
    fn how_text_is_matched() {
        for (pattern, text, expected) in [
            (TextPattern::exact("npm test"), "npm test", true),
            (TextPattern::exact("npm test"), "npm test x", false),
            (TextPattern::prefix("npm test"), "npm test", true),
            (TextPattern::prefix("npm test"), "npm test x y", true),
            (TextPattern::prefix("npm test"), "npm tests", false),
            (wild("git push *"), "git push", true),
            (wild("git push *"), "git push -f", true),
            (wild("git push *"), "git pushx", false),
            (wild("git push*"), "git pushx y", true),
            (wild("git * main"), "git push -f main", true),
            (wild("git * main"), "git push main x", false),
            (wild("*"), "", true),
            (wild("echo \\*"), "echo *", true),
            (wild("echo \\*"), "echo x", false),
            (TextPattern::wild("a?c", false, true), "abc", true),
        ] {
            assert_eq!(pattern.matches(text), expected, "{pattern:?} {text}");
        }
    }

    #[test]
    fn what_patterns_become() {
        for (pattern, restricting, permitting) in [
            (TextPattern::exact("npm test"), &["npm test"][..], Some("npm test")),
            (TextPattern::prefix("npm test"), &["npm test **"], Some("npm test **")),
            (wild("git push*"), &["git push* **"], Some("git push* **")),
            (wild("git * main"), &["git ** main"], Some("git * ** main")),
            (wild("*"), &["**"], Some("**")),
            (wild("* --help"), &["** --help"], None),
            (wild("sudo *"), &["sudo **"], None),
            (wild("echo \"x\"*"), &[], None),
            (wild("A=1 rm *"), &[], None),
            (wild("rm $HOME/*"), &[], None),
        ] {
            assert_eq!(pattern.restricting().commands, restricting, "{pattern:?}");
            assert_eq!(pattern.permitting().ok().as_deref(), permitting, "{pattern:?}");
            assert!(!restricting.is_empty() || !pattern.restricting().patterns.is_empty(), "a deny is never lost");
        }
    }

    #[test]
    fn samples_are_about_the_pattern() {
        for pattern in [wild("git push *"), TextPattern::exact("make"), wild("npm run *:unit")] {
            let fitting = pattern.samples().iter().filter(|sample| pattern.matches(sample)).count();
            assert!(fitting > 0 && fitting < pattern.samples().len(), "{pattern:?}");
        }
    }
}
